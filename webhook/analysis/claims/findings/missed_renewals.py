"""Claims about silences: renewals that came late, leaders that were lost, pods that took over a silent name."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from webhook.analysis.claims.advice.after_silence import advise_after_silence
from webhook.analysis.claims.claim import Advice, Claim
from webhook.analysis.claims.diagnosis import Blame
from webhook.analysis.claims.evidence.machines.api_servers import advise_on_silent_server
from webhook.analysis.claims.evidence.silent_holders import causes, silences
from webhook.analysis.claims.evidence.silent_holders.cause_sentences import SURE_HABITS, describe_cause
from webhook.analysis.claims.evidence.silent_holders.slowing_renewals import describe_slowing
from webhook.analysis.claims.evidence.writers.failed_writes import describe_last_renewal
from webhook.analysis.claims.findings.lease_claim import (
    MAX_NAMED,
    find_identity,
    list_possible_causes,
    make_claim,
    measure_clocks_of_both,
)
from webhook.analysis.claims.words import (
    describe_holder_or_another,
    describe_writer,
    format_bound,
    format_clock,
    format_count,
    format_name,
)
from webhook.analysis.heartbeats import is_identity_of_api_server
from webhook.analysis.history.audit_log.addresses import get_address
from webhook.analysis.history.audit_log.refusal import Refusal
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.renewals import DEFAULT_DURATION, estimate_deadline, estimate_last_work
from webhook.analysis.history.status import LeaseState
from webhook.analysis.history.write import Dating
from webhook.analysis.inputs.items import InputKind
from webhook.findings import Severity
from webhook.kubernetes.times import SECOND, format_length
from webhook.text.commands import make_kubectl_prefix

_MIN_MISSED: Final = 5
_MIN_SILENCE: Final = 10 * SECOND
"""A holder that has missed so many of its usual renewals, for so long, is late however long its lease lasts."""
_RARE: Final = 2.5
"""Requests whose intervals are so many times the usual one are held back."""


def describe_delay(
    history: LeaseHistory, missed: silences.MissedRenewals, since: str = "", *, is_beat: bool = False
) -> str:
    """Return how late a holder renewed, why, and what it risked; `is_beat`: nobody else takes the lease."""
    why = describe_cause(missed.cause)
    if habit := _describe_irregularity(history, missed):
        why = f"{habit}; if not, {why[0].lower()}{why[1:]}"
    other_clock = _describe_other_clock(history, missed)
    has_expired = missed.expired_at is not None and not other_clock
    none = "no API server chose another holder" if missed.tenure.is_coordinated else "no one took it"
    risk = f" The lease expired, and {none}." if has_expired else ""
    if missed.duration == DEFAULT_DURATION:
        first, last = estimate_deadline(missed.duration), estimate_last_work(missed.duration)
        also = f"; the lease expired, and {none}" if has_expired else ""
        risk = f" By default client-go stops leading after {format_length(first)} to {format_length(last)}{also}."
    if is_beat:
        risk = f" The lease is a heartbeat, which lasts {missed.duration} s: no one else takes it."
    silent = format_length(missed.length) if missed.doubt <= SECOND // 10 else format_bound(missed.longest)
    late = f"{describe_holder_or_another(missed.tenure)} did not renew for {silent}{since}"
    return f"{late}. {other_clock}{why}{risk}"


def _describe_other_clock(history: LeaseHistory, missed: silences.MissedRenewals) -> str:
    """Say that a silence by stamps is none by the renewTimes of a holder; "" if both agree, or a log dates them."""
    step = history.clock_steps.find_within(missed.start, missed.end) if history.kind is InputKind.WATCH else None
    if step is None or missed.length + step.by >= estimate_deadline(missed.duration):
        return ""
    by_holder = max(0, missed.length + step.by)
    return (
        f"By its renewTimes, it was {format_length(by_holder)}: unless its own clock was set, or stood still, "
        "another API server, of another clock, answered it since. "
    )


def _describe_irregularity(history: LeaseHistory, missed: silences.MissedRenewals) -> str:
    """Say that a gap may be how a holder renews, if the lease outlasted it and the other intervals are like it."""
    is_outlasted = missed.longest < (missed.duration or 0) * SECOND
    if (
        not is_outlasted
        or missed.cause.blame not in {Blame.CLIENT, Blame.UNKNOWN}
        or missed.cause.possible_causes in SURE_HABITS
    ):
        return ""
    spread = history.renewals.find_spread_beside(missed)
    if spread is None:
        return ""
    first, last = map(format_length, spread)
    return f"The lease is renewed at irregular intervals, {first} to {last} long, so that may be how its holder works"


def _describe_other_write(history: LeaseHistory, missed: silences.MissedRenewals, now: int) -> str:
    """Say which user wrote a lease last while its holder did not renew it: that may have let it go on."""
    own = missed.tenure.processes.own
    refused = [one.at for one in history.requests.refusals if missed.start < one.at < missed.end]
    later = [
        write
        for write in history.idle_writes
        if max([missed.start, *refused]) < write.at < missed.end and write.name != (own.name if own else "")
    ]
    if not refused or not later or history.kind is not InputKind.AUDIT_LOG:
        return ""
    last = later[-1]
    return f" {format_name(last.name)} wrote the lease at {format_clock(last.at, now)}, after the last refusal."


def claim_late_renewal(history: LeaseHistory, missed: silences.MissedRenewals, now: int) -> Claim:
    """Return the claim that a holder renewed late, and why."""
    since = f", from {format_clock(missed.start, now)} on{' by its own clock' if missed.is_claimed else ''}"
    is_beat = history.is_heartbeat
    is_outlasted = missed.longest < (missed.duration or 0) * SECOND or (
        missed.longest_gap and missed.expired_at is None
    )
    is_harmless = is_beat and is_outlasted
    message = f"{describe_delay(history, missed, since, is_beat=is_beat)}{_describe_other_write(history, missed, now)}"
    step = advise_after_silence(missed.cause, history, missed.tenure, now=now)
    advice = replace(step, sentence=f"{_describe_end_of_refusals(history, missed, now)}{step.sentence}")
    severity = Severity.INFO if is_harmless else Severity.WARNING
    arguments = {
        "identity": find_identity(missed.tenure),
        "from": missed.start,
        "to": missed.end,
        "how": Dating.WRITER_CLOCK.value if missed.is_claimed else None,
        **list_possible_causes(missed.cause),
    }
    return make_claim(
        history,
        "renewal-late",
        severity,
        message,
        advice,
        missed.cause.blame,
        over_since=missed.end,
        arguments=arguments,
    )


def _describe_end_of_refusals(history: LeaseHistory, missed: silences.MissedRenewals, now: int) -> str:
    """Say whether the refusals ended for which a holder renewed late: for itself, and for others."""
    refusal = missed.cause.refusal
    if missed.cause.blame is not Blame.REFUSED or refusal is None:
        return ""
    denied = (one for one in history.requests.refusals if one.at > missed.end and one.is_denied)
    later = [one for one in denied if not one.is_read or (one.by, one.code) == (refusal.by, refusal.code)]
    if not later:
        return "The refusals have ended. "
    if any(_is_of_holder(one, refusal, missed.tenure) for one in later):
        return "Refusals came again after that. "
    last = later[-1]
    address = get_address(last.source)
    nameless = f"a process at {address} without accepted credentials" if address else "an unknown writer"
    who = describe_writer(last.writer) if last.writer.user else nameless
    return f"Its refusals have ended, but {who} was refused until {format_clock(last.at, now)}. "


def _is_of_holder(later: Refusal, refusal: Refusal, tenure: Tenure) -> bool:
    """Return whether a later answer is for the holder, too: of one without a name, by where it came from."""
    if later.writer.user:
        return tenure.is_by(later.writer) is not False
    return later.source == refusal.source


def find_ongoing_silence(histories: ClusterHistory, history: LeaseHistory, now: int) -> Iterator[Claim]:
    """Yield a finding if the renewals of a holder have stopped, although its lease has not expired."""
    status, tenure, usual = history.find_status(now), history.current_tenure, history.renewals.usual
    until = min(now, histories.bounds.until or 0)
    if tenure is None or usual is None or status is None or not (status.holder or history.is_nameless):
        return
    if status.state not in {LeaseState.LIVE, LeaseState.FROZEN}:
        return
    if tenure.is_claimed:
        return  # the end of the input is by another clock
    # If two pods have one name, either may be the holder.
    last = tenure.kept_until if tenure.began is Handover.REPLACED else tenure.last_of_identity
    if any(other.last > last and tenure.processes.may_renew(who) for who, other in tenure.processes.others.items()):
        return
    silence = until - last
    if silence <= max(_MIN_MISSED * usual, _MIN_SILENCE) or history.kind is InputKind.REVIEW:
        return
    cause = causes.diagnose(histories, history, tenure, last, until)
    holds = ""
    if status.takeable_at is not None and not history.is_heartbeat:
        holds = f"; it does not expire before {format_clock(status.takeable_at, now)}"
    # It may have been renewed for the last time in what the input lacks.
    since, least = format_clock(last, now), ""
    if tenure.is_last_unseen:
        since, least = f"{since} or earlier", "at least "
    seen = f"has not renewed since {since}, for {least}{format_length(silence)}"
    if now - until > SECOND:
        times = f"from {since} until {format_clock(until, now)}"
        seen = f"did not renew {times}, when the input ends, for {least}{format_length(silence)}"
    usually = f"although the lease was renewed every {format_length(usual)} before"
    why = describe_cause(cause)
    message = f"{describe_holder_or_another(tenure)} {seen}, {usually}{holds}. {why}"
    is_of_server = is_identity_of_api_server(history.namespace, history.name)
    step = (
        advise_on_silent_server(histories, history, last, now)
        if is_of_server
        else advise_after_silence(cause, history, tenure, now=now)
    )
    yield make_claim(
        history,
        "renewal-late",
        Severity.WARNING,
        message,
        step,
        cause.blame,
        why=describe_cause(cause, format_name(tenure.holder) if tenure.holder else ""),
        over_since=0,
        arguments={"identity": find_identity(tenure), "from": last, "to": until, **list_possible_causes(cause)},
    )


def claim_loss(history: LeaseHistory, missed: silences.MissedRenewals, after: Tenure, now: int) -> Claim:
    """Return the claim that a holder let its lease expire and was followed, and why."""
    before, cause, unled = missed.tenure, missed.cause, after.leaderless or 0
    is_exact = (
        after.is_exact
        and not after.beginning.may_have_been_expired
        and before.last_renewal_write is not None
        and before.last_renewal_write.is_exact
    )
    later = format_length(unled) if is_exact else format_bound(unled)
    taken = "the lease" if after.beginning.may_have_been_expired else "the expired lease"
    doubt = ": whether it had expired is not known" if after.beginning.may_have_been_expired else ""
    follower, at = format_name(after.holder), format_clock(after.since, now)
    if after.is_chosen:
        silent = format_length(missed.length) if is_exact else format_bound(missed.length + SECOND)
        followed = f"{silent} before the API server chose {follower} at {at}"
    else:
        is_other = before.duration is not None and before.duration != history.duration
        lasted = f" (it lasted {before.duration} s)" if is_other and not after.beginning.may_have_been_expired else ""
        # Another writer may write a holder in, which need not know of it.
        other = after.processes.doubtful_taker
        took = f"{describe_writer(other)} wrote {follower} into" if other else f"{follower} {_say_took(after)}"
        followed = f"{later}{_describe_clocks_of_both(history, before, after)} before {took} {taken}{lasted} at {at}"
    # What follows is about the holder before, so that is the subject here, and the next one is named in a clause.
    why = describe_cause(cause, format_name(before.holder) if before.holder else "", is_followed=True)
    message = (
        f"{describe_holder_or_another(before)} last renewed at {format_clock(missed.start, now)}"
        f"{describe_last_renewal(history, before, missed.start)}, "
        f"{followed}{_describe_substitute(before, now)}{doubt}. {why}"
        f"{describe_slowing(history, before, missed.start, now)}"
        f"{_describe_work_after(missed, after, now)}"
        f"{_describe_return(missed, history.renewals.usual, now)}"
    )
    step = advise_after_silence(cause, history, before, now=now, is_lost=after.holder != before.holder)
    return make_claim(
        history,
        "leader-lost",
        Severity.WARNING,
        message,
        step,
        cause.blame,
        why=why,
        over_since=after.since,
        arguments={
            "identity": find_identity(after),
            "previous": find_identity(before),
            "from": missed.start,
            "to": after.since,
            "how": "unknown" if after.beginning.may_have_been_expired else None,
            **list_possible_causes(cause),
        },
    )


def _say_took(after: Tenure) -> str:
    """`took`; by its acquireTime, a holder may have led long before the input first shows it."""
    return "took" if after.beginning.claimed_since is None else "was first seen in"


def _describe_clocks_of_both(history: LeaseHistory, before: Tenure, after: Tenure) -> str:
    """Say by how much less two holders differ by their own clocks than by stamps; "" if a log dates both, or few."""
    moved = measure_clocks_of_both(history, before, after)
    if not moved:
        return ""
    claimed = after.beginning.claimed_silence
    by_both = format_length(max(0, (after.leaderless or 0) + moved if claimed is None else claimed))
    return f" ({by_both} by the renewTimes, if two clocks stamped the two writes)"


def claim_never_taken_up(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> Claim:
    """Return the claim that an API server chose a holder which did not renew the lease until it was followed."""
    follower = f"{format_name(after.holder)} {'was chosen' if after.is_chosen else 'was written into it'}"
    unled = "" if after.leaderless is None else f": no process renewed it for {format_bound(after.leaderless)}"
    by = "an API server" if before.processes.taken_by else "an API server (as far as field managers show)"
    message = (
        f"{format_name(before.holder)} was chosen by {by} at {format_clock(before.since, now)}, "
        f"and had not renewed the lease when {follower} at {format_clock(after.since, now)}{unled}"
    )
    advice = Advice(
        "See the candidates, and whether they run:",
        f"{make_kubectl_prefix(history.namespace)} get leasecandidates,pods",
    )
    return make_claim(
        history,
        "not-taken-up",
        Severity.WARNING,
        message,
        advice,
        over_since=after.since,
        arguments={"identity": find_identity(before), "from": before.since, "to": after.since},
    )


def _describe_substitute(before: Tenure, now: int) -> str:
    """Say who renewed a lease in the place of its holder after that had done so for the last time."""
    if before.renewed_by_other is None or before.kept_until <= before.last_renewal + SECOND:
        return ""
    who = describe_writer(before.renewed_by_other.writer)
    return f" ({who} went on in the name of {format_name(before.holder)} until {format_clock(before.kept_until, now)})"


def _describe_work_after(missed: silences.MissedRenewals, after: Tenure, now: int) -> str:
    """Say what the pod of a former holder wrote after another one had taken the lease; "" if nothing is known."""
    work = missed.work_after
    if work is None:
        return ""
    last = format_clock(work.last, now)
    if work.programs:
        names = " and ".join(map(format_name, work.programs[:MAX_NAMED]))
        return f" What its pod wrote after that, until {last}, is by other programs than its elector: {names}."
    own = f"at least {format_count(work.own, 'write')} of its pod to other objects came after that, until {last}"
    other = f", and {work.other} of the pod of {format_name(after.holder)} meanwhile" if work.other else ""
    return f" {own[0].upper()}{own[1:]}{other}, which may be the work of two leaders."


def _describe_return(missed: silences.MissedRenewals, usual: int | None, now: int) -> str:
    """Say when requests of a pod were received again that had lost its lease in silence, and what it may have done.

    It may have asked for the lease before another one took it. A single request may be one that a process sent before
    it ended, and that a proxy or a connection held back.
    """
    cause, processes = missed.cause, missed.tenure.processes
    heard = processes.list_requests_after(missed.start)
    if cause.blame is not Blame.CLIENT or not heard or not cause.is_silent:
        return ""
    since, gaps = format_clock(heard[0], now), sorted(after - one for one, after in pairwise(heard))
    again = f" Its pod asked for the lease again from {since} on"
    if gaps and usual is not None and gaps[len(gaps) // 2] > _RARE * usual:
        rate = format_length(gaps[len(gaps) // 2])
        return f"{again}, but only every {rate}, as if its own rate limit, overload or restarts held it back."
    if not gaps:
        again = f" A request for the lease by its pod was received at {since}"
    if missed.work_after is not None:
        return f"{again}."
    if not gaps:
        again = f"{again}, and may have been sent long before"
    if cause.active_at is not None:
        at = format_clock(cause.active_at, now)
        paused = "it may have been paused until then, and have acted as leader until it noticed"
        return f"{again}, and for something else at {at}: {paused}."
    suggest = ""
    if cause.status_written:
        ended, began = (format_clock(one, now) for one in cause.status_written)
        suggest = f", as the status suggests that its kubelet wrote at {ended} and {began}"
    return f"{again}; unless it had ended or restarted{suggest}, it may have acted as leader until it noticed."
