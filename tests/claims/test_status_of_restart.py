"""The status of a holder's pod that its kubelet wrote as the holder fell silent, and as the pod asked again."""

from typing import Any

import pytest

from tests.claims.accounts import account, text
from tests.claims.test_pods import HOLDER, lead, log_status
from tests.factories import Document, put
from tests.history.fake_server import together
from tests.history.observing import follow_log
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.facts import find_claims

SUGGESTED = "unless it had ended or restarted, as the status suggests that its kubelet wrote at 11:07:00Z and 11:07:28Z"
POLICY = "leases.coordination.k8s.io \"db\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: no"
RESTARTED = "The pod of db-0_1, which lost the lease, asked for it again, and may have restarted; see why:"


def lose(*, is_written_at_end: bool, is_written_at_return: bool, returns: bool = True) -> Claim:
    """A holder falls silent; another one takes its lease, and then its pod asks for it again and again."""
    server, db, others = lead()
    server.wait(0.1)
    if is_written_at_end:
        log_status(server, HOLDER)
    together(20, *others)
    server.elector("db-1", "shop/db").take()
    together(8, *others)
    if is_written_at_return:
        log_status(server, HOLDER)
    for _ in range(3 if returns else 0):
        server.wait(2)
        db.ask()
    claims = find_claims(account(follow_log(server), server.now))
    return next(one for one in claims if one.check == "leader-lost")


def test_a_pod_whose_status_changed_as_it_fell_silent_and_as_it_came_back_may_have_restarted() -> None:
    loss = lose(is_written_at_end=True, is_written_at_return=True)
    assert f"{SUGGESTED}, it may have acted as leader until it noticed." in loss.message
    assert loss.advice == RESTARTED
    logs = f"kubectl -n shop logs {HOLDER} --previous --all-containers --ignore-errors"
    assert loss.fix == f"kubectl -n shop describe pod {HOLDER}; {logs}"


@pytest.mark.parametrize(
    ("is_written_at_end", "is_written_at_return"),
    [(True, False), (False, True)],
    ids=["only as it fell silent", "only as it came back"],
)
def test_a_status_that_changed_once_suggests_no_restart(is_written_at_end: bool, is_written_at_return: bool) -> None:
    loss = lose(is_written_at_end=is_written_at_end, is_written_at_return=is_written_at_return)
    assert "unless it had ended or restarted, it may have acted as leader" in loss.message
    assert "may have restarted" not in loss.advice


def test_a_pod_that_does_not_ask_again_is_not_known_to_have_restarted() -> None:
    loss = lose(is_written_at_end=True, is_written_at_return=True, returns=False)
    assert "suggests" not in loss.message
    assert "may have restarted" not in loss.advice


def test_what_a_later_process_of_the_pod_asked_for_is_not_the_holders() -> None:
    server, db, others = lead()
    follower = server.elector("db-1", "shop/db")
    for _ in range(12):
        together(2, *others)
        db.fail_as("db-0_2", 422, POLICY)
        server.wait(0.01)
        follower.fail_as(follower.identity, 422, POLICY)
    server.wait(1)
    follower.take()
    together(30, follower, *others)
    found = account(follow_log(server), server.now)
    (lost,) = (one for one in found.findings if one.check == "leader-lost")
    assert "requests for the lease, to hold it as db-0_2: a later process there" in lost.message
    refusals = [one for one in found.findings if isinstance(one, Claim) and one.check == "write-refused"]
    assert [one.advice.startswith("The refusals have ended.") for one in refusals] == [True, True]


AFTER_STATUS = (
    "for the lease, after its kubelet had written its status, as when a container ends and starts again: "
    "the next process may have made "
)


def lose_while_asking(
    *,
    asks: int = 3,
    status: Document | None = None,
    is_asked_first: bool = False,
    is_written_once: bool = False,
    returns: bool = False,
) -> str:
    """Return why a holder lost its lease whose pod asked for it before another one took it, or it renewed it again."""
    shown = () if status is None else (put("requestObject", {"status": status}),)
    server, db, others = lead()
    server.wait(0.1)
    if is_asked_first:
        db.ask()
        server.wait(0.1)
    log_status(server, HOLDER, *shown)
    for number in range(asks):
        together(3, *others)
        if not number and not is_written_once:
            log_status(server, HOLDER, *shown)
        db.ask()
    together(20, *others)
    db.renew() if returns else server.elector("db-1", "shop/db").take()
    together(4, *others)
    claims = find_claims(account(follow_log(server), server.now))
    return next(one.message for one in claims if one.check in {"leader-lost", "renewal-late"})


@pytest.mark.parametrize(("asks", "what"), [(1, "1 request"), (3, "3 requests")])
def test_what_a_pod_asked_for_after_its_status_changed_may_be_of_its_next_process(asks: int, what: str) -> None:
    said = lose_while_asking(asks=asks)
    assert f"Its pod made at least {what} {AFTER_STATUS}{'it' if asks == 1 else 'them'}; " in said
    assert "none of which renewed it" not in said


@pytest.mark.parametrize(
    ("change", "requests"),
    [
        ({"is_asked_first": True}, 4),
        ({"is_written_once": True}, 3),
        ({"status": {"phase": "Running"}}, 3),
        ({"returns": True}, 3),
    ],
    ids=["it asked before, too", "its status changed once", "no container ended, as is shown", "it renews it again"],
)
def test_what_a_pod_asked_for_is_otherwise_not_known_to_be_of_a_next_process(
    change: dict[str, Any], requests: int
) -> None:
    said = lose_while_asking(**change)
    assert f"Its pod made at least {requests} requests for the lease, none of which renewed it; " in said


def test_a_pod_that_read_the_lease_before_it_was_taken_need_not_be_the_process_that_held_it() -> None:
    server, db, others = lead()
    server.wait(3)
    db.ask()
    together(20, *others)
    server.elector("db-1", "shop/db").take()
    for _ in range(3):
        server.wait(2)
        db.ask()
    assert f"pod {HOLDER}, the previous holder, asks for the lease" in text(account(follow_log(server), server.now))
