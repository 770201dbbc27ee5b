"""Clauses about how one holder followed another, shared by every page and command."""

import re
from collections.abc import Collection
from typing import Final

from webhook.analysis.claims.handovers import is_from_one_pod, is_handed_over, is_removed_by_taker
from webhook.analysis.claims.words import (
    describe_by_writer,
    describe_writer,
    format_bound,
    format_clock,
    format_count,
    format_name,
)
from webhook.analysis.history.events import LeaseEvent
from webhook.analysis.history.holders.claimed_gap import find_claimed_gap
from webhook.analysis.history.holders.processes import OtherProcess
from webhook.analysis.history.holders.step_down import StepDown
from webhook.analysis.history.holders.tenure import API_SERVER, Handover, Tenure
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.managed_fields import OF_API_SERVERS
from webhook.kubernetes.objects import OLDEST_EMULATION_VERSION
from webhook.kubernetes.times import SECOND, format_length
from webhook.text.quoting import quote

SHORTEST: Final = SECOND // 20
"""A shorter time without a holder is said to be none."""
_PREFERRED: Final = re.compile(r'preferredHolder (?:absent|"[^"\\]*+") -> "([^"\\]++)"')
_TO_FOREIGN_STRATEGY: Final = re.compile(rf'(?:^|, )strategy (?:absent|"[^"\\]*+") -> "(?!{OLDEST_EMULATION_VERSION}")')
"""An edit after which an API server leaves the election to an implementation of the strategy."""
_UNSHOWN: Final = "which may still have held it: the log shows what was asked, and not what was stored"
_HELD_AT_FIRST: Final = "held it when the input first shows it"
_AFTER: Final = {
    Handover.CLAIMED: "; no one held it",
    Handover.RELEASED: " after {} released it, or was removed",
    Handover.EXPIRED: " after {} let it expire",
    Handover.PREFERRED: " after {} had been asked to step down (preferredHolder)",
    Handover.UNKNOWN: " after {}, at a time that was not recorded",
}
_CHOSEN: Final = {
    Handover.RELEASED: _AFTER[Handover.RELEASED],
    Handover.EXPIRED: _AFTER[Handover.EXPIRED],
    Handover.PREFERRED: " after it had asked {} to step down (preferredHolder)",
    Handover.STOLEN: " in place of {}",
    Handover.UNKNOWN: ", at a time that was not recorded",
}
"""A coordinated election: the API server writes the holder."""


def describe_dating(*, is_dated: bool, is_claimed: bool) -> str:
    """Return the end of a clause about something that happened: that it may have been later, unless it is dated.

    `is_claimed`: only its writer's own clock says when it was.
    """
    if is_claimed:
        return ", by its writer's clock"
    return "" if is_dated else ", then or later"


_BY_DEFAULT: Final = f"API servers write under {OF_API_SERVERS} by default"
"""The name comes from that of the program, which distributions change."""


def describe_dating_of(event: LeaseEvent) -> str:
    """Return the end of a clause about an event."""
    return describe_dating(is_dated=event.is_dated, is_claimed=event.is_claimed)


def describe_edit(event: LeaseEvent, of_servers: Collection[str] = ()) -> str:
    """Return what a write did besides renewals and handovers, by whom, and how well its time is known, as a clause.

    `of_servers` are field managers under which the leases of API servers are written.
    """
    is_foreign = not event.candidate and _TO_FOREIGN_STRATEGY.search(event.text) is not None
    unknown = "; no API server chooses a holder by that" if is_foreign else ""
    asked = (
        f", where {describe_writer(event.asker or Writer())} asked for {format_name(event.asked)}"
        if event.asked
        else ""
    )
    text = _describe_request_to_step_down(event) or event.text
    by = describe_by_writer(event.writer) or _describe_manager(event, of_servers)
    return f"{text}{by}{asked}{describe_dating_of(event)}{unknown}"


