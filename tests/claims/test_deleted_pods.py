"""A holder whose pod was deleted: when that is why its renewals ended, and when it is not said."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.claims.accounts import account, shop
from tests.factories import Document, drop, put
from tests.history.fake_server import SECOND, Elector, FakeServer, together
from tests.history.observing import advise, follow_both, follow_log, merge_inputs
from tests.inputs.reading import read
from tests.inputs.test_absences import CREATED, missing_pod_event
from webhook.analysis.claims.claim import Claim, make_claim_json
from webhook.analysis.claims.diagnosis import Blame
from webhook.analysis.claims.evidence.pods.holder_pods import find_evictor
from webhook.analysis.claims.facts import find_claims
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.times import format_micro_time, parse

USER = "system:serviceaccount:shop:db"
Deed = Callable[[FakeServer], None]


def lead_until_deleted() -> tuple[FakeServer, Elector, Elector]:
    """A server on which db-0 led for a minute until its pod was deleted, and the holders of two other leases."""
    server, (db, mail, cart) = shop()
    server.uids["db-0"] = "u-1"
    together(60, db, mail, cart)
    server.delete_pod("db-0")
    return server, mail, cart


def play(
    *deeds: tuple[float, Deed], silent: float = 20, mail_stops: bool = False, uid: str = "u-1", name: str = "db-0_1"
) -> tuple[FakeServer, Elector]:
    """A leader of shop/db that leads for two minutes and is silent, then another one; each deed at seconds after that.

    The times before its last renewal are negative.
    """
    server = FakeServer(uids={"db-0": uid, "db-1": "u-9"})
    db, mail, cart = (server.elector(f"{one}-0", f"shop/{one}") for one in ("db", "mail", "cart"))
    db.identity = name
    end = server.now + 120 * SECOND
    todo = sorted(deeds, key=lambda deed: deed[0])

    def do_until(moment: int) -> None:
        now = server.now
        while todo and end + todo[0][0] * SECOND <= moment:
            at, deed = todo.pop(0)
            server.now = end + int(at * SECOND)
            deed(server)
        server.now = now

    together(0, db, mail, cart)
    while server.now < end:
        do_until(server.now + 2 * SECOND - 1)
        together(2, db, mail, cart)
    while server.now < end + silent * SECOND:
        do_until(server.now + 2 * SECOND - 1)
        if mail_stops:
            server.wait(2)
        else:
            together(2, mail, cart)
    second = server.elector("db-1", "shop/db")
    for _ in second.ticks(60):
        for elector in (second, mail, cart):
            (
                elector.take
                if elector is second and server.leases["shop/db"]["spec"]["holderIdentity"] != "db-1_1"
                else elector.renew
            )()
    server.log.sort(key=lambda event: event["stageTimestamp"])
    return server, db


def let_another_follow(server: FakeServer, mail: Elector, cart: Elector) -> None:
    """Have db-1 take the lease once it has expired, while two others are renewed."""
    together(20, mail, cart)
    second = server.elector("db-1", "shop/db")
    second.take()
    together(20, second, mail, cart)


def find_loss(server: FakeServer, follow: Callable[[FakeServer], Any] = follow_log) -> Claim:
    (claim,) = (one for one in find_claims(account(follow(server), server.now)) if one.check == "leader-lost")
    return claim


def delete(pod: str = "db-0", *tweaks: Any, **more: Any) -> Deed:
    return lambda server: server.delete_pod(pod, *tweaks, **more)


def causes_of(claim: Claim) -> list[str]:
    written = make_claim_json(claim)
    return written.get("causes") or [written["cause"]]


@pytest.mark.parametrize("uid", ["", "u-1"])
@pytest.mark.parametrize("at", [-58, -28, -1, 0.5])
def test_a_pod_that_was_deleted_before_its_process_was_silent(at: float, uid: str) -> None:
    server, _ = play((at, delete(uid=uid)))
    loss = find_loss(server)
    assert (loss.cause, causes_of(loss)) == (Blame.POD, ["pod-deleted"])
    assert "Z. The pod of db-0_1 was deleted at 11:0" in loss.message
    assert loss.message.endswith("Z by kube-system/replicaset-controller.")
    assert loss.advice.startswith("See which pods run now, and their events")
    assert loss.fix == "kubectl -n shop get pods,events"


def test_a_pod_that_was_evicted() -> None:
    server, _ = play((0.5, delete("db-0", put("user.username", "alice"), is_eviction=True)))
    assert "The pod of db-0_1 was evicted at 11:08:40Z by alice." in find_loss(server).message


def test_a_deletion_that_may_have_been_a_dry_run() -> None:
    server, _ = play(
        (0.5, delete("db-0", put("user.username", "alice"), put("level", "Metadata"), drop("responseObject")))
    )
    loss = find_loss(server)
    assert causes_of(loss) == ["pod-deleted", "stopped"]
    assert "by alice (unless that was a dry run, which the log does not show)." in loss.message


def log_missing(*tweaks: Any) -> Deed:
    """Have the API server answer a person that the pod of db-0 is not there."""
    return lambda server: server.log.append(missing_pod_event(*dating(server), *tweaks))


def dating(server: FakeServer) -> tuple[Any, Any]:
    """Return the changes that date an event at the current time."""
    now = format_micro_time(server.now)
    return put("requestReceivedTimestamp", now), put("stageTimestamp", now)


HIDDEN = (put("user.username", "alice"), put("level", "Metadata"), drop("responseObject"))
"""Changes to a deletion after which it may have been a dry run."""


@pytest.mark.parametrize("tweaks", [(), CREATED], ids=["it was not found", "another one has its name"])
def test_a_deletion_after_which_the_pod_was_gone_was_no_dry_run(tweaks: tuple[Any, ...]) -> None:
    server, _ = play((0.5, delete("db-0", *HIDDEN)), (0.6, log_missing(*tweaks)))
    loss = find_loss(server)
    assert causes_of(loss) == ["pod-deleted"]
    assert "was deleted at 11:08:40Z by alice." in loss.message


@pytest.mark.parametrize(
    ("deeds", "gone"),
    [((log_missing(),), "deleted at 11:07:40Z by alice, and no kubelet confirmed that it ended"), ((), "")],
    ids=["it was not found", "that is not shown"],
)
def test_a_pod_is_gone_that_was_not_found_after_its_deletion(deeds: tuple[Deed, ...], gone: str) -> None:
    server, (db, mail, cart) = shop()
    together(60, db, mail, cart)
    delete("db-0", *HIDDEN)(server)
    server.wait(0.1)
    for deed in deeds:
        deed(server)
    together(40, mail, cart)
    assert account(follow_log(server), server.now).pods.gone == gone


@pytest.mark.parametrize(
    "deeds",
    [
        ((0.4, log_missing()),),
        ((0.6, log_missing(put("objectRef.name", "db-1"))),),
        ((0.45, delete("db-0", put("user.username", "bob"), *HIDDEN[1:])), (0.6, log_missing())),
    ],
    ids=["it was gone before", "another pod was gone", "another one may have deleted it"],
)
def test_what_does_not_show_that_a_deletion_was_no_dry_run(deeds: tuple[tuple[float, Deed], ...]) -> None:
    server, _ = play((0.5, delete("db-0", *HIDDEN)), *deeds)
    assert "unless that was a dry run" in find_loss(server).message


def test_a_process_may_have_stopped_before_its_pod_was_deleted() -> None:
    server, _ = play((1.9, delete(uid="u-1")))
    loss = find_loss(server)
    assert causes_of(loss) == ["pod-deleted", "stopped"]
    sentence = "by kube-system/replicaset-controller, 1.9 s after its last renewal."
    assert sentence in loss.message


def test_of_two_deletions_after_it_was_silent_the_first_is_dated() -> None:
    server, _ = play((1.5, by("alice")), (1.9, by("bob")))
    assert "by alice and deleted at 11:08:41Z by bob, the first time 1.5 s after its last renewal." in (
        find_loss(server).message
    )


def kubelet(**more: Any) -> Deed:
    return delete("db-0", put("user.username", "system:node:worker-1"), **more)


def by(user: str, *tweaks: Any, **more: Any) -> Deed:
    return delete("db-0", put("user.username", user), *tweaks, **more)


def test_a_kubelet_that_confirms_a_deletion_is_not_named_beside_it() -> None:
    server, _ = play((-28, delete()), (1.5, kubelet()))
    assert (
        "The pod of db-0_1 was deleted at 11:08:12Z by kube-system/replicaset-controller." in find_loss(server).message
    )


def test_a_kubelet_confirms_a_deletion_with_a_long_grace_period() -> None:
    server, _ = play((-110, by("bob", uid="u-1")), (-100, by("alice", uid="u-1")), (0.5, kubelet(uid="u-1")))
    loss = find_loss(server)
    assert "The pod of db-0_1 was deleted at 11:07:00Z by alice, as its kubelet confirmed at 11:08:40Z." in loss.message
    assert causes_of(loss) == ["pod-deleted"]


def test_a_kubelet_does_not_say_who_deleted_a_pod() -> None:
    server, _ = play((0.5, kubelet(uid="u-1")))
    loss = find_loss(server)
    sentence = (
        "as its kubelet confirmed at 11:08:40Z; who asked for that is not shown, and its process may have stopped"
    )
    assert f"The pod of db-0_1 was deleted, {sentence} before." in loss.message
    assert causes_of(loss) == ["pod-deleted", "stopped"]


def test_who_acts_as_a_kubelet_confirms_nothing() -> None:
    alice = put("impersonatedUser", {"username": "system:node:worker-1"})
    server, _ = play((0.5, by("alice", alice, uid="u-1")))
    assert "deleted at 11:08:40Z by system:node:worker-1 (impersonated by alice)." in find_loss(server).message


def test_of_several_deletions_the_first_and_the_last_are_named() -> None:
    server, _ = play((-50, by("alice")), (-40, by("carol")), (0.5, by("bob", is_eviction=True)))
    loss = find_loss(server)
    assert "The pod of db-0_1 was deleted at 11:07:50Z by alice and evicted at 11:08:40Z by bob." in loss.message
    assert causes_of(loss) == ["pod-deleted"]


def test_a_dry_run_before_and_a_deletion_after_it_stopped_leave_it_open_why() -> None:
    hidden = (put("level", "Metadata"), put("responseObject", None))
    server, _ = play((-50, by("alice", *hidden)), (1.9, by("bob", uid="u-1")))
    loss = find_loss(server)
    assert causes_of(loss) == ["pod-deleted", "stopped"]
    assert "by alice (unless that was a dry run, which the log does not show) and deleted at 11:08:41Z by bob." in (
        loss.message
    )


@pytest.mark.parametrize(
    ("at", "is_order_known"), [(0.5, True), (20.5, False)], ids=["deleted, then silent", "silent, then deleted"]
)
def test_of_two_api_servers_with_different_clocks_the_order_may_not_be_known(at: float, is_order_known: bool) -> None:
    """The deletion, and the writes of the lease mail, are logged by a server whose clock is 20 s behind."""
    server, _ = play((at, delete(uid="u-1")), silent=30)
    logs: tuple[list[Document], list[Document]] = ([], [])
    for number, event in enumerate(server.log):
        name = event["objectRef"]["name"]
        is_behind = name == "mail" or event["objectRef"]["resource"] == "pods" or (name == "cart" and number % 2 == 1)
        behind = 20 * SECOND if is_behind else 0
        times = ("requestReceivedTimestamp", "stageTimestamp")
        logs[is_behind].append({**event, **{key: format_micro_time(parse(event[key]) - behind) for key in times}})
    texts = ["\n".join(json.dumps(one, separators=(",", ":")) for one in log).encode() for log in logs]
    histories = ClusterHistory()
    for item in merge_inputs(*(read(f"{number}.log", [text]) for number, text in enumerate(texts))):
        histories.add(item)
    assert histories.bounds.skew > 10 * SECOND
    (claim,) = (one for one in find_claims(account(histories, server.now)) if one.check == "leader-lost")
    assert causes_of(claim)[:2] == ["pod-deleted", "stopped"]
    assert claim.message.endswith("; its process may have stopped before.") is not is_order_known


def test_an_input_with_a_watch_says_the_same() -> None:
    server, _ = play((0.5, delete()))
    assert find_loss(server, follow_both).cause == Blame.POD


@pytest.mark.parametrize(
    "deed",
    [
        pytest.param((-70, delete(uid="u-1")), id="it renewed for more than a minute afterwards"),
        pytest.param((9, delete(uid="u-1")), id="it had been silent for longer than usual"),
        pytest.param((0.5, delete(uid="u-2")), id="a pod of that name before it"),
        pytest.param((0.5, delete("db-2")), id="another pod"),
        pytest.param((0.5, delete("db-0", put("objectRef.namespace", "infra"))), id="another namespace"),
        pytest.param((0.5, delete("db-0", put("responseStatus.code", 403))), id="refused"),
        pytest.param((0.5, delete("db-0", put("requestObject", {"dryRun": ["All"]}))), id="a dry run"),
    ],
)
def test_a_deletion_that_is_not_why(deed: tuple[float, Deed]) -> None:
    server, _ = play(deed)
    loss = find_loss(server)
    assert "pod-deleted" not in causes_of(loss)
    assert "deleted" not in loss.message


def test_a_pod_that_came_again_under_its_name() -> None:
    """The deletion has no uid, and the one that led took the lease after it."""
    server = FakeServer(uids={"db-0": "u-2", "db-1": "u-9"})
    server.delete_pod("db-0")
    server.wait(3)
    db, mail, cart = (server.elector(f"{one}-0", f"shop/{one}") for one in ("db", "mail", "cart"))
    together(30, db, mail, cart)
    let_another_follow(server, mail, cart)
    assert "pod-deleted" not in causes_of(find_loss(server))


def test_a_pod_that_came_again_before_the_log_shows_its_lease() -> None:
    """The deletion has no uid, and the lease is held under the name of both pods since the one before took it."""
    server = FakeServer(uids={"db-0": "u-1", "db-1": "u-9"})
    db, mail, cart = (server.elector(f"{one}-0", f"shop/{one}") for one in ("db", "mail", "cart"))
    together(30, db, mail, cart)
    server.log.clear()
    server.delete_pod("db-0")
    server.uids["db-0"] = "u-2"
    server.wait(5)
    together(40, db, mail, cart)
    let_another_follow(server, mail, cart)
    assert "pod-deleted" not in causes_of(find_loss(server))


def test_a_pod_that_was_heard_before_it_was_deleted() -> None:
    """The deletion has no uid, and the log begins after its process took the lease."""
    server = FakeServer(uids={"db-0": "u-1", "db-1": "u-9"})
    db, mail, cart = (server.elector(f"{one}-0", f"shop/{one}") for one in ("db", "mail", "cart"))
    together(30, db, mail, cart)
    server.log.clear()
    together(30, db, mail, cart)
    server.delete_pod("db-0")
    let_another_follow(server, mail, cart)
    assert causes_of(find_loss(server)) == ["pod-deleted"]


@pytest.mark.parametrize("is_eviction", [False, True], ids=["deleted", "evicted"])
@pytest.mark.parametrize(
    ("at", "name", "is_said"), [(-10, "db-0", False), (0.5, "db-0", True), (-10, "db-0_7c1e", True)]
)
def test_pods_of_a_name_that_look_alike(at: float, name: str, is_said: bool, is_eviction: bool) -> None:
    """Without uids the pod that renewed after a deletion may be the next one, if it has the same text as holder."""
    server, _ = play((at, delete(is_eviction=is_eviction)), uid="", name=name)
    assert ("pod-deleted" in causes_of(find_loss(server))) is is_said


def test_a_process_that_asked_for_the_lease_later_was_alive() -> None:
    def ask(server: FakeServer) -> None:
        server.log_request("shop/db", "get", USER, "db-0", {})

    server, _ = play((0.5, delete()), (15, ask))
    assert "pod-deleted" not in causes_of(find_loss(server))


def test_a_pod_that_took_the_lease_later_under_another_name_was_alive() -> None:
    server, mail, cart = lead_until_deleted()
    together(20, mail, cart)
    renamed = server.elector("db-0-again", "shop/db", pod="db-0")
    renamed.take()
    together(20, renamed, mail, cart)
    assert "pod-deleted" not in causes_of(find_loss(server))


def test_a_process_that_renewed_another_lease_later_was_alive() -> None:
    server = FakeServer(uids={"db-0": "u-1", "db-1": "u-9"})
    db, mail, cart = (server.elector(f"{one}-0", f"shop/{one}") for one in ("db", "mail", "cart"))
    jobs = server.elector("db-0", "shop/jobs", user=USER)
    together(60, db, jobs, mail, cart)
    server.delete_pod("db-0")
    together(20, jobs, mail, cart)
    second = server.elector("db-1", "shop/db")
    second.take()
    together(20, second, jobs, mail, cart)
    assert "pod-deleted" not in causes_of(find_loss(server))


def test_other_leases_that_stopped_as_well() -> None:
    server, _ = play((0.5, delete()), mail_stops=True)
    loss = find_loss(server)
    assert loss.cause != Blame.POD
    assert causes_of(loss)[-1] == "pod-deleted"
    assert "; but its pod was deleted at 11:08:40Z by kube-system/replicaset-controller" in loss.message


def test_a_refusal_counts_first() -> None:
    def fail(server: FakeServer) -> None:
        server.log_request("shop/db", "update", USER, "db-0", {"message": "no"}, 403)

    server, _ = play((0.5, delete()), *((at, fail) for at in (1, 3, 5, 7, 9)))
    assert causes_of(find_loss(server))[0] == "refused-other"


def fail_unauthenticated(server: FakeServer) -> None:
    server.elector("db-0", "shop/db").fail_unauthenticated()


def refuse(*deeds: tuple[float, Deed], since: float = 2) -> Claim:
    """A leader of which, after two minutes, the token is not accepted, and which asks on until it gives up."""
    server, _ = play(*deeds, *((since + at, fail_unauthenticated) for at in (0, 2, 4, 6, 8)))
    return find_loss(server)


@pytest.mark.parametrize(
    ("at", "went_on"),
    [(-95, ", after which it renewed until 11:08:40Z, 1 min 35 s later"), (0.5, "")],
    ids=["long before", "just now"],
)
def test_the_token_of_a_pod_that_was_deleted_is_not_accepted(at: float, went_on: str) -> None:
    loss = refuse((at, by("alice")))
    assert (loss.cause, causes_of(loss)) == (Blame.REFUSED, ["refused-credentials", "stopped", "pod-deleted"])
    assert "The requests of db-0_1 may have been refused: 5 writes answered with 401 (Unauthorized)" in loss.message
    assert "; its pod was deleted at 11:0" in loss.message
    assert f"Z by alice{went_on}, and the token of a pod is not accepted once it is gone, or from 60 s" in loss.message
    assert loss.message.endswith(" after its deletionTimestamp on. It may have stopped as well.")
    assert loss.advice.startswith("The pod of db-0_1 was deleted at 11:0")
    assert "a token that had expired" not in loss.advice
    assert "; its process may still run on its node. To see which pods run now:" in loss.advice
    assert loss.fix == "kubectl -n shop get pods,events -o wide"


def test_the_token_of_a_pod_that_was_deleted_by_force_is_not_accepted_at_once() -> None:
    loss = refuse((-8, delete("db-0", put("requestObject", {"kind": "DeleteOptions", "gracePeriodSeconds": 0}))))
    assert loss.message.endswith("the token of a pod that is gone is not accepted. It may have stopped as well.")


def test_a_process_of_which_a_kubelet_confirmed_the_end_does_not_run_on() -> None:
    loss = refuse((-95, by("alice")), (11, kubelet()))
    assert loss.cause == Blame.REFUSED
    assert "and has ended since, as its kubelet confirmed. To see which pods run now:" in loss.advice
    assert "may still run" not in loss.advice


def test_the_node_of_a_pod_whose_token_is_not_accepted_is_named() -> None:
    server, (db, *others) = shop()
    server.nodes["db-0"] = "worker-8"
    together(20, db, *others)
    server.delete_pod("db-0")
    for _ in range(5):
        together(2, *others)
        db.fail_unauthenticated()
    together(10, *others)
    advice = advise(account(follow_log(server), server.now))
    assert advice.startswith("The pod of db-0_1 was deleted at 11:07:00Z by kube-system/replicaset-controller; its")
    assert advice.endswith("To see the node: kubectl describe node worker-8")


@pytest.mark.parametrize(
    "deeds",
    [[], [(5, delete(uid="u-1"))], [(-8, delete(uid="u-2"))]],
    ids=["of no pod", "after the first refusal", "of another pod of that name"],
)
def test_a_deletion_that_is_not_why_a_token_is_not_accepted(deeds: list[tuple[float, Deed]]) -> None:
    loss = refuse(*deeds, since=0.2)
    assert "the token of a pod" not in loss.message
    assert causes_of(loss) == ["refused-credentials", "stopped"]
    assert "accepted no credentials with these requests" in loss.advice


def test_after_the_containers_of_a_pod_have_ended_another_process_asks_from_its_address() -> None:
    loss = refuse((-5, delete()), (0.5, kubelet()))
    assert loss.cause == Blame.POD
    assert "401" not in loss.message


def test_who_asked_for_a_deletion_that_only_a_kubelet_confirms_is_not_named() -> None:
    loss = refuse((0.5, kubelet()), since=0.3)
    assert "accepted no credentials with these requests" in loss.advice


def test_an_expired_lease_that_nobody_takes() -> None:
    server, mail, cart = lead_until_deleted()
    together(40, mail, cart)
    answer = account(follow_log(server), server.now)
    assert answer.cause is not None
    assert answer.cause.blame is Blame.POD
    assert "kubectl -n shop get pods,events" in advise(answer)


def list_pod_deletions(server: FakeServer) -> list[str]:
    return [one.text for one in account(follow_log(server), server.now).pods.deletions]


def test_a_pod_that_held_a_lease_was_deleted() -> None:
    server, _ = play((-28, delete()))
    assert list_pod_deletions(server) == [
        "pod db-0, which held it, was deleted by kube-system/replicaset-controller, and went on renewing it for 28 s"
    ]


def test_the_pod_before_a_holder_of_its_name_did_not_hold_it_when_the_log_begins() -> None:
    server = FakeServer(uids={"db-0": "u-1"})
    db = server.elector("db-0", "shop/db")
    db.lead(30)
    server.log.clear()
    server.delete_pod("db-0")
    server.uids["db-0"] = "u-2"
    server.wait(5)
    db.lead(40)
    assert list_pod_deletions(server) == []


def test_who_asked_for_a_deletion_is_named_before_the_kubelet_that_confirms_it() -> None:
    confirmed = play((-28, kubelet()))[0]
    assert list_pod_deletions(confirmed) == ["pod db-0, which held it, was deleted, as its kubelet confirmed"]
    asked = play((-30, kubelet()), (-28, by("alice")))[0]
    assert list_pod_deletions(asked) == [
        "pod db-0, which held it, was deleted by alice, and went on renewing it for 28 s"
    ]


def test_a_kubelet_is_not_who_evicts_the_pods_of_holders() -> None:
    for deed, evictor in ((kubelet(uid="u-1"), None), (by("alice", uid="u-1"), Writer("alice"))):
        server, _ = play((-1, deed))
        answer = account(follow_log(server), server.now)
        assert find_evictor(answer.pods.deletions, [answer.history.tenures[0]]) == evictor


def test_a_holder_that_seldom_renewed_was_deleted_within_its_own_rhythm() -> None:
    server = FakeServer(uids={"db-0": "u-0", "db-1": "u-1"})
    server.elector("db-0", "shop/db", duration=60, retry=10.0).lead(60)
    server.wait(5)
    server.delete_pod("db-0", uid="u-0")
    server.wait(60)
    server.elector("db-1", "shop/db").lead(60)
    (lost,) = (one for one in find_claims(account(follow_log(server), server.now)) if one.check == "leader-lost")
    assert "by kube-system/replicaset-controller, 5 s after its last renewal" in lost.message
