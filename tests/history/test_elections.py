"""What a history says of elections whose truth is known, from a watch, from an audit log, and from a dump."""

import math
from collections.abc import Callable

import pytest

from tests.factories import make_lease, make_review, put, to_bytes
from tests.history.fake_server import SECOND, START, FakeServer, together
from tests.history.observing import (
    LEASE,
    View,
    cluster_of,
    follow_both,
    follow_log,
    follow_metadata,
    follow_watch,
    observe_all,
)
from tests.inputs.reading import read
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.observe import observe
from webhook.analysis.history.renewals import OtherLeases, Renewals
from webhook.analysis.history.status import LeaseState
from webhook.analysis.history.visibility import bounds as bounds_of_input
from webhook.analysis.history.visibility.bounds import Bounds
from webhook.analysis.inputs.items import Observation, OtherObject
from webhook.kubernetes.times import format_micro_time, parse

BOTH = pytest.mark.parametrize("view", [follow_watch, follow_log], ids=["watch", "audit log"])
ANY = pytest.mark.parametrize(
    "view", [follow_watch, follow_log, follow_metadata], ids=["watch", "audit log", "metadata"]
)


def steps(history: LeaseHistory) -> list[tuple[str, Handover, float | None]]:
    """(holder, how it came, seconds without a leader before) of each tenure, to a tenth of a second."""
    return [
        (one.holder, one.began, None if one.leaderless is None else round(one.leaderless / SECOND, 1))
        for one in history.tenures
    ]


def bound_length(seconds: float, view: View) -> float:
    """Return a time as a log measures it, and a watch bounds it: from the start of a second to the end of another."""
    return math.floor(seconds) + 1 if view is follow_watch else seconds


@BOTH
def test_a_crash_is_an_expiry_and_nobody_led_since_the_last_renewal(view: View) -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    server.wait(16)
    server.elector("b", "shop/db").lead(10)
    history = view(server).leases[LEASE]
    first = Handover.SEEN if view is follow_watch else Handover.CREATED
    seconds = bound_length(16, view)
    assert steps(history) == [("a_1", first, None), ("b_1", Handover.EXPIRED, seconds)]
    assert history.leaderless == seconds * SECOND
    before, after = history.tenures
    assert before.until is not None
    assert abs(before.until - (START + 20 * SECOND)) < SECOND
    assert (after.until, after.previous) == (None, "a_1")


@BOTH
def test_a_release_costs_what_the_next_one_waits(view: View) -> None:
    server = FakeServer()
    a, b = server.elector("a", "shop/db"), server.elector("b", "shop/db")
    a.lead(10)
    a.release()
    server.wait(1.5)
    b.lead(10)
    history = view(server).leases[LEASE]
    assert steps(history)[1] == ("b_1", Handover.RELEASED, bound_length(1.5, view))


@BOTH
def test_a_release_that_keeps_the_holder_is_one(view: View) -> None:
    """As fabric8 does since 7.5."""
    server = FakeServer()
    a, b = server.elector("a", "shop/db"), server.elector("b", "shop/db")
    a.lead(10)
    server.wait(1)
    now = a._time()
    a.renew(leaseDurationSeconds=1, acquireTime=now, renewTime=now)
    server.wait(3)
    b.lead(4)
    assert steps(view(server).leases[LEASE])[1] == ("b_1", Handover.RELEASED, bound_length(3, view))


@BOTH
def test_a_steal_leaves_nobody_leaderless(view: View) -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    server.wait(5)
    server.elector("b", "shop/db").lead(4)
    assert steps(view(server).leases[LEASE])[1] == ("b_1", Handover.STOLEN, None)


@BOTH
def test_a_lease_that_was_deleted_and_made_again(view: View) -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    server.delete("shop/db")
    server.wait(4)
    histories = view(server)
    assert histories.leases[LEASE].is_deleted
    assert histories.leases[LEASE].find_status(server.now) is None
    server.elector("b", "shop/db").lead(4)
    history = view(server).leases[LEASE]
    assert steps(history)[1] == ("b_1", Handover.DELETED, 4.0 if view is follow_log else pytest.approx(4.0, abs=1))
    assert not history.is_deleted


