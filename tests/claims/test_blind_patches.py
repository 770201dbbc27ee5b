"""Locks that shell scripts renew and free by patches, which name no holder and have no precondition.

Source: the recorded incident of an EXIT trap that frees a lock which its job never took.
"""

from typing import Any

import pytest

from tests.claims.accounts import account, text
from tests.factories import Document
from tests.history.fake_server import Elector, FakeServer
from tests.history.observing import View, follow_both, follow_log
from webhook.kubernetes.times import format_micro_time

LOST = (
    "identity-shared: shop/batch from pod ledger renewed the lease 3 times until 11:07:32Z, after it had lost it at "
    "11:06:42Z, by patches that name no holder, while it named reprice, and shop/batch from pod reprice renewed it "
    "(5 renewals): each may have led"
)
RENEWED = (
    "shop/batch from pod ledger renewed it without naming a holder, 3 times until 11:07:32Z, while it named reprice"
)
BLIND = (
    "Find out why shop/batch from pod {} removed the holder, by a patch without a precondition, which removes whoever "
    "is there (this webhook, with preset strict, denies that"
)


def job(server: FakeServer, name: str) -> Elector:
    elector = server.elector(name, "shop/db", user="system:serviceaccount:shop:batch", duration=300, manager="kubectl")
    elector.identity = name
    return elector


def patch(one: Elector, changes: Document, sent: Any = None) -> None:
    """Patch the spec of the lease with the token of a job's pod."""
    server = one.server
    server.write(one.lease, {**server.leases[one.lease]["spec"], **changes}, one.manager, one.user, one.pod)
    event = server.log[-1]
    event["verb"], event["requestObject"] = "patch", {"spec": changes} if sent is None else sent
    del event["objectRef"]["resourceVersion"]


def renew(one: Elector, **changes: str) -> None:
    patch(one, {"renewTime": format_micro_time(one.server.now), **changes})


def work(server: FakeServer, *jobs: Elector, times: int = 3, **changes: str) -> None:
    for _ in range(times):
        for one in jobs:
            server.wait(8)
            renew(one, **changes)


def overlap(*, times: int = 3, **changes: str) -> tuple[FakeServer, Elector, Elector]:
    """A lock that was freed while ledger worked, and that reprice then took, while both go on."""
    server = FakeServer()
    ledger, reprice = job(server, "ledger"), job(server, "reprice")
    ledger.take()
    renew(ledger)
    server.wait(2)
    patch(job(server, "report"), {"holderIdentity": ""})
    server.wait(2)
    reprice.take()
    renew(reprice)
    work(server, reprice, ledger, times=times, **changes)
    server.wait(8)
    renew(reprice)
    return server, ledger, reprice


def explain(server: FakeServer, view: View = follow_log) -> str:
    return text(account(view(server), server.now))


@pytest.mark.parametrize("view", [follow_log, follow_both], ids=["log", "both"])
def test_who_renews_on_after_it_lost_the_lease_uses_nobodys_identity(view: View) -> None:
    server, *_ = overlap()
    said = explain(server, view)
    assert said.startswith("2 pods renew it while it names reprice: ledger and reprice\n")
    assert LOST in said
    assert RENEWED in said
    assert "ADVICE Let what renews the lease see first who holds it, and stop its work if another one does:" in said
    assert "one identity" not in said


def test_who_names_the_holder_uses_its_identity() -> None:
    server, *_ = overlap(holderIdentity="reprice")
    said = explain(server)
    assert "one identity, reprice, is used by several processes" in said
    assert "ADVICE Give each replica an identity of its own" in said
    assert "without naming a holder" not in said


@pytest.mark.parametrize(
    ("changes", "is_replaced"), [({}, False), ({"holderIdentity": "reprice"}, True)], ids=["nameless", "named"]
)
def test_a_single_renewal_by_a_former_holder_replaces_no_pod_unless_it_names_the_holder(
    changes: dict[str, str], is_replaced: bool
) -> None:
    server, ledger, _ = overlap(times=0)
    server.wait(4)
    renew(ledger, **changes)
    said = explain(server)
    assert ("another pod renews it as reprice (shop/batch from pod ledger)" in said) == is_replaced
    assert ("ledger renewed it without naming a holder, once, while it named reprice" in said) != is_replaced


def test_of_who_never_held_it_no_loss_is_said() -> None:
    server, _, reprice = overlap(times=0)
    renew(reprice)
    work(server, reprice, job(server, "stranger"))
    said = explain(server)
    assert "identity-shared: shop/batch from pod stranger renewed the lease 3 times until 11:07:40Z, by patches" in said


def test_a_holder_that_went_on_beside_releases_the_lease_at_once() -> None:
    server, _, reprice = overlap()
    renew(job(server, "ledger"))
    server.wait(1)
    patch(reprice, {"holderIdentity": ""})
    server.wait(2)
    job(server, "ledger").take()
    said = explain(server)
    assert "after reprice released it; the lease was free for 2 s" in said
    assert "itself had not renewed it" not in said


def test_a_patch_without_a_precondition_is_said_of_who_freed_the_lease_of_another() -> None:
    server, *_ = overlap()
    patch(job(server, "ledger"), {"holderIdentity": ""})
    said = explain(server)
    assert BLIND.format("ledger") in said
    assert "client-go" not in said


@pytest.mark.parametrize(
    "sent",
    [
        {"metadata": {"resourceVersion": "105"}, "spec": {"holderIdentity": ""}},
        [
            {"op": "test", "path": "/spec/holderIdentity", "value": "reprice"},
            {"op": "replace", "path": "/spec/holderIdentity", "value": ""},
        ],
    ],
    ids=["a version", "a test"],
)
def test_a_patch_with_a_precondition_is_no_blind_one(sent: Any) -> None:
    server, *_ = overlap()
    patch(job(server, "ledger"), {"holderIdentity": ""}, sent)
    said = explain(server)
    assert "ledger, which had lost the lease, was paused: client-go with ReleaseOnCancel" in said
    assert "without a precondition" not in said
