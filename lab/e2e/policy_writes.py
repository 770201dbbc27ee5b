"""Random writes of every kind, by writers of every kind, for the equality of exported policies and the engine."""

import copy
import random
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from lab.e2e.api_client import APPLY, JSON_PATCH, MERGE, ApiClient, Reply
from lab.e2e.manifests import format_micro_time
from lab.e2e.world import COORDINATION, build_lease_path
from tests import protobuf

Document = dict[str, Any]

NAMES: Final = tuple(f"lease-{number}" for number in range(8))
"""The leases; the policy binds the first two, and an override is about the third."""
HOLDERS: Final = (
    "op-0_1", "op-1_1", "op-0", "op-0-b", "op-0.0c3c9c0e-5b0e-4a55-9d2f-0d3f7f0b6c10", "mallory_1", "",
    "a\"b'\\{}${pod}", "op-0_?*", "\u200bop-0_1", "caf\u00e9", "\U0001f40c", "tab\there", "line\nbreak", "\ufffd",
    "x" * 600, "y" * 5000, "\u202eabc",
)  # fmt: skip
DURATIONS: Final = (1, 2, 5, 15, 15, 15, 600, 90_000, 40_000_000, 2147483647, 0, -1, None)
COUNTS: Final = (0, 1, 2, 7, 1_000_000_000, 2147483647, None)
OFFSETS: Final = (0, 0, 0, 1, -1, 30, 200, -200, 3000, -7000, 90_000, -90_000, 4_000_000)
TIMES: Final = (
    "9999-12-31T23:59:59.999999-01:00",
    "9999-12-31T23:59:59.999999Z",
    "0000-12-31T00:00:00.000000Z",
    "0001-01-01T00:00:00.000000Z",
    None,
)
STRATEGIES: Final = ("OldestEmulationVersion", "example.com/mine", "", None)
OWNERS: Final = tuple(
    {"apiVersion": version, "kind": "ConfigMap", "name": name, "uid": name}
    for version in ("v1", "apps/v1", "apps/v2") for name in ("a", 'b"c')
)  # fmt: skip


