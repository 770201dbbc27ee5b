"""A recorded case becomes the AdmissionReview that would carry it, its texts spliced in as they stand."""

import json
from typing import Any

Case = dict[str, Any]


def review_of(case: Case) -> bytes:
    """The review of one case. The objects are the recorded bytes, so number forms, escapes and noise survive."""
    group_version_kind = {
        "group": "coordination.k8s.io",
        "version": case["version"],
        "kind": "Lease" if case["resource"] == "leases" else "LeaseCandidate",
    }
    request = {
        "uid": case["id"],
        "kind": group_version_kind,
        "resource": {
            "group": "coordination.k8s.io",
            "version": case["version"],
            "resource": case["resource"],
        },
        "namespace": namespace_of(case),
        "operation": case["operation"],
        "userInfo": {"username": "system:apiserver"},
    }
    head = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"})
    parts = json.dumps(request)
    return (
        f'{head[:-1]}, "request": {parts[:-1]}, "object": {text_of(case, "object")}, '
        f'"oldObject": {text_of(case, "oldObject")}}}}}'
    ).encode("utf-8", "surrogatepass")


def text_of(case: Case, role: str) -> str:
    """The recorded text of an object, or its JSON.

    A request whose body is `null` makes an empty object, and that is what a webhook would be shown.
    """
    text = case.get(f"{role}Text")
    if text is not None:
        return str(text)
    if role == "object" and case[role] is None:
        return "{}"
    return json.dumps(case[role], ensure_ascii=False)


def namespace_of(case: Case) -> str:
    """The namespace of the request's path: the recorded one, else that of an object, else `default`."""
    for source in (case.get("namespace"), *(_namespace(case[role]) for role in ("oldObject", "object"))):
        if source and isinstance(source, str):
            return source
    return "default"


def _namespace(document: Any) -> Any:
    metadata = document.get("metadata") if isinstance(document, dict) else None
    return metadata.get("namespace") if isinstance(metadata, dict) else None