@BOTH
def test_a_lease_that_was_made_empty_is_claimed(view: View) -> None:
    server = FakeServer()
    server.write("shop/db", {}, "kubectl-create", "admin", "")
    server.wait(5)
    b = server.elector("b", "shop/db")
    b._write({"acquireTime": b._time(), "leaseTransitions": 1})
    assert steps(view(server).leases[LEASE]) == [("b_1", Handover.CLAIMED, None)]


@BOTH
def test_a_holder_that_goes_on_after_its_release(view: View) -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(10)
    server.wait(1)
    now = a._time()
    a.renew(leaseDurationSeconds=1, acquireTime=now, renewTime=now)
    server.wait(2)
    a.renew()
    assert steps(view(server).leases[LEASE])[1] == ("a_1", Handover.UNKNOWN, bound_length(2, view))


@ANY
def test_renewals_have_a_usual_interval_and_silences(view: View) -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(20)
    server.wait(9)
    a.renew()
    a.lead(10)
    renewals = view(server).leases[LEASE].renewals
    assert renewals.usual == 2 * SECOND
    assert [one.length for one in renewals.silences] == [9 * SECOND]
    assert renewals.longest == 9 * SECOND
    assert renewals.count == 16


@ANY
def test_the_longest_silence_within_a_stretch_of_time(view: View) -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(20)
    for silence in (7, 9, 5):
        server.wait(silence)
        a.renew()
        a.lead(4)
    renewals = view(server).leases[LEASE].renewals
    first, second, third = renewals.silences
    assert renewals.measure_silence_within(first.start, third.end) == second.length
    assert renewals.measure_silence_within(first.start, second.start) == first.length
    assert renewals.measure_silence_within(second.end - SECOND, third.start + 2 * SECOND) == 2 * SECOND
    assert (
        renewals.measure_silence_within(first.end, second.start)
        == renewals.measure_silence_within(third.end, third.end + SECOND)
        == 0
    )


def test_few_renewals_have_no_usual_interval() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(4)
    assert follow_log(server).leases[LEASE].renewals.usual is None


@BOTH
def test_all_leases_were_late_when_the_server_was_away(view: View) -> None:
    server = FakeServer()
    a, b, c = (server.elector(name, f"shop/{name}") for name in ("db", "mail", "cart"))
    together(40, a, b, c)
    start = server.now
    server.wait(12)
    together(20, a, b, c)
    histories = view(server)
    others = histories.index.compare_with_others(histories.leases[LEASE], start, start + 12 * SECOND)
    names = (("shop", "cart"), ("shop", "mail"))
    assert others == OtherLeases(late=2, named_late=names, named_back=names)


@BOTH
def test_one_lease_was_late_when_its_client_was(view: View) -> None:
    server = FakeServer()
    a, b, c = (server.elector(name, f"shop/{name}") for name in ("db", "mail", "cart"))
    together(40, a, b, c)
    start = server.now
    together(12, b, c)
    together(20, a, b, c)
    histories = view(server)
    others = histories.index.compare_with_others(histories.leases[LEASE], start, start + 12 * SECOND)
    assert others == OtherLeases(late=0, on_time=2, named_on_time=(("shop", "cart"), ("shop", "mail")))
    assert others.is_known
    assert not others.most_were_late


@BOTH
@pytest.mark.parametrize("is_taken", [True, False])
def test_a_lease_that_was_free_was_neither_late_nor_on_time(view: View, is_taken: bool) -> None:
    server = FakeServer()
    a, b = server.elector("a", "shop/db"), server.elector("b", "shop/mail")
    together(40, a, b)
    start = server.now
    b.release()
    server.wait(12)
    a.renew()
    if is_taken:
        server.elector("c", "shop/mail").lead(20)
    histories = view(server)
    assert histories.index.compare_with_others(histories.leases[LEASE], start, start + 12 * SECOND) == OtherLeases()


def test_leases_that_cannot_tell_are_not_asked() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    rare = server.elector("r", "shop/rare", retry=10)
    rare.lead(50)
    a.lead(20)
    late_comer = server.elector("n", "shop/new")
    start = server.now
    server.wait(12)
    late_comer.lead(10)
    server.elector("once", "shop/once").lead(2)
    histories = follow_log(server)
    # One is renewed too rarely to be missed, one was not there before.
    assert histories.index.compare_with_others(histories.leases[LEASE], start, start + 12 * SECOND) == OtherLeases()
    assert not OtherLeases().is_known


