"""Holders of two leases that ask for each other's, and pods of other workloads that wait for one: as with locks."""

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import Elector, FakeServer, together
from tests.history.observing import follow_log
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.presentation.advise import advise
from webhook.analysis.claims.presentation.happened import list_latest

JOBS = "system:serviceaccount:shop:jobs"
WELL = "It is held and renewed; a lease does not show whether its holder works."


def serve(first: str = "copy-x", second: str = "move-y") -> tuple[FakeServer, list[Elector]]:
    """Two pods of one account that hold a lease each, `db` and `mail`, and would hold the other one, too."""
    server = FakeServer()
    server.uids |= {pod: f"uid-{pod}" for pod in (first, second)}
    electors = [server.elector(pod, f"shop/{lease}", user=JOBS) for pod in (first, second) for lease in ("db", "mail")]
    together(10, electors[0], electors[3])
    return server, electors


def wait(electors: list[Elector], seconds: int, *askers: Elector) -> None:
    """Have the holders renew, and others read a lease every 4 s."""
    for _ in range(seconds // 4):
        for asker in askers:
            asker.ask()
        together(4, electors[0], electors[3])


def explain(server: FakeServer) -> str:
    return text(account(follow_log(server), server.now))


def cross(seconds: int = 60, first: str = "copy-x", second: str = "move-y") -> tuple[FakeServer, list[Elector]]:
    server, electors = serve(first, second)
    wait(electors, seconds, electors[1], electors[2])
    return server, electors


def test_two_holders_that_ask_for_each_others_lease_may_wait_for_each_other() -> None:
    server, _ = cross()
    output = explain(server)
    assert (
        "11:06:50Z: pod move-y, which holds shop/mail, asks for this lease again and again, and pod copy-x, "
        "which holds this one, for that: each may wait for the other" in output
    )
    assert output.endswith(
        "It is held and renewed, as is shop/mail. If their holders wait for each other, neither goes on until one of "
        "them gives up or ends; their logs may say so: kubectl -n shop logs copy-x; kubectl -n shop logs move-y"
    )
    assert any("each may wait" in line.text for line in list_latest(account(follow_log(server), server.now)))
    assert "reads it again and again, at" not in output


def test_the_other_lease_says_the_same() -> None:
    server, _ = cross()
    histories = follow_log(server)
    advice = advise(make_account(histories, histories.leases["shop", "mail"], server.now))
    assert advice.sentence.startswith("It is held and renewed, as is shop/db.")
    assert advice.command == "kubectl -n shop logs move-y; kubectl -n shop logs copy-x"


def test_a_lease_that_lasts_long_and_is_not_renewed_is_held() -> None:
    server, electors = serve()
    electors[3].renew(leaseDurationSeconds=3600)
    for _ in range(15):
        electors[1].ask()
        electors[2].ask()
        together(4, electors[0])
    assert "It is held and renewed, and shop/mail is held. If their holders" in explain(server)


def test_who_no_longer_renews_the_other_lease_does_not_hold_it() -> None:
    server, electors = serve()
    for _ in range(15):
        electors[1].ask()
        electors[2].ask()
        together(4, electors[0])
    assert "for the other" not in explain(server)


def test_what_is_over_is_said_with_its_end() -> None:
    server, electors = cross()
    together(30, electors[0], electors[3])
    output = explain(server)
    assert (
        "pod move-y, which held shop/mail, asked for this lease again and again until 11:07:46Z, and pod copy-x, which "
        "held this one, for that: each may have waited for the other" in output
    )
    assert output.endswith(WELL)


def test_a_lease_that_was_given_up_ends_it() -> None:
    server, electors = cross()
    electors[3].release()
    electors[1].take()
    wait([electors[0], server.elector("x", "shop/x"), electors[2], electors[1]], 8)
    assert "each may have waited for the other" in explain(server)


@pytest.mark.parametrize(
    ("seconds", "first", "second"),
    [(28, "copy-x", "move-y"), (60, "db-0", "db-1"), (60, "db-6d5f7c9b8-x2x4z", "db-6d5f7c9b8-z4z2x")],
    ids=["for a moment", "replicas of a StatefulSet", "replicas of a Deployment"],
)
def test_who_need_not_wait_for_each_other(seconds: int, first: str, second: str) -> None:
    server, _ = cross(seconds, first, second)
    assert "for the other" not in explain(server)


@pytest.mark.parametrize("number", [1, 2])
def test_one_who_waits_for_another_one_waits_alone(number: int) -> None:
    server, electors = serve()
    wait(electors, 60, electors[number])
    assert "for the other" not in explain(server)


def test_a_holder_whose_lease_nobody_asks_for_waits_for_none() -> None:
    server, electors = serve()
    server.uids["scan-z"] = "uid-scan-z"
    scan = [server.elector("scan-z", f"shop/{lease}", user=JOBS) for lease in ("cart", "db")]
    scan[0].take()
    wait(electors, 60, electors[1], scan[1])
    assert "for the other" not in explain(server)


def test_who_reads_its_own_lease_again_and_again_waits_for_none() -> None:
    server, electors = serve()
    wait(electors, 60, electors[0], electors[3])
    assert "for the other" not in explain(server)


def test_holders_without_pods_may_be_several_processes() -> None:
    server = FakeServer()
    electors = [
        server.elector(name, f"shop/{lease}", user=name, pod="") for name in ("eve", "bob") for lease in ("db", "mail")
    ]
    together(10, electors[0], electors[3])
    wait(electors, 60, electors[1], electors[2])
    assert "for the other" not in explain(server)


def test_a_pod_of_another_workload_that_waits_is_said() -> None:
    server, electors = serve()
    wait(electors, 60, electors[2])
    assert "Also asks: pod move-y reads it again and again, at least since 11:06:50Z" in explain(server)


@pytest.mark.parametrize(
    ("second", "seconds", "after"),
    [("copy-y", 60, 0), ("move-y", 24, 0), ("move-y", 60, 20)],
    ids=["a replica", "for a moment", "no longer"],
)
def test_who_does_not_wait(second: str, seconds: int, after: int) -> None:
    server, electors = serve("copy-x", second)
    wait(electors, seconds, electors[2])
    wait(electors, after)
    assert "reads it again and again, at" not in explain(server)


def test_of_a_holder_without_a_pod_no_workload_is_known() -> None:
    server = FakeServer()
    holder = server.elector("eve", "shop/db", user=JOBS, pod="")
    server.uids["move-y"] = "uid-move-y"
    asker = server.elector("move-y", "shop/db", user=JOBS)
    together(10, holder)
    wait([holder, asker, asker, holder], 60, asker)
    assert "reads it again and again, at" not in explain(server)


def test_who_waited_before_the_holder_came_waits_since_then() -> None:
    server, electors = serve()
    wait(electors, 60, electors[2])
    electors[0].release()
    server.uids["scan-z"] = "uid-scan-z"
    scan = server.elector("scan-z", "shop/db", user=JOBS)
    scan.take()
    wait([scan, electors[1], electors[2], electors[3]], 24, electors[2])
    assert "reads it again and again, at" not in explain(server)
    wait([scan, electors[1], electors[2], electors[3]], 16, electors[2])
    assert "Also asks: pod move-y reads it again and again, at least since 11:06:50Z" in explain(server)


def test_who_held_it_before_is_a_replica() -> None:
    server, electors = serve()
    electors[0].release()
    electors[2].take()
    wait([electors[2], electors[1], electors[0], electors[3]], 60, electors[0])
    assert "reads it again and again, at" not in explain(server)
