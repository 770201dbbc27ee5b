"""Recorded Lease updates of kube-apiserver 1.36.3 as the model holds them."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.model import api_server
from tests.model.api_server import SECOND, WIRE_NAMES, Entry, Lease, Spec

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings" / "1.36.3"
FORGED = frozenset({"kubectl-foreign-managed-fields", "kubectl-managed-fields", "kubectl-more-unusual"})


def recorded_updates() -> Iterator[tuple[str, Lease, Lease]]:
    for path in sorted(RECORDINGS.glob("*/*-update-*.json")):
        request = json.loads(path.read_bytes())["request"]
        if request["resource"]["resource"] != "leases" or path.parent.name in FORGED:
            continue
        old, new = as_lease(request["oldObject"]), as_lease(request["object"])
        if old is not None and new is not None:
            yield f"{path.parent.name}/{path.stem}", old, new


def as_lease(document: dict[str, Any]) -> Lease | None:
    """The object as the model holds it; None where it has metadata that the model leaves out."""
    metadata = document["metadata"]
    nulls = frozenset(name for name, wire in WIRE_NAMES.items() if document["spec"].get(wire) is None)
    found = tuple(as_entry(entry, nulls) for entry in metadata.get("managedFields", ()))
    if None in found:
        return None
    spec = {name: document["spec"].get(wire) for name, wire in WIRE_NAMES.items()}
    for name in api_server.TIMES:
        spec[name] = micros(spec[name]) if spec[name] else None
    labels = tuple(sorted(metadata.get("labels", {}).items()))
    return Lease(Spec(**spec), labels, tuple(entry for entry in found if entry is not None))


def as_entry(document: dict[str, Any], nulls: frozenset[str]) -> Entry | None:
    """The entry; None where it owns metadata that the model leaves out.

    A field that was set to null (client-go after a coordinated election) is owned on the wire and absent in the model.
    """
    owned = document["fieldsV1"]
    metadata = owned.get("f:metadata", {})
    if metadata.keys() - {"f:labels"}:
        return None
    names = {f"f:{wire}": name for name, wire in WIRE_NAMES.items()}
    fields = {names[key] for key in owned.get("f:spec", {})}
    labels = metadata.get("f:labels")
    if labels is not None:
        fields |= {f"{api_server.LABELS}.{key[2:]}" for key in labels if key != "."}
        if not labels or "." in labels:
            fields.add(api_server.LABELS)
    time = micros(document["time"]) if "time" in document else None
    return Entry(document["manager"], document["operation"], time, frozenset(fields - nulls))


def micros(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return int(moment.timestamp()) * SECOND + moment.microsecond
