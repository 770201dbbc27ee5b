"""The headline of a lease: the fact that matters now, in one clause. It is what a lease says, not always who works."""

from typing import TYPE_CHECKING

from webhook.admission.rules.stamps import is_constant
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.evidence.contenders.askers import describe_process
from webhook.analysis.claims.evidence.contenders.refused_creations import find_refused_creations
from webhook.analysis.claims.evidence.machines.moved_heartbeats import find_moved_heartbeat
from webhook.analysis.claims.evidence.pods.holder_pods import is_gone
from webhook.analysis.claims.evidence.writers.nameless_renewals import describe_in_headline, find_nameless_renewals
from webhook.analysis.claims.findings.askers import describe_askers
from webhook.analysis.claims.handover_clauses import describe_step_down
from webhook.analysis.claims.words import (
    describe_by_writer,
    describe_holder_or_another,
    describe_writer,
    format_age,
    format_clock,
    format_count,
    format_name,
)
from webhook.analysis.heartbeats import find_owner, is_identity_of_api_server
from webhook.analysis.history.holders.step_down import StepDown
from webhook.analysis.history.holders.tenure import Handover
from webhook.analysis.history.status import LeaseState, LeaseStatus
from webhook.analysis.inputs.items import Writer
from webhook.findings import ReportFinding
from webhook.kubernetes.times import SECOND, format_length

if TYPE_CHECKING:
    from webhook.analysis.claims.account import Account


def make_headline(account: "Account") -> str:
    """Return the state in one clause."""
    status, history = account.status, account.history
    accepted = history.requests.accepted
    holder = format_name(account.holder) if account.holder else "no one"
    later = accepted[-1][1] if accepted and accepted[-1][0] > (account.last_renewal or 0) else None
    if history.stores.found is not None:
        return "two logs show different writes to it at the same time, as of API servers that share no etcd"
    if history.is_mixed:
        doubt = "" if history.existence.is_mixed else ", or the clocks of API servers differ"
        return f"the input shows leases of several clusters under this name{doubt}"
    if history.hidden_since is not None:
        return _describe_hidden(account, history.hidden_since, holder)
    if history.is_deleted:
        verb = "was" if history.existence.is_deletion_sure else "may have been"
        what = (
            "the lease of an API server, by which no one elects,"
            if is_identity_of_api_server(history.namespace, history.name)
            else "the lease"
        )
        return f"{what} {verb} deleted{_describe_deletion(account)}"
    if status is None:
        return _describe_unseen(account, holder, accepted[-1] if later else None)
    if account.is_heartbeat and account.state in {LeaseState.LIVE, LeaseState.EXPIRED}:
        return _describe_heartbeat(account, holder)
    return _describe_state(account, status, holder, is_written_later=later is not None)


def _describe_state(account: "Account", status: LeaseStatus, holder: str, *, is_written_later: bool) -> str:
    """Say how a lease is of which the input shows the latest state, and which is no heartbeat."""
    is_nameless = account.state in {LeaseState.UNKNOWN, LeaseState.RELEASED, LeaseState.NEVER_HELD}
    if is_nameless and (nameless := find_nameless_renewals(account.history)) is not None:
        return describe_in_headline(nameless, account.now, status.duration)
    if account.state is LeaseState.LIVE:
        return f"{_describe_live(account, status, holder)}{_describe_read(account)}"
    if account.state is LeaseState.EXPIRED:
        return _describe_expired(account, holder, is_written_later=is_written_later)
    if account.state is LeaseState.RELEASED:
        return f"{_describe_freed(account, status)}{_describe_read(account)}"
    if account.state is LeaseState.NEVER_HELD:
        return "it was never held"
    return _describe_held(account, status, holder)


def _describe_read(account: "Account") -> str:
    """Say which read shows the state, as no write in the input made it."""
    read = account.history.read
    return "" if read is None else f", as a read at {format_clock(read.at, account.now)} shows"


