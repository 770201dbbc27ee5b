"""A request, a policy and a moment give a verdict: all rules are evaluated, then one decision is made."""

from collections.abc import Sequence
from typing import Final

from webhook.admission.policy.model import Policy
from webhook.admission.rules.answer_limits import MAX_FINDINGS
from webhook.admission.rules.change import make_change
from webhook.admission.rules.finding import Finding
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.registry import CHECKS, OBJECT_TYPES_RULE
from webhook.admission.rules.rule import Rule
from webhook.admission.verdict import (
    Downgrade,
    RatedFinding,
    Verdict,
    drop_repetitions,
    format_message,
    list_causes,
    list_facts,
    list_warnings,
)
from webhook.kubernetes.field import ErrorType
from webhook.kubernetes.request import GROUP, KIND_OF, VERSIONS_OF, AdmissionRequest, Operation
from webhook.text.quoting import escape, quote, truncate

# Bound once: each access to a member of an enumeration costs a lookup.
_CONNECT: Final = Operation.CONNECT
_OFF: Final = Mode.OFF
_WARN: Final = Mode.WARN
_DENY: Final = Mode.DENY


def evaluate(request: AdmissionRequest, policy: Policy, now: int, *, writer_known: bool = True) -> Verdict:
    """Evaluate one write.

    `now`, the caller's clock in microseconds since 1970, ends exemptions, stands in for a stamp that is missing, and is
    one bound for a renewTime ahead. Without `writer_known`, for documents that were never sent, the rules about the
    writer are left out.
    """
    if policy.mode is _OFF:
        return Verdict(request.uid, allowed=True, audit_annotations=(("policy", f"{policy.name} off"),))
    if request.contradiction:
        return _deny_contradiction(request, policy)
    if request.operation is _CONNECT or request.sub_resource or not request.is_ours:
        return _allow_unknown(request, policy)
    if request.object_errors:
        wrong_types = OBJECT_TYPES_RULE.check(request)
        return _decide(request, policy, "", [_apply_mode(one, OBJECT_TYPES_RULE, _DENY, policy) for one in wrong_types])
    # A candidate's own name is its author's choice, so it decides nothing.
    lease = request.lease_name
    lease_policy = policy.resolve(request.namespace, lease, request.operation)
    binding = policy.bindings.get((request.namespace, lease)) if policy.bindings else None
    stamps = policy.stamps.get(request.namespace) if policy.stamps else None
    change = make_change(request, now, lease_policy.limits, binding, stamps)
    event = change.event
    kept = request.kept_lease_name
    exempt = policy.find_exempt_rules(change.user, request.namespace, kept, request.operation, now)
    modes = lease_policy.modes
    findings: list[RatedFinding] = []
    checks = CHECKS.find_checks(request.resource, request.operation, event, change.conditions, exempt)
    for check, rule in checks:
        if rule.about_writer and not writer_known:
            continue
        if found := check(change):
            mode = modes[rule.id]
            findings += [_apply_mode(finding, rule, mode, policy) for finding in found if mode is not _OFF]
    if not findings:
        annotations = (("event", event), ("policy", policy.name))
        return Verdict(request.uid, allowed=True, audit_annotations=annotations, event=event)
    return _decide(request, policy, event, findings)


def _apply_mode(finding: Finding, rule: Rule, mode: Mode, policy: Policy) -> RatedFinding:
    """Give a finding the mode that counts: the lowest of its tier, its rule's mode and the policy's cap."""
    level = min(finding.tier, mode)
    downgraded = None
    if level is _DENY and finding.without_stamps and not policy.enforce_without_stamps:
        level, downgraded = _WARN, Downgrade.WITHOUT_STAMPS
    elif level is _DENY and policy.mode is not _DENY:
        downgraded = Downgrade.BY_CAP
    return RatedFinding(
        rule=rule.id,
        parity=rule.parity,
        mode=min(level, policy.mode),
        error=finding.error,
        happened=finding.happened,
        fact=finding.fact,
        downgraded=downgraded,
    )


def _decide(request: AdmissionRequest, policy: Policy, event: str, findings: Sequence[RatedFinding]) -> Verdict:
    """Decide by all findings: 403 if a denying one is Forbidden by a rule of ours, else 422."""
    annotations = [("event", event)] if event else []
    worst: dict[str, Mode] = {}
    for finding in findings:
        worst[finding.rule] = max(finding.mode, worst.get(finding.rule, _OFF))
    annotations.append(("rules", ",".join(f"{rule}={mode.word}" for rule, mode in worst.items())))
    would_deny = drop_repetitions(one.rule for one in findings if one.downgraded)
    if would_deny:
        annotations.append(("would-deny", ",".join(would_deny)))
    annotations.append(("policy", policy.name))
    facts = list_facts(findings)
    denying = [fact for fact in facts if fact.decisive.mode is _DENY][:MAX_FINDINGS]
    others = (fact for fact in facts if fact.decisive.mode is not _DENY)
    warnings = list_warnings(others, policy, admitted=not denying)
    causes = list_causes(denying, policy)
    code, reason, message = 200, "", ""
    if causes:
        is_forbidden = any(
            one.error.type is ErrorType.FORBIDDEN and not one.parity for one in findings if one.mode is _DENY
        )
        code, reason = (403, "Forbidden") if is_forbidden else (422, "Invalid")
        message = format_message(causes)
        if not is_forbidden:
            message = f"{request.kind}.{request.group} {quote(request.name)} is invalid: {message}"
    if len(findings) > MAX_FINDINGS:
        # The sort is stable: it only makes sure that what decided is among the first.
        findings = sorted(findings, key=lambda one: -one.mode)[:MAX_FINDINGS]
    return Verdict(
        uid=request.uid,
        allowed=not causes,
        code=code,
        reason=reason,
        message=message,
        causes=causes,
        warnings=warnings,
        audit_annotations=tuple(annotations),
        findings=tuple(findings),
        event=event,
    )


def _deny_contradiction(request: AdmissionRequest, policy: Policy) -> Verdict:
    """Deny with 400 a request that contradicts itself: no rule is involved, and no exemption applies."""
    return Verdict(
        request.uid,
        allowed=False,
        code=400,
        reason="BadRequest",
        message=f"{request.contradiction} (lease webhook)",
        audit_annotations=(("policy", policy.name),),
    )


def _allow_unknown(request: AdmissionRequest, policy: Policy) -> Verdict:
    """Allow anything unrecognized, with a warning: a typo in a webhook configuration must not stop a cluster."""
    # Each may be as long as a review.
    name, below = request.resource[:61], request.sub_resource[:61]
    resource = escape(truncate(f"{name}/{below}" if below else name, 60))
    known = VERSIONS_OF.get(request.resource)
    if request.operation is _CONNECT:
        what = f"CONNECT to {resource} is not evaluated"
    elif request.sub_resource:
        what = f"subresource {resource} is not evaluated"
    elif known and request.group == GROUP:
        version = quote(truncate(request.version, 30))
        what = f"version {version} of {resource} is not evaluated; the known versions are {', '.join(known)}"
    else:
        group = quote(truncate(request.group, 60))
        what = f"{resource} of group {group} is not evaluated; the known resources are {' and '.join(KIND_OF)}"
    return Verdict(
        request.uid,
        allowed=True,
        warnings=(f"lease webhook: {what}; narrow the rules of the webhook configuration",),
        audit_annotations=(("policy", policy.name),),
    )
