"""The table of states is what happens: no other event occurs, and each that it lists does.

Many more plays, which are drawn in another way, are those of `make fuzz`.
"""

import asyncio
import itertools
from collections.abc import Iterator
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.server.connections import in_a_loop
from tests.server.plays import (
    ACTIONS,
    CHUNKED,
    CHUNKED_LATER,
    FAST,
    LATER,
    LISTED,
    MESSAGES,
    REFUSED,
    STREAM,
    Driven,
    Play,
    heard_in_pieces,
    message,
    quiet,
    run,
)
from webhook.server.http.state import (
    ANSWERING,
    DISCARDED_IN,
    LOSE,
    READ_IN,
    STREAMING,
    TABLE,
    Event,
    IllegalEventError,
    State,
    advance,
    draw_diagram,
)
from webhook.server.logs import LOG


@pytest.fixture(autouse=True, scope="module")
def without_pauses() -> Iterator[None]:
    with quiet():
        yield


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Some messages in a row, with a few bytes changed, added or lost."""
    data = bytearray(b"".join(draw(st.lists(st.sampled_from(MESSAGES), min_size=1, max_size=4))))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(data)


@st.composite
def plays(draw: st.DrawFn) -> Play:
    """Reads of pieces of a stream, and between them whatever else may happen."""
    play: Play = []
    for data in draw(st.lists(streams(), min_size=1, max_size=3)):
        cuts = sorted({0, len(data), *draw(st.lists(st.integers(0, len(data)), max_size=4))})
        for start, end in itertools.pairwise(cuts):
            play += [data[start:end], *draw(st.lists(st.sampled_from(ACTIONS), max_size=2))]
    return play


@settings(max_examples=150)
@given(play=plays())
@in_a_loop
async def test_whatever_happens_a_port_keeps_its_promises(play: Play) -> None:
    await run(play)


async def wait_a_moment(_driven: Driven) -> None:
    """Let the event loop run once."""
    await asyncio.sleep(0)


EVERY: list[Play] = [
    [FAST, FAST],
    [message("/stream", b"", b"Connection: close"), Driven.finish, Driven.serve],
    [FAST[:10], FAST[10:60], FAST[60:]],
    [FAST[:10], Driven.expire, Driven.expire, Driven.expire],
    [LATER, Driven.finish, Driven.serve],
    [LATER, Driven.expire],
    [STREAM, Driven.finish, Driven.serve],
    [STREAM, Driven.finish, wait_a_moment, Driven.expire],
    [FAST[:-1], Driven.expire, Driven.expire],
    [message("/fast", b"", b"Connection: close")],
]


@in_a_loop
async def test_every_listed_change_occurs() -> None:
    seen: set[tuple[State, Event]] = set()
    for play in EVERY:
        for length in range(1, len(play) + 1):
            seen |= (await run([*play[:length], Driven.lose_and_connect])).events
    assert seen == LISTED


@pytest.mark.parametrize("state", TABLE, ids=str)
def test_an_event_that_the_table_does_not_have_is_refused(state: State) -> None:
    for event in {event for events in TABLE.values() for event in events} - TABLE[state].keys():
        with pytest.raises(IllegalEventError, match=f"a connection that is {state}"):
            advance(state, event)


def test_in_each_state_input_is_read_or_waits_or_is_discarded() -> None:
    assert [*READ_IN, *ANSWERING, *DISCARDED_IN] == [*TABLE]


@in_a_loop
async def test_a_bug_while_a_response_is_written_is_logged_and_ends_the_connection() -> None:
    driven = Driven()
    driven.send(STREAM)
    driven.finish()
    await wait_a_moment(driven)
    connection, wire = driven.connections[-1], driven.wires[-1]
    assert connection.state is STREAMING
    with mock.patch.object(wire, "pause_reading", side_effect=RuntimeError), mock.patch.object(LOG, "error") as error:
        driven.send(FAST)
    error.assert_called_once()
    assert wire.aborted
    driven.lose()
    await wait_a_moment(driven)


def test_the_diagram_has_an_arrow_for_each_change_but_a_lost_transport() -> None:
    arrows = {line.strip() for line in draw_diagram().splitlines() if "-->" in line}
    changes = {(before, event) for before, event in LISTED if event is not LOSE}
    assert {f"{before} --> {TABLE[before][event]}: {event}" for before, event in changes} < arrows
    assert len(arrows) == len(changes) + len({"begin", "lost", "end"})


@given(data=streams(), cuts=st.lists(st.integers(0, 4000), max_size=6))
@in_a_loop
async def test_how_bytes_are_cut_into_reads_changes_no_response(data: bytes, cuts: list[int]) -> None:
    ends = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[start:end] for start, end in itertools.pairwise(ends)]
    assert await heard_in_pieces(pieces) == await heard_in_pieces([data])


@in_a_loop
async def test_a_request_after_chunks_is_answered_wherever_the_reads_end() -> None:
    data = CHUNKED + FAST
    whole = await heard_in_pieces([data])
    assert whole == [b"1 x", b"2 body"]
    for at in range(len(data) - 2):
        assert await heard_in_pieces([data[:at], data[at : at + 2], data[at + 2 :]]) == whole


@in_a_loop
async def test_a_request_after_a_late_response_is_answered_wherever_the_reads_end() -> None:
    data = CHUNKED_LATER + FAST
    for at in range(len(data) - 2):
        assert await heard_in_pieces([data[:at], data[at : at + 2], data[at + 2 :]]) == [b"1 later", b"2 body"]


@in_a_loop
async def test_a_response_that_is_made_after_its_connection_was_aborted_is_not_written() -> None:
    driven = Driven()
    driven.send(LATER)
    driven.pause()
    driven.expire()
    assert driven.wires[0].aborted
    driven.finish()
    await driven.serve()
    assert driven.wires[0].written == b""
    await driven.end()


@in_a_loop
async def test_a_line_without_a_version_is_refused_wherever_the_reads_end() -> None:
    for at in range(len(b"GET /fast\r\n")):
        assert await heard_in_pieces([b"GET /fast\r\n"[:at], b"GET /fast\r\n"[at:]]) == [REFUSED]
