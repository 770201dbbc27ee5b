"""Coordinated elections, in which API servers write the holder, and holders that never came to work."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.claims.accounts import account, shop, text
from tests.history.fake_server import Elector, FakeServer
from tests.history.observing import advise, cluster_of, follow_log, follow_metadata, follow_watch, observe_all
from tests.history.test_refusal import POLICY
from tests.inputs.reading import read
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.claim import Claim, make_claim_json
from webhook.analysis.claims.facts import find_claims
from webhook.analysis.claims.presentation.happened import list_events, list_latest
from webhook.analysis.claims.presentation.text import list_facts
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import API_SERVER, Handover
from webhook.analysis.history.status import LeaseState
from webhook.analysis.timeline.lanes import TimelineBuilder
from webhook.analysis.timeline.model import SpanKind

STRATEGY = "OldestEmulationVersion"


def start_coordinated() -> tuple[FakeServer, Elector]:
    """Return a server with a holder that an API server chose, and that has renewed for 20 s."""
    server = FakeServer()
    first = server.elector("a", "shop/db")
    spec = {"holderIdentity": "a_1", "leaseDurationSeconds": 15, "leaseTransitions": 0, "strategy": STRATEGY}
    times = {"acquireTime": "2026-11-18T11:06:40.000000Z", "renewTime": "2026-11-18T11:06:40.000000Z"}
    server.write("shop/db", spec | times, "kube-apiserver", API_SERVER, "")
    for _ in first.ticks(20):
        first.renew(strategy=STRATEGY)
    return server, first


def writes(server: FakeServer, user: str = API_SERVER, manager: str = "kube-apiserver", **changes: Any) -> None:
    """Change the lease as an API server does, or another user."""
    server.write("shop/db", server.leases["shop/db"]["spec"] | changes, manager, user, "")


def chooses(server: FakeServer, identity: str) -> None:
    now = server.elector(identity, "shop/db")._time()
    writes(server, holderIdentity=identity, acquireTime=now, renewTime=now)


def explain_server(server: FakeServer) -> Account:
    return account(follow_log(server), server.now)


def test_a_holder_that_was_asked_to_step_down_and_did_is_not_lost() -> None:
    server, _ = start_coordinated()
    writes(server, preferredHolder="b_1")
    server.wait(17)
    chooses(server, "b_1")
    assert "leader-lost" not in {found.check for found in explain_server(server).findings}


def test_a_holder_that_steps_down_as_it_was_asked_is_no_fault() -> None:
    server, _ = start_coordinated()
    writes(server, preferredHolder="b_1")
    server.elector("mail-0", "shop/mail").lead(12)
    output = text(explain_server(server))
    assert (
        "A coordinated election: it was asked to step down for b_1 by system:apiserver, and stopped renewing then."
        in output
    )
    assert "To see the candidates: kubectl -n shop get leasecandidates -o yaml" in output


def test_a_holder_that_was_silent_before_it_was_asked_is_said_to_have_been() -> None:
    server, _ = start_coordinated()
    server.wait(9)
    writes(server, preferredHolder="b_1")
    server.elector("mail-0", "shop/mail").lead(30)
    answer = explain_server(server)
    assert "step down for b_1 by system:apiserver, when it had not renewed for 9 s." in text(answer)
    assert [one.label for one in list_facts(answer, verbose=False)] == ["Why"]


def test_a_holder_that_renewed_after_it_was_asked_may_have_stepped_down_later() -> None:
    server, first = start_coordinated()
    writes(server, preferredHolder="b_1")
    for _ in first.ticks(6):
        first.renew(strategy=STRATEGY, preferredHolder="b_1")
    server.elector("mail-0", "shop/mail").lead(12)
    assert "step down for b_1 by system:apiserver, and may have done so." in text(explain_server(server))


def test_what_fails_renewals_comes_before_an_older_request_to_step_down() -> None:
    server, first = start_coordinated()
    writes(server, preferredHolder="b_1")
    for _ in first.ticks(6):
        first.renew(strategy=STRATEGY, preferredHolder="b_1")
    for _ in first.ticks(12):
        first.fail(500, "Internal error occurred: failed calling webhook")
    output = text(explain_server(server))
    assert "at least 5 requests answered with 500" in output
    assert "asked to step down" not in output.partition("renewal-late")[2]


def test_who_first_shows_a_request_to_step_down_did_not_ask() -> None:
    """A process that takes a lease may leave the preferredHolder that was there."""
    server, _ = start_coordinated()
    writes(server, user="ops", preferredHolder="b_1")
    server.wait(20)
    taker = server.elector("c", "shop/db")
    taker.take(strategy=STRATEGY, preferredHolder="b_1")
    server.elector("mail-0", "shop/mail").lead(12)
    asked = account(follow_log(server), server.now).history.tenures[-1].step_down
    assert (asked.successor, asked.writer) == ("b_1", None)


def test_a_holder_that_renews_over_requests_to_step_down_lets_the_lease_expire() -> None:
    """A plain elector replaces the whole spec; an API server asks again and again."""
    server, first = start_coordinated()
    for _ in range(3):
        writes(server, preferredHolder="b_1", strategy=STRATEGY)
        server.wait(2)
        first.renew()
    writes(server, preferredHolder="b_1", strategy=STRATEGY)
    server.wait(17)
    server.elector("b", "shop/db").take()
    answer = explain_server(server)
    assert answer.history.tenures[-1].began is Handover.EXPIRED
    assert "step down" not in "".join(found.message for found in answer.findings if found.check == "leader-lost")


def test_why_is_not_told_twice_of_an_election_that_stalled() -> None:
    server, _ = start_coordinated()
    writes(server, preferredHolder="b_1")
    server.wait(60)
    assert not list(list_facts(explain_server(server), verbose=False))


def test_a_list_shows_that_the_holder_was_asked_to_step_down() -> None:
    server, _ = start_coordinated()
    writes(server, preferredHolder="b_1")
    server.wait(60)
    answer = account(cluster_of(server.dump()), server.now)
    assert answer.cause is not None
    assert answer.cause.evidence == "it was asked to step down for b_1, and may have done so"


def test_a_request_to_step_down_is_told_once_as_a_sentence() -> None:
    server, _ = start_coordinated()
    writes(server, preferredHolder="b_1")
    assert [one.text for one in list_latest(explain_server(server))] == [
        "a_1 was asked to step down for b_1 by system:apiserver"
    ]
    server.wait(17)
    chooses(server, "b_1")
    (handover,) = list_latest(explain_server(server))
    assert "after it had asked a_1 to step down" in handover.text


def test_of_a_lease_without_an_election_preferred_holder_is_a_field() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    writes(server, "ops", "kubectl-edit", preferredHolder="b_1")
    assert [one.text for one in list_latest(explain_server(server))] == ['preferredHolder absent -> "b_1" by ops']


def test_a_chosen_holder_that_never_came_was_not_a_leader_to_lose() -> None:
    server, _ = start_coordinated()
    server.wait(17)
    chooses(server, "b_1")
    server.wait(17)
    chooses(server, "c_1")
    lost = [
        found.arguments["previous"] for found in find_claims(explain_server(server)) if found.check == "leader-lost"
    ]
    assert lost == ["a_1"]


def test_who_takes_up_a_choice_follows_no_pod_that_had_its_name_before() -> None:
    server, first = start_coordinated()
    second = server.elector("b", "shop/db")
    for elector, uid in ((second, "1"), (first, "2"), (second, "3")):
        server.uids[elector.pod] = uid
        server.wait(17)
        chooses(server, elector.identity)
        server.wait(17)
        elector.renew(strategy=STRATEGY)
    tenures = follow_log(server).leases["shop", "db"].tenures
    assert [one.holder for one in tenures] == ["a_1", "b_1", "a_1", "b_1"]
    assert (tenures[-1].is_chosen, tenures[-1].processes.renewals, tenures[-1].processes.others) == (True, 1, {})


def test_an_election_that_stalls_says_how_to_go_on() -> None:
    server, _ = start_coordinated()
    writes(server, preferredHolder="b_1")
    server.wait(60)
    answer = explain_server(server)
    assert text(answer).startswith(
        "a_1 was asked to step down for b_1, which has not taken over: not renewed for 1 min"
    )
    assert "election-stalled" in {found.check for found in answer.findings}
    assert advise(answer).startswith("Clear preferredHolder; an API server then names a holder again: kubectl -n shop")


def test_a_chosen_holder_that_does_not_come_is_named_at_the_end() -> None:
    server, _ = start_coordinated()
    server.wait(17)
    chooses(server, "b_1")
    server.wait(60)
    answer = explain_server(server)
    assert text(answer).startswith("b_1 was chosen")
    assert answer.cause is not None
    assert answer.cause.evidence == "an API server chose it, and it has not renewed since"
    assert "not-taken-up" in {found.check for found in answer.findings}


def test_a_holder_that_another_one_wrote_in_never_renewed() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    db.release()
    writes(server, "ops", "kubectl-edit", holderIdentity="db-9", leaseDurationSeconds=15, renewTime=db._time())
    server.wait(60)
    answer = explain_server(server)
    assert answer.cause is not None
    assert answer.cause.evidence == "ops wrote it in, and no process has renewed it since"


def test_reads_that_are_answered_with_404_show_that_it_does_not_exist() -> None:
    server, (db, *_) = shop()
    for _ in db.ticks(6):
        server.log_request("shop/db", "get", db.user, db.pod, {"message": "not found"}, 404)
    answer = explain_server(server)
    assert text(answer).startswith("it does not exist: 3 requests answered with 404, the last one 0 s ago")
    assert advise(answer).startswith(
        "It does not exist; most clients create it the next time they ask, if they have the right: kubectl -n shop get "
    )


def test_a_throttled_client_has_a_cause_of_its_own() -> None:
    server, (db, *_) = shop()
    db.lead(40)
    server.wait(10)
    db.fail(429)
    server.wait(8)
    server.elector("db-1", "shop/db").lead(10)
    answer = explain_server(server)
    assert "The API server answered that there were too many requests: at least 1 request answered with 429" in text(
        answer
    )
    assert "See whether a priority level limits it" in advise(answer)


@pytest.mark.parametrize(
    ("wait", "causes", "expected"),
    [
        (
            0,
            {"failed", "throttled"},
            "at least 2 requests answered with 500; and at least 1 request answered with 429",
        ),
        (20, {"failed"}, "at least 2 requests answered with 500"),
    ],
    ids=["while it tries", "after it has given up"],
)
def test_a_client_whose_writes_fail_and_that_is_then_throttled(wait: int, causes: set[str], expected: str) -> None:
    server, (db, *_) = shop()
    db.lead(40)
    for code in (500, 500):
        server.wait(4)
        db.fail(code)
    server.wait(2 + wait)
    db.fail(429)
    server.wait(10 + wait)
    server.elector("db-1", "shop/db").lead(10)
    answer = explain_server(server)
    (lost,) = (make_claim_json(each) for each in find_claims(answer) if each.check == "leader-lost")
    assert set(lost.get("causes") or [lost["cause"]]) - {"api-server"} == causes
    assert f"The API server could not store the writes of db-0_1: {expected}" in lost["text"]


def test_a_policy_that_refuses_a_holder_after_another_one_wrote_it_in() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    writes(server, "ops", "kubectl-edit", holderIdentity="db-9")
    db.fail(403, POLICY)
    output = text(explain_server(server))
    assert "To see what gives ops the right: lease-webhook writers shop/db" in output


def test_a_policy_that_refuses_a_holder_which_an_api_server_chose() -> None:
    server, _ = start_coordinated()
    server.wait(17)
    chooses(server, "b_1")
    server.elector("b", "shop/db").fail(403, POLICY)
    (refused,) = (found for found in explain_server(server).findings if found.check == "write-refused")
    assert isinstance(refused, Claim)
    assert refused.advice == "See why the policy refuses the writes of shop/db:"


def test_reads_that_are_refused_keep_a_client_from_writing() -> None:
    server, (db, *_) = shop()
    db.lead(40)
    server.wait(10)
    server.log_request("shop/db", "get", db.user, db.pod, {"message": "no"}, 403)
    server.wait(8)
    server.elector("db-1", "shop/db").lead(10)
    assert "The reads of the pod of db-0_1 were refused: 1 read answered with 403" in text(explain_server(server))


def test_a_pod_follows_the_administrator_that_wrote_it_in() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    db.release()
    other = server.elector("db-1", "shop/db")
    writes(server, "ops", "kubectl-edit", holderIdentity=other.identity, leaseDurationSeconds=15)
    for _ in other.ticks(10):
        other.renew()
    answer = explain_server(server)
    assert answer.tenure is not None
    assert answer.tenure.processes.own is not None
    assert answer.tenure.processes.own.pod == "db-1"
    assert {claim.check for claim in find_claims(answer)} >= {"written-in", "last-renewed"}


def write_pod_in() -> tuple[FakeServer, Elector]:
    """Return a server on which an administrator has written a pod into a free lease, and that pod's elector."""
    server, (db, *_) = shop()
    db.lead(20)
    db.release()
    other = server.elector("db-9", "shop/db")
    writes(server, "ops", "kubectl-edit", holderIdentity=other.identity, leaseDurationSeconds=15)
    server.wait(2)
    return server, other