def _describe_manager(event: LeaseEvent, of_servers: Collection[str]) -> str:
    """Say under which field manager an edit was made, if that is not its holder's, and not known to be anyone's."""
    own = event.tenure.manager if event.tenure is not None else ""
    if event.manager in {"", own, OF_API_SERVERS}:
        return ""
    usual = f" ({_BY_DEFAULT})" if "preferredHolder" in event.text else ""
    if usual and event.manager in of_servers:
        usual = ", as the lease of an API server is"
    return f", under field manager {format_name(event.manager)}{usual}"


def is_request_to_step_down(event: LeaseEvent) -> bool:
    """Return whether a write asked the holder of an election to step down for another, and did nothing else."""
    return bool(_describe_request_to_step_down(event))


def _describe_request_to_step_down(event: LeaseEvent) -> str:
    """Say whom a write asked to step down, if it did nothing else; "" if it did not ask the holder of an election."""
    preferred, tenure = _PREFERRED.fullmatch(event.text), event.tenure
    if preferred is None or tenure is None or not tenure.is_coordinated or event.candidate:
        return ""
    successor, holder = format_name(preferred[1]), format_name(tenure.holder)
    return "" if successor == holder else describe_step_down(holder, preferred[1], tenure.step_down)


def describe_step_down(holder: str, successor: str, request: StepDown) -> str:
    """Say for whom a holder was asked to step down; a value that no API server wrote need not name a candidate."""
    is_by_user = request.writer is not None and request.writer.user not in {"", API_SERVER}
    is_foreign = (is_by_user or request.is_by_other_manager) and request.successor == successor
    named = f"{quote(successor)} (preferredHolder)" if is_foreign else format_name(successor)
    return f"{holder} was asked to step down for {named}"


def describe_address_of_end(tenure: Tenure) -> str:
    """` (a request from 10.9.9.9; the pod of that token renewed from 10.0.0.7)`: a token need not be its pod's."""
    elsewhere = tenure.removal.elsewhere
    if elsewhere is None:
        return ""
    address, own = format_name(elsewhere.address), format_name(elsewhere.own)
    return f" (a request from {address}; the pod of that token renewed from {own})"


def describe_dating_of_end(tenure: Tenure) -> str:
    """Return the end of a clause about how a tenure ended."""
    is_claimed = tenure.ended is not None and tenure.ended.is_claimed
    return describe_dating(is_dated=tenure.is_end_dated, is_claimed=is_claimed)


def _describe_dating_of_start(tenure: Tenure) -> str:
    is_claimed = (
        tenure.beginning.write.is_claimed and tenure.began is not Handover.SEEN and not tenure.beginning.is_unseen
    )
    return describe_dating(is_dated=tenure.beginning.is_dated, is_claimed=is_claimed)


def describe_handover(tenure: Tenure, before: Tenure | None, ended: str = "", *, is_idle: bool = False) -> str:
    """Say how a holder came to hold the lease, as a clause; `before` is the one that held it then.

    `ended` says how the pod before had ended under the same name, if a log shows that. `is_idle`: the lease expired
    with the holder in it that another one had written in.
    """
    term = "" if tenure.term is None else f"; term {tenure.term}"
    if not tenure.holder:
        begun = "was created" if tenure.began is Handover.CREATED else "was there"
        return f"it {begun} without a holder{describe_by_writer(tenure.processes.taken_by)}"
    if tenure.beginning.is_over_unshown:
        took, who = _describe_taker(tenure)
        gap = _describe_gap(tenure, before, format_name(tenure.previous))
        return f"{took}{who} after {format_name(tenure.previous)}, {_UNSHOWN}{gap}{term}"
    if tenure.is_unclear:
        holder, previous, when = (
            format_name(tenure.holder),
            format_name(tenure.previous),
            _describe_dating_of_start(tenure),
        )
        gap = "" if tenure.leaderless is None else f"; not renewed for {format_bound(tenure.leaderless)}"
        if tenure.is_named_by_edit:
            left = "acquireTime and leaseTransitions" if tenure.beginning.is_renaming else "renewTime"
            wrote = f"{holder} was written into it in place of {previous}{when}, not as electors do: {left} stayed, and"
            return f"{wrote} no renewal followed; whether the lease had expired is not known{term}"
        took = f"{_describe_choosing(tenure)} {holder} in place of" if tenure.is_chosen else f"{holder} took it from"
        claimed = find_claimed_gap(before, tenure) if not gap else None
        if claimed is not None and claimed.outlasts_lease:
            long = f"it had not been renewed for {format_length(claimed.length)}, and lasts {claimed.duration} s"
            return f"{took} {previous}{when}; if the clocks of both are right, it had expired: {long}{term}"
        return f"{took} {previous}{when}: whether it had expired is not known{gap}{term}"
    if tenure.is_after_no_duration:
        taker = tenure.processes.taken_by
        took = (
            f"{format_name(tenure.holder)} was written into it after "
            f"{format_name(tenure.previous)}{describe_by_writer(taker)}"
        )
        return f"{took}; the lease had no duration, so it did not say until when{term}"
    if tenure.is_stand_in:
        return _describe_first_write(tenure)
    handover = _describe_any_handover(tenure, before, ended, is_idle=is_idle)
    dating = _describe_dating_of_start(tenure)
    free = _describe_claimed_free_time(tenure, before)
    return f"{handover}{term}{dating}{free}"


