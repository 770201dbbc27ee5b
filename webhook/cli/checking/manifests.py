"""A bare manifest as the AdmissionReview that an API server would send for it, and the fields that no API has."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from webhook.admission.policy.schema import suggest_nearest
from webhook.analysis.inputs.documents import Value, encode
from webhook.kubernetes.objects import ObjectMeta, OwnerReference, list_spec_fields, list_versions
from webhook.kubernetes.request import GROUP, NODE_USER
from webhook.text.quoting import quote, truncate

Key = tuple[str, str, str]

_DEFAULT_NAMESPACE: Final = "default"
"""The namespace of a manifest that names no namespace."""
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"
_STORED: Final = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields")
"""Fields that a manifest leaves out and the API server fills in from the stored object."""
_OBJECT: Final = ("apiVersion", "kind", "metadata", "spec")
_MAX_UNKNOWN: Final = 20
"""Unknown fields of one manifest that are named."""
_MAX_PATH: Final = 100


class UnknownField(Struct, frozen=True):
    """A field that the version of a kind does not have; `hint` says what may be meant, or is ""."""

    path: str
    hint: str

    @property
    def text(self) -> str:
        """The warning in one line."""
        field = quote(truncate(self.path, _MAX_PATH))
        return f"unknown field {field}: the API server drops it, and kubectl refuses it{self.hint}"


def make_user_info(name: str, groups: Sequence[str]) -> Value:
    """Return `request.userInfo` of the writer of a manifest, with the groups that every authenticator adds."""
    found = [*groups]
    if name.startswith(_SERVICE_ACCOUNT):
        namespace = name.removeprefix(_SERVICE_ACCOUNT).partition(":")[0]
        found += ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    if name.startswith(NODE_USER):
        found.append("system:nodes")
    return {"username": name, "groups": list(dict.fromkeys([*found, "system:authenticated"]))}


def make_key(document: Value) -> Key:
    """Return (kind, namespace, name) of the stored object that a manifest is about."""
    metadata = _get_mapping(document, "metadata")
    return (str(document["kind"]), str(metadata.get("namespace") or _DEFAULT_NAMESPACE), str(metadata.get("name", "")))


def make_review(new: Value, old: Value | None, writer: Value | None) -> bytes:
    """Return the review of creating `new`, or of updating `old` to it; `writer` is its userInfo.

    Raises ValueError if the manifest is larger than any API server would take.
    """
    version, kind = str(new["apiVersion"]).partition("/")[2], str(new["kind"])
    _, namespace, name = make_key(new)
    new = _add_to_metadata(_drop_unknown_fields(new), "namespace", _DEFAULT_NAMESPACE)
    if old is not None:
        # A stored object has a resourceVersion; a manifest that was written by hand may have none, and is as good.
        revision = _get_mapping(new, "metadata").get("resourceVersion") or "1"
        old = _add_to_metadata(_add_to_metadata(old, "namespace", _DEFAULT_NAMESPACE), "resourceVersion", revision)
        old = old | {"apiVersion": new["apiVersion"]}
    request: Value = {
        "uid": "manifest",
        "kind": {"group": GROUP, "version": version, "kind": kind},
        "resource": {"group": GROUP, "version": version, "resource": f"{kind.lower()}s"},
        "operation": "CREATE" if old is None else "UPDATE",
        "namespace": namespace,
        "name": name,
        "object": new if old is None else _merge_into_stored(new, old),
        "oldObject": old,
    }
    if writer:
        request["userInfo"] = writer
    return encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


def _drop_unknown_fields(document: Value) -> Value:
    """Return the manifest as an API server decodes it: what its version does not have is dropped before a review."""
    kind, version = str(document["kind"]), str(document["apiVersion"]).partition("/")[2]
    if version not in list_versions(kind):
        return document
    known = {"metadata": ObjectMeta.__struct_encode_fields__, "spec": list_spec_fields(kind, version)}
    kept = {field: value for field, value in document.items() if field in _OBJECT}
    for field, fields in known.items():
        if isinstance(kept.get(field), dict):
            kept[field] = {name: value for name, value in kept[field].items() if name in fields}
    return kept


def _get_mapping(value: object, field: str) -> Value:
    """Return a field of a mapping that is a mapping itself; an empty one for anything else."""
    found = value.get(field) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _add_to_metadata(document: Value, field: str, value: object) -> Value:
    """Return the document with a field of metadata that it lacks, if its metadata can hold one."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or metadata.get(field):
        return document
    return {**document, "metadata": {**metadata, field: value}}


def _merge_into_stored(new: Value, old: Value) -> Value:
    """Return `new` as the API server would store it over `old`: fields of the server's own that it leaves out stay."""
    if not isinstance(new.get("metadata"), dict):
        return new
    kept = {field: value for field, value in _get_mapping(old, "metadata").items() if field in _STORED}
    entries = kept.get("managedFields")
    if _get_holder(new) != _get_holder(old) and isinstance(entries, list):
        # The write moves holderIdentity to its writer's entry; the old owners' stamps say nothing about this write.
        kept["managedFields"] = [_drop_holder(entry) for entry in entries]
    return {**new, "metadata": kept | new["metadata"]}


def _get_holder(document: Value) -> object:
    return _get_mapping(document, "spec").get("holderIdentity") or ""


def _drop_holder(entry: object) -> object:
    fields = _get_mapping(entry, "fieldsV1")
    spec = _get_mapping(fields, "f:spec")
    if not isinstance(entry, dict) or not spec:
        return entry
    rest = {field: value for field, value in spec.items() if field != "f:holderIdentity"}
    return {**entry, "fieldsV1": {**fields, "f:spec": rest}}


def find_unknown_fields(document: Value) -> tuple[UnknownField, ...]:
    """Return the first fields of a manifest that its version does not have, which an API server drops."""
    return tuple(field for field, _ in zip(_find_unknown_fields(document), range(_MAX_UNKNOWN), strict=False))


def _find_unknown_fields(document: Value) -> Iterator[UnknownField]:
    kind, version = str(document["kind"]), str(document["apiVersion"]).partition("/")[2]
    if version not in list_versions(kind):
        return
    yield from _find_fields_beyond(document, "", _OBJECT)
    metadata = _get_mapping(document, "metadata")
    yield from _find_fields_beyond(metadata, "metadata.", ObjectMeta.__struct_encode_fields__)
    owners = metadata.get("ownerReferences")
    for number, owner in enumerate(owners if isinstance(owners, list) else ()):
        if isinstance(owner, dict):
            yield from _find_fields_beyond(
                owner, f"metadata.ownerReferences[{number}].", OwnerReference.__struct_encode_fields__
            )
    known = list_spec_fields(kind, version)
    for field in _find_fields_beyond(_get_mapping(document, "spec"), "spec.", known):
        name = field.path.removeprefix("spec.")
        others = [one for one in list_versions(kind) if name in list_spec_fields(kind, one)]
        has = "has" if len(others) == 1 else "have"
        yield UnknownField(field.path, f"; {', '.join(others)} {has} it") if others else field


def _find_fields_beyond(found: Value, prefix: str, known: Sequence[str]) -> Iterator[UnknownField]:
    for name in found:
        if name not in known:
            yield UnknownField(f"{prefix}{name}", suggest_nearest(name, known))
