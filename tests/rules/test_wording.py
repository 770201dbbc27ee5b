"""The wording of each rule that is not at parity is what the module that tests it says under `WORDING`."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.factories import Document
from tests.rules import wording
from tests.rules.modules import modules
from webhook.admission.rules.registry import RULES


def cases() -> Iterator[Any]:
    for module in modules():
        for case in getattr(module, "WORDING", ()):
            yield pytest.param(*case.values, id=f"{case.values[0]}, {case.id}")


@pytest.mark.parametrize(("rule", "review", "denial", "warning"), [*cases()])
def test_a_finding_has_its_words(rule: str, review: Document, denial: str, warning: str) -> None:
    wording.check(rule, review, denial, warning)


def test_each_rule_has_such_words() -> None:
    assert {case.values[0] for case in cases()} == {rule.id for rule in RULES.values() if not rule.parity}
