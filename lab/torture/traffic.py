"""Requests that go on while everything fails: registers that are read and written, and an attacker."""

import datetime as dt
import itertools
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from lab.e2e.api_client import MERGE, ApiClient, Reply
from lab.e2e.manifests import format_micro_time
from lab.torture.history import Attack, Operation

REGISTERS: Final = ("one", "two", "three")
PATH: Final = "/api/v1/namespaces/registers/configmaps"
_AGAIN: Final = 0.1
_ATTACK_AGAIN: Final = 0.7
_OWNER: Final = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "00000000-0000-4000-8000-000000000000"}


class Register:
    """A client of the registers: reads, writes, and writes that must find the version that it read."""

    def __init__(self, number: int, client: ApiClient, chance: random.Random) -> None:
        self._number, self._client, self._chance = number, client, chance
        self._known: dict[str, tuple[str, str]] = {}
        self._written = itertools.count()
        self.operations: list[Operation] = []

    def run(self, stop: threading.Event) -> None:
        """Run until `stop`."""
        while not stop.wait(_AGAIN * self._chance.uniform(0.5, 1.5)):
            key = self._chance.choice(REGISTERS)
            draw = self._chance.random()
            if draw < 0.5:
                self._read(key)
            elif draw < 0.7 or key not in self._known:
                self._write(key, "write")
            else:
                self._write(key, "replace")

    def _read(self, key: str) -> None:
        begin = time.monotonic_ns()
        try:
            reply = self._client.send("GET", f"{PATH}/{key}")
        except OSError:
            return
        if reply.status == 200:
            value = str((reply.body.get("data") or {}).get("value", ""))
            self._known[key] = (value, reply.body["metadata"]["resourceVersion"])
            self.operations.append(Operation(key, self._number, begin, time.monotonic_ns(), "read", value))

    def _write(self, key: str, op: str) -> None:
        value = f"{self._number}-{next(self._written)}"
        expected, version = self._known.get(key, ("", "")) if op == "replace" else ("", "")
        body: dict[str, Any] = {"data": {"value": value}}
        begin = time.monotonic_ns()
        try:
            if op == "replace":
                body["metadata"] = {"name": key, "resourceVersion": version}
                status = self._client.send("PUT", f"{PATH}/{key}", body).status
            else:
                status = self._client.send("PATCH", f"{PATH}/{key}", body, media=MERGE).status
        except OSError:
            status = 0
        result = {200: "ok", 409: "conflict"}.get(status, "unknown")
        self.operations.append(Operation(key, self._number, begin, time.monotonic_ns(), op, value, expected, result))


class Stranger:
    """A pod of the fenced writers that never leads, and writes the shared object all the same."""

    NAME: Final = "stranger"

    def __init__(self, clients: Sequence[ApiClient], path: str) -> None:
        self._clients, self._path = clients, path

    def run(self, stop: threading.Event) -> None:
        """Run until `stop`."""
        for number in itertools.count():
            if stop.wait(2 * _AGAIN):
                return
            with suppress(OSError):
                body = {"data": {"entry": f"{self.NAME}/{number}"}}
                self._clients[number % len(self._clients)].send("PATCH", self._path, body, media=MERGE)


class Mallory:
    """An attacker with a pod in the namespace, who may write its leases and knows the suffix."""

    def __init__(
        self, client: ApiClient, namespace: str, lease: str, keys: Callable[[], list[str]], *, limits: bool
    ) -> None:
        """Set up the attacker. `limits`: also what the rules without stamps are known not to stop."""
        self._client, self._namespace, self._keys = client, namespace, keys
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{lease}"
        self._ways: dict[str, Callable[[], Reply]] = {
            "take": lambda: self._patch({"spec": self._claim()}),
            "rename": lambda: self._patch({"spec": {"holderIdentity": "mallory"}}),
            "release": lambda: self._patch({"spec": {"holderIdentity": ""}}),
            "cut": lambda: self._patch({"spec": {"leaseDurationSeconds": 1}}),
            "undate": lambda: self._patch({"spec": {"renewTime": None}}),
            "label": lambda: self._patch({"metadata": {"labels": {"a": format_micro_time()[-7:-1]}}}),
            "own": lambda: self._patch({"metadata": {"ownerReferences": [_OWNER]}}),
            "forge": lambda: self._patch({"metadata": {"annotations": dict.fromkeys(self._keys(), "9")}}),
            "forge and take": self._forge,
            "take as the manager": lambda: self._patch({"spec": self._claim()}, fieldManager=self._pick_manager()),
            "redate": self._redate,
            "empty the list": lambda: self._patch({"metadata": {"managedFields": [{}]}}),
            "delete": lambda: self._client.send("DELETE", self._path),
        }
        if limits:
            self._ways["renew for a second"] = lambda: self._patch(
                {"spec": {"renewTime": format_micro_time(), "leaseDurationSeconds": 1}}
            )
            self._ways["renew"] = lambda: self._patch({"spec": {"renewTime": format_micro_time()}})
        self.attacks: list[Attack] = []

    def run(self, stop: threading.Event, chance: random.Random) -> None:
        """Run until `stop`."""
        while not stop.wait(_ATTACK_AGAIN * chance.uniform(0.3, 1.7)):
            what = chance.choice(list(self._ways))
            try:
                reply = self._ways[what]()
            except OSError:
                continue
            at = time.time_ns() // 1000
            self.attacks.append(Attack(at, self._namespace, what, reply.status, reply.message[:200]))

    def _patch(self, body: dict[str, Any], **query: str) -> Reply:
        return self._client.send("PATCH", self._path, body, media=MERGE, **query)

    def _pick_manager(self) -> str:
        """Return the name of the manager that renews, which everyone may use."""
        entries = self._client.send("GET", self._path).body.get("metadata", {}).get("managedFields") or ()
        return next((one["manager"] for one in entries if "f:renewTime" in str(one)), "mallory")

    def _redate(self) -> Reply:
        """Return the stored lease in the name of its manager, with the stamp of an hour ago."""
        reply = self._client.send("GET", self._path)
        if reply.status != 200:
            return reply
        body = reply.body
        for entry in body["metadata"].get("managedFields") or ():
            if "f:renewTime" in str(entry):
                entry["time"] = f"{dt.datetime.now(dt.UTC) - dt.timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
        del body["metadata"]["resourceVersion"]
        return self._client.send("PUT", self._path, body, fieldManager=self._pick_manager())

    def _forge(self) -> Reply:
        return self._patch({"metadata": {"annotations": dict.fromkeys(self._keys(), "9")}, "spec": self._claim()})

    def _claim(self) -> dict[str, Any]:
        now = format_micro_time()
        return {"holderIdentity": "mallory", "leaseDurationSeconds": 30, "renewTime": now, "acquireTime": now}
