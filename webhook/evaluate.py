"""A request, a policy and a moment give a verdict: every finding is collected, then one decision is made."""

from collections.abc import Container, Iterable
from typing import Final

from msgspec.structs import replace

from webhook.api.request import AdmissionRequest, Operation
from webhook.policy.model import LeasePolicy, Policy
from webhook.rules.change import UNKNOWN_USER, change_made_by
from webhook.rules.events import Event
from webhook.rules.fast_renewal import is_fast_renewal
from webhook.rules.finding import Finding, Weakened
from webhook.rules.mode import Mode
from webhook.rules.registry import OBJECT_TYPES, RULES_BY_OCCASION
from webhook.rules.rule import Rule
from webhook.verdict.compose import contradicts, decide, not_evaluated, nothing_found, switched_off
from webhook.verdict.model import Verdict

# Members of an enumeration are looked up at each use.
_CONNECT: Final = Operation.CONNECT
_OFF: Final = Mode.OFF
_RENEWAL: Final = Event.RENEWAL


def evaluate(request: AdmissionRequest, policy: Policy, now: int, *, writer_known: bool = True) -> Verdict:
    """Evaluate one write.

    Args:
        request: a decoded review.
        policy: how strict to be.
        now: the caller's clock in microseconds since 1970; it counts only if a stamp is missing or a rule names it.
        writer_known: False leaves out the rules about the writer, for documents that were never sent.

    """
    if policy.mode is _OFF:
        return switched_off(request, policy)
    if request.contradiction:
        return contradicts(request, policy)
    if request.operation is _CONNECT or request.sub_resource or not request.is_ours:
        return not_evaluated(request, policy)
    lease_policy = policy.for_lease(request.namespace, request.name, request.operation)
    if request.object_errors:
        wrong = (Finding(error, rule=OBJECT_TYPES, parity=True) for error in request.object_errors)
        return decide(request, policy, "", [_at(Mode.DENY, finding, policy) for finding in wrong])
    limits, binding = lease_policy.limits, lease_policy.binding
    if is_fast_renewal(request, now, limits, binding):
        return nothing_found(request, policy, _RENEWAL)
    change = change_made_by(request, now, limits, binding)
    event = change.event
    found = [
        (rule, finding)
        for rule in RULES_BY_OCCASION[request.resource, request.operation, event]
        for finding in rule.check(change)
    ]
    counting = _counting(found, request, policy, lease_policy, now, writer_known=writer_known) if found else []
    return decide(request, policy, event, counting) if counting else nothing_found(request, policy, event)


def _counting(
    found: Iterable[tuple[Rule, Finding]],
    request: AdmissionRequest,
    policy: Policy,
    lease_policy: LeasePolicy,
    now: int,
    *,
    writer_known: bool,
) -> list[Finding]:
    """The findings that count, each with its mode: the lower of its tier, its rule's mode and the policy's cap."""
    counting = []
    exempt: Container[str] | None = None
    for rule, finding in found:
        if rule.about_writer and not writer_known:
            continue
        level = min(finding.tier, lease_policy.modes[rule.id])
        if level is Mode.OFF:
            continue
        if not rule.parity and not rule.never_exempt:
            if exempt is None:
                writer = request.user or UNKNOWN_USER
                exempt = policy.exempt_rules(writer, request.namespace, request.name, request.operation, now)
            if rule.id in exempt:
                continue
        counting.append(_at(level, replace(finding, rule=rule.id, parity=rule.parity), policy))
    return counting


def _at(level: Mode, finding: Finding, policy: Policy) -> Finding:
    """The finding with the mode that the policy leaves of its level."""
    mode, weakened = min(level, policy.mode), None
    if level is Mode.DENY:
        if finding.without_stamps and not policy.enforce_without_stamps:
            mode, weakened = min(Mode.WARN, policy.mode), Weakened.WITHOUT_STAMPS
        elif mode is not Mode.DENY:
            weakened = Weakened.BY_CAP
    return replace(finding, mode=mode, weakened=weakened)
