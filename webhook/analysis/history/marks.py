"""Labels and annotations that others than its holder put on a lease: tools that manage objects go by them.

In: two states that follow each other, or what a patch asked for. Out: the latest of these writes.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from webhook.analysis.inputs.items import Writer
from webhook.analysis.inputs.patches import Mark
from webhook.kubernetes.objects import Lease

MAX_MARKS: Final = 100


class MarkedLease(Struct, frozen=True, gc=False):
    """A write at `at` that put a label or an annotation on a lease; None if the input does not show who wrote it."""

    at: int
    mark: Mark
    writer: Writer | None = None
    is_dated: bool = True
    """False if the input does not say when: then it was at `at` or later."""


def find_marks(before: Lease, after: Lease, *, is_by_other: bool) -> Iterator[Mark]:
    """Yield the labels and annotations that are new, or have another value.

    Holders keep notes in annotations: unless something shows, or hints, that another one wrote, only labels count.
    """
    old, new = before.metadata, after.metadata
    yield from _compare("label", old.labels, new.labels)
    if is_by_other:
        yield from _compare("annotation", old.annotations, new.annotations)


def _compare(
    kind: str, before: Mapping[str, str | None] | None, after: Mapping[str, str | None] | None
) -> Iterator[Mark]:
    known = before or {}
    for key, value in (after or {}).items():
        if known.get(key) != value:
            yield Mark(kind, key, value or "")