@pytest.mark.parametrize(
    ("rhythm", "pause", "is_sure"),
    [(10, 0, True), (16, 0, True), (17, 0, False), (10, 20, False)],
    ids=["due once", "due just once", "perhaps not due", "it missed one"],
)
def test_a_lease_that_was_due_once_was_surely_renewed_unless_it_missed_that(
    rhythm: int, pause: int, *, is_sure: bool
) -> None:
    renewals = Renewals()
    for number in range(10):
        renewals.add((rhythm * number + (pause if number > 5 else 0)) * SECOND)
    start = (5 * rhythm + 1) * SECOND
    assert renewals.was_late(start, start + 17 * SECOND) is not False
    assert renewals.find_sure_pace(start, start + 17 * SECOND) == (rhythm * SECOND if is_sure else None)


@pytest.mark.parametrize("change", ["claimed", "unseen", "stopped", "began later"])
def test_a_lease_was_not_surely_renewed_in_a_time_that_is_not_shown(change: str) -> None:
    renewals = Renewals()
    for number in range(10):
        renewals.add(10 * number * SECOND, is_claimed=change == "claimed")
    start = {"stopped": 91, "began later": -1}.get(change, 51) * SECOND
    if change == "unseen":
        renewals.miss(start, start + SECOND)
    assert renewals.find_sure_pace(start, start + 17 * SECOND) is None


def test_a_lease_that_stopped_for_good_was_late_too() -> None:
    server = FakeServer()
    a, b = server.elector("a", "shop/db"), server.elector("b", "shop/mail")
    together(20, a, b)
    start = server.now
    server.wait(20)
    server.elector("c", "shop/db").take()
    histories = follow_log(server)
    others = histories.index.compare_with_others(histories.leases[LEASE], start, server.now)
    mail = (("shop", "mail"),)
    assert others == OtherLeases(late=1, named_late=mail, stopped=1, named_stopped=mail)


@pytest.mark.parametrize(
    ("renewals", "pause", "silence", "is_late"),
    [(2, 0, 60, True), (2, 0, 30, False), (2, 40, 60, False), (1, 0, 60, False)],
    ids=["two renewals before", "too short a time", "it had stopped long before", "a single renewal before"],
)
def test_a_lease_of_which_few_renewals_are_known_was_late_if_several_are_missing(
    renewals: int, pause: int, silence: int, *, is_late: bool
) -> None:
    server = FakeServer()
    a, rare = server.elector("a", "shop/db"), server.elector("r", "shop/rare", retry=10)
    rare.lead(10 * renewals)
    server.wait(pause)
    a.take()
    start = server.now
    server.wait(silence)
    others = follow_log(server).index.compare_with_others(follow_log(server).leases[LEASE], start, server.now)
    rares = (("shop", "rare"),)
    # The log ends before several more are missing.
    late = OtherLeases(late=1, named_late=rares, named_back=rares)
    assert others == (late if is_late else OtherLeases())


def test_a_lease_of_which_few_renewals_are_known_need_not_have_stopped_where_the_input_has_a_hole() -> None:
    renewals = Renewals()
    for at in (0, 10, 20):
        renewals.add(at * SECOND)
    assert renewals.was_late(20 * SECOND, 80 * SECOND) is True
    renewals.miss(30 * SECOND, 40 * SECOND)
    assert renewals.was_late(20 * SECOND, 80 * SECOND) is None


def test_where_one_of_several_logs_ends_no_lease_is_known_to_have_stopped() -> None:
    first, second = FakeServer(), FakeServer()
    a, b = first.elector("a", "shop/db"), first.elector("b", "shop/mail")
    together(20, a, b)
    start = first.now
    a.ask()
    second.wait(1)
    second.elector("d", "shop/cart").lead(120)
    histories = ClusterHistory()
    observe_all(histories, read("one", [first.audit_log()]), read("two", [second.audit_log()]))
    others = histories.index.compare_with_others(histories.leases[LEASE], start, start + 12 * SECOND)
    assert (others.late, others.stopped) == (1, 0)


