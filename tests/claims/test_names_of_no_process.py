"""Names of pods that someone wrote into a lease, and under which no process asked for it."""

from typing import Any

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer
from tests.history.observing import follow_log, follow_watch
from webhook.analysis.claims.account import Account
from webhook.findings import Severity

NOBODY = "the log has no request of a pod named as "


def appoint(
    name: str, *, asks: bool = False, has_reads: bool = True, pod: str = "db-0", before: str = "", crowd: int = 0
) -> FakeServer:
    """A holder in whose place a person writes another name, and leaves the rest of the lease as it is.

    `before`: the pod that held it before; `crowd`: how many others ask for it.
    """
    server = FakeServer()
    db, successor, third = (server.elector(f"db-{number}", "shop/db") for number in range(3))
    db.pod = pod
    if before:
        third.pod = "" if before == "a token without a pod" else before
        third.lead(20)
        third.release()
        server.wait(1)
    db.lead(20)
    for number in range(crowd):
        server.elector(f"web-{number}", "shop/db", user="system:serviceaccount:shop:web").ask()
    server.wait(1)
    spec = server.leases["shop/db"]["spec"]
    server.write("shop/db", {**spec, "holderIdentity": name}, "kubectl-patch", "dimitri", "")
    for _ in range(8):
        server.wait(2)
        for elector in [successor] * has_reads + [third] * asks:
            elector.ask()
    successor.lead(20)
    return server


def explain(server: FakeServer) -> Account:
    return account(follow_log(server), server.now)


def test_a_name_that_no_process_asked_under_led_nothing() -> None:
    answer = explain(appoint("db-2"))
    (stolen,) = (found for found in answer.findings if found.check == "lease-stolen")
    assert stolen.severity is Severity.WARNING
    assert stolen.message == (
        "at 11:07:01Z dimitri wrote db-2 into the lease while db-0_1 still held it, 14 s before it expired: "
        f"{NOBODY}db-2"
    )


def test_who_writes_a_name_in_leaves_the_lease_to_expire_after_the_last_renewal_before() -> None:
    said = text(explain(appoint("db-2")))
    assert "dimitri wrote db-2 into it in place of db-0_1, which still held it\n" in said
    assert (
        "11:07:15Z: the lease expired, 15 s after the last renewal, which was before db-2 was written into it\n" in said
    )
    assert "in it, which did not renew it; not renewed for up to 17 s\n" in said


@pytest.mark.parametrize(
    "settings",
    [
        {"asks": True},
        {"has_reads": False},
        {"name": "mallory"},
        {"pod": ""},
        {"before": "db-2"},
        {"before": "a token without a pod"},
        {"crowd": 16},
    ],
    ids=[
        "it asks",
        "reads are not logged",
        "not a name of a pod like the holder's",
        "the holder has no pod",
        "it held it before",
        "a token of its account names no pod",
        "more ask than are remembered",
    ],
)
def test_a_name_whose_process_may_be_there_may_lead(settings: dict[str, Any]) -> None:
    answer = explain(appoint(**{"name": "db-2", **settings}))
    (stolen,) = (found for found in answer.findings if found.check == "lease-stolen")
    assert stolen.severity is Severity.ERROR
    assert stolen.message.endswith("two may have led at once")


def test_of_a_few_who_ask_each_is_remembered() -> None:
    assert f"{NOBODY}db-2" in text(explain(appoint("db-2", before="db-3", crowd=8)))


def test_a_watch_does_not_show_who_asks() -> None:
    server = appoint("db-2")
    (stolen,) = (one for one in account(follow_watch(server), server.now).findings if one.check == "lease-stolen")
    assert "two may have led at once" in stolen.message
