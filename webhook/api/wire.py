"""The wire form of a review: which JSON types its envelope and its request have."""

from typing import Final

from msgspec import Raw, Struct

from webhook.api.user import NO_USER

REVIEW_VERSIONS: Final = frozenset({"admission.k8s.io/v1", "admission.k8s.io/v1beta1"})
NULL: Final = Raw(b"null")


class WireKind(Struct, frozen=True, gc=False):
    """`request.kind`."""

    group: str | None = None
    version: str | None = None
    kind: str | None = None


class WireResource(Struct, frozen=True, gc=False):
    """`request.resource`."""

    group: str | None = None
    version: str | None = None
    resource: str | None = None


class WireRequest(Struct, frozen=True, gc=False, rename="camel"):
    """`request`; what only some reviews need decoded stays bytes."""

    uid: str
    kind: WireKind | None = None
    resource: WireResource | None = None
    sub_resource: str | None = None
    name: str | None = None
    namespace: str | None = None
    operation: str | None = None
    user_info: Raw = NO_USER
    object: Raw = NULL
    old_object: Raw = NULL
    options: Raw = NULL


class WireReview(Struct, frozen=True, gc=False, rename="camel"):
    """The envelope."""

    request: WireRequest
    api_version: str | None = None
    kind: str | None = None
