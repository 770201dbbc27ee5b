"""The presets: how they relate to one another, whatever modes the rules choose."""

from pathlib import Path

import pytest

from tests.policy.files import policy
from webhook.admission.policy.file import load
from webhook.admission.policy.parse import make_preset
from webhook.admission.policy.schema import PRESETS, RULE_IDS
from webhook.admission.rules.limits import DEFAULT_LIMITS
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.registry import RULES
from webhook.kubernetes.request import Operation

EXAMPLE = Path(__file__).parents[2] / "docs/examples/strict-in-one-namespace.yaml"


def test_each_preset_is_at_least_as_strict_as_the_one_before() -> None:
    observe, standard, strict = (policy(preset=name) for name in ("observe", "standard", "strict"))
    assert [observe.mode, standard.mode, strict.mode] == [Mode.WARN, Mode.DENY, Mode.DENY]
    for rule in RULE_IDS:
        modes = [one.default.modes[rule] for one in (observe, standard, strict)]
        assert modes[1] <= modes[2], rule
        # What either would deny is reported as such; everything else is as in `standard`.
        assert modes[0] is (Mode.DENY if Mode.DENY in modes[1:] else modes[1]), rule
        if rule in RULES and RULES[rule].parity:
            assert set(modes) == {Mode.DENY}, rule


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_knows_its_name_and_sets_nothing_but_modes(name: str) -> None:
    document = make_preset(name)
    assert document.preset == name
    assert (document.exempt, document.overrides, document.bindings) == ([], [], [])
    assert set(policy(preset=name).default.modes) == set(RULE_IDS)
    assert policy(preset=name).default.limits == DEFAULT_LIMITS


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.UPDATE, Operation.DELETE])
def test_the_example_for_one_namespace_denies_there_what_strict_denies(operation: Operation) -> None:
    example, standard, strict = load(str(EXAMPLE)), policy(preset="standard"), policy(preset="strict")
    inside, outside = (example.resolve(namespace, "checkout", operation) for namespace in ("shop", "mail"))
    denied = {rule for rule, mode in strict.default.modes.items() if mode is Mode.DENY}
    assert {rule for rule, mode in inside.modes.items() if mode is Mode.DENY} == denied
    assert outside.modes == standard.default.modes
