"""Metadata: what may not change, and what every object must satisfy.

Both rules follow kubernetes/apiserver `pkg/registry/rest/update.go` and kubernetes/apimachinery
`pkg/api/validation/objectmeta.go`: before it validates an update, the API server keeps the old generation, any time
that the old object has, and a uid or grace period that the new one leaves out. A bare manifest is validated as if that
had happened. managedFields are not validated here: broken ones must not stop a renewal.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from webhook.admission.rules.answer_limits import MAX_FINDINGS
from webhook.admission.rules.change import Change, Condition
from webhook.admission.rules.finding import NO_FINDINGS, Finding, take_first_findings
from webhook.admission.rules.occasions import ANY_OPERATION, BOTH, CREATE, UPDATE, WRITES
from webhook.admission.rules.rule import make_parity_rule
from webhook.admission.rules.texts import Texts
from webhook.kubernetes import formats, times
from webhook.kubernetes.field import (
    FieldError,
    each_invalid,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
    too_long,
)
from webhook.kubernetes.formats import VALID, Format, count_bytes
from webhook.kubernetes.objects import ObjectMeta, OwnerReference
from webhook.kubernetes.request import NO_OPTIONS, AdmissionRequest, Operation, Options, Resource
from webhook.text.quoting import quote

NAME: Final = "metadata.name"
GENERATE_NAME: Final = "metadata.generateName"
NAMESPACE: Final = "metadata.namespace"


def list_name_errors(name: str, base: str, form: Format, form_of_base: Format) -> Iterator[FieldError]:
    """Yield what is wrong with a name and with the generateName beside it."""
    if base and (wrong := form_of_base(base)):
        yield from each_invalid(GENERATE_NAME, base, wrong)
    if name:
        if wrong := form(name):
            yield from each_invalid(NAME, name, wrong)
    else:
        yield required(NAME, "name or generateName is required")


def list_namespace_errors(namespace: str) -> Iterator[FieldError]:
    """Yield what is wrong with a namespace; both resources live in one."""
    if namespace:
        if wrong := formats.dns_label(namespace):
            yield from each_invalid(NAMESPACE, namespace, wrong)
    else:
        yield required(NAMESPACE)


SUFFIX: Final = "xxxxx"
"""Stands for the five random characters of a generated name if no API server has generated them yet."""

MAX_BASE: Final = 58
"""Bytes of generateName that the API server keeps (k8s.io/apiserver `pkg/storage/names/generate.go`)."""

_FORMS: Final[dict[str, tuple[Format, Format]]] = {
    Resource.LEASES: (formats.dns_subdomain, formats.dns_subdomain_prefix),
    Resource.LEASECANDIDATES: (formats.config_map_key, formats.config_map_key),
}


def object_name(change: Change) -> Iterable[Finding]:
    """metadata.name must be a valid name of its kind and metadata.namespace must be set."""
    metadata = change.new_metadata
    name, base = metadata.name or "", metadata.generate_name or ""
    form, form_of_base = _FORMS[change.request.resource]
    namespace = metadata.namespace or change.request.namespace
    if name and not base and namespace and not (form(name) or formats.dns_label(namespace)):
        return NO_FINDINGS
    wrong = *list_name_errors(name or generate_name(base), base, form, form_of_base), *list_namespace_errors(namespace)
    return tuple(map(Finding, wrong))


OBJECT_NAME: Final = make_parity_rule(
    check=object_name,
    resources=BOTH,
    operations=CREATE,
    texts=Texts(
        source="kubernetes/apimachinery pkg/api/validation/objectmeta.go, ValidateObjectMeta",
        why="Electors agree on a lease by its name, and a candidate's name becomes the holder of its lease. An object "
        "with another name is never stored, so its election never begins.",
        who="Manifests with capitals or underscores in the name of a Lease, or without a namespace.",
        fix="Use lowercase letters, digits, `-` and `.`; a LeaseCandidate may also have capitals and `_`. Set a "
        "namespace.",
    ),
    reads=("metadata.name", "metadata.generateName", "metadata.namespace"),
)


def generate_name(base: str) -> str:
    """Return the name that the API server would make of a generateName, or "" without one."""
    return base.encode(errors="replace")[:MAX_BASE].decode(errors="replace") + SUFFIX if base else ""


CREATION_TIMESTAMP: Final = "metadata.creationTimestamp"
DELETION_TIMESTAMP: Final = "metadata.deletionTimestamp"
GENERATION: Final = "metadata.generation"
GRACE_PERIOD: Final = "metadata.deletionGracePeriodSeconds"
RESOURCE_VERSION: Final = "metadata.resourceVersion"
LABELS: Final = "metadata.labels"
ANNOTATIONS: Final = "metadata.annotations"
OWNERS: Final = "metadata.ownerReferences"
FINALIZERS: Final = "metadata.finalizers"

MAX_ANNOTATIONS: Final = 256 * 1024
"""Bytes of all keys and values of metadata.annotations together."""

MAX_ITEMS: Final = 100_000
"""Labels, finalizers and owners that are looked at; an API server has looked at all of them before it calls us."""

_NO_TIME: Final = frozenset({None, times.ZERO})
_DELETION_FINALIZERS: Final = frozenset({"orphan", "foregroundDeletion"})


def object_types(request: AdmissionRequest) -> Iterable[Finding]:
    """Every value must have the JSON type that the API says.

    If one has not, no other rule is evaluated.
    """
    return take_first_findings(request.object_errors)


OBJECT_TYPES: Final = make_parity_rule(
    check=object_types,
    resources=BOTH,
    operations=ANY_OPERATION,
    texts=Texts(
        source="kubernetes/apimachinery pkg/runtime: the API server's own decoder",
        why="A value of the wrong type cannot be decoded; a client that reads such an object fails.",
        who='Manifests with a quoted number (`leaseDurationSeconds: "15"`) or an unquoted string (`leaseName: 1`).',
        fix="Write the type that the message names. The webhook reports every wrong value at once.",
    ),
    reads=(),
)


def metadata_immutable(change: Change) -> Iterable[Finding]:
    """metadata.name, namespace, uid, creationTimestamp and deletionTimestamp may not change."""
    new, old = change.new_metadata, change.old_metadata
    if (
        new.name == old.name
        and new.namespace == old.namespace
        and new.uid == old.uid
        and new.creation_timestamp == old.creation_timestamp
        and new.deletion_timestamp == old.deletion_timestamp
    ):
        return NO_FINDINGS
    return tuple(Finding(error) for error in _check_changes(change, new, old))


METADATA_IMMUTABLE: Final = make_parity_rule(
    check=metadata_immutable,
    resources=BOTH,
    operations=UPDATE,
    texts=Texts(
        source="kubernetes/apimachinery pkg/api/validation/objectmeta.go, ValidateObjectMetaUpdate",
        why="Namespace, name and uid say which object it is. A client that writes them otherwise has mistaken one "
        "object for another, and would renew or take a lease that it does not know.",
        who="`check --old` with two manifests of different objects, and restored copies with an old uid.",
        fix="Start from the stored object (`kubectl get -o yaml`), or delete the object and create it.",
    ),
    reads=(
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "metadata.creationTimestamp",
        "metadata.deletionTimestamp",
    ),
)


def _check_changes(change: Change, new: ObjectMeta, old: ObjectMeta) -> Iterator[FieldError]:
    if (new.name or "") != (old.name or ""):
        yield immutable(NAME, new.name or "")
    if (new.namespace or change.request.namespace) != (old.namespace or ""):
        yield immutable(NAMESPACE, new.namespace or change.request.namespace)
    if new.uid and new.uid != (old.uid or ""):
        yield immutable("metadata.uid", new.uid)
    # A time of the old object is kept, whatever the new one says; only one that it lacks can be set.
    if _read_instant(old.creation_timestamp) in _NO_TIME and _read_instant(new.creation_timestamp) not in _NO_TIME:
        yield immutable(CREATION_TIMESTAMP, new.creation_timestamp)
    deleted = _read_instant(old.deletion_timestamp)
    # Upstream distinguishes null from the zero time: the one is a nil pointer, the other points to a time.
    if deleted in _NO_TIME and _read_instant(new.deletion_timestamp) != deleted:
        yield immutable(DELETION_TIMESTAMP, new.deletion_timestamp)


def _read_instant(text: str | None) -> int | str | None:
    try:
        return None if text is None else times.parse_seconds(text)
    except ValueError:
        return text


def object_metadata(change: Change) -> Iterable[Finding]:
    """Metadata must satisfy the API server's rules for versions, labels, annotations, owners and finalizers."""
    new, old = change.new_metadata, change.old_metadata
    is_update = change.request.operation is Operation.UPDATE
    found: list[FieldError] = []
    if is_update and not _is_usual_update(new):
        found += _list_update_errors(new, old, new.namespace or change.request.namespace)
    generation = old.generation if is_update else new.generation
    if generation is not None and generation < 0:
        found.append(invalid(GENERATION, generation, "must be greater than or equal to 0"))
    if new.creation_timestamp != old.creation_timestamp or new.deletion_timestamp != old.deletion_timestamp:
        found += _list_time_errors(new)
    if new.labels:
        found += islice(_list_label_errors(new.labels), MAX_FINDINGS)
    if new.annotations:
        found += islice(_list_annotation_errors(new.annotations), MAX_FINDINGS)
    if new.owner_references:
        found += islice(_list_owner_errors(new.owner_references), MAX_FINDINGS)
    if new.finalizers:
        found += islice(_list_finalizer_errors(new.finalizers, old), MAX_FINDINGS)
    return take_first_findings(found) if found else NO_FINDINGS


