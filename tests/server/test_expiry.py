"""Connections whose time has passed are closed, each for itself."""

import time
from typing import Any

import pytest

from tests.server.connections import REVIEW, connect, in_a_loop, make_port, statuses
from webhook.server.http.connection import CLOSE_SECONDS, Connection
from webhook.server.http.state import CLOSING, DISCARDING, IDLE
from webhook.server.settings import Guards

FOREVER = 1e9


@in_a_loop
async def test_only_those_whose_time_has_passed() -> None:
    port = make_port()
    connections = [connect(port) for _ in range(3)]
    for (connection, _), expires in zip(connections, (1.0, 2.0, 2.1), strict=True):
        connection.expires = expires
    port.close_expired(2.0)
    assert [wire.closed for _, wire in connections] == [True, True, False]


@in_a_loop
async def test_a_bug_with_one_aborts_it_and_keeps_none_of_the_others_open(monkeypatch: pytest.MonkeyPatch) -> None:
    port = make_port()
    connections = [connect(port) for _ in range(5)]
    expire = Connection.expire

    def sometimes(connection: Connection) -> None:
        if connection is connections[2][0]:
            raise RuntimeError("put in by a test")
        expire(connection)

    monkeypatch.setattr(Connection, "expire", sometimes)
    port.close_expired(FOREVER)
    assert [wire.closed for _, wire in connections] == [True] * 5
    assert [wire.aborted for _, wire in connections] == [False, False, True, False, False]


@in_a_loop
async def test_what_expiry_does_depends_on_the_state() -> None:
    port = make_port()
    idle, idle_wire = connect(port)
    begun, begun_wire = connect(port)
    begun.data_received(REVIEW[:100])
    deaf, deaf_wire = connect(port)
    deaf.pause_writing()
    port.close_expired(FOREVER)
    assert (idle.state, idle_wire.written, idle_wire.closed) == (CLOSING, b"", True)
    assert (begun.state, statuses(begun_wire.written), begun_wire.closed) == (DISCARDING, [408], False)
    assert deaf_wire.aborted
    port.close_expired(FOREVER)
    assert (begun.state, begun_wire.closed, begun_wire.aborted) == (CLOSING, True, False)
    port.close_expired(FOREVER)
    assert begun_wire.aborted


@in_a_loop
async def test_how_long_each_state_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr("webhook.server.http.connection.monotonic", lambda: now)
    guards, port = Guards(), make_port()
    connection, wire = connect(port)
    assert connection.expires == now + guards.keep_alive_seconds
    connection.data_received(REVIEW[:50])
    assert connection.expires == now + guards.request_seconds
    began, now = now, now + 3
    connection.data_received(REVIEW[50:100])
    assert connection.expires == began + guards.request_seconds, "bytes that drip do not extend it"
    connection.pause_writing()
    assert connection.expires == now + guards.request_seconds
    connection.resume_writing()
    assert connection.expires == began + guards.request_seconds
    connection.data_received(REVIEW[100:])
    assert connection.state is IDLE
    assert connection.expires == now + guards.keep_alive_seconds
    port.drain(now)
    assert connection.expires == now + guards.drain_seconds
    late, _ = connect(port)
    assert late.expires == now + guards.drain_seconds, "a handshake may end after SIGTERM"
    connection.data_received(b"junk\r\n\r\n" + REVIEW)
    assert (connection.state, connection.expires) == (DISCARDING, now + guards.linger_seconds)
    port.close_expired(connection.expires)
    assert (connection.state, connection.expires) == (CLOSING, now + CLOSE_SECONDS)
    assert statuses(wire.written) == [200, 400]


@in_a_loop
async def test_a_response_that_fills_the_buffers_starts_the_time_to_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    port = make_port()
    connection, wire = connect(port)
    write = wire.write

    def full(data: Any) -> None:
        write(data)
        connection.pause_writing()

    monkeypatch.setattr(wire, "write", full)
    before = connection.expires
    connection.data_received(REVIEW)
    assert connection.expires < before - 100
    assert not wire.reads
