"""The shipped matchConditions as Python: whether an API server sends a write to the webhook at all."""

import json
import re
from functools import lru_cache
from typing import Any, Final

from tests.evidence.stored_lease import Entry, Lease
from webhook.kubernetes import times

_SPEC: Final = (
    "holderIdentity",
    "acquireTime",
    "leaseDurationSeconds",
    "leaseTransitions",
    "strategy",
    "preferredHolder",
)
METADATA: Final = ("labels", "annotations", "ownerReferences", "finalizers", "generateName", "deletionTimestamp")
_COMPARED: Final = tuple(name for name in METADATA if name != "annotations")
_MAX_ANNOTATIONS: Final = 100
_DAY: Final = 86_400_000_000
_MAX_ENTRIES: Final = 50


def is_sent(old: Lease | None, new: Lease | None) -> bool:
    """False for a plain renewal: an update that changes renewTime and the time of the one entry that owns it."""
    if old is None or new is None:
        return True
    before, after = old.spec, new.spec
    if any(before.get(field) != after.get(field) for field in _SPEC):
        return True
    if any(old.object["metadata"].get(field) != new.object["metadata"].get(field) for field in _COMPARED):
        return True
    if _annotations_are_sent(*(one.object["metadata"].get("annotations") or {} for one in (old, new))):
        return True
    was, renewed = old.renew_time, new.renew_time
    if was == renewed or was is None or renewed is None:
        return True
    if not all(len(text) == 27 and "1970" <= text <= "2200" for text in (was, renewed)):
        return True
    if times.parse(renewed) - times.parse(was) > _DAY:
        return True
    return _entries_are_sent(old.entries or (), new.entries or ())


def _annotations_are_sent(before: dict[str, str], after: dict[str, str]) -> bool:
    """False if at most the time of a stamp differs."""
    if before == after:
        return False
    return (
        len(before) != len(after)
        or len(after) > _MAX_ANNOTATIONS
        or any(
            before.get(key) != text
            and not (key in before and key.startswith("lease-webhook/written-") and len(text) == 20)
            for key, text in after.items()
        )
    )


def _entries_are_sent(before: tuple[Entry, ...], after: tuple[Entry, ...]) -> bool:
    if len(before) != len(after) or len(after) > _MAX_ENTRIES:
        return True
    if any(entry.time is not None and len(entry.time) != 20 for entry in (*before, *after)):
        return True
    owners = [entry for entry in after if owns_renew_time(entry)]
    if [e for e in after if not owns_renew_time(e)] != [e for e in before if not owns_renew_time(e)]:
        return True
    if any(entry.manager == "ancient-changes" for entry in owners):
        return True
    return any(all(_but_time(entry) != _but_time(one) for one in before) for entry in owners)


def _but_time(entry: Entry) -> tuple[str, ...]:
    return entry.manager, entry.operation, entry.api_version, entry.subresource, entry.fields


def owns_renew_time(entry: Entry) -> bool:
    """Return whether the entry has exactly {} at f:spec.f:renewTime."""
    return owns(entry, "renewTime")


def owns(entry: Entry, field: str) -> bool:
    """Return whether the entry has exactly {} at a field of spec."""
    return _spec_of(entry.fields).get(f"f:{field}") == {}


@lru_cache(maxsize=4096)
def _spec_of(fields: str) -> dict[str, Any]:
    if not fields:
        return {}
    spec = json.loads(_cut(fields)).get("f:spec")
    return spec if isinstance(spec, dict) else {}


_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]')


def _cut(fields: str) -> str:
    """The text with what lies on level five and deeper emptied."""
    depth, kept, parts = 0, 0, []
    for token in _TOKEN.finditer(fields):
        if token[0] == "{":
            depth += 1
            if depth == 5:
                parts.append(fields[kept : token.start()] + '{"cut":{}}')
        elif token[0] == "}":
            if depth == 5:
                kept = token.end()
            depth -= 1
    return "".join(parts) + fields[kept:]