@pytest.mark.parametrize(
    ("end", "until", "hole", "has_stopped"),
    [(60, 120, 0, True), (60, 50, 0, False), (15, 120, 0, False), (60, 120, 90, False)],
    ids=["none came", "the next may still come", "one came after the time", "one may have come in a hole"],
)
def test_a_lease_has_stopped_if_no_renewal_came_until_the_input_ends(
    end: int, until: int, hole: int, *, has_stopped: bool
) -> None:
    renewals = Renewals()
    for at in (0, 10, 20):
        renewals.add(at * SECOND)
    if hole:
        renewals.miss(hole * SECOND, (hole + 5) * SECOND)
    assert renewals.has_stopped_by(end * SECOND, until * SECOND) is has_stopped


def test_a_dump_says_who_stopped_together() -> None:
    server = FakeServer()
    a, b, c, d = (server.elector(name, f"shop/{name}") for name in ("db", "mail", "cart", "old"))
    d.lead(4)
    server.wait(600)
    together(20, a, b)
    c.lead(60)
    free = server.elector("e", "shop/free")
    free.lead(2)
    free.release()
    histories = cluster_of(server.dump())
    history = histories.leases[LEASE]
    assert histories.bounds.until is None
    assert histories.index.compare_silent_with_others(history, server.now) == OtherLeases(late=1, on_time=1)


def keep_as_text(dump: bytes) -> ClusterHistory:
    """The history of a list of which no lease was asked for."""
    histories = ClusterHistory()
    for item in read("in", [dump]):
        histories.add(item)
    return histories


@pytest.mark.parametrize("follow", [cluster_of, keep_as_text])
def test_leases_of_a_longer_rhythm_did_not_stop_with_one_that_just_expired(
    follow: Callable[[bytes], ClusterHistory],
) -> None:
    server = FakeServer()
    db = server.elector("db", "shop/db")
    nodes = [server.elector(f"node-{number}", f"kube-node-lease/{number}", duration=40) for number in range(3)]
    together(20, db, *nodes)
    server.wait(11)
    for node in nodes:
        node.renew()
    server.wait(5)
    histories = follow(server.dump())
    expired = histories.get_history(LEASE)
    assert histories.index.compare_silent_with_others(expired, server.now) == OtherLeases()
    assert histories.index.compare_silent_with_others(expired, server.now + 15 * SECOND) == OtherLeases(late=3)


@pytest.mark.parametrize("follow", [cluster_of, keep_as_text])
def test_a_lease_that_was_never_renewed_did_not_stop(follow: Callable[[bytes], ClusterHistory]) -> None:
    server = FakeServer()
    server.elector("db", "shop/db").lead(20)
    for name in ("a", "b", "c"):
        server.elector(name, f"shop/{name}").take()
    server.wait(60)
    histories = follow(server.dump())
    expired = histories.get_history(LEASE)
    assert histories.index.compare_silent_with_others(expired, server.now) == OtherLeases()
    never_renewed = histories.get_history(("shop", "a"))
    assert histories.index.compare_silent_with_others(never_renewed, server.now) == OtherLeases(late=1)


@pytest.mark.parametrize("follow", [cluster_of, keep_as_text])
def test_a_renewal_of_the_future_does_not_show_that_a_lease_went_on(
    follow: Callable[[bytes], ClusterHistory],
) -> None:
    server = FakeServer()
    db, mail = server.elector("db", "shop/db"), server.elector("mail", "shop/mail")
    together(20, db, mail)
    server.wait(3600)
    mail.renew()
    histories = follow(server.dump())
    expired = histories.get_history(LEASE)
    assert histories.index.compare_silent_with_others(expired, server.now) == OtherLeases(on_time=1)
    assert histories.index.compare_silent_with_others(expired, server.now - 1800 * SECOND) == OtherLeases()


def test_what_others_did_is_known_anew_after_an_observation() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(4)
    server.wait(60)
    histories = cluster_of(server.dump())
    history = histories.leases[LEASE]
    assert histories.index.compare_silent_with_others(history, server.now) == OtherLeases()
    other = FakeServer(now=server.now)
    other.elector("b", "shop/mail").lead(4)
    for item in read("in", [other.dump()]):
        histories.add(item)
    assert histories.index.compare_silent_with_others(history, other.now) == OtherLeases(on_time=1)
    assert histories.index.compare_silent_with_others(history, other.now + SECOND) == OtherLeases(on_time=1)


