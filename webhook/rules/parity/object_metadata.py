"""Metadata: what may not change, and what every object must satisfy.

Both rules follow kubernetes/apiserver `pkg/registry/rest/update.go` and kubernetes/apimachinery
`pkg/api/validation/objectmeta.go`: before it validates an update, the API server keeps the old generation, any time
that the old object has, and a uid or grace period that the new one leaves out. A bare manifest is validated as if that
had happened. managedFields are not validated here: broken ones must not stop a renewal.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Final

from webhook.api import formats, micro_time
from webhook.api.field import FieldError, each_invalid, forbidden, immutable, invalid, too_long
from webhook.api.go_time import TimeError
from webhook.api.objects import ObjectMeta, OwnerReference
from webhook.api.request import Operation
from webhook.api.text import quote
from webhook.rules.change import Change
from webhook.rules.finding import MOST_FINDINGS, NOTHING, Finding, first_findings
from webhook.rules.object_names import NAME, NAMESPACE, wrong_names, wrong_namespace
from webhook.rules.rule import BOTH, UPDATE, WRITES, Rule

CREATION_TIMESTAMP: Final = "metadata.creationTimestamp"
DELETION_TIMESTAMP: Final = "metadata.deletionTimestamp"
GENERATION: Final = "metadata.generation"
GRACE_PERIOD: Final = "metadata.deletionGracePeriodSeconds"
RESOURCE_VERSION: Final = "metadata.resourceVersion"
LABELS: Final = "metadata.labels"
ANNOTATIONS: Final = "metadata.annotations"
OWNERS: Final = "metadata.ownerReferences"
FINALIZERS: Final = "metadata.finalizers"

LARGEST_ANNOTATIONS: Final = 256 * 1024
"""Bytes of all keys and values of metadata.annotations together."""

MOST_ITEMS: Final = 100_000
"""Labels, finalizers and owners that are looked at; an API server has looked at all of them before it calls us."""

_NO_TIME: Final = frozenset({None, micro_time.ZERO})
_DELETION_FINALIZERS: Final = frozenset({"orphan", "foregroundDeletion"})


def metadata_is_kept(change: Change) -> Iterable[Finding]:
    """metadata.name, namespace, uid, creationTimestamp and deletionTimestamp may not change."""
    new, old = change.new_metadata, change.old_metadata
    if (
        new.name == old.name
        and new.namespace == old.namespace
        and new.uid == old.uid
        and new.creation_timestamp == old.creation_timestamp
        and new.deletion_timestamp == old.deletion_timestamp
    ):
        return NOTHING
    return tuple(Finding(error) for error in _changed(change, new, old))


def _changed(change: Change, new: ObjectMeta, old: ObjectMeta) -> Iterator[FieldError]:
    if (new.name or "") != (old.name or ""):
        yield immutable(NAME, new.name or "")
    if (new.namespace or change.request.namespace) != (old.namespace or ""):
        yield immutable(NAMESPACE, new.namespace or change.request.namespace)
    if new.uid and new.uid != (old.uid or ""):
        yield immutable("metadata.uid", new.uid)
    # A time of the old object is kept, whatever the new one says; only one that it lacks can be set.
    if _instant(old.creation_timestamp) in _NO_TIME and _instant(new.creation_timestamp) not in _NO_TIME:
        yield immutable(CREATION_TIMESTAMP, new.creation_timestamp)
    deleted = _instant(old.deletion_timestamp)
    # Upstream distinguishes null from the zero time: the one is a nil pointer, the other points to a time.
    if deleted in _NO_TIME and _instant(new.deletion_timestamp) != deleted:
        yield immutable(DELETION_TIMESTAMP, new.deletion_timestamp)


def _instant(text: str | None) -> int | str | None:
    try:
        return None if text is None else micro_time.parse_seconds(text)
    except TimeError:
        return text


def metadata_is_well_formed(change: Change) -> Iterable[Finding]:
    """Metadata must satisfy the API server's rules for versions, labels, annotations, owners and finalizers."""
    new, old = change.new_metadata, change.old_metadata
    is_update = change.request.operation is Operation.UPDATE
    found: list[FieldError] = []
    if is_update:
        namespace = new.namespace or change.request.namespace
        if _is_odd(new, namespace):
            found += _wrong_on_update(new, old, namespace)
    generation = old.generation if is_update else new.generation
    if generation is not None and generation < 0:
        found.append(invalid(GENERATION, generation, "must be greater than or equal to 0"))
    if new.creation_timestamp != old.creation_timestamp or new.deletion_timestamp != old.deletion_timestamp:
        found += _unreadable_times(new)
    if new.labels:
        found += islice(_wrong_labels(new.labels), MOST_FINDINGS)
    if new.annotations:
        found += islice(_wrong_annotations(new.annotations), MOST_FINDINGS)
    if new.owner_references:
        found += islice(_wrong_owners(new.owner_references), MOST_FINDINGS)
    if new.finalizers:
        found += islice(_wrong_finalizers(new.finalizers, old), MOST_FINDINGS)
    return first_findings(found) if found else NOTHING


