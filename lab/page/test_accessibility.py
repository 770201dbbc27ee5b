"""No serious fault that a checker finds, in both color schemes, and a page that can be printed."""

import pytest

from lab.page.axe import find_faults
from lab.page.conftest import OpenPage
from tests.timeline.election_samples import hostile_timeline, sample_timeline


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("leases", [3, 50, 500])
def test_axe_finds_no_serious_fault(open_page: OpenPage, scheme: str, leases: int) -> None:
    page = open_page(sample_timeline(leases), scheme=scheme)
    assert find_faults(page.page) == []
    page.focus_lanes()
    page.press("n", "ArrowRight")
    assert find_faults(page.page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault_with_hostile_names_on_a_narrow_screen(open_page: OpenPage, scheme: str) -> None:
    page = open_page(hostile_timeline(), scheme=scheme, width=420, height=800)
    assert find_faults(page.page) == []


def test_nothing_is_wider_than_a_narrow_screen(open_page: OpenPage) -> None:
    page = open_page(sample_timeline(3), width=420, height=800)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 480