OBJECT_METADATA: Final = make_parity_rule(
    check=object_metadata,
    resources=BOTH,
    operations=WRITES,
    texts=Texts(
        source="kubernetes/apimachinery pkg/api/validation/objectmeta.go, ValidateObjectMetaUpdate",
        why="An update with the resourceVersion that its client has read is how one of two electors loses: without "
        "it, a write would replace what another one wrote in between. Owners and finalizers decide when the object is "
        "deleted.",
        who="Manifests with a label or annotation that is too long, or an owner without a uid.",
        fix="Correct the field that the message names. An update must carry the stored `resourceVersion`.",
    ),
    reads=(
        "metadata.resourceVersion",
        "metadata.labels",
        "metadata.annotations",
        "metadata.finalizers",
        "metadata.ownerReferences",
    ),
)


def _is_usual_update(new: ObjectMeta) -> bool:
    """True if `_list_update_errors` would find nothing, which takes longer to say so."""
    if not new.name or not new.namespace or not new.resource_version:
        return False
    if new.generate_name or new.deletion_grace_period_seconds is not None:
        return False
    return formats.path_segment(new.name) is VALID and formats.dns_label(new.namespace) is VALID


def _list_update_errors(new: ObjectMeta, old: ObjectMeta, namespace: str) -> Iterator[FieldError]:
    name, base, seconds = new.name or "", new.generate_name or "", new.deletion_grace_period_seconds
    # The rule of the kind is for new names alone; an old one must still fit into a path.
    yield from list_name_errors(name, base, formats.path_segment, formats.path_segment_prefix)
    yield from list_namespace_errors(namespace)
    if not new.resource_version:
        yield invalid(RESOURCE_VERSION, "", "must be specified for an update")
    if seconds is not None and seconds != old.deletion_grace_period_seconds:
        yield immutable(GRACE_PERIOD, seconds)


