"""The writes that must always be allowed in `standard`, and those that must be denied, each under its name.

Nothing here may depend on a policy file or on the clock: every verdict is asked at three moments.
"""

from typing import Final

import pytest

from tests.acceptance import accept
from tests.factories import (
    NOW,
    RENEWED,
    WRITTEN,
    Document,
    Tweak,
    changed,
    drop,
    make_candidate,
    make_entry,
    make_lease,
    make_review,
    make_user,
    put,
    to_bytes,
)
from webhook.admission.policy.file import load
from webhook.admission.verdict import Verdict
from webhook.server.reviewer import respond

STANDARD: Final = load("standard")
YEAR: Final = 365 * 86_400_000_000
OWNED: Final = ("acquireTime", "holderIdentity", "leaseDurationSeconds", "leaseTransitions", "renewTime")
RIVAL: Final = "checkout-6d5f9c-q9hkz_2a7c"
RIVAL_POD: Final = put(
    "request.userInfo", make_user(put("extra[authentication.kubernetes.io/pod-name]", ["checkout-6d5f9c-q9hkz"]))
)
API_SERVER: Final = put("request.userInfo", {"username": "system:apiserver", "groups": ["system:masters"]})
NODE: Final = put(
    "request.userInfo", {"username": "system:node:n1", "groups": ["system:nodes", "system:authenticated"]}
)
KWOK: Final = put(
    "request.userInfo", {"username": "system:serviceaccount:kube-system:kwok", "groups": ["system:serviceaccounts"]}
)
EXPIRED_AT: Final = "2025-11-20T12:00:15Z"


def at(time: str, *fields: str) -> Tweak:
    """The stamp of this write on the fields that it changed; the others stay with their old owner."""

    def stamp(document: Document) -> None:
        rest = [field for field in OWNED if field not in fields]
        entries = [make_entry(*rest)] if rest else []
        document["metadata"]["managedFields"] = [*entries, make_entry(*fields, manager="writer", time=time)]

    return stamp


def spec(**values: object) -> Tweak:
    """Set fields of spec; None removes one."""

    def tweak(document: Document) -> None:
        document["spec"] |= values
        document["spec"] = {name: value for name, value in document["spec"].items() if value is not None}

    return tweak


def update(old: Document, *tweaks: Tweak, by: Tweak | None = None) -> Document:
    """The review of changing `old`."""
    return make_review(*([by] if by else []), new=changed(old, *tweaks), old=old)


def micro(time: str) -> str:
    return time.removesuffix("Z") + ".000000Z"


LEASE: Final = make_lease()
RELEASED: Final = make_lease(spec(holderIdentity="", leaseDurationSeconds=1))
COORDINATED: Final = make_lease(
    spec(leaseDurationSeconds=5, acquireTime=None, leaseTransitions=None, strategy="OldestEmulationVersion"),
    put("metadata.managedFields", [make_entry("holderIdentity", "leaseDurationSeconds", "renewTime", "strategy")]),
)
LATER: Final = "2025-11-20T12:00:05Z"
NODE_LEASE: Final = make_lease(
    put("metadata.name", "n1"),
    put("metadata.namespace", "kube-node-lease"),
    spec(holderIdentity="n1", leaseDurationSeconds=40, acquireTime=None, leaseTransitions=None),
)
ALL_NONE: Final = spec(holderIdentity=None, leaseDurationSeconds=None, acquireTime=None, renewTime=None)
HORRIBLE: Final = make_lease(
    spec(
        holderIdentity="\u202e" + "h" * 5000,
        leaseDurationSeconds=2147483647,
        renewTime="10000-01-01T00:59:59.999999Z",
        leaseTransitions=2147483647,
        strategy="example.com/x",
        preferredHolder="ghost",
    )
)

