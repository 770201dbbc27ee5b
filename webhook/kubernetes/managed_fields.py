"""`metadata.managedFields`: which manager owns which field, and when the API server last saw the field change.

The API server stamps `time` itself, in whole seconds, whatever the client claims in renewTime. Everything else in a
list may be a client's invention: see `webhook.admission.rules.expiry` for what may be concluded.

An API server takes and returns JSON of up to 10,000 levels, and only `fieldsV1` inside a Lease nests freely, so whoever
may update a lease can store an entry that no JSON decoder of Python reads. Nothing that a rule reads lies deeper than
five levels, so what nests too deeply is truncated, and the verdict does not depend on depth. A truncated list still
nests one level deeper than `MAX_LEVELS`, so rules see that it was too deep.
"""

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Raw, Struct, field

from webhook.kubernetes.times import parse_stamp
from webhook.text.quoting import cached_if_short

ANCIENT_CHANGES: Final = "ancient-changes"
"""The manager into which the API server folds the oldest Update entries once there are more than ten.

Source: kubernetes/apimachinery `pkg/util/managedfields/internal/capmanagers.go`.
"""

BEFORE_FIRST_APPLY: Final = "before-first-apply"
"""The manager of everything that was there when a server-side apply began to track an object."""

APPLY: Final = "Apply"

HOLDER: Final = "f:holderIdentity"
ACQUIRE_TIME: Final = "f:acquireTime"
RENEW_TIME: Final = "f:renewTime"
DURATION: Final = "f:leaseDurationSeconds"
PREFERRED_HOLDER: Final = "f:preferredHolder"
OF_API_SERVERS: Final = "kube-apiserver"
"""The field manager of what an API server itself writes by default: the name of its program, which may be another."""

MAX_ENTRIES: Final = 60_000
"""Entries of one list. A write of 3 MiB, in protobuf too, has fewer: each names its operation, apiVersion and type."""

MAX_LEVELS: Final = 32
"""Levels of lists and objects of managedFields that are read; the list itself is the first."""

MAX_REVIEW_LEVELS: Final = 10_100
"""Levels of a review: Go's JSON has 10,000 of an object at most (maxNestingDepth in `encoding/json/scanner.go`)."""

MAX_REVIEW_TOKENS: Final = 2_500_000
"""Strings and brackets of a review that is truncated. Two stored objects of 1.5 MiB have fewer: an owner reference of
one-letter texts, which has most of them for its size, takes 14 bytes in etcd and has ten."""

_NOTHING: Final[frozenset[str]] = frozenset()
_NO_FIELDS: Final = Raw(b"null")
NO_ENTRIES: Final = Raw(b"null")
"""The bytes that represent the managedFields of an object without any."""

Key = tuple[str, str, str, str]
"""The parts that distinguish entries: manager, operation, apiVersion (of Update entries only) and subresource."""


class OwnedFields(Struct, frozen=True, gc=False):
    """The content of `fieldsV1` of one entry, read once for all entries with the same bytes.

    Names are as managedFields spells them, with `f:`; values of finalizers and uids of owners are bare. A field is a
    member of the set if its value is `{}` or has the key `"."`; other keys are about what is below the field.
    Source: sigs.k8s.io/structured-merge-diff `fieldpath/serialize.go`.
    `below` are names of fields of spec below which something is owned, although each of them is a scalar; `is_deep` is
    true if the list of the entry nests deeper than `MAX_LEVELS`; `fields` is all of it. What is owned in metadata is
    read when it is asked for: few writes set anything there, and an entry may own 80,000 labels.
    """

    spec: frozenset[str] = _NOTHING
    below: tuple[str, ...] = ()
    is_deep: bool = False
    fields: dict[str, Any] = {}

    @property
    def in_metadata(self) -> dict[str, Any]:
        """What is owned in metadata, as it is written."""
        return _get_object(self.fields, "f:metadata")

    @property
    def in_spec(self) -> dict[str, Any]:
        """What is owned in spec, as it is written."""
        return _get_object(self.fields, "f:spec")

    @property
    def metadata(self) -> frozenset[str]:
        """Fields of metadata."""
        return _list_members(self.in_metadata)

    @property
    def labels(self) -> frozenset[str]:
        """Keys of labels."""
        return _list_members(self.in_metadata.get("f:labels"))

    @property
    def annotations(self) -> frozenset[str]:
        """Keys of annotations."""
        return _list_members(self.in_metadata.get("f:annotations"))

    @property
    def finalizers(self) -> frozenset[str]:
        """Finalizers, the members `v:"value"` of a set."""
        values = _decode_members(_list_members(self.in_metadata.get("f:finalizers")), "v:")
        return frozenset(value for value in values if isinstance(value, str))

    @property
    def owners(self) -> frozenset[str]:
        """Uids of owners, the items `k:{"uid":"value"}` of a list that is keyed by uid.

        A key with anything besides the uid, even the uid again, is not the key of an item: a client can invent one, and
        no write ever takes it away from its owner.
        """
        keys = _decode_members(_list_members(self.in_metadata.get("f:ownerReferences")), "k:")
        # Pairs of an object are a tuple, so a list of lists is not taken for one.
        pairs = (key[0] for key in keys if isinstance(key, tuple) and len(key) == 1)
        return frozenset(uid for name, uid in pairs if name == "uid" and isinstance(uid, str))


