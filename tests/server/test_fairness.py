"""What one client sends does not delay the others, and what it leaves behind is bounded."""

import asyncio
import tracemalloc
from typing import Final

import pytest

from tests.server.connections import (
    BODY,
    PLAIN,
    REVIEW,
    Wire,
    connect,
    in_a_loop,
    make_port,
    request,
    served,
    settled,
    statuses,
    uncounted,
)
from webhook.kubernetes.request import MAX_REQUEST
from webhook.kubernetes.review_size import OPENING
from webhook.server import metrics
from webhook.server.http import port as port_module
from webhook.server.http import round_robin
from webhook.server.http.connection import WIDE_CONNECTION, WIDE_READ
from webhook.server.http.message import HttpResponse, Request
from webhook.server.http.port import Port
from webhook.server.http.request_reader import STEP
from webhook.server.http.round_robin import PAUSE_SECONDS
from webhook.server.http.stream import Stream
from webhook.server.service_hooks import MAX_ON_LOOP, ServiceHooks
from webhook.server.settings import Guards

SMALLEST: Final = b"GET /x HTTP/1.1\r\nHost:\r\n\r\n"


def not_found(_request: Request) -> HttpResponse:
    return HttpResponse.from_text(404, "not found\n")


def responses(wire: Wire) -> int:
    return wire.written.count(b"HTTP/1.1 ")


async def all_turns(port: Port) -> None:
    while port.round_robin:
        await asyncio.sleep(PAUSE_SECONDS)


@in_a_loop
async def test_pipelined_requests_wait_for_the_turns_of_others() -> None:
    port = make_port(not_found)
    connection, wire = connect(port)
    connection.data_received(SMALLEST * 5000)
    assert responses(wire) == 1
    other, other_wire = connect(port)
    other.data_received(SMALLEST)
    assert responses(other_wire) == 1
    while port.round_robin:
        before = responses(wire)
        await asyncio.sleep(2 * PAUSE_SECONDS)
        assert responses(wire) > before
    assert responses(wire) == 5000
    assert wire.reads
    for each in (connection, other):
        each.connection_lost(None)


@in_a_loop
async def test_between_two_turns_the_worker_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(round_robin, "PAUSE_SECONDS", 60)
    port = make_port(not_found)
    connection, wire = connect(port)
    connection.data_received(SMALLEST * 5000)
    await asyncio.sleep(0)
    first = responses(wire)
    for _ in range(3):
        await asyncio.sleep(0)
    assert responses(wire) == first < 5000
    connection.connection_lost(None)


@in_a_loop
async def test_all_that_wait_get_their_turn() -> None:
    port = make_port(not_found)
    waiting = [connect(port) for _ in range(5)]
    for connection, _ in waiting:
        connection.data_received(SMALLEST * 500)
    await asyncio.sleep(0)
    counts = [responses(wire) for _, wire in waiting]
    assert max(counts) - min(counts) <= 1
    await all_turns(port)
    assert [responses(wire) for _, wire in waiting] == [500] * 5


@in_a_loop
async def test_a_connection_that_has_pipelined_is_served_in_turns_from_then_on() -> None:
    port = make_port(not_found)
    connection, wire = connect(port)
    connection.data_received(SMALLEST * 50)
    await all_turns(port)
    connection.data_received(SMALLEST)
    assert responses(wire) == 50
    await all_turns(port)
    assert responses(wire) == 51


@in_a_loop
async def test_a_connection_has_one_turn_at_a_time_however_often_its_client_stops_reading() -> None:
    port = make_port(not_found)
    connection, wire = connect(port)
    connection.data_received(SMALLEST * 500)
    for _ in range(100):
        connection.pause_writing()
        connection.resume_writing()
    assert len(port.round_robin) == 1
    await all_turns(port)
    assert responses(wire) == 500