class RandomWrites:
    """A source of random writes for one thread, to leases of its own; the same seed draws the same writes."""

    def __init__(
        self, actors: Mapping[str, ApiClient], namespaces: tuple[str, ...], seed: int, candidates: str
    ) -> None:
        self._actors, self._namespaces, self._candidates = actors, namespaces, candidates
        self._random = random.Random(seed)
        self._name = f"{seed}"

    def write(self) -> Reply:
        """Send one write, of a lease or of a candidate."""
        namespace = self._random.choice(self._namespaces)
        actor = self._actors[self._random.choice(sorted(self._actors))]
        name = self._random.choice(NAMES)
        if self._random.random() < 0.15:
            return self._write_candidate(actor, namespace, name)
        return self._write_lease(actor, namespace, f"{name}-{self._name}")

    def _write_lease(self, actor: ApiClient, namespace: str, name: str) -> Reply:
        draw, path = self._random, build_lease_path(namespace, name)
        stored = actor.send("GET", path)
        manager = draw.choice(("op", "op", "mallory", "ancient-changes"))
        if stored.status != 200:
            spec = {} if draw.random() < 0.1 else self._draw_spec({})
            body: Document = {"metadata": {"name": name} | self._draw_metadata(), "spec": spec}
            return actor.send("POST", build_lease_path(namespace), body, fieldManager=manager)
        old, kind = stored.body, draw.random()
        if kind < 0.06:
            return self._delete(actor, build_lease_path(namespace), name)
        spec = self._draw_spec(old.get("spec", {}))
        if kind < 0.25:
            return actor.send(
                "PATCH", path, {"spec": spec, "metadata": self._draw_metadata()}, media=MERGE, fieldManager=manager
            )
        if kind < 0.35:
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}
            return actor.send("PATCH", path, body, media=APPLY, fieldManager=manager, force=True)
        if kind < 0.4:
            whole: list[Document] = [{"op": "replace", "path": "/spec", "value": spec}]
            return actor.send("PATCH", path, whole, media=JSON_PATCH, fieldManager=manager)
        body = copy.deepcopy(old)
        body["spec"] = old.get("spec", {}) | spec
        body["metadata"] |= self._draw_metadata()
        if draw.random() < 0.12:
            body["metadata"]["managedFields"] = self._forge_entries(old["metadata"].get("managedFields") or [])
        if kind > 0.9 and all("fieldsV1" in entry for entry in body["metadata"].get("managedFields", [])):
            body["spec"] = {key: value for key, value in body["spec"].items() if value is not None}
            return actor.send("PUT", path, protobuf.lease(body), media=protobuf.MEDIA, fieldManager=manager)
        return actor.send("PUT", path, body, fieldManager=manager)

    def _delete(self, actor: ApiClient, collection: str, name: str) -> Reply:
        """Delete an object by its name, or as the only one of a collection, for which the review has no name."""
        if self._random.random() < 0.5:
            return actor.send("DELETE", f"{collection}/{name}")
        return actor.send("DELETE", collection, fieldSelector=f"metadata.name={name}")

    def _draw_spec(self, old: Document) -> Document:
        """Return a few fields, most of them as electors write them."""
        draw = self._random
        some: dict[str, Callable[[], Any]] = {
            "holderIdentity": lambda: draw.choice((*HOLDERS, None, *([old.get("holderIdentity")] * 25))),
            "leaseDurationSeconds": lambda: draw.choice((*DURATIONS, *([old.get("leaseDurationSeconds", 15)] * 15))),
            "leaseTransitions": lambda: draw.choice((*COUNTS, *([(old.get("leaseTransitions") or 0) + 1] * 8))),
            "renewTime": lambda: format_micro_time(draw.choice(OFFSETS)) if draw.random() < 0.9 else draw.choice(TIMES),
            "acquireTime": lambda: (
                format_micro_time(draw.choice(OFFSETS)) if draw.random() < 0.9 else draw.choice(TIMES)
            ),
            "strategy": lambda: draw.choice(STRATEGIES),
            "preferredHolder": lambda: draw.choice(("b", "", None)),
        }
        chances = (0.6, 0.3, 0.4, 0.7, 0.2, 0.06, 0.04)
        return {
            name: make() for (name, make), chance in zip(some.items(), chances, strict=True) if draw.random() < chance
        }

    def _draw_metadata(self) -> Document:
        draw, metadata = self._random, Document()
        if draw.random() < 0.1:
            metadata["labels"] = {"a": draw.choice("xyz")}
        if draw.random() < 0.1:
            metadata["ownerReferences"] = draw.sample(OWNERS, draw.randint(0, 2))
        if draw.random() < 0.05:
            metadata["finalizers"] = draw.choice((["a/b"], []))
        return metadata

    def _forge_entries(self, entries: list[Document]) -> list[Document]:
        draw = self._random
        forgeries = copy.deepcopy(entries)
        for entry in forgeries:
            if draw.random() < 0.5:
                entry["time"] = draw.choice(("2020-01-01T00:00:00Z", "2300-01-01T00:00:00Z", "0001-01-01T00:00:00Z"))
            if draw.random() < 0.2:
                entry["manager"] = "ancient-changes"
        lists: tuple[list[Document], ...] = (forgeries, [{}], forgeries[:-1], (forgeries * 30)[:60])
        return draw.choice(lists)

    def _write_candidate(self, actor: ApiClient, namespace: str, lease: str) -> Reply:
        draw = self._random
        collection = f"{COORDINATION}/{self._candidates}/namespaces/{namespace}/leasecandidates"
        name = draw.choice(("op-0_1", "op-1_1", "mallory_1")) + self._name
        path = f"{collection}/{name}"
        stored = actor.send("GET", path)
        fields: Document = {
            "leaseName": draw.choice((lease, lease, "Not_A_Name")),
            "renewTime": format_micro_time(draw.choice(OFFSETS)),
            "pingTime": draw.choice((format_micro_time(), None, None)),
            "binaryVersion": draw.choice(("1.37.1", "1.37.1", "1.37.2")),
            "emulationVersion": draw.choice(("1.37.0", "1.37.0", "1.36.0")),
        }
        # For another strategy an API server makes a lease without a holder, and 1.37.1 ends when that expires.
        if self._candidates == "v1alpha1":
            fields["preferredStrategies"] = ["OldestEmulationVersion"]
        else:
            fields["strategy"] = "OldestEmulationVersion"
        if stored.status != 200:
            return actor.send("POST", collection, {"metadata": {"name": name}, "spec": fields})
        if draw.random() < 0.2:
            return self._delete(actor, collection, name)
        names = draw.sample(sorted(fields), 2)
        # Not a patch: the election writes candidates too, and an API server evaluates a patch again after a conflict.
        changes = {name: fields[name] for name in names if name != "leaseName"}
        return actor.send("PUT", path, stored.body | {"spec": stored.body["spec"] | changes})


def write_all(writers: list[RandomWrites], count: int) -> list[Reply]:
    """Send `count` writes, by all writers side by side; those that the API server itself refuses count as well."""
    replies: list[Reply] = []

    def write_share(writer: RandomWrites) -> None:
        while len(replies) < count:
            replies.append(writer.write())

    with ThreadPoolExecutor(len(writers)) as pool:
        for worker in [pool.submit(write_share, one) for one in writers]:
            worker.result()
    return replies
