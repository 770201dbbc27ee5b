"""What one client sends does not hold up the others, and what it leaves behind is bounded."""

import asyncio
import tracemalloc
from typing import Final

import pytest
from uvicorn.server import ServerState

from tests.server.test_known_heads import (
    BODY,
    CONFIG,
    METRICS,
    PLAIN,
    REVIEW,
    Wire,
    connection,
    in_a_loop,
    port,
    request,
)
from webhook.api.bulk import LARGEST_REQUEST, OPENING
from webhook.server.health_port import HealthProtocol, Readiness
from webhook.server.http import memory, turns
from webhook.server.http.port_state import Load
from webhook.server.http.turns import PAUSE_SECONDS, STEP
from webhook.server.observe import metrics
from webhook.server.observe.metrics import Metrics
from webhook.server.settings import WIDE_CONNECTION, WIDE_READ, Guards

SMALLEST: Final = b"GET /x HTTP/1.1\r\nHost:\r\n\r\n"
MOST_ANSWERS: Final = STEP // len(SMALLEST) + 1
"""To one connection before others get their turn."""


def answers(wire: Wire) -> int:
    return wire.said.count(b"HTTP/1.1 ")


async def all_turns(one: Load) -> None:
    while one.turns:
        await asyncio.sleep(PAUSE_SECONDS)


@in_a_loop
async def test_pipelined_requests_wait_for_the_turns_of_others() -> None:
    one = port()
    protocol, wire = connection(one)
    protocol.data_received(SMALLEST * 5000)
    assert answers(wire) <= MOST_ANSWERS
    other, other_wire = connection(one)
    other.data_received(request(b"POST /validate?timeout=7s HTTP/1.1"))
    assert other_wire.said.startswith(b"HTTP/1.1 200")
    while one.turns:
        before = answers(wire)
        await asyncio.sleep(2 * PAUSE_SECONDS)
        assert answers(wire) > before
    assert answers(wire) == 5000
    for each in (protocol, other):
        each.connection_lost(None)


@in_a_loop
async def test_between_two_turns_the_worker_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PAUSE_SECONDS", 60)
    one = port()
    protocol, wire = connection(one)
    protocol.data_received(SMALLEST * 5000)
    await asyncio.sleep(0)
    first = answers(wire)
    for _ in range(3):
        await asyncio.sleep(0)
    assert answers(wire) == first < 5000
    protocol.connection_lost(None)


@in_a_loop
async def test_all_that_wait_get_their_turn() -> None:
    one = port()
    waiting = [connection(one) for _ in range(5)]
    for protocol, _ in waiting:
        protocol.data_received(SMALLEST * 500)
    await asyncio.sleep(0)
    counts = [answers(wire) for _, wire in waiting]
    assert max(counts) - min(counts) <= MOST_ANSWERS
    await all_turns(one)
    assert [answers(wire) for _, wire in waiting] == [500] * 5


@in_a_loop
async def test_a_connection_that_has_pipelined_is_served_in_turns_from_then_on() -> None:
    one = port()
    protocol, wire = connection(one)
    protocol.data_received(SMALLEST * 50)
    await all_turns(one)
    protocol.data_received(SMALLEST)
    assert answers(wire) == 50
    await all_turns(one)
    assert answers(wire) == 51


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        ((*PLAIN[:2], b"Transfer-Encoding: chunked"), b"2\r\nxx\r\n" * 40_000),
        ((b"Host: localhost",), b"a:b\r\n" * 12_000),
    ],
    ids=["chunks of two bytes", "twelve thousand headers"],
)
@in_a_loop
async def test_a_request_that_takes_long_to_parse_waits_for_the_turns_of_others(
    begin: tuple[bytes, ...], more: bytes
) -> None:
    one = port()
    protocol, _ = connection(one)
    head = b"\r\n".join([b"POST /validate HTTP/1.1", *begin, b""])
    protocol.data_received(head + (b"\r\n" if b"chunked" in head else b"") + more)
    assert one.turns
    await all_turns(one)
    protocol.connection_lost(None)


@in_a_loop
async def test_what_comes_while_a_read_waits_is_answered_after_it() -> None:
    one = port()
    protocol, wire = connection(one)
    protocol.data_received(SMALLEST * 200)
    protocol.data_received(REVIEW)
    await all_turns(one)
    assert [line[9:12] for line in wire.said.splitlines() if line.startswith(b"HTTP/1.1 ")] == [b"404"] * 200 + [b"200"]


@in_a_loop
async def test_a_connection_that_ends_or_does_not_read_gets_no_more_turns() -> None:
    one = port()
    gone, gone_wire = connection(one)
    gone.data_received(SMALLEST * 200)
    gone.connection_lost(None)
    slow, slow_wire = connection(one)
    slow.data_received(SMALLEST * 200)
    slow.pause_writing()
    before = answers(gone_wire), answers(slow_wire)
    for _ in range(5):
        await asyncio.sleep(0)
    assert (answers(gone_wire), answers(slow_wire)) == before
    assert not one.turns
    slow.resume_writing()
    await all_turns(one)
    assert answers(slow_wire) == 200


