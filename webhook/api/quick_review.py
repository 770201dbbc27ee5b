"""A sound UPDATE of a Lease v1, read in one pass: nearly every review is one.

Anything odd gives None, and the general way decides; both give the same request (tests hold them equal).
"""

from typing import Final

import msgspec
from msgspec import Raw, Struct

from webhook.api.objects import Lease
from webhook.api.request import GROUP, NO_OPTIONS, AdmissionRequest, Operation, Options
from webhook.api.user import NO_USER
from webhook.api.wire import LONGEST_UID, WireKind, WireResource

_RESOURCE: Final = WireResource(GROUP, "v1", "leases")
_KIND: Final = WireKind(GROUP, "v1", "Lease")
_API_VERSION: Final = f"{GROUP}/v1"


class _Request(Struct, frozen=True, gc=False, rename="camel"):
    uid: str
    kind: WireKind
    resource: WireResource
    name: str
    namespace: str
    operation: str
    object: Lease
    old_object: Lease
    sub_resource: str = ""
    user_info: Raw = NO_USER
    options: Options | None = None


class _Review(Struct, frozen=True, gc=False, rename="camel"):
    request: _Request
    api_version: str
    kind: str


_review: Final = msgspec.json.Decoder(_Review)


def lease_update(body: bytes) -> AdmissionRequest | None:
    """The request of a sound UPDATE of a Lease v1, else None; the bytes must be UTF-8."""
    try:
        review = _review.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    wire = review.request
    new, old = wire.object, wire.old_object
    name, namespace = wire.name, wire.namespace
    if (
        review.kind != "AdmissionReview"
        or review.api_version != "admission.k8s.io/v1"
        or wire.operation != "UPDATE"
        or wire.sub_resource
        or wire.resource != _RESOURCE
        or wire.kind != _KIND
        or not 0 < len(wire.uid) <= LONGEST_UID
        or not name
        or not namespace
        or not new.kind == old.kind == "Lease"
        or not new.api_version == old.api_version == _API_VERSION
        or new.metadata.name != name
        or new.metadata.namespace != namespace
    ):
        return None
    options = wire.options
    return AdmissionRequest(
        uid=wire.uid,
        operation=Operation.UPDATE,
        resource="leases",
        kind="Lease",
        version="v1",
        group=GROUP,
        namespace=namespace,
        name=name,
        user_info=wire.user_info,
        new=new,
        old=old,
        options=NO_OPTIONS if options is None or options == NO_OPTIONS else options,
    )