def _describe_unseen(account: "Account", holder: str, later: tuple[int, Writer] | None) -> str:
    """Say what is known of a lease that no input shows: who wrote it last, and when, or that it does not exist."""
    if account.history.problem and not account.history.tenures:
        return f"the object in the input cannot be read: {account.history.problem}"
    if not account.holder and account.history.requests.absent:
        number, _, at = account.history.requests.absent
        return (
            f"it does not exist: {format_count(number, 'request')} answered with 404, "
            f"the last one {format_age(at, account.now)}"
        )
    if not account.history.tenures:
        denied = [one for one in account.history.requests.refusals if one.is_denied]
        refused = f": {format_count(len(denied), 'request')} for it {'was' if len(denied) == 1 else 'were'} refused"
        written = "its spec" if account.history.idle_writes else "it"
        return f"the log has no write of {written}{refused if denied else ''}"
    last, last_at = (describe_writer(later[1]), later[0]) if later else (holder, account.last_renewal)
    since = _describe_since(last_at, account.now)
    return f"{last} wrote it last{since and f',{since}'}; the log does not show what was written"


def _describe_hidden(account: "Account", since: int, holder: str) -> str:
    """Say what was known before the log lacks requests."""
    at = format_clock(since, account.now)
    if account.history.existence.is_creation_hidden:
        return f"it was created again at {at}, and the log does not show what was written to it then"
    held = (
        f"{holder} held it" if account.holder or not account.history.is_nameless else "it was renewed without a holder"
    )
    state = "it did not exist" if account.history.is_deleted else held
    refused = find_refused_creations(account.history)
    if refused is not None and refused.last > since:
        there = f"it was there at {format_clock(refused.last, account.now)}, as refused creations show"
        return f"{state} at {at}, and {there}; the log may lack what was written to it since"
    return f"{state} at {at}, and the log may lack what was written to it since"


def _describe_deletion(account: "Account") -> str:
    tenure = account.history.latest_tenure
    if tenure is None or not tenure.is_deleted or tenure.until is None or not tenure.is_end_dated:
        absent = account.history.requests.absent
        return f": {format_count(absent[0], 'request')} answered with 404" if absent else ""
    return _describe_since(tenure.until, account.now) + (
        f" by {describe_writer(tenure.deletion.by)}" if tenure.deletion.by else ""
    )


def _describe_end_of_input(account: "Account", status: LeaseStatus, holder: str, *, ended: int) -> str:
    """Say what an input showed last that ended before the lease could expire: not what was so later."""
    held = "" if account.is_nameless else f"{holder} held it when "
    since = format_length(max(0, ended - (status.last_renewal or 0)))
    rhythm = _describe_rhythm_until(account, ended)
    return f"{held}the input ended at {format_clock(ended, account.now)}, {since} after the last renewal{rhythm}"


def _describe_rhythm_until(account: "Account", ended: int) -> str:
    """Say that the last holder missed no renewal until the input ended, as far as that shows; "" if it may have."""
    tenure, renewals = account.tenure, account.history.renewals
    usual, longest, last = renewals.usual, renewals.longest_usual, renewals.last
    if tenure is None or usual is None or longest is None or last is None or renewals.usual_of_holder is None:
        return ""
    is_by_others = bool(tenure.processes.others) or tenure.renewed_by_other is not None or tenure.is_ambiguous
    is_dated = not (renewals.is_last_claimed or account.is_partial)
    since = max(tenure.since, renewals.first or 0)
    if is_by_others or not is_dated or renewals.has_missed_since(since) or ended - last > longest:
        return ""
    if renewals.has_holder_of_other_rhythm:
        return ""  # its gaps need not stand out among those of the holders before
    every = f"every {format_length(usual)} from {format_clock(since, account.now)} on"
    return f"; it was renewed {every}, without a gap"


