"""Heartbeats of nodes and API servers that stop with a leader, while others go on: a part of a cluster is away."""

from collections.abc import Callable

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import Elector, FakeServer, together
from tests.history.observing import follow_log, follow_watch
from webhook.analysis.claims.evidence.silent_holders.lost_heartbeats import find_lost_heartbeats
from webhook.analysis.claims.facts import find_claims
from webhook.analysis.claims.presentation.urgency import advise_with_urgency
from webhook.analysis.history import heartbeat_stops
from webhook.analysis.history.follow import ClusterHistory
from webhook.kubernetes.times import SECOND

LOST = "A node, an API server or a zone may be lost or cut off"
IDENTITY = "kube-system/apiserver-rplpdvtx3lntmi4xy2xnxookk4"
READY = "/readyz"


def heartbeat(server: FakeServer, lease: str) -> Elector:
    found = server.elector(lease.partition("/")[2], lease, user=f"system:{lease}", retry=10, duration=40)
    found.pod = ""
    return found


def lose(
    *,
    stopped: tuple[str, ...],
    gone_on: tuple[str, ...],
    late: int = 3,
    on_time: int = 1,
    away: int = 60,
    back: int = 0,
) -> FakeServer:
    """db-0, heartbeats and `late` leaders stop at once, for `away` seconds; db-1 takes its lease after 20 s."""
    server = FakeServer(nodes={"db-0": "a1", **{f"m{number}-0": f"n{number}" for number in range(9)}})
    first, second = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    leaders = [server.elector(f"m{number}-0", f"shop/m{number}") for number in range(late + on_time)]
    lost, kept = [heartbeat(server, one) for one in stopped], [heartbeat(server, one) for one in gone_on]
    for elector in (*lost, *kept):
        elector.take()
    server.wait(10)
    go_on(90, [first, *leaders], [*lost, *kept])
    go_on(20, leaders[late:], kept)
    second.take()
    go_on(away - 20, [second, *leaders[late:]], kept)
    go_on(back, [second, *leaders[late:]], [*lost, *kept])
    return server


def go_on(seconds: int, leaders: list[Elector], heartbeats: list[Elector]) -> None:
    """Let leaders renew each 2 s, and heartbeats each 10 s."""
    for second in range(0, seconds, 2):
        for elector in heartbeats if second % 10 == 0 else ():
            elector.renew()
        if leaders:
            together(2, *leaders)
        else:
            heartbeats[0].server.wait(2)


def explain(histories: ClusterHistory, now: int) -> str:
    found = account(histories, now)
    advice = advise_with_urgency(found)
    return f"{text(found)} {advice.sentence} {advice.command}"


@pytest.mark.parametrize("view", [follow_watch, follow_log], ids=["a watch", "an audit log"])
def test_a_part_of_a_cluster_that_is_away_is_not_looked_for_in_etcd(
    view: Callable[[FakeServer], ClusterHistory],
) -> None:
    server = lose(stopped=("kube-node-lease/a1", IDENTITY), gone_on=("kube-node-lease/b1", "kube-node-lease/b2"))
    output = explain(view(server), server.now)
    assert f"no renewal of kube-node-lease/a1 and {IDENTITY} is shown for " in output
    assert "and 2 other leases of nodes and API servers went on; 5 of the 8 other leases due at least twice" in output
    assert (
        f"(kube-node-lease/a1, {IDENTITY} and 3 more), and kube-node-lease/b1, kube-node-lease/b2 and 1 more were"
        in output
    )
    assert "kubectl get nodes -L topology.kubernetes.io/zone; kubectl -n kube-system get leases" in output
    assert READY not in output


def test_of_many_heartbeats_a_few_are_named() -> None:
    stopped = tuple(f"kube-node-lease/a{number}" for number in range(1, 6))
    server = lose(stopped=stopped, gone_on=(IDENTITY,))
    output = explain(follow_watch(server), server.now)
    assert LOST in output
    assert "kube-node-lease/a1, kube-node-lease/a2, kube-node-lease/a3 and 2 more is shown" in output
    assert "and 1 other lease of nodes and API servers went on" in output


def test_a_part_that_came_back_was_away_for_so_long() -> None:
    server = lose(stopped=("kube-node-lease/a1",), gone_on=("kube-node-lease/b1",), back=30)
    output = explain(follow_watch(server), server.now)
    assert "no renewal of kube-node-lease/a1 is shown for 1 min 10 s from " in output