ALLOWED: Final = {
    "(a) client-go releases": update(
        LEASE, spec(holderIdentity="", leaseDurationSeconds=1, renewTime=micro(LATER)), at(LATER, *OWNED)
    ),
    "(a) and another claims in the same second": update(
        RELEASED,
        spec(holderIdentity=RIVAL, leaseDurationSeconds=15, leaseTransitions=6),
        at(WRITTEN, *OWNED),
        by=RIVAL_POD,
    ),
    "(b) the first claim of an empty lease": update(
        make_lease(put("spec", None), drop("metadata.managedFields")),
        # An API server does not track an object that was created without a field.
        put("spec", make_lease(spec(leaseTransitions=1))["spec"]),
    ),
    "(c) the first renewal after a coordinated election": update(
        COORDINATED,
        spec(leaseDurationSeconds=15, leaseTransitions=0, renewTime=micro(LATER)),
        put(
            "metadata.managedFields",
            [
                make_entry("holderIdentity", "strategy"),
                make_entry("leaseDurationSeconds", "leaseTransitions", "renewTime", time=LATER),
            ],
        ),
    ),
    "(d) a coordinated election": update(
        changed(COORDINATED, spec(acquireTime=RENEWED, preferredHolder=RIVAL, leaseTransitions=3)),
        spec(holderIdentity=RIVAL, acquireTime=None, preferredHolder=None, renewTime=micro(LATER)),
        put("metadata.managedFields", [make_entry("holderIdentity", "renewTime", time=LATER)]),
        by=API_SERVER,
    ),
    "(e) a renewal that drops strategy and preferredHolder": update(
        changed(COORDINATED, spec(preferredHolder=RIVAL)),
        spec(strategy=None, preferredHolder=None, renewTime=micro(LATER), leaseDurationSeconds=15),
        put(
            "metadata.managedFields",
            [make_entry("holderIdentity"), make_entry("leaseDurationSeconds", "renewTime", time=LATER)],
        ),
    ),
    "(f) kube-lease-manager, step 1: the holder": update(
        LEASE,
        spec(holderIdentity=RIVAL, renewTime=micro(EXPIRED_AT), acquireTime=micro(EXPIRED_AT)),
        at(EXPIRED_AT, *OWNED),
        by=RIVAL_POD,
    ),
    "(f) kube-lease-manager, step 2: the count": update(
        LEASE, spec(leaseTransitions=6), at(WRITTEN, "leaseTransitions")
    ),
    "(g) Camel, kubert: release of everything": update(
        LEASE, ALL_NONE, put("metadata.managedFields", [make_entry("leaseTransitions")])
    ),
    "(g) client-java: release that keeps the duration": update(
        LEASE,
        spec(holderIdentity=None, acquireTime=None, renewTime=None),
        put("metadata.managedFields", [make_entry("leaseDurationSeconds", "leaseTransitions")]),
    ),
    "(h) fabric8 7.5: release by duration 1": update(
        LEASE,
        spec(leaseDurationSeconds=1, acquireTime=micro(LATER), renewTime=micro(LATER)),
        at(LATER, "acquireTime", "leaseDurationSeconds", "renewTime"),
    ),
    "(i) Pekko: a heartbeat in acquireTime alone": update(
        make_lease(
            spec(renewTime=None, leaseDurationSeconds=None, leaseTransitions=None),
            put("metadata.managedFields", [make_entry("acquireTime", "holderIdentity")]),
        ),
        spec(acquireTime=micro(LATER)),
        put("metadata.managedFields", [make_entry("holderIdentity"), make_entry("acquireTime", time=LATER)]),
    ),
    "(j) a kubelet whose clock went back an hour": update(
        NODE_LEASE, spec(renewTime="2025-11-20T11:00:00.000000Z"), at(LATER, "renewTime"), by=NODE
    ),
    "(j) a kubelet whose clock went back ten days": update(
        NODE_LEASE, spec(renewTime="2025-11-10T12:00:00.000000Z"), at(LATER, "renewTime"), by=NODE
    ),
    "(k) kubernetes_asyncio 14 hours ahead: a renewal": update(
        LEASE, spec(renewTime="2025-11-21T02:00:05.000000Z"), at(LATER, "renewTime")
    ),
    "(k) kubernetes_asyncio 14 hours ahead: a takeover": update(
        make_lease(spec(leaseTransitions=None, renewTime="2025-11-21T02:00:00.000000Z")),
        spec(holderIdentity=RIVAL, renewTime="2025-11-21T02:00:20.000000Z", acquireTime="2025-11-21T02:00:20.000000Z"),
        at("2025-11-20T12:00:20Z", *OWNED),
        by=RIVAL_POD,
    ),
    "(l) kwok takes over a node lease": update(
        changed(NODE_LEASE, spec(holderIdentity="kwok-a")),
        spec(holderIdentity="kwok-b", renewTime="2025-11-20T12:00:45.000000Z", leaseTransitions=1),
        at("2025-11-20T12:00:45Z", *OWNED),
        by=KWOK,
    ),
    "(m) a renewal that lowers the duration": update(
        make_lease(spec(leaseDurationSeconds=3600)),
        spec(leaseDurationSeconds=15, renewTime=micro(LATER)),
        at(LATER, "leaseDurationSeconds", "renewTime"),
    ),
    "(n) an owner reference": update(
        NODE_LEASE,
        put("metadata.ownerReferences", [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "b0f1"}]),
        by=NODE,
    ),
    "(o) a renewal long after expiry": update(
        LEASE, spec(renewTime="2025-11-22T12:00:00.000000Z"), at("2025-11-22T12:00:00Z", "renewTime")
    ),
    "(p) renewTime lowered from the year 9999": update(
        make_lease(spec(renewTime="9999-12-31T23:59:59.999999Z")), spec(renewTime=micro(LATER)), at(LATER, "renewTime")
    ),
    "(q) metadata of a lease that violates everything": update(HORRIBLE, put("metadata.labels", {"a": "b"})),
    "(r) a takeover at exactly seen + duration, the holder's clock 5 minutes ahead": update(
        make_lease(spec(renewTime="2025-11-20T12:05:00.000000Z")),
        spec(holderIdentity=RIVAL, renewTime=micro(EXPIRED_AT), acquireTime=micro(EXPIRED_AT), leaseTransitions=6),
        at(EXPIRED_AT, *OWNED),
        by=RIVAL_POD,
    ),
}

