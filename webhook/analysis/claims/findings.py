"""Findings about the history of a lease: lost leaders, late renewals, odd writers, refused writes."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, Final

from msgspec import Struct

from webhook.admission.policy.model import is_always_exempt
from webhook.admission.rules.change import NAMESPACE_CONTROLLER
from webhook.analysis.claims import causes
from webhook.analysis.claims.advice import (
    MUTATORS,
    REPLACED,
    Advice,
    advise_after_deletion,
    advise_after_refusal,
    advise_after_sharing,
    advise_after_silence,
    advise_on_mutation,
    advise_on_rights,
    command_for_audit_log,
    command_for_log_of_holder,
    command_for_pod_of_holder,
    command_for_pod_of_writer,
)
from webhook.analysis.claims.claim import By as BySomeone
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.collect import drop_unknown, interval_of
from webhook.analysis.claims.handovers import SHORTEST, describe_creation, find_duration_edit, has_lost_race
from webhook.analysis.claims.words import at_most, clock, count, holder_or_another, name, user, writer
from webhook.analysis.heartbeats import is_heartbeat, is_named_for_heartbeats
from webhook.analysis.history.events import LeaseEvent
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.refusal import UNAUTHENTICATED, By, Refusal
from webhook.analysis.history.renewals import deadline_of, goes_on_for
from webhook.analysis.history.status import LeaseState, LeaseStatus, has_expired, was_live
from webhook.analysis.history.tenure import API_SERVER, Handover, Tenure
from webhook.analysis.history.write import Dating
from webhook.analysis.inputs.items import FenceReport, InputKind, Writer
from webhook.findings import ObjectName, ReportFinding, Severity
from webhook.kubernetes.request import UserInfo
from webhook.kubernetes.times import SECOND, length
from webhook.text.commands import kubectl_in, quote_name

_MIN_MISSED: Final = 5
_MIN_SILENCE: Final = 10 * SECOND
"""A holder that has missed so many of its usual renewals, for so long, is late however long its lease lasts."""
_DURATION: Final = 15
"""Seconds that a lease lasts by the default of client-go, where the input does not say it."""
_MANY_READS: Final = 3
"""Refused reads after which a process waits for the lease, and not a person who looked at it."""
_OFF: Final = 2 * SECOND
"""How far a clock must be off to be reported."""
_MAX_NAMED: Final = 4
_ORDINAL: Final = re.compile(r"-\d+$")
"""Users or programs that a sentence names."""
RENEW_TIME: Final = "renewTime"
_RARE: Final = 2.5
"""Requests whose intervals are so many times the usual one are held back."""
_ENOUGH: Final = 2
"""Intervals after which it is known that they are not."""
_SILENT: Final = "it, or its API server, had been paused, blocked, cut off or restarted"
_SILENT_NODE: Final = "its node, or its API server, had been paused or cut off, or it had been restarted"
_SILENT_POD: Final = "it, or its API server, had been paused, blocked or restarted, or its pod alone cut off"
_ONE_POD: Final = (
    "both were written from one pod: unless that runs two electors, one process led throughout and its identity changed"
)
_RENAMED: Final = "one process led throughout and its identity changed, as acquireTime and leaseTransitions did not"
_REFUSED_BY: Final = {By.RIGHTS: " for lack of permission", By.CREDENTIALS: " for lack of credentials", By.OTHER: ""}


def make_claim(
    history: LeaseHistory,
    check: str,
    severity: Severity,
    message: str,
    advice: Advice,
    cause: str = "",
    **more: Any,  # noqa: ANN401 - `over_since` and `arguments`, as a Claim has them
) -> Claim:
    """Return a finding about a lease."""
    return Claim(
        check=check,
        severity=severity,
        message=message,
        subject=ObjectName("Lease", history.namespace, history.name),
        fix=advice.command,
        advice=advice.sentence,
        cause=cause,
        over_since=more.get("over_since"),
        arguments=drop_unknown(more.get("arguments", {})),
    )


def _identity(tenure: Tenure) -> str | None:
    """Return the text of the holder; None if the log does not show it, and its writer stands in."""
    return None if tenure.is_writer else tenure.holder


def list_left_causes(cause: causes.Diagnosis) -> Mapping[str, object]:
    """Return the arguments that say which causes the input leaves."""
    return {"cause": cause.left[0]} if len(cause.left) == 1 else {"causes": list(cause.left)}


def find_incidents(
    histories: ClusterHistory, history: LeaseHistory, now: int, ongoing: causes.Diagnosis | None = None
) -> Iterator[Claim]:
    """Yield all that went wrong, the latest of each kind last; `ongoing` is why the holder does not renew now."""
    if history.is_moment and len(history.tenures) < 2 and not history.requests.fenced:
        return
    if history.is_mixed:
        message = "its UID changes back and forth: the input is of several clusters, so nothing can be concluded"
        command = command_for_audit_log(history.namespace, history.name)
        advice = Advice("Give the input of one cluster alone:", command)
        yield make_claim(history, "clusters-mixed", Severity.ERROR, message, advice)
        return
    late = list(causes.find_late_renewals(histories, history))
    lost = list(causes.find_lost_leaders(histories, history))
    yield from _find_handovers(history, {one.end: one for one in lost}, now)
    yield from (_claim_late_renewal(history, one, now) for one in late)
    yield from _find_preferred_holders(history, now)
    yield from _find_ongoing_silence(histories, history, now)
    yield from _find_second_writers(history, history.status(now), now)
    known = [(one.start, one.end) for one in (*late, *lost) if one.cause.blame is causes.Blame.REFUSED]
    if ongoing is not None and ongoing.blame is causes.Blame.REFUSED and history.tenure:
        known.append((history.tenure.last_renewal, now))
    yield from _find_refusals(history, known, now)
    yield from _find_fenced_writes(history, now)


def drop_repeated(
    found: Sequence[ReportFinding], stored: Iterable[ReportFinding], *, is_log_leaky: bool
) -> list[ReportFinding]:
    """Return what a stored lease shows beside its history, without a guess at what the history shows.

    `is_log_leaky`: a log lacks requests, and a renewal may be one of them, so the lease need not have expired.
    """
    dropped = {one.check for one in found if one.check == "lease-shared"}
    if is_log_leaky:
        dropped.add("expired")
    if any(_is_about(one, RENEW_TIME) for one in found):
        dropped.add("holder-clock")  # the stored time is not that of its writer's clock
    return [one for one in stored if one.check not in dropped]


def _is_about(finding: ReportFinding, field: str) -> bool:
    return isinstance(finding, Claim) and finding.arguments.get("field") == field


def describe_delay(gap: causes.Gap, since: str = "", *, is_beat: bool = False) -> str:
    """Return how late a holder renewed, why, and what it risked; `is_beat`: nobody else takes the lease."""
    risk = (
        f"By default client-go stops leading after {length(deadline_of(gap.duration))} to "
        f"{length(goes_on_for(gap.duration))}"
    )
    if gap.length >= (gap.duration or 0) * SECOND:
        risk += "; the lease expired, and no one took it"
    if is_beat:
        risk = f"The lease is a heartbeat, which lasts {gap.duration} s: no one else takes it"
    silent = length(gap.length) if gap.doubt <= SECOND // 10 else at_most(gap.longest)
    late = f"{holder_or_another(gap.tenure)} did not renew for {silent}{since}"
    return f"{late}. {causes.describe_cause(gap.cause)} {risk}."


def _claim_late_renewal(history: LeaseHistory, gap: causes.Gap, now: int) -> Claim:
    is_claimed = gap.tenure.is_claimed
    since = f", from {clock(gap.start, now)} on{' by its own clock' if is_claimed else ''}"
    is_beat = history.lease is not None and is_heartbeat(history.lease, history.namespace)
    is_harmless = is_beat and gap.longest < (gap.duration or 0) * SECOND
    message = describe_delay(gap, since, is_beat=is_beat)
    step = advise_after_silence(gap.cause, history, gap.tenure)
    ended = "The refusals have ended. " if gap.cause.blame is causes.Blame.REFUSED else ""
    advice = Advice(f"{ended}{step.sentence}", step.command)
    return make_claim(
        *(history, "renewal-late", Severity.INFO if is_harmless else Severity.WARNING, message, advice),
        gap.cause.blame,
        over_since=gap.end,
        arguments={
            "identity": _identity(gap.tenure),
            "from": gap.start,
            "to": gap.end,
            "how": Dating.WRITER_CLOCK.value if is_claimed else None,
            **list_left_causes(gap.cause),
        },
    )


def _find_ongoing_silence(histories: ClusterHistory, history: LeaseHistory, now: int) -> Iterator[Claim]:
    """Yield a finding if the renewals of a holder have stopped, although its lease has not expired."""
    status, tenure, usual = history.status(now), history.holder, history.renewals.usual
    until = min(now, histories.bounds.until or 0)
    if tenure is None or usual is None or status is None or not status.holder:
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
    if status.takeable_at is not None:
        holds = f"; no other replica can take the lease before {clock(status.takeable_at, now)}"
    message = (
        f"{holder_or_another(tenure)} has not renewed since {clock(last, now)}, for {length(silence)}, "
        f"although the lease was renewed every {length(usual)} before{holds}. {causes.describe_cause(cause)}"
    )
    step = advise_after_silence(cause, history, tenure)
    yield make_claim(
        history,
        "renewal-late",
        Severity.WARNING,
        message,
        step,
        cause.blame,
        over_since=0,
        arguments={"identity": _identity(tenure), "from": last, "to": until, **list_left_causes(cause)},
    )


def _find_handovers(history: LeaseHistory, lost: Mapping[int, causes.Gap], now: int) -> Iterator[Claim]:
    """Yield what went wrong when the holder changed, the latest last; `lost` are leaders by when they were followed."""
    tenures = list(history.tenures)
    for before, after in list(pairwise(tenures))[-causes.MAX_OF_A_KIND :]:
        if after.may_be_stolen:
            yield _claim_theft(history, before, after, now)
        elif after.began is Handover.REPLACED:
            yield from _find_replaced_pod(history, before, after, now)
        elif after.began is Handover.DELETED:
            yield from _find_deletion(history, before, after, now)
        elif _was_removed_while_leading(before, now):
            yield _removal(history, before, after, now)
        elif after.since in lost and before.is_known_to_have_held:
            yield _claim_loss(history, lost[after.since], after, now)
    if tenures and _was_removed_while_leading(tenures[-1], now):
        yield _removal(history, tenures[-1], None, now)
    if history.is_deleted and tenures:
        yield from _find_deletion(history, tenures[-1], None, now)


def _claim_loss(history: LeaseHistory, gap: causes.Gap, after: Tenure, now: int) -> Claim:
    before, cause, unled = gap.tenure, gap.cause, after.leaderless or 0
    is_exact = after.is_exact and not after.is_close and before.renewed is not None and before.renewed.is_exact
    later = length(unled) if is_exact else at_most(unled)
    taken = "took the lease" if after.is_close else "took the expired lease"
    doubt = ": whether it had expired is not known" if after.is_close else ""
    follower, at = name(after.holder), clock(after.since, now)
    if after.is_chosen:
        followed = f"the API server chose {follower} at {at}; no holder renewed it for {later}"
    else:
        followed = f"{follower} {taken} at {at}, {later} later{doubt}"
    message = (
        f"{holder_or_another(before)} last renewed at {clock(gap.start, now)}; {followed}. "
        f"{causes.describe_cause(cause)}"
        f"{_afterwards(cause, before, history.renewals.usual, now)}"
    )
    step = advise_after_silence(cause, history, before)
    return make_claim(
        *(history, "leader-lost", Severity.WARNING, message, step, cause.blame),
        over_since=after.since,
        arguments={
            "identity": _identity(after),
            "previous": _identity(before),
            "from": gap.start,
            "to": after.since,
            "how": "unknown" if after.is_close else None,
            **list_left_causes(cause),
        },
    )


def _afterwards(cause: causes.Diagnosis, before: Tenure, usual: int | None, now: int) -> str:
    """Say when the pod of a holder was heard again that had lost its lease in silence, and what that means."""
    heard = before.processes.heard_again
    if cause.blame is not causes.Blame.CLIENT or not heard or not cause.is_silent:
        return ""
    gaps = sorted(after - one for one, after in pairwise(heard))
    again = f" Its pod was heard again from {clock(heard[0], now)} on"
    if gaps and usual is not None and gaps[len(gaps) // 2] > _RARE * usual:
        rate = length(gaps[len(gaps) // 2])
        return f"{again}, but only every {rate}: its own rate limit, or overload, holds them back."
    which = _SILENT_NODE if cause.is_node_silent else _SILENT_POD
    what = _SILENT if cause.is_node_silent is None else which
    if len(gaps) < _ENOUGH:
        what = f"{_SILENT}, or its own rate limit had held it back"
    return f"{again}: {what}; unless it restarted, it may have acted as leader until it noticed."


def _find_replaced_pod(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> Iterator[Claim]:
    """Yield a finding if another pod renewed under the identity of one that had missed no renewal by then.

    A pod that is deleted by force, or whose node is cut off, may run on while the next one has its name.
    """
    if before.renewed is None:
        return  # when it renewed last is not shown
    silence = after.since - before.kept_until
    sources = history.requests.sources_of(before)
    refused = [
        one for one in history.requests.refusals if one.at > after.since and is_nameless(one) and one.source in sources
    ]
    is_shared = any(one.processes.has_several_writers for one in history.tenures)  # which another finding says
    is_heard = any(history.requests.is_only_source_of(before, one.source) for one in refused)
    if is_shared or (silence > (history.renewals.longest_usual or 0) and not is_heard):
        return
    went_on = ""
    if refused:
        writes = f"{count(len(refused), 'write')} without accepted credentials"
        went_on = f"; {writes} followed from its address and program until {clock(refused[-1].at, now)}"
    since = length(max(0, silence))
    message = (
        f"at {clock(after.since, now)} another pod began to renew it as {name(after.holder)}, {since} after the one "
        f"before had done so{went_on}: unless that one had stopped, both led, with client-go's usual settings for up "
        f"to {length(deadline_of(before.duration))}"
    )
    pods = dict.fromkeys(quote_name(one.pod) for one in (before.processes.own, after.processes.own) if one and one.pod)
    sentence = "Check whether the pod before still runs, on a node that is not reached or after a forced deletion:"
    advice = Advice(sentence, " ".join((kubectl_in(history.namespace), "get pods", *pods, "-o wide")))
    yield make_claim(
        *(history, "identity-shared", Severity.WARNING, message, advice, REPLACED),
        over_since=None if now - before.kept_until < (before.duration or 0) * SECOND else after.since,
        arguments={"identity": after.holder},
    )


def is_nameless(refusal: Refusal) -> bool:
    """Return whether a write was refused because the API server did not know who wrote."""
    return refusal.code == UNAUTHENTICATED and not refusal.writer.user and not refusal.is_read


def _was_removed_while_leading(tenure: Tenure, now: int) -> bool:
    """Return whether another one removed the holder, or the lease was live and the holder need not have done it."""
    is_live = was_live(tenure.last_renewal, tenure.duration, tenure.until or now)
    return tenure.removal.is_own is False or (tenure.removal.may_be_by_another and is_live)


def _removal(history: LeaseHistory, before: Tenure, after: Tenure | None, now: int) -> Claim:
    if before.removal.is_own is False:
        return _foreign_release(history, before, after, now)
    return _claim_removed_holder(history, before, now)


def _foreign_release(history: LeaseHistory, before: Tenure, after: Tenure | None, now: int) -> Claim:
    who = before.removal.writer or Writer()
    by, at = writer(who), before.until or now
    led, severity = ", which still led", Severity.ERROR
    if not was_live(before.last_renewal, before.duration, at):
        led = ", which may still have led"
    if before.had_expired:
        severity = Severity.WARNING
        led = f", which had not renewed the lease for {length(at - before.last_renewal)}: it had expired"
    message = f"at {clock(at, now)} {by} removed {name(before.holder)} as the holder{led}"
    if before.had_expired and after is not None:
        message += f"; {name(after.holder)} took it at {clock(after.since, now)}"
    elif after is not None and after.holder != before.holder:
        later = max(0, after.since - (before.until or 0))
        is_exact = after.is_exact and before.ended is not None and before.ended.is_exact
        # Stamps have whole seconds.
        bound = length(later) if is_exact else at_most(later + SECOND)
        message += (
            f"; {name(after.holder)} took the lease {bound} later: two may have led at once, until the old one noticed"
        )
    advice = advise_on_rights(f"Find out why {by} did{_describe_strict(who)}.", "update", history, who)
    return make_claim(
        *(history, "foreign-release", severity, message, advice, "foreign-release"),
        over_since=at,
        arguments={
            "previous": _identity(before),
            "by": BySomeone(who),
            **interval_of(before.ended),
        },
    )


def _claim_removed_holder(history: LeaseHistory, before: Tenure, now: int) -> Claim:
    at = before.until or now
    is_dated = before.ended is not None and before.ended.is_dated
    live = "while the lease was live" if is_dated else "while the lease may have been live"
    who = before.removal.writer
    did = f"{name(before.holder)} was removed as the holder"
    if who is not None and who.user:
        did = f"{writer(who)} removed {name(before.holder)} as the holder"
    message = (
        f"at {clock(at, now)}{'' if is_dated else ' or later'} {did} {live}: "
        "if the holder did not do that itself, two may have led at once"
    )
    if before.removal.is_under_other_manager:
        # A client chooses its field manager, and one process may write by several clients.
        message += f". The field manager was {name(before.removal.manager)}; its renewals have {name(before.manager)}"
    advice = Advice("The audit log shows who removed it:", command_for_audit_log(history.namespace, history.name))
    if who is not None and who.user:
        advice = advise_on_rights(f"Find out which program of {user(who)} removed it.", "update", history, who)
    within, renewal = {**interval_of(before.ended)}, before.renewed or before.taken
    if "earliest" in within and not renewal.is_claimed:
        within["earliest"] = max(within["earliest"], renewal.earliest)  # which came before the removal
    arguments = {"previous": _identity(before), "how": None if is_dated else "unknown", **within}
    return make_claim(history, "holder-removed", Severity.WARNING, message, advice, over_since=at, arguments=arguments)


def _find_preferred_holders(history: LeaseHistory, now: int) -> Iterator[Claim]:
    """Yield a finding for the latest write by which another one than an API server asked a holder to step down."""
    foreign = [
        one
        for one in history.edits
        if "preferredHolder" in one.text and one.writer and one.writer.user not in {"", API_SERVER} and one.tenure
    ]
    for edit in foreign[-1:]:
        assert edit.writer is not None
        who = f"at {clock(edit.at, now)} {writer(edit.writer)} changed preferredHolder"
        message = f"{who}, as only an API server should ({edit.text})"
        advice = advise_on_rights(f"Find out why {name(edit.writer.name)} writes it.", "update", history, edit.writer)
        asked = edit.tenure.step_down if edit.tenure else None
        arguments = {
            "identity": asked.successor if asked and asked.writer == edit.writer else None,
            "by": BySomeone(edit.writer),
        }
        yield make_claim(
            *(history, "preferred-holder-foreign", Severity.WARNING, message, advice),
            over_since=edit.at,
            arguments=arguments,
        )


def _find_stranger(before: Tenure, after: Tenure) -> Writer | None:
    """Return who took the lease as its own identity, if that is another user than the one that held it."""
    taker = after.processes.taken_by
    if before.processes.own is None or taker is None or not taker.user or taker.user == before.processes.own.user:
        return None
    return taker


def _describe_taking(after: Tenure, other: Writer | None, stranger: Writer | None) -> str:
    taker = name(after.holder)
    if after.processes.taken_by is None:
        return f"{taker} was written into the lease"
    if other:
        return f"{writer(other)} wrote {taker} into the lease"
    return f"{taker} took the lease ({writer(stranger)})" if stranger else f"{taker} took the lease"


def _claim_theft(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> Claim:
    duration, last = before.duration, before.kept_until
    left = last + duration * SECOND - after.since if duration else None
    cause = "stolen"
    other = after.processes.doubtful_taker
    is_one_pod = after.processes.follows_in_pod(before.processes)
    stranger = None if other else _find_stranger(before, after)
    took = _describe_taking(after, other, stranger)
    early = "" if left is None else f", {_describe_time_left(before, after, left)} before it expired"
    edit = find_duration_edit(history, before, after)
    if edit is not None:
        early += " by the duration that its holder wrote"
    at, held = clock(after.since, now), f" while {name(before.holder)} still held it{early}"
    if not after.is_dated:
        at, held = f"{at} or later (the input does not say when)", f", which {name(before.holder)} may still have held"
    message = f"at {at} {took}{held}: {_describe_doubt(before)}"
    message += _describe_addresses(history, other)
    if false_expiry := _explain_false_expiry(history, before, after):
        message, cause, advice = f"{message}. {false_expiry.text}", false_expiry.cause, false_expiry.advice
    elif is_one_pod:
        message = f"at {at} {took}{held}; {_ONE_POD}"
        cause, sentence = "renamed", "Check whether a webhook rewrites holderIdentity, or the pod runs two electors:"
        advice = Advice(sentence, "kubectl get mutatingwebhookconfigurations")
    elif other and before.processes.own and before.processes.is_sure and before.processes.own.is_pod_of(other):
        message = f"at {at} {took}{held}: the old holder handed it over itself, without a release"
        cause, sentence = "handed-over", "If that was intended, no action is needed. To see what it logged:"
        advice = Advice(sentence, command_for_log_of_holder(history.namespace, other.pod or before.holder))
    elif other:
        advice = advise_on_rights(f"Find out why {user(other)} writes its holder.", "update", history, other)
    elif after.processes.taken_by is None:
        if after.is_renaming:
            message += f"; or {_RENAMED}"
        message += f". The input does not show who wrote it{_hint(before, after)}"
        advice = Advice(
            "The audit log shows who wrote it:",
            command_for_audit_log(history.namespace, history.name),
        )
    else:
        advice = _advise_on_taker(history, before, after, edit)
    is_error = after.is_dated and not is_one_pod and cause != "handed-over"
    severity = Severity.ERROR if is_error else Severity.WARNING
    return make_claim(
        *(history, "lease-stolen", severity, message, advice, cause),
        over_since=after.since,
        arguments={
            "identity": _identity(after),
            "previous": _identity(before),
            "by": BySomeone(after.processes.taken_by),
            **interval_of(after.taken),
        },
    )


def _describe_addresses(history: LeaseHistory, other: Writer | None) -> str:
    """Say that requests of a pod came from several addresses, "" if they did not."""
    addresses = history.requests.addresses_of(other)
    if len(addresses) < 2:
        return ""
    shown = " and ".join(name(one) for one in addresses[:_MAX_NAMED])
    return (
        f". Requests with the token of its pod came from {shown}: unless they pass through proxies, another one has "
        "its token"
    )


class _FalseExpiry(Struct, frozen=True):
    """Why a lease that was live looked expired to the one that took it, if that compares renewTime with its clock."""

    text: str
    cause: str
    advice: Advice


def _explain_false_expiry(history: LeaseHistory, before: Tenure, after: Tenure) -> _FalseExpiry | None:
    rewritten = history.requests.rewritten.found.get(RENEW_TIME)
    conclusion = "the lease looked expired to the new holder, if that compares renewTime with its own clock"
    if rewritten:
        if not rewritten.earliest <= after.since <= rewritten.latest + (before.duration or 0) * SECOND:
            return None
        text = f"Its renewTime was not stored as requested, so {conclusion}"
        return _FalseExpiry(text, "rewritten", advise_on_mutation(rewritten))
    ahead = before.clock.ahead
    if ahead is None or ahead >= -_OFF:
        return None
    behind = f"{length(-ahead)} behind the API server's"
    if _are_equally_off(history, ahead):
        text = (
            f"The renewTimes of several holders were equally off, {behind} clock, which points to a webhook or policy "
            f"that changes renewTime, or to a time zone, rather than to wrong clocks; so {conclusion}"
        )
        return _FalseExpiry(text, "clock", Advice("See what changes renewTime, such as a mutating webhook:", MUTATORS))
    advice = Advice(
        f"Correct the clock of the node of {name(before.holder)}; {name(after.holder)} should wait until the lease has "
        "not changed for its whole duration. To see which nodes they run on:",
        f"{kubectl_in(history.namespace)} get pods -o wide",
    )
    return _FalseExpiry(f"The old holder's clock is {behind}, so {conclusion}", "clock", advice)


def _are_equally_off(history: LeaseHistory, ahead: int) -> bool:
    """Return whether the clocks of several holders seem to be off by the same, which clocks that are wrong are not."""
    alike = {
        one.holder for one in history.tenures if one.clock.ahead is not None and abs(one.clock.ahead - ahead) < _OFF
    }
    return len(alike) > 1


def _advise_on_taker(history: LeaseHistory, before: Tenure, after: Tenure, edit: LeaseEvent | None) -> Advice:
    """Return what to do about who took a live lease for itself: first, if there is one, who changed its duration."""
    changer, stranger = edit.writer if edit else None, _find_stranger(before, after)
    if changer is not None and changer.user:
        # Who waits for the duration that is stored waits for as long as the lease says.
        return advise_on_rights(f"Find out why {user(changer)} changes how long it lasts.", "update", history, changer)
    if stranger and before.processes.own:
        sentence = f"Find out why {user(stranger)} took the lease from {user(before.processes.own)}."
        return advise_on_rights(sentence, "update", history, stranger)
    sentence = (
        f"Find out why {name(after.holder)} does not wait until the lease expires"
        f"{_describe_strict(after.processes.taken_by or Writer())}. To see what it is:"
    )
    return Advice(sentence, command_for_pod_of_holder(history.namespace, after.holder))


def _describe_doubt(before: Tenure) -> str:
    """Say what a holder may have done after its lease was taken; a text that another one wrote in need not have any."""
    if before.processes.is_never_renewed:
        return f"no process is known to have renewed it as {name(before.holder)}"
    return "two may have led at once"


def _describe_time_left(before: Tenure, after: Tenure, left: int) -> str:
    """Say how long a lease would have lasted when it was taken: at most, if stamps of whole seconds date that."""
    if after.is_exact and before.kept.is_exact:
        return length(left)
    latest = before.kept.latest if before.kept.latest is not None else before.kept.at
    return at_most(left + max(0, latest - before.kept.at) + max(0, after.since - after.taken.earliest))


def _describe_strict(who: Writer) -> str:
    """Say what preset strict does with a steal or a release by another; without stamps a denial weakens to a warning.

    It denies neither to a user whom every policy exempts.
    """
    if is_always_exempt(UserInfo(who.user, who.groups)):
        return ""
    return " (preset strict denies it, if the lease has stamps)"


def _hint(before: Tenure, after: Tenure) -> str:
    """Return the field manager of a write, which its writer chose, unless it is the one that renewed before."""
    manager = after.taken_manager
    return f"; its field manager was {name(manager)}" if manager and manager != before.manager else ""


def _find_deletion(history: LeaseHistory, before: Tenure, after: Tenure | None, now: int) -> Iterator[Claim]:
    """Yield a finding if the lease was held when it was deleted; none if it was free, or may have been."""
    silence = (before.until or 0) - before.last_renewal
    if not before.is_deleted or (before.is_writer and silence > 5 * (history.renewals.usual or silence) // 4):
        return
    who, message = before.deleted_by, _describe_deletion(history, before, now)
    if before.had_expired:
        message += f", which had not renewed it for {length(silence)}: it had expired"
    if after is not None:
        bound = length if before.is_end_dated else at_most
        message += f"; {describe_creation(after)} {_later(after, bound)}"
    # Who creates it again once the lease would have expired waited for as long as after any loss.
    latest = after.since if after is not None else before.until
    may_lead = not has_expired(before.last_renewal, before.duration, latest or 0) or before.duration is None
    # No one leads by a heartbeat, and an API server that ends deletes its own.
    is_election = not is_named_for_heartbeats(history.namespace, history.name)
    is_taken = is_election and after is not None and after.holder != before.holder and may_lead
    if is_taken and _is_of_deleted_namespace(history, before):
        is_taken = False
        message += "; the pods of a deleted namespace are deleted before anything is created there again"
    if is_taken:
        message += (
            f": two may have led at once, as most clients lead for up to {length(goes_on_for(before.duration))} after "
            "their last renewal"
        )
    if is_taken:
        severity = Severity.ERROR
    elif is_election:
        severity = Severity.WARNING
    else:
        severity = Severity.INFO
    if who and who.name:
        advice = advise_after_deletion(history, who)
    else:
        sentence = "A watch does not show who deleted it; the audit log does:"
        if history.kind is InputKind.AUDIT_LOG:
            sentence = "The log does not show its deletion. Look for the part of the log that is missing:"
        advice = Advice(sentence, command_for_audit_log(history.namespace, history.name))
    over = None if after is None else after.since
    yield make_claim(
        *(history, "lease-deleted", severity, message, advice, "deleted"),
        over_since=over,
        arguments={
            "previous": _identity(before),
            "identity": _identity(after) if after else None,
            "by": BySomeone(who),
            **interval_of(before.ended, after.taken if after else None),
        },
    )


def _is_of_deleted_namespace(history: LeaseHistory, tenure: Tenure) -> bool:
    """Return whether the pods of a holder were deleted with the lease, before anything could be created there again."""
    deleter, own = tenure.deleted_by, tenure.processes.own
    place = UserInfo(own.user).service_account if own and own.pod else None
    is_namespace = deleter is not None and deleter.user == NAMESPACE_CONTROLLER
    return is_namespace and place is not None and place[0] == history.namespace


def _describe_deletion(history: LeaseHistory, before: Tenure, now: int) -> str:
    """Say who deleted a held lease, and when it was gone: with finalizers that is when the last of them is removed."""
    who, last = before.deleted_by, before.last_finalizer_by
    by = f"{writer(who)} deleted the lease" if who and who.name else "the lease was deleted"
    later = " or later" if not before.is_end_dated or (history.kind is InputKind.WATCH and not who) else ""
    at = "" if before.until is None else f" at {clock(before.until, now)}{later}"
    held = "held it"
    if before.is_writer:
        held = "wrote it regularly" if before.last_renewal > before.since else "had written it last"
    if not before.marked_at or (before.until or 0) - before.marked_at < SECOND:
        return f"{by}{at} while {name(before.holder)} {held}"
    remover = f", when {writer(last)} removed the last one," if last and last.user else ""
    asked = f"{by} at {clock(before.marked_at, now)}, but it had finalizers"
    return f"{asked}: it was gone{at}{remover} while {name(before.holder)} {held}"


def _later(after: Tenure, bound: Callable[[int], str]) -> str:
    unheld = after.leaderless or 0
    return f"{bound(unheld)} later" if unheld >= SHORTEST else "at once"


def _find_second_writers(history: LeaseHistory, status: LeaseStatus | None, now: int) -> Iterator[Claim]:
    several = [one for one in history.tenures if one.processes.has_several_writers and len(one.processes.writers) > 1]
    if several:
        yield _shared_identity(history, several[-1], now)
    elif history.renewals.is_doubled and status is not None and status.holder:
        yield _claim_doubled_renewals(history, status.holder)
    yield from _applications(history, status)


def _shared_identity(history: LeaseHistory, tenure: Tenure, now: int) -> Claim:
    writers = [writer(one) for one in tenure.processes.writers]
    who = " and ".join([*sorted(writers[-3:]), *(["others"] if len(writers) > 3 else [])])
    # It goes on while at least two renew, however often.
    last = sorted([tenure.last_renewal, *(other.last for other in tenure.processes.others.values())])[-2]
    lasts = min(tenure.duration or 0, history.duration or 0)
    is_over = tenure.until is not None or now - last >= lasts * SECOND
    over = last if is_over else 0
    # They may go on in a later tenure of their identity.
    is_again = tenure.until is not None and history.holder is not None and history.holder.holder == tenure.holder
    # Of renewals that were not seen it is known until when they were made.
    is_unseen = (tenure.has_unseen_renewals and not is_over) or history.may_lack_writes(last, now)
    is_unknown = is_again or is_unseen or not (is_over or tenure.is_renewed_last_by_own)
    used, renew = ("was used", "renewed") if is_unknown or is_over else ("is used", "renew")
    is_in_turns = tenure.processes.renews_in_turns
    message = (
        f"one identity, {name(tenure.holder)}, {used} by several processes that {renew} in turns, at least {who}, as "
        "if each led"
    )
    return make_claim(
        *(
            history,
            "identity-shared",
            Severity.ERROR if is_in_turns else Severity.WARNING,
            message if is_in_turns else _describe_following(tenure, now),
            advise_after_sharing(history, tenure),
            "shared-identity",
        ),
        over_since=None if is_unknown else over,
        arguments={"identity": _identity(tenure)},
    )


def _describe_following(tenure: Tenure, now: int) -> str:
    """Say that a user went on where another one had renewed: a process may get other credentials."""
    processes = tenure.processes
    other = processes.sharers[-1]
    before = f", and {writer(processes.own)} no more" if processes.own else ""
    renewed = f"from {clock(processes.others[other].first, now)} on {writer(other)} renewed it as {name(tenure.holder)}"
    return f"{renewed}{before}: its process has other credentials since, or another one writes in its name"


def _claim_doubled_renewals(history: LeaseHistory, holder: str) -> Claim:
    intervals = list(history.renewals.latest)[-4:]
    shown = ", ".join(f"{one / 1_000_000:.1f}" for one in intervals)
    message = (
        f"{name(holder)} is renewed in two rhythms (the last intervals: {shown} s), as if by two processes under one "
        "identity"
    )
    sentence = "A watch does not show who writes; the audit log does:"
    advice = Advice(sentence, command_for_audit_log(history.namespace, history.name))
    return make_claim(
        history, "identity-shared", Severity.WARNING, message, advice, "shared-identity", arguments={"identity": holder}
    )


def _applications(history: LeaseHistory, status: LeaseStatus | None) -> Iterator[Claim]:
    users = {
        one.name: one
        for tenure in history.tenures
        for one in tenure.processes.writers
        if tenure.processes.renewals or tenure.processes.is_sure
    }
    # Without objects a log shows only who wrote, and beside a holder another one may write in its name.
    held = all(
        len({one.name for one in tenure.processes.writers}) < 2 and not tenure.is_writer for tenure in history.tenures
    )
    if any(tenure.processes.writers for tenure in history.tenures):
        if len(users) < 2 or any(user.startswith("system:") for user in users):
            return
        are_accounts = all("/" in user for user in users)
        kind, names = "service accounts" if are_accounts else "users", sorted(users)
    else:
        renewed = [one for one in history.tenures if one.last_renewal != one.since]
        managers = {one.manager for one in renewed if one.until is not None and one.manager}
        if history.tenure and history.tenure.until is None and status and status.manager:
            managers.add(status.manager)
        # Some electors apply the lease under their identity: that names no program. Who edits a lease holds none.
        managers -= {one.holder for one in history.tenures}
        managers = {one for one in managers if not one.startswith("kubectl")}
        if len(managers) < 2 or "kube-apiserver" in managers:
            return
        kind, names = "programs (by field manager)", sorted(managers)
    shown = ", ".join(name(one) for one in names[:_MAX_NAMED])
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    message = f"at least {len(names)} {kind} have {'held' if held else 'written'} this lease: {shown}{more}"
    sentence = "If they are two applications, give each a lease name (election ID) of its own. To see what runs there:"
    severity = Severity.WARNING
    if held and _has_passed_on(history):
        message += (
            ", one after the other: one application whose new version writes under another name, or two applications, "
            "of which one then always waits"
        )
        sentence = f"If that was one application, no action is needed. {sentence}"
        severity = Severity.INFO if _is_seen_to_wait_no_more(history) else Severity.WARNING
    elif _differ_by_ordinal(names):
        message += ": one application of which each replica has its own, or several applications"
        sentence = f"If they are replicas of one application, no action is needed. {sentence}"
        severity = Severity.INFO
    advice = Advice(sentence, f"{kubectl_in(history.namespace)} get pods -o wide")
    yield make_claim(
        history, "lease-shared", severity, message, advice, "shared-lease", arguments={"identities": names}
    )


def _differ_by_ordinal(names: Sequence[str]) -> bool:
    """Return whether names are equal but for a number at the end, as those of the pods of a StatefulSet."""
    return all(map(_ORDINAL.search, names)) and len({_ORDINAL.sub("", one) for one in names}) == 1


def _has_passed_on(history: LeaseHistory) -> bool:
    """Return whether each user or program had a lease once, took it when it was free, and no earlier one asks for it.

    So it is with a new version under another account. Of two applications, the one that waits asks for it.
    """
    if any(one.may_be_stolen or one.is_close for one in history.tenures):
        return False
    names = [_program_of(one) for one in history.tenures]
    followed = [one for one, _ in groupby(filter(None, names))]
    return len(followed) == len(set(followed)) and not _is_asked_for_by_another(history)


def _program_of(tenure: Tenure) -> str:
    return tenure.processes.writers[0].name if tenure.processes.writers else tenure.manager


def _is_asked_for_by_another(history: LeaseHistory) -> bool:
    """Return whether a process of another user than the last holder's read the lease while that one had it."""
    last, requests = history.tenures[-1], history.requests
    others = {
        who.user: who.name
        for one in history.tenures
        for who in one.processes.writers
        if _program_of(one) != _program_of(last)
    }
    names = (one for user, name in others.items() for one in (name, *requests.accounts.get(user, ())))
    return any(requests.readers.get(one, (0, 0))[1] > last.since for one in names)


