"""The one door: a request, a policy and a moment give a verdict. Every finding is collected, then one decision."""

from collections.abc import Container, Iterable

from webhook.api.field import FieldError
from webhook.api.request import AdmissionRequest, Operation
from webhook.api.verdict import Mode, Verdict
from webhook.decide import OBJECT_TYPES, LevelledFinding, contradicts, decide, not_judged, switched_off
from webhook.policy.model import LeasePolicy, Policy
from webhook.rules.change import NOBODY, change_made_by
from webhook.rules.events import Event
from webhook.rules.quiet_renewal import is_quiet_renewal
from webhook.rules.registry import RULES_BY_OCCASION
from webhook.rules.rule import Finding, Rule


def evaluate(request: AdmissionRequest, policy: Policy, now: int, *, judge_writer: bool = True) -> Verdict:
    """Judge one write.

    Args:
        request: a decoded review.
        policy: how strict to be.
        now: the shell's clock in microseconds since 1970; it counts only where a stamp is missing or a rule names it.
        judge_writer: False leaves out rules about the writer, for documents that nobody has sent.

    """
    if policy.mode is Mode.OFF:
        return switched_off(request, policy)
    if request.contradiction:
        return contradicts(request, policy)
    if request.operation is Operation.CONNECT or request.sub_resource or not request.is_ours:
        return not_judged(request, policy)
    lease_policy = policy.for_lease(request.namespace, request.name, request.operation)
    if request.object_errors:
        judged = [_capped(OBJECT_TYPES, error, Mode.DENY, policy) for error in request.object_errors]
        return decide(request, policy, "", judged)
    limits, binding = lease_policy.limits, lease_policy.binding
    if is_quiet_renewal(request, now, limits, binding):
        return decide(request, policy, Event.RENEWAL, [])
    change = change_made_by(request, now, limits, binding)
    event = change.event
    found = [
        (rule, finding)
        for rule in RULES_BY_OCCASION[request.resource, request.operation, event]
        for finding in rule.check(change)
    ]
    judged = _judge(found, request, policy, lease_policy, now, judge_writer=judge_writer) if found else []
    return decide(request, policy, event, judged)


def _judge(
    found: Iterable[tuple[Rule, Finding]],
    request: AdmissionRequest,
    policy: Policy,
    lease_policy: LeasePolicy,
    now: int,
    *,
    judge_writer: bool,
) -> list[LevelledFinding]:
    """The findings that count, each at the lower of its tier, its rule's mode and the policy's cap."""
    judged = []
    exempt: Container[str] | None = None
    for rule, finding in found:
        if rule.about_writer and not judge_writer:
            continue
        level = min(finding.tier, lease_policy.modes[rule.id])
        if level is Mode.OFF:
            continue
        if not rule.parity and not rule.never_exempt:
            if exempt is None:
                writer = request.user or NOBODY
                exempt = policy.exempt_rules(writer, request.namespace, request.name, request.operation, now)
            if rule.id in exempt:
                continue
        judged.append(_levelled(rule, finding, level, policy))
    return judged


def _levelled(rule: Rule, finding: Finding, level: Mode, policy: Policy) -> LevelledFinding:
    if finding.without_stamps and level is Mode.DENY and not policy.enforce_without_stamps:
        mode = min(Mode.WARN, policy.mode)
        return LevelledFinding(rule.id, finding.error, mode, level, "the lease has no API server stamps")
    return _capped(rule.id, finding.error, level, policy)


def _capped(rule: str, error: FieldError, level: Mode, policy: Policy) -> LevelledFinding:
    mode = min(level, policy.mode)
    because = "" if mode is level else _cap_reason(policy)
    return LevelledFinding(rule, error, mode, level, because)


def _cap_reason(policy: Policy) -> str:
    return "preset observe" if policy.preset == "observe" else f"policy mode {policy.mode.word}"
