"""A pod that takes a lease and releases it again and again, such as one that is started again each time it failed."""

from collections.abc import Callable
from functools import partial
from operator import itemgetter

import pytest

from tests.claims.accounts import account, shop, text
from tests.history.fake_server import SECOND, START, FakeServer, together
from tests.history.observing import View, follow_log, follow_watch
from webhook.analysis.claims.evidence.pods.loops import find_loop
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.kubernetes.times import format_micro_time, parse

LOGS = "kubectl -n shop logs db-0; kubectl -n shop logs db-0 --previous --all-containers --ignore-errors"


def play(
    times: int = 5,
    *,
    pods: int = 1,
    are_renamed: bool = True,
    rest: float = 12,
    is_held: bool = False,
    length: float = 6,
    is_renewed: bool = True,
) -> FakeServer:
    """Have pods by turns take shop/db, under one name each or a new one each time, and release it."""
    server, (_, *others) = shop()
    first = server.elector("db-9", "shop/db")
    first.take()
    together(2, first, *others)
    first.release()
    for number in range(times + is_held):
        together(rest if number else 2, *others)
        pod = f"db-{number % pods}"
        elector = server.elector(pod, "shop/db")
        elector.identity = f"{pod}_{number if are_renamed else 1}"
        elector.take()
        together(length, *([elector] if is_renewed else []), *others)
        if number < times:
            server.wait(0.1)
            elector.release()
    return server


def say(server: FakeServer, view: View = follow_log) -> str:
    return text(account(view(server), server.now))


def list_lines(server: FakeServer, view: View = follow_log) -> list[str]:
    """Return what `why` without --verbose says about what happened."""
    return [line.text for line in list_latest(account(view(server), server.now))]


NAMES = pytest.mark.parametrize("are_renamed", [True, False], ids=["under a new name each time", "under one name"])


@NAMES
def test_a_pod_that_takes_and_releases_a_lease_again_and_again_is_said(are_renamed: bool) -> None:
    server = play(are_renamed=are_renamed, is_held=True)
    assert list_lines(server) == ["pod db-0 took it and released it 5 times until 11:08:02Z, each time after 6 s"]
    said = say(server)
    assert f"ADVICE It is held now. See why pod db-0 takes it and releases it again and again: {LOGS}" in said
    assert "taken-late: db-0" not in said


@NAMES
def test_a_watch_shows_what_its_holders_are_called(are_renamed: bool) -> None:
    server = play(are_renamed=are_renamed, is_held=True)
    (line,) = list_lines(server, follow_watch)
    assert line.startswith("db-0 (by what its holders are called) took it and released it, or was removed, 5 times")
    assert "See why db-0 takes it and releases it again and again" in say(server, follow_watch)
    assert "taken-late: db-0" not in say(server, follow_watch)


def test_a_lease_that_is_free_between_is_said_to_be_so() -> None:
    assert "ADVICE No one holds it now. See why pod db-0 takes it and releases it again" in say(play())


def test_who_asked_each_time_to_delete_the_pod_is_said() -> None:
    server = play(is_held=True)
    releases = [one for one in server.log if not one["responseObject"]["spec"]["holderIdentity"]]
    for event in releases:
        server.now = parse(event["stageTimestamp"]) - SECOND // 2
        server.delete_pod("db-0")
    server.now = START + 110 * SECOND
    server.log.sort(key=itemgetter("stageTimestamp"))
    said = say(server)
    assert "Each release followed a request by kube-system/replicaset-controller to delete its pod:" in said


@pytest.mark.parametrize(
    ("make_server", "later"),
    [
        (partial(play, 2), 0),
        (partial(play, pods=2), 0),
        (partial(play, rest=604), 0),
        (partial(play, length=604), 0),
        (partial(play, is_renewed=False), 0),
        (play, 601),
    ],
    ids=["too few", "two pods by turns", "far apart", "long ones", "a lock for tasks", "over for long"],
)
def test_what_is_no_loop_is_not_said_to_be_one(make_server: Callable[[], FakeServer], later: float) -> None:
    server = make_server()
    server.wait(later)
    assert not [one for one in list_lines(server) if "took it and released" in one]


def test_a_loop_of_one_pod_is_over_when_another_one_holds_the_lease() -> None:
    server = play()
    other = server.elector("db-1", "shop/db")
    server.wait(2)
    other.lead(6)
    assert not [one for one in list_lines(server) if "took it and released" in one]


def test_another_one_that_writes_a_holder_in_is_no_loop_of_it() -> None:
    server, (db, *others) = shop()
    for _ in range(5):
        together(6, *others)
        spec = {"holderIdentity": "db-0_1", "leaseDurationSeconds": 15, "leaseTransitions": 0}
        times = dict.fromkeys(("acquireTime", "renewTime"), format_micro_time(server.now))
        server.write("shop/db", spec | times, "kubectl", "alice", "")
        together(6, db, *others)
        server.wait(0.1)
        db.release()
    assert not [one for one in list_lines(server) if "took it and released" in one]


def test_a_lease_that_was_never_held_has_no_loop() -> None:
    assert find_loop([], 0) is None


def test_who_takes_a_lease_again_under_its_name_does_not_change_its_holder() -> None:
    server, (_, *others) = shop()
    electors = [server.elector(f"db-{number}", "shop/db") for number in range(2)]
    for number in (0, 0, 1, 1, 0, 0):
        together(2, *others)
        electors[number].take()
        together(20, electors[number], *others)
        server.wait(0.1)
        electors[number].release()
    electors[0].take()
    together(20, electors[0], *others)
    assert say(server).endswith("ADVICE It is held and renewed; a lease does not show whether its holder works.")
