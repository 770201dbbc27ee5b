"""Valid documents as JSON values, each changed by tweaks: start from one that is right, change one thing.

    make_review(new=make_lease(put("spec.leaseDurationSeconds", -1)))

A tweak is any function that changes a document in place; `put` and `drop` make the usual ones. In a path, `.` steps
into an object and a number into a list; write a key that holds a dot in brackets: `metadata.labels[a.b/c]`.
"""

import copy
import json
import re
from collections.abc import Callable
from typing import Any, Final

Document = dict[str, Any]
Tweak = Callable[[Document], None]

NOW: Final = 1_763_640_000_000_000
"""2025-11-20T12:00:00Z in microseconds since 1970: when every document here is written."""
WRITTEN: Final = "2025-11-20T12:00:00Z"
RENEWED: Final = "2025-11-20T12:00:00.000000Z"
UID: Final = "0e7b6f1c-4d6a-4b0e-9a53-3c1f6a3b2d10"
HOLDER: Final = "checkout-6d5f9c-x2x8p_1f0e"
KEEPER: Final = "system:serviceaccount:shop:checkout"

_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[([^\]]+)\]")


def put(path: str, value: Any) -> Tweak:
    """Set the value at `path`, making the objects on the way."""
    *way, last = _steps(path)

    def tweak(document: Document) -> None:
        place: Any = document
        for step in way:
            place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
        if isinstance(place, list):
            place[int(last)] = value
        else:
            place[last] = value

    return tweak


def drop(path: str) -> Tweak:
    """Remove the key or item at `path`, which must be there."""
    *way, last = _steps(path)

    def tweak(document: Document) -> None:
        place: Any = document
        for step in way:
            place = place[int(step) if isinstance(place, list) else step]
        del place[int(last) if isinstance(place, list) else last]

    return tweak


def changed(document: Document, *tweaks: Tweak) -> Document:
    """A changed copy."""
    document = copy.deepcopy(document)
    for tweak in tweaks:
        tweak(document)
    return document


def make_lease(*tweaks: Tweak) -> Document:
    """A Lease, held and renewed at NOW by the service account `shop/checkout`, as the API server stored it."""
    return changed(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": "checkout",
                "namespace": "shop",
                "uid": "6a1d4c52-8f4e-4d53-9d0c-5a2f5f0c7e11",
                "resourceVersion": "4711",
                "creationTimestamp": "2025-11-20T11:00:00Z",
                "managedFields": [
                    make_entry("acquireTime", "holderIdentity", "leaseDurationSeconds", "leaseTransitions", "renewTime")
                ],
            },
            "spec": {
                "holderIdentity": HOLDER,
                "leaseDurationSeconds": 15,
                "acquireTime": "2025-11-20T11:00:00.000000Z",
                "renewTime": RENEWED,
                "leaseTransitions": 5,
            },
        },
        *tweaks,
    )


def make_candidate(*tweaks: Tweak) -> Document:
    """A LeaseCandidate v1beta1 for the lease `checkout`."""
    return changed(
        {
            "apiVersion": "coordination.k8s.io/v1beta1",
            "kind": "LeaseCandidate",
            "metadata": {
                "name": "checkout-6d5f9c-x2x8p_1f0e",
                "namespace": "shop",
                "uid": "c8a2d1de-1a5e-4d57-8d5c-02b8a1f3e9aa",
                "resourceVersion": "4712",
                "creationTimestamp": "2025-11-20T11:00:00Z",
                "managedFields": [
                    {
                        **make_entry("binaryVersion", "emulationVersion", "leaseName", "renewTime", "strategy"),
                        "apiVersion": "coordination.k8s.io/v1beta1",
                    }
                ],
            },
            "spec": {
                "leaseName": "checkout",
                "renewTime": RENEWED,
                "binaryVersion": "1.36.3",
                "emulationVersion": "1.36.0",
                "strategy": "OldestEmulationVersion",
            },
        },
        *tweaks,
    )


def as_version(version: str) -> Tweak:
    """A candidate as that version has it: v1alpha1 lists its strategies."""

    def tweak(document: Document) -> None:
        document["apiVersion"] = f"coordination.k8s.io/{version}"
        if version == "v1alpha1":
            document["spec"]["preferredStrategies"] = [document["spec"].pop("strategy")]

    return tweak


def make_entry(*spec_fields: str, manager: str = "checkout", time: str = WRITTEN) -> Document:
    """One entry of metadata.managedFields that owns these fields of spec."""
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "coordination.k8s.io/v1",
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {f"f:{name}": {} for name in spec_fields}},
    }


def make_user(*tweaks: Tweak) -> Document:
    """`userInfo` of the service account `shop/checkout`, with a token bound to the holder's pod."""
    return changed(
        {
            "username": KEEPER,
            "uid": "7c1b4a5e-2d0f-4d8e-8a77-0f3f5be1a001",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"],
            "extra": {"authentication.kubernetes.io/pod-name": ["checkout-6d5f9c-x2x8p"]},
        },
        *tweaks,
    )


def make_review(*tweaks: Tweak, new: Document | None = None, old: Document | None = None) -> Document:
    """An AdmissionReview v1: CREATE of `new`, UPDATE of `old` to `new`, or DELETE of `old`.

    With neither, the CREATE of `make_lease()`.
    """
    if new is None and old is None:
        new = make_lease()
    named: Document = new or old or {}
    if old is None:
        operation = "CREATE"
    else:
        operation = "UPDATE" if new else "DELETE"
    group, _, version = named["apiVersion"].partition("/")
    kind = {"group": group, "version": version, "kind": named["kind"]}
    resource = {"group": group, "version": version, "resource": f"{named['kind'].lower()}s"}
    return changed(
        {
            "kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1",
            "request": {
                "uid": UID,
                "kind": kind,
                "resource": resource,
                "requestKind": kind,
                "requestResource": resource,
                "name": named["metadata"].get("name", ""),
                "namespace": named["metadata"].get("namespace", ""),
                "operation": operation,
                "userInfo": make_user(),
                "object": new,
                "oldObject": old,
                "dryRun": False,
                "options": {"kind": f"{operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"},
            },
        },
        *tweaks,
    )


def to_bytes(document: Any) -> bytes:
    """The document as the API server sends one."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode() + b"\n"


def _steps(path: str) -> list[str]:
    return [plain or bracketed for plain, bracketed in _STEP.findall(path)]


STAMP_ENTRY: Final[Document] = {
    "manager": "lease-webhook-stamp",
    "operation": "Update",
    "apiVersion": "coordination.k8s.io/v1",
    "time": "2000-01-01T00:00:00Z",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:metadata": {"f:annotations": {"f:lease-webhook/stamp": {}}}},
}
"""The entry that the policies of deploy/stamp leave in managedFields."""
