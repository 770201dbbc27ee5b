"""Evaluates documents as `serve` would: the same decoder, the same rules, the same verdict.

A bare manifest is evaluated as the AdmissionReview that an API server would send for it.
"""

import time
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.api.field import not_supported
from webhook.api.request import GROUP, KIND_OF, VERSIONS_OF, AdmissionRequest
from webhook.api.review import ReviewError, decode
from webhook.evaluate import evaluate
from webhook.inputs.documents import Value, encoded
from webhook.inputs.items import Place
from webhook.policy.model import Policy
from webhook.rules.change import change_made_by
from webhook.rules.election.renewal_stamp import stamp_of_writer
from webhook.rules.rule import Mode
from webhook.verdict import Cause, Verdict

_DEFAULT_NAMESPACE: Final = "default"
"""The namespace of a manifest that names no namespace."""
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"
_STORED: Final = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields")
"""Fields that a manifest leaves out and the API server fills in from the stored object."""

Key = tuple[str, str, str]


class Evaluation(Struct, frozen=True):
    """A document with its verdict; `is_past`: it was sent to an API server once."""

    place: Place
    request: AdmissionRequest
    verdict: Verdict
    is_past: bool = True

    @property
    def level(self) -> Mode:
        """DENY, WARN or OFF: whether it is denied, admitted with warnings, or just admitted."""
        return Mode.DENY if not self.verdict.allowed else Mode.WARN if self.verdict.warnings else Mode.OFF


def evaluate_review(
    place: Place, body: bytes, policy: Policy, now: int | None = None, *, writer_known: bool = True
) -> Evaluation:
    """Evaluate the bytes of one review; raises ReviewError if they are not one, or nest too deeply.

    `now` is in microseconds since 1970; None takes the latest time that an API server stamped into the review, else the
    clock. Without `writer_known` the rules about the writer are left out.
    """
    try:
        return evaluate_request(place, decode(body), policy, now, writer_known=writer_known)
    except RecursionError:
        raise ReviewError(400, "nested too deeply") from None


def evaluate_request(
    place: Place, request: AdmissionRequest, policy: Policy, now: int | None, *, writer_known: bool
) -> Evaluation:
    """Evaluate one write in the same way."""
    at = _received_at(request) if now is None else now
    verdict = evaluate(request, policy, at, writer_known=writer_known)
    is_unknown_version = request.group == GROUP and request.resource in KIND_OF and not request.is_ours
    if policy.mode is Mode.DENY and is_unknown_version:
        verdict = _deny_version(request, verdict)
    return Evaluation(place, request, verdict)


def _received_at(request: AdmissionRequest) -> int:
    """Return when an API server received the write, as far as it shows; a stamp of the future is a forged one."""
    clock = time.time_ns() // 1000
    if not request.is_ours or (request.new is None and request.old is None):
        return clock
    change = change_made_by(request, clock)
    if change.new_entries:
        written_at = stamp_of_writer(change.was_set.owners_among(change.new_entries))
        if written_at is not None:
            return written_at
    for entries in (change.new_entries, change.old_entries):
        stamp = max((at for entry in entries if (at := entry.stamp) is not None and at <= clock), default=None)
        if stamp is not None:
            return stamp
    return clock


def _deny_version(request: AdmissionRequest, verdict: Verdict) -> Verdict:
    """Deny an unknown version, which `serve` admits: a typo in its configuration must not stop a cluster."""
    known = tuple(f"{GROUP}/{version}" for version in VERSIONS_OF[request.resource])
    error = not_supported("apiVersion", f"{GROUP}/{request.version}", known)
    text = f"{error.body} (lease webhook)"
    cause = Cause(error.type.value, text, error.field)
    message = f"{error.field}: {text}"
    return replace(verdict, allowed=False, code=422, reason="Invalid", message=message, causes=(cause,), warnings=())


def user_info(name: str, groups: Sequence[str] = ()) -> Value:
    """Return `request.userInfo` of the writer of a manifest, with the groups that every authenticator adds."""
    found = [*groups]
    if name.startswith(_SERVICE_ACCOUNT):
        namespace = name.removeprefix(_SERVICE_ACCOUNT).partition(":")[0]
        found += ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    if name.startswith("system:node:"):
        found.append("system:nodes")
    return {"username": name, "groups": list(dict.fromkeys([*found, "system:authenticated"]))}


def key_of(document: Value) -> Key:
    """Return (kind, namespace, name) of the stored object that a manifest is about."""
    metadata = _metadata(document)
    return (str(document["kind"]), str(metadata.get("namespace") or _DEFAULT_NAMESPACE), str(metadata.get("name", "")))


def review_of(new: Value, old: Value | None, writer: Value | None) -> bytes:
    """Return the review of creating `new`, or of updating `old` to it; `writer` is its userInfo.

    Raises ValueError if the manifest is larger than any API server would take.
    """
    version, kind = str(new["apiVersion"]).partition("/")[2], str(new["kind"])
    _, namespace, name = key_of(new)
    new = _with(new, "namespace", _DEFAULT_NAMESPACE)
    if old is not None:
        # What is stored has a resourceVersion; a manifest that was written by hand may have none, and is as good.
        revision = _metadata(new).get("resourceVersion") or "1"
        old = _with(_with(old, "namespace", _DEFAULT_NAMESPACE), "resourceVersion", revision)
        old = old | {"apiVersion": new["apiVersion"]}
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
        request["userInfo"] = writer
    return encoded({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


def _metadata(document: Value) -> Value:
    metadata = document.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _with(document: Value, field: str, value: object) -> Value:
    """Return the document with a field of metadata that it lacks, if its metadata can hold one."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or metadata.get(field):
        return document
    return {**document, "metadata": {**metadata, field: value}}


def _stored(new: Value, old: Value) -> Value:
    """Return `new` as the API server would store it over `old`: fields of the server's own that it leaves out stay."""
    if not isinstance(new.get("metadata"), dict):
        return new
    kept = {field: value for field, value in _metadata(old).items() if field in _STORED}
    entries = kept.get("managedFields")
    if _holder(new) != _holder(old) and isinstance(entries, list):
        # The write moves holderIdentity to its writer's entry; the old owners' stamps say nothing about this write.
        kept["managedFields"] = [_entry_without_holder(entry) for entry in entries]
    return {**new, "metadata": kept | _metadata(new)}


def _holder(document: Value) -> object:
    spec = document.get("spec")
    return (spec.get("holderIdentity") if isinstance(spec, dict) else None) or ""


def _entry_without_holder(entry: object) -> object:
    fields = entry.get("fieldsV1") if isinstance(entry, dict) else None
    spec = fields.get("f:spec") if isinstance(fields, dict) else None
    if not isinstance(entry, dict) or not isinstance(fields, dict) or not isinstance(spec, dict):
        return entry
    rest = {field: value for field, value in spec.items() if field != "f:holderIdentity"}
    return {**entry, "fieldsV1": {**fields, "f:spec": rest}}
