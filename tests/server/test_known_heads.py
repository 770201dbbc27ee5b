"""A known head is a fast path and nothing else: the response is the one that the parser's way gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.server.connections import (
    BODY,
    PLAIN,
    REVIEW,
    connect,
    heard,
    in_a_loop,
    make_port,
    request,
    uncounted,
)
from webhook.server.http.known_heads import KnownHeads
from webhook.server.http.message import Head, HttpResponse, RefusedError, Request
from webhook.server.http.port import Port
from webhook.server.settings import Guards

HEAD = Head.from_parts(
    b"POST", b"/validate?timeout=10s", [(b"host", b"localhost"), (b"content-length", b"%d" % len(BODY))]
)


class NothingKnown(KnownHeads):
    """Forgets at once."""

    def remember(self, data: bytes, head: Head) -> None:
        """Do nothing."""


def forgetful_port() -> Port:
    port = make_port()
    port.known_heads = NothingKnown()
    return port


def knows(port: Port, data: bytes) -> bool:
    return port.known_heads.find(data) is not None


@pytest.mark.parametrize(
    ("data", "known"),
    [
        pytest.param(REVIEW, True, id="a review"),
        pytest.param(request(b"POST /validate HTTP/1.1"), True, id="a review without a timeout"),
        pytest.param(b"\r\n" + REVIEW, True, id="an empty line before it, which means the same each time"),
        pytest.param(b"\r\n\r\n" + REVIEW, False, id="two empty lines before it"),
        pytest.param(REVIEW + REVIEW, False, id="two reviews in one read"),
        pytest.param(REVIEW + b"\r\n", False, id="a byte too many"),
        pytest.param(request(b"POST /validate HTTP/1.1", *PLAIN, b"Connection: close"), False, id="close"),
        pytest.param(request(b"POST /validate HTTP/1.0", *PLAIN), False, id="HTTP/1.0"),
        pytest.param(request(b"POST /validate HTTP/1.1", *PLAIN, b"Expect: 100-continue"), False, id="expectation"),
        pytest.param(request(b"POST /validate HTTP/1.1", *PLAIN, b"X: " + b"x" * 512), False, id="a long head"),
        pytest.param(
            request(b"POST /validate HTTP/1.1", *PLAIN, *(b"X%d: y" % n for n in range(14))), False, id="many headers"
        ),
        pytest.param(request(b"POST /validate HTTP/1.1", *PLAIN[1:]), False, id="refused: no Host"),
        pytest.param(request(b"POST /other HTTP/1.1", *PLAIN), True, id="another path"),
        pytest.param(
            request(
                b"POST /validate HTTP/1.1",
                *PLAIN[:2],
                b"Transfer-Encoding: chunked",
                body=b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY),
            ),
            False,
            id="chunks",
        ),
    ],
)
@in_a_loop
async def test_what_becomes_known(data: bytes, known: bool) -> None:
    port = make_port()
    first = await heard(port, [data])
    assert knows(port, data) is known
    assert len(port.known_heads._heads) == known
    assert await heard(port, [data]) == first


@in_a_loop
async def test_a_review_in_two_reads_is_not_remembered_and_not_found() -> None:
    port = make_port()
    await heard(port, [REVIEW[:100], REVIEW[100:]])
    assert not knows(port, REVIEW)
    written, _ = await heard(port, [REVIEW])
    assert knows(port, REVIEW)
    assert await heard(port, [REVIEW[:100], REVIEW[100:]]) == (written, False)


@in_a_loop
async def test_of_two_requests_in_one_read_the_first_head_does_not_get_the_meaning_of_the_second() -> None:
    port = make_port()
    refused = request(b"POST /validate HTTP/1.1", PLAIN[0], b"Content-Type: text/plain", PLAIN[2])
    await heard(port, [refused + REVIEW])
    written, _ = await heard(port, [refused])
    assert written.startswith(b"HTTP/1.1 415")


@in_a_loop
async def test_a_client_that_is_not_allowed_is_refused_with_a_known_head() -> None:
    port = make_port(client_names=("kube-apiserver",))
    allowed, wire = connect(port)
    allowed.client_names = frozenset({"kube-apiserver"})
    allowed.data_received(REVIEW)
    assert wire.written.startswith(b"HTTP/1.1 200")
    assert knows(port, REVIEW)
    stranger, wire = connect(port)
    stranger.data_received(REVIEW)
    assert wire.written.startswith(b"HTTP/1.1 403")
    stranger.connection_lost(None)


@in_a_loop
async def test_a_body_is_refused_by_how_it_begins_with_a_known_head() -> None:
    """An application of others may refuse small bodies too."""

    def refuse(_size: int, beginning: bytes | bytearray) -> None:
        if beginning.startswith(b" "):
            raise RefusedError(413, "no review begins so")

    port = Port(lambda _request: HttpResponse.from_text(200, "ok"), Guards(), uncounted, check_beginning=refuse)
    empty = request(b"POST /validate HTTP/1.1", *PLAIN[:2], b"Content-Length: 0", body=b"")
    for known in (REVIEW, empty):
        await heard(port, [known])
        assert knows(port, known)
        assert (await heard(port, [known]))[0].startswith(b"HTTP/1.1 200")
    written, was_closed = await heard(port, [REVIEW[: -len(BODY)] + b" " * len(BODY)])
    assert written.startswith(b"HTTP/1.1 413")
    assert was_closed


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\r\n"])
@in_a_loop
async def test_a_head_ends_nowhere_but_at_its_first_empty_line(end: bytes) -> None:
    """Check what `remember` counts on; another parser might take these."""
    port = make_port()
    head = REVIEW[: -len(BODY)]
    for odd in (head.replace(b"\r\n", end), head.removesuffix(b"\r\n") + end):
        written, _ = await heard(port, [odd + BODY])
        assert not written.startswith(b"HTTP/1.1 200")


@in_a_loop
async def test_the_last_room_is_room_with_a_known_head() -> None:
    knowing, forgetting = make_port(), forgetful_port()
    written, _ = await heard(knowing, [REVIEW])
    for port in (knowing, forgetting):
        port.bytes_in_flight = port.guards.max_bytes_in_flight - len(BODY)
        assert (await heard(port, [REVIEW]))[0] == written


@in_a_loop
async def test_no_room_is_no_room_with_a_known_head() -> None:
    port = make_port()
    await heard(port, [REVIEW])
    port.bytes_in_flight = port.guards.max_bytes_in_flight - len(BODY) + 1
    written, _ = await heard(port, [REVIEW])
    assert written.startswith(b"HTTP/1.1 503")


@in_a_loop
async def test_a_connection_that_drains_closes_after_a_known_head() -> None:
    port = make_port()
    await heard(port, [REVIEW])
    connection, wire = connect(port)
    port.drain(0.0)
    connection.data_received(REVIEW)
    assert b"connection: close" in wire.written
    assert wire.closed
    connection.connection_lost(None)


@in_a_loop
async def test_a_bug_behind_a_known_head_ends_its_connection_with_500() -> None:
    bugs: list[bytes] = []

    def respond(request: Request) -> HttpResponse:
        if bugs:
            raise RuntimeError("put in by a test")
        bugs.append(request.body)
        return HttpResponse.from_text(200, "")

    port = make_port(respond)
    await heard(port, [REVIEW])
    assert knows(port, REVIEW)
    written, closed = await heard(port, [REVIEW])
    assert written.startswith(b"HTTP/1.1 500")
    assert closed


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KnownHeads, "MAX_HEADS", 3)
    heads = KnownHeads()
    reads = [b"%d\r\n\r\n" % number + BODY for number in range(5)]
    for data in reads:
        heads.remember(data, HEAD)
    assert [heads.find(data) is not None for data in reads] == [False, False, True, True, True]


LINES = st.sampled_from(
    [
        b"POST /validate?timeout=10s HTTP/1.1",
        b"POST /validate HTTP/1.1",
        b"POST /validate HTTP/1.0",
        b"GET /validate HTTP/1.1",
        b"POST /other HTTP/1.1",
        b"junk",
    ]
)
HEADERS = st.sampled_from(
    [
        *PLAIN,
        b"host: localhost",
        b"Content-Length: 0",
        b"Content-Length: 5",
        b"Content-Encoding: gzip",
        b"Content-Type: text/plain",
        b"Transfer-Encoding: chunked",
        b"Transfer-Encoding: gzip",
        b"Expect: 100-continue",
        b"Expect: other",
        b"Connection: close",
        b"Connection: Upgrade",
        b"Upgrade: h2c",
        b"X-Long: " + b"x" * 500,
    ]
)
BODIES = st.sampled_from([BODY, BODY[:-1], b"", b"{}", b"5\r\nabcde\r\n0\r\n\r\n"])
ODD = st.builds(
    lambda line, headers, body: request(line, *headers, body=body), LINES, st.lists(HEADERS, min_size=1), BODIES
)
NEARLY = st.builds(lambda line, header: request(line, *PLAIN, header), LINES, HEADERS)
MESSAGES = st.one_of(st.just(REVIEW), NEARLY, ODD, st.just(b"\r\n"))


@st.composite
def reads_of_a_connection(draw: st.DrawFn) -> list[bytes]:
    """Some messages, each in one read, in several, or together with the next."""
    reads = [b""]
    for message in draw(st.lists(MESSAGES, min_size=1, max_size=5)):
        if draw(st.booleans()):
            reads.append(b"")
        cut = draw(st.one_of(st.just(len(message)), st.integers(0, len(message))))
        reads[-1] += message[:cut]
        if cut < len(message):
            reads.append(message[cut:])
    return [data for data in reads if data]


@given(connections=st.lists(reads_of_a_connection(), min_size=1, max_size=4))
@in_a_loop
async def test_knowing_heads_changes_no_answer(connections: list[list[bytes]]) -> None:
    knowing, forgetting = make_port(), forgetful_port()
    await heard(knowing, [REVIEW])
    for reads in connections:
        for again in range(2):
            assert await heard(knowing, reads) == await heard(forgetting, reads), (again, reads)