class Entry(Struct, frozen=True, gc=False):
    """One manager's entry, with all that rules ask of it; `time` is the text that the review carries.

    `stamp` is `time` in microseconds since 1970, None if absent, zero or unreadable; `key` distinguishes the entry from
    the others of its list; `is_fold`: the API server, or a client of that name, folds other entries into this one.
    """

    manager: str | None
    operation: str | None
    time: str | None
    key: Key
    stamp: int | None
    owned: OwnedFields
    owns_renew_time: bool
    is_fold: bool


class _Wire(Struct, frozen=True, gc=False, rename="camel"):
    manager: str | None = None
    operation: str | None = None
    api_version: str | None = None
    subresource: str | None = None
    time: str | None = None
    fields: Raw = field(default=_NO_FIELDS, name="fieldsV1")


_entries: Final = msgspec.json.Decoder(Annotated[list[_Wire], Meta(max_length=MAX_ENTRIES)])
_fields: Final[msgspec.json.Decoder[dict[str, Any] | None]] = msgspec.json.Decoder(dict[str, Any] | None)
_undecoded: Final = msgspec.json.Decoder(list[Raw])


def list_entries(managed_fields: Raw) -> Sequence[Entry]:
    """Return the entries of an object; none if the list is broken or too long, which an API server never sends."""
    if managed_fields is NO_ENTRIES:
        return ()
    entries = []
    try:
        for wire in _entries.decode(managed_fields):
            manager, operation, time, owned = (
                wire.manager,
                wire.operation,
                wire.time,
                _read_owned_fields(bytes(wire.fields)),
            )
            version = "" if operation == APPLY else wire.api_version or ""
            key = (manager or "", operation or "", version, wire.subresource or "")
            stamp, is_fold = parse_stamp(time), manager == ANCIENT_CHANGES
            entries.append(Entry(manager, operation, time, key, stamp, owned, RENEW_TIME in owned.spec, is_fold))
    except (msgspec.ValidationError, UnicodeDecodeError):
        return []
    except RecursionError:
        return list_entries(Raw(truncate_list(bytes(managed_fields))))
    return entries


MAX_REMEMBERED: Final = 512  # texts of up to 1 KiB, in 3 MiB: clients of one kind write the same one into every lease


@cached_if_short(max_entries=MAX_REMEMBERED, max_length=1024)
def _read_owned_fields(text: bytes) -> OwnedFields:
    fields = _fields.decode(text) or {}
    spec = _get_object(fields, "f:spec")
    below = [
        name.removeprefix("f:") for name, value in spec.items() if isinstance(value, dict) and value.keys() - {"."}
    ]
    # The list and the entry are two levels; nearly every text has fewer brackets than levels that are allowed.
    may_be_deep = text.count(b"{") + text.count(b"[") > MAX_LEVELS - 2
    is_deep = may_be_deep and _count_levels(fields) + 2 > MAX_LEVELS
    return OwnedFields(_list_members(spec), tuple(below), is_deep, fields)