def test_the_pod_that_a_lease_names_is_its_holder_although_another_one_renewed_first() -> None:
    server, other = write_pod_in()
    stranger = server.elector("bot", "shop/db", user="bot")
    stranger.identity, stranger.pod = other.identity, ""
    stranger.renew()
    for _ in other.ticks(6):
        other.renew()
    (second,) = (claim for claim in find_claims(explain_server(server)) if claim.check == "second-writer")
    assert "bot renewed it as db-9_1" in second.message


@pytest.mark.parametrize(
    ("user", "pod", "how"),
    [("system:serviceaccount:shop:db", "db-9", "own"), ("jane", "", "unknown")],
    ids=["the pod that it names", "a user"],
)
def test_who_releases_what_another_one_wrote_in_is_known_by_its_pod(user: str, pod: str, how: str) -> None:
    server, other = write_pod_in()
    other.user, other.pod = user, pod
    other.release()
    released = [claim for claim in find_claims(explain_server(server)) if claim.check == "released"]
    assert released[-1].arguments["how"] == how


def test_a_watch_without_stamps_has_no_time_of_a_takeover() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(17)
    server.elector("db-1", "shop/db").lead(10)
    for _, _, stored in server.events:
        del stored["metadata"]["managedFields"]
    answer = account(follow_watch(server), server.now)
    assert answer.holder == "db-1_1"
    assert {claim.check for claim in find_claims(answer)}.isdisjoint({"taken", "held-since"})


