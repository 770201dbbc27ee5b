"""`metadata.managedFields`: which manager owns which field, and when the API server last saw the field change.

The API server stamps `time` itself, in whole seconds, whatever the client claims in renewTime. Everything else in a
list may be a client's invention: see `webhook.rules.expiry` for what may be concluded.
"""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Raw, Struct, field

from webhook.api import micro_time, nesting

ANCIENT_CHANGES: Final = "ancient-changes"
"""The manager into which the API server folds the oldest Update entries once there are more than ten.

Source: kubernetes/apimachinery `pkg/util/managedfields/internal/capmanagers.go`.
"""

BEFORE_FIRST_APPLY: Final = "before-first-apply"
"""The manager of everything that was there when a server-side apply began to track an object."""

APPLY: Final = "Apply"

Key = tuple[str, str, str, str]
"""What distinguishes entries: manager, operation, apiVersion (of Update entries only) and subresource."""


class Entry(Struct, frozen=True, gc=False, rename="camel"):
    """One manager's entry; `time` is the text that the review carries, and may be absent."""

    manager: str | None = None
    operation: str | None = None
    api_version: str | None = None
    subresource: str | None = None
    time: str | None = None
    fields: dict[str, Any] | None = field(default=None, name="fieldsV1")

    @property
    def key(self) -> Key:
        """What distinguishes this entry from the others of a list."""
        operation = self.operation or ""
        version = "" if operation == APPLY else self.api_version or ""
        return (self.manager or "", operation, version, self.subresource or "")

    @property
    def stamp(self) -> int | None:
        """`time` in microseconds since 1970; None if it is absent, zero or unreadable."""
        return stamp_of(self.time)

    @property
    def is_fold(self) -> bool:
        """Whether the API server, or a client of that name, folds other entries into this one."""
        return self.manager == ANCIENT_CHANGES

    def owns(self, *path: str) -> bool:
        """Whether the field at `path`, such as ("f:spec", "f:renewTime"), is a member of the entry's set.

        It is a member if its value is `{}` or has the key `"."`; other keys are about what is below the field.
        Source: sigs.k8s.io/structured-merge-diff `fieldpath/serialize.go`.
        """
        return _is_member(self._below(*path))

    @property
    def owns_renew_time(self) -> bool:
        """Whether the manager owns `spec.renewTime`."""
        return self.owns("f:spec", "f:renewTime")

    def fields_with_owners_below(self) -> Iterator[str]:
        """Names of fields of spec below which the entry owns something, although each of them is a scalar."""
        spec = self._below("f:spec")
        for name, value in spec.items() if isinstance(spec, dict) else ():
            if value and isinstance(value, dict) and value.keys() - _SELF:
                yield name.removeprefix("f:")

    def members(self, *path: str) -> Iterator[str]:
        """Names of what the entry owns directly below `path`, with their prefix `f:`, `k:` or `v:`."""
        node = self._below(*path)
        for name, value in node.items() if isinstance(node, dict) else ():
            if _is_member(value):
                yield name

    def _below(self, *path: str) -> object:
        node: object = self.fields
        for step in path:
            node = node.get(step) if isinstance(node, dict) else None
        return node


_SELF: Final = frozenset({"."})


def _is_member(node: object) -> bool:
    return isinstance(node, dict) and (not node or "." in node)


MOST_ENTRIES: Final = 60_000
"""Entries of one list. A write of 3 MiB, in protobuf too, has fewer: each names its operation, apiVersion and type."""

_entries: Final[msgspec.json.Decoder[list[Entry]]] = msgspec.json.Decoder(
    Annotated[list[Entry], Meta(max_length=MOST_ENTRIES)]
)
_undecoded: Final = msgspec.json.Decoder(list[Raw])


def entries_of(managed_fields: Raw) -> list[Entry]:
    """The entries of an object; none if the list is broken or too long, which an API server never sends."""
    try:
        return _entries.decode(managed_fields)
    except (msgspec.ValidationError, UnicodeDecodeError):
        return []
    except RecursionError:
        return entries_of(Raw(nesting.cut_list(bytes(managed_fields))))


def count_of(managed_fields: Raw) -> int:
    """How many entries a list has, which are not decoded; 0 if it is not a list."""
    try:
        return len(_undecoded.decode(managed_fields))
    except (msgspec.DecodeError, RecursionError):
        return 0


def stamp_of(time: str | None) -> int | None:
    """A time of an entry in microseconds since 1970; None if it is absent, zero or unreadable."""
    if time is None:
        return None
    try:
        stamp = micro_time.parse_seconds(time)
    except ValueError:
        return None
    return None if stamp == micro_time.ZERO else stamp


def nest_too_deeply(entries: Iterable[Entry]) -> bool:
    """Whether the list nests deeper than `nesting.DEEPEST` levels, as it does still after it was cut."""
    # The list and the entry are the two levels around fieldsV1.
    return any(_levels(entry.fields) + 2 > nesting.DEEPEST for entry in entries if entry.fields)


_CONTAINERS: Final = (dict, list)


def _levels(fields: dict[str, Any]) -> int:
    level: list[Any] = [fields]
    levels = 0
    while level:
        levels += 1
        children = (child for node in level if node for child in (node.values() if isinstance(node, dict) else node))
        level = [child for child in children if isinstance(child, _CONTAINERS)]
    return levels