def test_a_leader_that_stops_alone_with_a_node_is_looked_for_at_its_pod() -> None:
    server = lose(stopped=("kube-node-lease/a1",), gone_on=("kube-node-lease/b1",), late=0, on_time=3)
    output = explain(follow_watch(server), server.now)
    assert "no renewal of kube-node-lease/a1 is shown for " in output
    assert "describe pod db-0" in output
    assert "get nodes" not in output


@pytest.mark.parametrize(
    ("stopped", "gone_on", "away"),
    [
        (("kube-node-lease/a1", IDENTITY), (), 60),
        ((), ("kube-node-lease/b1", IDENTITY), 60),
        (("kube-node-lease/a1",), ("kube-node-lease/b1",), 24),
        (("kube-system/apiserver-own",), ("kube-node-lease/b1",), 60),
    ],
    ids=["all stopped", "all went on", "it may come yet", "another lease of kube-system"],
)
def test_a_part_is_not_away_unless_heartbeats_of_it_alone_stopped(
    stopped: tuple[str, ...], gone_on: tuple[str, ...], away: int
) -> None:
    server = lose(stopped=stopped, gone_on=gone_on, away=away)
    output = explain(follow_watch(server), server.now)
    assert "took the expired lease" in output
    assert LOST not in output
    assert "is shown for" not in output


def test_what_stopped_at_another_time_or_is_not_shown_is_not_counted() -> None:
    server = lose(stopped=("kube-node-lease/a1",), gone_on=("kube-node-lease/b1", "kube-node-lease/b2"))
    histories = follow_watch(server)
    db = histories.leases["shop", "db"]
    start, end = db.tenures[0].last_renewal, db.tenures[1].since
    assert find_lost_heartbeats(histories, db, start - 30 * SECOND, end) is None
    found = find_lost_heartbeats(histories, db, start, end)
    assert found is not None
    assert found.gone_on == 2
    histories.leases["kube-node-lease", "b1"].renewals.miss(start, end)
    found = find_lost_heartbeats(histories, db, start, end)
    assert found is not None
    assert found.gone_on == 1
    again = follow_watch(server)
    again.leases["kube-node-lease", "a1"].renewals.miss(start, end)
    assert find_lost_heartbeats(again, again.leases["shop", "db"], start, end) is None


def test_of_very_many_heartbeats_a_sample_says_how_many_went_on_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat_stops, "MAX_COMPARED", 2)
    nodes = tuple(f"kube-node-lease/b{number}" for number in range(7))
    server = lose(stopped=("kube-node-lease/a1",), gone_on=nodes)
    assert "and at least 1 other lease of nodes and API servers went on" in explain(follow_watch(server), server.now)


def slow_down(lease: str, others: int = 0, *, has_node: bool = False) -> ClusterHistory:
    """The lease of an API server, or others, are renewed less often while a holder is silent; db-1 takes its lease.

    `has_node`: a log shows it, and that the node of the holder is heard meanwhile.
    """
    server = FakeServer(nodes={"db-0": "n1"} if has_node else {})
    first, second = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    leaders = [server.elector(f"m{number}-0", f"shop/m{number}") for number in range(4)]
    leaders += [server.elector("n1", "kube-node-lease/n1", user="system:node:n1")] if has_node else []
    slow = [heartbeat(server, lease), *(heartbeat(server, f"kube-system/x{number}") for number in range(others))]
    for elector in slow:
        elector.take()
    for second_of in range(0, 60, 2):
        for elector in slow if second_of % 4 == 0 else ():
            elector.renew()
        together(2, first, *leaders)
    for second_of in range(0, 20, 2):
        for elector in slow if second_of == 10 else ():
            elector.renew()
        together(2, *leaders)
    second.take()
    for _ in range(10):
        for elector in slow:
            elector.renew()
        together(2, second, *leaders)
    return follow_log(server) if has_node else follow_watch(server)


