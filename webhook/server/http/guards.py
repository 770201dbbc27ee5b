"""What a client may cost, for each worker."""

from typing import Final

from msgspec import Struct

WIDE_READ: Final = 32 * 1024
"""Bytes of one read; a larger one leaves OpenSSL's and uvloop's buffers of its connection as large."""
WIDE_CONNECTION: Final = 8
"""What a connection with such buffers counts as among `Guards.largest_connections`."""


class Guards(Struct, frozen=True):
    """Times are seconds, sizes bytes."""

    handshake_seconds: float = 5
    """From the connection to the end of the TLS handshake."""

    request_seconds: float = 5
    """From the first byte of a request to its last; a total, which dripping bytes do not extend. As long again for a
    response that is made off the event loop, and for a client to read what was written."""

    keep_alive_seconds: float = 120
    """Of silence after the handshake or a response. kube-apiserver drops idle connections after 90 s: it must be the
    one that closes, or a request meets a connection that we are closing."""

    drain_seconds: float = 3
    """How long an idle connection still gets its next request answered after SIGTERM."""

    linger_seconds: float = 1
    """How long a refused body is discarded, so that the client reads the refusal before the connection is reset."""

    largest_head: int = 64 * 1024
    largest_body: int = 20 * 1024 * 1024
    """Two objects near etcd's limit, escaped by Go, make 19 MB. Under failurePolicy Ignore a smaller cap is a
    bypass."""

    largest_bytes_in_flight: int = 64 * 1024 * 1024
    """Of all bodies that are being read; above it a request gets 503 and Retry-After: 1."""

    largest_connections: int = 1024
    """Above it the connection that has been idle longest is closed. A connection is counted after its handshake; one
    takes 50 KiB, and 400 KiB once a large read has filled its buffers: that one counts as WIDE_CONNECTION."""
