"""Any WSGI application behind a port: a request as an environ, and what the application gives back (PEP 3333)."""

import asyncio
import functools
import io
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Final

from msgspec import Struct

from webhook.server.http.message import HttpResponse, Request
from webhook.server.http.stream import AbandonedError, Stream
from webhook.server.logs import LOG

Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]
_Error = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]

BEGAN: Final = "guarded_worker.began"
"""The monotonic time of a request's first byte; not in the environ of another server."""
_SENT_BY_CONNECTION: Final = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "te", "trailer", "transfer-encoding", "upgrade")
)
_WITHOUT_BODY: Final = frozenset({204, 304})
_FAILED: Final = HttpResponse.from_text(500, "internal server error\n")


def make_environ(request: Request) -> Environ:
    """Return the environ of a request."""
    head, body, began, (host, port) = request
    environ = dict(head.variables)
    environ["REMOTE_ADDR"] = host
    environ["REMOTE_PORT"] = str(port)
    environ["CONTENT_LENGTH"] = str(len(body))
    environ["wsgi.input"] = io.BytesIO(body)
    environ[BEGAN] = began
    return environ


class _ResponseStart(Struct):
    """What an application said by `start_response`; `write` is what that returns."""

    write: Callable[[bytes], object]
    status: str = ""
    headers: list[tuple[str, str]] = []
    are_sent: bool = False

    def start_response(
        self, status: str, headers: list[tuple[str, str]], exc_info: _Error | None = None
    ) -> Callable[[bytes], object]:
        """Take the head; a second one must have a reason, and replaces the first unless that is sent."""
        if exc_info is not None and exc_info[1] is not None and self.are_sent:
            raise exc_info[1].with_traceback(exc_info[2])
        if exc_info is None and self.status:
            raise ValueError("start_response was called twice")
        self.status, self.headers = status, headers
        return self.write

    @property
    def length(self) -> int | None:
        """The Content-Length that the application gave, if any."""
        lengths = [int(value) for name, value in self.headers if name.lower() == "content-length"]
        return lengths[-1] if lengths else None

    def make_response(self, body: bytes = b"", *, is_to_head: bool, is_whole: bool) -> HttpResponse:
        """Return a response with this body, or, unless `is_whole`, the head of one that has its blocks to come.

        How the client finds the end of the body (RFC 9112 6.3):

        1. 204, 304 and a response to HEAD have none. That to HEAD has the length that the application gave.
        2. The connection adds the length of a whole body.
        3. A stream has the length that the application gave.
        4. Without one, the connection sends a stream in chunks, or closes after it.
        """
        if not self.status:
            raise ValueError("start_response was not called")
        headers = self.headers
        if is_whole and not is_to_head and len(headers) == 2 and headers[1][0] == "Content-Length":
            usual = _encode_usual_head(self.status, headers[0])
            if usual is not None:
                return HttpResponse(usual[0], body, usual[1])
        code, length = int(self.status[:3]), ""
        lines = [f"HTTP/1.1 {self.status}\r\n"]
        for name, value in headers:
            key = name.lower()
            if key == "content-length":
                length = value
            elif key not in _SENT_BY_CONNECTION:
                lines.append(f"{key}: {value}\r\n")
        if code in _WITHOUT_BODY:
            return HttpResponse(code, b"", _encode_head(lines), has_length=True)
        if is_whole and not is_to_head:
            return HttpResponse(code, body, _encode_head(lines))
        if length:
            lines.append(f"content-length: {int(length)}\r\n")
        return HttpResponse(code, b"", _encode_head(lines), has_length=is_to_head or bool(length))


def _encode_head(lines: list[str]) -> bytes:
    head = "".join(lines)
    if not head.count("\r") == head.count("\n") == len(lines):
        raise ValueError("the status or a header has a line break")
    return head.encode("latin-1")


