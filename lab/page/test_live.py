"""The live page: lanes that come as server-sent events take their place among the others."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from threading import Thread
from typing import Any

import pytest
from msgspec.structs import replace

from lab.page.timeline_page import SETTLED
from tests.timeline.election_samples import SECOND, sample_timeline
from webhook.analysis.timeline.model import SpanKind, Timeline
from webhook.analysis.timeline.page import encode_page_data, make_content_security_policy, render

EVENTS = "/token/events"


class Server:
    """A server of the page and of all that is put into `messages`; None ends the stream."""

    def __init__(self, timeline: Timeline) -> None:
        self.messages: SimpleQueue[bytes | None] = SimpleQueue()
        page = render(timeline, events=EVENTS).encode()
        messages = self.messages

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200 if self.path in {"/", EVENTS} else 404)
                self.send_header("Content-Type", "text/html" if self.path == "/" else "text/event-stream")
                self.send_header("Content-Security-Policy", make_content_security_policy(events=EVENTS))
                self.end_headers()
                if self.path == "/":
                    self.wfile.write(page)
                elif self.path == EVENTS:
                    while (message := messages.get()) is not None:
                        self.wfile.write(b"data: " + message + b"\n\n")
                        self.wfile.flush()

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        Thread(target=self.http.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}/"

    def send(self, timeline: Timeline, status: str = "", *, has_ended: bool = False) -> None:
        self.messages.put(encode_page_data(timeline, status=status, hasEnded=has_ended))

    def close(self) -> None:
        self.messages.put(None)
        self.http.shutdown()
        self.http.server_close()


WHOLE = sample_timeline(3)


@pytest.fixture
def live(browser: Any) -> Iterator[tuple[Any, Server, list[str]]]:
    server = Server(Timeline(WHOLE.begins, WHOLE.ends, WHOLE.lanes[:1]))
    page = browser.new_page()
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(server.url)
    yield page, server, messages
    page.close()
    server.close()
    assert messages == []


def wait_until(page: Any, condition: str) -> None:
    """Wait, for ten seconds at most. Playwright's own waiting needs eval, which the policy of the page forbids."""
    for _ in range(500):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(20)
    pytest.fail(f"never so: {condition}")


def list_names(page: Any) -> set[str]:
    page.evaluate(SETTLED)
    return set(page.eval_on_selector_all(".lane .name", "all => all.map(e => e.textContent)"))


def test_a_new_lane_appears_and_a_known_one_is_replaced(live: tuple[Any, Server, list[str]]) -> None:
    page, server, _ = live
    assert "controller-2" not in list_names(page)
    server.send(replace(WHOLE, lanes=WHOLE.lanes[1:]))
    wait_until(page, "book.lanes.size === 3")
    assert {"controller-0", "controller-1", "controller-2"} <= list_names(page)
    lane = replace(WHOLE.lanes[2], spans=(*WHOLE.lanes[2].spans[:-1], replace(WHOLE.lanes[2].spans[-1], holder="new")))
    server.send(replace(WHOLE, begins=WHOLE.begins + SECOND, lanes=(lane,)))
    wait_until(page, "stateAt(book.lanes.get('shop/controller-2'), book.ends).who === 'new'")
    page.evaluate(SETTLED)
    spans = page.eval_on_selector_all(
        ".lane .spans .item",
        "all => all.filter(e => e.closest('.lane').querySelector('.name').textContent === 'controller-2')"
        ".map(e => [e.items[0].begins, e.items[0].holder])",
    )
    assert sorted(spans) == [[span.begins - WHOLE.begins, span.holder] for span in lane.spans]


def test_the_axis_follows_the_clock_until_a_person_zooms(live: tuple[Any, Server, list[str]]) -> None:
    page, server, _ = live
    server.send(replace(WHOLE, ends=WHOLE.ends + 60 * SECOND, lanes=()))
    wait_until(page, f"book.ends === {WHOLE.ends - WHOLE.begins + 60 * SECOND}")
    assert page.evaluate("chart.scale.domain()[1] >= book.ends")
    page.focus("#lanes")
    page.keyboard.press("+")
    window = page.evaluate("chart.scale.domain()")
    server.send(replace(WHOLE, ends=WHOLE.ends + 90 * SECOND, lanes=()))
    wait_until(page, f"book.ends === {WHOLE.ends - WHOLE.begins + 90 * SECOND}")
    assert page.evaluate("chart.scale.domain()") == pytest.approx(window)


def test_a_zoom_and_a_clock_of_the_same_frame(live: tuple[Any, Server, list[str]]) -> None:
    page, _, _ = live
    before, after = page.evaluate("""() => {
      const wide = () => chart.scale.domain()[1] - chart.scale.domain()[0];
      const before = wide();
      for (const key of ["+", "+"]) list.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      take({ ...data, ends: data.ends + 1e6, lanes: [] });
      return [before, wide()];
    }""")
    assert after == pytest.approx(before / 4)


def test_the_keyboard_stays_where_it_is(live: tuple[Any, Server, list[str]]) -> None:
    page, server, _ = live
    page.focus("#lanes")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    before = page.evaluate("[view.active.kind, view.active.begins]")
    server.send(WHOLE)
    wait_until(page, "book.lanes.size === 3")
    assert page.evaluate("[view.active.kind, view.active.begins]") == before
    assert page.evaluate("view.active === book.lanes.get(view.active.lane.id).items.find(i => i === view.active)")


def test_the_end_is_said(live: tuple[Any, Server, list[str]]) -> None:
    page, server, _ = live
    server.send(replace(WHOLE, lanes=()))
    wait_until(page, "document.getElementById('live').textContent === 'Live.'")
    server.send(replace(WHOLE, lanes=()), "kubectl ended: <b>connection refused</b>", has_ended=True)
    wait_until(page, "document.getElementById('live').textContent.includes('<b>connection refused</b>')")


def test_a_live_page_may_begin_empty(browser: Any) -> None:
    server = Server(Timeline(WHOLE.begins, WHOLE.begins))
    page = browser.new_page()
    page.goto(server.url)
    server.send(WHOLE)
    wait_until(page, "document.querySelectorAll('.lane').length === 3")
    page.evaluate(SETTLED)
    kinds = page.eval_on_selector_all(".spans .item", "all => all.map(e => e.items[0].kind)")
    assert len(kinds) == sum(len(lane.spans) for lane in WHOLE.lanes)
    assert {SpanKind.HELD, SpanKind.LEADERLESS} <= set(kinds)
    assert "controller-0" in page.text_content("#details")
    page.close()
    server.close()