def test_writers_of_the_log_are_known_by_name() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(10)
    server.elector("b", "shop/db").ask()
    history = follow_log(server).leases[LEASE]
    assert history.requests.readers["b"][0] == 1
    assert history.latest_tenure is not None
    assert not history.latest_tenure.processes.has_several_writers


WITH_LOG = pytest.mark.parametrize("view", [follow_log, follow_both], ids=["audit log", "watch and audit log"])


@WITH_LOG
def test_two_pods_under_one_identity(view: View) -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    twin = server.elector("twin", "shop/db")
    twin.identity = a.identity
    a.take()
    for _ in a.ticks(10):
        a.renew()
        server.wait(0.1)
        twin.renew()
    tenure = view(server).leases[LEASE].latest_tenure
    assert tenure is not None
    assert tenure.processes.has_several_writers
    assert {one.pod for one in tenure.processes.writers} == {"a", "twin"}


@WITH_LOG
def test_a_pod_that_replaced_another_is_no_twin(view: View) -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(10)
    a.pod = "a-again"
    a.lead(10)
    tenure = view(server).leases[LEASE].latest_tenure
    assert tenure is not None
    assert not tenure.processes.has_several_writers


def test_refused_and_slow_answers_are_kept() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(6)
    a.fail(403, "no")
    server.wait(2)
    server.log_request("shop/db", "update", a.user, a.pod, server.leases["shop/db"], took=4)
    refusals = follow_log(server).leases[LEASE].requests.refusals
    assert [(one.code, one.message, one.took) for one in refusals] == [(403, "no", 4000), (200, "", 4 * SECOND)]


def test_a_log_without_objects_takes_the_writer_for_the_holder() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    server.wait(16)
    server.elector("b", "shop/db").lead(10)
    history = follow_metadata(server).leases[LEASE]
    assert steps(history) == [("a", Handover.CREATED, None), ("b", Handover.UNKNOWN, 16.0)]
    assert history.find_status(server.now) is None
    assert all(one.is_stand_in for one in history.tenures)


def test_a_log_without_objects_and_without_pods() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.pod = ""
    a.lead(4)
    a.lead(4)
    assert steps(follow_metadata(server).leases[LEASE]) == [("shop/db", Handover.CREATED, None)]
    server.log[0]["user"] = {}
    assert steps(follow_metadata(server).leases[LEASE])[0][0] == ""


def test_a_log_without_objects_that_begins_in_the_middle() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    del server.log[:3]
    assert steps(follow_metadata(server).leases[LEASE]) == [("a", Handover.SEEN, None)]


def test_a_watch_begins_with_what_is_there() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(60)
    server.events = [(server.now, "ADDED", server.leases["shop/db"])]
    a.lead(10)
    history = follow_watch(server).leases[LEASE]
    (tenure,) = history.tenures
    assert tenure.began is Handover.SEEN
    assert abs(tenure.since - START) < SECOND
    assert history.renewals.count == 5


def test_lines_that_are_not_quite_in_order_change_nothing() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    server.wait(16)
    server.elector("b", "shop/db").lead(10)
    server.log[10], server.log[11], server.log[12] = server.log[11], server.log[12], server.log[10]
    assert [one.holder for one in follow_log(server).leases[LEASE].tenures] == ["a_1", "b_1"]


def test_a_label_and_a_dry_run_are_no_renewals() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(10)
    renewals = follow_log(server).leases[LEASE].renewals.count
    server.wait(1)
    server.write("shop/db", server.leases["shop/db"]["spec"], "kubectl-label", "admin", "")
    server.log[-1]["requestURI"] += "?dryRun=All"
    server.write("shop/db", server.leases["shop/db"]["spec"], "kubectl-label", "admin", "")
    assert follow_log(server).leases[LEASE].renewals.count == renewals


def test_a_lease_of_wrong_types_has_no_standing() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(4)
    server.leases["shop/db"]["spec"]["leaseDurationSeconds"] = "15"
    history = cluster_of(server.dump()).leases[LEASE]
    assert history.find_status(server.now) is None


def test_the_end_of_a_log_is_the_last_line_of_whatever() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(4)
    server.wait(60)
    server.log_request("shop/other", "list", "x", "", {})
    assert follow_log(server).bounds.until == server.now