@functools.lru_cache(64)
def _encode_usual_head(status: str, header: tuple[str, str]) -> tuple[int, bytes] | None:
    """Return code and head of a response with one header beside its length, as reviews have; None without a body."""
    code, name = int(status[:3]), header[0].lower()
    if code in _WITHOUT_BODY:
        return None
    lines = [f"HTTP/1.1 {status}\r\n"]
    if name not in _SENT_BY_CONNECTION:
        lines.append(f"{name}: {header[1]}\r\n")
    return code, _encode_head(lines)


def call_app(app: Application, environ: Environ) -> HttpResponse:
    """Call an application that neither waits nor has much to say; a failure of it is a 500."""
    try:
        blocks: list[bytes] = []
        started = _ResponseStart(blocks.append)
        result = app(environ, started.start_response)
        if isinstance(result, list):
            blocks += result
        else:
            try:
                blocks += result
            finally:
                _close(result)
        return started.make_response(b"".join(blocks), is_to_head=environ["REQUEST_METHOD"] == "HEAD", is_whole=True)
    except Exception:  # noqa: BLE001 - any bug of the application
        LOG.exception("an application failed")
        return _FAILED


class _Sender:
    """Delivers a response whose application runs in a thread: as a whole, or as a stream from its first block on."""

    def __init__(
        self, method: str, loop: asyncio.AbstractEventLoop, deliver: Callable[[HttpResponse | Stream], None]
    ) -> None:
        self.started = _ResponseStart(self.send)
        self.stream: Stream | None = None
        self._is_to_head = method == "HEAD"
        self._loop = loop
        self._deliver = deliver
        self._left: int | None = None  # of a length that the application gave

    def send(self, block: bytes) -> None:
        """Send a block, and with the first one the head."""
        if not block:
            return
        if self.stream is None:
            head = self.started.make_response(is_to_head=self._is_to_head, is_whole=False)
            self.started.are_sent = True
            self.stream = Stream(head, self._loop)
            self._left = 0 if self._has_no_body(head) else self.started.length
            self._deliver(self.stream)
        if self._left is not None:
            if len(block) > self._left and not self._has_no_body(self.stream.head):
                raise ValueError("the body is longer than its Content-Length")
            block = block[: self._left]
            self._left -= len(block)
        if block:
            self.stream.put(block)

    def send_whole(self, body: bytes) -> None:
        """Deliver the head and all of the body."""
        self._deliver(self.started.make_response(body, is_to_head=self._is_to_head, is_whole=True))

    def end(self) -> None:
        """Deliver the end of a stream, or a response without a body."""
        if self.stream is None:
            self.send_whole(b"")
        elif self._left:
            raise ValueError("the body is shorter than its Content-Length")
        else:
            self.stream.put(None)

    def fail(self) -> None:
        """Deliver a failure of the application."""
        if self.stream is None:
            self._deliver(_FAILED)
        else:
            self.stream.fail()

    def _has_no_body(self, head: HttpResponse) -> bool:
        return self._is_to_head or head.status in _WITHOUT_BODY


def call_app_in_thread(
    app: Application,
    environ: Environ,
    loop: asyncio.AbstractEventLoop,
    deliver: Callable[[HttpResponse | Stream], None],
) -> None:
    """Call an application that may wait, and deliver its response as soon as there is something to send.

    A list or a tuple is a whole response; of anything else each block is sent before the next one is asked for.
    """
    sender = _Sender(environ["REQUEST_METHOD"], loop, deliver)
    try:
        result = app(environ, sender.started.start_response)
        try:
            if sender.stream is None and isinstance(result, (list, tuple)):
                sender.send_whole(b"".join(result))
                return
            for block in result:
                sender.send(block)
        finally:
            _close(result)
        sender.end()
    except AbandonedError:
        return
    except Exception:  # noqa: BLE001 - any bug of the application
        LOG.exception("an application failed")
        sender.fail()


def _close(result: Iterable[bytes]) -> None:
    close = getattr(result, "close", None)
    if close is not None:
        close()