def test_a_takeover_has_a_time_in_a_watch_with_stamps() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(17)
    server.elector("db-1", "shop/db").lead(10)
    (taken,) = (claim for claim in find_claims(account(follow_watch(server), server.now)) if claim.check == "taken")
    assert {"earliest", "latest"} <= taken.arguments.keys()


def test_a_write_without_a_user_in_a_log_without_objects_is_of_no_one() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    db.renew()
    server.log[-1]["user"] = {}
    answer = account(follow_metadata(server), server.now)
    assert answer.holder == "db-0"


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        (STRATEGY, "An API server names the next holder, one of its candidates:"),
        ("example.com/Nearest", "No API server chooses by the strategy example.com/Nearest"),
    ],
)
def test_who_names_the_next_holder_of_a_free_lease(strategy: str, words: str) -> None:
    server = FakeServer()
    spec = {"strategy": strategy, "leaseDurationSeconds": 5, "renewTime": "2026-11-18T11:06:40.000000Z"}
    server.write("shop/db", spec, "kube-apiserver", API_SERVER, "")
    answer = explain_server(server)
    assert answer.state is LeaseState.NEVER_HELD
    assert advise(answer).startswith(words)


def test_the_write_with_which_an_api_server_chooses_a_holder_is_no_renewal_of_it() -> None:
    server = FakeServer()
    first = server.elector("a", "shop/db")
    now = first._time()
    spec = {"holderIdentity": "a_1", "leaseDurationSeconds": 5, "leaseTransitions": 0, "strategy": STRATEGY}
    server.write("shop/db", spec | {"acquireTime": now, "renewTime": now}, "kube-apiserver", API_SERVER, "")
    server.wait(4)
    for _ in first.ticks(20):
        first.renew(strategy=STRATEGY)
    history = account(follow_watch(server), server.now).history
    assert history.renewals.longest <= 3 * 1_000_000


