"""What a patch that a log shows changed, and left as it was: the log has what was asked, and not what was stored."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from webhook.kubernetes.objects import LeaseSpec, OwnerReference

_MARKS: Final = frozenset({"annotations", "labels"})
_PARTS: Final = _MARKS | {"ownerReferences"}
"""Parts of the metadata that delete nothing, unlike the removal of the last finalizer: what collects garbage does so
by a request of its own."""
_NAMES: Final = frozenset({"name", "namespace", "uid", "resourceVersion"})
"""Parts of the metadata that no write changes."""
_PATHS: Final = tuple(f"/metadata/{part}" for part in sorted(_PARTS))
_FIELDS: Final = frozenset(LeaseSpec.__struct_encode_fields__)
_ELECTION: Final = frozenset({"holderIdentity", "renewTime"})
_GATED: Final = ("preferredHolder", "strategy")
"""Fields that an API server drops without a word unless it takes part in coordinated elections."""

SpecChanges = Mapping[str, object]
"""What a patch sets of a spec, by field; None is set where it removes one."""


class Mark(Struct, frozen=True, gc=False):
    """A label or an annotation with its value; None where a patch removes it."""

    kind: str
    key: str
    value: str | None


class SentPatch(Struct, frozen=True, gc=False):
    """What a patch of a lease asks of the API server, whatever was stored."""

    names_holder: bool
    """It sets the holder, to none also; else it leaves whoever is there."""
    has_precondition: bool
    """It names the resourceVersion that it changes, or tests what is stored: else it is stored whatever was written."""


def read_sent_patch(patch: bytes) -> SentPatch | None:
    """Return what a patch asks for; None if that is not sure."""
    asked = _decode(patch)
    changes = _read_changes(asked)
    if changes is None:
        return None
    if isinstance(asked, list):
        has_precondition = any(_get_text(one, "op") == "test" for one in asked)
    else:
        has_precondition = isinstance(asked, dict) and "resourceVersion" in asked.get("metadata", {})
    return SentPatch("holderIdentity" in changes, has_precondition)


def list_marks(patch: bytes) -> tuple[Mark, ...]:
    """Return the labels and annotations that a patch sets, or removes, which leaves the spec as it is."""
    asked = msgspec.json.decode(patch)
    if isinstance(asked, list):
        return tuple(_list_marks_of_operations(asked))
    parts = ((part, asked["metadata"].get(part)) for part in sorted(_MARKS))
    pairs = ((part, key, value) for part, values in parts if isinstance(values, dict) for key, value in values.items())
    marks = (Mark(part.removesuffix("s"), key, value) for part, key, value in pairs if isinstance(value, str | None))
    return tuple(marks)


def list_owners_of_patch(patch: bytes) -> tuple[OwnerReference, ...]:
    """Return the owners that a merge patch sets which leaves the spec as it is; others may remain beside them."""
    asked = msgspec.json.decode(patch)
    found = asked["metadata"].get("ownerReferences") if isinstance(asked, dict) else None
    try:
        set_by_it = [one for one in found or () if not (isinstance(one, dict) and "$patch" in one)]
        return tuple(msgspec.convert(set_by_it, list[OwnerReference]))
    except (msgspec.ValidationError, TypeError):
        return ()


def _list_marks_of_operations(operations: list[dict[str, object]]) -> Iterator[Mark]:
    for operation in operations:
        _, _, part, key, *_ = [*_get_text(operation, "path").split("/", 3), "", "", ""]
        op, value = _get_text(operation, "op"), operation.get("value")
        if part not in _MARKS or not key:
            continue
        mark = Mark(part.removesuffix("s"), key.replace("~1", "/").replace("~0", "~"), None)
        if op in {"add", "replace"} and isinstance(value, str):
            yield replace(mark, value=value)
        elif op == "remove":
            yield mark


def _get_text(operation: Mapping[str, object], key: str) -> str:
    """Return a text of an operation, "" if it is none: a client may send any JSON, and lists are no keys of a set."""
    value = operation.get(key)
    return value if isinstance(value, str) else ""


def leaves_spec(patch: bytes) -> bool:
    """Return whether a patch changes annotations, labels and owners alone; False if that is not known.

    An apply has `kind`, and takes away what its field manager had applied before and leaves out now.
    """
    if b'"metadata"' not in patch and b"/metadata/" not in patch:
        return False
    try:
        asked = msgspec.json.decode(patch)
    except (ValueError, RecursionError):
        return False  # anything may be sent to a server that refuses it
    if isinstance(asked, list):
        return bool(asked) and all(map(_is_beside_spec, asked))
    metadata = asked.get("metadata") if isinstance(asked, dict) and asked.keys() == {"metadata"} else None
    return isinstance(metadata, dict) and bool(_PARTS & metadata.keys()) and metadata.keys() <= _PARTS | _NAMES


def _is_beside_spec(operation: object) -> bool:
    """Return whether an operation of a JSON patch changes an annotation, a label or an owner alone, or tests."""
    if not isinstance(operation, dict):
        return False
    if operation.get("op") == "test":
        return True
    paths = [operation.get("path"), *([operation["from"]] if "from" in operation else [])]
    return all(isinstance(path, str) and _is_below(path) for path in paths)


def _is_below(path: str) -> bool:
    return any(path == one or path.startswith(f"{one}/") for one in _PATHS)


def find_stored_changes(asked: SpecChanges | None) -> SpecChanges | None:
    """Return what a patch stored of what it asked to set: all, or None if an API server may have dropped a field."""
    return None if asked is None or is_gated(asked) else asked


def leaves_election(changes: SpecChanges | None) -> bool:
    """Return whether a patch is known to have left the holder and its renewal as they were."""
    return changes is not None and not _ELECTION & changes.keys()


def is_gated(changes: SpecChanges) -> bool:
    """Return whether changes set a field that an API server may drop without a word."""
    return any(changes.get(one) is not None for one in _GATED)


def read_asked_changes(patch: bytes) -> SpecChanges | None:
    """Return the fields of a lease's spec that a patch asked to set, None for a removed one; None if that is not sure.

    An apply has `kind`, and takes away what its field manager had applied before and leaves out now. With a finalizer
    a lease may go.
    """
    return _read_changes(_decode(patch))


def _decode(patch: bytes) -> object:
    """Return what a patch has as JSON; None if it has none that can be read."""
    try:
        return msgspec.json.decode(patch)
    except (ValueError, RecursionError):
        return None


def _read_changes(asked: object) -> SpecChanges | None:
    if isinstance(asked, list):
        return _read_operations(asked)
    if not isinstance(asked, dict) or not asked.keys() <= {"metadata", "spec"}:
        return None
    metadata, spec = asked.get("metadata", {}), asked.get("spec")
    is_plain = isinstance(metadata, dict) and metadata.keys() <= _PARTS | _NAMES
    return spec if is_plain and isinstance(spec, dict) and spec.keys() <= _FIELDS else None


def _read_operations(operations: list[object]) -> SpecChanges | None:
    changes: dict[str, object] = {}
    for operation in operations:
        if _is_beside_spec(operation):
            continue
        if not isinstance(operation, dict):
            return None
        before, _, field = _get_text(operation, "path").partition("/spec/")
        op = _get_text(operation, "op")
        if before or field not in _FIELDS or op not in {"add", "replace", "remove"}:
            return None
        changes[field] = operation.get("value") if op != "remove" else None
    return changes


def patch_spec(before: LeaseSpec, changes: SpecChanges) -> LeaseSpec | None:
    """Return the spec as a patch left it; None if a value has a wrong type."""
    try:
        return msgspec.convert({**msgspec.to_builtins(before), **changes}, LeaseSpec)
    except msgspec.ValidationError:
        return None
