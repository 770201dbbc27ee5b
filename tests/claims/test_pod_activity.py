"""A holder that does not renew, while its pod asks for other things: it runs, and may work on as a leader."""

from collections.abc import Sequence

import pytest

from tests.claims.accounts import account, shop, text
from tests.claims.test_pods import EVICTED, log_status, say
from tests.factories import Tweak, put
from tests.history.fake_server import SECOND, START, Elector, FakeServer, together
from tests.history.observing import follow_log
from tests.inputs.test_pod_activity import work

SILENT = "For most of that time the log has no answered request for the lease from its pod"
MAY_HAVE_ENDED = "(it may have ended, or been paused, blocked or cut off)"
READ = put("verb", "get")


def serve() -> tuple[FakeServer, list[Elector]]:
    server, electors = shop()
    server.uids |= {f"{pod}-{number}": f"uid-{pod}-{number}" for pod in ("db", "mail", "cart") for number in (0, 1)}
    return server, electors


def log_work(server: FakeServer, *tweaks: Tweak, pod: str = "db-0") -> None:
    server.log.append(work((server.now - START) / SECOND, *tweaks, pod=pod))


def play(seconds: float, server: FakeServer, others: Sequence[Elector], *tweaks: Tweak, pods: Sequence[str]) -> None:
    """Let pods work each 2 s, beside leases that are renewed."""
    for _ in range(int(seconds / 2)):
        together(2, *others)
        for pod in pods:
            log_work(server, *tweaks, pod=pod)


def explain(server: FakeServer) -> str:
    return text(account(follow_log(server), server.now))


def find_loss(server: FakeServer) -> str:
    found = account(follow_log(server), server.now).findings
    return next(one.message for one in found if one.check == "leader-lost")


def lose(worked: Sequence[float], *tweaks: Tweak) -> FakeServer:
    """A holder falls silent whose pod works at some of the seconds after that, until another one takes the lease."""
    server, (db, mail, cart) = serve()
    together(60, db, mail, cart)
    for second in range(2, 22, 2):
        together(2, mail, cart)
        if second in worked:
            log_work(server, *tweaks)
    server.elector("db-1", "shop/db").take()
    return server


def test_a_pod_that_works_meanwhile_ran_and_was_connected() -> None:
    server = lose(range(2, 22, 2), READ)
    output = explain(server)
    assert (
        f"{SILENT}, but at least 8 others, the last answered at 11:07:58Z: until then the pod ran and was connected "
        "(the part of it that renews may have ended, or been blocked or limited by its own client, or may not renew at "
        "all, for example); 2 other leases were renewed on time." in output
    )
    assert MAY_HAVE_ENDED not in output
    assert "The pod of db-0_1, which lost the lease, went on; see what it did meanwhile:" in output


@pytest.mark.parametrize(
    ("worked", "number"),
    [
        ((6, 8), "2 others, the last"),
        ((6,), "1 other,"),
        ((4, 6, 8), "3 others, the last"),
        ((12, 14, 16), "3 others, the last"),
    ],
    ids=["few", "one", "at the start only", "at the end only"],
)
def test_a_pod_with_a_long_time_without_a_request_may_have_ended(worked: Sequence[float], number: str) -> None:
    output = explain(lose(worked))
    assert f"{SILENT}, but at least {number} answered at " in output
    assert f"Z {MAY_HAVE_ENDED}; 2 other leases" in output
    assert "which lost the lease, went on" not in output


RAN_ON = (
    "Since its last renewal the log has no answered request for the lease from the pod of db-0_1, but at least 5 "
    "others, from 11:07:54Z to 11:08:54Z: its pod ran on, and the part of it that renews may have ended, be "
    "blocked, or be limited by its own client, for example; 2 other leases were renewed on time."
)
RESTART = (
    "The pod of db-0_1 ran on, and did not ask for the lease any more. See its log, and restart the pod if no other "
    "replica takes the lease; a new process asks for it, as a rule: kubectl -n shop logs db-0"
)


def go_on(worked: Sequence[float], *, asks: float = 0, standby: bool = False, until: int = 80) -> FakeServer:
    """A holder falls silent whose pod works at some of the seconds after that, and nobody takes the lease."""
    server, (db, *others) = serve()
    follower = server.elector("db-1", "shop/db")
    together(60, db, *others)
    for second in range(2, until, 2):
        together(2, *others)
        if second in worked:
            log_work(server, READ)
        if second == asks:
            db.ask()
        if standby and second == 78:
            follower.ask()
    return server


