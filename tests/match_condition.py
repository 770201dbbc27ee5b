"""The shipped match condition in Python: which writes the API server drops before it calls the webhook.

A transcript of deploy/base/90-webhook.yaml, term by term, for reviews that were recorded and for objects that an API
server stored. `python -m tests.e2e --only conditions` compares it with the real one.
"""

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final

from tests.factories import Document

SPEC: Final = (
    "holderIdentity",
    "acquireTime",
    "leaseDurationSeconds",
    "leaseTransitions",
    "strategy",
    "preferredHolder",
)
METADATA: Final = ("labels", "annotations", "ownerReferences", "finalizers", "generateName", "deletionTimestamp")
ENTRY: Final = ("manager", "operation", "apiVersion", "subresource", "fieldsType", "fieldsV1")
EARLIEST: Final = "1970"
LATEST: Final = "2200"
LONGEST_STEP: Final = dt.timedelta(hours=24)
MOST_ENTRIES: Final = 50
TIME_LENGTH: Final = len("2026-01-01T00:00:00Z")

Entry = Mapping[str, Any]


def why_reviewed(request: Document) -> str | None:
    """The name of the first term that is true, as the doctor calls it; None where the write is dropped.

    `request` is that of an AdmissionReview; only resource, operation, object and oldObject are read.
    """
    if request["resource"]["resource"] != "leases":
        return "resource"
    if request["operation"] != "UPDATE":
        return "operation"
    return of_update(request["object"], request["oldObject"])


def of_update(new: Document, old: Document) -> str | None:
    """The same for an update of a Lease, without a request."""
    after, before = new.get("spec") or {}, old.get("spec") or {}
    for field in SPEC:
        if after.get(field) != before.get(field):
            return field
    for field in METADATA:
        if new["metadata"].get(field) != old["metadata"].get(field):
            return field
    return _of_times(after.get("renewTime"), before.get("renewTime")) or _of_entries(
        new["metadata"].get("managedFields", []), old["metadata"].get("managedFields", [])
    )


def _of_times(after: str | None, before: str | None) -> str | None:
    if after == before:
        return "renewTime unchanged"
    for prefix, time in (("", after), ("old ", before)):
        if time is None:
            return f"{prefix}renewTime null"
    for prefix, time in (("", after), ("old ", before)):
        if time is not None and time < EARLIEST:
            return f"{prefix}renewTime before 1970"
        if time is not None and time > LATEST:
            return f"{prefix}renewTime after 2200"
    if after and before and dt.datetime.fromisoformat(after) - dt.datetime.fromisoformat(before) > LONGEST_STEP:
        return "24 hours ahead"
    return None


def _of_entries(after: list[Entry], before: list[Entry]) -> str | None:
    if len(after) != len(before):
        return "managedFields count"
    if len(after) > MOST_ENTRIES:
        return "managedFields above 50"
    if any(entry.get("time") is not None and len(entry["time"]) != TIME_LENGTH for entry in after):
        return "managedFields times"
    if [entry for entry in after if not _owns(entry)] != [entry for entry in before if not _owns(entry)]:
        return "managedFields of others"
    owners = [entry for entry in after if _owns(entry)]
    if any(entry.get("manager") == "ancient-changes" for entry in owners):
        return "ancient-changes"
    if not all(any(_is_the_same(entry, other) for other in before) for entry in owners):
        return "managedFields of the writer"
    return None


def _owns(entry: Entry) -> bool:
    """Whether exactly renewTime is owned, and not something below it."""
    spec = (entry.get("fieldsV1") or {}).get("f:spec")
    return isinstance(spec, dict) and spec.get("f:renewTime") == {}


def _is_the_same(entry: Entry, other: Entry) -> bool:
    """Apart from the time, which the API server writes."""
    return all(entry.get(key) == other.get(key) for key in ENTRY)
