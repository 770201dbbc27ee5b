"""managedFields: any list is read, in one way whatever its depth, and as a plain decoder of JSON reads it."""

import json
import math
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Raw

from tests.recordings import recordings
from webhook.admission.rules.expiry import date_last_renewal, date_write_by_field, find_expiry
from webhook.kubernetes.decoding_errors import NESTED, find_error
from webhook.kubernetes.managed_fields import (
    ANCIENT_CHANGES,
    MAX_LEVELS,
    Entry,
    count_entries,
    is_nested_too_deeply,
    list_entries,
    truncate_list,
    truncate_review,
)
from webhook.kubernetes.times import SECOND, parse_stamp
from webhook.kubernetes.utf8 import is_utf8

_NOW: Final = 1_800_000_000 * SECOND
_TEXTS: Final = ("manager", "operation", "apiVersion", "subresource", "time")


def check(data: bytes) -> None:
    """Read a list of managedFields; raises AssertionError for a law that does not hold."""
    truncate_review(data)
    once = truncate_list(data)
    assert truncate_list(once) == once, "truncated again, it is another list"
    if not _is_json(data):
        return
    try:
        expected = _read_plainly(data)
    except (ValueError, RecursionError):
        expected = None
    entries = list_entries(Raw(data))
    assert count_entries(Raw(data)) in {0, len(entries)} or not entries
    if expected is not None:
        assert [_identity(entry) for entry in entries] == expected, "not what a plain decoder reads"
    if not is_nested_too_deeply(entries):
        assert [_identity(entry) for entry in list_entries(Raw(once))] == [_identity(entry) for entry in entries]
    for entry in entries:
        owned = entry.owned
        for names in (owned.metadata, owned.labels, owned.annotations, owned.finalizers, owned.owners):
            assert all(isinstance(name, str) for name in names)
    seen = date_last_renewal(entries)
    written = date_write_by_field(entries, entries[:1], "f:holderIdentity", _NOW)
    expiry = find_expiry("one", 15, _NOW - 20 * SECOND, entries, written, _NOW)
    assert expiry.from_stamps or expiry.last_renewal == _NOW - 20 * SECOND
    assert seen is None or not expiry.from_stamps or expiry.last_renewal == seen


def seeds() -> Iterator[bytes]:
    """Yield the lists of recorded reviews, one of each length, and lists that nest."""
    lengths = set()
    for recording in recordings():
        request = recording.document()["request"]
        for role in ("object", "oldObject"):
            entries = (request.get(role) or {}).get("metadata", {}).get("managedFields")
            if entries and len(text := json.dumps(entries)) // 200 not in lengths:
                lengths.add(len(text) // 200)
                yield text.encode()
    yield (
        b'[{"manager":"m","operation":"Update","fieldsV1":{"f:metadata":{"f:finalizers":{"v:\\"a\\"":{},".":{}},'
        b'"f:ownerReferences":{"k:{\\"uid\\":\\"u\\"}":{".":{}}}},'
        b'"f:spec":{"f:renewTime":{},"f:holderIdentity":{".":{},"f:x":{}}}}}]'
    )
    for levels in (MAX_LEVELS - 2, MAX_LEVELS, 2000):
        yield b'[{"fieldsV1":' + b'{"f:spec":' * levels + b"{}" + b"}" * levels + b"}]"
    # A byte that is not UTF-8, so deep that it is truncated.
    yield b'[{"fieldsV1":' + b'{"f:spec":' * MAX_LEVELS + b'{"\xf9":{}}' + b"}" * MAX_LEVELS + b"}]"


def _is_json(data: bytes) -> bool:
    """Return whether it may be a list inside of a review, which is UTF-8 and was decoded before, whatever its depth."""
    return (
        is_utf8(data)
        and find_error(memoryview(data)) in {"", NESTED}
        and not find_error(memoryview(truncate_list(data)))
    )


def _identity(entry: Entry) -> tuple[object, ...]:
    owned = entry.owned
    return (entry.manager, entry.operation, entry.time, entry.key, entry.stamp, entry.is_fold, owned.spec, owned.labels)


def _read_plainly(data: bytes) -> list[tuple[object, ...]]:
    """Return what `list_entries` must find; raises ValueError where the two decoders may differ in what they refuse."""
    entries = json.loads(
        data.decode(), object_pairs_hook=_without_repeated_keys, parse_constant=_refuse, parse_float=_parse_finite
    )
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise ValueError("not a list")  # noqa: TRY004 - what a caller expects of a text
    known: list[tuple[object, ...]] = []
    for entry in entries:
        if not isinstance(entry, dict):
            raise ValueError("not an object")  # noqa: TRY004
        texts = [entry.get(name) for name in _TEXTS]
        fields = {} if entry.get("fieldsV1") is None else entry["fieldsV1"]
        if not isinstance(fields, dict) or not all(one is None or isinstance(one, str) for one in texts):
            raise ValueError("not of the type that the API has")
        manager, operation, version, subresource, time = texts
        version = "" if operation == "Apply" else version or ""
        spec, labels = fields.get("f:spec"), (_object(fields.get("f:metadata"))).get("f:labels")
        key = (manager or "", operation or "", version, subresource or "")
        is_fold = manager == ANCIENT_CHANGES
        known.append((manager, operation, time, key, parse_stamp(time), is_fold, _members(spec), _members(labels)))
    return known


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _members(node: Any) -> frozenset[str]:
    """Return the keys with `{}` or a `.` behind them."""
    return frozenset(
        key for key, value in _object(node).items() if value == {} or (isinstance(value, dict) and "." in value)
    )


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("of a repeated key one value counts")
    return members


def _parse_finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("beyond the numbers that Go and msgspec decode")
    return number


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")