def _describe_claimed_free_time(tenure: Tenure, before: Tenure | None) -> str:
    """Say for how long no one held a lease, if only the clocks of its writers say that."""
    gap = find_claimed_gap(before, tenure)
    if gap is None or not gap.is_free or gap.length < SHORTEST:
        return ""
    return f"; it was free for {format_length(gap.length)} by the clocks of both"


def _describe_choosing(tenure: Tenure) -> str:
    return (
        "the API server chose" if tenure.processes.taken_by else "the API server (as far as field managers show) chose"
    )


def _describe_gap(tenure: Tenure, before: Tenure | None, previous: str) -> str:
    """Say for how long a lease was free, or was not renewed by the holder before; "" if that is not known."""
    if tenure.leaderless is None:
        return ""
    is_removed = before is not None and before.removal.may_be_by_another
    if is_removed and before is not None and before.duration is None:
        return ""  # no one renews a lease without a duration, such as a lock of Terraform
    is_released = tenure.began is Handover.RELEASED and not is_removed
    is_exact = is_released and _is_gap_exact(tenure, before)
    bound = format_length(tenure.leaderless) if is_exact else format_bound(tenure.leaderless)
    if before is not None and before.kept_until > before.last_renewal and not is_released:
        return f"; {previous} itself had not renewed it for {bound}"
    is_free = tenure.began in {Handover.RELEASED, Handover.CLAIMED, Handover.DELETED} and not is_removed
    if is_free and tenure.is_chosen and tenure.processes.renewals:
        return f"; {format_name(tenure.holder)} first renewed it {bound} later"
    is_as_written = before is not None and before.was_left_as_written and before.kept_until >= before.since
    if tenure.began is Handover.EXPIRED and is_as_written:
        return f" for {bound}"
    return f"; {'the lease was free' if is_free else 'not renewed'} for {bound}"


def _is_gap_exact(tenure: Tenure, before: Tenure | None) -> bool:
    """Return whether a log dates both the end of the tenure before and the beginning of this one."""
    is_end_exact = before is None or (before.is_end_dated and before.ended is not None and before.ended.is_exact)
    return tenure.is_exact and is_end_exact


def _describe_taker(tenure: Tenure) -> tuple[str, str]:
    """Say who took a lease, or wrote its holder in: a clause, and what process that is as a part that may follow."""
    holder, taker, other = format_name(tenure.holder), tenure.processes.taken_by, tenure.processes.doubtful_taker
    if tenure.beginning.is_unseen:
        return f"{holder} came to hold it", ""  # who wrote the state that shows it need not have put it there
    if other:
        return f"{describe_writer(other)} wrote {holder} into it", ""
    if tenure.may_be_chosen:
        return f"{holder} was written into it", f" (field manager {format_name(tenure.beginning.manager)})"
    if tenure.began is Handover.STOLEN and taker is None:
        return f"{holder} was written into it", ""  # by itself, or by any other
    # In any other way the holder itself takes the lease.
    return f"{holder} took it", f" ({describe_writer(taker)})" if taker else ""


