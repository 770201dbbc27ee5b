"""The headline of a lease: the fact that matters now."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.claims.accounts import account, shop, text
from tests.factories import Document, drop, make_lease, put
from tests.history.fake_server import SECOND, FakeServer, hide_responses, together
from tests.history.observing import advise, cluster_of, follow_log, follow_watch
from tests.inputs.reading import read
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.facts import find_claims
from webhook.analysis.claims.findings.headline import make_headline
from webhook.analysis.claims.presentation.happened import list_events, list_latest
from webhook.analysis.claims.presentation.text import list_facts
from webhook.analysis.history.follow import ClusterHistory
from webhook.cli.lease_table import make_row
from webhook.cli.options import parse_moment

NOW = parse_moment("2025-11-20T12:20:00Z")
HEARTBEAT = (drop("spec.acquireTime"), drop("spec.leaseTransitions"))
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "agent-x2x8p", "uid": "u"}


def explain_state(lease: Document, now: int = NOW) -> Account:
    histories = ClusterHistory()
    for item in read("leases.json", [json.dumps({"apiVersion": "v1", "kind": "List", "items": [lease]}).encode()]):
        histories.add(item)
    (key,) = histories.names()
    return make_account(histories, histories.get_history(key), now)


@pytest.mark.parametrize(
    ("changes", "takeable"),
    [([], "-"), ([put("spec.leaseTransitions", 0)], "now")],
    ids=["a heartbeat", "an election"],
)
def test_no_one_is_to_take_a_heartbeat(changes: list[Any], takeable: str) -> None:
    lease = make_lease(*HEARTBEAT, *changes)
    answer = explain_state(lease)
    labels = [line.label for line in list_facts(answer)]
    assert ("Can be taken" in labels) is (takeable == "now")
    assert list(make_row(answer).cells)[4].text == takeable


@pytest.mark.parametrize(
    ("changes", "expected", "command"),
    [
        ([], "heartbeat of checkout-6d5f9c-x2x8p_1f0e silent for 20 min 0 s", "describe pod checkout-6d5f9c-x2x8p"),
        (
            [put("metadata.ownerReferences", [OWNER])],
            'heartbeat of checkout-6d5f9c-x2x8p_1f0e silent for 20 min 0 s; its owner is "Pod agent-x2x8p"',
            "kubectl -n shop describe pod agent-x2x8p",
        ),
        (
            [put("metadata.namespace", "kube-node-lease"), put("metadata.name", "worker-1")],
            "heartbeat of checkout-6d5f9c-x2x8p_1f0e silent for 20 min 0 s",
            "kubectl describe node worker-1",
        ),
    ],
    ids=["without an owner", "with an owner", "of a node"],
)
def test_a_silent_heartbeat_is_no_election(changes: list[Any], expected: str, command: str) -> None:
    answer = explain_state(make_lease(*HEARTBEAT, *changes))
    assert make_headline(answer) == expected
    assert command in advise(answer)
    assert "replica" not in advise(answer)
    assert "Why" not in [line.label for line in list_facts(answer)]


def test_a_heartbeat_that_goes_on_says_when_it_was_seen() -> None:
    answer = explain_state(make_lease(*HEARTBEAT), parse_moment("2025-11-20T12:00:05Z"))
    assert make_headline(answer) == "heartbeat of checkout-6d5f9c-x2x8p_1f0e, seen 5 s ago"


def test_a_holder_that_is_silent_while_its_lease_lives_does_not_hold_it_as_usual() -> None:
    server, (db, mail, cart) = shop()
    together(40, db, mail, cart)
    db.renew(leaseDurationSeconds=3600)
    together(60, mail, cart)
    answer = account(follow_log(server), server.now)
    assert make_headline(answer) == "db-0_1 has not renewed it for 1 min 0 s, and keeps it until 12:07:20Z"


def test_an_edit_by_another_one_is_among_the_latest_events() -> None:
    server, (db, mail, cart) = shop()
    together(40, db, mail, cart)
    spec = {**server.leases["shop/db"]["spec"], "leaseDurationSeconds": 3600}
    server.write("shop/db", spec, "kubectl-edit", "alice", "")
    together(60, mail, cart)
    lines = [one.text for one in list_latest(account(follow_log(server), server.now))]
    hint = "what a finding says, list_latest does not say again: then this line goes, and the finding is pinned instead"
    assert lines == ["leaseDurationSeconds 15 -> 3600 by alice"], hint


@pytest.mark.parametrize(
    ("is_taken", "expected"),
    [(True, "db-1_1 took it (shop/db from pod db-1) after db-0_1 released it"), (False, "db-0_1 released it")],
    ids=["taken since", "free"],
)
def test_the_last_handover_is_among_the_latest_events(is_taken: bool, expected: str) -> None:
    server, (db, mail, cart) = shop()
    together(20, db, mail, cart)
    db.release()
    if is_taken:
        together(20, server.elector("db-1", "shop/db"), mail, cart)
    (line,) = list_latest(account(follow_log(server), server.now))
    assert line.text.startswith(expected)


def test_a_first_holder_at_work_has_no_latest_event() -> None:
    server, electors = shop()
    together(20, *electors)
    assert [*list_latest(account(follow_log(server), server.now))] == []


def create_unheld(*, edits: int = 0, manager: str = "operator") -> FakeServer:
    """Create a lease without a holder, which others edit in the same second."""
    server = FakeServer()
    spec = {"holderIdentity": "", "leaseTransitions": 0}
    server.write("shop/db", spec, "operator", "system:serviceaccount:shop:operator", "")
    for number in range(edits):
        server.write("shop/db", {**spec, "leaseDurationSeconds": 15 + number}, manager, "jane", "")
    server.wait(20)
    server.elector("mail-0", "shop/mail").take()
    return server


def test_of_a_lease_that_was_never_held_the_latest_event_is_its_creation_and_no_one_waits() -> None:
    server = create_unheld()
    never_held = account(follow_log(server), server.now)
    assert [(line.label, line.text) for line in list_latest(never_held)] == [
        ("11:06:40Z", "the lease was created by shop/operator")
    ]
    assert "Waiting" not in {line.label for line in list_facts(never_held)}


@pytest.mark.parametrize(
    ("server", "follow", "created"),
    [
        (create_unheld(), follow_watch, " under the field manager operator, which its writer chose"),
        (create_unheld(edits=1, manager="kubectl-edit"), follow_watch, ""),
        (create_unheld(edits=1, manager="kubectl-edit"), follow_log, " by shop/operator"),
    ],
    ids=["a watch", "a watch of two managers", "a log"],
)
def test_who_created_a_lease_that_was_never_held_is_said_as_far_as_it_is_known(
    server: FakeServer, follow: Callable[[FakeServer], ClusterHistory], created: str
) -> None:
    never_held = account(follow(server), server.now)
    assert f"11:06:40Z: the lease was created{created}\n" in text(never_held)


def test_the_time_of_a_creation_that_a_client_claims_is_none() -> None:
    server = create_unheld()
    hide_responses(server)
    server.log[0]["requestObject"]["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    assert "11:06:40Z: the lease was created by shop/operator\n" in text(account(follow_log(server), server.now))


@pytest.mark.parametrize("is_held", [False, True])
def test_when_a_lease_was_created_is_not_said_from_a_list_or_once_it_was_held(*, is_held: bool) -> None:
    server = create_unheld()
    if is_held:
        server.elector("db-0", "shop/db").take()
    found = follow_watch(server) if is_held else cluster_of(server.dump())
    assert "the lease was created" not in text(account(found, server.now))


def test_a_free_lease_of_a_list_has_been_free_since_no_known_time() -> None:
    answer = explain_state(make_lease(put("spec.holderIdentity", ""), drop("metadata.managedFields")))
    (free,) = (claim for claim in find_claims(answer) if claim.check == "free")
    assert "from" not in free.arguments


@pytest.mark.parametrize(("reads", "waiting"), [(3, ["db-1"]), (2, [])], ids=["again and again", "twice"])
def test_a_replica_that_reads_the_lease_again_and_again_is_waiting(reads: int, waiting: list[str]) -> None:
    server, (db, *_) = shop()
    replica = server.elector("db-1", "shop/db")
    db.lead(20)
    for _ in range(reads):
        replica.ask()
        db.lead(2)
    replica.fail(409)
    lines = [line.text for line in list_facts(account(follow_log(server), server.now)) if line.label == "Waiting"]
    assert lines == [f"{name} (reads the lease again and again)" for name in waiting]


def test_the_claim_that_a_lease_is_free_does_not_begin_after_the_end() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    db.release()
    answer = account(follow_log(server), server.now - SECOND // 2)
    (free,) = (claim for claim in find_claims(answer) if claim.check == "free")
    assert free.message == "no one holds it: it was released"
    assert "from" not in free.arguments


def test_a_length_is_rounded_in_one_way() -> None:
    server, (db, mail, cart) = shop()
    together(40, db, mail, cart)
    server.wait(0.6)
    together(20, mail, cart)
    answer = account(follow_log(server), server.now)
    (expired,) = (found for found in answer.findings if found.check == "expired")
    assert make_headline(answer) == "db-0_1 has not renewed it for 20.6 s"
    assert "20.6 s ago" in expired.message


def test_a_lease_without_stamps_is_not_all_right() -> None:
    histories = ClusterHistory()
    wiped = make_lease(put("metadata.name", "wiped"), put("metadata.managedFields", []))
    document = {"apiVersion": "v1", "kind": "List", "items": [make_lease(), wiped]}
    for item in read("leases.json", [json.dumps(document).encode()]):
        histories.add(item)
    answer = make_account(histories, histories.get_history(("shop", "wiped")), parse_moment("2025-11-20T12:00:04Z"))
    assert "lease-without-stamps" in [found.check for found in answer.findings]
    assert advise(answer).startswith("The lease is held and renewed; fix the finding: kubectl -n shop get lease wiped")


@pytest.mark.parametrize(("seconds", "is_over"), [(4, False), (30, True)], ids=["a moment ago", "long ago"])
def test_refusals_that_have_ended_are_over(seconds: int, is_over: bool) -> None:
    server, electors = shop()
    together(20, *electors)
    server.elector("db-1", "shop/db").fail(403, "no")
    together(seconds, *electors)
    (refused,) = (found for found in account(follow_log(server), server.now).findings if found.check == "write-refused")
    assert isinstance(refused, Claim)
    assert refused.is_over is is_over


def test_an_expiry_counts_from_the_naming_of_a_holder_that_never_renewed() -> None:
    server, (db, mail, cart) = shop()
    together(20, db, mail, cart)
    db.release()
    server.elector("alice", "shop/db", user="alice").take(holderIdentity="ghost-0_1")
    together(20, mail, cart)
    together(10, server.elector("db-1", "shop/db"), mail, cart)
    lines = [line.text for line in list_events(account(follow_log(server), server.now))]
    assert "the lease expired, 15 s after alice from pod alice wrote ghost-0_1 into it" in lines


def test_who_creates_a_lease_again_is_not_the_holder_that_it_names() -> None:
    server, (db, mail, cart) = shop()
    together(20, db, mail, cart)
    server.wait(1)
    server.delete("shop/db", "alice")
    server.wait(0.02)
    server.elector("alice", "shop/db", user="alice").take(holderIdentity="old-0_1")
    together(4, mail, cart)
    (deleted,) = (one for one in account(follow_log(server), server.now).findings if one.check == "lease-deleted")
    assert "alice from pod alice created it again with the holder old-0_1 at once" in deleted.message


def written_in(*, is_renewed: bool, writer: str = "mallory", pod: str = "", wait: int = 20) -> FakeServer:
    """A server on which someone wrote db-1 into the expired lease of db-0."""
    server, (db, mail, cart) = shop()
    together(20, db, mail, cart)
    together(wait, mail, cart)
    server.elector("kubectl", "shop/db", user=writer, pod=pod).take(holderIdentity="db-1_1")
    together(6, *([server.elector("db-1", "shop/db")] if is_renewed else []), mail, cart)
    return server


@pytest.mark.parametrize(
    ("server", "followed", "headline"),
    [
        (
            written_in(is_renewed=True),
            "20 s before mallory wrote db-1_1 into the expired lease at 11:07:20Z.",
            "db-1_1 holds it since 11:07:20Z, renewed 0 s ago",
        ),
        (
            written_in(is_renewed=False),
            "20 s before mallory wrote db-1_1 into the expired lease at 11:07:20Z.",
            "db-1_1 holds it since 11:07:20Z, written in by mallory, and not renewed since",
        ),
        (
            written_in(is_renewed=False, writer="system:serviceaccount:shop:db", pod="db-1"),
            "20 s before db-1_1 took the expired lease at 11:07:20Z.",
            "db-1_1 holds it since 11:07:20Z, taken 6 s ago and not renewed since",
        ),
    ],
    ids=["renewed since", "not renewed", "by its own pod"],
)
def test_who_writes_a_holder_into_an_expired_lease_is_named(server: FakeServer, followed: str, headline: str) -> None:
    answer = account(follow_log(server), server.now)
    (lost,) = (found for found in answer.findings if found.check == "leader-lost")
    assert f"db-0_1 last renewed at 11:07:00Z, {followed}" in lost.message
    assert make_headline(answer) == headline


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (written_in(is_renewed=True, wait=60), ""),
        (written_in(is_renewed=False, wait=60), "mallory wrote db-1_1 into it 45 s after it had expired"),
        (
            written_in(is_renewed=False, writer="system:serviceaccount:shop:db", pod="db-1", wait=60),
            "db-1_1 took it 45 s after it had expired",
        ),
    ],
    ids=["renewed since", "not renewed", "by its own pod"],
)
def test_who_was_written_into_a_lease_did_not_take_it_late(server: FakeServer, expected: str) -> None:
    late = [one for one in account(follow_log(server), server.now).findings if one.check == "taken-late"]
    assert [one.message.partition(" at ")[0] for one in late] == ([expected] if expected else [])


def test_requests_of_who_wrote_a_holder_in_are_not_that_holder_s() -> None:
    server, (db, mail, cart) = shop()
    db.ask()
    together(20, db, mail, cart)
    together(60, mail, cart)
    server.elector("ops-0", "shop/db", user="system:serviceaccount:ops:ops").take(holderIdentity="db-1_1")
    together(6, mail, cart)
    (late,) = (one for one in account(follow_log(server), server.now).findings if one.check == "taken-late")
    assert late.message == (
        "ops/ops from pod ops-0 wrote db-1_1 into it 45 s after it had expired at 11:07:15Z: the log does not show "
        "whether it ran then, and asked for the lease"
    )


def _find_waiters(server: FakeServer) -> list[tuple[str, str]]:
    facts = list_facts(account(follow_log(server), server.now))
    return [(line.label, line.text) for line in facts if line.label in {"Waiting", "Waited"}]


def test_a_replica_that_has_stopped_reading_the_lease_waited_for_it() -> None:
    server, (db, *_) = shop()
    replicas = [server.elector(f"db-{number}", "shop/db") for number in range(1, 7)]
    db.lead(20)
    for _ in range(4):
        for replica in replicas[1:]:
            replica.ask()
        db.lead(2)
    (first, *_) = replicas
    for _ in range(3):
        first.ask()
        db.lead(4)
    assert _find_waiters(server) == [
        ("Waiting", "db-1 (reads the lease again and again)"),
        (
            "Waited",
            ", ".join(f"db-{number} (read it until 11:07:06Z, on average every 2 s)" for number in range(2, 6))
            + " and 1 more",
        ),
    ]


def test_a_replica_waits_whose_rhythm_is_not_known() -> None:
    server = FakeServer()
    db, replica = server.elector("db-0", "shop/db", duration=60), server.elector("db-1", "shop/db")
    db.take()
    for _ in range(3):
        replica.ask()
        db.lead(20)
    assert _find_waiters(server) == [("Waiting", "db-1 (reads the lease again and again)")]


@pytest.mark.parametrize(
    "names", ["abc", "abcd", "abcde"], ids=["twice", "three times", "so often that advice says it"]
)
def test_the_latest_of_several_changes_of_the_holder_says_how_many_there_were(names: str) -> None:
    server = FakeServer()
    for name in names:
        elector = server.elector(name, "shop/db")
        elector.lead(20)
        elector.release()
        server.wait(1)
    server.elector(names[-1], "shop/db").lead(4)
    (handover,) = (one.text for one in list_latest(account(follow_log(server), server.now)) if " took it " in one.text)
    said = "; as far as the input shows, the holder changed 3 times"
    assert handover.endswith(said) is (len(names) == 4)
