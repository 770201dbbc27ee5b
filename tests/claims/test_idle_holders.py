"""A holder that renews, and no longer writes anything else as it did before: it may no longer work, or be idle."""

from typing import Final

import pytest

from tests.claims.accounts import account, shop, text
from tests.claims.test_pods import log_status
from tests.factories import Tweak, drop, put
from tests.history.fake_server import SECOND, START, Elector, FakeServer, together
from tests.history.observing import advise, follow_both, follow_log
from tests.inputs.test_pod_activity import work
from webhook.analysis.history.audit_log import pod_activities

POD: Final = {
    "username": "system:serviceaccount:shop:db",
    "extra": {
        "authentication.kubernetes.io/pod-name": ["db-0"],
        "authentication.kubernetes.io/pod-uid": ["uid-db-0"],
    },
}
IDLE = (
    "It is held and renewed, but the log shows no write by its pod, other than of leases and Events, since 11:07:39Z, "
    "and one at least every 4 s in the 36 s before that. It may have nothing to do, or no longer work; its log may say "
    "which: kubectl -n shop logs db-0"
)
WELL = "It is held and renewed; a lease does not show whether its holder works."


def serve() -> tuple[FakeServer, list[Elector]]:
    server, electors = shop()
    server.uids["db-0"] = "uid-db-0"
    together(20, *electors)
    return server, electors


def play(server: FakeServer, electors: list[Elector], number: int, *tweaks: Tweak, every: int = 4) -> None:
    """Have the holder's pod write something every few seconds, a second before a renewal."""
    for _ in range(number):
        together(every, *electors)
        server.log.append(work((server.now - START) / SECOND - 1, *tweaks))


def rest(server: FakeServer, electors: list[Elector], seconds: int) -> None:
    assert server.now
    together(seconds, *electors)


def find_advice(server: FakeServer) -> str:
    return advise(account(follow_log(server), server.now))


def test_a_holder_that_wrote_regularly_and_then_nothing_is_said() -> None:
    server, electors = serve()
    play(server, electors, 10)
    rest(server, electors, 40)
    assert find_advice(server) == IDLE
    assert text(account(follow_log(server), server.now)).endswith(IDLE)


@pytest.mark.parametrize(
    ("number", "every", "seconds"),
    [(10, 4, 26), (4, 12, 90), (10, 2, 40), (5, 14, 60)],
    ids=["for a moment", "few writes", "a process that starts", "as long as between its writes, nearly"],
)
def test_a_holder_that_need_not_have_stopped(number: int, every: int, seconds: int) -> None:
    server, electors = serve()
    play(server, electors, number, every=every)
    rest(server, electors, seconds)
    assert find_advice(server).startswith(WELL.removesuffix("."))


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(20, ", but its pod wrote other objects, the last time at 11:07:39Z."), (80, ".")],
    ids=["until shortly before the end", "not for a minute"],
)
def test_what_its_pod_wrote_until_the_end_is_said(seconds: int, said: str) -> None:
    server, electors = serve()
    play(server, electors, 4, every=10)
    rest(server, electors, seconds)
    assert find_advice(server) == f"{WELL.removesuffix('.')}{said}"


@pytest.mark.parametrize(
    ("pauses", "seconds", "is_said"),
    [
        ((4, 4, 4, 4), 125, True),
        ((4, 2, 2, 2), 110, False),
        ((4, 4, 6, 4), 130, False),
        ((4, 4, 4), 130, False),
        ((4, 2, 6, 2), 125, False),
        ((4, 0, 0, 0), 125, False),
    ],
    ids=[
        "evenly",
        "for less than two minutes",
        "for less than ten times as long",
        "three times",
        "unevenly",
        "at once, as at a start",
    ],
)
def test_few_writes_count_if_they_came_evenly(pauses: tuple[int, ...], seconds: int, is_said: bool) -> None:
    server, electors = serve()
    for pause in pauses:
        play(server, electors, 1, every=pause)
    rest(server, electors, seconds)
    assert ("no write by its pod" in find_advice(server)) == is_said


@pytest.mark.parametrize(
    "tweaks",
    [
        (put("verb", "get"),),
        (put("objectRef", {"resource": "events", "namespace": "shop"}),),
        (put("responseStatus.code", 409),),
        (drop("user.extra"),),
    ],
    ids=["reads", "Events", "conflicts", "no pod"],
)
def test_what_is_no_work_shows_no_rhythm(tweaks: tuple[Tweak, ...]) -> None:
    server, electors = serve()
    play(server, electors, 10, *tweaks)
    rest(server, electors, 40)
    assert find_advice(server) == WELL


