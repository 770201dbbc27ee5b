"""Options for operators, and limits for clients."""

from typing import Final

from msgspec import Struct

BACKLOG: Final = 2048
GRACEFUL_SECONDS: Final = 20
"""From SIGTERM to the end at most: connections are drained in `Guards.drain_seconds`, usually in 3 s."""
CERTIFICATE_POLL_SECONDS: Final[float] = 10
STUCK_WORKER_SECONDS: Final = 30
"""A worker whose event loop has not run for so long is replaced. A shorter pause of the machine ends none."""


class Guards(Struct, frozen=True):
    """Limits for clients, for each worker. Times are seconds, sizes bytes."""

    handshake_seconds: float = 5
    """From the connection to the end of the TLS handshake."""

    request_seconds: float = 5
    """From the first byte of a request to its last; a total, which dripping bytes do not extend. As long again for a
    client to read what was written."""

    keep_alive_seconds: float = 120
    """Seconds of silence after the handshake or a response. kube-apiserver drops idle connections after 90 s: it must
    be the one that closes, or a request meets a connection that we are closing."""

    drain_seconds: float = 3
    """After SIGTERM, in which an idle connection still gets its next request answered."""

    linger_seconds: float = 1
    """In which a refused body is discarded, so that the client reads the refusal before the connection is reset."""

    max_head: int = 64 * 1024
    max_body: int = 20 * 1024 * 1024
    """Two objects near etcd's limit, escaped by Go, make 19 MB. Under failurePolicy Ignore a smaller cap is a
    bypass."""

    max_bytes_in_flight: int = 64 * 1024 * 1024
    """Total size of the bodies that are being read; beyond it, a request gets 503 and Retry-After: 1."""

    max_connections: int = 1024
    """Above it one is closed, first what has not sent a whole request in a second, then what is idle. A connection is
    counted after its handshake; one takes 50 KiB, and 400 KiB once a large read has filled its buffers: that one counts
    as eight."""


class Options(Struct, frozen=True):
    """The choices of an operator; `""` means not set. Times are seconds."""

    bind: str = "127.0.0.1:8443"
    """The address of reviews, HOST:PORT, with TLS."""
    tls_dir: str = "certs"
    """The directory of tls.crt, tls.key and, if there is one, ca.crt."""
    policy: str = ""
    """A preset or a policy file; without it, the preset `standard`."""
    docs_url: str = ""
    """Where denials and warnings link to, for a policy that does not say."""
    workers: int = 2
    """The number of processes that answer reviews."""
    health_bind: str = "127.0.0.1:8081"
    """The address of probes and metrics, HOST:PORT, without TLS."""
    capture: str = ""
    """The directory in which the latest reviews are kept; none are, without it."""
    client_ca: str = ""
    """The file of the authority that must have signed the certificate of a client."""
    client_names: tuple[str, ...] = ()
    """Names of which a client certificate must have one; if empty, any certificate that `client_ca` signed will do."""
    audit_lines: bool = True
    """Whether findings of mode `audit` are logged."""
    certificate_poll_seconds: float = CERTIFICATE_POLL_SECONDS
    """Between two looks at the files of the certificate."""
    policy_poll_seconds: float = 2
    """Between two looks at the policy file."""
    guards: Guards = Guards()
    """The limits for clients, of the worker and of the application."""
