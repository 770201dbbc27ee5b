"""Fast path of decoding: a valid UPDATE of a Lease v1 is read in one pass.

Anything else gives None and is decoded by `webhook.api.review`, with the same result (tests/api/test_fast_decode.py).
"""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from webhook.api.objects import NO_METADATA, Lease
from webhook.api.request import GROUP, NO_OPTIONS, AdmissionRequest, Operation, Options
from webhook.api.review_error import LONGEST_UID
from webhook.api.user import NO_USER
from webhook.api.wire import NULL

_UPDATE: Final = Operation.UPDATE
_USUAL_OPTIONS: Final = Raw(b'{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}')
"""Empty options, as an API server writes them."""
_API_VERSION: Final = f"{GROUP}/v1"

# Literals are compared inside the decoder and make no new texts. Fields stand in the order of the wire, in which the
# decoder looks for them.


class _Kind(Struct, frozen=True, gc=False):
    group: Literal["coordination.k8s.io"]
    version: Literal["v1"]
    kind: Literal["Lease"]


class _Resource(Struct, frozen=True, gc=False):
    group: Literal["coordination.k8s.io"]
    version: Literal["v1"]
    resource: Literal["leases"]


class _Request(Struct, frozen=True, gc=False, kw_only=True, rename="camel"):
    uid: Annotated[str, Meta(min_length=1, max_length=LONGEST_UID)]
    kind: _Kind
    resource: _Resource
    sub_resource: Literal[""] = ""
    name: Annotated[str, Meta(min_length=1)]
    namespace: Annotated[str, Meta(min_length=1)]
    operation: Literal["UPDATE"]
    user_info: Raw = NO_USER
    object: Lease
    old_object: Lease
    options: Raw = NULL


class _Review(Struct, frozen=True, gc=False, rename="camel"):
    kind: Literal["AdmissionReview"]
    api_version: Literal["admission.k8s.io/v1"]
    request: _Request


_review: Final = msgspec.json.Decoder(_Review)
_options: Final = msgspec.json.Decoder(Options | None)


def lease_update(body: bytes) -> AdmissionRequest | None:
    """The request of a valid UPDATE of a Lease v1, else None; the bytes must be UTF-8."""
    try:
        wire = _review.decode(body).request
    except (msgspec.DecodeError, RecursionError):
        return None
    new, old, name, namespace = wire.object, wire.old_object, wire.name, wire.namespace
    metadata = new.metadata_or_none or NO_METADATA
    if (
        metadata.name != name
        or metadata.namespace != namespace
        or not new.kind == old.kind == "Lease"
        or not new.api_version == old.api_version == _API_VERSION
    ):
        return None
    options = NO_OPTIONS if wire.options == _USUAL_OPTIONS else _read(wire.options)
    if options is None:
        return None
    return AdmissionRequest(
        uid=wire.uid,
        operation=_UPDATE,
        resource="leases",
        kind="Lease",
        version="v1",
        group=GROUP,
        namespace=namespace,
        name=name,
        user_info=wire.user_info,
        new=new,
        old=old,
        options=options,
        body=body,
    )


def _read(raw: Raw) -> Options | None:
    """The options, NO_OPTIONS if they are empty, or None if they have a wrong type."""
    try:
        options = _options.decode(raw)
    except (msgspec.ValidationError, RecursionError):
        return None
    return NO_OPTIONS if options is None or options == NO_OPTIONS else options
