"""The one door: a request, a policy and a moment give a verdict. Every finding is collected, then one decision."""

from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from webhook.api.field import ErrorType, FieldError
from webhook.api.request import KIND_OF, SERVED_VERSIONS, AdmissionRequest, Operation, Resource
from webhook.api.text import cut, escape, quote
from webhook.api.verdict import Cause, JudgedFinding, Mode, Verdict
from webhook.policy.model import LeasePolicy, Policy
from webhook.rules.change import NOBODY, CandidateChange, LeaseChange
from webhook.rules.events import Event
from webhook.rules.quiet_renewal import is_quiet_renewal
from webhook.rules.registry import RULES_BY_OCCASION
from webhook.rules.rule import MOST_FINDINGS, Finding, Rule

LONGEST_WARNING: Final = 256
"""Characters to which the API server cuts warnings once all of a request exceed its budget; one alone it shows whole.

Source: kubernetes/apiserver `pkg/endpoints/filters/warning.go`.
"""

LONGEST_WARNINGS: Final = 4096
"""Characters of all warnings of a request; kube-apiserver drops what goes beyond."""

LARGEST_CAUSES: Final = 24 * 1024
"""Bytes of JSON that causes may take; the whole answer stays below 64 KiB."""

LARGEST_MESSAGE: Final = 12 * 1024
"""Bytes of JSON that the sentences of a message may take."""

OBJECT_TYPES: Final = "object-types"
"""The id under which a wrong JSON type is reported: the document does not decode, so no rule could run."""


_LEASES: Final = Resource.LEASES.value


class _Judged(Struct, frozen=True):
    """A finding with its level: what it would be (`uncapped`), what it is (`mode`), and why the two differ."""

    rule: str
    error: FieldError
    mode: Mode
    uncapped: Mode
    because: str = ""


def evaluate(request: AdmissionRequest, policy: Policy, now: int, *, judge_writer: bool = True) -> Verdict:
    """Judge one write.

    Args:
        request: a decoded review.
        policy: how strict to be.
        now: the shell's clock in microseconds since 1970; it counts only where a stamp is missing or a rule names it.
        judge_writer: False leaves out rules about the writer, for documents that nobody has sent.

    """
    if policy.mode is Mode.OFF:
        return Verdict(request.uid, allowed=True, audit_annotations=(("policy", f"{_name(policy)} off"),))
    if request.contradiction:
        return _contradicts(request, policy)
    if request.operation is Operation.CONNECT or request.sub_resource or not request.is_ours:
        return _not_judged(request, policy)
    lease_policy = policy.for_lease(request.namespace, request.name)
    if request.object_errors:
        judged = [_judge_parity(OBJECT_TYPES, error, Mode.DENY, policy) for error in request.object_errors]
        return _decide(request, policy, "", judged)
    change: LeaseChange | CandidateChange
    if request.resource == _LEASES:
        change = LeaseChange.of(request, now, lease_policy.limits, lease_policy.binding)
        if is_quiet_renewal(change):
            return _decide(request, policy, Event.RENEWAL, [])
    else:
        change = CandidateChange.of(request, now, lease_policy.limits, lease_policy.binding)
    event = change.event
    found = [
        (rule, finding)
        for rule in RULES_BY_OCCASION[request.resource, request.operation, event]
        for finding in rule.check(change)
    ]
    judged = _judge(found, request, policy, lease_policy, now, judge_writer=judge_writer) if found else []
    return _decide(request, policy, event, judged)


# ---- levels ---------------------------------------------------------------------------------------------------------


def _judge(
    found: Iterable[tuple[Rule, Finding]],
    request: AdmissionRequest,
    policy: Policy,
    lease_policy: LeasePolicy,
    now: int,
    *,
    judge_writer: bool,
) -> list[_Judged]:
    """The findings that count, each at the lower of its tier, its rule's mode and the policy's cap."""
    judged = []
    exempt: bool | None = None
    for rule, finding in found:
        if rule.about_writer and not judge_writer:
            continue
        level = min(finding.tier, lease_policy.modes[rule.id])
        if level is Mode.OFF:
            continue
        if not rule.parity and not rule.never_exempt:
            if exempt is None:
                user = request.user
                exempt = policy.exempts(user or NOBODY, request.namespace, request.name, now)
            if exempt:
                continue
        judged.append(_judge_one(rule, finding, level, policy))
    return judged


def _judge_one(rule: Rule, finding: Finding, level: Mode, policy: Policy) -> _Judged:
    if finding.without_stamps and level is Mode.DENY and not policy.enforce_without_stamps:
        mode = min(Mode.WARN, policy.mode)
        return _Judged(rule.id, finding.error, mode, level, "the lease has no API server stamps")
    return _judge_parity(rule.id, finding.error, level, policy)


def _judge_parity(rule: str, error: FieldError, level: Mode, policy: Policy) -> _Judged:
    mode = min(level, policy.mode)
    because = "" if mode is level else _cap_reason(policy)
    return _Judged(rule, error, mode, level, because)


def _cap_reason(policy: Policy) -> str:
    return "preset observe" if policy.preset == "observe" else f"policy mode {policy.mode.word}"


def _name(policy: Policy) -> str:
    return f"{policy.preset} {policy.digest}"


# ---- verdicts -------------------------------------------------------------------------------------------------------