IN_FUTURE: Final = "2035-11-18T12:00:00.000000Z"
DENIED: Final = {
    "transitions 5 to 2147483647": (
        update(LEASE, spec(leaseTransitions=2147483647), at(LATER, "leaseTransitions")),
        422,
        "transitions-jump",
    ),
    "renewTime ten years ahead": (
        update(LEASE, spec(renewTime=IN_FUTURE), at(LATER, "renewTime")),
        422,
        "renew-time-in-future",
    ),
    "a duration of 2147483647": (
        update(LEASE, spec(leaseDurationSeconds=2147483647), at(LATER, "leaseDurationSeconds")),
        422,
        "duration-too-long",
    ),
    "a time that is stored as year 10000": (
        update(
            LEASE,
            spec(renewTime=micro(LATER), acquireTime="10000-01-01T00:59:59.999999Z"),
            at(LATER, "acquireTime", "renewTime"),
        ),
        422,
        "time-unreadable",
    ),
    "a time of year 10000 in a managedFields entry of a renewal": (
        update(
            LEASE,
            spec(renewTime=micro(LATER)),
            put(
                "metadata.managedFields",
                [make_entry(*OWNED, time=LATER), make_entry(manager="z", time="10000-01-01T00:59:59Z")],
            ),
        ),
        403,
        "time-unreadable",
    ),
    "preferredHolder introduced by a service account": (
        update(changed(LEASE, spec(strategy="OldestEmulationVersion")), spec(preferredHolder="ghost")),
        403,
        "preferred-holder-writer",
    ),
    "strategy introduced by a service account": (
        update(LEASE, spec(strategy="OldestEmulationVersion")),
        403,
        "strategy-writer",
    ),
    "a node writes another holder into its lease": (
        update(
            NODE_LEASE,
            spec(holderIdentity="n2", renewTime=micro(LATER)),
            at(LATER, "holderIdentity", "renewTime"),
            by=NODE,
        ),
        403,
        "node-lease-holder",
    ),
    "pingTime written by a service account": (
        update(make_candidate(), spec(pingTime=RENEWED)),
        403,
        "ping-time-writer",
    ),
    "managedFields emptied": (update(LEASE, put("metadata.managedFields", [])), 403, "renewal-stamp-tampered"),
    "managedFields emptied in a renewal": (
        update(LEASE, spec(renewTime=micro(LATER)), put("metadata.managedFields", [])),
        403,
        "renewal-stamp-tampered",
    ),
}


def evaluated(review: Document, now: int) -> Verdict:
    reply = respond(to_bytes(review), STANDARD, now)
    assert reply.verdict
    accept(reply.body, reply.verdict.uid)
    return reply.verdict


@pytest.mark.parametrize("later", [5_000_000, YEAR, 10 * YEAR], ids=["at once", "a year later", "ten years later"])
@pytest.mark.parametrize("name", ALLOWED)
def test_must_always_be_allowed(name: str, later: int) -> None:
    assert evaluated(ALLOWED[name], NOW + later).allowed


@pytest.mark.parametrize("name", DENIED)
def test_must_be_denied(name: str) -> None:
    review, code, rule = DENIED[name]
    verdict = evaluated(review, NOW + 5_000_000)
    assert not verdict.allowed
    assert verdict.code == code
    assert rule in {finding.rule for finding in verdict.findings if finding.mode.word == "deny"}


def test_the_vectors_are_all_there() -> None:
    assert "".join(sorted({name[1] for name in ALLOWED})) == "abcdefghijklmnopqr"
