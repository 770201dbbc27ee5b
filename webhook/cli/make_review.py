"""`lease-webhook make-review`: a bare manifest becomes the AdmissionReview that an API server would send for it."""

import hashlib
import json
import time
import uuid
from difflib import get_close_matches
from typing import Any, Final

import click
from msgspec import Struct
from msgspec.structs import fields

from webhook.api.objects import LeaseCandidateSpec, LeaseSpec, ObjectMeta
from webhook.api.request import GROUP, KIND_OF
from webhook.api.text import quote, truncate
from webhook.api.times import canonical_seconds
from webhook.cli.options import Command, files, moment
from webhook.cli.terminal import Failure
from webhook.inputs.documents import Value, encoded
from webhook.inputs.files import submitted
from webhook.inputs.items import Unreadable
from webhook.inputs.kinds import Manifest

DEFAULT_NAMESPACE: Final = "default"
"""The namespace of a manifest that names no namespace, unless the context says otherwise."""

MANAGER: Final = "lease-webhook-test"
"""The one field manager of a stamped manifest, as all replicas of an elector have one."""

_SERVICE_ACCOUNT: Final = "system:serviceaccount:"
_STORED: Final = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields")
"""Fields that a manifest leaves out and the API server fills in from the stored object."""

MAX_UNKNOWN: Final = 20
"""Warnings about unknown fields for one document; one with more mistakes is not a Lease or LeaseCandidate."""

_SPECS: Final = {"Lease": LeaseSpec, "LeaseCandidate": LeaseCandidateSpec}

Key = tuple[str, str, str]

_DESCRIPTION: Final = """\
Prints the AdmissionReview that an API server would send for a write: the creation of NEW, with --old an update to NEW,
and with --delete the deletion of NEW. Keep it for `test` and `replay`, or send it to a webhook with curl.

What an API server fills in is filled in if it is missing: uid, resourceVersion, creationTimestamp. managedFields are
taken from the manifests: get live objects with --show-managed-fields. --stamp generates missing ones: the
stored object was written at its renewTime, the new one at --now.
"""
_EPILOG: Final = """\
Example:
  lease-webhook make-review new.yaml --old live.yaml --user system:serviceaccount:shop:checkout
"""


@click.command("make-review", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("new", metavar="NEW", shell_complete=files)
@click.option("--old", metavar="PATH", help="what is stored now", shell_complete=files)
@click.option("--delete", is_flag=True, help="the write deletes the object")
@click.option("--user", default="kubernetes-admin", metavar="NAME", help="who writes (default: kubernetes-admin)")
@click.option("--group", "groups", metavar="G", multiple=True, help="a group of --user; may be repeated")
@click.option("--dry-run", is_flag=True, help="as kubectl's --dry-run=server sends it")
@click.option("--stamp", is_flag=True, help="generate managedFields if there are none")
@click.option("--now", type=moment, metavar="RFC3339", help="the time of the write (default: now)")
def command(
    *,
    new: str,
    old: str | None,
    delete: bool,
    user: str,
    groups: tuple[str, ...],
    dry_run: bool,
    stamp: bool,
    now: int | None,
) -> int:
    if delete and old:
        raise Failure("--delete deletes NEW: there is no --old")
    at = time.time_ns() // 1000 if now is None else now
    document = _only(new)
    before = _only(old) if old else document if delete else None
    if before and key_of(before) != key_of(document):
        raise Failure(f"{old} is another object: {_name(before)}, not {_name(document)}")
    if stamp:
        document = document if delete else stamped(document, at)
        before = before and stamped(before)
    after = None if delete else document if old else _filled(document, at)
    request = request_of(after, _filled(before, at) if before else None, Writer(user, groups))
    print(json.dumps(review(_complete(request, dry_run=dry_run)), indent=2))
    return 0


def _only(path: str) -> Value:
    """Return the one Lease or LeaseCandidate of a file."""
    items = list(submitted([path]))
    for item in items:
        if isinstance(item, Unreadable):
            raise Failure(f"{item.place.short}: {item.error}")
    found = [item.document for item in items if isinstance(item, Manifest)]
    if len(found) != 1:
        raise Failure(f"{path}: one {' or '.join(KIND_OF.values())} is needed, {len(found)} found")
    return found[0]


def _name(document: Value) -> str:
    kind, namespace, name = key_of(document)
    return f"{kind} {namespace}/{name}"


def _filled(document: Value, now: int) -> Value:
    """Return the document with the fields of the API server."""
    if not isinstance(document.get("metadata"), dict):
        return document
    uid = _uid("/".join(key_of(document)))
    return {**document, "metadata": {"uid": uid, "creationTimestamp": canonical_seconds(now), **document["metadata"]}}


def _complete(request: Value, *, dry_run: bool) -> Value:
    options: Value = {"kind": f"{request['operation'].capitalize()}Options", "apiVersion": "meta.k8s.io/v1"}
    if dry_run:
        options["dryRun"] = ["All"]
    request = {**request, "requestKind": request["kind"], "requestResource": request["resource"]}
    request |= {"dryRun": dry_run, "options": options}
    return {**request, "uid": _uid(json.dumps(request, sort_keys=True))}


def _uid(text: str) -> str:
    """Return a UUID that is the same for the same text, so that the same arguments make the same review."""
    return str(uuid.UUID(bytes=hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16], version=4))


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