def _decide(request: AdmissionRequest, policy: Policy, event: str, judged: list[_Judged]) -> Verdict:
    """One decision over all findings: 403 when any denying one is Forbidden by policy, else 422."""
    if not judged:
        return Verdict(
            request.uid, allowed=True, audit_annotations=(("event", event), ("policy", _name(policy))), event=event
        )
    denying = [one for one in judged if one.mode is Mode.DENY][:MOST_FINDINGS]
    annotations = [("event", event)] if event else []
    annotations.append(("rules", ",".join(_once(f"{one.rule}={one.mode.word}" for one in judged))))
    would_deny = _once(one.rule for one in judged if one.mode < one.uncapped is Mode.DENY)
    if would_deny:
        annotations.append(("would-deny", ",".join(would_deny)))
    annotations.append(("policy", _name(policy)))
    # The sort is stable: it only makes sure that what decided is among the first.
    told = judged if len(judged) <= MOST_FINDINGS else sorted(judged, key=lambda one: -one.mode)[:MOST_FINDINGS]
    findings = tuple(JudgedFinding(one.rule, one.mode, one.error) for one in told)
    warnings = _within_budget(_once(_warning(one) for one in judged if one.mode is Mode.WARN))
    if not denying:
        return Verdict(
            request.uid,
            allowed=True,
            warnings=warnings,
            audit_annotations=tuple(annotations),
            findings=findings,
            event=event,
        )
    forbidden = any(one.error.type is ErrorType.FORBIDDEN and one.rule not in _PARITY for one in denying)
    causes = _first(
        (Cause(one.error.type.value, _stands_alone(one.error.body, one.rule), one.error.field) for one in denying),
        LARGEST_CAUSES,
    )
    sentences = _first(_once(_stands_alone(str(one.error), one.rule) for one in denying[:10]), LARGEST_MESSAGE)
    message = sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"
    if not forbidden:
        message = f"{request.kind}.{request.group} {quote(request.name)} is invalid: {message}"
    return Verdict(
        request.uid,
        allowed=False,
        code=403 if forbidden else 422,
        reason="Forbidden" if forbidden else "Invalid",
        message=message,
        causes=tuple(causes),
        warnings=warnings,
        audit_annotations=tuple(annotations),
        findings=findings,
        event=event,
    )


_PARITY: Final = frozenset(
    {OBJECT_TYPES} | {rule.id for rules in RULES_BY_OCCASION.values() for rule in rules if rule.parity}
)


def _stands_alone(text: str, rule: str) -> str:
    """Kubectl shows either the causes or the message, never both, and not always our name."""
    return f"{text} (lease webhook, rule {rule})"


def _warning(judged: _Judged) -> str:
    if judged.because:
        text = f"{judged.rule}: would be denied; allowed because {judged.because}: {judged.error}"
    else:
        text = f"{judged.rule}: {judged.error}"
    return cut(text, 4 * LONGEST_WARNING)


def _within_budget(warnings: list[str]) -> tuple[str, ...]:
    """The warnings that kube-apiserver shows, the last one telling of those that it would drop without a word."""
    if sum(map(len, warnings)) <= LONGEST_WARNINGS:
        return tuple(warnings)
    short = _once(cut(warning, LONGEST_WARNING - len("...")) for warning in warnings)
    kept = LONGEST_WARNINGS // LONGEST_WARNING - 1
    if len(short) <= kept:
        return tuple(short)
    return (*short[:kept], "lease webhook: more was found than warnings can tell; mend these first")


T = TypeVar("T")


def _first(items: Iterable[T], largest: int) -> list[T]:
    """The first items that together take no more than `largest` bytes of JSON, and one at least."""
    kept: list[T] = []
    size = 0
    for item in items:
        size += len(msgspec.json.encode(item))
        if kept and size > largest:
            break
        kept.append(item)
    return kept


def _once(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _contradicts(request: AdmissionRequest, policy: Policy) -> Verdict:
    text = f"{request.contradiction} (lease webhook)"
    return Verdict(
        request.uid,
        allowed=False,
        code=400,
        reason="BadRequest",
        message=text,
        causes=(),
        audit_annotations=(("policy", _name(policy)),),
    )


def _not_judged(request: AdmissionRequest, policy: Policy) -> Verdict:
    """A typo in a webhook configuration must not brick a cluster: what we do not know is allowed, and said."""
    resource = escape(
        cut(f"{request.resource}/{request.sub_resource}" if request.sub_resource else request.resource, 60)
    )
    known = SERVED_VERSIONS.get(request.resource)  # type: ignore[call-overload]
    if request.operation is Operation.CONNECT:
        what = f"CONNECT to {resource} is not judged"
    elif request.sub_resource:
        what = f"subresource {resource} is not judged"
    elif known and request.group == "coordination.k8s.io":
        what = f"version {quote(cut(request.version, 30))} of {resource} is not judged; known are {', '.join(known)}"
    else:
        what = f"{resource} of group {quote(cut(request.group, 60))} is not judged; known are {' and '.join(KIND_OF)}"
    return Verdict(
        request.uid,
        allowed=True,
        warnings=(f"lease webhook: {what}; narrow the rules of the webhook configuration",),
        audit_annotations=(("policy", _name(policy)),),
    )