@pytest.mark.parametrize(("follow", "doubt"), [(follow_log, ""), (follow_watch, " (as far as field managers show)")])
def test_a_chosen_candidate_that_never_renewed_is_named_once_another_one_was_chosen(
    follow: Callable[[FakeServer], ClusterHistory], doubt: str
) -> None:
    server, _ = start_coordinated()
    writes(server, preferredHolder="b_1")
    server.wait(17.4)
    chooses(server, "b_1")
    server.wait(0.2)
    writes(server, preferredHolder=None)
    server.wait(17)
    chooses(server, "c_1")
    third = server.elector("c", "shop/db")
    server.wait(2)
    for _ in third.ticks(20):
        third.renew(strategy=STRATEGY)
    answer = account(follow(server), server.now)
    findings = [finding for finding in answer.findings if finding.check == "not-taken-up"]
    assert [finding.message.partition(" and ")[0] for finding in findings] == [
        f"b_1 was chosen by an API server{doubt} at 11:07:17Z,"
    ]
    lines = [line.text for line in list_events(answer)]
    [chosen], [cleared] = (
        [number for number, line in enumerate(lines) if words in line] for words in ("chose b_1", "-> absent")
    )
    assert chosen < cleared
    assert not [line for line in lines if "renewal by b_1" in line]


