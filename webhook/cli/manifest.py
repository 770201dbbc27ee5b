"""A bare manifest becomes the AdmissionReview that an API server would send for it."""

from typing import Final

from msgspec import Struct

from webhook.api.micro_time import canonical_seconds
from webhook.api.request import GROUP
from webhook.cli.failure import Failure
from webhook.cli.moment import moment
from webhook.cli.sources import Document, encoded

DEFAULT_NAMESPACE: Final = "default"
"""Where kubectl puts a manifest that names no namespace, unless the context says otherwise."""

MANAGER: Final = "lease-webhook-test"
"""The one field manager of a stamped manifest, as all replicas of an elector have one."""

_SERVICE_ACCOUNT: Final = "system:serviceaccount:"
_STORED: Final = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields")
"""What a manifest leaves out and the API server fills in from the stored object."""

Key = tuple[str, str, str]


class Writer(Struct, frozen=True):
    """Who would write; groups that every authenticator adds are added here."""

    name: str
    groups: tuple[str, ...] = ()

    def user_info(self) -> Document:
        """`request.userInfo`."""
        groups = [*self.groups]
        if self.name.startswith(_SERVICE_ACCOUNT):
            namespace = self.name.removeprefix(_SERVICE_ACCOUNT).partition(":")[0]
            groups += ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
        if self.name.startswith("system:node:"):
            groups.append("system:nodes")
        return {"username": self.name, "groups": list(dict.fromkeys([*groups, "system:authenticated"]))}


def key_of(document: Document) -> Key:
    """(kind, namespace, name): which stored object a manifest is about."""
    metadata = _metadata(document)
    return (str(document["kind"]), str(metadata.get("namespace") or DEFAULT_NAMESPACE), str(metadata.get("name", "")))


def review_of(new: Document | None, old: Document | None, writer: Writer | None) -> bytes:
    """The review of creating `new`, of updating `old` to it, or of deleting `old`; without a writer it has no userInfo.

    Raises:
        ValueError: the manifest is larger than any API server would take.

    """
    return encoded(review(request_of(new, old, writer)))


def review(request: Document) -> Document:
    """The AdmissionReview around a request."""
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def request_of(new: Document | None, old: Document | None, writer: Writer | None) -> Document:
    """The request of a review, with what every rule reads; at least one of the objects is given."""
    document = new or old
    assert document is not None
    version = str(document["apiVersion"]).partition("/")[2]
    kind = str(document["kind"])
    _, namespace, name = key_of(document)
    if new is not None:
        new = _placed(new)
    if old is not None:
        old = _with_version(_placed(old), new or old) | {"apiVersion": document["apiVersion"]}
    request: Document = {
        "uid": "manifest",
        "kind": {"group": GROUP, "version": version, "kind": kind},
        "resource": {"group": GROUP, "version": version, "resource": f"{kind.lower()}s"},
        "operation": "CREATE" if old is None else "DELETE" if new is None else "UPDATE",
        "namespace": namespace,
        "name": name,
        "object": new if new is None or old is None else _stored(new, old),
        "oldObject": old,
    }
    if writer:
        request["userInfo"] = writer.user_info()
    return request


def stamped(document: Document, at: int | None = None) -> Document:
    """The manifest with managedFields that date its spec: from `at` in microseconds since 1970, else from renewTime.

    One that has managedFields already, or no time to take, stays as it is.
    """
    metadata, spec = document.get("metadata"), document.get("spec")
    if not isinstance(metadata, dict) or not isinstance(spec, dict) or metadata.get("managedFields"):
        return document
    at = _renewed(spec) if at is None else at
    if at is None:
        return document
    entry: Document = {
        "manager": MANAGER,
        "operation": "Update",
        "apiVersion": document.get("apiVersion"),
        "time": canonical_seconds(at),
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {f"f:{field}": {} for field in spec}},
    }
    return {**document, "metadata": {**metadata, "managedFields": [entry]}}


def _metadata(document: Document) -> Document:
    metadata = document.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _placed(document: Document) -> Document:
    """The document with a namespace, if its metadata can hold one."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("namespace"):
        return document
    return {**document, "metadata": {**metadata, "namespace": DEFAULT_NAMESPACE}}


def _stored(new: Document, old: Document) -> Document:
    """`new` as the API server would store it over `old`: what it leaves out of the server's own fields stays."""
    if not isinstance(new.get("metadata"), dict):
        return new
    kept = {field: value for field, value in _metadata(old).items() if field in _STORED}
    if _holder(new) != _holder(old) and "managedFields" in kept:
        kept["managedFields"] = _without_owner_of_holder(kept["managedFields"])
    return {**new, "metadata": kept | _metadata(new)}


def _with_version(old: Document, new: Document) -> Document:
    """What is stored has a resourceVersion; a manifest that was written by hand may have none, and is as good."""
    metadata = old.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("resourceVersion"):
        return old
    version = _metadata(new).get("resourceVersion") or "1"
    return {**old, "metadata": {**metadata, "resourceVersion": version}}


def _holder(document: Document) -> object:
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


def _renewed(spec: Document) -> int | None:
    try:
        return moment(str(spec.get("renewTime")))
    except Failure:
        return None
