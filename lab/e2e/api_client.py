"""A plain client of the API server: one connection per thread, statuses instead of exceptions, warnings kept."""

import http.client
import json
import ssl
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
IDLE_SECONDS = 30.0
"""The API server closes connections that idle for longer than 90 s; younger ones are used again."""


class Reply(Struct, frozen=True):
    """A reply of the API server.

    `warnings` are the texts of the Warning headers, `audit_id` finds the audit event.
    """

    status: int
    body: dict[str, Any]
    warnings: tuple[str, ...]
    audit_id: str
    milliseconds: float
    data: bytes = b""

    @property
    def message(self) -> str:
        """The message of a Status, else ""."""
        return str(self.body.get("message", ""))

    def expect(self, *statuses: int) -> dict[str, Any]:
        """Return the body.

        Raises RuntimeError when the status is none of `statuses` (200 and 201 when none is given).
        """
        if self.status not in (statuses or (200, 201)):
            raise RuntimeError(f"HTTP {self.status}: {self.message or self.body}")
        return self.body


class ApiClient:
    """A connection to `https://127.0.0.1:port` as one user: by client certificate, or by bearer token."""

    def __init__(
        self, port: int, authority: Path, name: str, certificate: tuple[Path, Path] | None = None, token: str = ""
    ) -> None:
        """Set up the client.

        `name` is the user agent, from which the API server takes the name of the field manager.
        """
        self._port = port
        self._context = ssl.create_default_context(cafile=str(authority))
        if certificate:
            self._context.load_cert_chain(*certificate)
        self._headers = {"User-Agent": name} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._thread = threading.local()

    def send(
        self, method: str, path: str, body: object = None, *, media: str = JSON, **query: str | int | bool
    ) -> Reply:
        """Send one request; a `body` of bytes is sent as it is. Raises OSError where no answer comes."""
        text = {key: str(value).lower() if isinstance(value, bool) else value for key, value in query.items()}
        target = f"{path}?{urlencode(text)}" if text else path
        payload = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        begin = time.perf_counter()
        connection = self._connect()
        try:
            connection.request(method, target, payload, {"Content-Type": media, **self._headers})
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            raise
        milliseconds = (time.perf_counter() - begin) * 1000
        warnings = tuple(_unquote_warning(value) for value in answer.headers.get_all("Warning", []))
        return Reply(
            answer.status, _decode_object(data), warnings, answer.headers["Audit-Id"] or "", milliseconds, data
        )

    def get(self, path: str) -> dict[str, Any]:
        """Return the object at `path`, which must be there."""
        return self.send("GET", path).expect(200)

    def _connect(self) -> http.client.HTTPSConnection:
        connection: http.client.HTTPSConnection | None = getattr(self._thread, "connection", None)
        now = time.monotonic()
        if connection is None:
            connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=40, context=self._context)
            self._thread.connection = connection
        elif now - self._thread.used_at > IDLE_SECONDS:
            connection.close()
        self._thread.used_at = now
        return connection


def _decode_object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {"message": data.decode(errors="replace")}
    return value if isinstance(value, dict) else {"items": value}


def _unquote_warning(header: str) -> str:
    """Return the quoted text of `299 - "text"`, unescaped as RFC 9110 5.6.4 says."""
    quoted = header.partition('"')[2].rpartition('"')[0]
    return quoted.replace('\\"', '"').replace("\\\\", "\\")