def _is_odd(metadata: ObjectMeta, namespace: str) -> bool:
    """Whether `_wrong_on_update` may find something; a renewal is hardly ever odd."""
    name = metadata.name
    return not (
        name
        and metadata.resource_version
        and metadata.generate_name is None
        and metadata.deletion_grace_period_seconds is None
        and not formats.path_segment(name)
        and not formats.dns_label(namespace)
    )


def _wrong_on_update(new: ObjectMeta, old: ObjectMeta, namespace: str) -> Iterator[FieldError]:
    name, base, seconds = new.name or "", new.generate_name or "", new.deletion_grace_period_seconds
    # The rule of the kind is for new names alone; an old one must still fit into a path.
    yield from wrong_names(name, base, formats.path_segment, formats.path_segment_prefix)
    yield from wrong_namespace(namespace)
    if not new.resource_version:
        yield invalid(RESOURCE_VERSION, "", "must be specified for an update")
    if seconds is not None and seconds != old.deletion_grace_period_seconds:
        yield immutable(GRACE_PERIOD, seconds)


def _unreadable_times(metadata: ObjectMeta) -> Iterator[FieldError]:
    for field, text in (
        (CREATION_TIMESTAMP, metadata.creation_timestamp),
        (DELETION_TIMESTAMP, metadata.deletion_timestamp),
    ):
        if text is not None:
            try:
                micro_time.parse_seconds(text)
            except TimeError as error:
                yield invalid(field, text, str(error))


def _wrong_labels(labels: dict[str, str | None]) -> Iterator[FieldError]:
    for key, value in islice(labels.items(), MOST_ITEMS):
        if wrong := formats.qualified_name(key):
            yield from each_invalid(LABELS, key, wrong)
        if value and (wrong := formats.label_value(value)):
            yield from each_invalid(LABELS, value, wrong)


def _wrong_annotations(annotations: dict[str, str | None]) -> Iterator[FieldError]:
    size = 0
    for key, value in annotations.items():
        size += formats.byte_length(key) + formats.byte_length(value or "")
        if size > LARGEST_ANNOTATIONS:
            break
        if wrong := formats.annotation_key(key):
            yield from each_invalid(ANNOTATIONS, key, wrong)
    if size > LARGEST_ANNOTATIONS:
        yield too_long(ANNOTATIONS, f"may not be more than {LARGEST_ANNOTATIONS} bytes")


def _wrong_owners(owners: list[OwnerReference | None]) -> Iterator[FieldError]:
    controller = ""
    for owner in (owner or OwnerReference() for owner in islice(owners, MOST_ITEMS)):
        if not (owner.kind and owner.name and owner.uid) or owner.api_version != "v1" or owner.kind == "Event":
            yield from _wrong_owner(owner)
        if owner.controller:
            name = f"{owner.kind or ''}/{owner.name or ''}"
            if controller:
                detail = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {controller} and {name}'
                )
                yield invalid(OWNERS, name, detail)
            controller = controller or name


def _wrong_owner(owner: OwnerReference) -> Iterator[FieldError]:
    group, version = _group_and_version(owner.api_version or "")
    if not version:
        yield invalid(f"{OWNERS}.apiVersion", owner.api_version or "", "version must not be empty")
    for key, value in (("kind", owner.kind), ("name", owner.name), ("uid", owner.uid)):
        if not value:
            yield invalid(f"{OWNERS}.{key}", "", "must not be empty")
    if (group, version, owner.kind) == ("", "v1", "Event"):
        yield invalid(OWNERS, f"Event/{owner.name or ''}", "/v1, Kind=Event is disallowed from being an owner")


def _group_and_version(api_version: str) -> tuple[str, str]:
    """As schema.ParseGroupVersion: a text with two slashes names nothing."""
    group, slash, version = api_version.partition("/")
    if not slash:
        return "", api_version
    return ("", "") if "/" in version else (group, version)


def _wrong_finalizers(finalizers: list[str | None], old: ObjectMeta) -> Iterator[FieldError]:
    names = [name or "" for name in finalizers]
    for name in names[:MOST_ITEMS]:
        if wrong := formats.qualified_name(name):
            yield from each_invalid(FINALIZERS, name, wrong)
    if _DELETION_FINALIZERS.issubset(names):
        yield invalid(FINALIZERS, names, "finalizer orphan and foregroundDeletion cannot be both set")
    if old.deletion_timestamp is not None:
        added = sorted(set(names) - {name or "" for name in old.finalizers or ()})
        if added:
            shown = ", ".join(quote(name) for name in added[:MOST_FINDINGS])
            detail = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{shown}}}"
            )
            yield forbidden(FINALIZERS, detail)


_rule = partial(
    Rule,
    resources=BOTH,
    source="kubernetes/apimachinery pkg/api/validation/objectmeta.go, ValidateObjectMetaUpdate",
    parity=True,
)
RULES: Final = (
    _rule("metadata-immutable", metadata_is_kept, operations=UPDATE),
    _rule("object-metadata", metadata_is_well_formed, operations=WRITES),
)
