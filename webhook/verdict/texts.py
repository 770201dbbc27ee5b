"""What people read of a verdict: causes and messages that stand alone, and warnings that fit into a header."""

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from webhook.api.text import cut
from webhook.policy.model import Policy
from webhook.policy.presets import denied_by
from webhook.rules.finding import Finding, Weakened
from webhook.rules.mode import Mode
from webhook.rules.statement import ELLIPSIS
from webhook.verdict.model import Cause

LONGEST_WARNING: Final = 256
"""Characters to which the API server cuts warnings once all of a request exceed its budget.

Source: kubernetes/apiserver `pkg/endpoints/filters/warning.go`.
"""

LONGEST_WARNINGS: Final = 4096
"""Characters of all warnings of a request; kube-apiserver drops what goes beyond."""

LARGEST_CAUSES: Final = 24 * 1024
"""Bytes of JSON that causes may take; the whole answer stays below 64 KiB."""

LARGEST_MESSAGE: Final = 12 * 1024
"""Bytes of JSON that the sentences of a message may take."""

MORE: Final = "lease webhook: more findings than fit into warnings; fix these first"


class Fact(Struct, frozen=True):
    """Findings about one and the same fact, the strongest mode first; they share one sentence."""

    findings: Sequence[Finding]

    @property
    def denies(self) -> bool:
        """Whether one of them denies."""
        return self.findings[0].mode is Mode.DENY

    @property
    def decisive(self) -> Finding:
        """The one whose text is used: the last of the strongest, because a special rule stands after the general."""
        return [one for one in self.findings if one.mode is self.findings[0].mode][-1]

    @property
    def rules(self) -> str:
        """The ids of all their rules."""
        return ", ".join(once(one.rule for one in self.findings))


def facts(findings: Iterable[Finding]) -> list[Fact]:
    """What a writer gets to read, in the order of the findings; audit findings are not for the writer."""
    groups: dict[object, list[Finding]] = {}
    for one in findings:
        if one.mode >= Mode.WARN:
            groups.setdefault(one.fact or id(one), []).append(one)
    return [Fact(sorted(group, key=lambda one: -one.mode)) for group in groups.values()]


def causes(denying: Iterable[Fact], policy: Policy) -> tuple[Cause, ...]:
    """One cause for each fact."""
    return tuple(
        _first(
            (
                Cause(error.type.value, _stands_alone(error.body, fact, policy), error.field)
                for fact in denying
                for error in (fact.decisive.error,)
            ),
            LARGEST_CAUSES,
        )
    )


def message(denying: Iterable[Fact], policy: Policy) -> str:
    """The sentences of a denial as the API server lists several errors."""
    sentences = _first(once(_stands_alone(str(fact.decisive.error), fact, policy) for fact in denying), LARGEST_MESSAGE)
    return sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"


def warnings(warning: Iterable[Fact], policy: Policy, *, admitted: bool) -> tuple[str, ...]:
    """The warnings that kube-apiserver shows; the last one says that there are more if it would drop some."""
    texts = once(_warning(fact, policy, admitted=admitted) for fact in warning)
    if sum(map(len, texts)) <= LONGEST_WARNINGS:
        return tuple(texts)
    return (*texts[: LONGEST_WARNINGS // LONGEST_WARNING - 1], MORE)


def _stands_alone(text: str, fact: Fact, policy: Policy) -> str:
    """Kubectl shows either the causes or the message, never both, and not always our name."""
    rules = fact.rules
    page = f", see {_page(fact.decisive.rule, policy)}" if policy.docs_url else ""
    return f"{text} (lease webhook, rule{'s' if ',' in rules else ''} {rules}{page})"


def _page(rule: str, policy: Policy) -> str:
    return f"{policy.docs_url}/{rule}" if policy.docs_url else f"lease-webhook rules {rule}"


def _warning(fact: Fact, policy: Policy, *, admitted: bool) -> str:
    """One line; on an admitted write what happened, on a denied one what is wrong beside the reason of the denial."""
    why = _why_not_denied(fact, policy)
    start = f"{fact.rules} ({why}): " if why else f"{fact.rules}: "
    happened, error = fact.decisive.happened, fact.decisive.error
    if admitted and happened is not None:
        return start + happened.within(LONGEST_WARNING - len(start), _page(fact.decisive.rule, policy))
    text = f"{start}{error.in_warning}"
    return cut(text, LONGEST_WARNING - len(ELLIPSIS)) if len(text) > LONGEST_WARNING else text


def _why_not_denied(fact: Fact, policy: Policy) -> str:
    """Why a finding that would deny only warns; empty for one that warns anyway."""
    weakened = [one for one in fact.findings if one.weakened]
    if not weakened:
        return ""
    if all(one.weakened is Weakened.WITHOUT_STAMPS for one in weakened):
        return "only a warning: no API server stamps"
    if policy.preset != "observe":
        return f"only policy mode {policy.mode.word} allows this"
    rules = {one.rule for one in weakened if one.weakened is Weakened.BY_CAP}
    name = next((name for name in ("standard", "strict") if rules & denied_by(name)), None)
    return f"{name} would deny this" if name else "only preset observe allows this"


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


def once(texts: Iterable[str]) -> list[str]:
    """The texts without repetitions, in their order."""
    return list(dict.fromkeys(texts))
