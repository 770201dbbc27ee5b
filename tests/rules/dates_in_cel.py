"""What a policy of the API server cannot date, for `WHERE_CEL_DIFFERS` of the modules that test the rules."""

import json
from typing import Any, Final

from tests.factories import Document

MAX_ENTRIES: Final = 50
"""Entries of managedFields that an expression looks at."""
MAX_HOLDER: Final = 4096
"""Characters of a holder that an expression compares with a name."""


def find_objects(request: Document) -> tuple[Document, Document]:
    """Return the new and the old object of a request, empty where there is none."""
    return request.get("object") or {}, request.get("oldObject") or {}


def has_long_holder(request: Document) -> bool:
    """Return whether a holder has more characters than an expression compares."""
    return any(len((one.get("spec") or {}).get("holderIdentity") or "") > MAX_HOLDER for one in find_objects(request))


def is_undated(request: Document, _field: str = "") -> bool:
    """Return whether a policy cannot compare when this write set the holder with the last renewal before it."""
    new, old = find_objects(request)
    return not _is_dated(new, old)


def _is_dated(new: Document, old: Document) -> bool:
    holder_entries, old_renewals = find_owners(new, "holderIdentity"), find_owners(old, "renewTime")
    return (
        not has_many_entries(new, old)
        and (new.get("spec") or {}).get("holderIdentity") is not None
        and len(holder_entries) == 1
        and is_clock(holder_entries[0])
        and any(one.get("time") for one in old_renewals)
        and all(is_usual_time(one["time"]) for one in old_renewals if one.get("time"))
        and (
            holder_entries[0]["time"] <= min(one["time"] for one in old_renewals if one.get("time"))
            or not _was_there(holder_entries[0], old)
        )
    )


def _was_there(entry: Document, old: Document) -> bool:
    """True if the owner of the holder is one of before, of another write."""
    keys = ("manager", "operation", "time")
    return any(all(one.get(key) == entry.get(key) for key in keys) for one in find_owners(old, "holderIdentity"))


def has_many_entries(*documents: Document) -> bool:
    """Return whether one has more entries than an expression looks at."""
    return any(len(_find_entries(one)) > MAX_ENTRIES for one in documents)


def is_clock(entry: Document) -> bool:
    """Return whether the time of an entry is the API server's, and usual."""
    return entry.get("manager") != "ancient-changes" and is_usual_time(entry.get("time"))


def is_usual_time(time: Any) -> bool:
    """Return whether an expression reads the time of an entry."""
    return isinstance(time, str) and len(time) == 20 and "1970" <= time < "2200"


def is_fraction(request: Document, _field: str = "") -> bool:
    """Return whether a renewTime has a fraction of a second: policies compare whole seconds."""
    times = [(one.get("spec") or {}).get("renewTime") for one in find_objects(request)]
    return any(not str(time).endswith(".000000Z") for time in times if time)


def has_year_0(request: Document, _field: str = "") -> bool:
    """Return whether a time of a spec is of the year 0000, which counts as absent in CEL."""
    specs = [one.get("spec") or {} for one in find_objects(request)]
    return any(str(spec.get(name)).startswith("0000") for spec in specs for name in ("renewTime", "acquireTime"))


def find_owners(document: Document, field: str) -> list[Document]:
    """Return the entries of managedFields that own a field of the spec."""
    name = json.dumps(f"f:{field}")
    return [one for one in _find_entries(document) if name in json.dumps(_find_owned(one))]


def _find_owned(entry: Document) -> Any:
    fields = entry.get("fieldsV1")
    return fields.get("f:spec") if isinstance(fields, dict) else None


def _find_entries(document: Document) -> list[Document]:
    return document.get("metadata", {}).get("managedFields") or []