def test_what_it_does_to_pods_is_work() -> None:
    server, electors = serve()
    play(server, electors, 10)
    for _ in range(10):
        rest(server, electors, 4)
        server.delete_pod("cart-7", put("user", POD))
    assert find_advice(server).startswith(WELL.removesuffix("."))
    for _ in range(10):
        rest(server, electors, 4)
        log_status(server, "cart-7", put("user", POD))
    assert find_advice(server).startswith(WELL.removesuffix("."))


@pytest.mark.parametrize("resource", ["configmaps", "pods"])
def test_a_deletion_that_may_have_been_a_dry_run_may_be_work(resource: str) -> None:
    server, electors = serve()
    play(server, electors, 10)
    deleted = put("objectRef", {"resource": resource, "namespace": "shop", "name": "old", "apiVersion": "v1"})
    play(server, electors, 10, put("verb", "delete"), deleted)
    assert find_advice(server) == WELL


def test_an_eviction_that_may_have_been_a_dry_run_may_be_work() -> None:
    server, electors = serve()
    play(server, electors, 10)
    evicted = {"resource": "pods", "namespace": "shop", "name": "x", "subresource": "eviction", "apiVersion": "v1"}
    play(server, electors, 10, put("verb", "create"), put("objectRef", evicted))
    assert find_advice(server) == WELL


@pytest.mark.parametrize(
    ("verb", "resource"),
    [("patch", {"resource": "carts"}), ("delete", {"resource": "pods"}), ("update", {"resource": "secrets"})],
    ids=["a custom resource", "a pod", "a secret"],
)
def test_what_its_account_writes_as_another_user_may_be_its_work(verb: str, resource: dict[str, str]) -> None:
    server, electors = serve()
    play(server, electors, 10)
    alice = put("impersonatedUser", {"username": "alice@example.org"})
    reference = {"namespace": "shop", "name": "old", "apiVersion": "v1"} | resource
    play(server, electors, 10, put("verb", verb), put("objectRef", reference), alice)
    assert find_advice(server) == WELL


def test_a_holder_that_wrote_nothing_for_long_may_rest_again() -> None:
    server, electors = serve()
    rest(server, electors, 200)
    play(server, electors, 10)
    rest(server, electors, 80)
    assert find_advice(server) == WELL


def test_few_even_writes_after_a_long_time_without_any_may_be_all() -> None:
    server, electors = serve()
    rest(server, electors, 60)
    play(server, electors, 5)
    rest(server, electors, 165)
    assert find_advice(server) == WELL


def test_of_very_many_writes_a_time_without_any_may_be_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_activities, "MAX_REQUESTS", 10)
    server, electors = serve()
    play(server, electors, 11)
    rest(server, electors, 60)
    assert find_advice(server) == WELL


def test_a_deletion_of_a_pod_by_somebody_else_is_not_its_work() -> None:
    server, electors = serve()
    play(server, electors, 10)
    rest(server, electors, 20)
    server.delete_pod("cart-7")
    rest(server, electors, 20)
    assert find_advice(server) == IDLE


def test_work_before_it_held_the_lease_is_not_counted() -> None:
    server, electors = shop()
    server.uids["db-1"] = "uid-db-1"
    db, *others = electors
    together(20, db, *others)
    other = server.elector("db-1", "shop/db")
    other.ask()
    for _ in range(10):
        together(4, db, *others)
        server.log.append(work((server.now - START) / SECOND - 1, pod="db-1"))
    db.release()
    other.take()
    together(40, other, *others)
    assert "no write by its pod" not in find_advice(server)


def test_a_lease_that_is_not_renewed_has_no_holder_that_only_renews() -> None:
    server, (db, *others) = serve()
    play(server, [db, *others], 10)
    together(60, *others)
    assert account(follow_log(server), server.now).pods.idle is None


def test_a_log_with_a_hole_does_not_show_it() -> None:
    server, electors = serve()
    play(server, electors, 10)
    server.wait(60)
    for one in electors:
        one.renew()
    rest(server, electors, 40)
    assert len(follow_log(server).bounds.holes) == 1
    assert account(follow_log(server), server.now).pods.idle is None


def test_a_log_that_lacks_requests_does_not_show_it() -> None:
    server, electors = serve()
    play(server, electors, 10)
    rest(server, electors, 40)
    assert account(follow_both(server), server.now).pods.idle is not None
    late = [one for one in server.log if one["objectRef"].get("name") == "db" and one["verb"] == "update"][-4]
    server.log.remove(late)
    assert account(follow_both(server), server.now).pods.idle is None


def test_a_holder_without_a_pod_may_be_several_processes() -> None:
    server, electors = shop()
    together(20, *electors)
    play(server, electors, 10)
    rest(server, electors, 40)
    assert find_advice(server) == WELL


