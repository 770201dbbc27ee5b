"""Every setting of the server in one place: the guards against clients, what an operator chooses, gunicorn's own."""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from webhook.server.respond import Reply, respond

DEFAULT_WORKERS: Final = 2
BACKLOG: Final = 2048
WIDE_READ: Final = 32 * 1024
"""Bytes of one read; a larger one leaves OpenSSL's and uvloop's buffers of its connection as large."""
WIDE_CONNECTION: Final = 8
"""What a connection with such buffers counts as among `Guards.largest_connections`."""

GRACEFUL_SECONDS: Final = 20
"""Between SIGTERM and the end: open connections are served out in `Guards.drain_seconds`, usually in 3 s."""

STUCK_WORKER_SECONDS: Final = 30
"""A worker whose loop has not turned for so long is replaced. A pause of the machine below it kills nobody."""


class Guards(Struct, frozen=True):
    """What a client may cost, for each worker. Times are seconds, sizes bytes."""

    handshake_seconds: float = 5
    """From the connection to the end of the TLS handshake."""

    request_seconds: float = 5
    """From the first byte of a request to its last; a total, which dripping bytes do not extend."""

    keep_alive_seconds: float = 120
    """Of silence after the handshake or an answer. kube-apiserver drops idle connections after 90 s: it must be the
    one who closes, or a write runs into our closing."""

    drain_seconds: float = 3
    """How long an idle connection still gets its next request answered after SIGTERM."""

    linger_seconds: float = 1
    """How long a refused body is thrown away, so that the client reads the refusal before the connection is reset."""

    largest_head: int = 64 * 1024
    largest_body: int = 20 * 1024 * 1024
    """Two objects near etcd's limit, escaped by Go, make 19 MB. Under failurePolicy Ignore a smaller cap is a
    bypass."""

    largest_bytes_in_flight: int = 64 * 1024 * 1024
    """Of all bodies that are being read; above it a request gets 503 and Retry-After: 1."""

    largest_connections: int = 1024
    """Above it the connection that has been idle longest is closed. A connection is counted after its handshake; one
    takes 50 KiB, and 400 KiB once a large read has filled its buffers: that one counts as WIDE_CONNECTION."""

    certificate_poll_seconds: float = 10
    policy_poll_seconds: float = 2


class Options(Struct, frozen=True):
    """What `serve` was told. `capture`, `client_ca` and `policy` are "" where not given."""

    bind: str = "127.0.0.1:8443"
    tls_dir: str = "certs"
    policy: str = ""
    workers: int = DEFAULT_WORKERS
    health_bind: str = "127.0.0.1:8081"
    capture: str = ""
    client_ca: str = ""
    client_names: tuple[str, ...] = ()
    audit_lines: bool = True
    guards: Guards = Guards()
    respond: Callable[..., Reply] = respond


def gunicorn_settings(options: Options, memory: str) -> dict[str, Any]:
    """Gunicorn's settings; `memory` is a directory that no disk stands behind, where there is one."""
    return {
        # First the reviews, then probes and metrics: the worker tells them apart by this order.
        "bind": [options.bind, options.health_bind],
        "workers": options.workers,
        "worker_class": "webhook.server.worker.ReviewWorker",
        "logger_class": "webhook.server.gunicorn_log.GunicornLog",
        "proc_name": "lease-webhook",
        "backlog": BACKLOG,
        "keepalive": int(options.guards.keep_alive_seconds),
        "graceful_timeout": GRACEFUL_SECONDS,
        "timeout": STUCK_WORKER_SECONDS,
        # A worker's heartbeat is a file: on a disk, a slow disk would have a healthy worker killed.
        "worker_tmp_dir": memory,
        # Workers are never recycled for their age: memory is flat, and each recycling may cost a request.
        "max_requests": 0,
        # It would write a socket into the home directory, which is read-only in a good container.
        "control_socket_disable": True,
        # One line for each request costs as much as the request.
        "accesslog": None,
        "loglevel": "info",
        "umask": 0o027,
    }
