"""One old state of a lease that is written again and again, as tools do that keep stored objects as they are.

What shows it is that renewTime is the same each time, and old: no clock stands still. That a tool applies a manifest,
or which one, only its writer knows; labels and annotations are what the object says.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.words import describe_writer, format_name
from webhook.analysis.history.holders.tenure import Tenure, with_previous
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.times import format_length

_MIN_TIMES: Final = 2
_MIN_TIMES_TO_GO_ON: Final = 3
"""Of how many writes it is said that more of them will follow."""
_INSTANCE: Final = "app.kubernetes.io/instance"
"""The label by which Argo CD, Helm and others mark what belongs to an application, by default."""


class StoredCopies(Struct, frozen=True):
    """The tenures that began with one old state, oldest first, none of which was renewed.

    `writer` is who wrote all of them, None if the input does not show that. `delays` are how long the holders before
    had held the lease, of those that had taken it in between, as far as a log dates both.
    """

    tenures: Sequence[Tenure]
    writer: Writer | None = None
    delays: tuple[int, ...] = ()

    @property
    def holder(self) -> str:
        """The text of the holder that was written in."""
        return self.tenures[-1].holder

    def describe(self) -> str:
        """`argocd/argocd wrote db-9_1 into it 9 times, 8 of them 1.2 s after another had taken it`."""
        who, name = self.writer, format_name(self.holder)
        count = len(self.tenures)
        wrote = (
            f"{describe_writer(who)} wrote {name} into it {count} times"
            if who is not None
            else f"{name} was written into it {count} times"
        )
        if not self.delays:
            return f"{wrote}, each time with the same old renewTime"
        shortest, longest = (format_length(one) for one in (min(self.delays), max(self.delays)))
        after = shortest if shortest == longest else f"{shortest} to {longest}"
        return f"{wrote}, {len(self.delays)} of them {after} after another had taken it"

    def is_ongoing(self, history: LeaseHistory, now: int) -> bool:
        """Return whether another write is to be expected, by how often there was one so far."""
        if len(self.tenures) < _MIN_TIMES_TO_GO_ON or history.hidden_since is not None:
            return False
        starts = [one.since for one in self.tenures]
        longest = max(after - before for before, after in pairwise(starts))
        return now - starts[-1] <= 2 * longest


def find_stored_copies(history: LeaseHistory) -> StoredCopies | None:
    """Return the writes of one old state that were repeated, those of the latest one; None if there are none."""
    latest = next((one for one in reversed(history.tenures) if one.copied_age is not None), None)
    if latest is None or latest.beginning.written_renew_time is None:
        return None
    pairs = [(before, one) for before, one in with_previous(history.tenures) if _is_same(one, latest)]
    if len(pairs) < _MIN_TIMES:
        return None
    tenures = [one for _, one in pairs]
    writers = [one.processes.taken_by for one in tenures]
    first = writers[0]
    is_one = (
        first is not None and bool(first.user) and all(one is not None and one.user == first.user for one in writers)
    )
    delays = [
        one.since - before.since for before, one in pairs[1:] if before is not None and before.is_exact and one.is_exact
    ]
    return StoredCopies(tenures, writers[-1] if is_one else None, tuple(delays))


def find_latest_copies(history: LeaseHistory, now: int) -> StoredCopies | None:
    """Return the writes of one old state if that is what the lease has now, or if the next one is to be expected."""
    copies = find_stored_copies(history)
    if copies is None or not (copies.tenures[-1] is history.latest_tenure or copies.is_ongoing(history, now)):
        return None
    return copies


def _is_same(tenure: Tenure, latest: Tenure) -> bool:
    is_alike = (
        tenure.holder == latest.holder and tenure.beginning.written_renew_time == latest.beginning.written_renew_time
    )
    return is_alike and tenure.copied_age is not None


def list_managers_of_copies(history: LeaseHistory) -> frozenset[str]:
    """Return the field managers under which a stored copy was written, and no holder renewed: no elector is one."""
    copies = find_stored_copies(history)
    if copies is None:
        return frozenset()
    renewing = {one.manager for one in history.tenures if one.processes.renewals}
    return frozenset({one.beginning.manager for one in copies.tenures} - renewing - {""})


def describe_instance(history: LeaseHistory) -> str:
    """` (its label app.kubernetes.io/instance, which clients write, says shop)`; "" if the lease has no such label."""
    labels = (history.lease.metadata.labels if history.lease is not None else None) or {}
    value = labels.get(_INSTANCE)
    return f" (its label {_INSTANCE}, which clients write, says {format_name(value)})" if value else ""


def has_old_renew_time(history: LeaseHistory) -> bool:
    """Return whether the present renewTime is of a state that was stored long ago, and so of no clock.

    A log shows that another one than the holder wrote it in; without a log, the same one was written before.
    """
    tenure = history.latest_tenure
    if tenure is None or tenure.copied_age is None:
        return False
    copies = find_stored_copies(history)
    is_again = copies is not None and copies.tenures[-1] is tenure
    return tenure.processes.is_never_renewed or is_again