def test_creations_of_pods_that_are_refused_are_said() -> None:
    server, electors = serve()
    refusal = put("responseStatus", {"code": 403, "message": 'pods is forbidden: User "x" cannot create resource'})
    pods = put("objectRef", {"resource": "pods", "namespace": "shop", "apiVersion": "v1"})
    play(server, electors, 4, put("verb", "create"), pods, refusal)
    assert "4 requests of pod db-0, its holder, to create pods in namespace shop were refused for lack of" in text(
        account(follow_log(server), server.now)
    )


def test_a_creation_of_a_pod_that_is_invalid_says_nothing_of_what_it_may_do() -> None:
    server, electors = serve()
    pods = put("objectRef", {"resource": "pods", "namespace": "shop", "apiVersion": "v1"})
    play(server, electors, 4, put("verb", "create"), pods, put("responseStatus.code", 422))
    assert "to create pods" not in text(account(follow_log(server), server.now))


def hand_over(
    server: FakeServer,
    seconds: int,
    *,
    successor: bool = True,
    every: int = 4,
    is_released: bool = True,
    tries: int = 10,
) -> tuple[FakeServer, Elector]:
    """db-0 holds the lease for some time and writes nothing else; then db-1 does, and writes every few seconds."""
    db, second = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    server.uids["db-1"] = "uid-db-1"
    together(seconds, db)
    if is_released:
        db.release()
    else:
        server.wait(40)
    server.wait(1)
    second.take()
    for _ in range(tries):
        together(every, second)
        if successor:
            server.log.append(work((server.now - START) / SECOND - 1, put("user", NEXT)))
    return server, second


NEXT: Final = {
    "username": "system:serviceaccount:shop:db",
    "extra": {
        "authentication.kubernetes.io/pod-name": ["db-1"],
        "authentication.kubernetes.io/pod-uid": ["uid-db-1"],
    },
}


def start() -> FakeServer:
    server = FakeServer()
    server.uids["db-0"] = "uid-db-0"
    return server


def idle_of(server: FakeServer) -> str:
    """Return the lines about former holders that wrote nothing else."""
    lines = text(account(follow_log(server), server.now)).splitlines()
    return "\n".join(one for one in lines if "wrote only leases and Events" in one)


SAID: Final = (
    "renewed it and, in the log, wrote only leases and Events (otherwise holders wrote at least every 4 s): "
    "it may not have worked"
)


@pytest.mark.parametrize("is_released", [True, False], ids=["and released the lease", "and let it expire"])
def test_a_former_holder_that_wrote_nothing_beside_others_that_did_is_said(is_released: bool) -> None:
    server, _ = hand_over(start(), 40, is_released=is_released)
    assert idle_of(server) == f"11:06:40Z: for 40 s pod db-0 {SAID}"


def test_a_former_holder_that_wrote_no_more_is_said() -> None:
    server = start()
    db = server.elector("db-0", "shop/db")
    together(4, db)
    play(server, [db], 10)
    hand_over(server, 40, tries=2)
    assert idle_of(server) == f"11:07:23Z: for 41 s pod db-0 {SAID}"


@pytest.mark.parametrize(
    "server",
    [
        pytest.param(hand_over(start(), 26)[0], id="for a moment"),
        pytest.param(hand_over(start(), 40, successor=False)[0], id="no one wrote"),
        pytest.param(hand_over(start(), 40, tries=4)[0], id="few writes"),
        pytest.param(hand_over(start(), 40, every=10)[0], id="as rarely as others, nearly"),
    ],
)
def test_a_former_holder_that_need_not_have_been_idle(server: FakeServer) -> None:
    assert idle_of(server) == ""


def test_of_the_present_holder_the_advice_says_so() -> None:
    server, second = hand_over(start(), 20)
    together(40, second)
    assert idle_of(server) == ""


def test_a_former_holder_need_not_have_been_idle_if_its_pod_is_not_known() -> None:
    server, _ = hand_over(FakeServer(), 40)
    assert idle_of(server) == ""


def test_a_former_holder_need_not_have_been_idle_if_pods_were_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    server, _ = hand_over(start(), 40)
    monkeypatch.setattr(pod_activities, "MAX_PODS", 1)
    assert idle_of(server) == ""


def test_a_former_holder_need_not_have_been_idle_if_its_user_wrote_as_another() -> None:
    server, _ = hand_over(start(), 40)
    server.log.append(work(30, put("impersonatedUser", {"username": "alice"})))
    assert idle_of(server) == ""


def test_a_former_holder_need_not_have_been_idle_if_the_log_lacks_requests() -> None:
    server, _ = hand_over(start(), 40)
    histories = follow_log(server)
    histories.bounds.is_log_leaky = True
    assert "wrote only leases" not in text(account(histories, server.now))
