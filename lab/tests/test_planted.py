"""docs/proof.md shows what noticed each planted defect, and each can still be planted."""

from typing import Any

import pytest

from lab.torture import planted
from lab.torture.defects import DEFECTS


def test_the_page_shows_what_noticed_each_defect() -> None:
    assert planted.render_table(planted.read_stored()) in planted.PAGE.read_text(encoding="utf-8")


def test_each_defect_is_noticed_twice() -> None:
    finder_counts = {one.name: sum(map(bool, one.by.values())) for one in planted.read_stored()}
    assert {one.name for one in DEFECTS} == set(finder_counts)
    assert {name for name, number in finder_counts.items() if number < planted.ENOUGH} == set()


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: f"{defect.kind}: {defect.name}")
def test_a_defect_can_be_planted(defect: Any) -> None:
    assert planted.apply_defect(defect)
