"""Keys, screen readers, both color schemes and a narrow screen."""

import pytest

from lab.page.axe import find_faults
from lab.page.web.conftest import Start
from lab.page.web.served import Web
from lab.page.web.test_views import LOG, WATCH

VIEWS = {"why": "#account h3", "audit": "#audit .card", "check": "#checked h2", "review": "#verdicts .card"}
"""Each with what is there when it is filled."""


def fill(web: Web) -> None:
    web.open(LOG, WATCH)
    web.page.click("#leases button.link:text-is('invoices/invoices')")
    web.page.wait_for_selector("#account h3")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 420)])
def test_no_view_has_a_serious_fault_or_is_wider_than_the_screen(start: Start, scheme: str, width: int) -> None:
    web = start(scheme=scheme, width=width)
    assert find_faults(web.page) == []
    fill(web)
    for view, selector in VIEWS.items():
        web.show(view)
        if view == "review":
            web.page.select_option("#examples", label="A duration of 68 years")
        web.page.wait_for_selector(selector)
        assert find_faults(web.page) == []
        assert web.page.evaluate("document.documentElement.scrollWidth") <= width
    web.show("timeline")
    web.timeline.locator(".lane").first.wait_for()
    assert web.page.evaluate("document.documentElement.scrollWidth") <= width


def test_everything_is_reached_by_keys(web: Web) -> None:
    fill(web)
    page = web.page
    page.focus("#tab-why")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#audit .card")
    assert page.evaluate("document.activeElement.id") == "tab-audit"
    for key, tab in (
        ("End", "tab-review"),
        ("ArrowRight", "tab-why"),
        ("ArrowLeft", "tab-review"),
        ("Home", "tab-why"),
    ):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.id") == tab
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent").startswith("Lease ")
    page.keyboard.press("Enter")
    page.wait_for_selector("#account h2:focus")
    page.go_back()
    page.wait_for_selector("#audit .card")
