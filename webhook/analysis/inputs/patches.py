"""What a patch that a log shows left as it was: the log has what was asked, and not what was stored."""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

_PARTS: Final = frozenset({"annotations", "labels"})
"""Parts of the metadata that delete nothing, unlike the removal of the last finalizer."""
_NAMES: Final = frozenset({"name", "namespace", "uid", "resourceVersion"})
"""Parts of the metadata that no write changes."""
_PATHS: Final = tuple(f"/metadata/{part}" for part in sorted(_PARTS))


class Mark(Struct, frozen=True, gc=False):
    """A label or an annotation with its value."""

    kind: str
    key: str
    value: str


def list_marks(patch: bytes) -> tuple[Mark, ...]:
    """Return the labels and annotations that a patch sets which leaves the spec as it is."""
    asked = msgspec.json.decode(patch)
    if isinstance(asked, list):
        return tuple(_list_marks_of_operations(asked))
    parts = ((part, asked["metadata"].get(part)) for part in sorted(_PARTS))
    pairs = ((part, key, value) for part, values in parts if isinstance(values, dict) for key, value in values.items())
    return tuple(Mark(part.removesuffix("s"), key, value) for part, key, value in pairs if isinstance(value, str))


def _list_marks_of_operations(operations: list[dict[str, object]]) -> Iterator[Mark]:
    for one in operations:
        _, _, part, *rest = [*str(one.get("path")).split("/", 3), "", ""][:4]
        value = one.get("value")
        if one.get("op") in {"add", "replace"} and part in _PARTS and rest[0] and isinstance(value, str):
            yield Mark(part.removesuffix("s"), rest[0].replace("~1", "/").replace("~0", "~"), value)


def leaves_spec(patch: bytes) -> bool:
    """Return whether a patch changes annotations and labels alone; False if that is not known.

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
    """Return whether an operation of a JSON patch changes an annotation or a label alone, or tests something."""
    if not isinstance(operation, dict):
        return False
    if operation.get("op") == "test":
        return True
    paths = [operation.get("path"), *([operation["from"]] if "from" in operation else [])]
    return all(isinstance(path, str) and _is_below(path) for path in paths)


def _is_below(path: str) -> bool:
    return any(path == one or path.startswith(f"{one}/") for one in _PATHS)