@in_a_loop
async def test_what_is_not_a_review_keeps_its_place_among_reviews() -> None:
    port = make_port()
    connection, wire = connect(port)
    connection.data_received(SMALLEST + REVIEW + SMALLEST + SMALLEST + REVIEW)
    connection.data_received(REVIEW + SMALLEST)
    await all_turns(port)
    assert statuses(wire.written) == [404, 200, 404, 404, 200, 200, 404]
    assert wire.reads
    connection.connection_lost(None)


@in_a_loop
async def test_a_body_counts_as_in_flight_until_it_is_answered() -> None:
    port = make_port()
    body = request(b"POST /x HTTP/1.1", b"Host: x", b"Content-Length: 5", body=b"12345")
    connection, wire = connect(port)
    connection.data_received(body[:-1])
    assert port.bytes_in_flight == 4
    connection.data_received(body[-1:])
    assert port.bytes_in_flight == 0
    assert statuses(wire.written) == [404]
    gone, _ = connect(port)
    gone.data_received(body[:-1])
    gone.connection_lost(None)
    assert port.bytes_in_flight == 0


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
    port = make_port()
    connection, _ = connect(port)
    head = b"\r\n".join([b"POST /validate HTTP/1.1", *begin, b""])
    connection.data_received(head + (b"\r\n" if b"chunked" in head else b"") + more)
    assert port.round_robin
    await all_turns(port)
    connection.connection_lost(None)


@in_a_loop
async def test_what_comes_while_a_read_waits_is_answered_after_it() -> None:
    port = make_port()
    connection, wire = connect(port)
    wrong = REVIEW.replace(b"application/json", b"text/plain")
    connection.data_received(wrong * 200)
    connection.data_received(REVIEW)
    await all_turns(port)
    assert statuses(wire.written) == [415] * 200 + [200]


@in_a_loop
async def test_a_connection_that_ends_or_does_not_read_gets_no_more_turns() -> None:
    port = make_port(not_found)
    gone, gone_wire = connect(port)
    gone.data_received(SMALLEST * 200)
    gone.connection_lost(None)
    slow, slow_wire = connect(port)
    slow.data_received(SMALLEST * 200)
    slow.pause_writing()
    before = responses(gone_wire), responses(slow_wire)
    for _ in range(5):
        await asyncio.sleep(0)
    assert (responses(gone_wire), responses(slow_wire)) == before
    assert not port.round_robin
    slow.resume_writing()
    await all_turns(port)
    assert responses(slow_wire) == 200


@pytest.mark.parametrize("size", [100, STEP, 2400, 100_000])
@pytest.mark.parametrize("chunked", [False, True], ids=["a length", "chunks"])
@in_a_loop
async def test_a_body_of_any_size_is_read(size: int, chunked: bool) -> None:
    body = BODY + b" " * size
    data = request(b"POST /validate HTTP/1.1", *PLAIN[:2], b"Content-Length: %d" % len(body), body=body)
    if chunked:
        chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        data = request(b"POST /validate HTTP/1.1", *PLAIN[:2], b"Transfer-Encoding: chunked", body=chunks)
    port = make_port()
    connection, wire = connect(port)
    connection.data_received(data)
    assert chunked or not port.round_robin, "a body with a length is read in one go"
    await settled(port, connection)
    assert wire.written.startswith(b"HTTP/1.1 200")


@in_a_loop
async def test_half_a_head_after_a_body_in_one_read_is_valid() -> None:
    body = BODY[:-1] + b"\r\n}"
    data = request(b"POST /validate HTTP/1.1", *PLAIN[:2], b"Content-Length: %d" % len(body), body=body)
    port = make_port()
    connection, wire = connect(port)
    for piece in (data[:-5], data[-5:] + data[:25], data[25:]):
        connection.data_received(piece)
    await all_turns(port)
    assert responses(wire) == wire.written.count(b"HTTP/1.1 200") == 2


