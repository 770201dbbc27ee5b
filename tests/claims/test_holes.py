"""A log that lacks requests: what it showed of a lease before is not known to be so afterwards."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import Elector, FakeServer, together
from tests.history.observing import LEASE, advise, cluster_of, follow_both, follow_log, observe_all
from tests.inputs.reading import read
from tests.truth.evaluation import evaluate
from tests.truth.inputs import Kind, input_of
from tests.truth.stored import play_stored
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.findings.headline import make_headline
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.history.holders.tenure import Handover
from webhook.analysis.history.observe import observe
from webhook.analysis.inputs.items import Observation
from webhook.analysis.timeline.lanes import TimelineBuilder
from webhook.analysis.timeline.model import SpanKind
from webhook.kubernetes.times import format_micro_time, parse

HOLE = 30
NOT_FOUND = 'leases.coordination.k8s.io "db" not found'


def shop() -> tuple[FakeServer, Elector, Elector, Elector]:
    """Two leases that are renewed for 20 s, and a follower of the first."""
    server = FakeServer()
    db, mail, other = (server.elector(pod, f"shop/{lease}") for pod, lease in SEATS)
    together(20, db, mail)
    return server, db, mail, other


SEATS = (("db-0", "db"), ("mail-0", "mail"), ("db-1", "db"))
SEATS_OF_ONE = (("db-0", "db"), ("db-1", "db"), ("mail-0", "mail"))


def hide_from_log(server: FakeServer, act: Callable[[], object]) -> None:
    """Have something happen of which the log has nothing."""
    known = len(server.log)
    act()
    del server.log[known:]


def claims(server: FakeServer) -> list[dict[str, Any]]:
    claims: list[dict[str, Any]] = make_account_json(account(follow_log(server), server.now))["claims"]
    return claims


def test_what_a_log_lacks_is_not_known() -> None:
    server, db, mail, _ = shop()
    hide_from_log(server, lambda: together(HOLE, db, mail))
    together(10, mail)
    answer = account(follow_log(server), server.now)
    output = text(answer)
    assert output.startswith("db-0_1 held it at 11:07:00Z, and the log may lack what was written to it")
    assert "Held before: db-0_1" in output
    assert (
        advise(answer)
        == "The log may lack what was written since. To see the lease: kubectl -n shop get lease db -o yaml"
    )
    assert not {"holder", "last-renewed", "expired", "expires"} & {claim["claim"] for claim in claims(server)}


def test_a_write_that_follows_the_one_before_shows_that_nothing_is_missing() -> None:
    server, db, mail, _ = shop()
    server.wait(HOLE)
    together(10, db, mail)
    output = text(account(follow_log(server), server.now))
    assert output.startswith("db-0_1 holds it")
    assert "renewal-late: db-0_1 did not renew for " in output


@pytest.mark.parametrize("is_patch", [True, False], ids=["by a patch", "by an update"])
def test_a_holder_that_another_one_may_have_followed_is_not_the_previous_one(is_patch: bool) -> None:
    server, _, mail, other = shop()
    hide_from_log(server, lambda: together(HOLE, mail, other))
    if is_patch:
        server.write("shop/db", dict(server.leases["shop/db"]["spec"]), "kubectl-patch", "alice", "")
        server.log[-1]["verb"] = "patch"
    together(10, other, mail)
    (before, after) = account(follow_log(server), server.now).history.tenures
    assert (before.holder, after.holder, after.began, after.previous) == (
        "db-0_1",
        "db-1_1",
        Handover.UNKNOWN,
        "db-0_1",
    )
    assert after.beginning.is_unseen
    taken = [one for one in claims(server) if one["claim"] in {"taken", "lease-stolen", "leader-lost"}]
    assert [one["identity"] for one in taken] == ["db-0_1"]


def test_a_lease_whose_deletion_a_log_lacks_existed_until_its_last_write_whatever_a_read_found_later() -> None:
    """By clocks that differ, the read may have found what was created after that."""
    server, db, _, _ = shop()
    written = server.now
    hide_from_log(server, lambda: server.delete("shop/db"))
    server.wait(2)
    server.log_request("shop/db", "update", db.user, db.pod, {"message": NOT_FOUND}, code=404)
    server.log_request("shop/db", "get", "admin", "", {})
    for _ in range(2):
        server.wait(0.01)
        server.log_request("shop/db", "get", db.user, db.pod, {"message": NOT_FOUND}, code=404)
    db.lead(4)
    answer = account(cluster_of(server.audit_log(metadata_only=True)), server.now)
    (deleted,) = [one for one in make_account_json(answer)["claims"] if one["claim"] == "lease-deleted"]
    assert parse(deleted["earliest"]) <= written


def test_a_patch_by_the_holder_need_not_be_a_renewal() -> None:
    server, db, mail, _ = shop()
    hide_from_log(server, lambda: together(HOLE, db, mail))
    server.write("shop/db", {**server.leases["shop/db"]["spec"], "leaseTransitions": 7}, "kubectl-patch", "alice", "")
    server.log[-1]["verb"] = "patch"
    mail.renew()
    answer = account(follow_log(server), server.now)
    assert answer.tenure is not None
    assert (answer.tenure.holder, answer.tenure.last_renewal_write, len(answer.history.tenures)) == ("db-0_1", None, 1)
    assert answer.history.edits == type(answer.history.edits)()


def test_when_a_holder_renewed_is_not_known_if_another_one_renewed_it_after_a_hole_and_again() -> None:
    server, db, mail, _ = shop()
    hide_from_log(server, lambda: together(HOLE, db, mail))
    for _ in range(2):
        server.wait(2)
        spec = {**server.leases["shop/db"]["spec"], "renewTime": format_micro_time(server.now)}
        spec.pop("acquireTime", None)  # without it, the holder may have taken the lease again meanwhile
        server.write("shop/db", spec, "curl", "mallory", "")
        server.log[-1]["verb"] = "patch"
    answer = account(follow_log(server), server.now)
    assert answer.tenure is not None
    assert (answer.tenure.holder, answer.last_renewal) == ("db-0_1", None)


def test_who_held_a_lease_that_was_deleted_later_is_not_known() -> None:
    server, db, mail, other = shop()
    hide_from_log(server, lambda: together(HOLE, db, mail))
    server.delete("shop/db")
    together(4, mail)
    other.lead(10)
    answer = account(follow_log(server), server.now)
    assert not [found for found in answer.findings if found.check == "lease-deleted"]
    assert [(tenure.holder, tenure.began, tenure.previous) for tenure in answer.history.tenures] == [
        ("db-0_1", Handover.CREATED, ""),
        ("db-1_1", Handover.CREATED, ""),
    ]


def test_until_when_a_lease_that_was_deleted_later_was_held_is_not_known() -> None:
    server, db, mail, _ = shop()
    hide_from_log(server, lambda: together(HOLE, db, mail))
    server.delete("shop/db")
    together(4, mail)
    answer = account(follow_log(server), server.now)
    assert [tenure["until"] for tenure in make_account_json(answer)["tenures"]] == [None]
    assert "db-0_1 released it, or was removed, then or later" in text(answer)
    builder = TimelineBuilder(server.now)
    observe_all(builder, read("log", [server.audit_log()]))
    spans = next(lane for lane in builder.timeline(server.now).lanes if lane.name == "db").spans
    assert [span.kind for span in spans] == [SpanKind.HELD, SpanKind.UNRECORDED]


def test_a_lease_that_had_expired_before_a_hole_is_overdue_until_then() -> None:
    server, db, mail, _ = shop()
    together(20, mail)
    hide_from_log(server, lambda: together(HOLE, db, mail))
    server.delete("shop/db")
    together(4, mail)
    builder = TimelineBuilder(server.now)
    observe_all(builder, read("log", [server.audit_log()]))
    spans = next(lane for lane in builder.timeline(server.now).lanes if lane.name == "db").spans
    assert [span.kind for span in spans] == [SpanKind.HELD, SpanKind.OVERDUE, SpanKind.UNRECORDED]
    assert spans[1].begins - spans[0].begins == pytest.approx(35_000_000, abs=20_000)


def test_who_sends_a_patch_that_leaves_the_holder_did_not_write_it_in() -> None:
    server, _, mail, other = shop()
    hide_from_log(server, lambda: together(HOLE, mail, other))
    spec = {**server.leases["shop/db"]["spec"], "leaseTransitions": 7}
    server.wait(2)
    server.write("shop/db", spec, "kubectl-patch", "alice", "")
    server.log[-1]["verb"] = "patch"
    mail.renew()
    (*_, tenure) = account(follow_log(server), server.now).history.tenures
    assert (tenure.holder, tenure.processes.taken_by) == ("db-1_1", None)


def test_who_sends_a_patch_with_which_the_holder_was_stamped_wrote_it_in() -> None:
    server, _, mail, _ = shop()
    hide_from_log(server, lambda: together(HOLE, mail))
    server.write("shop/db", {**server.leases["shop/db"]["spec"], "holderIdentity": "x"}, "kubectl", "alice", "")
    server.log[-1]["verb"] = "patch"
    mail.renew()
    (*_, tenure) = account(follow_log(server), server.now).history.tenures
    assert tenure.processes.taken_by is not None
    assert (tenure.holder, tenure.processes.taken_by.user) == ("x", "alice")


def test_whether_a_deleted_lease_was_created_again_is_not_known() -> None:
    server, _, mail, other = shop()
    server.delete("shop/db")
    together(4, mail)
    hide_from_log(server, lambda: together(HOLE, mail, other))
    together(10, mail)
    assert text(account(follow_log(server), server.now)).startswith("it did not exist at ")
    assert "does-not-exist" not in {one["claim"] for one in claims(server)}


def test_a_lease_that_was_created_again_exists_whatever_the_log_shows_of_it() -> None:
    server, _, mail, other = shop()
    server.delete("shop/db")
    together(4, mail)
    other.take()
    server.log[-1]["level"] = "Metadata"
    del server.log[-1]["responseObject"]
    together(4, mail)
    output = text(account(follow_log(server), server.now))
    assert output.startswith("it was created again at 11:07:04Z, and the log does not show what was written to it then")
    assert "does-not-exist" not in {one["claim"] for one in claims(server)}


def test_a_watch_beside_the_log_shows_what_that_lacks() -> None:
    server, db, mail, _ = shop()
    hide_from_log(server, lambda: together(HOLE, db, mail))
    together(10, mail)
    assert follow_both(server).leases[LEASE].hidden_since is None


def test_a_watch_of_another_namespace_shows_nothing_of_what_the_log_lacks() -> None:
    server, db, mail, _ = shop()
    hide_from_log(server, lambda: together(HOLE, db, mail, server.elector("x-0", "other/x")))
    together(10, mail)
    server.events = [event for event in server.events if event[2]["metadata"]["namespace"] == "other"]
    assert follow_both(server).leases[LEASE].hidden_since is not None


def test_a_watch_that_ended_before_shows_nothing_of_what_the_log_lacks() -> None:
    server, db, mail, _ = shop()
    together(10, db, mail)
    shown = list(server.events)
    together(10, db, mail)
    hide_from_log(server, lambda: together(HOLE, db, mail))
    together(10, mail)
    server.events = shown
    assert follow_both(server).leases[LEASE].hidden_since is not None


@pytest.mark.parametrize(
    ("seconds", "is_whole"),
    [pytest.param(4, True, id="at once"), pytest.param(HOLE, False, id="long after the last request for a lease")],
)
def test_a_log_may_lack_what_comes_before_a_last_request_for_another_object(seconds: float, is_whole: bool) -> None:
    server, db, mail, _ = shop()
    hide_from_log(server, lambda: together(seconds, db, mail))
    server.delete_pod("db-0")
    answer = account(follow_log(server), server.now)
    headline = "db-0_1 holds it" if is_whole else "db-0_1 held it at 11:07:00Z, and the log may lack"
    assert text(answer).startswith(headline)
    assert ("holder" in {claim["claim"] for claim in claims(server)}) is is_whole
    builder = TimelineBuilder(server.now)
    observe_all(builder, read("log", [server.audit_log()]))
    spans = next(lane for lane in builder.timeline(server.now).lanes if lane.name == "db").spans
    assert [span.kind for span in spans] == [SpanKind.HELD, *([] if is_whole else [SpanKind.UNRECORDED])]


@pytest.mark.parametrize(
    ("seconds", "is_whole"),
    [
        pytest.param(8, True, id="after less than an interval of that"),
        pytest.param(20, False, id="after two intervals of that"),
    ],
)
def test_a_log_that_went_on_with_rare_renewals_ends_as_rarely(seconds: float, is_whole: bool) -> None:
    """An API server alone goes on renewing, at long intervals: neither these nor the time after the last is a hole."""
    server = FakeServer()
    db, api = server.elector("db-0", "shop/db"), server.elector("api", "kube-system/apiserver-x")
    for second in range(100):
        server.wait(1)
        if second % 10 == 0:
            api.renew() if second else api.take()
        if second < 40:
            db.renew() if second else db.take()
    api.renew()
    server.wait(seconds)
    server.delete_pod("db-0")
    assert (follow_log(server).leases[LEASE].hidden_since is None) is is_whole
    assert ("expired" in {claim["claim"] for claim in claims(server)}) is is_whole


def test_of_one_lease_alone_a_log_has_no_hole() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.lead(20)
    server.wait(HOLE)
    server.write("shop/db", dict(server.leases["shop/db"]["spec"]), "kubectl-patch", "alice", "")
    assert follow_log(server).leases[LEASE].hidden_since is None


def test_in_a_hole_another_cause_is_not_excluded() -> None:
    server, db, mail, _ = shop()
    more = [server.elector(f"{name}-0", f"shop/{name}") for name in ("cart", "index")]
    together(20, db, mail, *more)
    server.wait(HOLE)
    together(10, db, mail, *more)
    (late,) = (one for one in claims(server) if one["claim"] == "renewal-late")
    assert {"network", "api-server", "failed"} <= set(late["causes"])


@pytest.mark.parametrize(
    ("verb", "is_known"), [("update", True), ("patch", False)], ids=["an update by the holder", "a patch"]
)
def test_what_a_write_changed_that_the_log_does_not_show_is_not_known(verb: str, is_known: bool) -> None:
    server, db, mail, _ = shop()
    together(4, db, mail)
    server.log[-2]["verb"] = verb
    for key in ("requestObject", "responseObject"):
        server.log[-2].pop(key, None)
    assert (follow_log(server).leases[LEASE].hidden_since is None) == is_known


def test_a_lease_as_a_client_sent_it_says_nothing_of_stamps() -> None:
    server, db, mail, _ = shop()
    sent = json.loads(json.dumps(server.log[-1]["responseObject"]))
    together(2, db, mail)
    del server.log[-1]["responseObject"]
    server.log[-1]["requestObject"] = sent
    histories = follow_log(server)
    (key,) = (key for key, one in histories.leases.items() if one.is_as_sent)
    findings = make_account(histories, histories.leases[key], server.now).findings
    assert "lease-without-stamps" not in {one.check for one in findings}


@pytest.mark.parametrize(
    ("code", "cause"), [(429, "throttled"), (500, "failed"), (409, "conflict")], ids=["limited", "failed", "conflict"]
)
def test_what_a_holder_was_answered_before_it_fell_silent_may_be_why(code: int, cause: str) -> None:
    server, db, mail, _ = shop()
    db.fail(code)
    together(14, mail)
    (late,) = (one for one in claims(server) if one["claim"] == "renewal-late")
    assert {"stopped", cause} <= set(late["causes"])


@pytest.mark.parametrize("is_restored", [False, True], ids=["a log with a hole", "a store that was put back in it"])
def test_a_holder_that_waited_through_a_hole_knows_nothing_of_a_restore(is_restored: bool) -> None:
    server, db, _, _ = shop()
    histories = follow_log(server)
    history = histories.leases[LEASE]
    history.mark_hidden(server.now, server.now)
    if is_restored:
        history.mark_store_restored(server.now)
    server.wait(20)
    server.log_request("shop/db", "get", db.user, db.pod, server.leases["shop/db"], took=20)
    *_, waited, _ = read("log", [server.audit_log()])
    assert isinstance(waited, Observation)
    observe(history, waited, histories.bounds)
    assert (history.hidden_since is not None) == is_restored


def test_a_status_that_was_asked_for_is_not_known_once_the_lease_is_out_of_sight() -> None:
    server, _, _, _ = shop()
    history = follow_log(server).leases[LEASE]
    known = history.find_status(server.now)
    assert known is not None
    history.mark_hidden(server.now, server.now)
    assert history.find_status(server.now) is None
    history.mark_visible(server.now)
    assert history.find_status(server.now) == known
    history.miss_write()
    assert history.find_status(server.now) is None


def test_a_status_that_was_asked_for_is_not_known_once_the_store_was_put_back() -> None:
    server, _, _, _ = shop()
    history = follow_log(server).leases[LEASE]
    assert history.find_status(server.now) is not None
    history.mark_store_restored(server.now)
    assert history.find_status(server.now) is None


def test_a_holder_that_reads_more_often_than_it_renews_did_not_wait_through_a_hole() -> None:
    server = FakeServer()
    db, mail = server.elector("db-0", "shop/db"), server.elector("mail-0", "shop/mail")
    for second in range(60):
        server.wait(1)
        mail.renew() if second else mail.take()
        if second % 14 == 0:
            db.renew() if second else db.take()
        db.ask()
    hide_from_log(server, lambda: together(12, mail))
    mail.renew()
    db.ask()
    assert follow_log(server).leases[LEASE].hidden_since is not None


@pytest.mark.parametrize(
    ("seconds", "ongoing"),
    [
        pytest.param(4, {}, id="a duration has not passed since the hole"),
        pytest.param(16, {"ongoing": False}, id="the other one has not renewed for a duration"),
    ],
)
def test_of_two_that_share_an_identity_one_may_have_stopped(seconds: float, ongoing: dict[str, bool]) -> None:
    """The first write after a hole is not that of the process that took the lease because it goes on."""
    server = FakeServer()
    first, second, mail = (server.elector(pod, f"shop/{lease}") for pod, lease in SEATS_OF_ONE)
    first.identity = second.identity = "leader"
    for _ in range(10):
        together(2, first, mail)
        server.wait(0.3)
        second.renew()
    hide_from_log(server, lambda: together(HOLE, first, mail))
    together(seconds, first, mail)
    server.wait(1.5)
    (claim,) = (one for one in claims(server) if one["claim"] == "identity-shared")
    assert {key: claim[key] for key in ("ongoing",) if key in claim} == ongoing


def claims_of_a_stored_history(name: str, lease: str) -> dict[str, dict[str, Any]]:
    """Return what `why` claims of a lease in a stored history, read from a log with a hole."""
    history = play_stored(name)
    given = input_of(history, Kind.HOLE)
    assert given
    return {found.id: found.claim for found in evaluate(history, given, ["why"]) if found.lease == lease}


def test_a_second_writer_may_go_on_in_the_hole() -> None:
    claims = claims_of_a_stored_history("an-attacker-who-goes-on-renewing-in-a-hole-of-the-log", "shop/checkout")
    assert claims["second-writer"]["count"] == 7
    assert "ongoing" not in claims["second-writer"]


def test_the_last_renewal_of_a_holder_may_be_in_the_hole() -> None:
    claims = claims_of_a_stored_history("another-writer-goes-on-after-a-hole-in-the-log", "shop/checkout")
    assert claims["second-writer"]["ongoing"] is True
    assert "last-renewed" not in claims


def test_a_watch_beside_a_log_with_a_hole_shows_what_was_written() -> None:
    server = FakeServer()
    db, mail = server.elector("db-0", "shop/db"), server.elector("mail-0", "shop/mail")
    together(40, db, mail)
    server.wait(60)
    mail.take()
    answer = account(follow_both(server), server.now)
    assert make_headline(answer).startswith("db-0_1 has not renewed it for")


def test_a_holder_may_have_renewed_for_the_last_time_in_the_hole() -> None:
    claims = claims_of_a_stored_history("the-last-renewal-of-a-deleted-pod-is-in-a-hole", "shop/checkout")
    assert "has not renewed since 15:07:19Z or earlier, for at least 11.4 s" in claims["renewal-late"]["text"]
    assert "went on" not in claims["holder-pod-deleted"]["text"]
