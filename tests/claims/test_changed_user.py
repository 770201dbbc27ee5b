"""A lease that another user takes after a release: another workload may have taken it."""

from typing import Any

from tests.claims.accounts import account
from tests.history.fake_server import FakeServer
from tests.history.observing import advise, follow_log
from webhook.analysis.claims.presentation.happened import list_events, list_latest

SCHEDULER = "system:kube-scheduler"
CHANGED = "its user changed to shop/gpu: until 11:07:00Z system:kube-scheduler held it"


def play(*, reads: int = 0, after: float = 0, **taker: Any) -> FakeServer:
    """Have a user that is not a pod release the lease, and a pod of another user take it."""
    server = FakeServer()
    server.wait(after)
    first = server.elector("cp-1", "shop/db", user=SCHEDULER, pod="")
    first.lead(20)
    first.release()
    server.wait(2)
    second = server.elector("gpu-0", "shop/db", **{"user": "system:serviceaccount:shop:gpu", **taker})
    second.lead(20)
    for _ in range(reads):
        first.ask()
        second.lead(2)
    return server


def list_texts(server: FakeServer) -> list[list[str]]:
    explained = account(follow_log(server), server.now)
    return [
        [one.text for one in lines if "its user changed" in one.text]
        for lines in (list_events(explained), list_latest(explained))
    ]


def test_the_change_of_the_user_is_said_at_every_length() -> None:
    assert list_texts(play()) == [[CHANGED], [CHANGED]]


def test_who_held_it_before_and_reads_it_since_is_said_to() -> None:
    text = f"{CHANGED}, which last read it at 11:07:24Z"
    assert list_texts(play(reads=2)) == [[text], [text]]


def test_the_advice_is_to_check_whether_the_other_user_is_to_use_it() -> None:
    server = play()
    assert advise(account(follow_log(server), server.now)).startswith(
        "Check whether shop/gpu is to use this lease: until 11:07:00Z system:kube-scheduler held it. To see the pod"
    )


def test_another_process_of_the_same_user_is_no_change() -> None:
    assert list_texts(play(user=SCHEDULER, pod="")) == [[], []]


def test_of_two_service_accounts_a_finding_says_it() -> None:
    server = FakeServer()
    first = server.elector("db-0", "shop/db")
    first.lead(20)
    first.release()
    server.wait(2)
    server.elector("gpu-0", "shop/db", user="system:serviceaccount:shop:gpu").lead(20)
    explained = account(follow_log(server), server.now)
    assert "lease-shared" in {one.check for one in explained.findings}
    assert list_texts(server) == [[], []]
    assert not advise(explained).startswith("Check whether shop/gpu")


def test_the_advice_on_a_change_of_another_day_has_its_date() -> None:
    server = play(after=46_370)
    assert "until 2026-11-18T23:59:50Z system:kube-scheduler held it" in advise(account(follow_log(server), server.now))
