"""The tenures of one lease, one after another: what ends one and begins the next, and for how long no one led between.

In: when and how holders began and ended, and the writes by which they did. Out: the tenures, and how often the holder
changed. It knows nothing of renewals.
"""

from collections import deque
from functools import partial
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.analysis.history.holders.replacement import (
    find_lost_tenure,
    find_process,
    is_going_on_beside,
    is_replacement,
)
from webhook.analysis.history.holders.tenure import API_SERVER, Handover, Tenure
from webhook.analysis.history.holders.vacancy import Vacancy
from webhook.analysis.history.write import Dating, Write
from webhook.analysis.inputs.items import Writer

MAX_TENURES: Final = 200


class Succession(Struct):
    """The tenures of one lease, of which the latest ones are kept, and the time without a leader that follows them."""

    tenures: deque[Tenure] = field(default_factory=partial(deque, (), MAX_TENURES))
    """The oldest one first."""
    handovers: dict[Handover, int] = field(default_factory=dict)
    """How often a holder began, by how it did: also one that takes it again under the same name."""
    changes: int = 0
    """How often the holder changed to another one, as far as was seen."""
    vacancy: Vacancy = field(default_factory=Vacancy)
    _named: str = ""
    """The latest holder, "" before the first one."""

    @property
    def latest(self) -> Tenure | None:
        """The tenure of the latest holder, which may have ended."""
        return self.tenures[-1] if self.tenures else None

    @property
    def before(self) -> Tenure | None:
        """The tenure before the latest one."""
        return self.tenures[-2] if len(self.tenures) > 1 else None

    @property
    def holder(self) -> Tenure | None:
        """The tenure of the present holder."""
        latest = self.latest
        return latest if latest and latest.until is None else None

    @property
    def has_named_holder(self) -> bool:
        """Whether a state named a holder: a writer may stand in for one, and a heartbeat need not name any."""
        return any(one.holder and not one.is_stand_in for one in self.tenures)

    def forget_nameless(self) -> None:
        """Forget the time of what was taken for a heartbeat without a holder, once one takes the lease."""
        if self.holder is not None and not self.holder.holder:
            self.tenures.pop()

    def find_tenure_at(self, at: int) -> Tenure | None:
        """Return the latest tenure that had begun by an instant, which may have ended; None before the first one."""
        return next((one for one in reversed(self.tenures) if one.since <= at), None)

    def find_process(self, identity: str, writer: Writer | None) -> Writer | None:
        """Return the process that is known to have an identity; None if the pod of a writer replaced it."""
        return find_process(self.tenures, identity, writer)

    def is_replaced_by(self, writer: Writer | None, at: int, *, is_nameless: bool) -> bool:
        """Return whether a writer, another pod that renews as the present holder at `at`, follows it.

        `is_nameless`: it names no holder, as one may do that has lost the lease and does not know it.
        """
        is_lost = is_nameless and find_lost_tenure(self.tenures, self.tenures[-1], writer) is not None
        return not is_lost and is_replacement(self.tenures, writer, at)

    def is_going_on_beside(self, writer: Writer | None) -> bool:
        """Return whether the pod that the present holder seemed to have replaced still renews."""
        return is_going_on_beside(self.tenures, writer)

    def rejoin(self) -> Tenure:
        """Take back that the latest holder replaced the previous one, which still renews; return the tenure of that."""
        newcomer, tenure = self.tenures.pop(), self.tenures[-1]
        self.handovers[newcomer.began] -= 1
        tenure.merge_concurrent_process(newcomer)
        return tenure

    def begin(self, tenure: Tenure, *, is_new: bool = True, shows_renewals: bool = True) -> None:
        """Begin the tenure of the next holder: of the one before, and of the time between, it learns here.

        Without `is_new` it may continue the one before, so that no handover is counted. `shows_renewals`: the input has
        the renewals of a holder, too.
        """
        before = self.latest
        leaderless = self.vacancy.fill(tenure.since, tenure.began, tenure.beginning.write, before)
        if before is not None and before.is_never_taken_up and shows_renewals:
            # Who was chosen and did not renew it led no more than who held it before.
            is_known = leaderless is not None and before.leaderless is not None
            leaderless = (leaderless or 0) + (before.leaderless or 0) if is_known else None
        tenure.follow(before, leaderless)
        is_same = before is not None and _may_stand_in_for_same(before, tenure)
        is_chosen = before is not None and _stands_in_for_chosen(before)
        # Where only writers are shown, one that goes on may be the holder that was there, or that was chosen.
        if is_new and not (tenure.began is Handover.UNKNOWN and (is_same or is_chosen)):
            self.handovers[tenure.began] = self.handovers.get(tenure.began, 0) + 1
        if before is not None and is_same:
            tenure.processes.note_beside(before.processes.beside)
        else:
            self._count_change(before, tenure)
        self.tenures.append(tenure)

    def _count_change(self, before: Tenure | None, tenure: Tenure) -> None:
        """Count a holder that follows another one; an API server that chooses stands in for none.

        A writer that stood in for a holder may have any name: the first one that is shown may be that holder's.
        """
        if tenure.holder == API_SERVER:
            return
        if before is not None and before.holder != API_SERVER:
            self._named = before.holder  # a writer that stood in for it may have had another name
        is_comparable = before is None or not before.is_stand_in or tenure.is_stand_in
        if is_comparable and self._named not in {"", tenure.holder}:
            self.changes += 1
        self._named = tenure.holder

    def end(self, at: int, how: Handover, write: Write, before: Write) -> Tenure | None:
        """End the present tenure at a time, by a write after another one; return it, None if no one held the lease.

        No one leads from then on, also if no one held it.
        """
        ended = self.holder
        if ended is not None:
            ended.end(at, _find_write_of_end(ended, how, write, before))
            if how is Handover.RELEASED:
                ended.note_end_dated(is_dated=write.is_dated)
        self.vacancy.begin(at, how)
        return ended


def _stands_in_for_chosen(tenure: Tenure) -> bool:
    """Return whether an API server that chooses, in a log without objects, stands in for whom it chose."""
    return tenure.is_stand_in and tenure.holder == API_SERVER


def _may_stand_in_for_same(before: Tenure, tenure: Tenure) -> bool:
    """Return whether a writer that follows another one in a log without objects may stand in for the same holder.

    It may if it is of another account, or wrote beside the one before, as pods do that have one name.
    """
    own, taker = before.processes.own, tenure.processes.taken_by
    if not before.is_stand_in or _stands_in_for_chosen(before) or own is None or taker is None:
        return False
    return own.user != taker.user or taker.process in before.processes.beside


def _find_write_of_end(holder: Tenure, how: Handover, write: Write, before: Write) -> Write:
    """Return the write that ends a tenure; of a deletion that nothing dates, only what it came after is known."""
    if how is not Handover.DELETED or holder.is_end_dated:
        return write
    earliest = 0 if before.is_claimed else before.earliest
    return replace(write, earliest=earliest, latest=None, dating=Dating.ORDER)