def _describe_any_handover(tenure: Tenure, before: Tenure | None, ended: str, *, is_idle: bool) -> str:
    holder = format_name(tenure.holder)
    previous = format_name(tenure.previous) if tenure.previous else "the previous holder"
    gap = _describe_gap(tenure, before, previous)
    if tenure.beginning.is_after_restore or tenure.beginning.may_go_on:
        return _describe_resumption(tenure)
    if tenure.is_chosen and tenure.began is not Handover.SEEN:
        return f"{_describe_choosing(tenure)} {holder}{_describe_choice(tenure, before).format(previous)}{gap}"
    other = tenure.processes.doubtful_taker
    took, who = _describe_taker(tenure)
    unheld_for = format_length if _is_gap_exact(tenure, before) else format_bound
    without = tenure.leaderless or 0
    # Of a holder that was written in and did not renew it, a time without a holder says little.
    is_short = without < SHORTEST or (before is not None and before.was_left_as_written)
    unheld = "" if is_short else f"; the lease had no holder for {unheld_for(without)}"
    match tenure.began:
        case Handover.SEEN:
            # It may have taken the lease after the input begins, which need not show what was there before.
            return f"{holder} {'took it, as it wrote itself' if tenure.beginning.is_since_own else _HELD_AT_FIRST}{who}"
        case Handover.CREATED:
            return (
                f"{describe_writer(other)} created it with the holder {holder}"
                if other
                else f"{holder} created it{who}"
            )
        case Handover.REPLACED:
            how = ended or "the input does not show whether the one before had stopped"
            return f"another pod renews it as {holder}{who}; {how}"
        case Handover.STOLEN:
            return _describe_replacement(tenure, before, f"{took}{who}", previous, is_idle=is_idle)
        case Handover.DELETED:
            return f"{describe_creation(tenure)}{who} after it was deleted{unheld}"
        case Handover.UNKNOWN if not tenure.beginning.is_unseen:
            # Where none is known before, that state names no one: who was removed from it was not seen.
            how = f"{holder} held it by then{who}" if tenure.previous else f"{took}{who}; no one held it"
            return f"{how}{gap}"
        case Handover.RELEASED if before is not None and before.is_release_known:
            is_foreign = before.removal.is_own is False and before.holder != tenure.holder
            led = ": two may have led" if is_foreign and not before.had_expired else gap
            return f"{took}{who} after {describe_ending(before)}{led}"
    return f"{took}{who}{_describe_before(tenure, before).format(previous)}{gap}"


def _describe_resumption(tenure: Tenure) -> str:
    """Say who held a lease after what was not seen, where no write is known to have put it there."""
    if not tenure.beginning.is_after_restore:
        return f"{format_name(tenure.holder)} held it as before, or took it again at a time that was not recorded"
    led = (
        f"; {format_name(tenure.previous)}, the previous holder, may have led until it noticed"
        if tenure.previous
        else ""
    )
    return (
        f"{format_name(tenure.holder)} held it according to the restored state, "
        f"or since a time that was not recorded{led}"
    )


def _describe_choice(tenure: Tenure, before: Tenure | None) -> str:
    """Say why an API server chose a holder, with a place for the name of the one before."""
    if tenure.began is Handover.RELEASED and before is not None and before.removal.is_own:
        return f" after {{}} {_describe_release(before)}"
    is_recorded = tenure.began is not Handover.UNKNOWN or tenure.beginning.is_unseen
    return _CHOSEN.get(tenure.began, "") if is_recorded else ""


