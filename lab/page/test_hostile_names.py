"""Names that anyone may choose are text: they do nothing and hide nothing."""

import pytest

from lab.page.conftest import OpenPage
from tests.timeline.election_samples import HOSTILE_NAMES, hostile_timeline, sample_timeline
from webhook.text.quoting import escape

ELEMENTS = "[...document.querySelectorAll('*')].map(e => e.localName)"


def test_no_name_makes_an_element_or_runs(open_page: OpenPage) -> None:
    quiet = set(open_page(sample_timeline(3)).page.evaluate(ELEMENTS))
    page = open_page(hostile_timeline(), height=2400)
    page.focus_lanes()
    page.press("ArrowRight", *["ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown", "Home"] * len(HOSTILE_NAMES))
    assert set(page.page.evaluate(ELEMENTS)) - quiet <= {"ol", "ul", "li", "strong"}
    assert page.page.evaluate("document.querySelectorAll('img, iframe, [onerror], [onclick]').length") == 0


def test_every_name_is_shown_with_what_is_hidden_escaped(open_page: OpenPage) -> None:
    page = open_page(hostile_timeline(), height=3000)
    names = {escape(name) for name in HOSTILE_NAMES}
    page.page.evaluate("document.getElementById('view').style.maxHeight = 'none'")
    page.settle()
    assert {name for name in page.lanes if name} == names
    assert page.list_values("holder") - {""} == names


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_the_search_takes_any_text(open_page: OpenPage, name: str) -> None:
    page = open_page(hostile_timeline())
    page.page.fill("#search", escape(name)[:200])
    page.settle()
    assert escape(name) in page.lanes


def test_the_policy_of_the_page_stops_what_is_injected(browser: object, open_page: OpenPage) -> None:
    page = open_page(sample_timeline(3))
    page.page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s); }"  # noqa: E501
    )
    assert page.page.evaluate("window.ran") is None
    assert any("Content Security Policy" in message for message in page.messages)
    page.messages.clear()