def _is_seen_to_wait_no_more(history: LeaseHistory) -> bool:
    """Return whether a log has reads of the lease, so that one that still waits for it would be heard."""
    return history.kind is InputKind.AUDIT_LOG and bool(history.requests.readers)


def _find_refusals(history: LeaseHistory, known: Sequence[tuple[int, int]], now: int) -> Iterator[Claim]:
    """Yield a finding for each writer with refused writes, but not for those that explain another finding."""
    groups: dict[tuple[Writer, By, str], list[Refusal]] = {}
    for refusal in history.requests.refusals:
        is_known = any(start <= refusal.at <= end for start, end in known) or has_lost_race(refusal, history)
        if refusal.is_denied_write and not is_known:
            groups.setdefault((refusal.writer.process, refusal.by, refusal.name), []).append(refusal)
    for key in list(groups)[-causes.MAX_OF_A_KIND :]:
        yield _claim_refusals(history, groups[key], now)
    writers = {(who, by) for who, by, _ in groups}
    reads: dict[tuple[Writer, By], list[Refusal]] = {}
    for refusal in history.requests.refusals:
        key_of_reads = refusal.writer.process, refusal.by
        is_known = any(start <= refusal.at <= end for start, end in known) or key_of_reads in writers
        if refusal.is_read and refusal.is_denied and not is_known:
            reads.setdefault(key_of_reads, []).append(refusal)
    often = [group for group in reads.values() if len(group) >= _MANY_READS]
    yield from (_claim_refused_reads(history, group, now) for group in often[-causes.MAX_OF_A_KIND :])


