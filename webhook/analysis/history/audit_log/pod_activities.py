"""What pods asked the API server for besides leases, as far as an audit log is read for it: the latest of each."""

from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import Final

from msgspec import Struct, field

from webhook.analysis.inputs.items import PodActivity, RelatedWrite, Writer

MAX_PODS: Final = 200
MAX_REQUESTS: Final = 1000
"""Requests of each pod that are remembered, the latest."""


class PodActivities(Struct):
    """The requests of each pod, by its user and its uid; and of users when they wrote last as another one."""

    _kept: dict[tuple[str, str], dict[tuple[int, int], PodActivity]] = field(default_factory=dict)
    _as_others: dict[str, int] = field(default_factory=dict)

    def add(self, request: PodActivity) -> None:
        """Remember a request, and forget the pod of which nothing was heard for longest."""
        if request.writer.impersonator:
            if request.is_write or request.may_be_write:
                self._add_as_other(request.writer.impersonator, request.at)
            return
        key = request.writer.user, request.writer.uid
        # Logs overlap where they were rotated or copied, and one copy may show more, so each request is kept once.
        found = self._kept[key] = self._kept.pop(key, {})
        known = found.get((request.received, request.at))
        found[request.received, request.at] = known if known is not None and known.is_write else request
        if len(found) > MAX_REQUESTS:
            del found[next(iter(found))]
        if len(self._kept) > MAX_PODS:
            del self._kept[next(iter(self._kept))]

    def add_related_write(self, write: RelatedWrite) -> None:
        """Remember a write to what leaders depend on, if a pod made it: that was no other request."""
        writer = write.writer
        if writer.impersonator:
            self._add_as_other(writer.impersonator, write.at)
        elif writer.uid and writer.pod and write.received is not None:
            self.add(
                PodActivity(
                    received=write.received,
                    at=write.at,
                    writer=writer.process,
                    is_write=write.is_surely_not_dry_run,
                    may_be_write=not write.is_surely_not_dry_run,
                    program=write.program,
                ),
            )

    def _add_as_other(self, user: str, at: int) -> None:
        self._as_others[user] = max(at, self._as_others.pop(user, at))
        if len(self._as_others) > MAX_PODS:
            del self._as_others[next(iter(self._as_others))]

    def has_written_as_other_since(self, who: Writer, start: int) -> bool:
        """Return whether the user of a pod wrote as another one after an instant: of which pod, is not known."""
        return self._as_others.get(who.user, start) > start

    def list_between(self, who: Writer | None, start: int, end: int) -> Sequence[PodActivity]:
        """Return the requests of a pod that were received and answered between two instants, in order of time.

        Pods without a uid may be several with one token, or of one name.
        """
        found = self._list_all(who)
        return sorted((one for one in found if start < one.received and one.at <= end), key=attrgetter("received"))

    def has_forgotten_since(self, who: Writer | None, start: int) -> bool:
        """Return whether requests of a pod that asks often, after an instant, are remembered no longer."""
        found = self._list_all(who)
        return len(found) == MAX_REQUESTS and min(one.received for one in found) > start

    @property
    def may_have_forgotten_pods(self) -> bool:
        """Whether there may have been more pods than are remembered, so that one without requests need not be idle."""
        return len(self._kept) == MAX_PODS

    def _list_all(self, who: Writer | None) -> Collection[PodActivity]:
        if who is None or not who.uid or who.impersonator:
            return ()
        return self._kept.get((who.user, who.uid), {}).values()