def test_candidates_are_followed() -> None:
    server = FakeServer()
    candidate = {
        "kind": "LeaseCandidate",
        "apiVersion": "coordination.k8s.io/v1beta1",
        "metadata": {"name": "c", "namespace": "shop"},
        "spec": {"leaseName": "db"},
    }
    server.events = [(0, "ADDED", candidate)]
    assert list(follow_watch(server).candidates) == [("shop", "c")]
    server.events.append((1, "DELETED", candidate))
    assert follow_watch(server).candidates == {}
    server.events = [(0, "ADDED", {**candidate, "spec": {"leaseName": 7}})]
    assert follow_watch(server).candidates == {}


def test_what_is_no_lease_is_passed_over() -> None:
    histories = ClusterHistory()
    (pod,) = read("in", [b'{"kind":"Pod","apiVersion":"v1"}'])
    assert isinstance(pod, OtherObject)
    histories.add(pod)
    assert histories == ClusterHistory()


def test_changes_are_counted_without_the_first_holder() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    server.wait(16)
    server.elector("b", "shop/db").lead(10)
    assert follow_log(server).leases[LEASE].changes == 1


def test_a_stream_without_stamps_goes_by_the_clocks_of_its_clients() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    server.wait(16)
    server.elector("b", "shop/db").lead(10)
    for _, _, lease in server.events:
        lease["metadata"]["managedFields"] = []
    history = follow_watch(server).leases[LEASE]
    assert steps(history)[1] == ("b_1", Handover.UNKNOWN, None)
    status = history.find_status(server.now)
    assert status is not None
    assert (status.state, status.from_stamps) == (LeaseState.LIVE, False)


def test_reviews_say_when_the_holder_before_renewed() -> None:
    """A webhook is not asked about plain renewals, so a review brings the state before."""
    old = make_lease()
    new = make_lease(put("spec.holderIdentity", "b"), put("spec.renewTime", "2025-11-20T12:00:20.000000Z"))
    for entry in new["metadata"]["managedFields"]:
        entry["time"] = "2025-11-20T12:00:20Z"
    history = cluster_of(to_bytes(make_review(new=new, old=old))).leases["shop", "checkout"]
    assert [(one.holder, one.began, one.leaderless) for one in history.tenures][1] == (
        "b",
        Handover.EXPIRED,
        21 * SECOND,
    )
    renewed = make_lease(put("spec.renewTime", "2025-11-20T12:00:05.000000Z"))
    history = cluster_of(to_bytes(make_review(new=renewed, old=old))).leases["shop", "checkout"]
    assert history.renewals.count == 0


def test_an_object_of_wrong_types_and_an_old_dump() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(4)
    broken = server.log[-1]
    broken["responseObject"] = {**broken["responseObject"], "spec": {"leaseTransitions": "x"}}
    history = follow_log(server).leases[LEASE]
    assert history.renewals.count == 1


def test_a_deletion_of_what_was_never_seen() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(4)
    server.delete("shop/db")
    server.events = server.events[-1:]
    history = follow_watch(server).leases[LEASE]
    assert (history.is_deleted, list(history.tenures)) == (True, [])


def test_a_holder_that_was_never_seen_renews() -> None:
    history = LeaseHistory("shop", "db")
    server = FakeServer()
    server.write("shop/db", {}, "kubectl-create", "admin", "")
    server.write("shop/db", {"holderIdentity": "a", "renewTime": None}, "kubectl-create", "admin", "")
    for item in read("in", [server.watch()]):
        assert isinstance(item, Observation)
        observe(history, item, Bounds())
    assert [one.holder for one in history.tenures] == ["a"]


def test_requests_without_a_user_are_not_counted() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(4)
    a.ask()
    server.log[-1]["user"] = {}
    assert follow_log(server).leases[LEASE].requests.readers == {}


def test_what_is_remembered_is_bounded() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.take()
    for number in range(40):
        a.user, a.pod = f"user-{number}", f"a-{number}"
        a.ask()
        for _ in range(3):
            a.renew()
            server.wait(2)
    history = follow_log(server).leases[LEASE]
    assert len(history.requests.readers) == 16
    assert history.latest_tenure is not None
    assert len(history.latest_tenure.processes.writers) == 8


def test_an_event_without_a_time_is_no_write() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(4)
    for event in server.log:
        event["stageTimestamp"] = event["requestReceivedTimestamp"] = ""
    history = follow_metadata(server).leases[LEASE]
    assert (history.at, list(history.tenures)) == (None, [])