def test_a_pod_that_works_on_and_asks_no_more_runs() -> None:
    server = go_on(range(14, 80, 15), until=76)
    assert "expired" in explain(server)
    server = go_on((14, 28, 44, 58, 74), until=80)
    output = explain(server)
    assert RAN_ON in output
    assert output.endswith(RESTART)
    (expired,) = (one for one in account(follow_log(server), server.now).findings if one.check == "expired")
    assert expired.fix == "kubectl -n shop get pods; kubectl -n shop logs db-0"


@pytest.mark.parametrize(
    "server",
    [
        go_on((14, 58)),
        go_on((14, 24, 34), until=80),
        go_on((14, 20, 26, 28), until=38),
        go_on((14, 28, 60, 70)),
        go_on((14, 28, 44, 58, 74), asks=40),
        go_on((14, 28, 44, 58, 74), asks=78),
    ],
    ids=[
        "few requests",
        "none at the end",
        "for a moment",
        "with a long pause",
        "which asked for the lease",
        "which asked for it at last",
    ],
)
def test_a_pod_that_need_not_run_on(server: FakeServer) -> None:
    output = explain(server)
    assert "ran on" not in output


def test_a_pod_that_renewed_again_did_not_ask_no_more() -> None:
    server, (db, *others) = serve()
    together(60, db, *others)
    for _ in range(40):
        together(2, *others)
        log_work(server, READ)
    db.renew()
    assert "its pod ran on" not in explain(server)


def test_of_another_that_asks_it_is_said_first() -> None:
    output = explain(go_on((14, 28, 44, 58, 74), standby=True))
    assert RAN_ON in output
    assert RESTART not in output


def test_a_pod_that_was_deleted_at_last_is_not_restarted() -> None:
    server = go_on((14, 28, 44, 58, 74))
    server.delete_pod("db-0", put("user", {"username": "system:node:node-1", "groups": ["system:nodes"]}))
    output = explain(server)
    assert "gone by" in output
    assert RESTART not in output


def test_a_pod_without_another_request_is_not_said_to_have_any() -> None:
    assert f"{SILENT} {MAY_HAVE_ENDED}" in explain(lose(()))


def test_pods_without_a_uid_may_be_several() -> None:
    server = lose(range(2, 22, 2))
    for event in server.log:
        event["user"]["extra"].pop("authentication.kubernetes.io/pod-uid", None)
    assert f"{SILENT} {MAY_HAVE_ENDED}" in explain(server)


def test_of_a_pod_whose_container_ended_the_causes_of_a_silence_are_not_guessed() -> None:
    server, (db, mail, cart) = serve()
    together(60, db, mail, cart)
    together(6, mail, cart)
    log_work(server)
    log_status(server, "db-0", *say(EVICTED))
    together(14, mail, cart)
    server.elector("db-1", "shop/db").take()
    output = explain(server)
    assert f"{SILENT}, but at least 1 other, answered at 11:07:46Z; 2 other leases" in output


def test_a_pod_that_asked_for_its_lease_meanwhile_also_had_other_requests() -> None:
    server, (db, mail, cart) = serve()
    together(60, db, mail, cart)
    for second in range(0, 20, 2):
        together(2, mail, cart)
        log_work(server)
        if second == 2:
            db.ask()
    server.elector("db-1", "shop/db").take()
    found = find_loss(server)
    assert "Its pod made at least 1 request for the lease, none of which renewed it; 2 other leases were " in found
    assert "; at least 9 other requests of its pod were answered meanwhile, the last at 11:07:58Z" in found


def test_a_few_other_requests_of_a_pod_that_asked_for_its_lease_say_nothing_more() -> None:
    server, (db, mail, cart) = serve()
    together(60, db, mail, cart)
    for second in range(0, 20, 2):
        together(2, mail, cart)
        if second == 2:
            db.ask()
        if second == 10:
            log_work(server)
    server.elector("db-1", "shop/db").take()
    assert "of its pod w" not in find_loss(server)


def test_other_requests_are_no_sign_beside_what_the_server_answered() -> None:
    server, (db, mail, cart) = serve()
    together(60, db, mail, cart)
    for second in range(0, 20, 2):
        together(2, mail, cart)
        log_work(server, put("verb", "get"))
        if second < 12:
            db.fail(500, "etcdserver: request timed out")
    server.elector("db-1", "shop/db").take()
    found = find_loss(server)
    assert "of its pod w" not in found
    assert "answered with 500" in found


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (1, "1 other request of its pod was answered meanwhile, at "),
        (2, "2 other requests of its pod were answered meanwhile, the last at "),
    ],
)
def test_clients_reached_the_api_server_if_the_pod_of_the_holder_did(number: int, said: str) -> None:
    server, electors = serve()
    electors.append(server.elector("index-0", "shop/index"))
    together(40, *electors)
    for _ in range(number):
        server.wait(6)
        log_work(server)
    server.wait(20 - 6 * number)
    for elector in electors:
        elector.renew()
    output = explain(server)
    assert (
        "Why is not known: all 3 other leases due at least twice were late at the same time, "
        f"but at least {said}" in output
    )
    assert "Clients did not reach the API server" not in output


