"""Recorded writes, compared: whether the field manager makes of one what a real kube-apiserver made of it."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePath
from typing import Any, Final

import msgspec

from lab.evidence.electors import make_apply_body
from lab.evidence.field_manager import FieldManager, RefusedError
from tests.evidence.stored_lease import Entry, Lease, lease_of
from tests.recordings import recordings

VERSION: Final = "1.36.3"
"""The version of the recordings, and of the modules that the field manager is built from."""

REPRODUCED: Final = 175
"""How many recorded updates come out with equal managedFields; for the others the request cannot be guessed.

Most of those sent managedFields of their own; some set the zero time, which the stored object shows as null.
"""


def count_reproduced(manager: FieldManager) -> tuple[int, int]:
    """Return how many recorded updates of Leases v1 the field manager makes as recorded, and how many there are."""
    updates = list(_list_updates())
    return sum(_is_reproduced(manager, old, new) for old, new in updates), len(updates)


def _list_updates() -> Iterator[tuple[Lease, Lease]]:
    for recording in recordings():
        if PurePath(recording.file).parts[0] != VERSION:
            continue
        request = recording.document()["request"]
        if request["resource"]["resource"] != "leases" or request["operation"] != "UPDATE":
            continue
        if request.get("requestKind", {}).get("version") != "v1" or not request["object"]["apiVersion"].endswith("/v1"):
            continue
        yield lease_of(request["oldObject"]), lease_of(request["object"])


def _is_reproduced(manager: FieldManager, old: Lease, new: Lease) -> bool:
    """Guess the request: an honest one, by each manager of the result in turn."""
    for entry in new.entries or (Entry("x", time="2026-01-01T00:00:00Z"),):
        try:
            seconds = 0 if entry.time is None else int(datetime.fromisoformat(entry.time).timestamp())
            if entry.operation == "Apply":
                lease = manager.apply(old, _rebuild_manifest(entry, new), entry.manager, seconds)
            else:
                lease = manager.update(old, Lease(new.object, old.entries or None), entry.manager, seconds)
        except (RefusedError, ValueError):
            continue  # no write of that manager, or a time of year 10000
        if lease.entries == new.entries:
            return True
    return False


def _rebuild_manifest(entry: Entry, new: Lease) -> dict[str, Any]:
    """Return the body that an apply must have sent, by the fields that its entry owns."""
    owned = msgspec.json.decode(entry.fields)
    metadata: dict[str, Any] = {}
    for part in ("labels", "annotations"):
        keys = [key[2:] for key in owned.get("f:metadata", {}).get(f"f:{part}", {}) if key != "."]
        if keys:
            metadata[part] = {key: new.object["metadata"].get(part, {}).get(key) for key in keys}
    spec = {key[2:]: new.spec.get(key[2:]) for key in owned.get("f:spec", {}) if key != "."}
    manifest = make_apply_body({"metadata": metadata, **({"spec": spec} if spec else {})})
    manifest["metadata"] |= {"name": new.object["metadata"]["name"], "namespace": new.object["metadata"]["namespace"]}
    return manifest
