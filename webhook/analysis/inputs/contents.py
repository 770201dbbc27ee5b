"""What inputs hold in which no lease was found, so that a command can say more than that."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

import msgspec
from msgspec import Struct

from webhook.analysis.inputs.documents import Document
from webhook.analysis.inputs.envelopes import AUDIT
from webhook.analysis.inputs.files import list_files, read_path
from webhook.analysis.inputs.items import NO_KIND
from webhook.kubernetes.request import KIND_OF

_OURS: Final = frozenset(KIND_OF.values())
MOST: Final = 10_000
"""Documents of each file that are counted."""


class Contents(Struct, frozen=True):
    """How many audit events there are by resource, and objects by kind; `empty` are files, `bare` directories."""

    events: Mapping[str, int]
    objects: Mapping[str, int]
    empty: Sequence[str]
    bare: Sequence[str]


def find_contents(paths: Sequence[str]) -> Contents:
    """Return what files and directories hold; standard input cannot be read again."""
    events, objects = Counter[str](), Counter[str]()
    empty, bare = [], []
    for path in paths:
        files = [one for one in list_files(path) if isinstance(one, str)]
        if not files:
            bare.append(path)
        for file in files:
            is_empty = True
            for value in islice(read_path(file), MOST):
                is_empty = False
                if not isinstance(value, Document):
                    continue
                if value.api_version.startswith(AUDIT):
                    events[_find_resource(value)] += 1
                else:
                    objects[_name_kind(value)] += 1
            if is_empty:
                empty.append(file)
    return Contents(events, objects, tuple(empty), tuple(bare))


def _name_kind(document: Document) -> str:
    """Return the kind of an object; of one of ours, which is of an unknown version, that too."""
    kind = document.kind or NO_KIND
    return f"{kind} of {document.api_version}" if kind in _OURS else kind


class _Reference(Struct, frozen=True):
    resource: str = ""


class _Event(Struct, frozen=True, rename="camel"):
    object_ref: _Reference = _Reference()


_event: Final = msgspec.json.Decoder(_Event)


def _find_resource(document: Document) -> str:
    try:
        return _event.decode(document.text).object_ref.resource or "no resource"
    except (ValueError, RecursionError):
        # It may be cut off, as a line of an API server is taken for an event by its beginning.
        return "no resource"
