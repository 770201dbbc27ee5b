"""Levelled findings become a verdict: one decision over all of them."""

from typing import Final

from webhook.api.field import ErrorType
from webhook.api.request import GROUP, KIND_OF, SERVED_VERSIONS, AdmissionRequest, Operation
from webhook.api.text import cut, escape, quote
from webhook.policy.model import Policy
from webhook.rules.mode import Mode
from webhook.rules.registry import RULES_BY_OCCASION
from webhook.rules.rule import MOST_FINDINGS
from webhook.verdict.model import JudgedFinding, Verdict
from webhook.verdict.texts import LevelledFinding, causes, facts, message, once, warnings

OBJECT_TYPES: Final = "object-types"
"""The id under which a wrong JSON type is reported: the document does not decode, so no rule could run."""


def decide(request: AdmissionRequest, policy: Policy, event: str, levelled: list[LevelledFinding]) -> Verdict:
    """One decision over all findings: 403 when any denying one is Forbidden by policy, else 422."""
    if not levelled:
        return Verdict(
            request.uid, allowed=True, audit_annotations=(("event", event), ("policy", _name(policy))), event=event
        )
    annotations = [("event", event)] if event else []
    annotations.append(("rules", ",".join(once(f"{one.rule}={one.mode.word}" for one in levelled))))
    would_deny = once(one.rule for one in levelled if one.mode < one.uncapped is Mode.DENY)
    if would_deny:
        annotations.append(("would-deny", ",".join(would_deny)))
    annotations.append(("policy", _name(policy)))
    # The sort is stable: it only makes sure that what decided is among the first.
    most = levelled if len(levelled) <= MOST_FINDINGS else sorted(levelled, key=lambda one: -one.mode)[:MOST_FINDINGS]
    findings = tuple(JudgedFinding(one.rule, one.mode, one.error) for one in most)
    found = facts(levelled)
    denying = [fact for fact in found if fact.denies][:MOST_FINDINGS]
    warned = warnings((fact for fact in found if not fact.denies), policy, admitted=not denying)
    if not denying:
        return Verdict(
            request.uid,
            allowed=True,
            warnings=warned,
            audit_annotations=tuple(annotations),
            findings=findings,
            event=event,
        )
    forbidden = any(
        one.error.type is ErrorType.FORBIDDEN and one.rule not in _PARITY for one in levelled if one.mode is Mode.DENY
    )
    text = message(denying[:10], policy)
    if not forbidden:
        text = f"{request.kind}.{request.group} {quote(request.name)} is invalid: {text}"
    return Verdict(
        request.uid,
        allowed=False,
        code=403 if forbidden else 422,
        reason="Forbidden" if forbidden else "Invalid",
        message=text,
        causes=causes(denying, policy),
        warnings=warned,
        audit_annotations=tuple(annotations),
        findings=findings,
        event=event,
    )


_PARITY: Final = frozenset(
    {OBJECT_TYPES} | {rule.id for rules in RULES_BY_OCCASION.values() for rule in rules if rule.parity}
)


def switched_off(request: AdmissionRequest, policy: Policy) -> Verdict:
    """The kill switch: everything is allowed, and every answer says so in the audit log."""
    return Verdict(request.uid, allowed=True, audit_annotations=(("policy", f"{_name(policy)} off"),))


def contradicts(request: AdmissionRequest, policy: Policy) -> Verdict:
    """A request that makes no sense is refused with 400: no rule is involved, and nobody is exempt."""
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


def not_evaluated(request: AdmissionRequest, policy: Policy) -> Verdict:
    """A typo in a webhook configuration must not brick a cluster: what we do not know is allowed, and said."""
    # Each may be as long as a review.
    name, below = request.resource[:61], request.sub_resource[:61]
    resource = escape(cut(f"{name}/{below}" if below else name, 60))
    known = SERVED_VERSIONS.get(request.resource)  # type: ignore[call-overload]
    if request.operation is Operation.CONNECT:
        what = f"CONNECT to {resource} is not evaluated"
    elif request.sub_resource:
        what = f"subresource {resource} is not evaluated"
    elif known and request.group == GROUP:
        what = f"version {quote(cut(request.version, 30))} of {resource} is not evaluated; known are {', '.join(known)}"
    else:
        what = (
            f"{resource} of group {quote(cut(request.group, 60))} is not evaluated; known are {' and '.join(KIND_OF)}"
        )
    return Verdict(
        request.uid,
        allowed=True,
        warnings=(f"lease webhook: {what}; narrow the rules of the webhook configuration",),
        audit_annotations=(("policy", _name(policy)),),
    )


def _name(policy: Policy) -> str:
    return f"{policy.preset} {policy.digest}"
