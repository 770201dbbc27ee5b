"""No serious fault that a checker finds, in both color schemes, and a page that can be printed."""

import pytest

from tests.page.axe import faults
from tests.page.conftest import Open
from tests.timeline.election_samples import hostile_timeline, sample_timeline


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("leases", [3, 50, 500])
def test_axe_finds_no_serious_fault(opened: Open, scheme: str, leases: int) -> None:
    page = opened(sample_timeline(leases), scheme=scheme)
    assert faults(page.page) == []
    page.page.click("#of-events")
    page.to_lanes()
    page.press("n", "ArrowRight")
    assert faults(page.page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault_with_hostile_names_on_a_narrow_screen(opened: Open, scheme: str) -> None:
    page = opened(hostile_timeline(), scheme=scheme, width=420, height=800)
    assert faults(page.page) == []


def test_nothing_is_wider_than_a_narrow_screen(opened: Open) -> None:
    page = opened(sample_timeline(3), width=420, height=800)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 480


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_print_has_every_lane_and_no_controls(opened: Open, scheme: str) -> None:
    page = opened(sample_timeline(50), scheme=scheme)
    page.page.emulate_media(media="print")
    page.settle()
    assert len(page.lanes) == 52
    assert not page.page.is_visible("#filters")
    assert page.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    pages = page.page.pdf(prefer_css_page_size=True).count(b"/Type /Page\n")
    assert pages > 3
    page.page.emulate_media(media="screen")
    page.settle()
    assert len(page.lanes) < 20
