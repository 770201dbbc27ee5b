"""Events of an API server's audit log about one Lease, each part changeable."""

from typing import Any

from tests.factories import Document, Tweak, changed, make_lease


def make_event(*tweaks: Tweak) -> Document:
    """An update of the lease `shop/checkout` that was stored; keys stand in the order of Go's struct."""
    return changed(
        {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "RequestResponse",
            "auditID": "6fd13d2e-1bb6-4f4c-9b9a-0a8b6f0c7a11",
            "stage": "ResponseComplete",
            "requestURI": "/apis/coordination.k8s.io/v1/namespaces/shop/leases/checkout",
            "verb": "update",
            "user": {
                "username": "system:serviceaccount:shop:checkout",
                "groups": ["system:serviceaccounts"],
                "extra": {"authentication.kubernetes.io/pod-name": ["checkout-6d5f9c-x2x8p"]},
            },
            "sourceIPs": ["10.0.0.7"],
            "userAgent": "operator/v1.2",
            "objectRef": {
                "resource": "leases",
                "namespace": "shop",
                "name": "checkout",
                "apiGroup": "coordination.k8s.io",
                "apiVersion": "v1",
            },
            "responseStatus": {"metadata": {}, "code": 200},
            "requestObject": make_lease(),
            "responseObject": make_lease(),
            "requestReceivedTimestamp": "2025-11-20T12:00:00.100000Z",
            "stageTimestamp": "2025-11-20T12:00:00.104000Z",
            "annotations": {"authorization.k8s.io/decision": "allow"},
        },
        *tweaks,
    )


def watched(lease: Document, event: str = "MODIFIED") -> dict[str, Any]:
    """An event of a watch."""
    return {"type": event, "object": lease}
