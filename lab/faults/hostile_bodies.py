"""Bodies that are made to cost time or memory, each as large as a body may be, or as large as it is worst."""

from collections.abc import Callable
from typing import Final

from tests.factories import Tweak, make_candidate, make_lease, make_review, put, to_bytes
from webhook.kubernetes.request import MAX_REQUEST
from webhook.kubernetes.review_size import MAX_JSON, MAX_STORED, MAX_STORED_ENTRIES, OPENING

LARGEST: Final = 20 * 1024 * 1024 - 4096
PART: Final = MAX_JSON - 4096
"""What an object may have at most that is evaluated."""
OBJECT: Final = "request.object."
METADATA: Final = "request.object.metadata."
SPEC: Final = "request.object.spec."
RARE: Final = "\U0001f600".encode()
"""One character that makes the text around it four times as large in memory."""

_HOLE: Final = "@@"


def make_lease_update(place: str, *tweaks: Tweak) -> bytes:
    """Return an UPDATE of a lease with a hole at one place."""
    return to_bytes(make_review(put(place, _HOLE), *tweaks, old=make_lease(), new=make_lease()))


def make_candidate_update(place: str) -> bytes:
    """Return an UPDATE of a candidate with a hole at one place."""
    return to_bytes(make_review(put(place, _HOLE), old=make_candidate(), new=make_candidate()))


