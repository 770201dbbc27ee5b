"""One lease of one case: created, brought into a state, and written once."""

import copy
import json
from collections.abc import Callable
from typing import Any, Final

from lab.e2e.api_client import APPLY, MERGE, ApiClient, Reply
from lab.e2e.world import build_lease_path, wait_for_watch_cache
from tests import protobuf

API: Final = "coordination.k8s.io/v1"
FIRST, NEXT = "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:10.000000Z"
"""renewTime before the write and by default after it."""
FUTURE: Final = "2036-01-01T00:00:00Z"
PAST: Final = "2020-01-01T00:00:00Z"
"""Times of entries that a client invents."""
OWNER: Final = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "name": "no-such",
    "uid": "11111111-1111-1111-1111-111111111111",
}
"""An owner that does not exist."""
MANAGER: Final = "client"
DEEP: Final = "replaced by nested maps"
"""Stands for fieldsV1 that nest too deeply for an encoder."""

Change = Callable[[dict[str, Any]], None]
Entries = list[dict[str, Any]]


def make_entry(manager: str, fields: Any, time: str = "2026-01-01T00:00:00Z", **more: Any) -> dict[str, Any]:
    """Return a managedFields entry."""
    entry = {"manager": manager, "operation": "Update", "apiVersion": API, "time": time, "fieldsType": "FieldsV1"}
    return entry | {"fieldsV1": fields} | more


def nest_fields(levels: int) -> str:
    """Return FieldsV1 of so many levels, as JSON."""
    return '{"f:metadata":' + '{"f:a":' * (levels - 2) + "{}" + "}" * (levels - 1)


class OneLease:
    """A lease of its own; writes go through one client, by default as the manager who created it."""

    def __init__(self, client: ApiClient, namespace: str, name: str) -> None:
        self.namespace, self.name = namespace, name
        self.path = build_lease_path(namespace, name)
        self._client = client

    def create(self, metadata: dict[str, Any] | None = None, manager: str = MANAGER, **spec: Any) -> Reply:
        """Create the lease, held by `a`, renewed at FIRST; `spec` changes single fields, `...` leaves one out."""
        fields = {"holderIdentity": "a", "leaseDurationSeconds": 15, "acquireTime": FIRST, "renewTime": FIRST}
        values = {key: value for key, value in (fields | {"leaseTransitions": 1} | spec).items() if value is not ...}
        body = {"apiVersion": API, "kind": "Lease", "metadata": {"name": self.name} | (metadata or {}), "spec": values}
        return self._client.send("POST", build_lease_path(self.namespace), body, fieldManager=manager)

    def get(self) -> dict[str, Any]:
        """Return the lease as it is stored."""
        return self._client.get(self.path)

    def settle(self) -> None:
        """Wait until writes start from the stored version."""
        wait_for_watch_cache(self._client, self.path, self.get()["metadata"]["resourceVersion"])

    def put(
        self,
        metadata: dict[str, Any] | None = None,
        *,
        entries: Callable[[Entries], Entries] | None = None,
        deep: str = "",
        manager: str = MANAGER,
        dry: bool = False,
        **spec: Any,
    ) -> Reply:
        """Send a GET and a changed PUT: a plain renewal unless something else is changed; `...` leaves a field out.

        `deep` replaces DEEP in the text that is sent.
        """
        body = self.make_changed(metadata, **spec)
        if entries:
            body["metadata"]["managedFields"] = entries(body["metadata"].get("managedFields", []))
        query = {"fieldManager": manager} | ({"dryRun": "All"} if dry else {})
        sent = json.dumps(body).replace(json.dumps(DEEP), deep).encode() if deep else body
        return self._client.send("PUT", self.path, sent, **query)

    def patch(self, body: Any, media: str = MERGE, manager: str = MANAGER, **query: Any) -> Reply:
        """Send a patch of one of the four kinds."""
        return self._client.send("PATCH", self.path, body, media=media, fieldManager=manager, **query)

    def renew_by_patch(self, metadata: dict[str, Any] | None = None, manager: str = MANAGER, **spec: Any) -> Reply:
        """Send a merge patch of renewTime, and of more."""
        return self.patch({"metadata": metadata or {}, "spec": {"renewTime": NEXT} | spec}, manager=manager)

    def apply(self, metadata: dict[str, Any] | None = None, **spec: Any) -> Reply:
        """Apply the whole lease server-side, forced."""
        fields = {"holderIdentity": "a", "leaseDurationSeconds": 15, "acquireTime": FIRST, "renewTime": NEXT}
        body = {"apiVersion": API, "kind": "Lease", "metadata": {"name": self.name} | (metadata or {})}
        return self.patch(body | {"spec": fields | {"leaseTransitions": 1} | spec}, APPLY, "applier", force=True)

    def put_protobuf(
        self, metadata: dict[str, Any] | None = None, fields: bytes = b"", more: Entries | None = None, **spec: Any
    ) -> Reply:
        """Send the PUT in protobuf, with more entries; `fields` is the fieldsV1 of one."""
        body = self.make_changed(metadata, **spec)
        entries = [entry for entry in body["metadata"].get("managedFields", []) if len(entry.get("time", "")) == 20]
        more = [*(more or ()), *([make_entry("stranger", fields)] if fields else [])]
        encoded = protobuf.lease(body, [*entries, *more])
        return self._client.send("PUT", self.path, encoded, media=protobuf.MEDIA, fieldManager=MANAGER)

    def label(self, name: str, value: str | None, manager: str = "kubectl-label") -> Reply:
        """Send what `kubectl label` sends."""
        return self.patch({"metadata": {"labels": {name: value}}}, manager=manager)

    def delete(self) -> Reply:
        """Send one DELETE."""
        return self._client.send("DELETE", self.path)

    def delete_all(self, selector: str) -> Reply:
        """Send one DELETE of every lease with these labels."""
        return self._client.send("DELETE", build_lease_path(self.namespace), labelSelector=selector)

    def make_changed(self, metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
        """Return the stored lease with a new renewTime and changes."""
        body = copy.deepcopy(self.get())
        for place, changes in (("spec", {"renewTime": NEXT} | spec), ("metadata", metadata or {})):
            fields = body.get(place, {}) | changes
            body[place] = {key: value for key, value in fields.items() if value is not ...}
        return body
