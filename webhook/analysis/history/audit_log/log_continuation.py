"""Whether an audit log that has no request for a time went on, although nothing asked for the leases that it shows.

Where all clients but one fall silent, a log looks as if it had a hole: what it has each second, it suddenly has not. It
went on if a lease was renewed throughout, at its usual interval, and each renewal replaced the one before, as its
request says: then no renewal of that lease is missing, and a hole is shorter than its interval. An API server renews
its own lease every ten seconds, whatever its clients do.

In: the leases before and after each write. Out: since when the log has gone on. A write that replaces another one than
the log has shows a hole; so may a second API server that the input names, and whose lease the log does not renew.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from webhook.analysis.heartbeats import is_of_api_server
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import InputKind, Observation
from webhook.kubernetes.times import SECOND

_LONGEST: Final = 15 * SECOND
"""Renewals further apart leave room for a hole in which another lease was taken, and its next holder ended."""


class RenewalBaseline(Struct, frozen=True):
    """A lease before a write that may be a renewal."""

    version: str
    tenure: Tenure | None
    last_renewal: int | None
    usual: int | None

    @classmethod
    def from_history(cls, history: LeaseHistory) -> "RenewalBaseline":
        """Return how a lease is now."""
        renewals = history.renewals
        return cls(history.continuity.version, history.current_tenure, renewals.last, renewals.usual)


class LogContinuation(Struct):
    """Decides whether what was taken for a hole in an audit log is one; times are in microseconds since 1970."""

    is_asked_for: bool = False
    """Whether there is something to decide."""
    _missing_at: int = 0
    """When the latest write was answered that follows one which the log does not have."""
    _api_servers: set[tuple[str, str]] = field(default_factory=set)
    """The leases by which API servers show that they run."""

    def ask(self) -> None:
        """Note that a log may have a hole."""
        self.is_asked_for = True

    def note_lease(self, namespace: str, name: str) -> None:
        """Note that there is a lease."""
        if is_of_api_server(namespace, name):
            self._api_servers.add((namespace, name))

    def note_missing_write(self, at: int) -> None:
        """Note that a write follows one which the log does not have."""
        self._missing_at = at

    def find_since(
        self,
        leases: Mapping[tuple[str, str], LeaseHistory],
        history: LeaseHistory,
        seen: Observation,
        before: RenewalBaseline,
    ) -> int | None:
        """Return since when the log has gone on, by the renewal that was seen last; None if that does not show it."""
        since, at = before.last_renewal, seen.at
        if since is None or at is None or before.usual is None or seen.input_kind is not InputKind.AUDIT_LOG:
            return None
        is_next = bool(seen.replaces) and seen.replaces == before.version and history.current_tenure is before.tenure
        is_on_time = history.renewals.last != since and at - since <= min(before.usual + before.usual // 2, _LONGEST)
        if not (is_next and is_on_time) or since <= self._missing_at:
            return None
        if self._has_silent_api_server(leases, since):
            return None
        self.is_asked_for = False
        return since

    def _has_silent_api_server(self, leases: Mapping[tuple[str, str], LeaseHistory], since: int) -> bool:
        """Return whether the log does not have the renewals of an API server, which others may have asked."""
        known = [leases.get(key) for key in self._api_servers]
        return any(
            one is None or (not one.is_deleted and (one.renewals.last or 0) <= since - _LONGEST) for one in known
        )