def _describe_replacement(tenure: Tenure, before: Tenure | None, took: str, previous: str, *, is_idle: bool) -> str:
    """Say how a holder followed one that still held the lease: by that one's own write, or by `took`, a clause."""
    if is_handed_over(tenure, before):
        return f"{previous} handed it over to {format_name(tenure.holder)}, without a release"
    is_one_pod = before is not None and is_from_one_pod(tenure, before)
    led = "both were written from one pod" if is_one_pod else "two may have led"
    is_own = tenure.processes.taken_by is not None and tenure.processes.doubtful_taker is None
    if is_own and before is not None and before.was_left_as_written and not is_one_pod:
        return f"{took} from {previous}, which had been written in and had not renewed it"
    # That a process led under a name that no one renewed is not known.
    is_left = tenure.was_left_as_written and tenure.until is not None
    doubt = "" if (is_left or is_idle) and not is_one_pod else f": {led}"
    return f"{took} {'from' if is_own else 'in place of'} {previous}, which still held it{doubt}"


def _describe_before(tenure: Tenure, before: Tenure | None) -> str:
    """Say what became of the holder before, for whose name there is a place."""
    if tenure.began is Handover.EXPIRED and before is not None and before.was_left_as_written:
        if before.copied_age is not None:
            return " after {} was written into it and did not renew it"  # by the old time, it had expired at once
        return " once it had expired with {} in it, which did not renew it"
    if tenure.began is Handover.EXPIRED and before is not None and before.is_ambiguous:
        return " once it had expired with {} in it"  # someone else may have let it expire
    return _AFTER[tenure.began]


def describe_creation(tenure: Tenure) -> str:
    """Say who created a lease again, as a clause: that need not be the holder that it names."""
    copy = _describe_old_record(tenure)
    if (taker := tenure.processes.doubtful_taker) and not tenure.is_stand_in:
        return f"{describe_writer(taker)} created it again with the holder {format_name(tenure.holder)}{copy}"
    if tenure.processes.taken_by is None and not tenure.is_stand_in:
        # Another process may have, also under its field manager.
        is_hint = tenure.beginning.manager and tenure.manager not in {"", tenure.beginning.manager}
        by = f"field manager {format_name(tenure.beginning.manager)} created it" if is_hint else "it was created"
        return f"{by} again with the holder {format_name(tenure.holder)}{copy}"
    asked = tenure.beginning.asked_manager
    by = f" (field manager {format_name(asked)})" if tenure.is_stand_in and _is_command(asked) else ""
    return f"{format_name(tenure.holder)} created it again{by}"


def _is_command(manager: str) -> bool:
    """Return whether a field manager is named as kubectl names a command, such as kubectl-replace."""
    return manager.startswith("kubectl-")


def _describe_old_record(tenure: Tenure) -> str:
    """Say which old renewTime was written with a holder, and the field manager, if kubectl names a command so."""
    renewed = tenure.beginning.written_renew_time
    if tenure.copied_age is None or renewed is None:
        return ""
    manager = tenure.beginning.manager or tenure.beginning.asked_manager
    by = f" (field manager {format_name(manager)})" if _is_command(manager) else ""
    return f" and an old renewTime, {format_clock(renewed, tenure.since)}{by},"


def describe_renewals_of_another(tenure: Tenure, other: Writer, seen: OtherProcess, now: int) -> str:
    """Say how often a process renewed a lease that it did not take, as a clause."""
    if seen.backward == seen.count:
        return f"{describe_writer(other)} set its renewTime back"
    least = "at least " if tenure.processes.unknown_renewals else ""
    several = f"{least}{format_count(seen.count, 'time')} until {format_clock(seen.last, now)}"
    times = several if seen.count > 1 else f"{least}once"
    if seen.nameless == seen.count and tenure.holder:
        without = f"{describe_writer(other)} renewed it without naming a holder, {times}"
        return f"{without}, while it named {format_name(tenure.holder)}"
    renewed = f"{describe_writer(other)} renewed it as {format_name(tenure.holder)}, {times}"
    if tenure.began is Handover.SEEN and not seen.is_before and tenure.processes.own is not None:
        return f"{renewed}: before, {describe_writer(tenure.processes.own)} renewed it as that"
    return f"{renewed}: it is not the process that took it"


