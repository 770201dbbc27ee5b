"""Which processes followed one another as holders, and whether that is a handover, a new name or a theft."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from webhook.admission.rules.holders import names_pod
from webhook.analysis.history.audit_log.refusal import Refusal
from webhook.analysis.history.events import LeaseEvent
from webhook.analysis.history.holders.tenure import Handover, Tenure, with_previous
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.renewals import DEFAULT_DURATION
from webhook.analysis.history.status import was_live
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.times import MINUTE, SECOND

FREQUENT: Final = 4
"""Changes of the holder within `FREQUENT_WITHIN`; a rolling restart of three replicas makes three at most."""
FREQUENT_WITHIN: Final = 10 * MINUTE
_HOW: Final = {
    Handover.SEEN: "seen",
    Handover.CREATED: "created",
    Handover.CLAIMED: "first",
    Handover.RELEASED: "after-release",
    Handover.EXPIRED: "after-expiry",
    Handover.PREFERRED: "after-expiry",
    Handover.STOLEN: "while-live",
    Handover.DELETED: "after-deletion",
    Handover.REPLACED: "replaced",
    Handover.UNKNOWN: "unknown",
}
_CHANGES: Final = frozenset(Handover) - {Handover.SEEN, Handover.CREATED, Handover.DELETED, Handover.REPLACED}


def has_lost_race(refusal: Refusal, history: LeaseHistory) -> bool:
    """Return whether a JSON patch did not fit because another process held the lease, as in a conflict."""
    tenure = history.find_tenure_at(refusal.at) if refusal.is_unapplied_patch else None
    if tenure is None or tenure.is_by(refusal.writer):
        return False
    ended = tenure.until is not None and tenure.until <= refusal.at
    return not ended and was_live(tenure.last_renewal, tenure.duration, refusal.at)


class FrequentChanges(Struct, frozen=True):
    """How often a lease was taken recently, and since when, in microseconds since 1970.

    `is_by_others`: each time another holder took it than the one before; else one may have taken its own again.
    """

    count: int
    since: int
    is_by_others: bool

    @property
    def text(self) -> str:
        """`its holder changed 4 times`."""
        return f"its holder changed {self.count} times" if self.is_by_others else f"it was taken {self.count} times"


def is_handed_over(tenure: Tenure, before: Tenure | None) -> bool:
    """Return whether the pod that a holder names wrote the next one into the lease.

    Any other writer may be a stranger, and what it writes a theft: one that renews under a text that does not name its
    pod, a pod of that name in another namespace, or one whose name is only the beginning of the holder's.
    """
    other, own = tenure.processes.doubtful_taker, before.processes.own if before else None
    if before is None or other is None or own is None or not own.is_same(other):
        return False
    if tenure.processes.is_from_pod_of(before.processes) or is_written_beside(tenure, before):
        return False
    return before.processes.names_own_pod and names_pod(before.holder, own.pod) and before.processes.is_here(own)


def is_written_beside(tenure: Tenure, before: Tenure) -> bool:
    """Return whether the pod of a holder wrote the next one in, and its elector did not know of that.

    It went on to renew, or took the lease back at once. Another process of that pod may have written, or another one
    with its token: the name of a pod says no more of a writer than which token it has.
    """
    own, taker = before.processes.own, tenure.processes.taken_by
    if own is None or taker is None or not own.pod or not own.is_same(taker):
        return False
    if tenure.processes.renewals and own.is_same(tenure.processes.own):
        return False  # it goes on under the other name
    soon = tenure.since + (before.duration or DEFAULT_DURATION) * SECOND
    tried = before.processes.conflicted_after_loss
    return (tried is not None and tried < soon) or _is_taken_back(tenure, own, soon)


def is_from_one_pod(tenure: Tenure, before: Tenure) -> bool:
    """Return whether one pod wrote this holder and the one before, and nothing shows two processes in it."""
    is_one = tenure.processes.is_from_pod_of(before.processes) and not is_written_beside(tenure, before)
    return is_one or takes_back(tenure, before)


def list_edited_holders(tenures: Iterable[Tenure]) -> list[Tenure]:
    """Return the holders that an edit wrote in, as far as a watch shows that: no finding says so."""
    return [one for one in tenures if one.is_unclear and one.is_named_by_edit]


def is_next_name(tenures: Iterable[Tenure], tenure: Tenure, before: Tenure) -> bool:
    """Return whether one pod wrote a name over another, and neither of them is named a second time.

    Two electors in one pod take the lease from each other again and again, by turns. After a release, or once it let
    the lease expire, what goes on in a pod is another process: its container was started again, or its elector.
    """
    if tenure.began not in {Handover.STOLEN, Handover.UNKNOWN}:
        return False
    known = list(tenures)
    named = [one.holder for one in known]
    is_one = is_from_one_pod(tenure, before) and not takes_back(tenure, before)
    if any(_is_name_of_another(one) for one in (tenure, before)):
        return False
    is_once = named.count(tenure.holder) == named.count(before.holder) == 1
    return is_one and is_once and not _is_of_thief(known, before)


def _is_of_thief(tenures: Sequence[Tenure], tenure: Tenure) -> bool:
    """Return whether the pod that wrote a holder in had taken the lease from another one, which may still have held it.

    A thief may write any names: another one from its pod need not be that of a process that leads.
    """
    for before, one in reversed([*with_previous(tenures)]):
        if one.since <= tenure.since and before is not None and not is_from_one_pod(one, before):
            return one.began in {Handover.STOLEN, Handover.UNKNOWN}
    return False


def _is_name_of_another(tenure: Tenure) -> bool:
    """Return whether another process renewed it under this name more often than the one that wrote the name in."""
    return any(one.count > tenure.processes.renewals for one in tenure.processes.others.values())


def _is_taken_back(tenure: Tenure, own: Writer, before: int) -> bool:
    """Return whether a process took back, before an instant, what had been written in place of it."""
    ended = tenure.ended
    return tenure.is_before_previous and ended is not None and own.is_same(ended.writer) and ended.at < before


def takes_back(tenure: Tenure, before: Tenure) -> bool:
    """Return whether a holder followed a name that was written in from its own pod, and that no process renewed."""
    taker, own = before.processes.taken_by, tenure.processes.taken_by
    is_same = taker is not None and own is not None and own.is_same(taker) and bool(own.pod)
    is_back = is_same and before.previous == tenure.holder and tenure.processes.doubtful_taker is None
    return is_back and not before.processes.renewals


def was_left_to_expire(history: LeaseHistory, after: Tenure, now: int) -> bool:
    """Return whether no one renewed what had been written in until it expired: no process led under that name then."""
    if not after.was_left_as_written or after.duration is None:
        return False
    following = next((one for one in history.tenures if one.since > after.since), None)
    if following is not None:
        return following.began is Handover.EXPIRED
    is_over = now - after.kept_until >= after.duration * SECOND
    return is_over and not history.may_lack_writes(after.kept_until, now)


def find_duration_edit(history: LeaseHistory, before: Tenure, after: Tenure) -> LeaseEvent | None:
    """Return the latest edit of the duration while a holder had the lease; None if there was none."""
    edits = (one for one in reversed(history.edits) if "leaseDurationSeconds" in one.text)
    return next((one for one in edits if before.since <= one.at <= after.since), None)


def find_frequent_changes(tenures: Iterable[Tenure], now: int, least: int = FREQUENT) -> FrequentChanges | None:
    """Return the latest changes of the holder, if they are `least` or more: at each moment such a lease looks well.

    A process that changes its name goes on, and one that takes a lease again under its name changes no holder.
    """
    known = list(tenures)
    led = [one for before, one in with_previous(known) if before is None or not _goes_on(known, one, before)]
    changes = [one for one in led if one.began in _CHANGES and now - one.since <= FREQUENT_WITHIN]
    if len(changes) < least:
        return None
    is_by_others = all(one.is_after_another for one in changes)
    return FrequentChanges(len(changes), changes[0].since, is_by_others=is_by_others)


def _goes_on(tenures: Iterable[Tenure], tenure: Tenure, before: Tenure) -> bool:
    return tenure.holder == before.holder or is_next_name(tenures, tenure, before)


def is_used_as_lock(tenures: Sequence[Tenure]) -> bool:
    """Return whether many holders took a lease and gave it up again, and none of them renewed it.

    Who wrote the one that held it when the input begins is not shown.
    """
    ended = [one for one in tenures if one.until is not None and one.began is not Handover.SEEN]
    is_unrenewed = not any(one.processes.renewals for one in tenures)
    return len(ended) >= FREQUENT and is_unrenewed and all(_is_given_up(one) for one in ended)


def _is_given_up(tenure: Tenure) -> bool:
    """Return whether a holder gave a lease up, or someone removed it in the way in which holders do."""
    is_removed = not (tenure.is_deleted or tenure.removal.may_be_by_another)
    return is_removed and (tenure.removal.is_own is True or is_removed_by_taker(tenure))


def is_removed_by_taker(tenure: Tenure) -> bool:
    """Return whether who wrote a holder in removed it: of the same account, or else of the same field manager.

    The stamp of a second write in one second is that of the first one, so a watch may not show who made it.
    """
    taker, remover, manager = tenure.processes.taken_by, tenure.removal.writer, tenure.beginning.manager
    may_be_its = not manager or tenure.removal.manager in {"", manager}
    if taker is not None and remover is not None and remover.user:
        return taker.is_same(remover) and may_be_its
    return bool(manager) and may_be_its


def name_taking(tenure: Tenure, before: Tenure | None, *, is_seen_created: bool) -> str:
    """Return how a holder came to hold the lease, as claims say it; `before` is the one that held it then.

    That nobody had held it is known only of a lease whose creation was seen.
    """
    is_undated = tenure.began is Handover.STOLEN and not tenure.beginning.is_dated
    is_past_unseen = tenure.began is Handover.CLAIMED and (before is not None or not is_seen_created)
    return "unknown" if tenure.is_unclear or is_undated or is_past_unseen else _HOW[tenure.began]