def _list_time_errors(metadata: ObjectMeta) -> Iterator[FieldError]:
    for field, text in (
        (CREATION_TIMESTAMP, metadata.creation_timestamp),
        (DELETION_TIMESTAMP, metadata.deletion_timestamp),
    ):
        if text is not None and times.parse_stamp(text) is None and isinstance(_read_instant(text), str):
            yield invalid(field, text, 'must be a time such as "2026-01-31T12:00:00Z"')


def _list_label_errors(labels: dict[str, str | None]) -> Iterator[FieldError]:
    # In one order, whatever the order in the review is: API servers send them sorted.
    for key in islice(sorted(labels), MAX_ITEMS):
        value = labels[key]
        if wrong := formats.qualified_name(key):
            yield from each_invalid(LABELS, key, wrong)
        if value and (wrong := formats.label_value(value)):
            yield from each_invalid(LABELS, value, wrong)


def _list_annotation_errors(annotations: dict[str, str | None]) -> Iterator[FieldError]:
    size = 0
    for key in sorted(annotations):
        value = annotations[key]
        size += formats.count_bytes(key) + formats.count_bytes(value or "")
        if size > MAX_ANNOTATIONS:
            break
        if wrong := formats.annotation_key(key):
            yield from each_invalid(ANNOTATIONS, key, wrong)
    if size > MAX_ANNOTATIONS:
        yield too_long(ANNOTATIONS, f"may not be more than {MAX_ANNOTATIONS} bytes")


