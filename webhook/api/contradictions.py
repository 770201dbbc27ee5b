"""Contradictions inside a request: its resource against its kind, its objects against its own fields."""

from typing import Final

from webhook.api.objects import Lease, LeaseCandidate
from webhook.api.request import GROUP, KIND_OF, Resource
from webhook.api.wire import WireKind, WireRequest, WireResource

_VERSION_LEFT_OUT: Final = frozenset({None, "", "/", f"{GROUP}/"})
"""An apiVersion without a version, for which the API server takes that of the request."""


def resource_against_kind(resource: WireResource, kind: WireKind) -> str:
    """What is contradictory about this resource and this kind in one request, or ""."""
    ours = resource.group == GROUP and resource.resource in KIND_OF
    if not ours and not (kind.group == GROUP and kind.kind in KIND_OF.values()):
        return ""
    agree = (resource.group, resource.version) == (kind.group, kind.version)
    if not ours or not agree or KIND_OF[Resource(str(resource.resource))] != kind.kind:
        return "request.resource and request.kind must name the same thing"
    return ""


def objects_against_request(
    wire: WireRequest,
    resource: WireResource,
    kind: WireKind,
    new: Lease | LeaseCandidate | None,
    old: Lease | LeaseCandidate | None,
) -> str:
    """How the objects contradict the request, or ""; what an object leaves out is taken from the request."""
    api_version = f"{GROUP}/{resource.version}"
    for role, document in (("object", new), ("oldObject", old)):
        if document is None:
            continue
        if document.kind and document.kind != kind.kind:
            return f"{role}.kind must be the kind that the request names"
        if document.api_version != api_version and document.api_version not in _VERSION_LEFT_OUT:
            return f"{role}.apiVersion must be the group and version that the request names"
        if document is old and new is not None:
            continue
        metadata = document.metadata
        if wire.namespace and metadata.namespace and metadata.namespace != wire.namespace:
            return f"{role}.metadata.namespace must be the namespace that the request names"
        if wire.name and metadata.name and metadata.name != wire.name:
            return f"{role}.metadata.name must be the name that the request names"
    return ""