def take_turns(*, is_at_work: bool) -> FakeServer:
    """Replicas that take a lease in turn, each time after it expired, and never renew it."""
    server = FakeServer()
    server.uids |= {f"db-{number}": f"uid-db-{number}" for number in range(2)}
    electors = [server.elector(f"db-{number}", "shop/db", duration=16) for number in range(2)]
    others = [server.elector(f"mail{number}-0", f"shop/mail{number}") for number in range(3)]
    together(20, *others)
    for turn in range(5):
        holder, before = electors[turn % 2], electors[(turn - 1) % 2]
        holder.take()
        for second in range(0, 18, 2):
            together(2, *others)
            if is_at_work:
                log_work(server, pod=holder.pod)
            if turn and second == 2:
                before.ask()
    electors[1].take()
    together(2, *others)
    electors[0].ask()
    return server


def test_holders_that_work_each_time_may_be_kept_from_renewing() -> None:
    server = take_turns(is_at_work=True)
    output = explain(server)
    assert (
        "Its holders may renew too rarely, stop each time, or be kept from renewing, as by a rate limit of their own "
        "client: at least 5 holders in a row let it expire" in output
    )
    assert "(it lasts 16 s); at least 8 other requests of its pod were answered meanwhile, the last at " in output
    assert "went on; see what it did meanwhile:" in output
    assert "be kept from renewing" not in explain(take_turns(is_at_work=False))


def take_over(
    after: Sequence[str], *, asks: bool = False, before: bool = False, tweaks: Sequence[Tweak] = ()
) -> FakeServer:
    """A holder that falls silent; once another one has the lease, some pods work each 2 s."""
    server, (db, mail, cart) = serve()
    together(60, db, mail, cart)
    together(18, mail, cart)
    if before:
        db.ask()
    together(2, mail, cart)
    other = server.elector("db-1", "shop/db", duration=60)
    other.take()
    play(20, server, [mail, cart], *tweaks, pods=after)
    if asks:
        db.ask()
        play(8, server, [mail, cart], *tweaks, pods=after)
    other.renew()
    return server


def test_a_former_holder_that_writes_on_may_be_a_second_leader() -> None:
    found = find_loss(take_over(["db-0", "db-1"]))
    assert found.endswith(
        " At least 9 writes of its pod to other objects came after that, until 11:08:18Z, and 9 of the pod of db-1_1 "
        "meanwhile, which may be the work of two leaders."
    )


def test_what_it_writes_after_it_has_asked_again_is_no_longer_the_work_of_a_leader() -> None:
    found = find_loss(take_over(["db-0"], asks=True))
    assert found.endswith(
        " At least 9 writes of its pod to other objects came after that, until 11:08:18Z, which may be the work of "
        "two leaders. A request for the lease by its pod was received at 11:08:19Z."
    )


@pytest.mark.parametrize(
    ("after", "before", "tweaks"),
    [
        (["db-1"], False, ()),
        (["db-0"], True, ()),
        (["db-0"], False, (READ,)),
        (["mail-0"], False, ()),
    ],
    ids=["only the new holder", "it asked before", "reads", "the pod of another lease"],
)
def test_what_is_not_the_work_of_a_second_leader(after: Sequence[str], before: bool, tweaks: Sequence[Tweak]) -> None:
    assert "two leaders" not in find_loss(take_over(after, before=before, tweaks=tweaks))


def test_a_pod_that_takes_the_lease_under_another_name_is_one_leader() -> None:
    server, (db, mail, cart) = serve()
    together(60, db, mail, cart)
    together(20, mail, cart)
    restarted = server.elector("db-0", "shop/db", duration=60)
    restarted.identity = "db-0_2"
    restarted.take()
    play(20, server, [mail, cart], pods=["db-0"])
    restarted.renew()
    assert "two leaders" not in find_loss(server)


