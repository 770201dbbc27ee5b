"""What one write set (added or changed): the fields that its writer's entry, or a fold, owns afterwards.

A removed field has no owner, so it is not among them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from webhook.api.managed_fields import Entry
from webhook.api.objects import ObjectMeta, OwnerReference
from webhook.api.spec_fields import Fields

_SPEC: Final = ("f:spec",)
_METADATA: Final = ("f:metadata",)
_LABELS: Final = ("f:metadata", "f:labels")
_ANNOTATIONS: Final = ("f:metadata", "f:annotations")
_FINALIZERS: Final = ("f:metadata", "f:finalizers")
_OWNERS: Final = ("f:metadata", "f:ownerReferences")
_NOTHING: Final[frozenset[str]] = frozenset()


class SetFields(Struct, frozen=True):
    """What a write set; names are as managedFields spells them, with `f:`, values of finalizers and uids are bare."""

    spec: frozenset[str] = _NOTHING
    metadata: frozenset[str] = _NOTHING
    labels: frozenset[str] = _NOTHING
    annotations: frozenset[str] = _NOTHING
    finalizers: frozenset[str] = _NOTHING
    owners: frozenset[str] = _NOTHING

    def __bool__(self) -> bool:
        return any((self.spec, self.metadata, self.labels, self.annotations, self.finalizers, self.owners))

    def owners_among(self, entries: Iterable[Entry]) -> list[Entry]:
        """The entries that own something that this write set: its writer's, or a fold."""
        return [entry for entry in entries if self.any_owned_by(entry)]

    def any_owned_by(self, entry: Entry) -> bool:
        """Whether an entry owns something that this write set; the work is linear in the entry's size."""
        if not entry.fields:
            return False
        # Most writes set fields of spec only, and a list may have many entries: each test for emptiness saves a walk.
        return (
            (bool(self.spec) and not self.spec.isdisjoint(entry.members(*_SPEC)))
            or (bool(self.labels) and not self.labels.isdisjoint(entry.members(*_LABELS)))
            or (bool(self.annotations) and not self.annotations.isdisjoint(entry.members(*_ANNOTATIONS)))
            or (bool(self.metadata) and not self.metadata.isdisjoint(entry.members(*_METADATA)))
            or (bool(self.finalizers) and not self.finalizers.isdisjoint(_values(entry.members(*_FINALIZERS))))
            or (bool(self.owners) and not self.owners.isdisjoint(_uids(entry.members(*_OWNERS))))
        )


def set_fields(new_spec: Fields, old_spec: Fields, new: ObjectMeta, old: ObjectMeta) -> SetFields:
    """What a write set; a spec is a JSON object as the review carries it."""
    renamed = new.generate_name is not None and new.generate_name != old.generate_name
    return SetFields(
        spec=_set(new_spec, old_spec),
        metadata=frozenset({"f:generateName"}) if renamed else _NOTHING,
        labels=_set(new.labels or {}, old.labels or {}),
        annotations=_set(new.annotations or {}, old.annotations or {}),
        finalizers=frozenset(_texts(new.finalizers)) - frozenset(_texts(old.finalizers)),
        owners=frozenset(_changed_owners(new, old)),
    )


def _set(new: Mapping[str, object], old: Mapping[str, object]) -> frozenset[str]:
    return frozenset(f"f:{name}" for name, value in new.items() if name not in old or old[name] != value)


def _changed_owners(new: ObjectMeta, old: ObjectMeta) -> Iterator[str]:
    """Uids whose references are not exactly those of before: an item is atomic, and several may bear one uid."""
    before, after = _by_uid(old.owner_references), _by_uid(new.owner_references)
    return (uid for uid, references in after.items() if references != before.get(uid))


def _by_uid(references: Iterable[OwnerReference | None] | None) -> dict[str, list[OwnerReference]]:
    by_uid: dict[str, list[OwnerReference]] = {}
    for reference in references or ():
        if reference is not None:
            by_uid.setdefault(reference.uid or "", []).append(reference)
    return by_uid


def _texts(items: Iterable[str | None] | None) -> Iterator[str]:
    return (item or "" for item in items or ())


def _values(members: Iterable[str]) -> Iterator[str]:
    """The values of `v:"value"`, the members of a set."""
    for member in members:
        value = _decoded(member, "v:")
        if isinstance(value, str):
            yield value


def _uids(members: Iterable[str]) -> Iterator[str]:
    """The uids of `k:{"uid":"value"}`, the members of a list that is keyed by uid.

    A key with anything besides the uid, even the uid again, is not the key of an item: a client can invent one, and no
    write ever takes it away from its owner.
    """
    for member in members:
        key = _decoded(member, "k:")
        # Pairs of an object are a tuple, so a list of lists is not taken for one.
        if isinstance(key, tuple) and len(key) == 1 and key[0][0] == "uid" and isinstance(key[0][1], str):
            yield key[0][1]


def _decoded(member: str, prefix: str) -> object:
    """The JSON behind a prefix, an object as the tuple of its pairs; None for anything else."""
    if not member.startswith(prefix):
        return None
    try:
        value: object = json.loads(member.removeprefix(prefix), object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        return None
    return value
