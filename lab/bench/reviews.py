"""The reviews that are sent, each with the answer that the rules of the standard policy demand."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from tests.factories import (
    UID,
    Document,
    Tweak,
    drop,
    make_candidate,
    make_entry,
    make_lease,
    make_review,
    make_user,
    put,
    to_bytes,
)

ALLOWED: Final = 200


class Case(Struct, frozen=True):
    """A review and its known answer; `code` is ALLOWED, or the code inside the denial."""

    name: str
    body: bytes
    code: int = ALLOWED
    uid: str = UID

    @property
    def allowed(self) -> bool:
        """True if the write must be let through."""
        return self.code == ALLOWED


SPEC_FIELDS: Final = ("acquireTime", "holderIdentity", "leaseDurationSeconds", "leaseTransitions", "renewTime")
LATER: Final = "2025-11-20T12:00:02Z"
"""Two seconds after the last write of the factories' lease: when a client renews."""


def make_renewal(*tweaks: Tweak) -> Document:
    """Return the factories' lease after its holder's next renewal, stamped by the API server, then changed."""
    return make_lease(
        put("metadata.managedFields", [make_entry(*SPEC_FIELDS, time=LATER)]),
        put("spec.renewTime", "2025-11-20T12:00:02.000000Z"),
        *tweaks,
    )


def make_update(*tweaks: Tweak, old: Document | None = None, user: Document | None = None) -> bytes:
    """Return the bytes of an UPDATE from the factories' lease to `make_renewal(*tweaks)`."""
    review = make_review(new=make_renewal(*tweaks), old=old or make_lease())
    if user:
        review["request"]["userInfo"] = user
    return to_bytes(review)


_TOKEN: Final = {
    "authentication.kubernetes.io/node-name": ["n1"],
    "authentication.kubernetes.io/node-uid": ["ecd956e5-a5aa-4ba8-9651-f38d8033c2f1"],
    "authentication.kubernetes.io/pod-name": ["checkout-6d5f9c-x2x8p"],
    "authentication.kubernetes.io/pod-uid": ["a628a700-7c4a-4b31-8d95-a946f383b9ec"],
}


