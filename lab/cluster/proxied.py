"""A client of the API server behind `kubectl proxy`: whatever credentials a kubeconfig holds, kubectl knows them."""

import http.client
import json
import threading
import time
from typing import Any
from urllib.parse import urlencode

from lab.e2e.api_client import JSON, Reply


class ProxiedClient:
    """A client of plain HTTP on loopback, with one connection for each thread."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._thread = threading.local()

    def send(self, method: str, path: str, body: object = None, *, media: str = JSON, **query: str) -> Reply:
        """Send one request. Raises OSError if no answer comes."""
        target = f"{path}?{urlencode(query)}" if query else path
        payload = None if body is None else json.dumps(body).encode()
        begin = time.perf_counter()
        connection = self._connect()
        try:
            connection.request(method, target, payload, {"Content-Type": media} if payload else {})
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise OSError(str(error)) from error
        milliseconds = (time.perf_counter() - begin) * 1000
        return Reply(
            answer.status, _decode_object(data), tuple(answer.headers.get_all("Warning", [])), "", milliseconds, data
        )

    def get(self, path: str) -> dict[str, Any]:
        """Return the object at `path`, which must be there."""
        return self.send("GET", path).expect(200)

    def _connect(self) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection | None = getattr(self._thread, "connection", None)
        if connection is None:
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=40)
            self._thread.connection = connection
        return connection


def _decode_object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except ValueError:
        return {"message": data.decode(errors="replace")}
    return value if isinstance(value, dict) else {"items": value}
