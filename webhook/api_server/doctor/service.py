"""Checks of what an API server calls: the Service of a webhook, its port, and whether an endpoint is ready.

An object that was not read, or that a file lacks, has no finding.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct, ValidationError, convert

from webhook.api_server.doctor.documents import ClusterObject, Documents, ServiceReference, WebhookEntry, report_danger
from webhook.findings import ReportFinding

_UNREACHABLE: Final = (
    "no API server reaches the webhook, so no write is reviewed: all are admitted under Ignore and rejected under Fail."
)
_TARGET_PORT: Final = (
    "let targetPort of the Service be a port at which the container listens; the shipped one is `webhook`, 8443."
)
_OF_SERVICE: Final = "kubernetes.io/service-name"


class _Port(Struct, frozen=True):
    port: int
    name: str | None = None
    protocol: str | None = None


class _ServiceSpec(Struct, frozen=True):
    ports: tuple[_Port, ...] | None = None
    type: str | None = None


def check_service(entry: WebhookEntry, documents: Documents) -> Iterator[ReportFinding]:
    """The Service that an entry names exists, has the port, and leads to a ready endpoint."""
    reference = entry.webhook.client_config.service
    if reference is None:
        return
    service = documents.find_in("Service", reference.namespace, reference.name)
    if service is None:
        if documents.shows("Service", reference.namespace):
            yield entry.report(
                "service-missing",
                f"clientConfig.service: {reference.place} does not exist",
                _UNREACHABLE,
                "apply the overlay again, or name the Service of the webhook's pods.",
            )
        return
    try:
        spec = convert(service.spec, _ServiceSpec)
    except ValidationError:
        return  # no API server returns it
    if spec.type == "ExternalName":
        return  # it has neither ports nor endpoints
    ports = [one for one in spec.ports or () if one.protocol in {None, "TCP"}]
    port = next((one for one in ports if one.port == reference.number), None)
    if port is None:
        numbers = ", ".join(str(one.port) for one in ports) or "none"
        yield entry.report(
            "service-port-missing",
            f"clientConfig.service.port: {reference.number}; Service {reference.place} has {numbers}",
            _UNREACHABLE,
            "name a port of the Service there; 443 is the port of the shipped one, and the default.",
        )
    elif documents.shows("EndpointSlice", reference.namespace):
        yield from _check_endpoints(reference, port.name or "", documents)


def _check_endpoints(reference: ServiceReference, port: str, documents: Documents) -> Iterable[ReportFinding]:
    slices = [one for one in documents.find_all("EndpointSlice") if _is_of_service(one, reference)]
    endpoints = [(one, endpoint) for one in slices for endpoint in one.endpoints]
    ready = [one for one, endpoint in endpoints if endpoint.is_ready]
    if not ready:
        yield report_danger(
            "no-ready-endpoint",
            f"Service {reference.place}: {_count_ready(len(endpoints))}",
            _UNREACHABLE,
            f"see why no pod is ready: kubectl -n {reference.namespace} get pods; if there are pods, and no endpoints,"
            " the Service selects other labels.",
        )
    elif not any(port == (one.name or "") for slice_ in ready for one in slice_.ports):
        yield report_danger(
            "target-port-missing",
            f"Service {reference.place}: no ready endpoint has the port {port}",
            _UNREACHABLE,
            _TARGET_PORT,
        )


def _is_of_service(endpoint_slice: ClusterObject, reference: ServiceReference) -> bool:
    is_named = (endpoint_slice.metadata.labels or {}).get(_OF_SERVICE) == reference.name
    return is_named and endpoint_slice.metadata.namespace == reference.namespace


def _count_ready(endpoints: int) -> str:
    return f"none of {endpoints} endpoints is ready" if endpoints else "it has no endpoints"


def report_closed_port(reference: ServiceReference) -> ReportFinding:
    """Return the finding that nothing listens where a Service leads."""
    return report_danger(
        "target-port-closed",
        f"Service {reference.place}, port {reference.number}: nothing listens there in the pod",
        _UNREACHABLE,
        _TARGET_PORT,
    )


def find_called_services(entries: Sequence[WebhookEntry]) -> dict[tuple[str, int], WebhookEntry]:
    """Return one entry for each Service and port that entries name."""
    found: dict[tuple[str, int], WebhookEntry] = {}
    for entry in entries:
        if service := entry.webhook.client_config.service:
            found.setdefault((service.place, service.number), entry)
    return found