@pytest.mark.parametrize("size", [100, STEP, 2400, 100_000])
@pytest.mark.parametrize("chunked", [False, True], ids=["a length", "chunks"])
@in_a_loop
async def test_a_body_of_any_size_is_read(size: int, chunked: bool) -> None:
    body = BODY + b" " * size
    data = request(b"POST /validate HTTP/1.1", *PLAIN[:2], b"Content-Length: %d" % len(body), body=body)
    if chunked:
        chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        data = request(b"POST /validate HTTP/1.1", *PLAIN[:2], b"Transfer-Encoding: chunked", body=chunks)
    one = port()
    protocol, wire = connection(one)
    protocol.data_received(data)
    assert chunked or not one.turns, "a body with a length is read in one go"
    await all_turns(one)
    assert wire.said.startswith(b"HTTP/1.1 200")


@in_a_loop
async def test_half_a_head_after_a_body_in_one_read_is_no_mistake() -> None:
    body = BODY[:-1] + b"\r\n}"
    data = request(b"POST /validate HTTP/1.1", *PLAIN[:2], b"Content-Length: %d" % len(body), body=body)
    protocol, wire = connection(port())
    for piece in (data[:-5], data[-5:] + data[:25], data[25:]):
        protocol.data_received(piece)
    assert answers(wire) == wire.said.count(b"HTTP/1.1 200") == 2


@in_a_loop
async def test_the_smallest_chunks_cost_little_more_than_what_they_hold() -> None:
    one = port()
    protocol, wire = connection(one)
    protocol.data_received(request(b"POST /validate HTTP/1.1", *PLAIN[:2], b"Transfer-Encoding: chunked", body=b""))
    tracemalloc.start()
    try:
        for _ in range(500):
            protocol.data_received(b"1\r\nx\r\n" * 500)
            await all_turns(one)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert wire.said == b""
    assert held < 2 * 250_000


@in_a_loop
async def test_a_large_body_of_another_form_is_refused_with_its_first_bytes() -> None:
    for first, status in ((b"{ ", b"413"), (OPENING, b""), (OPENING[:5], b"")):
        protocol, wire = connection(port())
        size = b"Content-Length: %d" % (LARGEST_REQUEST + 1)
        protocol.data_received(request(b"POST /validate HTTP/1.1", *PLAIN[:2], size, body=first))
        assert wire.said[9:12] == status


@in_a_loop
async def test_a_large_body_in_chunks_is_refused_when_it_gets_large() -> None:
    one = port()
    protocol, wire = connection(one)
    protocol.data_received(request(b"POST /validate HTTP/1.1", *PLAIN[:2], b"Transfer-Encoding: chunked", body=b""))
    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    for _ in range(LARGEST_REQUEST // 0x10000):
        protocol.data_received(piece)
        await all_turns(one)
    assert wire.said == b""
    protocol.data_received(piece)
    await all_turns(one)
    assert wire.said.startswith(b"HTTP/1.1 413")


@in_a_loop
async def test_of_too_many_connections_the_longest_idle_is_closed() -> None:
    one = Load(Guards(largest_connections=3), METRICS)
    busy, busy_wire = connection(one)
    busy.data_received(REVIEW[:100])
    old, old_wire = connection(one)
    young, young_wire = connection(one)
    old.data_received(REVIEW)
    young.data_received(REVIEW)
    _, new_wire = connection(one)
    assert [wire.closed for wire in (busy_wire, old_wire, young_wire, new_wire)] == [False, True, False, False]
    old.connection_lost(None)
    young.connection_lost(None)
    _, last_wire = connection(one)
    assert not last_wire.closed


@in_a_loop
async def test_a_connection_with_wide_buffers_counts_for_several() -> None:
    one = Load(Guards(largest_connections=WIDE_CONNECTION + 1), METRICS)
    idle, idle_wire = connection(one)
    wide, wide_wire = connection(one)
    body = BODY + b" " * WIDE_READ
    wide.data_received(request(b"POST /validate HTTP/1.1", *PLAIN[:2], b"Content-Length: %d" % len(body), body=body))
    assert (idle_wire.closed, wide_wire.closed) == (False, False)
    _, new_wire = connection(one)
    assert (idle_wire.closed, wide_wire.closed, new_wire.closed) == (True, False, False)
    wide.connection_lost(None)
    assert one.has_freed_much
    one.give_back()
    assert not one.has_freed_much
    idle.connection_lost(None)


def test_memory_is_given_back_only_where_the_c_library_can(monkeypatch: pytest.MonkeyPatch) -> None:
    memory.give_back()
    monkeypatch.setattr(memory, "_malloc_trim", lambda: None)
    memory.give_back()


@in_a_loop
async def test_scrapes_of_one_second_get_one_page(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = Metrics()
    made = 0

    def page() -> bytes:
        nonlocal made
        made += 1
        return b"page"

    monkeypatch.setattr(counts, "_exposition", page)
    monkeypatch.setattr(metrics, "SHOWN_SECONDS", 60)
    health = HealthProtocol(
        Load(Guards(), counts), lambda: Readiness([], []), counts, CONFIG, ServerState(), asyncio.get_running_loop()
    )
    wire = Wire()
    health.connection_made(wire)
    health.data_received(b"GET /metrics HTTP/1.1\r\nHost:\r\n\r\n" * 5)
    await asyncio.sleep(0.2)  # they are answered in turns
    assert wire.said.count(b"page") == 5
    assert made == 1
    monkeypatch.setattr(metrics, "SHOWN_SECONDS", 0)
    assert counts.exposition() == b"page"
    assert made == 2
    health.connection_lost(None)