@in_a_loop
async def test_the_smallest_chunks_cost_little_more_than_what_they_hold() -> None:
    port = make_port()
    connection, wire = connect(port)
    connection.data_received(request(b"POST /validate HTTP/1.1", *PLAIN[:2], b"Transfer-Encoding: chunked", body=b""))
    tracemalloc.start()
    try:
        for _ in range(100):
            connection.data_received(b"1\r\nx\r\n" * 500)
            await all_turns(port)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert wire.written == b""
    assert held < 2 * 50_000


@in_a_loop
async def test_a_large_body_of_another_form_is_refused_with_its_first_bytes() -> None:
    for first, status in ((b"{ ", b"413"), (OPENING, b""), (OPENING[:5], b"")):
        connection, wire = connect(make_port())
        size = b"Content-Length: %d" % (MAX_REQUEST + 1)
        connection.data_received(request(b"POST /validate HTTP/1.1", *PLAIN[:2], size, body=first))
        assert wire.written[9:12] == status


LARGE: Final = request(
    b"POST /validate HTTP/1.1", *PLAIN[:2], b"Content-Length: %d" % (2 * MAX_ON_LOOP), body=BODY.ljust(2 * MAX_ON_LOOP)
)


@in_a_loop
async def test_others_do_not_wait_for_a_large_review() -> None:
    port = make_port()
    connection, wire = connect(port)
    connection.data_received(LARGE + REVIEW)
    assert (wire.written, wire.reads, port.bytes_in_flight) == (b"", False, 2 * MAX_ON_LOOP)
    other, other_wire = connect(port)
    other.data_received(REVIEW)
    assert statuses(other_wire.written) == [200]
    await settled(port, connection)
    assert wire.written == other_wire.written * 2
    assert (wire.reads, port.bytes_in_flight) == (True, 0)


@in_a_loop
async def test_a_large_review_of_a_client_that_has_gone_is_not_evaluated() -> None:
    port = make_port()
    connections = [connect(port) for _ in range(20)]
    for connection, _ in connections:
        connection.data_received(LARGE)
    waiting = [connection._response for connection, _ in connections]
    for connection, _ in connections:
        connection.connection_lost(None)
    await asyncio.wait([response for response in waiting if response])
    assert sum(1 for response in waiting if response is not None and response.cancelled()) == len(waiting)
    assert port.bytes_in_flight == 0


@in_a_loop
async def test_a_response_that_takes_too_long_is_a_503() -> None:
    never: asyncio.Future[HttpResponse | Stream] = asyncio.get_running_loop().create_future()
    port = Port(lambda _request: never, Guards(), uncounted)
    connection, wire = connect(port)
    connection.data_received(SMALLEST + SMALLEST)
    port.close_expired(connection.expires)
    assert statuses(wire.written) == [503]
    assert wire.closed
    connection.connection_lost(None)
    await asyncio.sleep(0)
    assert never.cancelled()
    assert statuses(wire.written) == [503]