@pytest.mark.parametrize(("number", "has_gone_on"), [(1200, True), (900, False)], ids=["forgotten", "remembered"])
def test_the_first_requests_of_a_pod_that_asks_often_are_not_missed(number: int, has_gone_on: bool) -> None:
    server, (db, mail, cart) = serve()
    together(60, db, mail, cart)
    together(80, mail, cart)
    for count in range(number):
        server.now += SECOND // 100
        if count % 100 == 0:
            mail.renew()
            cart.renew()
        log_work(server)
    server.elector("db-1", "shop/db").take()
    assert ("until then the pod ran and was connected" in find_loss(server)) is has_gone_on


@pytest.mark.parametrize(("every", "has_gone_on"), [(14, True), (18, False)])
def test_a_pod_that_asks_rarely_may_have_been_paused_between(every: int, has_gone_on: bool) -> None:
    server, (db, mail, cart) = serve()
    together(60, db, mail, cart)
    for _ in range(6):
        together(every, mail, cart)
        log_work(server)
    server.elector("db-1", "shop/db").take()
    assert ("until then the pod ran and was connected" in find_loss(server)) is has_gone_on


@pytest.mark.parametrize(("later", "is_work"), [(-0.001, True), (0.001, False)])
def test_a_write_that_is_received_before_it_asks_again_is_the_work_of_a_leader(later: float, *, is_work: bool) -> None:
    """The answer to that write comes after: each takes 2 ms, a read of the lease 4 ms."""
    server, (db, mail, cart) = serve()
    together(60, db, mail, cart)
    together(20, mail, cart)
    other = server.elector("db-1", "shop/db", duration=60)
    other.take()
    together(20, mail, cart)
    db.ask()
    asked = (server.now - START) / SECOND - 0.004
    server.log.append(work(asked + later, pod="db-0"))
    server.wait(0.1)
    other.renew()
    assert ("which may be the work of two leaders" in find_loss(server)) is is_work


@pytest.mark.parametrize(
    ("until", "is_work"), [(None, False), (90, False), (40, True)], ids=["still", "until later", "until earlier"]
)
def test_what_a_pod_writes_while_it_holds_another_lease_may_be_of_that(until: int | None, *, is_work: bool) -> None:
    server, (db, mail, cart) = serve()
    shard = server.elector("db-0", "shop/shard", duration=60, user="system:serviceaccount:shop:db")
    together(40, db, mail, cart, shard)
    if until == 40:
        shard.release()
    together(20, db, mail, cart)
    together(20, mail, cart)
    other = server.elector("db-1", "shop/db", duration=60)
    other.take()
    play(10, server, [mail, cart], pods=["db-0", "db-1"])
    if until == 90:
        shard.release()
    play(10, server, [mail, cart], pods=["db-0", "db-1"])
    other.renew()
    assert ("which may be the work of two leaders" in find_loss(server)) is is_work


def release(*, works_on: int, next_works: bool = True) -> str:
    """A holder releases the lease, and its pod writes on for so many seconds, beside that of the next holder."""
    server, (db, mail, cart) = serve()
    follower = server.elector("db-1", "shop/db")
    together(60, db, mail, cart)
    server.wait(0.5)
    db.release()
    server.wait(0.5)
    follower.take()
    for second in range(0, 40, 2):
        together(2, follower, mail, cart)
        if second < works_on:
            log_work(server, pod="db-0")
        if next_works:
            server.wait(0.1)
            log_work(server, pod="db-1")
    return explain(server)


def test_a_pod_that_writes_on_after_its_release_beside_the_next_holder_is_named() -> None:
    wrote = "11:07:40Z: pod db-0 wrote other objects 10 times until 11:08:01Z, 21.4 s after its release"
    assert f"{wrote}, and that of db-1_1 9 times meanwhile: two may have worked at once" in release(works_on=20)


@pytest.mark.parametrize(("works_on", "next_works"), [(4, True), (20, False)], ids=["it ends", "only it writes"])
def test_what_a_pod_writes_as_it_ends_is_no_work_of_two(works_on: int, next_works: bool) -> None:
    assert "two may have worked at once" not in release(works_on=works_on, next_works=next_works)


@pytest.mark.parametrize(
    ("agent", "end"),
    [
        ("test/v1.2 (linux/amd64) kubernetes/abc", "which may be the work of two leaders."),
        (
            "csi-provisioner/v1.14.0 (linux/amd64)",
            " What its pod wrote after that, until 11:08:18Z, is by other programs than its elector: csi-provisioner.",
        ),
    ],
    ids=["its own program", "another program"],
)
def test_what_another_program_of_its_pod_writes_is_not_the_work_of_two_leaders(agent: str, end: str) -> None:
    assert find_loss(take_over(["db-0"], tweaks=[put("userAgent", agent)])).endswith(end)