def _list_owner_errors(owners: list[OwnerReference | None]) -> Iterator[FieldError]:
    controller = ""
    for owner in (owner or OwnerReference() for owner in islice(owners, MAX_ITEMS)):
        if not (owner.kind and owner.name and owner.uid) or owner.api_version != "v1" or owner.kind == "Event":
            yield from _list_errors_of_owner(owner)
        if owner.controller:
            name = f"{owner.kind or ''}/{owner.name or ''}"
            if controller:
                detail = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {controller} and {name}'
                )
                yield invalid(OWNERS, name, detail)
            controller = controller or name


def _list_errors_of_owner(owner: OwnerReference) -> Iterator[FieldError]:
    group, version = _split_api_version(owner.api_version or "")
    if not version:
        yield invalid(f"{OWNERS}.apiVersion", owner.api_version or "", "version must not be empty")
    for key, value in (("kind", owner.kind), ("name", owner.name), ("uid", owner.uid)):
        if not value:
            yield invalid(f"{OWNERS}.{key}", "", "must not be empty")
    if (group, version, owner.kind) == ("", "v1", "Event"):
        yield invalid(OWNERS, f"Event/{owner.name or ''}", "/v1, Kind=Event is disallowed from being an owner")


def _split_api_version(api_version: str) -> tuple[str, str]:
    """As schema.ParseGroupVersion: a text with two slashes names nothing."""
    group, slash, version = api_version.partition("/")
    if not slash:
        return "", api_version
    return ("", "") if "/" in version else (group, version)


def _list_finalizer_errors(finalizers: list[str | None], old: ObjectMeta) -> Iterator[FieldError]:
    names = [name or "" for name in finalizers]
    for name in names[:MAX_ITEMS]:
        if wrong := formats.qualified_name(name):
            yield from each_invalid(FINALIZERS, name, wrong)
    if _DELETION_FINALIZERS.issubset(names):
        yield invalid(FINALIZERS, names, "finalizer orphan and foregroundDeletion cannot be both set")
    if old.deletion_timestamp is not None:
        added = sorted(set(names) - {name or "" for name in old.finalizers or ()})
        if added:
            shown = ", ".join(quote(name) for name in added[:MAX_FINDINGS])
            detail = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{shown}}}"
            )
            yield forbidden(FINALIZERS, detail)


MAX_MANAGER: Final = 128
"""Bytes of fieldManager."""

