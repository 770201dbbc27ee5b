"""Names that anyone may choose are text: they do nothing and hide nothing."""

import pytest

from lab.page.conftest import Open
from tests.timeline.election_samples import HOSTILE_NAMES, hostile_timeline, sample_timeline
from webhook.text.quoting import escape

ELEMENTS = "[...document.querySelectorAll('*')].map(e => e.localName)"


def test_no_name_makes_an_element_or_runs(opened: Open) -> None:
    quiet = set(opened(sample_timeline(3)).page.evaluate(ELEMENTS))
    page = opened(hostile_timeline(), height=2400)
    page.focus_lanes()
    page.press("ArrowRight", *["ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown", "Home"] * len(HOSTILE_NAMES))
    assert set(page.page.evaluate(ELEMENTS)) - quiet <= {"ol", "ul", "li", "strong"}
    assert page.page.evaluate("document.querySelectorAll('img, iframe, [onerror], [onclick]').length") == 0


def test_every_name_is_shown_with_what_is_hidden_escaped(opened: Open) -> None:
    page = opened(hostile_timeline(), height=3000)
    names = {escape(name) for name in HOSTILE_NAMES}
    page.page.evaluate("document.getElementById('view').style.maxHeight = 'none'")
    page.settle()
    assert {name for name in page.lanes if name} == names
    assert page.list_values("holder") - {""} == names


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_the_search_takes_any_text(opened: Open, name: str) -> None:
    page = opened(hostile_timeline())
    page.page.fill("#search", escape(name)[:200])
    page.settle()
    assert escape(name) in page.lanes


def test_the_policy_of_the_page_stops_what_is_injected(browser: object, opened: Open) -> None:
    page = opened(sample_timeline(3))
    page.page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s); }"  # noqa: E501
    )
    assert page.page.evaluate("window.ran") is None
    assert any("Content Security Policy" in message for message in page.messages)
    page.messages.clear()
