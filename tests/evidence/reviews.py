"""A write of a Lease as the review that an API server sends, and what the strict policy says of it."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from tests.evidence.stamping import SUFFIX
from webhook.admission.policy.model import Policy
from webhook.admission.policy.parse import parse
from webhook.admission.rules.mode import Mode
from webhook.server.reviewer import respond

STRICT: Final[Policy] = parse("apiVersion: lease-webhook/v1\npreset: strict\n")

LISTED: Final[Policy] = parse(
    f"apiVersion: lease-webhook/v1\npreset: strict\nstamps: [{{suffix: {SUFFIX}, namespaces: [shop]}}]\n"
)
"""The same, which believes stamps."""

TAMPERED: Final = "renewal-stamp-tampered"
WITHOUT_STAMPS: Final = "lease-without-stamps"
OF_A_LIVE_LEASE: Final = frozenset(
    {
        "takeover-before-expiry",
        "takeover-across-namespaces",
        "foreign-release",
        "foreign-writer",
        "foreign-release-across-namespaces",
        "live-lease-deleted",
    }
)
"""The rules that speak of a live lease alone; `strict` denies by each of them."""

ATTACKER: Final[Mapping[str, Any]] = {
    "username": "system:serviceaccount:other:mallory",
    "groups": ["system:serviceaccounts", "system:serviceaccounts:other", "system:authenticated"],
    "extra": {"authentication.kubernetes.io/pod-name": ["mallory-0"]},
}
INSIDER: Final[Mapping[str, Any]] = {
    "username": "system:serviceaccount:shop:checkout",
    "groups": ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"],
    "extra": {
        "authentication.kubernetes.io/pod-name": ["mallory-0"],
        "authentication.kubernetes.io/pod-uid": ["uid-of-mallory-0"],
    },
}
"""Another pod of the electors' service account: the hardest to tell from them."""
PERSON: Final[Mapping[str, Any]] = {"username": "admin", "groups": ["system:authenticated"]}


def elector(holder: str) -> Mapping[str, Any]:
    """The user of a pod that renews as `holder` (`<pod>_<suffix>`)."""
    pod = holder.partition("_")[0] or "checkout"
    extra = {
        "authentication.kubernetes.io/pod-name": [pod],
        "authentication.kubernetes.io/pod-uid": [f"uid-of-{pod}"],
    }
    return {**INSIDER, "extra": extra}


def review(operation: str, user: Mapping[str, Any], new: bytes | None, old: bytes | None) -> bytes:
    """The AdmissionReview of one write of the Lease shop/checkout, both objects spliced in as they are."""
    group_version = {"group": "coordination.k8s.io", "version": "v1"}
    request = {
        "uid": "6d1c2f0e-0a5d-4c39-9f55-8d9b1d8a7c10",
        "kind": {**group_version, "kind": "Lease"},
        "resource": {**group_version, "resource": "leases"},
        "name": "checkout",
        "namespace": "shop",
        "operation": operation,
        "userInfo": user,
        "object": msgspec.Raw(new or b"null"),
        "oldObject": msgspec.Raw(old or b"null"),
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": f"{operation.capitalize()}Options"},
    }
    return msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


def text_of(line: Mapping[str, Any], role: str) -> bytes | None:
    """The JSON of an object in a recorded line: its exact text if there is one, because some nest very deeply."""
    text = line.get(f"{role}Text")
    if text is not None:
        return str(text).encode()
    return None if line[role] is None else msgspec.json.encode(line[role])


class Outcome(Struct, frozen=True):
    """What became of a review: the HTTP status (500 for an exception), and of its verdict what the laws ask for."""

    status: int
    allowed: bool
    event: str = ""
    denied_by: frozenset[str] = frozenset()
    warned_by: frozenset[str] = frozenset()
    trouble: str = ""

    @property
    def tampered(self) -> bool:
        """Whether the write is called tampered."""
        return TAMPERED in self.denied_by | self.warned_by

    @property
    def live(self) -> bool:
        """Whether a rule spoke that speaks of live leases alone."""
        return bool(OF_A_LIVE_LEASE & (self.denied_by | self.warned_by))

    @property
    def weakened(self) -> bool:
        """Whether the rules that speak of a live lease warn of this write, and none of them denies it."""
        return bool(OF_A_LIVE_LEASE & self.warned_by) and not OF_A_LIVE_LEASE & self.denied_by

    @property
    def without_stamps(self) -> bool:
        """Whether the old lease is said to have no usable stamp."""
        return WITHOUT_STAMPS in self.denied_by | self.warned_by


def evaluate(body: bytes, now: int, *, listed: bool = False) -> Outcome:
    """Review the bytes under the strict policy; `now` in microseconds since 1970. `listed`: stamps are believed.

    A review without a verdict is allowed, because that is what failurePolicy Ignore makes of it.
    """
    try:
        reply = respond(body, LISTED if listed else STRICT, now)
    except Exception as error:  # noqa: BLE001  any exception is an HTTP 500, and as such a finding of this search
        return Outcome(500, allowed=True, trouble=type(error).__name__)
    verdict = reply.verdict
    if verdict is None:
        return Outcome(reply.status, allowed=True, trouble=reply.body.decode(errors="replace").strip()[:120])
    by_mode: dict[Mode, set[str]] = {mode: set() for mode in Mode}
    for finding in verdict.findings:
        by_mode[finding.mode].add(finding.rule)
    return Outcome(
        reply.status,
        verdict.allowed,
        str(verdict.event),
        frozenset(by_mode[Mode.DENY]),
        frozenset(by_mode[Mode.WARN]),
    )