def test_what_the_field_manager_of_the_api_server_renews_is_no_renewal_by_whom_it_chose() -> None:
    server, _ = start_coordinated()
    other = server.elector("mail-0", "shop/mail")
    other.lead(20)
    chooses(server, "b_1")
    for _ in other.ticks(10):
        writes(server, renewTime=other._time())
    other.lead(20)
    chooses(server, "c_1")
    answer = account(follow_watch(server), server.now)
    assert "b_1" not in {
        found.arguments.get("previous") for found in find_claims(answer) if found.check == "leader-lost"
    }


def test_a_holder_that_is_chosen_again_had_let_the_lease_expire() -> None:
    server, _ = start_coordinated()
    other = server.elector("mail-0", "shop/mail")
    other.lead(20)
    chooses(server, "b_1")
    other.lead(20)
    writes(server, renewTime=other._time())
    other.lead(4)
    builder = TimelineBuilder(server.now)
    observe_all(builder, read("watch", [server.watch()]))
    spans = next(lane for lane in builder.timeline(server.now).lanes if lane.name == "db").spans
    assert [one.kind for one in spans if one.holder == "b_1"] == [SpanKind.HELD, SpanKind.OVERDUE, SpanKind.HELD]


def test_a_strategy_that_the_api_server_changes_is_shown() -> None:
    server, _ = start_coordinated()
    writes(server, strategy="example.com/NewestFirst")
    latest = [line.text for line in list_latest(account(follow_log(server), server.now))]
    changed = 'strategy "OldestEmulationVersion" -> "example.com/NewestFirst" by system:apiserver'
    assert f"{changed}; no API server chooses a holder by that" in latest


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("example.com/NewestFirst", STRATEGY, True),
        (STRATEGY, STRATEGY, False),
        (STRATEGY, None, False),
        (None, STRATEGY, False),
    ],
    ids=["another one", "the same", "none any more", "none before"],
)
def test_a_strategy_that_changes_with_the_holder_is_shown(
    before: str | None, after: str | None, *, expected: bool
) -> None:
    server, _ = start_coordinated()
    writes(server, strategy=before)
    server.wait(30)
    now = server.elector("b", "shop/db")._time()
    writes(server, holderIdentity="b_1", renewTime=now, strategy=after)
    server.wait(5)
    server.elector("b", "shop/db").renew(strategy=after)
    texts = [line.text for line in list_events(account(follow_log(server), server.now))]
    changed = 'strategy "example.com/NewestFirst" -> "OldestEmulationVersion" together with the holder by'
    assert any(text.startswith(changed) for text in texts) is expected
    assert any("together with the holder" in text for text in texts) is expected
    assert not any("NewestFirst" in text and "Oldest" in text and "by that" in text for text in texts[-2:])


def test_a_holder_whose_name_looks_like_a_strategy_says_nothing_of_one() -> None:
    server, _ = start_coordinated()
    writes(server, preferredHolder='strategy "a" -> "b"')
    output = text(explain_server(server))
    assert "preferredHolder absent -> " in output
    assert "no API server chooses" not in output