_MAX_READ: Final = 4096
"""Characters of a name that is too long in which one that is not printable is looked for."""

_DRY_RUN: Final = ("All",)
_FIELD_VALIDATION: Final = ("", "Ignore", "Strict", "Warn")
_PROPAGATION: Final = ("Foreground", "Background", "Orphan")


def request_options(change: Change) -> Iterable[Finding]:
    """Options must be those that the API server takes: dryRun, fieldManager, fieldValidation, deletion.

    A patch and an apply reach a webhook with the options of an update or a create. So no webhook sees `force`, which
    only an apply may have, or that an apply has no `fieldManager`, which it must have: the API server answers 422.
    """
    options = change.request.options
    if options is NO_OPTIONS:
        return NO_FINDINGS
    wrong = [*_list_write_option_errors(options)]
    if change.request.operation is Operation.DELETE:
        wrong += _list_delete_option_errors(options)
    return tuple(map(Finding, wrong))


REQUEST_OPTIONS: Final = make_parity_rule(
    check=request_options,
    resources=BOTH,
    operations=ANY_OPERATION,
    only_if=Condition.WITH_OPTIONS,
    texts=Texts(
        source="kubernetes/apimachinery pkg/apis/meta/v1/validation/validation.go",
        why="A dry run with a misspelled value would be stored, and the manager's name is part of managedFields, the "
        "record by which the rules know when a lease was renewed.",
        who="Recorded or hand-written reviews only.",
        fix="Send the options that the message names.",
    ),
    reads=(
        "dryRun",
        "fieldManager",
        "fieldValidation",
        "gracePeriodSeconds",
        "propagationPolicy",
        "orphanDependents",
        "preconditions",
    ),
)


def _list_write_option_errors(options: Options) -> Iterator[FieldError]:
    if options.dry_run and any(value not in _DRY_RUN for value in options.dry_run):
        yield not_supported("dryRun", ", ".join(options.dry_run), _DRY_RUN)
    if options.field_manager:
        yield from _list_manager_errors(options.field_manager)
    if options.field_validation not in {None, *_FIELD_VALIDATION}:
        yield not_supported("fieldValidation", options.field_validation or "", _FIELD_VALIDATION)


def _list_manager_errors(manager: str) -> Iterator[FieldError]:
    if count_bytes(manager) > MAX_MANAGER:
        yield too_long("fieldManager", f"may not be more than {MAX_MANAGER} bytes")
        manager = manager[:_MAX_READ]
    if manager.isprintable():
        return
    # Upstream names every such character; the first is enough to find the mistake. Positions count bytes.
    before = next((index for index, character in enumerate(manager) if not _is_printable(character)), None)
    if before is not None:
        detail = f"invalid character U+{ord(manager[before]):04X} (at position {count_bytes(manager[:before])})"
        yield invalid("fieldManager", manager, detail)


def _is_printable(character: str) -> bool:
    # The API server's Unicode tables may be newer than Python's, and a renewal must not stop at a new emoji.
    return character.isprintable() or unicodedata.category(character) == "Cn"


def _list_delete_option_errors(options: Options) -> Iterator[FieldError]:
    seconds, policy = options.grace_period_seconds, options.propagation_policy
    if seconds is not None and seconds < 0:
        yield invalid("gracePeriodSeconds", seconds, "must be greater than or equal to 0")
    if policy is not None and options.orphan_dependents is not None:
        yield invalid("propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set")
    if policy is not None and policy not in _PROPAGATION:
        yield not_supported("propagationPolicy", policy, (*_PROPAGATION, "nil"))
    preconditions = options.preconditions or {}
    if preconditions.get("uid") == "":
        yield invalid("preconditions.uid", "", "must not be empty")
    version = preconditions.get("resourceVersion")
    if version is not None and not (version.isascii() and version.isdecimal()):
        yield invalid("preconditions.resourceVersion", version, "must be a decimal number")
