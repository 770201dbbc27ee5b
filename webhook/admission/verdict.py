"""The decision about one review: what people read of it, and its bytes, which kube-apiserver accepts.

What it accepts: kubernetes/apiserver `pkg/admission/plugin/webhook/request/admissionreview.go`: the uid of the request,
apiVersion and kind exactly, no patch.
"""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final, Literal, TypeVar

import msgspec
from msgspec import Struct

from webhook.admission.policy.model import Policy
from webhook.admission.rules.answer_limits import (
    MAX_CAUSE_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_MESSAGE_SENTENCES,
    MAX_WARNING_CHARACTERS,
    MAX_WARNINGS_CHARACTERS,
)
from webhook.admission.rules.finding import ELLIPSIS, Statement
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.registry import find_denying_rules
from webhook.kubernetes.field import FieldError
from webhook.kubernetes.formats import MAX_NAME
from webhook.kubernetes.request import AdmissionRequest
from webhook.text.quoting import escape, truncate

MORE: Final = "lease webhook: more findings than fit into warnings; fix these first"


Outcome = Literal["allowed", "warned", "denied"]


class Downgrade(Enum):
    """Why a finding that would deny does not."""

    BY_CAP = "the policy's mode, the cap for everything"
    WITHOUT_STAMPS = "no API server's stamp supports it"


class RatedFinding(Struct, frozen=True, gc=False):
    """A finding, the rule that made it, and the mode that counts for it.

    `parity` is true if the rule repeats the API server's own validation; `error`, `happened` and `fact` are those of
    the finding; `downgraded` is why a finding that would deny has a lower mode.
    """

    rule: str
    parity: bool
    mode: Mode
    error: FieldError
    happened: Statement | None = None
    fact: str = ""
    downgraded: Downgrade | None = None


class Cause(Struct, frozen=True, gc=False):
    """One entry of `status.details.causes`; kubectl prints only these for a 422."""

    reason: str
    message: str
    field: str


class Verdict(Struct, frozen=True, gc=False):
    """Allow or deny, with everything that the response and the log say about it.

    `code` is 200 when allowed, else 400, 403 or 422; `audit_annotations` are (key, value) pairs in a fixed order.
    """

    uid: str
    allowed: bool
    code: int = 200
    reason: str = ""
    message: str = ""
    causes: tuple[Cause, ...] = ()
    warnings: tuple[str, ...] = ()
    audit_annotations: tuple[tuple[str, str], ...] = ()
    findings: tuple[RatedFinding, ...] = ()
    event: str = ""

    @property
    def outcome(self) -> Outcome:
        """`denied`, `warned` (allowed, with warnings) or `allowed`: one word for logs, metrics and records."""
        if not self.allowed:
            return "denied"
        return "warned" if self.warnings else "allowed"


class Fact(Struct, frozen=True, gc=False):
    """Findings about one and the same fact, the strongest mode first; they share one sentence.

    `decisive` is the one whose text is used: the last of the strongest, because a special rule stands after the
    general one. `rules` are the ids of the strongest: a denial names no rule that only warns.
    """

    findings: Sequence[RatedFinding]
    decisive: RatedFinding
    rules: str


def list_facts(findings: Iterable[RatedFinding]) -> list[Fact]:
    """Return what a writer gets to read, in the order of the findings; those of mode audit are not for the writer."""
    groups: dict[object, list[RatedFinding]] = {}
    for finding in findings:
        if finding.mode >= Mode.WARN:
            groups.setdefault(finding.fact or id(finding), []).append(finding)
    return [_make_fact(group) for group in groups.values()]


def _make_fact(group: list[RatedFinding]) -> Fact:
    if len(group) == 1:
        return Fact(group, group[0], group[0].rule)
    group.sort(key=lambda one: -one.mode)
    strongest = [one for one in group if one.mode is group[0].mode]
    return Fact(group, strongest[-1], ", ".join(drop_repetitions(one.rule for one in strongest)))


def list_causes(denying: Iterable[Fact], policy: Policy) -> tuple[Cause, ...]:
    """Return one cause for each fact; each stands alone, because kubectl shows either the causes or the message."""
    return tuple(_take_first([_make_cause(fact, policy) for fact in denying], MAX_CAUSE_BYTES))


def _make_cause(fact: Fact, policy: Policy) -> Cause:
    error, rules = fact.decisive.error, fact.rules
    page = policy.end_with_page(fact.decisive.rule)
    text = f"{error.body} (lease webhook, rule{'s' if ',' in rules else ''} {rules}{page})"
    return Cause(error.type.value, text, error.field)


