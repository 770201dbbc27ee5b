"""The reviews of N renewals and M other writes: exactly the M reach the webhook, for every recorded honest client."""

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab.e2e.api_client import APPLY, MERGE, ApiClient
from lab.e2e.webhook_server import WebhookServer
from lab.e2e.world import PROJECT, Row, World, build_lease_path, wait_for_watch_cache
from tests.match_condition import is_update_reviewed

RECORDINGS = PROJECT / "tests" / "data" / "recordings"
NAMESPACE = "counts"
MERGE_PATCHERS = {"fabric8", "kube-leader-election"}
APPLIERS = {"kubert", "kubert-longer"}
"""How a client writes; the others PUT."""
KEPT_METADATA = ("labels", "annotations")


class _Replay:
    """A replay of recorded states of leases as writes of one style, with a count of them."""

    def __init__(self, client: ApiClient, recorded_client: str) -> None:
        self._client = client
        self._of = recorded_client
        self._stored: dict[str, dict[str, Any]] = {}
        self.renewals = self.others = 0

    def play(self, request: dict[str, Any]) -> None:
        """Replay one recorded review: first the state it began with, where that is another, then the write itself."""
        old, new = request.get("oldObject"), request.get("object")
        metadata = (new if new is not None else request["oldObject"])["metadata"]
        name = re.sub(r"[^a-z0-9.-]", "-", f"{self._of}-{metadata['namespace']}-{metadata['name']}".lower())
        if old is not None:
            self._reach(name, old)
        elif name in self._stored:
            self._delete(name)
        if new is None:
            self._delete(name)
        else:
            self._reach(name, new)

    def _reach(self, name: str, state: dict[str, Any]) -> None:
        before = self._stored.get(name)
        metadata = {key: state["metadata"][key] for key in KEPT_METADATA if key in state["metadata"]}
        target = {"metadata": metadata | {"name": name}, "spec": state.get("spec", {})}
        if before is not None and _is_same(before, target):
            return
        if before is not None:
            wait_for_watch_cache(self._client, build_lease_path(NAMESPACE, name), before["metadata"]["resourceVersion"])
        after = self._write(name, before, target)
        self._stored[name] = after
        if before is not None and not is_update_reviewed(after, before):
            self.renewals += 1
        else:
            self.others += 1

    def _write(self, name: str, before: dict[str, Any] | None, target: dict[str, Any]) -> dict[str, Any]:
        path = build_lease_path(NAMESPACE, name)
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"} | copy.deepcopy(target)
        if self._of in APPLIERS:
            return self._client.send("PATCH", path, body, media=APPLY, fieldManager=self._of, force=True).expect()
        if before is None:
            return self._client.send("POST", build_lease_path(NAMESPACE), body).expect(201)
        if self._of in MERGE_PATCHERS:
            deletions = dict.fromkeys(before.get("spec", {}), None)
            patch = {"metadata": target["metadata"], "spec": deletions | target["spec"]}
            return self._client.send("PATCH", path, patch, media=MERGE).expect(200)
        body["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"]
        return self._client.send("PUT", path, body).expect(200)

    def _delete(self, name: str) -> None:
        version = self._stored[name]["metadata"]["resourceVersion"]
        wait_for_watch_cache(self._client, build_lease_path(NAMESPACE, name), version)
        self._client.send("DELETE", build_lease_path(NAMESPACE, name)).expect(200)
        del self._stored[name]
        self.others += 1


def run(world: World) -> Iterator[Row]:
    """Replay every client whose recordings are not a person's kubectl."""
    world.create_namespace(NAMESPACE, route=NAMESPACE)
    with WebhookServer(world.directory, world.certs) as server:
        world.register(NAMESPACE, server.port, failure_policy="Fail")
        world.settle()
        reviews = server.count_reviews()
        for client, files in _list_recorded().items():
            replay = _Replay(world.admin, client)
            for file in files:
                replay.play(json.loads(file.read_bytes())["request"])
            reviews, before = server.count_reviews(), reviews
            arrivals = reviews - before
            observation = f"{replay.renewals} renewals and {replay.others} other writes: {arrivals} reached us"
            passed = arrivals == replay.others and bool(replay.others)
            yield Row(client, observation, passed)


def _list_recorded() -> dict[str, list[Path]]:
    """Return the recorded reviews of leases by client, in the order of the run."""
    files_by_client: dict[str, list[Path]] = {}
    for line in (RECORDINGS / "index.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if entry["resource"] == "leases" and not entry["client"].startswith("kubectl"):
            files_by_client.setdefault(entry["client"], []).append(RECORDINGS / entry["file"])
    return files_by_client


def _is_same(stored: dict[str, Any], target: dict[str, Any]) -> bool:
    has_same_metadata = all(stored["metadata"].get(key) == target["metadata"].get(key) for key in KEPT_METADATA)
    return has_same_metadata and stored.get("spec", {}) == {
        key: value for key, value in target["spec"].items() if value is not None
    }
