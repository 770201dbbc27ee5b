"""A client that sends exactly the given bytes and keeps what it receives: the transport rows as data."""

import json
import select
import socket
import ssl
import time
from pathlib import Path
from typing import Any

from msgspec import Struct

ROWS = Path(__file__).parents[1] / "data" / "transport"
PATIENCE = 20.0
ENDLESS_BYTES = 64 * 1024 * 1024

Case = dict[str, Any]


class Heard(Struct):
    """Everything that came back on one connection."""

    data: bytes = b""
    closed: bool = False
    had_session: bool = False


class Answer(Struct, frozen=True):
    """One HTTP response."""

    status: int
    headers: dict[str, str]
    body: bytes


def cases() -> list[tuple[str, Case]]:
    """(id, case) of every row."""
    return [
        (f"row {row['row']}, {row['input']}: {case['id']}", case)
        for path in sorted(ROWS.glob("*.json"))
        for row in [json.loads(path.read_text())]
        for case in row["cases"]
    ]


def play(case: Case, address: tuple[str, int], contexts: dict[str, ssl.SSLContext], review: bytes) -> Heard:
    """Do what the case says, then listen until the server closes, or long enough answers have come."""
    heard = Heard()
    plain = socket.create_connection(address, timeout=PATIENCE)
    try:
        connection = _secure(plain, case, contexts)
    except (ssl.SSLError, ConnectionError):
        plain.close()
        heard.closed = True
        return heard
    with connection:
        try:
            for step in case["send"]:
                _do(connection, step, review, heard)
            _listen(connection, heard, case["expect"])
        except (ConnectionError, ssl.SSLError):
            heard.closed = True
        except TimeoutError:
            heard.closed = False
        if isinstance(connection, ssl.SSLSocket):
            heard.had_session = bool(connection.session and connection.session.has_ticket)
    return heard


def parse(data: bytes, expect: dict[str, Any]) -> list[Answer]:
    """The responses in what was heard; `100 Continue` is left out."""
    answers = []
    while data:
        head, end, data = data.partition(b"\r\n\r\n")
        assert end, f"half a head: {head!r}"
        first, *lines = head.decode("latin-1").split("\r\n")
        status = int(first.split(" ")[1])
        if status == 100:
            continue
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        length = 0 if expect.get("bodiless") else int(headers["content-length"])
        assert len(data) >= length, "half a body"
        answers.append(Answer(status, headers, data[:length]))
        data = data[length:]
    return answers


def _secure(plain: socket.socket, case: Case, contexts: dict[str, ssl.SSLContext]) -> socket.socket:
    if case.get("connection") == "tcp":
        return plain
    tls = case.get("tls", {})
    context = contexts[tls.get("client", tls.get("highest", "plain"))]
    return context.wrap_socket(plain, server_hostname=tls.get("name", "localhost"))


def _do(connection: socket.socket, step: Any, review: bytes, heard: Heard) -> None:
    if isinstance(step, str):
        connection.sendall(_filled(step, review))
    elif "hex" in step:
        connection.sendall(bytes.fromhex(step["hex"]))
    elif "repeat" in step:
        connection.sendall(step["repeat"].encode() * step["times"])
    elif "wait" in step:
        time.sleep(step["wait"])
    elif "until" in step:
        while not heard.data.endswith(step["until"].encode()):
            piece = connection.recv(4096)
            assert piece, f"closed instead of {step['until']!r}"
            heard.data += piece
    else:
        _send_until_answered(connection, step)


def _send_until_answered(connection: socket.socket, step: dict[str, Any]) -> None:
    """Drip the characters of `drip`, or repeat `endless`, until the server says something."""
    if "drip" in step:
        pieces, pause = [character.encode() for character in step["drip"]], step["pause"]
    else:
        piece = step["endless"].encode()
        pieces, pause = [piece] * (ENDLESS_BYTES // len(piece)), 0
    for piece in pieces:
        connection.sendall(piece)
        if select.select([connection], [], [], pause)[0]:
            return


def _filled(text: str, review: bytes) -> bytes:
    half = len(review) // 2
    parts = {
        "{post}": b"POST /validate HTTP/1.1\r\nHost: localhost\r\n",
        "{json}": b"Content-Type: application/json\r\n",
        "{length}": b"Content-Length: %d\r\n" % len(review),
        "{review}": review,
        "{chunks}": b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in (review[:half], review[half:])),
    }
    data = text.encode("latin-1")
    for name, value in parts.items():
        data = data.replace(name.encode(), value)
    return data


def _listen(connection: socket.socket, heard: Heard, expect: dict[str, Any]) -> None:
    to_the_end = expect.get("closes") or expect.get("answer") == "closed"
    wanted = len(expect.get("answers", [0]))
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if not to_the_end and _complete(heard.data, expect) >= wanted:
            return
        piece = connection.recv(65536)
        if not piece:
            heard.closed = True
            return
        heard.data += piece


def _complete(data: bytes, expect: dict[str, Any]) -> int:
    try:
        return len(parse(data, expect))
    except (AssertionError, ValueError, IndexError, KeyError):
        return 0