def test_a_list_after_a_watch_and_one_without_any_time() -> None:
    server = FakeServer()
    server.write("shop/db", {}, "kubectl-create", "admin", "")
    server.leases["shop/db"]["metadata"] |= {"managedFields": [], "creationTimestamp": None}
    histories = cluster_of(server.watch() + server.dump())
    assert (histories.bounds.until, histories.has_managed_fields) == (None, True)


def test_the_states_before_the_first_event_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds_of_input, "_MAX_STATES", 2)
    server = FakeServer()
    for name in ("a", "b", "c"):
        server.elector(name, f"shop/{name}").take()
        server.wait(10)
    bounds = Bounds()
    for number, item in enumerate(read("in", [server.dump()])):
        assert isinstance(item, Observation)
        bounds.note(item, START + (3 - number) * SECOND)
    assert bounds.find_start(server.now) == START + 2 * SECOND


def test_a_watch_that_began_again_shows_no_silence() -> None:
    """Its list shows states that were written while no one watched."""
    server = FakeServer()
    electors = [server.elector("a", "shop/db"), server.elector("m", "shop/mail")]
    together(40, *electors)
    seen, known = len(server.events), dict(server.leases)
    together(90, *electors)
    server.events[seen:] = [(server.now, "ADDED", one) for one in server.leases.values()]
    together(20, *electors)
    assert known != server.leases
    history = follow_watch(server).leases[LEASE]
    assert steps(history) == [("a_1", Handover.SEEN, None)]
    assert (history.late_silences, history.renewals.last) == ([], server.now)


@pytest.mark.parametrize("is_followed", [True, False])
def test_what_a_watch_missed_is_not_known(is_followed: bool) -> None:
    server = FakeServer()
    a, b = server.elector("a", "shop/db"), server.elector("b", "shop/db")
    a.lead(20)
    seen = len(server.events)
    a.release()
    b.lead(20)
    if is_followed:
        b.release()
        a.take()
    del server.events[seen:]
    if not is_followed:
        server.events.append((server.now, "ADDED", server.leases["shop/db"]))
    (a if is_followed else b).lead(20)
    holder = "a_1" if is_followed else "b_1"
    history = follow_watch(server).leases[LEASE]
    bound = 23.0 if is_followed else 21.0
    assert steps(history) == [("a_1", Handover.SEEN, None), (holder, Handover.UNKNOWN, bound)]
    assert (history.is_partial, history.leaderless) == (True, bound * SECOND)


def test_an_old_copy_written_over_a_lease_in_a_watch_is_no_taking() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    spec = server.leases["shop/db"]["spec"]
    times = {key: format_micro_time(parse(spec[key]) - 86_400 * SECOND) for key in ("acquireTime", "renewTime")}
    server.write("shop/db", {**spec, **times, "leaseTransitions": 3}, "restorer", "admin", "")
    assert steps(follow_watch(server).leases[LEASE]) == [("a_1", Handover.SEEN, None)]


@pytest.mark.parametrize("is_free_before", [True, False])
def test_a_lease_that_was_free_before_or_after_what_a_watch_missed(is_free_before: bool) -> None:
    server = FakeServer()
    a, b = server.elector("a", "shop/db"), server.elector("b", "shop/db")
    a.lead(20)
    if is_free_before:
        a.release()
    seen = len(server.events)
    b.lead(20)
    if not is_free_before:
        b.release()
    server.events[seen:] = [(server.now, "ADDED", server.leases["shop/db"])]
    after = [("b_1", Handover.UNKNOWN, 21.0)] if is_free_before else []
    assert steps(follow_watch(server).leases[LEASE]) == [("a_1", Handover.SEEN, None), *after]


def test_who_takes_a_lease_that_was_free_when_a_watch_went_on_is_not_the_first_holder() -> None:
    server = FakeServer()
    a, b = server.elector("a", "shop/db"), server.elector("b", "shop/db")
    a.lead(20)
    seen = len(server.events)
    b.lead(20)
    b.release()
    server.events[seen:] = [(server.now, "ADDED", server.leases["shop/db"])]
    server.wait(3)
    a.lead(20)
    assert steps(follow_watch(server).leases[LEASE])[1:] == [("a_1", Handover.UNKNOWN, 24.0)]