@in_a_loop
async def test_a_large_body_in_chunks_is_refused_when_it_gets_large() -> None:
    port = make_port()
    connection, wire = connect(port)
    connection.data_received(request(b"POST /validate HTTP/1.1", *PLAIN[:2], b"Transfer-Encoding: chunked", body=b""))
    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    for _ in range(MAX_REQUEST // 0x10000):
        connection.data_received(piece)
        await all_turns(port)
    assert wire.written == b""
    connection.data_received(piece)
    await all_turns(port)
    assert wire.written.startswith(b"HTTP/1.1 413")


@in_a_loop
async def test_of_too_many_connections_the_longest_idle_is_closed() -> None:
    port = make_port(guards=Guards(max_connections=3))
    busy, busy_wire = connect(port)
    busy.data_received(REVIEW[:100])
    old, old_wire = connect(port)
    young, young_wire = connect(port)
    old.data_received(REVIEW)
    young.data_received(REVIEW)
    _, new_wire = connect(port)
    assert [wire.closed for wire in (busy_wire, old_wire, young_wire, new_wire)] == [False, True, False, False]
    old.connection_lost(None)
    young.connection_lost(None)
    _, last_wire = connect(port)
    assert not last_wire.closed


@in_a_loop
async def test_who_comes_is_kept_where_all_others_are_in_the_middle_of_a_request() -> None:
    """Else a client without a certificate could have each new connection of an API server closed."""
    port = make_port(guards=Guards(max_connections=3))
    slow = [connect(port) for _ in range(3)]
    for age, (connection, _) in zip((3, 5, 4), slow, strict=True):
        connection.data_received(REVIEW[:-1])
        connection.waits_since -= age
    new, new_wire = connect(port)
    assert [wire.closed for _, wire in slow] == [False, True, False]
    new.data_received(REVIEW)
    assert new_wire.written.startswith(b"HTTP/1.1 200")


@in_a_loop
async def test_a_request_that_is_not_whole_in_a_second_ends_before_a_connection_that_was_answered() -> None:
    port = make_port(guards=Guards(max_connections=3))
    answered, answered_wire = connect(port)
    answered.data_received(REVIEW)
    answered.waits_since -= 60
    slow, slow_wire = connect(port)
    slow.data_received(REVIEW[:-1])
    slow.waits_since -= 2
    fast, fast_wire = connect(port)
    fast.data_received(REVIEW[:-1])
    connect(port)
    assert [wire.closed for wire in (answered_wire, slow_wire, fast_wire)] == [False, True, False]
    connect(port)
    assert [wire.closed for wire in (answered_wire, fast_wire)] == [True, False]


@in_a_loop
async def test_who_was_refused_is_closed_first() -> None:
    port = make_port(guards=Guards(max_connections=2))
    refused, refused_wire = connect(port)
    refused.data_received(b"NONSENSE\r\n\r\n")
    assert refused_wire.written.startswith(b"HTTP/1.1 400")
    assert not refused_wire.closed
    answered, answered_wire = connect(port)
    answered.data_received(REVIEW)
    connect(port)
    assert [wire.closed for wire in (refused_wire, answered_wire)] == [True, False]


@in_a_loop
async def test_a_connection_with_wide_buffers_counts_for_several() -> None:
    port = make_port(guards=Guards(max_connections=WIDE_CONNECTION + 1))
    idle, idle_wire = connect(port)
    idle.waits_since -= 2
    wide, wide_wire = connect(port)
    body = BODY + b" " * WIDE_READ
    wide.data_received(request(b"POST /validate HTTP/1.1", *PLAIN[:2], b"Content-Length: %d" % len(body), body=body))
    assert (idle_wire.closed, wide_wire.closed) == (False, False)
    _, new_wire = connect(port)
    assert (idle_wire.closed, wide_wire.closed, new_wire.closed) == (True, False, False)
    wide.connection_lost(None)
    assert port.has_freed_much
    port.trim_memory()
    assert not port.has_freed_much
    idle.connection_lost(None)


def test_memory_is_trimmed_only_where_the_c_library_can(monkeypatch: pytest.MonkeyPatch) -> None:
    for trim in (port_module._malloc_trim(), None):
        monkeypatch.setattr(port_module, "_malloc_trim", lambda trim=trim: trim)
        port = make_port()
        port.has_freed_much = True
        port.trim_memory()
        assert not port.has_freed_much


@in_a_loop
async def test_scrapes_of_one_second_get_one_page(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0

    def page() -> bytes:
        nonlocal count
        count += 1
        return b"page"

    server = served()
    assert isinstance(server.hooks, ServiceHooks)
    counts, port = server.hooks.service.metrics, server.ports[1]
    monkeypatch.setattr(counts, "_render", page)
    monkeypatch.setattr(metrics, "MAX_CACHE_SECONDS", 60)
    connection, wire = connect(port)
    connection.data_received(b"GET /metrics HTTP/1.1\r\nHost:\r\n\r\n" * 5)
    await all_turns(port)
    assert wire.written.count(b"page") == 5
    assert count == 1
    monkeypatch.setattr(metrics, "MAX_CACHE_SECONDS", 0)
    assert counts.render() == b"page"
    assert count == 2
    connection.connection_lost(None)
