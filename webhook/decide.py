"""Levelled findings become a verdict: one decision over all of them, in words that stand alone."""

from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from webhook.api.field import ErrorType, FieldError
from webhook.api.request import GROUP, KIND_OF, SERVED_VERSIONS, AdmissionRequest, Operation
from webhook.api.text import cut, escape, quote
from webhook.api.verdict import Cause, JudgedFinding, Mode, Verdict
from webhook.policy.model import Policy
from webhook.rules.registry import RULES_BY_OCCASION
from webhook.rules.rule import MOST_FINDINGS

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


class LevelledFinding(Struct, frozen=True):
    """A finding with its level: what it would be (`uncapped`), what it is (`mode`), and why the two differ."""

    rule: str
    error: FieldError
    mode: Mode
    uncapped: Mode
    because: str = ""


def decide(request: AdmissionRequest, policy: Policy, event: str, judged: list[LevelledFinding]) -> Verdict:
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
        (
            Cause(one.error.type.value, _stands_alone(one.error.body, one.rule, policy), one.error.field)
            for one in denying
        ),
        LARGEST_CAUSES,
    )
    sentences = _first(_once(_stands_alone(str(one.error), one.rule, policy) for one in denying[:10]), LARGEST_MESSAGE)
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


def _stands_alone(text: str, rule: str, policy: Policy) -> str:
    """Kubectl shows either the causes or the message, never both, and not always our name."""
    page = f", see {policy.docs_url}/{rule}" if policy.docs_url else ""
    return f"{text} (lease webhook, rule {rule}{page})"


def _warning(judged: LevelledFinding) -> str:
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


def not_judged(request: AdmissionRequest, policy: Policy) -> Verdict:
    """A typo in a webhook configuration must not brick a cluster: what we do not know is allowed, and said."""
    # Each may be as long as a review.
    name, below = request.resource[:61], request.sub_resource[:61]
    resource = escape(cut(f"{name}/{below}" if below else name, 60))
    known = SERVED_VERSIONS.get(request.resource)  # type: ignore[call-overload]
    if request.operation is Operation.CONNECT:
        what = f"CONNECT to {resource} is not judged"
    elif request.sub_resource:
        what = f"subresource {resource} is not judged"
    elif known and request.group == GROUP:
        what = f"version {quote(cut(request.version, 30))} of {resource} is not judged; known are {', '.join(known)}"
    else:
        what = f"{resource} of group {quote(cut(request.group, 60))} is not judged; known are {' and '.join(KIND_OF)}"
    return Verdict(
        request.uid,
        allowed=True,
        warnings=(f"lease webhook: {what}; narrow the rules of the webhook configuration",),
        audit_annotations=(("policy", _name(policy)),),
    )


def _name(policy: Policy) -> str:
    return f"{policy.preset} {policy.digest}"