def _describe_first_write(tenure: Tenure) -> str:
    """Say when someone first wrote a lease that the log does not show, as a clause."""
    taker = describe_writer(tenure.processes.taken_by) if tenure.processes.taken_by else ""
    who = f" ({taker})" if taker not in {"", format_name(tenure.holder)} else ""
    gap = ""
    if tenure.beginning.is_after_turns:
        gap = f"; before, it and {format_name(tenure.previous)} wrote it in turn"
    elif tenure.leaderless is not None and not tenure.beginning.is_written_between:
        none = "it had not written it"
        if tenure.is_after_another:
            none = f"neither it nor {format_name(tenure.previous)} wrote it"
        gap = f"; {none} for {format_length(tenure.leaderless)}" if tenure.leaderless >= SHORTEST else ""
    went_on = " from then on" if tenure.last_renewal > tenure.since else ""
    verb, when = ("created it", "") if tenure.began is Handover.CREATED else ("wrote it", went_on)
    if tenure.began is Handover.DELETED:
        verb, when, who = "created it again", f"{who} after it was deleted", ""
    return f"{format_name(tenure.holder)} {verb}{when}{who}{gap}"


def describe_ending(tenure: Tenure) -> str:
    """Say how a lease was taken from its holder before it expired, or given up by it, as a clause."""
    holder = format_name(tenure.holder)
    deletion = tenure.deletion
    if deletion.is_deleted and deletion.marked_at:
        asked = f", which {describe_writer(deletion.by)} had asked to delete before," if deletion.by else ""
        return f"the lease{asked} was gone with its last finalizer while {holder} held it"
    if deletion.is_deleted and tenure.is_deleted_by_itself:
        maybe = "" if deletion.is_sure else " may have"
        return f"{holder}{maybe} deleted the lease, as some electors do when they stop"
    if deletion.is_deleted:
        deleted = f"{describe_writer(deletion.by)} deleted the lease" if deletion.by else "the lease was deleted"
        if not deletion.is_sure:
            deleted = f"{describe_writer(deletion.by or Writer())} may have deleted the lease"
        return f"{deleted}, which {holder} wrote last" if tenure.is_stand_in else f"{deleted} while {holder} held it"
    if tenure.removal.may_be_by_another:
        remover = tenure.removal.writer
        if remover is None or not (remover.user or tenure.removal.is_own is False):
            return f"{holder} was removed as the holder"
        if tenure.removal.is_own is None and tenure.removal.is_under_other_manager:
            # It may be a command in the holder's own pod.
            return f"{holder} released it, or was removed as the holder: {describe_writer(remover)} wrote that"
        return f"{describe_writer(remover)} removed {holder} as the holder"
    if tenure.processes.is_never_renewed and tenure.removal.writer and tenure.removal.writer.user:
        # The text of a holder that no process is known to have renewed may stand for none.
        removed = "wrote {} out of it" if is_removed_by_taker(tenure) else "removed {} from it"
        return f"{describe_writer(tenure.removal.writer)} {removed.format(holder)}"
    is_hint = bool(tenure.removal.manager) and not is_removed_by_taker(tenure)
    if tenure.is_only_named and not tenure.removal.is_own and is_hint:
        return f"{holder} was removed from it"
    return f"{holder} {_describe_release(tenure)}"


def _describe_release(tenure: Tenure) -> str:
    """`released it`, with a doubt if only the field manager shows that the holder did."""
    who = tenure.removal.writer
    is_like_own = tenure.removal.is_under_own_manager and tenure.removal.is_renewal and not tenure.removal.is_doubted
    if tenure.removal.is_own is None and is_like_own and tenure.processes.renewals:
        return "released it (as far as field managers show)"
    if tenure.removal.is_own is None or (who is not None and who.user and not (who.pod or who.uid)):
        return "released it, or was removed"  # several processes may write as one user
    is_doubtful = tenure.removal.is_own and not (who and who.user)
    return "released it (as far as field managers show)" if is_doubtful else "released it"
