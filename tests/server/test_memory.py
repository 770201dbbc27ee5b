"""What a connection held is freed when it is lost, without waiting for the garbage collector."""

import gc
import weakref

import pytest

from tests.server.connections import REVIEW, connect, in_a_loop, make_port, request, settled

UNKNOWN_PATH = request(b"GET /nothing HTTP/1.1", b"Host: localhost", body=b"")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing was sent"),
        pytest.param(REVIEW, id="a review"),
        pytest.param(REVIEW * 3, id="pipelined reviews"),
        pytest.param(REVIEW[:-10], id="a part of a body"),
        pytest.param(b"POST /validate HTTP/1.1\r\nHost", id="a part of a head"),
        pytest.param(b"nonsense\r\n\r\n", id="no HTTP"),
        pytest.param(UNKNOWN_PATH, id="another path"),
    ],
)
@in_a_loop
async def test_a_lost_connection_is_freed_at_once(data: bytes) -> None:
    reviews = make_port()
    connection, wire = connect(reviews)
    if data:
        connection.data_received(data)
    await settled(reviews)
    lost = weakref.ref(connection)
    gc.collect()
    gc.disable()
    try:
        connection.connection_lost(None)
        del connection, wire
        assert lost() is None
    finally:
        gc.enable()