def test_after_a_release_the_time_until_a_chosen_holder_renews_is_none_in_which_the_lease_was_free() -> None:
    server, first = start_coordinated()
    first.release()
    writes(server, strategy=STRATEGY, leaseDurationSeconds=15)
    chooses(server, "b_1")
    assert "first renewed it" not in text(explain_server(server))
    server.wait(1.8)
    server.elector("b", "shop/db").renew(strategy=STRATEGY)
    output = text(explain_server(server))
    assert "the API server chose b_1 after a_1 released it; b_1 first renewed it 1.8 s later" in output
    assert "the lease was free" not in output


def test_writes_that_a_second_log_has_without_objects_are_not_said_to_be_lacking() -> None:
    server, first = start_coordinated()
    writes(server, preferredHolder="b_1")
    del server.log[-1]["responseObject"]
    first.renew(strategy=STRATEGY, preferredHolder="b_1")
    server.wait(4)
    chooses(server, "b_1")
    del server.log[-1]["responseObject"]
    server.wait(2)
    server.elector("b", "shop/db").renew(strategy=STRATEGY)
    output = text(explain_server(server))
    assert "the input does not show what all writes from then until 11:07:06Z changed" in output
    assert "the input lacks writes" not in output


def test_a_chosen_holder_renews_a_lease_that_was_created_again_as_late_as_it_does() -> None:
    server, _ = start_coordinated()
    spec = server.leases["shop/db"]["spec"]
    server.wait(60)
    server.delete("shop/db")
    server.wait(0.5)
    now = server.elector("b", "shop/db")._time()
    chosen = {"holderIdentity": "b_1", "acquireTime": now, "renewTime": now}
    server.write("shop/db", spec | chosen, "kube-apiserver", API_SERVER, "")
    server.wait(1.8)
    server.elector("b", "shop/db").renew(strategy=STRATEGY)
    output = text(explain_server(server))
    assert "the API server chose b_1; b_1 first renewed it up to 2.3 s later" in output
    assert "chose b_1; not renewed" not in output


@pytest.mark.parametrize(
    ("changes", "is_chosen"),
    [({"leaseDurationSeconds": 5}, True), ({}, False)],
    ids=["with the duration that it writes", "with another renewTime alone"],
)
def test_the_field_manager_of_an_api_server_chooses_only_with_a_duration(
    changes: dict[str, Any], *, is_chosen: bool
) -> None:
    server, first = start_coordinated()
    first.duration = 20
    first.renew(strategy=STRATEGY)
    server.wait(100)
    writes(server, user="mallory", renewTime=first._time(), **changes)
    server.wait(60)
    assert ("was chosen" in text(account(follow_watch(server), server.now))) is is_chosen


def choose_pod_b() -> FakeServer:
    """Return a server on which pod b asked for the lease, and an API server chose it 2 s ago."""
    server, _ = start_coordinated()
    server.elector("b", "shop/db").ask()
    writes(server, preferredHolder="b_1")
    server.wait(17)
    chooses(server, "b_1")
    server.wait(2)
    return server


@pytest.mark.parametrize("pod", ["b", "intruder"])
def test_who_renews_first_what_names_another_pod_is_not_its_process(pod: str) -> None:
    server = choose_pod_b()
    server.elector("b", "shop/db", pod=pod).renew(strategy=STRATEGY)
    (history,) = follow_log(server).leases.values()
    assert history.latest_tenure is not None
    own = history.latest_tenure.processes.own
    assert ("" if own is None else own.pod) == ("b" if pod == "b" else "")


def test_what_a_stranger_renewed_for_a_chosen_holder_may_expire_before_that_takes_it_up() -> None:
    server = choose_pod_b()
    server.elector("b", "shop/db", pod="intruder").renew(strategy=STRATEGY)
    server.wait(20)
    server.elector("b", "shop/db").renew(strategy=STRATEGY)
    builder = TimelineBuilder(server.now)
    observe_all(builder, read("log", [server.audit_log()]))
    (lane,) = builder.timeline(server.now).lanes
    kinds = [one.kind for one in lane.spans if one.holder == "b_1"]
    assert kinds == [SpanKind.CHOSEN, SpanKind.HELD, SpanKind.OVERDUE, SpanKind.HELD]
