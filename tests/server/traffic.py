"""Clients that keep asking, as API servers do, and remember everything that went wrong."""

import http.client
import json
import ssl
import threading
import time
from types import TracebackType
from typing import Self

from tests.factories import UID, make_lease, make_review
from tests.server.harness import Server, client_context
from tests.waiting import PATIENCE

REVIEW = json.dumps(make_review(new=make_lease())).encode()
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, */*"}


class Traffic:
    """Threads that post reviews: each on one connection that it keeps, or on a new one every time (`keep=False`).

    `answered` counts right verdicts; `lost` holds what failed on an open connection; `refused` counts connections
    that could not be opened; `slowest` is in seconds.
    """

    def __init__(self, server: Server, threads: int = 4, pause: float = 0.01, *, keep: bool = True) -> None:
        self._server = server
        self._pause = pause
        self._keep = keep
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self.answered = 0
        self.refused = 0
        self.lost: list[str] = []
        self.handshakes_failed: list[str] = []
        self.slowest = 0.0
        self._threads = [threading.Thread(target=self._ask) for _ in range(threads)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _ask(self) -> None:
        context = client_context(self._server.ca)
        connection: http.client.HTTPSConnection | None = None
        while not self._stop.wait(self._pause):
            if connection is None:
                connection = self._open(context)
            if connection is None:
                continue
            if not self._post(connection) or not self._keep:
                connection.close()
                connection = None
        if connection is not None:
            connection.close()

    def _open(self, context: ssl.SSLContext) -> http.client.HTTPSConnection | None:
        connection = http.client.HTTPSConnection(
            "localhost", self._server.reviews[1], timeout=PATIENCE, context=context
        )
        try:
            connection.connect()
        except ssl.SSLError as error:
            with self._lock:
                self.handshakes_failed.append(repr(error))
        except OSError:
            with self._lock:
                self.refused += 1
        else:
            return connection
        return None

    def _post(self, connection: http.client.HTTPSConnection) -> bool:
        """One review; whether the connection may be used again."""
        began = time.monotonic()
        try:
            connection.request("POST", "/validate?timeout=10s", REVIEW, HEADERS)
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            with self._lock:
                self.lost.append(repr(error))
            return False
        with self._lock:
            if response.status == 200 and json.loads(body)["response"]["uid"] == UID:
                self.answered += 1
            else:
                self.lost.append(f"{response.status} {body!r}")
            self.slowest = max(self.slowest, time.monotonic() - began)
        return not response.will_close
