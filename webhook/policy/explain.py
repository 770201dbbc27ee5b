"""Which layer of a policy decided each mode and number of one lease."""

from collections.abc import Container, Iterator, Sequence
from typing import Final, TypeVar

from msgspec import UNSET, Struct
from msgspec.structs import asdict, replace

from webhook.api.request import Operation
from webhook.policy.compiler import BOUND
from webhook.policy.entries import ANYWHERE, operations_of, rules_of, settings_of, users_of
from webhook.policy.model import MODE, OPERATIONS, Policy, Value
from webhook.policy.schema_types import Exemption, Override
from webhook.rules import glob
from webhook.rules.registry import RULES

E = TypeVar("E", Exemption, Override)
PRESET: Final = "preset"
BUILT_IN: Final = "built in"
BINDING: Final = "bindings"


class Explained(Struct, frozen=True):
    """One setting of one rule.

    `layer` is `preset`, `built in` (numbers), `bindings` (of a bound lease), `rules` or such as `overrides[2]`.
    `operations` are those to which it applies, empty for all operations on which the rule is evaluated.
    """

    rule: str
    name: str
    value: Value
    layer: str
    operations: tuple[Operation, ...] = ()


def explain(policy: Policy, namespace: str = "", name: str = "") -> Iterator[Explained]:
    """Every mode, each followed by the numbers of its rule; a setting that depends on the operation comes repeatedly.

    An empty namespace or name stands for any: only the glob `*` matches it.
    """
    answers = {operation: list(_explain(policy, namespace, name, operation)) for operation in OPERATIONS}
    for same_setting in zip(*answers.values(), strict=True):
        evaluated_on = _operations_of_rule(same_setting[0].rule)
        by_answer: dict[Explained, tuple[Operation, ...]] = {}
        for operation, answer in zip(answers, same_setting, strict=True):
            if operation in evaluated_on:
                by_answer[answer] = (*by_answer.get(answer, ()), operation)
        for answer, operations in by_answer.items():
            yield answer if len(by_answer) == 1 else replace(answer, operations=operations)


def _explain(policy: Policy, namespace: str, name: str, operation: Operation) -> Iterator[Explained]:
    lease_policy = policy.for_lease(namespace, name, operation)
    overridden = policy.overridden(namespace, name, operation)
    in_file = settings_of(policy.document.rules)

    def layer(rule: str, name: str, otherwise: str) -> str:
        if (rule, name) in overridden:
            return f"overrides[{overridden[rule, name].override}]"
        if (rule, name) in in_file:
            return "rules"
        return BINDING if lease_policy.binding is not None and (rule, name) in BOUND else otherwise

    numbers = asdict(lease_policy.limits)
    for rule, mode in lease_policy.modes.items():
        yield Explained(rule, MODE, mode, layer(rule, MODE, PRESET))
        limits = numbers.get(rule.replace("-", "_"))
        for number, value in asdict(limits).items() if limits else ():
            yield Explained(rule, number, value, layer(rule, number, BUILT_IN))


def applying_to(entries: Sequence[E], namespace: str = "", name: str = "") -> Iterator[tuple[int, E]]:
    """The exemptions or overrides of a file, with their positions, that apply to a lease; "" stands for any."""
    for position, entry in enumerate(entries):
        if _matches(entry.namespaces, namespace) and _matches(entry.leases, name):
            yield position, entry


def whom(exemption: Exemption) -> str:
    """The requesters of an exemption in one phrase."""
    groups = [f"group {group}" for group in exemption.groups]
    return ", ".join([*users_of(exemption), *groups]) or "anyone"


def where(entry: Exemption | Override) -> str:
    """The leases of an entry in one phrase."""
    return f"{','.join(entry.namespaces) or ANYWHERE}/{','.join(entry.leases) or ANYWHERE}"


def on(entry: Exemption | Override) -> str:
    """The operations of an entry in one phrase, such as `on CREATE, DELETE`; "" if it names none."""
    return "" if entry.operations is UNSET else f"on {', '.join(operations_of(entry))}"


def narrowed_to(exemption: Exemption) -> str:
    """What an exemption exempts from in one phrase; "" if it names neither rules nor operations."""
    rules = ", ".join(rules_of(exemption))
    return " ".join(filter(None, [rules and f"from {rules}", on(exemption)]))


def _operations_of_rule(rule: str) -> Container[Operation]:
    return RULES[rule].operations if rule in RULES else OPERATIONS


def _matches(globs: list[str], text: str) -> bool:
    return not globs or not text or any(glob.matches(pattern, text) for pattern in globs)
