"""A page that is open in the browser, as the tests read it."""

from pathlib import Path
from typing import Any, Final, NamedTuple

from webhook.analysis.timeline.model import Lane, Timeline
from webhook.analysis.timeline.page import render
from webhook.text.quoting import escape

SETTLED: Final = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


class Drawn(NamedTuple):
    """A span or mark by the attributes of its element; times in microseconds since the timeline begins."""

    lane: str
    kind: str
    begins: float
    ends: float | None
    holder: str


class TimelinePage:
    """An open page: `page` is Playwright's; `messages` are those of the console, `requests` those of the page."""

    def __init__(self, page: Any, directory: Path, timeline: Timeline) -> None:
        self.page = page
        self.timeline = timeline
        self.messages: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.messages.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on("dialog", self._refuse)
        page.on("request", lambda request: self.requests.append(request.url))
        path = directory / "timeline.html"
        path.write_bytes(render(timeline).encode())
        self.url = path.as_uri()
        page.goto(self.url)
        self.settle()

    def _refuse(self, dialog: Any) -> None:
        self.messages.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def settle(self) -> None:
        """Wait until the requested elements are drawn."""
        self.page.evaluate(SETTLED)

    def press(self, *keys: str) -> None:
        """Press keys, one after another."""
        for key in keys:
            self.page.keyboard.press(key)
            self.settle()

    def focus_lanes(self) -> None:
        """Put the focus on the lanes."""
        self.page.focus("#lanes")
        self.settle()

    @property
    def active(self) -> str:
        """Focused item, as a screen reader says it; "" for nothing."""
        return str(
            self.page.evaluate(
                "() => { const id = document.getElementById('lanes').getAttribute('aria-activedescendant');"
                " const e = id && document.getElementById(id);"
                " return e ? e.getAttribute('aria-label') || e.textContent : ''; }"
            )
        )

    @property
    def lanes(self) -> list[str]:
        """Names of the lanes that have elements, from top to bottom."""
        return [str(one) for one in self.page.eval_on_selector_all(".lane .name", "all => all.map(e => e.textContent)")]

    def list_drawn(self) -> list[Drawn]:
        """Return the spans that are drawn."""
        rows = self.page.eval_on_selector_all(
            ".spans .item",
            """all => all.map(e => [e.closest('.lane').querySelector('.name').textContent,
                e.querySelector('.bar').classList[1], e.items[0].begins, e.items[0].ends, e.items[0].holder])""",
        )
        return [Drawn(*row) for row in rows]

    def count_items(self, group: str) -> dict[str, int]:
        """Return how many spans or marks the elements of each lane stand for."""
        rows = self.page.eval_on_selector_all(
            ".lane",
            f"""all => all.map(lane => [lane.querySelector('.name').textContent,
                [...lane.querySelectorAll('.{group} .item')].flatMap(e => e.items)
                    .reduce((sum, one) => sum + one.count, 0)])""",
        )
        return {str(name): int(number) for name, number in rows}

    def read_text(self, selector: str) -> str:
        """Return the text of one element."""
        return str(self.page.text_content(selector))

    def list_values(self, fact: str) -> set[str]:
        """Return a fact, such as `kind`, of every span, event and doubt that the filters let through."""
        items = "view.lanes.flatMap(lane => [...lane.items, ...lane.doubts].filter(isShown))"
        return {str(one) for one in self.page.evaluate(f"{items}.map(item => item.{fact})")}


def list_spans(lane: Lane, timeline: Timeline) -> list[Drawn]:
    """Return the spans that are expected."""
    return [
        Drawn(
            escape(lane.name),
            span.kind.value,
            span.begins - timeline.begins,
            None if span.ends is None else span.ends - timeline.begins,
            escape(span.holder),
        )
        for span in lane.spans
    ]