def make_renewal_case(size: int = 2400) -> Case:
    """Return a plain renewal of about `size` bytes, as kube-apiserver 1.36 sends it.

    Larger ones grow as real ones do: by managedFields entries of other managers, in both objects.
    """
    user = make_user(put("extra", _TOKEN))
    entries: list[Document] = []
    while len(body := make_update(_put_entries(entries), old=make_lease(_put_entries(entries)), user=user)) < size:
        average = 2 * len(json.dumps(_make_label_entry(0), separators=(",", ":")))
        entries += [_make_label_entry(len(entries) + n) for n in range(max(1, (size - len(body)) // (average + 14)))]
    return Case(f"a renewal of {len(body)} bytes", body)


def make_long_identity_case(size: int) -> Case:
    """Return a renewal whose unchanged holderIdentity fills it with escaped `<`, as etcd's limit permits."""
    lease = make_lease(put("spec.holderIdentity", "<" * max(1, (size - 2400) // 12)))
    body = make_update(put("spec.holderIdentity", lease["spec"]["holderIdentity"]), old=lease)
    return Case(f"a renewal of {len(body)} bytes, nearly all of it the holder", body)


def _make_label_entry(number: int) -> Document:
    return {
        "manager": f"manager-{number}",
        "operation": "Update",
        "apiVersion": "coordination.k8s.io/v1",
        "time": "2025-11-20T11:30:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {".": {}, **{f"f:label-{number}-{n}": {} for n in range(9)}}}},
    }


def _put_entries(entries: list[Document]) -> Tweak:
    def tweak(document: Document) -> None:
        document["metadata"]["managedFields"] += entries

    return tweak


# ---- a mixture with known answers -----------------------------------------------------------------------------------

_STRANGER: Final = make_user(
    put("username", "system:serviceaccount:billing:intruder"),
    put("groups", ["system:serviceaccounts", "system:serviceaccounts:billing", "system:authenticated"]),
    put("extra", {"authentication.kubernetes.io/pod-name": ["intruder-1"]}),
)
_NODE: Final = make_user(
    put("username", "system:node:n1"), put("groups", ["system:nodes", "system:authenticated"]), drop("extra")
)
_APISERVER: Final = make_user(put("username", "system:apiserver"), put("groups", ["system:masters"]), drop("extra"))
_TAKEN: Final = (put("spec.holderIdentity", "checkout-6d5f9c-zzzzz_77aa"), put("spec.leaseTransitions", 6))


def _put_time(time: str) -> Tweak:
    return put("metadata.managedFields", [make_entry(*SPEC_FIELDS, time=time)])


def _create(*tweaks: Tweak, user: Document | None = None) -> bytes:
    review = make_review(new=make_lease(*tweaks))
    if user:
        review["request"]["userInfo"] = user
    return to_bytes(review)


def _make_candidate(*tweaks: Tweak) -> bytes:
    return to_bytes(make_review(new=make_candidate(*tweaks)))


def _make_candidate_update(*tweaks: Tweak) -> bytes:
    return to_bytes(make_review(new=make_candidate(*tweaks), old=make_candidate()))


def _review(*tweaks: Tweak) -> bytes:
    return to_bytes(make_review(*tweaks, new=make_renewal(), old=make_lease()))


def _format_future(**how: float) -> str:
    """Return a moment of today's clock; servers evaluate by theirs."""
    return (datetime.now(UTC) + timedelta(**how)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def list_mixture() -> list[Case]:
    """Return honest and hostile writes with the verdicts of the standard policy."""
    expired = "2025-11-20T12:00:20Z"
    allowed = {
        "renewal": make_update(),
        "renewal with a shorter duration": make_update(put("spec.leaseDurationSeconds", 10)),
        "renewal by a stranger (no binding)": make_update(user=_STRANGER),
        "label by its owner": make_update(put("metadata.labels", {"app": "checkout"})),
        "takeover after expiry": make_update(*_TAKEN, _put_time(expired)),
        "takeover after expiry from another namespace": make_update(*_TAKEN, _put_time(expired), user=_STRANGER),
        "early takeover in its own namespace": make_update(*_TAKEN),
        "early takeover by the API server": make_update(*_TAKEN, user=_APISERVER),
        "release": make_update(put("spec.holderIdentity", ""), put("spec.leaseDurationSeconds", 1)),
        "release by null": make_update(drop("spec.holderIdentity")),
        "claim": make_update(*_TAKEN, old=make_lease(put("spec.holderIdentity", ""))),
        "transitions reset to 0": make_update(put("spec.leaseTransitions", 0)),
        "transitions removed": make_update(drop("spec.leaseTransitions")),
        "a jump of 5 transitions": make_update(put("spec.leaseTransitions", 10)),
        "a duration of two days": make_update(put("spec.leaseDurationSeconds", 172_800)),
        "renewTime an hour back": make_update(put("spec.renewTime", "2025-11-20T10:59:00.000000Z")),
        "renewTime an hour ahead": make_update(put("spec.renewTime", _format_future(hours=1))),
        "a zero-width space in the holder": make_update(
            put("spec.holderIdentity", "check\u200bout"), _put_time(expired)
        ),
        "create": _create(),
        "create without a spec": _create(drop("spec"), drop("metadata.managedFields")),
        "create with an empty spec": _create(put("spec", {}), drop("metadata.managedFields")),
        "create by a stranger": _create(user=_STRANGER),
        "delete": to_bytes(make_review(old=make_lease())),
        "delete by a stranger": to_bytes(make_review(put("request.userInfo", _STRANGER), old=make_lease())),
        "delete of a collection": to_bytes(make_review(put("request.name", ""), old=make_lease())),
        "candidate": _make_candidate(),
        "candidate renewal": _make_candidate_update(put("spec.renewTime", "2025-11-20T12:00:02.000000Z")),
        "candidate of another version": _make_candidate_update(put("spec.binaryVersion", "1.37.0")),
        "a foreign resource": _review(put("request.resource.resource", "pods"), put("request.kind.kind", "Pod")),
        "a subresource": _review(put("request.subResource", "status")),
        "no userInfo": _review(drop("request.userInfo")),
    }
    unprocessable = {
        "duration 0": make_update(put("spec.leaseDurationSeconds", 0)),
        "duration -1": _create(put("spec.leaseDurationSeconds", -1)),
        "duration 2^31": make_update(put("spec.leaseDurationSeconds", 2**31)),
        "duration of 68 years": make_update(put("spec.leaseDurationSeconds", 2**31 - 1)),
        "duration as text": make_update(put("spec.leaseDurationSeconds", "15")),
        "duration true": make_update(put("spec.leaseDurationSeconds", True)),
        "duration 1.0": make_update(put("spec.leaseDurationSeconds", 1.5)),
        "transitions -1": make_update(put("spec.leaseTransitions", -1)),
        "transitions to the last int32": make_update(put("spec.leaseTransitions", 2**31 - 1)),
        "renewTime in ten years": make_update(put("spec.renewTime", _format_future(days=3650))),
        "renewTime in the year 10000": make_update(put("spec.renewTime", "9999-12-31T23:59:59.999999-01:00")),
        "renewTime is not a time": make_update(put("spec.renewTime", "tomorrow")),
        "a holder of 5000 bytes": make_update(put("spec.holderIdentity", "x" * 5000), _put_time(expired)),
        "a newline in the holder": make_update(put("spec.holderIdentity", "a\nb"), _put_time(expired)),
        "a bad label": make_update(put("metadata.labels", {"-bad-": "x"})),
        "uid changed": make_update(put("metadata.uid", "6a1d4c52-8f4e-4d53-9d0c-000000000000")),
        "preferredHolder without a strategy": _create(put("spec.preferredHolder", "x"), user=_APISERVER),
        "a bad lease name": to_bytes(
            make_review(put("request.name", "Bad_Name"), new=make_lease(put("metadata.name", "Bad_Name")))
        ),
        "spec is a list": make_update(put("spec", [])),
        "candidate without leaseName": _make_candidate(drop("spec.leaseName")),
        "candidate without strategy": _make_candidate(drop("spec.strategy")),
        "candidate with v1.2.3": _make_candidate(put("spec.binaryVersion", "v1.2.3")),
        "candidate emulating a later version": _make_candidate(put("spec.emulationVersion", "1.99.0")),
        "candidate moved to another lease": _make_candidate_update(put("spec.leaseName", "other")),
        "dryRun option unknown": _review(put("request.options.dryRun", ["Some"])),
    }
    forbidden = {
        "steal from another namespace": make_update(*_TAKEN, user=_STRANGER),
        "steal by a node": make_update(*_TAKEN, user=_NODE),
        "strategy by a service account": make_update(put("spec.strategy", "OldestEmulationVersion")),
        "managedFields emptied": make_update(drop("metadata.managedFields")),
        "managedFields an empty list": make_update(put("metadata.managedFields", [])),
        "stamp set back": make_update(
            put("spec.renewTime", "2025-11-20T12:00:00.000000Z"), _put_time("2025-11-20T11:00:00Z")
        ),
        "pingTime by a service account": _make_candidate(put("spec.pingTime", "2025-11-20T12:00:00.000000Z")),
    }
    bad_request = {
        "UPDATE without oldObject": _review(put("request.oldObject", None)),
        "object null": _review(put("request.object", None)),
        "another name": _review(put("request.name", "other")),
        "operation PATCH": _review(put("request.operation", "PATCH")),
        "kind and resource disagree": _review(put("request.resource.resource", "pods")),
    }
    groups: list[tuple[int, dict[str, Any]]] = [
        (ALLOWED, allowed), (422, unprocessable), (403, forbidden), (400, bad_request)
    ]  # fmt: skip
    return [Case(name, body, code) for code, group in groups for name, body in group.items()]