def _describe_heartbeat(account: "Account", holder: str) -> str:
    """Say when a process was last alive: such a lease elects no one.

    That it is a heartbeat is told by its shape alone where it names no holder.
    """
    beat = f"heartbeat of {holder}" if account.holder else "heartbeat without a holder (by its fields)"
    if account.state is LeaseState.LIVE:
        moved = find_moved_heartbeat(account.history)
        since = f", {moved.source} since {format_clock(moved.run.first, account.now)}" if moved is not None else ""
        return f"{beat}, seen{_describe_since(account.last_renewal, account.now)}{since}"
    owner = find_owner(account.history.lease) if account.history.lease else ""
    doubt = f", {_describe_doubt(account)}" if account.doubt.may_lack_renewals else ""
    named = f"; its owner is {format_name(owner)}" if owner else ""
    return f"{beat} silent{_describe_lateness(account, account.last_renewal)}{doubt}{named}"


def _describe_held(account: "Account", status: LeaseStatus, holder: str) -> str:
    """Say that it is held, frozen or not known to be renewed."""
    if account.ended is not None:
        return _describe_end_of_input(account, status, holder, ended=account.ended)
    if account.state is LeaseState.FROZEN and status.block:
        until = status.block.until
        end = "it is repaired" if until is None else format_clock(until, account.now)
        if (stopped := _describe_stopped_holder(account, status, holder)) is not None:
            return f"{stopped}, and no one can take it until {end}: {status.block.reason}"
        return f"{holder} keeps it until {end}: {status.block.reason}"
    if status.is_within_skew:
        skew = format_length(account.history.skew // SECOND * SECOND)
        # The clocks of several clusters need not differ, and a state that was put back has old numbers.
        why = f"the times of the API servers contradict the order of the writes by {skew} or more"
        return f"{holder} is named; whether the lease has expired is not known: {why}"
    if status.duration is not None and status.last_renewal is not None:
        why = "--policy FILE says which stamps to believe"
        if not is_constant(account.history.entries):
            why = "renewTime and its stamp differ, and a later writer may have set the stamp"
        return f"{holder} holds it; whether it is renewed is not known: {why}"
    if status.duration is None and status.last_renewal is not None:
        renewed = f"{holder} is named, renewed{_describe_since(status.last_renewal, account.now)}"
        return f"{renewed}; the lease has no duration, so it does not say until when"
    if status.duration is None and not account.history.is_ever_renewed:
        return f"{holder} holds it; it has no duration and no renewTime, so it does not run out by itself"
    return f"{holder} holds it, but the lease does not say until when"


def _describe_stopped_holder(account: "Account", status: LeaseStatus, holder: str) -> str | None:
    """Say that the holder of a frozen lease renews it no longer; None if it does, or that is not known."""
    tenure, at = account.tenure, account.last_renewal
    if tenure is None or account.doubt.may_lack_renewals:
        return None
    is_over = at is not None and status.from_stamps and account.now - at >= (status.duration or 0) * SECOND
    if is_over or _is_silent(account):
        return f"{describe_holder_or_another(tenure)} has not renewed it{_describe_lateness(account, at)}"
    if is_gone(account.pods.deletions, tenure):
        return f"the pod of {holder} was deleted"
    return None


def _describe_live(account: "Account", status: LeaseStatus, holder: str) -> str:
    tenure, now = account.tenure, account.now
    pods = list_pods_at_once(account)
    if pods:
        least = "at least " if tenure and len(tenure.processes.sharers) >= len(pods) else ""
        named = "" if pods == [holder] * len(pods) else f": {' and '.join(dict.fromkeys(pods))}"
        under = "while it names" if tenure and tenure.processes.is_shared_without_names else "as"
        return f"{least}{len(pods)} pods renew it {under} {holder}{named}"
    if not account.is_renewed_last and tenure and tenure.renewed_by_other:
        return (
            f"{holder} holds it, and {describe_writer(tenure.renewed_by_other.writer)} renewed it last, "
            "which is not known to be its process"
        )
    if account.written_later is not None:
        return f"{holder} holds it, as far as the lease says"
    if _is_silent(account):
        until = "" if status.takeable_at is None else f", and keeps it until {format_clock(status.takeable_at, now)}"
        who = describe_holder_or_another(tenure) if tenure else holder
        return f"{who} has not renewed it{_describe_lateness(account, account.last_renewal)}{until}"
    since = ""
    first = account.first_tenure
    if first and first.is_since_known and first.began is not Handover.SEEN and not first.beginning.is_unseen:
        since = f" since {format_clock(first.since, now)}"
        # It need not have lost the lead meanwhile.
        is_same = first.began is Handover.DELETED and first.previous == first.holder
        since += ", when the lease was created again" if is_same else ""
    if first and since and (claimed := first.beginning.claimed_since) is not None:
        named = f"{holder} is named in it{since}, with acquireTime {format_clock(claimed, now)}"
    else:
        named = f"{holder} holds it{since}"
    # A holder's own clock may say that it will be.
    is_past = account.last_renewal is not None and account.last_renewal <= now
    renewed = f", renewed{_describe_since(account.last_renewal, now)}" if is_past else ""
    if tenure and since and not tenure.is_chosen and tenure.processes.is_never_renewed and not tenure.renewed_by_other:
        renewed = f", written in{describe_by_writer(tenure.processes.taken_by)}, and not renewed since"
    elif is_past and account.is_taken_only:
        renewed = f", {'named' if tenure and tenure.is_chosen else 'taken'}{_describe_since(account.last_renewal, now)}"
        renewed += " and not renewed since"
    if tenure and tenure.asked_holder:
        return f"{holder} holds it as stored, but its writer asked for {format_name(tenure.asked_holder)}{renewed}"
    renewed += " by it or by someone writing in its name" if renewed and tenure and tenure.is_ambiguous else ""
    ended = account.pods.end_of_holder
    return f"{named}{renewed}{f'; {ended}' if ended else ''}"


def is_silence_in_headline(account: "Account") -> bool:
    """Return whether the headline of a lease that has not expired says that its holder renews it no longer."""
    is_held = account.state is LeaseState.LIVE and account.status is not None and account.history.hidden_since is None
    if not is_held or account.is_heartbeat or list_pods_at_once(account) or account.written_later is not None:
        return False
    return account.is_renewed_last and _is_silent(account)


def _is_silent(account: "Account") -> bool:
    return any(map(is_ongoing_silence, account.findings))


def is_ongoing_silence(finding: ReportFinding) -> bool:
    """Return whether a finding says that the renewals of a live lease have stopped."""
    return isinstance(finding, Claim) and finding.check == "renewal-late" and finding.over_since == 0


def _describe_expired(account: "Account", holder: str, *, is_written_later: bool) -> str:
    """Say what is known of a lease that has expired, if only as far as a log shows."""
    if account.doubt.patient_reader is not None:
        return _describe_expired_by_log(account, account.doubt.patient_reader, holder)
    is_sparse = account.history.continuity.sparse_since is not None
    is_doubted = is_written_later or account.doubt.is_log_leaky or account.doubt.unlogged or is_sparse
    return f"{_describe_silence(account, holder)}{f', {_describe_doubt(account)}' if is_doubted else ''}"


def _describe_doubt(account: "Account") -> str:
    return account.doubt.unlogged.doubt if account.doubt.unlogged else "as far as the log shows"


def _describe_silence(account: "Account", holder: str) -> str:
    """Say what is known of a lease that is not renewed."""
    lease, tenure, now = account.history.lease, account.tenure, account.now
    stalled = _describe_stalled(account)
    if stalled:
        return stalled
    is_chosen = (
        tenure.is_chosen and not tenure.processes.renewals if tenure and tenure.began is not Handover.SEEN else False
    )
    is_choice = account.status is not None and account.status.is_choice
    if is_choice or (lease is not None and lease.spec.strategy and is_chosen):
        return f"{holder} was chosen{_describe_since(account.last_renewal, now)} and has not renewed since"
    taker = tenure.processes.taken_by if tenure and tenure.processes.is_never_renewed else None
    if tenure and taker:
        since = _describe_since(tenure.since, now)
        return f"{describe_writer(taker)} wrote {holder} into it{since}, and {holder} has not renewed it"
    by_stamp = ""
    if (claimed := account.recent_renew_time) is not None:
        by_stamp = (
            f" by the API server's clock; by its holder's, which wrote renewTime, for {format_length(now - claimed)}"
        )
    silent = f"{_describe_lateness(account, account.last_renewal)}{by_stamp}"
    return f"{holder} has not renewed it{silent}{describe_askers(account)}"


def _describe_expired_by_log(account: "Account", reader: Writer, holder: str) -> str:
    """Say that a lease has expired as far as a log shows, which one who would take it does not."""
    return (
        f"as far as the log shows, {holder} has not renewed it{_describe_lateness(account, account.last_renewal)}; but "
        f"{describe_process(reader)} reads it and does not take it: it may be renewed through an API server whose log "
        "is missing"
    )


def _describe_stalled(account: "Account") -> str:
    lease = account.history.lease
    if lease is None or not lease.spec.strategy or not lease.spec.preferred_holder:
        return ""
    request = account.tenure.step_down if account.tenure is not None else StepDown()
    asked = describe_step_down(format_name(lease.spec.holder_identity or ""), lease.spec.preferred_holder, request)
    silent = _describe_lateness(account, account.last_renewal)
    return f"{asked}, which has not taken over: not renewed{silent}"


def _describe_lateness(account: "Account", at: int | None) -> str:
    """Say for how long it has not been renewed: in whole seconds, as stamps are, unless a log dates the renewal."""
    renewed, silent = account.tenure.last_renewal_write if account.tenure else None, max(0, account.now - (at or 0))
    shown = silent if renewed is not None and renewed.is_exact else silent // SECOND * SECOND
    return "" if at is None else f" for {format_length(shown)}"


def _describe_since(at: int | None, now: int) -> str:
    return "" if at is None or at > now else f" {format_age(at, now)}"


def _describe_freed(account: "Account", status: LeaseStatus) -> str:
    """Say when the lease was released; the holder may have been removed long after its last renewal."""
    tenure, lease = account.history.latest_tenure, account.history.lease
    if tenure is not None and tenure.until is not None and not account.history.is_end_seen:
        return "no one holds it"  # another process may have held it meanwhile
    if tenure is not None and tenure.until is None and account.may_be_shortened_by_another:
        return f"no one holds it: it lasts {status.duration} s, so anyone may take it{describe_askers(account)}"
    at = status.last_renewal if tenure is None or tenure.until is None else tenure.until
    if tenure is not None and tenure.removal.is_likely_foreign and tenure.is_end_dated:
        return f"no one holds it: its holder was removed{_describe_since(at, account.now)}"
    is_removed = lease is not None and lease.spec.holder_identity is None
    freed = "no one holds it" if is_removed else f"no one holds it: it was released{_describe_since(at, account.now)}"
    return f"{freed}{describe_askers(account)}"


def list_pods_at_once(account: "Account") -> list[str]:
    """The latest three of several pods that renew the lease by turns under its holder's name; none if only one does."""
    tenure = account.tenure
    if tenure is None or tenure.processes.own is None or not tenure.processes.own.pod:
        return []
    lasts = (tenure.duration or 0) * SECOND
    sharing = [
        one.pod
        for one in tenure.processes.sharers
        if one.pod and account.now - tenure.processes.others[one].last < lasts
    ]
    own = account.now - tenure.last_renewal < lasts
    return sorted(format_name(pod) for pod in (tenure.processes.own.pod, *sharing[-2:])) if own and sharing else []
