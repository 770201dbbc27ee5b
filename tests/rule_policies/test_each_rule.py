"""The CEL of each rule speaks: of a write that the rule's tests deny, the exported policy says what the engine says.

Where the two are only compared, a CEL that is never true agrees with the engine on all that its rule allows.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import pytest

from tests.factories import NOW, to_bytes
from tests.rule_policies import compared
from tests.rule_policies.in_process import ExportedPolicies
from tests.rules.findings import SECOND
from tests.rules.pinned_writes import pinned_writes
from webhook.admission.policy.model import Policy
from webhook.admission.policy.parse import parse
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.registry import RULES

SPEAKING: Final = [rule for rule in RULES.values() if rule.in_cel.is_said]
DENYING: Final = "".join(
    [
        "apiVersion: lease-webhook/v1\npreset: strict\nrules:\n",
        *(f"  {rule.id}: {{mode: deny}}\n" for rule in SPEAKING),
    ]
)
"""With the mode `deny` a finding has the mode of its tier."""
BINDINGS: Final = """bindings:
- {namespace: shop, lease: checkout, writers: [shop/checkout], holder: ["${pod}_*", "manual-?"]}
"""


@cache
def policies() -> list[tuple[Policy, ExportedPolicies]]:
    """Without bindings, and with one."""
    return [(policy, ExportedPolicies(policy)) for policy in (parse(DENYING), parse(DENYING + BINDINGS))]


def cases() -> Iterator[Any]:
    for rule in SPEAKING:
        if rule.in_cel.broken:
            yield pytest.param(rule.id, Mode.DENY, id=rule.id)
        if rule.in_cel.warned:
            yield pytest.param(rule.id, Mode.WARN, id=f"{rule.id}, warned")


def texts_of(rule: str) -> Iterator[tuple[str, str]]:
    """Yield what the engine and the policy say of the writes whose wording is pinned, if both say something."""
    for name, review in pinned_writes():
        body, request = to_bytes(review), review["request"]
        for policy, exported in policies() if name == rule and compared.is_sent(request, body) else ():
            verdict = compared.verdict_of(body, policy, NOW + 4 * SECOND)
            errors = {one.mode.word: str(one.error) for one in verdict.findings if one.rule == rule and one.mode}
            broken = {one.mode: one.text for one in exported.broken(request) if one.rule == rule}
            yield from ((errors[mode], broken[mode]) for mode in errors.keys() & broken.keys())


@pytest.mark.parametrize("rule", [rule.id for rule in SPEAKING if not rule.in_cel.lacks])
def test_policy_and_engine_say_the_same(rule: str) -> None:
    texts = [(error, text) for error, text in texts_of(rule) if "(a name that cannot be shown)" not in text]
    assert texts
    assert all(text.startswith(f"{error} (lease webhook") for error, text in texts)


@pytest.mark.parametrize(("rule", "tier"), [*cases()])
def test_policy_and_engine_speak_of_the_same_write(rule: str, tier: Mode) -> None:
    answers = [
        (
            (tier.word, rule) in compared.expected(compared.verdict_of(body, policy, NOW + 4 * SECOND), request),
            any((one.mode, one.rule) == (tier.word, rule) for one in exported.broken(request)),
        )
        for name, review in pinned_writes()
        for body, request in [(to_bytes(review), review["request"])]
        if name == rule and compared.is_sent(request, body)
        for policy, exported in policies()
    ]
    assert (True, True) in answers, f"(engine, policy) speak: {sorted(set(answers))}"