@pytest.mark.parametrize(
    ("lease", "others", "is_said"), [(IDENTITY, 0, True), ("kube-system/own", 0, False), (IDENTITY, 1, False)]
)
def test_of_one_api_server_whose_lease_was_late_too_the_client_is_not_cleared_and_not_blamed(
    lease: str, others: int, *, is_said: bool
) -> None:
    histories = slow_down(lease, others)
    answer = account(histories, histories.bounds.until or 0)
    said = f"{lease} was late at the same time: the lease of an API server, which its client may have used."
    assert (said in text(answer)) is is_said
    assert ("Look at the API server whose lease was late" in advise_with_urgency(answer).sentence) is is_said
    assert [one.cause for one in find_claims(answer) if one.check == "leader-lost"] == [
        "unknown" if is_said else "client"
    ]


@pytest.mark.parametrize(
    ("lease", "said"),
    [
        (IDENTITY, f"{IDENTITY} was late at the same time: the lease of an API server, which its client may have used"),
        ("kube-system/own", "kube-system/own was late at the same time"),
    ],
    ids=["of an API server", "another one"],
)
def test_the_node_of_a_holder_that_was_heard_is_not_said_to_be_late_with_another_lease(lease: str, said: str) -> None:
    histories = slow_down(lease, has_node=True)
    assert f"{said}; the lease of its node was renewed" in text(account(histories, histories.bounds.until or 0))


@pytest.mark.parametrize(
    ("back", "gone", "rest", "said"),
    [
        (
            0,
            1,
            40,
            "6 of 7 other leases due at least twice were renewed on time, and shop/gone-0 was not renewed again",
        ),
        (0, 3, 40, ", and shop/gone-0, shop/gone-1 and 1 more were not renewed again."),
        (1, 1, 40, ", and shop/back-0 was late at the same time, and shop/gone-0 was not renewed again."),
        (2, 0, 40, ", and shop/back-0 and shop/back-1 were late at the same time."),
        (0, 1, 0, ", and shop/gone-0 was late at the same time."),
    ],
    ids=["one that stopped", "three", "one of two", "none of two", "too short a time until the input ends"],
)
def test_a_lease_that_was_not_renewed_again_is_not_said_to_have_been_late(
    back: int, gone: int, rest: int, said: str
) -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    leaders = [server.elector(f"o-{one}", f"shop/on-time-{one}") for one in range(6)]
    late = [server.elector(f"b-{one}", f"shop/back-{one}") for one in range(back)]
    stopped = [server.elector(f"g-{one}", f"shop/gone-{one}", duration=40) for one in range(gone)]
    for _ in range(6):
        together(10, db, *leaders, *late)
        for one in stopped:
            (one.renew if one.lease in server.leases else one.take)()
    together(22, *leaders)
    together(2 + rest, server.elector("db-1", "shop/db"), *leaders, *late)
    assert said in text(account(follow_watch(server), server.now))


def test_of_a_watch_it_is_said_that_it_does_not_show_where_the_holder_ran() -> None:
    server = lose(stopped=("kube-node-lease/a1",), gone_on=("kube-node-lease/b1",), late=0, on_time=3)
    assert "(whether the holder ran there is not shown), and 1 other lease" in explain(follow_watch(server), server.now)


@pytest.mark.parametrize(("node", "is_said"), [("a1", True), ("b1", False)], ids=["its node", "another node"])
def test_a_log_that_shows_the_node_of_the_holder_explains_nothing_by_another_node(node: str, is_said: bool) -> None:
    server = lose(stopped=("kube-node-lease/a1",), gone_on=("kube-node-lease/b1",), late=0, on_time=3)
    for event in server.log:
        extra = event["user"].get("extra", {})
        if extra.get("authentication.kubernetes.io/pod-name") == ["db-0"]:
            extra["authentication.kubernetes.io/node-name"] = [node]
    output = explain(follow_log(server), server.now)
    assert ("is shown for" in output) is is_said
    assert "whether the holder ran there" not in output


def test_a_holder_that_is_named_as_a_node_ran_there() -> None:
    server = lose(stopped=("kube-node-lease/a1",), gone_on=("kube-node-lease/b1",), late=0, on_time=3)
    for _, _, document in server.events:
        if document["spec"]["holderIdentity"] == "db-0_1" and document["metadata"]["name"] == "db":
            document["spec"]["holderIdentity"] = "a1"
    output = explain(follow_watch(server), server.now)
    assert "no renewal of kube-node-lease/a1 is shown for" in output
    assert "whether the holder ran there" not in output
