"""Recorded Lease updates of kube-apiserver 1.36.3 as the model holds them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from tests.model.api_server import TIMES, Lease, Owner, Spec
from tests.model.managed_fields import WIRE_NAMES, Entry, fields_of
from tests.protobuf import micros

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings" / "1.36.3"
FORGED = frozenset({"kubectl-foreign-managed-fields", "kubectl-managed-fields", "kubectl-more-unusual"})
LEFT_OUT: Final = ("f:metadata > f:annotations", "finalizers")


def recorded_updates() -> Iterator[tuple[str, Lease, Lease]]:
    for path in sorted(RECORDINGS.glob("*/*-update-*.json")):
        request = json.loads(path.read_bytes())["request"]
        if request["resource"]["resource"] != "leases" or path.parent.name in FORGED:
            continue
        old, new = as_lease(request["oldObject"]), as_lease(request["object"])
        if not (_has_more(old) or _has_more(new)):
            yield f"{path.parent.name}/{path.stem}", old, new


def _has_more(lease: Lease) -> bool:
    """Return whether it has metadata that the model leaves out."""
    return any(field.startswith(LEFT_OUT) for entry in lease.entries for field in entry.fields)


def as_lease(document: dict[str, Any], *, with_absent: bool = False) -> Lease:
    """The object as the model holds it.

    A field that was set to null (client-go after a coordinated election) is owned on the wire and absent in the model.
    Only an invented owner has what is absent: with `with_absent` it keeps that.
    """
    metadata = document["metadata"]
    absent = frozenset(name for name, wire in WIRE_NAMES.items() if document["spec"].get(wire) is None)
    nulls = frozenset[str]() if with_absent else absent
    pairs = (as_entry(entry) for entry in metadata.get("managedFields", ()))
    entries = tuple(replace(entry, fields=entry.fields - nulls) for entry in pairs)
    owners = tuple(
        Owner(owner["apiVersion"], owner["kind"], owner["name"], owner["uid"])
        for owner in metadata.get("ownerReferences", ())
    )
    labels = tuple(sorted(metadata.get("labels", {}).items()))
    return Lease(
        spec_of(document["spec"]),
        labels,
        entries,
        1,
        owners,
        metadata["name"],
        metadata["namespace"],
        finalizers=tuple(metadata.get("finalizers", ())),
    )


def spec_of(document: dict[str, Any]) -> Spec:
    """`spec` as the model holds it."""
    spec: dict[str, Any] = {name: document.get(wire) for name, wire in WIRE_NAMES.items()}
    return Spec(**spec | {name: micros(spec[name]) if spec[name] else None for name in TIMES})


def as_entry(document: dict[str, Any]) -> Entry:
    """The entry as the model holds it."""
    time = micros(document["time"]) if document.get("time") else None
    fields = fields_of(document.get("fieldsV1", {}))
    subresource = document.get("subresource", "")
    return Entry(document["manager"], document["operation"], time, fields, document["apiVersion"], subresource)