def format_message(denied: Sequence[Cause]) -> str:
    """Return the sentences of a denial as the API server lists several errors."""
    sentences = _take_first(
        drop_repetitions(f"{one.field}: {one.message}" for one in denied[:MAX_MESSAGE_SENTENCES]), MAX_MESSAGE_BYTES
    )
    return sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"


def list_warnings(warning: Iterable[Fact], policy: Policy, *, admitted: bool) -> tuple[str, ...]:
    """Return the warnings that kube-apiserver shows; the last one says that there are more if it would drop some."""
    texts = drop_repetitions(_format_warning(fact, policy, admitted=admitted) for fact in warning)
    if sum(map(len, texts)) <= MAX_WARNINGS_CHARACTERS:
        return tuple(texts)
    return (*texts[: MAX_WARNINGS_CHARACTERS // MAX_WARNING_CHARACTERS - 1], MORE)


def _format_warning(fact: Fact, policy: Policy, *, admitted: bool) -> str:
    """Return one line: what happened if the write is admitted, else what is wrong besides the reason of the denial."""
    why = _explain_why_not_denied(fact, policy)
    start = f"lease webhook, {fact.rules} ({why}): " if why else f"lease webhook, {fact.rules}: "
    happened, error = fact.decisive.happened, fact.decisive.error
    page = policy.find_page(fact.decisive.rule)
    if admitted and happened is not None:
        text = start + happened.shorten(MAX_WARNING_CHARACTERS - len(start), page)
    else:
        text = f"{start}{error.in_warning}"
    text = truncate(text, MAX_WARNING_CHARACTERS - len(ELLIPSIS)) if len(text) > MAX_WARNING_CHARACTERS else text
    # A link is worth no word of the sentence.
    linked = f"{text}; see {page}"
    return linked if policy.docs_url and page not in text and len(linked) <= MAX_WARNING_CHARACTERS else text


def _explain_why_not_denied(fact: Fact, policy: Policy) -> str:
    """Return why a finding that would deny only warns; empty for one that warns anyway."""
    downgraded = [one for one in fact.findings if one.downgraded]
    if not downgraded:
        return ""
    if all(one.downgraded is Downgrade.WITHOUT_STAMPS for one in downgraded):
        return "only a warning: no API server stamps"
    if policy.preset != "observe":
        return f"only policy mode {policy.mode.word} allows this"
    rules = {one.rule for one in downgraded if one.downgraded is Downgrade.BY_CAP}
    name = next((name for name in ("standard", "strict") if rules & find_denying_rules(name)), None)
    return f"{name} would deny this" if name else "only preset observe allows this"


T = TypeVar("T")


def _take_first(items: Sequence[T], most: int) -> Sequence[T]:
    """Return the first items that together take no more than `most` bytes of JSON, and one at least."""
    size = 0
    for number, item in enumerate(items if len(items) > 1 else ()):
        size += len(_encoder.encode(item))
        if number and size > most:
            return items[:number]
    return items


def drop_repetitions(texts: Iterable[str]) -> list[str]:
    """Return the texts without repetitions, in their order."""
    return list(dict.fromkeys(texts))


class _Details(Struct, frozen=True, gc=False, omit_defaults=True):
    name: str = ""
    group: str = ""
    kind: str = ""
    causes: tuple[Cause, ...] = ()


class _Status(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    status: str = ""
    message: str = ""
    reason: str = ""
    details: _Details | None = None
    code: int = 0


class _Response(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    uid: str
    allowed: bool
    status: _Status | None = None
    warnings: tuple[str, ...] = ()
    audit_annotations: dict[str, str] = {}


class _Review(Struct, frozen=True, gc=False, rename="camel"):
    kind: str
    api_version: str
    response: _Response


_encoder: Final = msgspec.json.Encoder()


def encode(verdict: Verdict, request: AdmissionRequest) -> bytes:
    """Return the response to `request`; equal verdicts give equal bytes."""
    status = None
    if not verdict.allowed:
        # A request that contradicts itself has any text in any of these.
        name, group, kind = (escape(truncate(one, MAX_NAME)) for one in (request.name, request.group, request.kind))
        status = _Status(
            status="Failure",
            message=verdict.message,
            reason=verdict.reason,
            details=_Details(name=name, group=group, kind=kind, causes=verdict.causes),
            code=verdict.code,
        )
    response = _Response(
        uid=verdict.uid,
        allowed=verdict.allowed,
        status=status,
        warnings=verdict.warnings,
        audit_annotations=dict(verdict.audit_annotations),
    )
    return _encoder.encode(_Review(kind="AdmissionReview", api_version=request.api_version, response=response))