def _claim_refused_reads(history: LeaseHistory, group: Sequence[Refusal], now: int) -> Claim:
    """Return a finding about a process that asks for a lease again and again, and may not even read it."""
    last = group[-1]
    who = writer(last.writer) if last.writer.user else "an unknown user"
    by = _REFUSED_BY.get(last.by) or (f" by {last.by.value} {last.name}" if last.name else "")
    message = f"{len(group)} reads by {who} refused with {last.code}{by}, the last one at {clock(last.at, now)}"
    message += f": {last.message}" if last.message else ""
    message += "; who may not read the lease does not take it"
    return make_claim(
        *(history, "read-refused", Severity.WARNING, message, advise_after_refusal(history, last), "refused"),
        over_since=_over_since(history, last.at, now),
        arguments={
            "by": BySomeone(last.writer),
            "code": last.code,
            "count": len(group),
            "from": group[0].received,
            "to": last.at,
        },
    )


def _claim_refusals(history: LeaseHistory, group: Sequence[Refusal], now: int) -> Claim:
    last, codes = group[-1], " and ".join(map(str, sorted({one.code for one in group})))
    by = _REFUSED_BY.get(last.by) or (f" by {last.by.value} {last.name}" if last.name else "")
    who = writer(last.writer) if last.writer.user else "an unknown user"
    message = f"{count(len(group), 'write')} by {who} refused with {codes}{by}, the last one at {clock(last.at, now)}"
    if last.message:
        message += f": {last.message}"
    reads = [
        one for one in history.requests.refusals if one.is_read and one.at > last.at and _is_refused_alike(one, last)
    ]
    if reads:
        message += f"; and {count(len(reads), 'read')} after that, the last one at {clock(reads[-1].at, now)}"
    holder = history.tenure
    arguments = {
        "by": BySomeone(last.writer),
        "code": last.code,
        "count": len(group),
        "from": group[0].received,
        "to": last.at,
    }
    over = _over_since(history, (reads or group)[-1].at, now)
    # Other webhooks, and other rules of ours, refuse writes that would not have taken the lease.
    is_ours = last.by is By.WEBHOOK and "lease-webhook" in last.name
    is_takeover = is_ours and "spec.holderIdentity" in last.message
    if is_takeover and last.writer.pod and holder and last.writer.process not in holder.processes.writers:
        sentence = f"The webhook kept the lease for {name(holder.holder)}. To see what the other writer is:"
        advice = Advice(sentence, command_for_pod_of_writer(history.namespace, last.writer))
        return make_claim(
            *(history, "write-refused", Severity.WARNING, message, advice, "denied"),
            over_since=over,
            arguments=arguments,
        )
    advice = advise_after_refusal(history, last)
    return make_claim(
        *(history, "write-refused", Severity.WARNING, message, advice, "refused"),
        over_since=over,
        arguments=arguments,
    )


