"""Findings with their modes become a verdict: one decision over all of them."""

from functools import lru_cache

from webhook.api.field import ErrorType
from webhook.api.request import DECODED_VERSIONS, GROUP, KIND_OF, AdmissionRequest, Operation
from webhook.api.text import cut, escape, quote
from webhook.policy.model import Policy
from webhook.rules.events import Event
from webhook.rules.finding import MOST_FINDINGS, Finding
from webhook.rules.mode import Mode
from webhook.verdict.model import Verdict
from webhook.verdict.texts import causes, facts, message, once, warnings


def nothing_found(request: AdmissionRequest, policy: Policy, event: Event) -> Verdict:
    """Allowed, with nothing but the event of the write, for the audit log."""
    annotations = _event_and_policy(event, policy.preset, policy.digest)
    return Verdict(request.uid, allowed=True, audit_annotations=annotations, event=event)


@lru_cache(maxsize=64)
def _event_and_policy(event: Event, preset: str, digest: str) -> tuple[tuple[str, str], ...]:
    return (("event", event), ("policy", f"{preset} {digest}"))


def decide(request: AdmissionRequest, policy: Policy, event: str, findings: list[Finding]) -> Verdict:
    """One decision over all findings: 403 if a denying one is Forbidden by a rule of ours, else 422."""
    annotations = [("event", event)] if event else []
    annotations.append(("rules", ",".join(once(f"{one.rule}={one.mode.word}" for one in findings))))
    would_deny = once(one.rule for one in findings if one.weakened)
    if would_deny:
        annotations.append(("would-deny", ",".join(would_deny)))
    annotations.append(("policy", _name(policy)))
    # The sort is stable: it only makes sure that what decided is among the first.
    most = findings if len(findings) <= MOST_FINDINGS else sorted(findings, key=lambda one: -one.mode)[:MOST_FINDINGS]
    found = facts(findings)
    denying = [fact for fact in found if fact.denies][:MOST_FINDINGS]
    warned = warnings((fact for fact in found if not fact.denies), policy, admitted=not denying)
    if not denying:
        return Verdict(
            request.uid,
            allowed=True,
            warnings=warned,
            audit_annotations=tuple(annotations),
            findings=tuple(most),
            event=event,
        )
    forbidden = any(
        one.error.type is ErrorType.FORBIDDEN and not one.parity for one in findings if one.mode is Mode.DENY
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
        findings=tuple(most),
        event=event,
    )


def switched_off(request: AdmissionRequest, policy: Policy) -> Verdict:
    """The kill switch: everything is allowed, and each response says so in the audit log."""
    return Verdict(request.uid, allowed=True, audit_annotations=(("policy", f"{_name(policy)} off"),))


def contradicts(request: AdmissionRequest, policy: Policy) -> Verdict:
    """A request that contradicts itself is denied with 400: no rule is involved, and no exemption applies."""
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
    """A typo in a webhook configuration must not stop a cluster: what we do not know is allowed with a warning."""
    # Each may be as long as a review.
    name, below = request.resource[:61], request.sub_resource[:61]
    resource = escape(cut(f"{name}/{below}" if below else name, 60))
    known = DECODED_VERSIONS.get(request.resource)  # type: ignore[call-overload]
    if request.operation is Operation.CONNECT:
        what = f"CONNECT to {resource} is not evaluated"
    elif request.sub_resource:
        what = f"subresource {resource} is not evaluated"
    elif known and request.group == GROUP:
        version = quote(cut(request.version, 30))
        what = f"version {version} of {resource} is not evaluated; the known versions are {', '.join(known)}"
    else:
        group = quote(cut(request.group, 60))
        what = f"{resource} of group {group} is not evaluated; the known resources are {' and '.join(KIND_OF)}"
    return Verdict(
        request.uid,
        allowed=True,
        warnings=(f"lease webhook: {what}; narrow the rules of the webhook configuration",),
        audit_annotations=(("policy", _name(policy)),),
    )


def _name(policy: Policy) -> str:
    return f"{policy.preset} {policy.digest}"
