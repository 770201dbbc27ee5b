"""Claims about requests that an API server, a webhook, a policy or a fence refused."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from webhook.analysis.claims.advice.after_refusal import (
    advise_after_refusal,
    advise_on_replaced_account,
    has_renewed_since_refusals,
)
from webhook.analysis.claims.claim import Advice, Claim, WriteAuthor
from webhook.analysis.claims.commands import make_command_for_pod_of_writer, name_pods
from webhook.analysis.claims.diagnosis import ReplacedAccount
from webhook.analysis.claims.evidence.contenders.askers import join_names
from webhook.analysis.claims.evidence.silent_holders import silences
from webhook.analysis.claims.findings.lease_claim import MAX_NAMED, make_claim
from webhook.analysis.claims.handovers import has_lost_race
from webhook.analysis.claims.words import describe_writer, format_clock, format_count, format_name
from webhook.analysis.history.audit_log.addresses import get_address
from webhook.analysis.history.audit_log.refusal import UNAUTHENTICATED, Refusal, RefusedBy
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.renewals import DEFAULT_DURATION
from webhook.analysis.inputs.items import FenceReport, Writer
from webhook.findings import Severity
from webhook.kubernetes.times import SECOND, format_length

_Group = TypeVar("_Group", list[Refusal], list[FenceReport])
_MANY_READS: Final = 3
"""Refused reads after which a process waits for the lease, and not a person who looked at it."""
_REFUSED_BY: Final = {
    RefusedBy.RIGHTS: " for lack of permission",
    RefusedBy.CREDENTIALS: ", as no credentials were accepted",
    RefusedBy.FIELDS: " because another field manager owns the fields",
    RefusedBy.OTHER: "",
}


def is_nameless(refusal: Refusal) -> bool:
    """Return whether a write was refused because the API server did not know who wrote."""
    return refusal.code == UNAUTHENTICATED and not refusal.writer.user and not refusal.is_read


def _describe_senders(history: LeaseHistory, group: Sequence[Refusal]) -> str:
    """Return whose requests were refused: where an API server knows no user, from where they came.

    A client says itself which program it is; an address may be that of a proxy.
    """
    last = group[-1]
    if last.is_anonymous:
        return f"{describe_writer(last.writer)} (they carried no credentials){_describe_sources(group)}"
    if last.writer.user:
        return describe_writer(last.writer)
    who = "an unknown user" if len(group) == 1 else "one or more unknown users"
    sources = list(dict.fromkeys(one.source for one in group if one.source))
    if not sources:
        return who
    address, _, program = sources[-1].partition(" ")
    others = f" and {format_count(len(sources) - 1, 'other')}" if len(sources) > 1 else ""
    writers = history.requests.sources.get(sources[-1], ())[-MAX_NAMED:]
    known = " and ".join(dict.fromkeys(map(describe_writer, writers)))  # pods of one name are several writers
    accepted = f"; from there, those of {known} were accepted" if known else ""
    return f"{who} ({format_name(program)} at {format_name(address)}{others}{accepted})"


def _describe_sources(group: Sequence[Refusal]) -> str:
    """Say from which programs, by what they say themselves, and from which addresses requests came."""
    parts = [one.source.partition(" ") for one in group if one.source]
    programs = [format_name(one) for one in dict.fromkeys(program for _, _, program in parts if program)]
    addresses = [format_name(one) for one in dict.fromkeys(address for address, _, _ in parts if address)]
    program = f" {join_names(programs)}" if programs else ""
    return f", from{program} at {join_names(addresses)}," if addresses else ""


def find_refusals(
    history: LeaseHistory, known: Sequence[tuple[int, int]], replaced: ReplacedAccount | None, now: int
) -> Iterator[Claim]:
    """Yield a finding for each writer with refused writes, but not for those that explain another finding.

    `replaced` is the account whose tokens were no longer accepted, if requests without a name were those of its pods.
    """
    groups: dict[tuple[Writer, RefusedBy, str], list[Refusal]] = {}
    for refusal in history.requests.refusals:
        if refusal.is_denied_write and not has_lost_race(refusal, history):
            groups.setdefault((refusal.writer.process, refusal.by, refusal.name), []).append(refusal)
    # Of a writer that is named, all are counted, also those that explain something else.
    shown = {key: group for key, group in groups.items() if _count_unexplained(group, known)}
    yield from (_claim_refusals(history, group, replaced, now) for group in _find_latest(shown.values()))
    writers = {(who, by) for who, by, _ in shown}
    reads: dict[tuple[Writer, RefusedBy], list[Refusal]] = {}
    for refusal in history.requests.refusals:
        key_of_reads = refusal.writer.process, refusal.by
        if refusal.is_read and refusal.is_denied and key_of_reads not in writers:
            reads.setdefault(key_of_reads, []).append(refusal)
    often = [group for group in reads.values() if _count_unexplained(group, known) >= _MANY_READS]
    yield from (_claim_refused_reads(history, group, replaced, now) for group in _find_latest(often))


def _describe_reads_after(group: Sequence[Refusal], reads: Sequence[Refusal], least: str, now: int) -> str:
    """Count the reads that were refused alike after writes; of unknown users, those from elsewhere by themselves."""
    addresses = {get_address(one.source) for one in group}
    is_nameless_group = not group[-1].writer.user
    beside = [one for one in reads if is_nameless_group and get_address(one.source) not in addresses]
    own = [one for one in reads if one not in beside]
    text = ""
    if own:
        there = " from there" if beside else ""
        text = (
            f"; and {least}{format_count(len(own), 'read')}{there} after that, "
            f"the last one at {format_clock(own[-1].at, now)}"
        )
    if beside:
        named = [format_name(one) for one in dict.fromkeys(get_address(one.source) for one in beside)]
        last = format_clock(beside[-1].at, now)
        text += f"; and {least}{format_count(len(beside), 'read')} from {join_names(named)}, the last one at {last}"
    return text


def _count_unexplained(group: Sequence[Refusal], known: Sequence[tuple[int, int]]) -> int:
    """Return how many refusals explain no other finding, which is about one of the times in `known`."""
    return sum(1 for one in group if not any(start <= one.at <= end for start, end in known))


def _find_latest(groups: Iterable[_Group]) -> Sequence[_Group]:
    """Return the groups with the latest last members, in the order of these."""
    return sorted(groups, key=lambda group: group[-1].at)[-silences.MAX_OF_A_KIND :]


def _advise(history: LeaseHistory, last: Refusal, replaced: ReplacedAccount | None, now: int) -> Advice:
    # Of an address from which nobody was accepted, nothing says whose requests these are.
    if replaced is not None and last.is_unknown_user and history.requests.sources.get(last.source):
        return advise_on_replaced_account(history, last, replaced, now)
    return advise_after_refusal(history, last, now)


def _claim_refused_reads(
    history: LeaseHistory, group: Sequence[Refusal], replaced: ReplacedAccount | None, now: int
) -> Claim:
    """Return a finding about a process that asks for a lease again and again, and may not even read it."""
    last = group[-1]
    who = _describe_senders(history, group)
    by = _REFUSED_BY.get(last.by) or last.refuser
    forgotten = history.requests.count_forgotten_reads(last.writer.process, last.by)
    least, number = "at least " if forgotten is None else "", len(group) + (forgotten or 0)
    message = (
        f"{least}{number} reads by {who} refused with {last.code}{by}, the last one at {format_clock(last.at, now)}"
    )
    message += f": {last.shown_message}" if last.message else ""
    return make_claim(
        history,
        "read-refused",
        Severity.WARNING,
        message,
        _advise(history, last, replaced, now),
        "refused",
        over_since=_find_end(history, last.at, now),
        arguments={
            "by": WriteAuthor(last.writer),
            "code": last.code,
            "count": number,
            "from": group[0].received,
            "to": last.at,
        },
    )


def _claim_refusals(
    history: LeaseHistory, group: Sequence[Refusal], replaced: ReplacedAccount | None, now: int
) -> Claim:
    last, codes = group[-1], " and ".join(map(str, sorted({one.code for one in group})))
    by = _REFUSED_BY.get(last.by) or last.refuser
    who = _describe_senders(history, group)
    least = "at least " if history.requests.has_forgotten_of(last.writer.process) else ""
    message = (
        f"{least}{format_count(len(group), 'write')} by {who} refused with {codes}{by}, "
        f"the last one at {format_clock(last.at, now)}"
    )
    if last.message:
        message += f": {last.shown_message}"
    reads = [
        one for one in history.requests.refusals if one.is_read and one.at > last.at and _is_refused_alike(one, last)
    ]
    message += _describe_reads_after(group, reads, least, now)
    expiry = _describe_early_expiry(history, group)
    message += expiry
    holder = history.latest_tenure
    arguments = {
        "by": WriteAuthor(last.writer),
        "code": last.code,
        "count": len(group),
        "from": group[0].received,
        "to": last.at,
    }
    over = _find_end(history, (reads or group)[-1].at, now)
    # Other webhooks, and other rules of ours, refuse writes that would not have taken the lease.
    is_ours = last.by is RefusedBy.WEBHOOK and "lease-webhook" in last.name
    is_takeover = is_ours and "spec.holderIdentity" in last.message
    if is_takeover and last.writer.pod and holder and last.writer.process not in holder.processes.writers:
        sentence = f"The webhook kept the lease for {format_name(holder.holder)}. To see what the other writer is:"
        command = make_command_for_pod_of_writer(history.namespace, last.writer)
        advice = Advice(sentence, command, name_pods(last.writer))
        return make_claim(
            history,
            "write-refused",
            Severity.WARNING,
            message,
            advice,
            "denied",
            over_since=over,
            arguments=arguments,
        )
    # An API server that starts does not know rights yet.
    may_write = history.find_last_renewal_by(last.writer.user) > last.at
    is_passing = len(group) == 1 and last.by is RefusedBy.RIGHTS and may_write
    if is_passing:
        message += "; later writes of the same user were stored"
    severity, advice = Severity.INFO if is_passing else Severity.WARNING, _advise(history, last, replaced, now)
    # What kept a holder from renewing it is over with its next renewal.
    if (over or expiry) and has_renewed_since_refusals(history, last):
        advice = replace(advice, sentence=f"The refusals have ended. {advice.sentence}")
    return make_claim(
        history,
        "write-refused",
        severity,
        message,
        advice,
        "refused",
        over_since=over,
        arguments=arguments,
    )


def _describe_early_expiry(history: LeaseHistory, group: Sequence[Refusal]) -> str:
    """Say that a holder was refused until its lease had expired, where too few renewals are seen to call one late."""
    first, last = group[0].received, group[-1].at
    spanning = (one for one in history.renewals.early_expiries if one.start <= first and last <= one.end)
    silence = next(spanning, None)
    if silence is None or history.is_partial:
        return ""
    tenure = history.find_tenure_of_silence(silence)
    if tenure is None or tenure.is_by(group[-1].writer) is not True:
        return ""
    return f"; the lease, which lasts {silence.duration} s, was not renewed for {format_length(silence.length)}"


def _is_refused_alike(refusal: Refusal, other: Refusal) -> bool:
    """Return true if the same part of an API server refused both, and both are of one process."""
    return refusal.is_denied and (refusal.by, refusal.writer.process) == (other.by, other.writer.process)


def _find_end(history: LeaseHistory, last: int, now: int) -> int:
    """Return when refusals ended; 0 if they go on: the last one is within a duration of the lease."""
    return 0 if now - last < (history.duration or DEFAULT_DURATION) * SECOND else last


def find_fenced_writes(history: LeaseHistory, now: int) -> Iterator[Claim]:
    """Yield a finding for each writer whose writes a fence refused because it did not hold the lease."""
    groups: dict[Writer, list[FenceReport]] = {}
    for report in history.requests.fenced:
        groups.setdefault(report.writer.process, []).append(report)
    for group in _find_latest(groups.values()):
        last, who = group[-1], group[-1].writer.process
        least = "at least " if history.requests.may_have_forgotten_fenced else ""
        writes = f"{least}{format_count(len(group), 'write')}"
        message = (
            f"fence {format_name(last.fence)} refused {writes} by {describe_writer(who)} that did not hold the lease, "
            f"from {format_clock(group[0].at, now)} to {format_clock(last.at, now)}, the last one: {last.target}"
        )
        sentence = "The fence refused what was written without the lease. To see why the writer did not stop:"
        advice = Advice(sentence, make_command_for_pod_of_writer(history.namespace, who), name_pods(who))
        yield make_claim(
            history,
            "write-fenced",
            Severity.WARNING,
            message,
            advice,
            "fenced",
            over_since=_find_end(history, last.at, now),
            arguments={"by": WriteAuthor(who), "count": len(group), "from": group[0].at, "to": last.at},
        )