def _is_refused_alike(refusal: Refusal, other: Refusal) -> bool:
    """Return true if the same part of an API server refused both, and both are of one process."""
    return refusal.is_denied and (refusal.by, refusal.writer.process) == (other.by, other.writer.process)


def _over_since(history: LeaseHistory, last: int, now: int) -> int:
    """Return when refusals ended; 0 if they go on: the last one is within a duration of the lease."""
    return 0 if now - last < (history.duration or _DURATION) * SECOND else last


def _find_fenced_writes(history: LeaseHistory, now: int) -> Iterator[Claim]:
    """Yield a finding for each writer whose writes a fence refused because it did not hold the lease."""
    groups: dict[Writer, list[FenceReport]] = {}
    for report in history.requests.fenced:
        groups.setdefault(report.writer.process, []).append(report)
    for who, group in list(groups.items())[-causes.MAX_OF_A_KIND :]:
        last = group[-1]
        message = (
            f"fence {name(last.fence)} refused {count(len(group), 'write')} by {writer(who)} that did not hold the "
            f"lease, from {clock(group[0].at, now)} to {clock(last.at, now)}, the last one: {last.target}"
        )
        sentence = "The fence refused what was written without the lease. To see why the writer did not stop:"
        advice = Advice(sentence, command_for_pod_of_writer(history.namespace, who))
        yield make_claim(
            *(history, "write-fenced", Severity.WARNING, message, advice, "fenced"),
            over_since=_over_since(history, last.at, now),
            arguments={"by": BySomeone(who), "count": len(group), "from": group[0].at, "to": last.at},
        )
