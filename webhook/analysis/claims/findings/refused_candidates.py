"""Claims about LeaseCandidates that an API server refused: it chooses a holder among those that it has stored."""

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.analysis.claims.advice.after_refusal import find_quota
from webhook.analysis.claims.claim import Advice, Claim, WriteAuthor
from webhook.analysis.claims.commands import WEBHOOKS, make_command_for_quota, make_options_to_act_as
from webhook.analysis.claims.evidence.contenders.askers import join_names, name_refused
from webhook.analysis.claims.evidence.coordination.election_facts import list_refused_candidates
from webhook.analysis.claims.findings.lease_claim import make_claim
from webhook.analysis.claims.words import describe_writer, format_clock, format_count, format_name
from webhook.analysis.history.audit_log.refusal import RefusedBy
from webhook.analysis.history.elections.refused_candidates import RefusedCandidate
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.findings import Severity
from webhook.kubernetes.times import MINUTE
from webhook.text.commands import make_kubectl_prefix, quote_name

_AMONG_STORED: Final = "an API server chooses only among those that are stored"
_ONGOING: Final = 1 * MINUTE
"""Who is refused tries again after a few seconds, and later and later."""
_POLICIES: Final = "kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings -o yaml"


def find_refused_candidates(histories: ClusterHistory, history: LeaseHistory, now: int) -> Iterator[Claim]:
    """Yield one claim about the writes, and one about the reads of who did not try to write, if there are any."""
    found = list_refused_candidates(histories, history)
    for is_read in (False, True):
        of_kind = [one for one in found if one.last.is_read is is_read]
        if of_kind:
            yield _claim_refusals(history, of_kind, now)


def _claim_refusals(history: LeaseHistory, found: Sequence[RefusedCandidate], now: int) -> Claim:
    """Return the claim about refused writes, or about refused reads."""
    last, number = found[-1].last, sum(one.count for one in found)
    what = "read" if last.is_read else "write"
    codes, writers = sorted({one.last.code for one in found}), list(dict.fromkeys(one.writer for one in found))
    by = join_names([describe_writer(one) for one in writers])
    message = (
        f"{format_count(number, what)} of LeaseCandidates for it, by {by}, "
        f"refused with {_join(codes)}, the last one at {format_clock(last.at, now)}: {_AMONG_STORED}"
    )
    message += f". Its answer: {last.message}" if last.message else ""
    return make_claim(
        history,
        f"{what}-refused",
        Severity.WARNING,
        message,
        advise_on_refused_candidates(found),
        "refused",
        over_since=0 if now - last.at < _ONGOING else last.at,
        arguments={
            "by": WriteAuthor(writers[0]) if len(writers) == 1 else None,
            "code": last.code if len(codes) == 1 else None,
            "count": number,
            "from": min(one.first for one in found),
            "to": last.at,
        },
    )


def describe_accepted_candidates(found: Sequence[RefusedCandidate], now: int) -> str:
    """Say until when LeaseCandidates were refused that were not any longer in the end."""
    number, last = sum(one.count for one in found), found[-1].last
    codes = _join(sorted({one.last.code for one in found}))
    requests = f"{format_count(number, 'request')} of {name_refused(found)} for LeaseCandidates"
    return (
        f"{requests} answered with {codes}, the last one at {format_clock(last.at, now)}, and none after that: "
        f"{_AMONG_STORED}"
    )


def advise_on_refused_candidates(found: Sequence[RefusedCandidate]) -> Advice:
    """Return what to do so that they are accepted, by who refused the latest one."""
    last = found[-1].last
    sentence = f"Without a stored LeaseCandidate, {name_refused(found)} cannot be chosen."
    if last.by is RefusedBy.RIGHTS:
        verb = last.lacked_verb or ("create" if last.is_creation else "update")
        options = make_options_to_act_as(last.writer.user, last.writer.groups)
        command = f"kubectl auth can-i {verb} leasecandidates.coordination.k8s.io -n {quote_name(found[-1].namespace)}"
        return Advice(f"{sentence} To see whether it may {verb} one now:", f"{command}{options}")
    if last.by is RefusedBy.WEBHOOK:
        return Advice(f"{sentence} See why webhook {format_name(last.name)} refuses that:", WEBHOOKS)
    if last.by is RefusedBy.POLICY:
        return Advice(f"{sentence} See why the policy refuses that:", _POLICIES)
    if quota := find_quota(last.message):
        namespace = found[-1].namespace
        left = "or delete one whose pod is gone, as it takes up the quota, too"
        command = f"{make_command_for_quota(namespace, quota)}; {make_kubectl_prefix(namespace)} get leasecandidates"
        return Advice(f"{sentence} Raise what ResourceQuota {format_name(quota)} allows of them, {left}:", command)
    pods = f"{make_kubectl_prefix(found[-1].namespace)} get pods,replicasets -o wide"
    return Advice(f"{sentence} Correct what was refused. To compare images:", pods)


def _join(codes: Sequence[int]) -> str:
    return " and ".join(map(str, codes))
