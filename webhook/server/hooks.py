"""An application's optional part in its server: the attributes that a GuardedWorker looks for beyond PEP 3333."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from webhook.certificates.files import Certificate

if TYPE_CHECKING:
    from webhook.server.http.wsgi import Application


class Readiness(NamedTuple):
    """Why a process should get no traffic, and what an operator must fix though it can serve without."""

    reasons: Sequence[str] = ()
    warnings: Sequence[str] = ()


class ServerStatus(Protocol):
    """What a worker reports to its application."""

    def find_readiness(self) -> Readiness:
        """Return whether this worker should get traffic."""


class Hooks:
    """The calls from a GuardedWorker to its application beyond PEP 3333; the defaults do nothing.

    The application has them as its attribute `server_hooks`.
    """

    health: "Application | None" = None
    """Served at the last address, if there are several, without TLS and without the limits on clients' names."""
    max_on_loop = -1
    """Bytes of the largest body of a request that is answered on the event loop, because it takes milliseconds and
    waits for nothing; all others are answered in threads."""

    def start(self, server: ServerStatus) -> None:
        """Take note of the worker, before it serves."""

    def count(self, counter: str, *labels: str) -> None:
        """Count what the guards did: `malformed` (by kind), `shed`, `connections_closed`, `reloads` (what, result)."""

    def show_in_flight(self, requests: int) -> None:
        """Show how many requests have begun and are not whole."""

    def show_certificate(self, serving: Certificate) -> None:
        """Show the certificate that is served from now on."""

    def find_problem_of_body(self, size: int, beginning: bytes | bytearray) -> str:  # noqa: ARG002 - any body is welcome
        """Return why a body of this size, as far as it is known, is refused by how it begins, or ""."""
        return ""
