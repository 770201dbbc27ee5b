"""Every setting of the server but the guards against clients: what an operator chooses, and gunicorn's own."""

from typing import Any, Final

from msgspec import Struct

from webhook.server.http.guards import Guards

DEFAULT_WORKERS: Final = 2
BACKLOG: Final = 2048
GRACEFUL_SECONDS: Final = 20
"""From SIGTERM to the end at most: connections are drained in `Guards.drain_seconds`, usually in 3 s."""

STUCK_WORKER_SECONDS: Final = 30
"""A worker whose event loop has not run for so long is replaced. A shorter pause of the machine ends none."""


class Options(Struct, frozen=True):
    """What an operator chooses; `""` means not set. Times are seconds."""

    bind: str = "127.0.0.1:8443"
    tls_dir: str = "certs"
    policy: str = ""
    workers: int = DEFAULT_WORKERS
    health_bind: str = "127.0.0.1:8081"
    capture: str = ""
    client_ca: str = ""
    client_names: tuple[str, ...] = ()
    token_keys: str = ""
    token_issuer: str = ""
    token_audience: str = ""
    audit_lines: bool = True
    certificate_poll_seconds: float = 10
    policy_poll_seconds: float = 2
    guards: Guards = Guards()


def gunicorn_settings(options: Options, memory: str) -> dict[str, Any]:
    """Gunicorn's settings; `memory` is a directory in memory, if there is one."""
    return {
        # First the reviews, then probes and metrics: the worker relies on this order.
        "bind": [options.bind, options.health_bind],
        "workers": options.workers,
        "worker_class": "webhook.server.worker.ReviewWorker",
        "logger_class": "webhook.server.gunicorn_app.GunicornLog",
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
