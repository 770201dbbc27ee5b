"""Writes with the token of a holder's pod: what its elector does next shows whether the elector made them."""

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer
from tests.history.observing import advise, follow_log
from tests.history.test_refusal import UNAPPLIED
from webhook.analysis.claims.account import Account
from webhook.findings import Severity

CONFLICT = 'Operation cannot be fulfilled on leases.coordination.k8s.io "db": the object has been modified'


def name_another(holder: str, *, has_uids: bool = True) -> FakeServer:
    """A lease whose holder wrote another name into it, or somebody else did with the token of its pod."""
    server = FakeServer(uids={"db-0": "uid-0", "db-1": "uid-1"} if has_uids else {})
    elector = server.elector("db-0", "shop/db")
    elector.lead(60)
    server.wait(1)
    spec = server.leases["shop/db"]["spec"] | {"holderIdentity": holder}
    server.write("shop/db", spec, "kubectl-patch", elector.user, elector.pod)
    server.wait(1)
    return server


def find(account: Account, check: str) -> list[str]:
    return [found.message for found in account.findings if found.check == check]


@pytest.mark.parametrize("has_uids", [True, False], ids=["tokens name the pod's uid", "tokens do not"])
@pytest.mark.parametrize(
    ("code", "message"), [(409, CONFLICT), (422, UNAPPLIED)], ids=["its update conflicts", "its patch does not fit"]
)
def test_an_elector_that_goes_on_did_not_hand_its_lease_over(has_uids: bool, code: int, message: str) -> None:
    server = name_another("mallory", has_uids=has_uids)
    elector = server.elector("db-0", "shop/db")
    elector.fail(code, message, verb="patch" if code == 422 else "update")
    for _ in range(10):
        elector.ask()
        server.wait(2)
    answer = account(follow_log(server), server.now)
    assert not find(answer, "handed-over")
    (stolen,) = find(answer, "lease-stolen")
    assert stolen == (
        "at 11:07:41Z shop/db from pod db-0 wrote mallory into the lease while db-0_1 still held it, 14 s before it "
        "expired: two may have led at once. The elector of that pod went on as if it held the lease: another process "
        "there, or another one with its token, may have written that"
    )
    assert "handed it over" not in text(answer)
    assert "both were written from one pod" not in text(answer)
    assert advise(answer) == (
        "Find out which process, in pod db-0 or with its token, wrote mallory: kubectl -n shop describe pod db-0"
    )


@pytest.mark.parametrize("has_uids", [True, False], ids=["tokens name the pod's uid", "tokens do not"])
@pytest.mark.parametrize("conflicts", [True, False], ids=["after a conflict", "after it has read"])
def test_an_elector_that_takes_its_lease_back_is_no_thief(has_uids: bool, conflicts: bool) -> None:
    server = name_another("mallory", has_uids=has_uids)
    elector = server.elector("db-0", "shop/db")
    if conflicts:
        elector.fail(409, CONFLICT)
    elector.ask()
    server.wait(0.02)
    elector.lead(20)
    answer = account(follow_log(server), server.now)
    assert not find(answer, "handed-over")
    by_whom, back = find(answer, "lease-stolen")
    assert by_whom.startswith("at 11:07:41Z shop/db from pod db-0 wrote mallory into the lease while db-0_1 still held")
    assert back == (
        "at 11:07:42Z db-0_1 took the lease back: mallory, written in from the same pod at 11:07:41Z, had not renewed "
        "it"
    )
    assert [found.severity for found in answer.findings if found.check == "lease-stolen"] == [
        Severity.ERROR,
        Severity.WARNING,
    ]
    assert "does not wait" not in advise(answer)


def test_a_name_that_its_pod_took_back_after_the_expiry_was_handed_over() -> None:
    server = name_another("db-1_1")
    server.elector("db-1", "shop/db").renew()
    server.wait(20)
    server.elector("db-0", "shop/db").lead(10)
    answer = account(follow_log(server), server.now)
    assert "db-0_1 handed it over to db-1_1, without a release" in text(answer)


def test_a_conflict_long_after_a_handover_says_nothing_of_it() -> None:
    server = name_another("db-1_1")
    server.elector("db-1", "shop/db").lead(20)
    server.elector("db-0", "shop/db").fail(409, CONFLICT)
    server.elector("db-1", "shop/db").lead(20)
    assert find(account(follow_log(server), server.now), "handed-over")


def test_an_update_that_came_before_the_handover_says_nothing_of_it() -> None:
    server = name_another("db-1_1")
    server.elector("db-0", "shop/db").fail(409, CONFLICT, took=1.5)
    server.elector("db-1", "shop/db").lead(20)
    assert find(account(follow_log(server), server.now), "handed-over")


def test_a_successor_whose_predecessor_goes_on_was_not_named_by_that() -> None:
    server = name_another("db-1_1")
    server.elector("db-0", "shop/db").fail(409, CONFLICT)
    server.elector("db-1", "shop/db").lead(20)
    answer = account(follow_log(server), server.now)
    assert not find(answer, "handed-over")
    assert find(answer, "lease-stolen")


@pytest.mark.parametrize("code", [0, 409], ids=["at once", "after a conflict"])
def test_a_process_that_goes_on_under_another_name_is_no_second_one(code: int) -> None:
    server = name_another("db-0_2")
    elector = server.elector("db-0", "shop/db")
    if code:
        elector.fail(code, CONFLICT)
    for name in ("db-0_2", "db-0_3"):
        elector.take(holderIdentity=name)
        server.wait(2)
    elector.renew(holderIdentity="db-0_3")
    answer = account(follow_log(server), server.now)
    findings = [found.message for found in answer.findings if found.check == "handed-over"]
    assert findings
    assert not find(answer, "lease-stolen")
    assert all("both were written with the token of one pod" in message for message in findings)


def test_a_name_under_which_another_process_goes_on_is_not_the_next_name_of_its_writer() -> None:
    server = FakeServer(uids={"db-0": "uid-0", "db-1": "uid-1", "evil-0": "uid-9"})
    evil = server.elector("evil-0", "shop/db", user="system:serviceaccount:shop:mallory")
    server.elector("db-0", "shop/db").lead(20)
    for name in ("old", "a1b2_1"):
        evil.take(holderIdentity=name)
        for _ in evil.ticks(4):
            evil.renew(holderIdentity=name)
    server.elector("a1b2", "shop/db", pod="db-1").lead(20)
    findings = find(account(follow_log(server), server.now), "handed-over")
    assert not any("both were written with the token of one pod" in message for message in findings)
