"""A lease on a real API server, written by real users through the registered webhook."""

import time
from collections.abc import Mapping
from threading import Semaphore
from typing import Any, Final

from lab.e2e.api_client import APPLY, JSON, MERGE, ApiClient, Reply
from lab.e2e.world import build_lease_path
from tests import protobuf
from tests.attacks.play import Outcome
from tests.attacks.requests import Clock
from tests.deep_json import decode, encode
from tests.waiting import wait_for

RETRIES: Final = 3
_SENT: Final = {
    "create": ("POST", JSON),
    "put": ("PUT", JSON),
    "protobuf": ("PUT", protobuf.MEDIA),
    "merge": ("PATCH", MERGE),
    "apply": ("PATCH", APPLY),
}


class RealWorld:
    """One lease at one path. The findings of its outcomes come later, from the audit log, by `audit_ids`."""

    def __init__(
        self, actors: Mapping[str, ApiClient], namespace: str, name: str, turns: Semaphore | None = None
    ) -> None:
        """Set up the lease.

        `turns`: whoever plays holds one of them, and gives it to another while time is to pass.
        """
        self._actors = actors
        self._turns = turns
        self._path = build_lease_path(namespace, name)
        self._collection = build_lease_path(namespace)
        self.audit_ids: list[str] = []

    def clock(self) -> Clock:
        """Return the clock of the machine."""
        return Clock(time.time_ns() // 1000)

    def read(self) -> dict[str, Any]:
        """Send a GET as an administrator."""
        reply = self._actors["admin"].send("GET", self._path)
        reply.expect(200)
        lease: dict[str, Any] = decode(reply.data)
        return lease

    def send(self, by: str, method: str, manager: str, body: dict[str, Any] | None, /) -> Outcome:
        """Send one request. Raises RuntimeError where the API server refuses it for reasons of its own."""
        client = self._actors[by]
        if method == "delete":
            reply = client.send("DELETE", self._path)
        else:
            verb, media = _SENT[method]
            query: dict[str, str | bool] = {"fieldManager": manager} | ({"force": True} if method == "apply" else {})
            path = self._collection if method == "create" else self._path
            sent = None
            if body is not None:
                sent = protobuf.lease(body) if method == "protobuf" else encode(body)
            reply = client.send(verb, path, sent, media=media, **query)
            for _ in range(RETRIES):
                # An API server takes its time over an entry of 9,900 levels, and the review's time runs meanwhile.
                if "deadline exceeded" not in reply.message:
                    break
                reply = client.send(verb, path, sent, media=media, **query)
        if reply.status >= 400 and "lease webhook, rule" not in reply.message:
            raise RuntimeError(f"{by} {method} {self._path}: HTTP {reply.status} {reply.message}")
        self.audit_ids.append(reply.audit_id)
        if reply.status < 400 and method != "delete":
            metadata = decode(reply.data)["metadata"]
            if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
                self._wait_for_watch_cache(metadata["resourceVersion"])
        return _read_outcome(reply)

    def wait(self, seconds: float) -> None:
        """Sleep, and let others play meanwhile."""
        if self._turns:
            self._turns.release()
        time.sleep(seconds)
        if self._turns:
            self._turns.acquire()

    def _wait_for_watch_cache(self, version: str) -> None:
        """Wait for the watch cache.

        An API server whose cache lags tries a write on the older object first: one write, two reviews.
        """

        def is_new() -> bool:
            cached = self._actors["admin"].send("GET", self._path, resourceVersion=0)
            return cached.status == 200 and decode(cached.data)["metadata"]["resourceVersion"] == version

        wait_for(f"{self._path} in the watch cache", is_new, 10, 0.01)


def _read_outcome(reply: Reply) -> Outcome:
    text = reply.message if reply.status >= 400 else "; ".join(reply.warnings)
    return Outcome(reply.status < 400, {}, text)
