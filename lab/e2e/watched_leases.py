"""Every version of the leases of a namespace, as a watch delivers them."""

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from lab.e2e.world import World, build_lease_path


class WatchedLeases:
    """A watch without a gap while it is entered: where a watch ends, the next begins at the last resourceVersion."""

    def __init__(self, world: World, namespace: str, handle: Callable[[dict[str, Any]], object] | None = None) -> None:
        """Set up the watch; `handle` is called with each event as it comes."""
        self.events: list[dict[str, Any]] = []
        self._handle = handle
        self._port = world.plane.port
        self._path = build_lease_path(namespace)
        self._context = ssl.create_default_context(cafile=str(world.plane.authority.file))
        certificate = world.plane.authority.issue(f"watch-{namespace}", organizations=("system:masters",))
        self._context.load_cert_chain(*certificate)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"watch {namespace}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()

    def _watch(self) -> None:
        version = ""
        while not self._end.is_set():
            with suppress(OSError, http.client.HTTPException, ValueError):
                connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=60, context=self._context)
                connection.request("GET", f"{self._path}?watch=1&timeoutSeconds=30&resourceVersion={version}")
                for line in connection.getresponse():
                    event = json.loads(line)
                    if event["type"] not in ("ADDED", "MODIFIED", "DELETED") or self._end.is_set():
                        break
                    version = event["object"]["metadata"]["resourceVersion"]
                    self.events.append(event)
                    if self._handle:
                        self._handle(event)
            time.sleep(0.1)
