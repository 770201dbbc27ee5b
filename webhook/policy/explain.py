"""Which layer of a policy decided each mode and number of one lease, and its entries in words."""

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from webhook.api.request import Operation
from webhook.policy.model import Policy
from webhook.policy.parse import BOUND
from webhook.policy.schema import (
    ANYWHERE,
    MODE,
    OPERATIONS,
    Exemption,
    Override,
    Value,
    operations_of,
    rules_of,
    settings_of,
    users_of,
)
from webhook.rules import holders
from webhook.rules.registry import RULES

E = TypeVar("E", Exemption, Override)
PRESET: Final = "preset"
BUILT_IN: Final = "built in"


class SettingSource(Struct, frozen=True):
    """One setting of one rule, and the layer that decided it.

    `layer` is `preset`, `built in` (numbers), `bindings` (of a bound lease), `rules` or such as `overrides[2]`.
    `operations` are those to which it applies, empty for all operations on which the rule is evaluated.
    """

    rule: str
    name: str
    value: Value
    layer: str
    operations: tuple[Operation, ...] = ()


def explain(policy: Policy, namespace: str = "", name: str = "") -> Iterator[SettingSource]:
    """Yield every mode, each followed by the numbers of its rule; once for each operation on which they differ.

    An empty namespace or name matches any: only the glob `*` matches it.
    """
    answers = {operation: list(_explain(policy, namespace, name, operation)) for operation in OPERATIONS}
    for same_setting in zip(*answers.values(), strict=True):
        rule = same_setting[0].rule
        evaluated_on = RULES[rule].operations if rule in RULES else OPERATIONS
        by_answer: dict[SettingSource, tuple[Operation, ...]] = {}
        for operation, answer in zip(answers, same_setting, strict=True):
            if operation in evaluated_on:
                by_answer[answer] = (*by_answer.get(answer, ()), operation)
        for answer, operations in by_answer.items():
            yield answer if len(by_answer) == 1 else replace(answer, operations=operations)


def applying_to(entries: Sequence[E], namespace: str = "", name: str = "") -> Iterator[tuple[int, E]]:
    """Yield the exemptions or overrides of a file that apply to a lease, with their positions; "" matches any."""
    for position, entry in enumerate(entries):
        if _matches(entry.namespaces, namespace) and _matches(entry.leases, name):
            yield position, entry


def subjects_text(exemption: Exemption) -> str:
    """Return the requesters of an exemption in one phrase."""
    groups = [f"group {group}" for group in exemption.groups]
    return ", ".join([*users_of(exemption), *groups]) or "anyone"


def scope_text(entry: Exemption | Override) -> str:
    """Return the leases of an entry in one phrase."""
    return f"{','.join(entry.namespaces) or ANYWHERE}/{','.join(entry.leases) or ANYWHERE}"


def operations_text(entry: Exemption | Override) -> str:
    """Return the operations of an entry in one phrase, such as `on CREATE, DELETE`; "" if it names none."""
    return f"on {', '.join(operations_of(entry))}" if entry.operations else ""


def conditions_text(exemption: Exemption) -> str:
    """Return what an exemption exempts from in one phrase; "" if it names neither rules nor operations."""
    rules = ", ".join(rules_of(exemption))
    return " ".join(filter(None, [rules and f"from {rules}", operations_text(exemption)]))


def _explain(policy: Policy, namespace: str, name: str, operation: Operation) -> Iterator[SettingSource]:
    lease_policy = policy.for_lease(namespace, name, operation)
    overridden = policy.overridden(namespace, name, operation)
    in_file = settings_of(policy.document.rules)

    def layer(rule: str, name: str, otherwise: str) -> str:
        if (rule, name) in overridden:
            return f"overrides[{overridden[rule, name].override}]"
        if (rule, name) in in_file:
            return "rules"
        return "bindings" if lease_policy.binding is not None and (rule, name) in BOUND else otherwise

    numbers = asdict(lease_policy.limits)
    for rule, mode in lease_policy.modes.items():
        yield SettingSource(rule, MODE, mode, layer(rule, MODE, PRESET))
        limits = numbers.get(rule.replace("-", "_"))
        for number, value in asdict(limits).items() if limits else ():
            yield SettingSource(rule, number, value, layer(rule, number, BUILT_IN))


def _matches(globs: list[str], text: str) -> bool:
    return not globs or not text or any(holders.matches(pattern, text) for pattern in globs)