def _get_object(fields: dict[str, Any], name: str) -> dict[str, Any]:
    found = fields.get(name)
    return found if isinstance(found, dict) else {}


def _list_members(node: object) -> frozenset[str]:
    if not isinstance(node, dict):
        return _NOTHING
    return frozenset([name for name, value in node.items() if isinstance(value, dict) and (not value or "." in value)])


def _decode_members(members: Iterable[str], prefix: str) -> Iterator[Any]:
    """The JSON behind a prefix, an object as the tuple of its pairs."""
    for member in members:
        if member.startswith(prefix):
            with contextlib.suppress(ValueError, RecursionError):
                yield json.loads(member.removeprefix(prefix), object_pairs_hook=tuple)


def count_entries(managed_fields: Raw) -> int:
    """Return the number of entries of a list, without decoding them; 0 if it is not a list."""
    try:
        return len(_undecoded.decode(managed_fields))
    except (msgspec.DecodeError, RecursionError):
        return 0


def is_same_list(first: Raw, second: Raw) -> bool:
    """Return true if two lists have the same entries, in one order; a list that is absent is empty.

    Values are compared, because a mutating webhook or policy makes an API server encode them again. What cannot be
    read is compared as it is.
    """
    if bytes(first) == bytes(second):
        return True
    try:
        return bool((msgspec.json.decode(first) or []) == (msgspec.json.decode(second) or []))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def is_nested_too_deeply(entries: Iterable[Entry]) -> bool:
    """Return true if the list nests deeper than `MAX_LEVELS` levels, as it does still after it was truncated."""
    return any(entry.owned.is_deep for entry in entries)


def _count_levels(fields: dict[str, Any]) -> int:
    level: list[Any] = [fields]
    levels = 0
    while level:
        levels += 1
        children = (child for node in level if node for child in (node.values() if isinstance(node, dict) else node))
        level = [child for child in children if isinstance(child, dict | list)]
    return levels


_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[{}\[\]]', re.DOTALL)
"""A string, possibly without an end, or a bracket: each byte is scanned once, whatever the text is."""

_OPENING: Final = frozenset(b"{[")
_QUOTE: Final = ord('"')

_LISTS: Final = (
    [b'"request"', b'"object"', b'"metadata"', b'"managedFields"'],
    [b'"request"', b'"oldObject"', b'"metadata"', b'"managedFields"'],
)
"""The keys on the path to both lists of a review."""


def truncate_review(body: bytes) -> bytes:
    """Return a review in which both lists of managedFields nest at most one level deeper than `MAX_LEVELS`.

    Each container on the first level that is too deep is replaced by `{}`. Anything that is not JSON, or that no API
    server sends, stays as it is, for the decoder to refuse.
    """
    try:
        return b"".join(_split_pieces(body, len(_LISTS[0]), bounded=True))
    except _TooMuchError:
        return body


class _TooMuchError(Exception):
    """The text has more levels or tokens than a review of an API server."""


def truncate_list(managed_fields: bytes) -> bytes:
    """Return one list of managedFields, truncated in the same way."""
    return b"".join(_split_pieces(managed_fields, 0))


def _split_pieces(text: bytes, base: int, *, bounded: bool = False) -> Iterator[bytes]:
    """`base` is the number of containers around a list of managedFields."""
    limit = base + MAX_LEVELS
    depth = kept_to = 0
    keys: list[bytes] = [b""] * base
    inside = base == 0
    for number, token in enumerate(_TOKEN.finditer(text)):
        if bounded and (depth > MAX_REVIEW_LEVELS or number > MAX_REVIEW_TOKENS):
            raise _TooMuchError
        start = token.start()
        first = text[start]
        if first == _QUOTE:
            # The last string before a value is its key; strings inside lists are overwritten in the same way.
            if 0 < depth <= base:
                keys[depth - 1] = token[0]
        elif first in _OPENING:
            if depth == base and base:
                inside = keys in _LISTS
            if depth == limit and inside:
                yield text[kept_to:start]
                yield b"{}"
            depth += 1
        else:
            depth -= 1
            if depth == limit and inside:
                kept_to = token.end()
    if not (inside and depth > limit):
        yield text[kept_to:]
