"""Audit events in the objects in which log services and collectors deliver them.

CloudWatch, Azure, Loki, Vector and others put the line of the log, as a string, somewhere into objects and arrays of
their own. Google Cloud makes an object of another form of each event, whose parts are mapped back.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct, field

AUDIT: Final = "audit.k8s.io/"
MAX_DEPTH: Final = 12
"""Objects, arrays and strings around an event: Loki's answers have seven, and collectors are put behind each other."""

_MARKER: Final = AUDIT[:-1].encode()
_NOTHING: Final = Raw(b"null")
_KUBERNETES: Final = "k8s.io"
_HTTP_OF_RPC: Final[Mapping[int, int]] = {
    0: 200, 1: 499, 2: 500, 3: 400, 4: 504, 5: 404, 6: 409, 7: 403, 8: 429, 9: 400, 10: 409, 11: 400, 12: 501, 13: 500,
    14: 503, 15: 500, 16: 401,
}  # fmt: skip
"""What google.rpc.Code says of its own values."""


class _Envelope(Struct, frozen=True, gc=False, rename="camel"):
    """The keys under which something of an envelope may be; each service has a few of them."""

    kind: object = None
    api_version: object = None
    log_events: Raw = _NOTHING
    events: Raw = _NOTHING
    results: Raw = _NOTHING
    value: Raw = _NOTHING
    records: Raw = _NOTHING
    properties: Raw = _NOTHING
    streams: Raw = _NOTHING
    data: Raw = _NOTHING
    result: Raw = _NOTHING
    values: Raw = _NOTHING
    hits: Raw = _NOTHING
    source: Raw = field(default=_NOTHING, name="_source")
    line: Raw = _NOTHING
    log: Raw = _NOTHING
    log_s: Raw = field(default=_NOTHING, name="log_s")
    message: Raw = _NOTHING
    at_message: Raw = field(default=_NOTHING, name="@message")
    proto_payload: Raw = _NOTHING

    @property
    def parts(self) -> Iterator[bytes]:
        """What may contain events."""
        for name in _PARTS:
            part = getattr(self, name)
            if part is not _NOTHING:
                yield bytes(part)


_PARTS: Final = tuple(name for name in _Envelope.__struct_fields__ if name not in {"kind", "api_version"})


class _Principal(Struct, frozen=True, rename="camel"):
    principal_email: str = ""


class _RpcStatus(Struct, frozen=True):
    code: int = 0
    message: str = ""


class _Payload(Struct, frozen=True, rename="camel"):
    """What Google Cloud Logging has of an event, as `google.cloud.audit.AuditLog`."""

    service_name: str = ""
    method_name: str = ""
    resource_name: str = ""
    authentication_info: _Principal = _Principal()
    status: _RpcStatus = _RpcStatus()
    request: Raw = _NOTHING
    response: Raw = _NOTHING


class _Entry(Struct, frozen=True, rename="camel"):
    proto_payload: _Payload
    timestamp: str = ""
    labels: dict[str, str] = field(default_factory=dict)


_envelope: Final = msgspec.json.Decoder(_Envelope)
_entry: Final = msgspec.json.Decoder(_Entry)
_list: Final = msgspec.json.Decoder(list[Raw])
_string: Final = msgspec.json.Decoder(str)


def events(text: bytes, depth: int = 0) -> Iterator[bytes]:
    """Yield every audit event in a JSON value; what is broken, or too deep, as it is."""
    try:
        parts = _opened(text) if depth < MAX_DEPTH else None
    except (ValueError, RecursionError):
        parts = None
    if parts is not None:
        for part in parts:
            yield from events(part, depth + 1)
    elif _MARKER in text:
        # An event, or one that a service has cut off because it was too long.
        yield text


def _opened(text: bytes) -> Iterator[bytes] | None:
    """Return what a value contains; None if it is an event. Raises ValueError or RecursionError if it is broken."""
    start = text[:1]
    if start == b"[":
        return map(bytes, _list.decode(text))
    if start == b'"':
        return iter([_string.decode(text).strip().encode()])
    if start != b"{":
        return iter(())
    envelope = _envelope.decode(text)
    if envelope.proto_payload is not _NOTHING:
        return _from_google(text)
    if envelope.kind is None:
        return envelope.parts
    is_event = envelope.kind == "Event" and str(envelope.api_version).startswith(AUDIT)
    return None if is_event else iter(())


def _from_google(text: bytes) -> Iterator[bytes]:
    """Return the event that an entry of Google Cloud Logging shows, unless it is about something else."""
    entry = _entry.decode(text)
    payload = entry.proto_payload
    if payload.service_name != _KUBERNETES:
        return iter(())
    verb = payload.method_name.rpartition(".")[2]
    event: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": f"{AUDIT}v1",
        "stage": "ResponseComplete",
        "verb": verb,
        "user": {"username": payload.authentication_info.principal_email},
        "objectRef": _reference(payload.resource_name),
        "responseStatus": {"code": _HTTP_OF_RPC.get(payload.status.code, 500), "message": payload.status.message},
        "stageTimestamp": entry.timestamp,
        "annotations": entry.labels,
        "requestObject": payload.request,
        "responseObject": payload.response,
    }
    if verb == "deletecollection":
        # Which objects is not said, so it does not count as a deletion of all.
        event["requestURI"] = "?labelSelector="
    return iter([msgspec.json.encode(event)])


def _reference(name: str) -> dict[str, str]:
    """`coordination.k8s.io/v1/namespaces/shop/leases/checkout` as an objectRef."""
    group, version, *rest = [*name.split("/"), "", ""]
    namespace = ""
    if rest[0] == "namespaces" and rest[2:3] not in ([], [""]):
        namespace, rest = rest[1], rest[2:]
    resource, name, subresource = (*rest, "", "", "")[:3]
    return {
        "apiGroup": "" if group == "core" else group,
        "apiVersion": version,
        "namespace": namespace,
        "resource": resource,
        "name": name,
        "subresource": subresource,
    }
