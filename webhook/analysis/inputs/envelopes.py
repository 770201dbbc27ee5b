"""Audit events in the objects in which log services and collectors deliver them.

CloudWatch, Azure, Loki, Vector and others put the line of the log, as a string, somewhere into objects and arrays of
their own, Datadog and Elasticsearch the event itself. Google Cloud makes an object of another form of each event, whose
parts are mapped back.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct, field

from webhook.kubernetes.times import format_micro_time, parse_seconds

AUDIT: Final = "audit.k8s.io/"
MAX_DEPTH: Final = 12
"""Objects, arrays and strings around an event: Loki's answers have seven, and collectors are put behind each other."""

_NOTHING: Final = Raw(b"null")
_HTTP_OF_RPC: Final[Mapping[int, int]] = {
    0: 200, 1: 499, 2: 500, 3: 400, 4: 504, 5: 404, 6: 409, 7: 403, 8: 429, 9: 400, 10: 409, 11: 400, 12: 501, 13: 500,
    14: 503, 15: 500, 16: 401,
}  # fmt: skip
"""HTTP statuses, as google.rpc.Code maps its own values to them."""


class LogService(Struct, frozen=True):
    """A service or collector whose deliveries are read: how to get a file of one, and where in it the events are.

    `shown_paths` are those of docs/why.md, as jq writes them. Their keys are followed at any depth and from any of them
    on, because people take arrays apart with jq, and collectors are put behind each other.
    """

    name: str
    how_to_get: str
    shown_paths: tuple[str, ...] = ()
    remark: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of its paths, in order."""
        return tuple(key for path in self.shown_paths for key in path.replace("[]", "").split(".") if key)


SERVICES: Final = (
    LogService(
        "CloudWatch (EKS)",
        "`aws logs filter-log-events`, `aws logs get-query-results`, the export of Logs Insights as JSON, "
        "objects that a subscription writes to S3",
        ("events[].message", "results[][].value", "@message", "logEvents[].message"),
    ),
    LogService(
        "AKS",
        "diagnostic settings (`kube-audit`, `kube-audit-admin`) to an event hub or a storage account; "
        "`AzureDiagnostics` as JSON",
        ("records[].properties.log", "properties.log", "log_s"),
    ),
    LogService(
        "Google Cloud Logging (GKE)",
        "`gcloud logging read --format json`, a sink to a bucket",
        remark="`protoPayload`: see below",
    ),
    LogService(
        "OpenShift's collector",
        "what its forwarder writes",
        remark="the event, which has keys of its own among others (`k8s_audit_level`)",
    ),
    LogService(
        "Loki",
        "its query API, `logcli query -o jsonl`",
        ("data.result[].values", "streams[].values", "line"),
    ),
    LogService(
        "Datadog",
        "its API (`POST /api/v2/logs/events/search`), or the logs of its answers, one for each line",
        ("data[].attributes.attributes", "data[].attributes.message"),
    ),
    LogService("Vector, Fluent Bit, Filebeat", "JSON, one object for each line", ("message", "log")),
    LogService("Elasticsearch, OpenSearch", "a search", ("hits.hits[]._source",)),
)
"""The services whose envelopes are opened, in the order of docs/why.md."""

KEYS_IN_ORDER: Final = (
    # What holds objects of a service, which no event has.
    "events", "logEvents", "records", "data", "result", "results", "streams", "hits",
    # The event itself, or what else a service keeps of a log: before a text, which a service may have cut off.
    "_source", "attributes", "properties",
    # Texts, which may be a name of the log instead of its line.
    "message", "@message", "value", "values", "line", "log", "log_s",
)  # fmt: skip
"""The keys of all services, by priority: of several that an object has, the first that holds an event is read alone.

A key of several services has one place, because nobody asks which service it was.
"""


class _Principal(Struct, frozen=True, rename="camel"):
    principal_email: str = ""


class _RpcStatus(Struct, frozen=True):
    code: int = 0
    message: str = ""


class _Payload(Struct, frozen=True, rename="camel"):
    """An event in Google Cloud Logging, a `google.cloud.audit.AuditLog`."""

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


_envelope: Final = msgspec.json.Decoder(dict[str, Raw])
_entry: Final = msgspec.json.Decoder(_Entry)
_list: Final = msgspec.json.Decoder(list[Raw])
_string: Final = msgspec.json.Decoder(str)


def find_events(text: bytes, depth: int = 0) -> Iterator[bytes]:
    """Yield every audit event in a JSON value; what is broken, or too deep, as it is."""
    try:
        readings = _open_envelope(text) if depth < MAX_DEPTH else None
    except (ValueError, RecursionError):
        readings = None
    if readings is None:
        if b"audit.k8s.io" in text:
            # An event, or one that a service has cut off because it was too long.
            yield text
        return
    for parts in readings:
        has_event = False
        for part in parts:
            for event in find_events(part, depth + 1):
                has_event = True
                yield event
        if has_event:
            return


def _open_envelope(text: bytes) -> Iterable[Iterable[bytes]] | None:
    """Return what a value contains: the first of these that has events has them all. None if it is an event.

    Raises ValueError or RecursionError if it is broken.
    """
    start = text[:1]
    if start == b"[":
        return [map(bytes, _list.decode(text))]
    if start == b'"':
        return [[_string.decode(text).strip().encode()]]
    if start != b"{":
        return []
    envelope = _envelope.decode(text)
    if "protoPayload" in envelope:
        return [_read_google_entry(text)]
    kind, version = (msgspec.json.decode(envelope.get(key, _NOTHING)) for key in ("kind", "apiVersion"))
    if kind is None:
        return ([bytes(envelope[key])] for key in KEYS_IN_ORDER if key in envelope)
    return None if kind == "Event" and str(version).startswith(AUDIT) else []


def _read_google_entry(text: bytes) -> Iterator[bytes]:
    """Return the event that an entry of Google Cloud Logging shows, unless it is about something else."""
    entry = _entry.decode(text)
    payload = entry.proto_payload
    if payload.service_name != "k8s.io":
        return iter(())
    verb = payload.method_name.rpartition(".")[2]
    event: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": f"{AUDIT}v1",
        "stage": "ResponseComplete",
        "verb": verb,
        "user": {"username": payload.authentication_info.principal_email},
        "objectRef": _parse_reference(payload.resource_name),
        "responseStatus": {"code": _HTTP_OF_RPC.get(payload.status.code, 500), "message": payload.status.message},
        "stageTimestamp": _format_time(entry.timestamp),
        "annotations": entry.labels,
        "requestObject": payload.request,
        "responseObject": payload.response,
    }
    if verb == "deletecollection":
        # Which objects is not said, so it does not count as a deletion of all.
        event["requestURI"] = "?labelSelector="
    return iter([msgspec.json.encode(event)])


def _format_time(text: str) -> str:
    """Return a time of Cloud Logging, whose fraction has up to nine digits, as an API server writes it."""
    try:
        return format_micro_time(parse_seconds(text))
    except ValueError:
        return text


def _parse_reference(name: str) -> dict[str, str]:
    """Return `coordination.k8s.io/v1/namespaces/shop/leases/checkout` as an objectRef."""
    group, version, *rest = [*name.split("/"), "", ""]
    namespace = ""
    if rest[0] == "namespaces" and rest[2:3] not in ([], [""]):
        namespace, rest = rest[1], rest[2:]
    shown = dict(zip(("resource", "name", "subresource"), (*rest, "", ""), strict=False))
    return {"apiGroup": "" if group == "core" else group, "apiVersion": version, "namespace": namespace} | shown
