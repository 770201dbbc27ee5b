"""Labels and annotations that others than its holder put on a lease, and labels that they took away.

Tools that manage objects go by them. In: two states that follow each other, or what a patch asked for. Out: the latest
of these writes.
"""

from collections.abc import Iterator, Mapping, MutableSequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

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


class LabelChange(Struct, frozen=True, gc=False):
    """A write at `at` that set, changed or removed a label of a lease; a value is None if there is none.

    `before` is None, too, if it is not known. Without a `writer`, `manager` is the field manager that owns the label
    now, "" if that is not known either.
    """

    at: int
    key: str
    before: str | None
    after: str | None
    writer: Writer | None = None
    manager: str = ""
    is_dated: bool = True
    """False if the input does not say when: then it was at `at` or later."""


def add_label_change(changes: MutableSequence[LabelChange], change: LabelChange) -> None:
    """Add a change of a label; one that a log and a watch show is one change, by the writer that the log has."""
    number, last = next(
        ((number, one) for number, one in reversed([*enumerate(changes)]) if one.key == change.key), (0, None)
    )
    if last is None or last.after != change.after or (last.writer is None) == (change.writer is None):
        changes.append(change)
    elif change.writer is not None:
        changes[number] = replace(change, before=last.before)


def find_changed_labels(before: Lease, after: Lease) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield each label that differs, with its value before and after, None if it is not there."""
    old, new = before.metadata.labels or {}, after.metadata.labels or {}
    for key in dict.fromkeys((*old, *new)):
        if key not in old or key not in new or old[key] != new[key]:
            yield key, (old[key] or "") if key in old else None, (new[key] or "") if key in new else None


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