def fill(review: bytes, start: bytes, item: bytes, end: bytes, size: int = PART) -> bytes:
    """Return the review with its hole filled with one item again and again, up to a size."""
    return review.replace(b'"@@"', start + item * ((size - len(review)) // len(item)) + end)


def fill_count(review: bytes, start: bytes, item: bytes, end: bytes, count: int) -> bytes:
    """Return the review with its hole filled with so many items."""
    return review.replace(b'"@@"', start + item * count + end)


def fill_keys(review: bytes, item: str, count: int) -> bytes:
    """Return the review with its hole filled with an object of so many keys."""
    return review.replace(b'"@@"', b"{%b}" % ",".join(item % number for number in range(count)).encode())


_EIGHT_FIELDS: Final = b'{"fieldsV1":{"f:spec":{%b}}},' % b",".join(b'"f:%d":{}' % number for number in range(8))


_DEEP: Final = b'{"fieldsV1":' + b'{"f:a":' * 30 + b"{}" + b"}" * 30 + b"}"
_FLAT: Final = b'{"fieldsV1":{"f:a":{}}}'


def fill_both(entry: bytes, count: int) -> bytes:
    """Return a renewal with so many entries of managedFields, and one less in oldObject."""
    entries = b"[" + entry * (count - 1) + b"{}]"
    return fill_lists(entries, entries)


def fill_lists(new: bytes, old: bytes) -> bytes:
    """Return a renewal with these lists of managedFields."""
    metadata = "metadata.managedFields"
    lease = make_lease(put(metadata, _HOLE), put("spec.renewTime", "2026-01-31T12:00:01.000000Z"))
    first, middle, last = to_bytes(make_review(old=make_lease(put(metadata, _HOLE)), new=lease)).split(b'"@@"')
    return first + new + middle + old + last


BODIES: Final[dict[str, Callable[[], bytes]]] = {
    "lists in lists without an end": lambda: OPENING + b'","request":{"uid":"u","x":' + b"[" * (LARGEST - 100),
    "five million lists in lists": lambda: fill(make_lease_update(OBJECT + "x"), b"", b"[", b"", LARGEST),
    "three million lists in lists, 3 MiB": lambda: fill(make_lease_update(OBJECT + "x"), b"", b"[", b"", MAX_REQUEST),
    "managedFields of a million levels": lambda: fill(
        make_lease_update(METADATA + "managedFields"), b'[{"fieldsV1":', b'{"f:a":', b"", LARGEST
    ),
    "managedFields of 10,000 levels, then lists": lambda: fill(
        make_lease_update(METADATA + "managedFields"),
        b'[{"fieldsV1":' + b'{"f:a":' * 10_000 + b"{}" + b"}" * 10_000 + b',"x":[',
        b"[[]],",
        b"0]}]",
    ),
    "managedFields of 10,000 levels around quotes": lambda: fill(
        make_lease_update(METADATA + "managedFields"),
        b'[{"fieldsV1":' + b'{"f:a":' * 10_000 + b'"',
        b'\\"',
        b'"' + b"}" * 10_000 + b"}]",
        2 * MAX_STORED,
    ),
    "escapes without an end": lambda: b'{"kind":"' + b"\\n" * (LARGEST // 2),
    "the same in an API server's form": lambda: OPENING + b'","request":{"uid":"' + b"\\n" * (LARGEST // 2 - 64),
    "halves of pairs without an end": lambda: b'{"kind":"' + b"\\ud800" * (LARGEST // 6),
    "halves of pairs in an API server's form": lambda: OPENING + b'","x":"' + b"\\ud800" * (LARGEST // 6 - 64),
    "half a million halves of pairs, 3 MiB": lambda: fill(
        make_lease_update(SPEC + "holderIdentity"), b'"', b"\\ud800", b'"', MAX_REQUEST
    ),
    "uid a number, and seven million lists": lambda: fill(make_lease_update("request.uid"), b'5,"x":[', b"[],", b"0]"),
    "uid a number, and objects": lambda: fill(make_lease_update("request.uid"), b'5,"x":[', b'{"":{}},', b"0]"),
    "managedFields of ten million zeros": lambda: fill(
        make_lease_update(METADATA + "managedFields"), b"[", b"0,", b"0]"
    ),
    "managedFields of a million zeros": lambda: fill_count(
        make_lease_update(METADATA + "managedFields"), b"[", b"0,", b"0]", 1_000_000
    ),
    "managedFields of 740,000 empty entries": lambda: fill_count(
        make_lease_update(METADATA + "managedFields"), b"[", b"{},", b"{}]", 740_000
    ),
    "managedFields with times": lambda: fill(
        make_lease_update(METADATA + "managedFields"), b"[", b'{"time":"2026-01-31T12:00:00Z"},', b"{}]"
    ),
    "50,000 entries of one field, twice": lambda: fill_both(b'{"fieldsV1":{"f:spec":{"f:x":{}}}},', MAX_STORED_ENTRIES),
    "27,000 entries of eight fields, twice": lambda: fill_both(_EIGHT_FIELDS, 27_000),
    "50,000 entries of eight fields, twice": lambda: fill_both(_EIGHT_FIELDS, MAX_STORED_ENTRIES),
    "8,000 entries that nest too deeply, and one before": lambda: fill_lists(
        b"[" + (_DEEP + b",") * 7_999 + _DEEP + b"]", b"[" + (_FLAT + b",") * 8_000 + _DEEP + b"]"
    ),
    "135,000 entries of one field, 3 MiB": lambda: fill(
        make_lease_update(METADATA + "managedFields"), b"[", b'{"fieldsV1":{"f:a":{}}},', b"{}]", MAX_REQUEST
    ),
    "1.4 million keys in extra": lambda: fill_keys(make_lease_update("request.userInfo.extra"), '"%06d":[]', 1_400_000),
    "270,000 keys in extra, 3 MiB": lambda: fill_keys(
        make_lease_update("request.userInfo.extra"), '"%06d":[]', 270_000
    ),
    "1.5 million labels": lambda: fill_keys(make_lease_update(METADATA + "labels"), '"l%06d":""', 1_500_000),
    "440,000 labels": lambda: fill_keys(make_lease_update(METADATA + "labels"), '"l%06d":"x"', 440_000),
    "440,000 annotations": lambda: fill_keys(make_lease_update(METADATA + "annotations"), '"l%06d":"x"', 440_000),
    "440,000 preconditions": lambda: fill_keys(
        make_lease_update("request.options.preconditions"), '"%06d":"x"', 440_000
    ),
    "740,000 finalizers": lambda: fill_count(
        make_lease_update(METADATA + "finalizers"), b"[", b'"a",', b'"a"]', 740_000
    ),
    "740,000 empty owners": lambda: fill_count(
        make_lease_update(METADATA + "ownerReferences"), b"[", b"{},", b"{}]", 740_000
    ),
    "110,000 owners": lambda: fill_count(
        make_lease_update(METADATA + "ownerReferences"),
        b"[",
        b'{"apiVersion":"a","kind":"b","name":"c","uid":"d"},',
        b"null]",
        110_000,
    ),
    "550,000 unknown keys": lambda: fill_keys(make_lease_update(OBJECT + "unknown"), '"%06d":0', 550_000),
    "unknown keys beside a field of another version": lambda: fill_keys(
        make_candidate_update(SPEC + "unknown"), '"%06d":0', 550_000
    ).replace(b'"leaseName"', b'"preferredStrategies":5,"leaseName"'),
    "lists in lists": lambda: fill(make_lease_update(OBJECT + "unknown"), b"[", b"[" * 400 + b"]" * 400 + b",", b"0]"),
    "runs of 4,299 digits, then 1e400": lambda: fill(
        make_lease_update(OBJECT + "x"), b'"', b"9" * 4299 + b"a", b'","spec":{"leaseTransitions":1e400}'
    ),
    "a number of 20 million digits": lambda: fill(make_lease_update(SPEC + "leaseTransitions"), b"", b"9", b""),
    "a holder of escaped <": lambda: fill(make_lease_update(SPEC + "holderIdentity"), b'"', b"\\u003c", b'"'),
    "a holder of escaped quotes": lambda: fill(make_lease_update(SPEC + "holderIdentity"), b'"', b'\\"', b'"'),
    "a holder of commas": lambda: fill(make_lease_update(SPEC + "holderIdentity"), b'"', b",", b'"'),
    "a holder with a rare character": lambda: fill(make_lease_update(SPEC + "holderIdentity"), b'"' + RARE, b"a", b'"'),
    "a holder of invisible characters": lambda: fill(
        make_lease_update(SPEC + "holderIdentity"), b'"', "\u200b".encode(), b'"'
    ),
    "a label's key": lambda: fill(make_lease_update(METADATA + "labels"), b'{"' + RARE, b"a", b'":""}'),
    "a label's value": lambda: fill(make_lease_update(METADATA + "labels"), b'{"a":"', b"a", b'-"}'),
    "an annotation's key": lambda: fill(make_lease_update(METADATA + "annotations"), b'{"' + RARE, b"A", b'":""}'),
    "a finalizer": lambda: fill(make_lease_update(METADATA + "finalizers"), b'["' + RARE, b"a", b'"]'),
    "a name": lambda: fill(make_lease_update(METADATA + "name"), b'"' + RARE, b"a", b'"'),
    "a time with 20 million digits": lambda: fill(
        make_lease_update(SPEC + "renewTime"), b'"2026-01-31T12:00:00.', b"1", b'Z"'
    ),
    "a creationTimestamp with as many": lambda: fill(
        make_lease_update(METADATA + "creationTimestamp"), b'"2026-01-31T12:00:00.', b"1", b'Z"'
    ),
    "a version of 10 million parts": lambda: fill(
        make_candidate_update(SPEC + "binaryVersion"), b'"1.0.0-', b"a.", b'a"'
    ),
    "a strategy": lambda: fill(make_candidate_update(SPEC + "strategy"), b'"', b"a.", b'/x"'),
    "a fieldManager": lambda: fill(make_lease_update("request.options.fieldManager"), b'"', b"a", b'\\u0001"'),
    "a subresource": lambda: fill(make_lease_update("request.subResource"), b'"' + RARE, b"a", b'"'),
    "a user": lambda: fill(make_lease_update("request.userInfo.username"), b'"' + RARE, b"a", b'"'),
    "a pod's name": lambda: fill(
        make_lease_update("request.userInfo.extra"), b'{"authentication.kubernetes.io/pod-name":["', b"*", b'"]}'
    ),
}
