"""A bare manifest as the AdmissionReview that an API server would send for it."""

from typing import Final

from msgspec import Struct

from webhook.api.request import GROUP
from webhook.inputs.documents import Value, encoded

DEFAULT_NAMESPACE: Final = "default"
"""The namespace of a manifest that names no namespace, unless the context says otherwise."""

_SERVICE_ACCOUNT: Final = "system:serviceaccount:"
_STORED: Final = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields")
"""Fields that a manifest leaves out and the API server fills in from the stored object."""

Key = tuple[str, str, str]


class Writer(Struct, frozen=True):
    """The writer of a manifest; groups that every authenticator adds are added here."""

    name: str
    groups: tuple[str, ...] = ()

    def user_info(self) -> Value:
        """`request.userInfo`."""
        groups = [*self.groups]
        if self.name.startswith(_SERVICE_ACCOUNT):
            namespace = self.name.removeprefix(_SERVICE_ACCOUNT).partition(":")[0]
            groups += ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
        if self.name.startswith("system:node:"):
            groups.append("system:nodes")
        return {"username": self.name, "groups": list(dict.fromkeys([*groups, "system:authenticated"]))}


def key_of(document: Value) -> Key:
    """(kind, namespace, name): which stored object a manifest is about."""
    metadata = _metadata(document)
    return (str(document["kind"]), str(metadata.get("namespace") or DEFAULT_NAMESPACE), str(metadata.get("name", "")))


def review_of(new: Value, old: Value | None, writer: Writer | None) -> bytes:
    """Return the review of creating `new`, or of updating `old` to it; no writer, no userInfo.

    Raises ValueError if the manifest is larger than any API server would take.
    """
    version, kind = str(new["apiVersion"]).partition("/")[2], str(new["kind"])
    _, namespace, name = key_of(new)
    new = _placed(new)
    if old is not None:
        old = _with_version(_placed(old), new) | {"apiVersion": new["apiVersion"]}
    request: Value = {
        "uid": "manifest",
        "kind": {"group": GROUP, "version": version, "kind": kind},
        "resource": {"group": GROUP, "version": version, "resource": f"{kind.lower()}s"},
        "operation": "CREATE" if old is None else "UPDATE",
        "namespace": namespace,
        "name": name,
        "object": new if old is None else _stored(new, old),
        "oldObject": old,
    }
    if writer:
        request["userInfo"] = writer.user_info()
    return encoded({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


def _metadata(document: Value) -> Value:
    metadata = document.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _placed(document: Value) -> Value:
    """Return the document with a namespace, if its metadata can hold one."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("namespace"):
        return document
    return {**document, "metadata": {**metadata, "namespace": DEFAULT_NAMESPACE}}


def _stored(new: Value, old: Value) -> Value:
    """`new` as the API server would store it over `old`: what it leaves out of the server's own fields stays."""
    if not isinstance(new.get("metadata"), dict):
        return new
    kept = {field: value for field, value in _metadata(old).items() if field in _STORED}
    if _holder(new) != _holder(old) and "managedFields" in kept:
        kept["managedFields"] = _without_owner_of_holder(kept["managedFields"])
    return {**new, "metadata": kept | _metadata(new)}


def _with_version(old: Value, new: Value) -> Value:
    """What is stored has a resourceVersion; a manifest that was written by hand may have none, and is as good."""
    metadata = old.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("resourceVersion"):
        return old
    version = _metadata(new).get("resourceVersion") or "1"
    return {**old, "metadata": {**metadata, "resourceVersion": version}}


def _holder(document: Value) -> object:
    spec = document.get("spec")
    return (spec.get("holderIdentity") if isinstance(spec, dict) else None) or ""


def _without_owner_of_holder(entries: object) -> object:
    """The write moves holderIdentity to its writer's entry; the old owners' stamps say nothing about this write."""
    return [_entry_without_holder(entry) for entry in entries] if isinstance(entries, list) else entries


def _entry_without_holder(entry: object) -> object:
    fields = entry.get("fieldsV1") if isinstance(entry, dict) else None
    spec = fields.get("f:spec") if isinstance(fields, dict) else None
    if not isinstance(entry, dict) or not isinstance(fields, dict) or not isinstance(spec, dict):
        return entry
    rest = {field: value for field, value in spec.items() if field != "f:holderIdentity"}
    return {**entry, "fieldsV1": {**fields, "f:spec": rest}}
