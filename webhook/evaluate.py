"""A request, a policy and a moment give a verdict: every finding is collected, then one decision is made."""

from collections.abc import Container, Iterable

from webhook.api.request import AdmissionRequest, Operation
from webhook.policy.model import LeasePolicy, Policy
from webhook.rules.change import NOBODY, change_made_by
from webhook.rules.events import Event
from webhook.rules.fast_renewal import is_quiet_renewal
from webhook.rules.mode import Mode
from webhook.rules.registry import RULES_BY_OCCASION
from webhook.rules.rule import Finding, Rule
from webhook.verdict.compose import OBJECT_TYPES, contradicts, decide, not_evaluated, switched_off
from webhook.verdict.model import Verdict
from webhook.verdict.texts import LevelledFinding


def evaluate(request: AdmissionRequest, policy: Policy, now: int, *, judge_writer: bool = True) -> Verdict:
    """Evaluate one write.

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
        return not_evaluated(request, policy)
    lease_policy = policy.for_lease(request.namespace, request.name, request.operation)
    if request.object_errors:
        wrong = [
            LevelledFinding(OBJECT_TYPES, Finding(error), policy.mode, Mode.DENY) for error in request.object_errors
        ]
        return decide(request, policy, "", wrong)
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
    levelled = _levels(found, request, policy, lease_policy, now, judge_writer=judge_writer) if found else []
    return decide(request, policy, event, levelled)


def _levels(
    found: Iterable[tuple[Rule, Finding]],
    request: AdmissionRequest,
    policy: Policy,
    lease_policy: LeasePolicy,
    now: int,
    *,
    judge_writer: bool,
) -> list[LevelledFinding]:
    """The findings that count, each at the lower of its tier, its rule's mode and the policy's cap."""
    levelled = []
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
        levelled.append(_levelled(rule, finding, level, policy))
    return levelled


def _levelled(rule: Rule, finding: Finding, level: Mode, policy: Policy) -> LevelledFinding:
    if finding.without_stamps and level is Mode.DENY and not policy.enforce_without_stamps:
        return LevelledFinding(rule.id, finding, min(Mode.WARN, policy.mode), level, unstamped=True)
    return LevelledFinding(rule.id, finding, min(level, policy.mode), level)