def review_of(new: Value | None, old: Value | None, writer: Writer | None) -> bytes:
    """Return the review of creating `new`, updating `old` to it, or deleting `old`; no writer, no userInfo.

    Raises:
        ValueError: the manifest is larger than any API server would take.

    """
    return encoded(review(request_of(new, old, writer)))


def review(request: Value) -> Value:
    """Return the AdmissionReview around a request."""
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def request_of(new: Value | None, old: Value | None, writer: Writer | None) -> Value:
    """Return the request of a review, with what every rule reads; at least one of the objects is given."""
    document = new or old
    assert document is not None
    version = str(document["apiVersion"]).partition("/")[2]
    kind = str(document["kind"])
    _, namespace, name = key_of(document)
    if new is not None:
        new = _placed(new)
    if old is not None:
        old = _with_version(_placed(old), new or old) | {"apiVersion": document["apiVersion"]}
    request: Value = {
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


def stamped(document: Value, at: int | None = None) -> Value:
    """Return the manifest with managedFields that date its spec: `at` in microseconds since 1970, else renewTime.

    One that has managedFields already, or no time to take, stays as it is.
    """
    metadata, spec = document.get("metadata"), document.get("spec")
    if not isinstance(metadata, dict) or not isinstance(spec, dict) or metadata.get("managedFields"):
        return document
    at = _renewed(spec) if at is None else at
    if at is None:
        return document
    entry: Value = {
        "manager": MANAGER,
        "operation": "Update",
        "apiVersion": document.get("apiVersion"),
        "time": canonical_seconds(at),
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {f"f:{field}": {} for field in spec}},
    }
    return {**document, "metadata": {**metadata, "managedFields": [entry]}}


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


def _renewed(spec: Value) -> int | None:
    try:
        return moment(str(spec.get("renewTime")))
    except Failure:
        return None


def unknown_fields(document: Value) -> tuple[str, ...]:
    """Return a warning for each field of a bare Lease or LeaseCandidate that its version does not have.

    The API server drops them, and a typo goes unnoticed.
    """
    places = (
        ("", document, ("apiVersion", "kind", "metadata", "spec")),
        ("metadata.", document.get("metadata"), _names(ObjectMeta)),
        ("spec.", document.get("spec"), _names(_SPECS[str(document["kind"])])),
    )
    warnings = [
        _warning(prefix, key, known)
        for prefix, place, known in places
        if isinstance(place, dict)
        for key in place
        if key not in known
    ]
    return tuple(warnings[:MAX_UNKNOWN])


def _names(struct: Any) -> tuple[str, ...]:  # noqa: ANN401 - a type
    return tuple(field.encode_name for field in fields(struct))


def _warning(prefix: str, key: object, known: tuple[str, ...]) -> str:
    near = get_close_matches(str(key), known, 1)
    hint = f"; did you mean {quote(near[0])}?" if near else ""
    return f"unknown field {quote(truncate(f'{prefix}{key}', 100))}: the API server drops it, kubectl refuses it{hint}"
