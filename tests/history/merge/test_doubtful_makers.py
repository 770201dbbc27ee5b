"""Several requests of a log that may have made one state of a watch: what clients choose does not say which did."""

import copy
import itertools
import json
from typing import Any

import pytest

from tests.claims.accounts import account, text
from tests.factories import Document
from tests.history.fake_server import Elector, FakeServer
from tests.history.observing import LATEST, observe_all
from tests.inputs.reading import read
from webhook.analysis.claims.facts import find_claims
from webhook.analysis.claims.handover_clauses import describe_renewals_of_another
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.write import Dating
from webhook.analysis.timeline.lanes import TimelineBuilder
from webhook.analysis.timeline.model import Lane, SpanKind
from webhook.kubernetes.times import format_micro_time, parse

DB = "shop/db"
with_and_without_stamps = pytest.mark.parametrize(
    "managed_fields", [True, False], ids=["with stamps", "without stamps"]
)


def observe(target: ClusterHistory | TimelineBuilder, server: FakeServer, *, managed_fields: bool) -> None:
    """Have a target observe a watch of the server and its log."""
    lines = b"".join(json.dumps(one).encode() + b"\n" for one in server.log)
    observe_all(target, read("watch", [server.watch(managed_fields=managed_fields)]), read("log", [lines]))


def follow_all(server: FakeServer, *, managed_fields: bool = True) -> ClusterHistory:
    histories = ClusterHistory()
    observe(histories, server, managed_fields=managed_fields)
    return histories


def follow(server: FakeServer, *, managed_fields: bool = True) -> LeaseHistory:
    return follow_all(server, managed_fields=managed_fields).leases["shop", "db"]


def hide(event: Document) -> None:
    event["level"] = "Metadata"
    event.pop("responseObject", None)
    event.pop("requestObject", None)


def show_request(event: Document) -> None:
    """Cut a write to what a log shows at level Request."""
    stored = event.pop("responseObject")
    metadata = {key: stored["metadata"][key] for key in ("name", "namespace")}
    event["level"], event["requestObject"] = "Request", {**stored, "metadata": metadata}


def make_patch(event: Document, **spec: Any) -> None:
    event["verb"], event["level"], event["requestObject"] = "patch", "Request", {"spec": spec}
    event.pop("responseObject", None)
    event["objectRef"].pop("resourceVersion", None)


def add_patch(server: FakeServer, user: str, **spec: Any) -> None:
    """Log a patch that changes nothing: it sets what is stored."""
    server.log_request(DB, "patch", user, user, {})
    make_patch(server.log[-1], **spec)


def list_writers(history: LeaseHistory) -> set[str]:
    (tenure,) = history.tenures
    return {one.user for one in tenure.processes.writers}


def lead_and_echo() -> tuple[FakeServer, list[Document]]:
    """A server whose holder renews for 20 s while somebody patches in the renewTime that each renewal has set."""
    server, renewals = FakeServer(), []
    db = server.elector("db-0", DB)
    db.take()
    for _ in db.ticks(20):
        db.renew()
        renewals.append(server.log[-1])
        server.wait(0.1)
        add_patch(server, "evil", renewTime=server.leases[DB]["spec"]["renewTime"])
    return server, renewals


@with_and_without_stamps
def test_who_patches_in_what_a_hidden_update_stored_is_not_its_writer(managed_fields: bool) -> None:
    server, renewals = lead_and_echo()
    for event in renewals:
        hide(event)
    assert "evil" not in list_writers(follow(server, managed_fields=managed_fields))


def test_an_update_that_asked_for_the_next_state_made_it_whatever_patches_fit() -> None:
    server, renewals = lead_and_echo()
    for event in renewals:
        show_request(event)
    history = follow(server)
    assert list_writers(history) == {"system:serviceaccount:shop:db"}
    last = history.tenures[0].last_renewal_write
    assert last is not None
    assert last.dating is Dating.LOG


@with_and_without_stamps
def test_who_updates_what_is_there_is_not_the_writer_of_what_a_patch_sets(managed_fields: bool) -> None:
    server = FakeServer()
    db = server.elector("db-0", DB)
    db.take()
    for _ in db.ticks(20):
        stored = server.leases[DB]
        server.log_request(DB, "update", "evil", "evil", stored)
        server.log[-1]["objectRef"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
        hide(server.log[-1])
        server.wait(0.1)
        db.renew()
        make_patch(server.log[-1], renewTime=server.leases[DB]["spec"]["renewTime"])
    assert "evil" not in list_writers(follow(server, managed_fields=managed_fields))


def edit_duration(server: FakeServer) -> None:
    """Have alice set the duration by a patch, just after a renewal."""
    server.elector("db-0", DB).lead(10)
    server.wait(0.1)
    server.write(DB, {**server.leases[DB]["spec"], "leaseDurationSeconds": 1}, "kubectl", "alice", "")
    make_patch(server.log[-1], leaseDurationSeconds=1)


def find_editor(history: LeaseHistory) -> str:
    (edit,) = history.edits
    return edit.writer.user if edit.writer else ""


def test_who_set_another_value_did_not_make_a_state() -> None:
    server = FakeServer()
    edit_duration(server)
    add_patch(server, "carol", acquireTime="2026-11-18T11:00:00.000000Z")
    add_patch(server, "bob", leaseDurationSeconds=15)
    add_patch(server, "bob", leaseDurationSeconds="1")
    assert find_editor(follow(server)) == "alice"


@pytest.mark.parametrize("is_hidden_update", [False, True], ids=["no update", "a hidden update"])
@with_and_without_stamps
def test_who_patches_in_a_duration_that_a_hidden_update_may_have_set_is_not_its_editor(
    managed_fields: bool, is_hidden_update: bool
) -> None:
    server = FakeServer()
    edit_duration(server)
    make_patch(server.log[-1], leaseDurationSeconds=1, renewTime=server.leases[DB]["spec"]["renewTime"])
    if is_hidden_update:
        server.log_request(DB, "update", "evil", "evil", {})
        hide(server.log[-1])
    assert find_editor(follow(server, managed_fields=managed_fields)) == ("" if is_hidden_update else "alice")


def edit_twice(server: FakeServer, *, after: float, renewals_by_patches: bool = True) -> None:
    """Have evil set the duration by a hidden update, and bob set the same by a patch, and then another one."""
    db = server.elector("db-0", DB)
    db.lead(20)
    for event in server.log[1:] if renewals_by_patches else ():
        make_patch(event, renewTime=event["responseObject"]["spec"]["renewTime"])
    server.wait(after)
    server.write(DB, {**server.leases[DB]["spec"], "leaseDurationSeconds": 1}, "kubectl", "evil", "")
    hide(server.log[-1])
    server.wait(0.2)
    add_patch(server, "bob", leaseDurationSeconds=1)
    server.wait(0.2)
    server.write(DB, {**server.leases[DB]["spec"], "leaseDurationSeconds": 15}, "kubectl", "bob", "")
    make_patch(server.log[-1], leaseDurationSeconds=15)
    db.lead(4)


def test_edits_that_nobody_is_known_to_have_made_are_listed_as_they_were_stored() -> None:
    server = FakeServer()
    edit_twice(server, after=0.2)
    said = text(account(follow_all(server), server.now))
    assert 0 < said.index("leaseDurationSeconds 15 -> 1") < said.index("leaseDurationSeconds 1 -> 15")


def test_a_write_of_the_instant_of_the_state_before_may_have_made_the_next_one() -> None:
    server = FakeServer()
    edit_twice(server, after=0, renewals_by_patches=False)
    # The hidden update names what it replaced, and so it cannot have made the last one.
    assert [one.writer and one.writer.user for one in follow(server).edits] == [None, "bob"]


def test_an_update_did_not_make_a_state_before_the_one_that_it_names() -> None:
    server = FakeServer()
    db = server.elector("db-0", DB)
    db.lead(10)
    forged = copy.deepcopy(server.leases[DB])
    server.revision += 1
    forged["metadata"]["resourceVersion"] = str(server.revision)
    forged["metadata"]["managedFields"][0]["time"] = "2026-11-18T11:06:56Z"
    server.leases[DB] = forged
    server.events.append((server.now, "MODIFIED", forged))
    db.lead(10)
    for event in server.log:
        hide(event)
    history = follow(server, managed_fields=True)
    (tenure,) = history.tenures
    assert (tenure.processes.renewals, len(history.renewals.silences)) == (10, 0)


def repeat_update(server: FakeServer, *, seconds: float) -> None:
    """Have mallory send an update that names what the latest one replaced, and changes nothing, so long before it."""
    event = server.log[-1]
    early = copy.deepcopy(event)
    early["user"]["username"] = "mallory"
    for key in ("requestReceivedTimestamp", "stageTimestamp"):
        early[key] = format_micro_time(parse(event[key]) - int(seconds * 1_000_000))
    server.log.insert(-1, early)


@pytest.mark.parametrize("seconds", [1.5, 0.1], ids=["in another second", "in the second of the other one"])
def test_an_update_that_names_what_another_one_replaced_is_no_write_of_the_lease(seconds: float) -> None:
    server = FakeServer()
    db = server.elector("db-0", DB)
    db.take()
    for _ in db.ticks(20):
        server.wait(0.2)
        db.renew()
        repeat_update(server, seconds=seconds)
    for event in server.log:
        hide(event)
    history = follow(server)
    assert not history.requests.accepted
    assert list_writers(history) == {"system:serviceaccount:shop:db"}


def test_who_wrote_a_holder_in_by_one_of_several_patches_did_so_after_the_state_before_at_the_earliest() -> None:
    server = FakeServer()
    db = server.elector("db-0", DB, ahead=90)
    db.lead(20)
    last = server.now
    for event in server.log:
        hide(event)
    for holder, user in itertools.product(("old", "older"), ("argocd", "flux")):
        server.wait(20)
        add_patch(server, user, holderIdentity=holder)
        if server.leases[DB]["spec"]["holderIdentity"] != holder:
            server.log.pop()
            server.write(DB, {**server.leases[DB]["spec"], "holderIdentity": holder}, user, user, f"{user}-0")
            make_patch(server.log[-1], holderIdentity=holder)
    history = follow(server, managed_fields=False)
    assert history.tenures[1].since == last
    last_span = draw(server).spans[-1]
    assert (last_span.kind, last_span.ends) == (SpanKind.UNRECORDED, None)
    assert [one.is_end_known for one in history.tenures] == [True, False, True]


def test_who_takes_a_released_lease_from_who_was_written_in_has_not_stolen_it() -> None:
    server = FakeServer()
    db = server.elector("db-0", DB)
    db.lead(20)
    db.release()
    server.wait(5)
    server.write(DB, {**server.leases[DB]["spec"], "holderIdentity": "old"}, "argocd", "argocd", "argocd-0")
    server.wait(0.5)
    server.elector("db-1", DB).take()
    assert follow(server).tenures[-1].began is Handover.UNKNOWN


def test_who_takes_a_lease_that_its_holder_s_own_clock_alone_dates_has_not_stolen_it() -> None:
    server = FakeServer()
    db = server.elector("db-0", DB, ahead=30)
    db.lead(20)
    server.wait(14)
    server.write(DB, {**server.leases[DB]["spec"], "holderIdentity": "old"}, "kubectl", "alice", "")
    server.wait(4)
    server.elector("db-1", DB).take()
    for event in server.log[:-2]:
        make_patch(event)
    history = follow(server, managed_fields=False)
    assert history.tenures[-1].began is Handover.UNKNOWN


def draw(server: FakeServer) -> Lane:
    """Draw what a watch without managedFields and the log show."""
    builder = TimelineBuilder(LATEST)
    observe(builder, server, managed_fields=False)
    (lane,) = builder.timeline(server.now).lanes
    return lane


def renew_late(*, seconds: float) -> FakeServer:
    """Have a holder renew 30 s late, and evil send a patch so long after that, in a log without objects."""
    server = FakeServer()
    db = server.elector("db-0", DB)
    db.lead(10)
    server.wait(30)
    db.renew()
    server.wait(seconds)
    add_patch(server, "evil")
    for event in server.log:
        hide(event)
    return server


def test_a_late_renewal_whose_request_is_not_known_is_drawn_once_and_after_the_lease_expired() -> None:
    lane = draw(renew_late(seconds=2.5))
    assert [one.kind for one in lane.spans] == [SpanKind.HELD, SpanKind.OVERDUE, SpanKind.HELD]
    assert len(lane.ticks.moments) == 6


def test_a_renewal_is_not_said_to_be_late_by_two_clocks() -> None:
    assert [one.kind for one in draw(renew_late(seconds=0.1)).spans] == [SpanKind.HELD]


MUTATED = {"mutation.webhook.admission.k8s.io/round_0_index_0": '{"webhook":"a","mutated":true}'}


def move_by_webhook(server: FakeServer) -> Document:
    """Have the latest state stored with a renewTime 5 min before the one asked for; return the request."""
    asked, stored = server.log[-1], copy.deepcopy(server.leases[DB])
    show_request(asked)
    stored["spec"]["renewTime"] = format_micro_time(server.now - 300_000_000)
    server.events[-1], server.leases[DB] = (server.now, "MODIFIED", stored), stored
    return asked


def test_an_update_that_asks_again_for_what_a_webhook_moved_did_not_make_the_next_state() -> None:
    server = FakeServer()
    db = server.elector("db-0", DB)
    db.lead(10)
    server.wait(2)
    db.renew()
    asked = move_by_webhook(server)
    asked["annotations"] = MUTATED
    again = copy.deepcopy(asked)
    again["objectRef"]["resourceVersion"] = server.leases[DB]["metadata"]["resourceVersion"]
    server.wait(0.1)
    again["requestReceivedTimestamp"] = again["stageTimestamp"] = format_micro_time(server.now)
    server.log.append(again)
    server.wait(0.1)
    server.write(DB, {**server.leases[DB]["spec"], "leaseDurationSeconds": 120}, "kubectl", "alice", "")
    hide(server.log[-1])
    assert find_editor(follow(server)) == "alice"


def test_an_update_that_names_what_a_watch_lacks_did_not_make_the_state_after_that() -> None:
    server = FakeServer()
    server.elector("db-0", DB).lead(20)
    del server.events[5]
    for event in server.log:
        show_request(event)
        event["annotations"] = MUTATED
    (tenure,) = follow(server).tenures
    assert [one.pod for one in tenure.processes.writers] == ["db-0"]


def test_a_state_whose_stamps_are_all_of_before_what_a_log_has_is_dated_by_its_place() -> None:
    server = FakeServer()
    db = server.elector("db-0", DB)
    db.lead(4)
    server.write(DB, {**server.leases[DB]["spec"], "leaseDurationSeconds": 20}, "kubectl", "alice", "")
    db.duration = 20
    db.lead(20)
    last = server.now
    server.wait(0.5)
    for user in ("evil", "mallory"):
        server.wait(0.5)
        if user == "evil":
            server.write(DB, {**server.leases[DB]["spec"], "leaseDurationSeconds": 1}, "kubectl-edit", user, "")
            server.leases[DB]["metadata"]["managedFields"][:] = [
                one for one in server.leases[DB]["metadata"]["managedFields"] if one["time"] < "2026-11-18T11:06:50Z"
            ]
        else:
            server.log_request(DB, "patch", user, user, {})
        make_patch(server.log[-1])
    for event in server.log:
        hide(event)
    edit = follow(server).edits[-1]
    assert (edit.text, edit.at, edit.is_dated) == ("leaseDurationSeconds 20 -> 1", last, False)


def test_who_sent_an_update_that_may_have_changed_nothing_did_not_write_in_what_a_patch_may_have() -> None:
    server = FakeServer()
    server.elector("db-0", DB).lead(10)
    server.wait(0.5)
    replaced = server.log[-1]["objectRef"]["resourceVersion"]
    server.log_request(DB, "update", "system:serviceaccount:shop:db", "db-0", {})
    server.log[-1]["objectRef"]["resourceVersion"] = server.leases[DB]["metadata"]["resourceVersion"]
    assert replaced != server.log[-1]["objectRef"]["resourceVersion"]
    server.wait(0.5)
    server.write(DB, {**server.leases[DB]["spec"], "holderIdentity": "old"}, "kubectl", "evil", "")
    make_patch(server.log[-1])
    for event in server.log:
        hide(event)
    assert follow(server, managed_fields=False).tenures[-1].processes.taken_by is None


def test_a_patch_may_have_made_what_a_webhook_changed_whatever_it_asked_for() -> None:
    server = FakeServer()
    db = server.elector("db-0", DB)
    db.lead(20)
    server.wait(2)
    db.renew()
    move_by_webhook(server)
    asked, stored = server.log.pop(), server.leases[DB]
    again = copy.deepcopy(asked)
    again["objectRef"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
    spec = {**stored["spec"], "leaseDurationSeconds": 120, "renewTime": format_micro_time(server.now - 600_000_000)}
    server.write(DB, spec, "kubectl", "alice", "")
    edit = server.log.pop()
    make_patch(edit, leaseDurationSeconds=120, renewTime=stored["spec"]["renewTime"])
    server.log += [asked, again, edit]
    assert "leaseDurationSeconds" not in follow(server).requests.rewritten.found


def lead_beside_later_stamp() -> tuple[FakeServer, Elector]:
    """Have db-0 lead a lease that another writer edited, by an API server whose clock is ahead."""
    server = FakeServer()
    db = server.elector("db-0", DB)
    db.lead(4)
    server.write(DB, {**server.leases[DB]["spec"], "leaseDurationSeconds": 20}, "kubectl", "alice", "")
    for entry in server.leases[DB]["metadata"]["managedFields"]:
        if entry["manager"] == "kubectl":
            entry["time"] = "2026-11-18T11:09:00Z"
    db.duration = 20
    return server, db


def test_a_log_dates_renewals_though_another_writer_s_stamp_is_later() -> None:
    server, db = lead_beside_later_stamp()
    db.lead(10)
    for event in server.log:
        hide(event)
    last = follow(server).tenures[-1].last_renewal_write
    assert last is not None
    assert last.dating is Dating.LOG


def test_a_log_dates_the_second_of_two_renewals_in_one_second_though_another_stamp_is_later() -> None:
    server, db = lead_beside_later_stamp()
    server.wait(2)
    db.renew()
    server.wait(0.1)
    db.renew()
    for event in server.log:
        hide(event)
    last = follow(server).tenures[-1].last_renewal_write
    assert last is not None
    assert (last.dating, last.at) == (Dating.LOG, server.now)


def test_for_how_long_a_lease_was_free_is_not_known_if_only_its_holder_s_own_clock_dates_the_end() -> None:
    server = FakeServer()
    db = server.elector("db-0", DB, ahead=3600)
    db.lead(20)
    server.wait(0.3)
    server.write(DB, {}, "kubectl", "evil", "")
    make_patch(server.log[-1])
    server.wait(5)
    held = {"holderIdentity": "db-0_1", "leaseDurationSeconds": 15, "renewTime": format_micro_time(server.now)}
    server.write(DB, held, "operator", db.user, "db-0")
    for event in server.log:
        hide(event)
    first, second = follow(server, managed_fields=False).tenures
    assert (first.holder, second.holder, second.leaderless) == ("db-0_1", "db-0_1", None)


def test_who_sends_a_patch_again_made_the_state_by_the_first_one() -> None:
    server = FakeServer()
    edit_duration(server)
    at = server.now
    server.wait(10)
    server.log_request(DB, "patch", "alice", "", {})
    make_patch(server.log[-1], leaseDurationSeconds=1)
    (edit,) = follow(server, managed_fields=False).edits
    assert (edit.writer.user if edit.writer else "", edit.at) == ("alice", at)


def test_a_patch_made_a_state_if_the_others_of_that_time_asked_for_other_ones() -> None:
    server = FakeServer()
    edit_duration(server)
    at = server.now
    server.wait(10)
    renewed = format_micro_time(server.now)
    server.write(DB, {**server.leases[DB]["spec"], "renewTime": renewed}, "kubectl", "mallory", "")
    make_patch(server.log[-1], renewTime=renewed)
    (edit,) = follow(server, managed_fields=False).edits
    assert (edit.writer.user if edit.writer else "", edit.at) == ("alice", at)


def test_a_patch_that_changed_nothing_before_the_state_that_was_replaced_is_not_taken_for_the_next_one() -> None:
    server = FakeServer()
    edit_duration(server)
    server.wait(1)
    server.log_request(DB, "patch", "alice", "", {})
    make_patch(server.log[-1], leaseDurationSeconds=1)
    server.wait(0.5)
    renewed = server.now
    server.elector("db-0", DB, duration=15).renew()
    server.wait(0.5)
    server.write(DB, {**server.leases[DB]["spec"], "leaseDurationSeconds": 1}, "kubectl", "alice", "")
    make_patch(server.log[-1], leaseDurationSeconds=1)
    assert follow(server, managed_fields=False).edits[-1].at >= renewed


def test_which_of_equal_patches_made_a_state_is_not_known_if_nothing_dates_the_one_before() -> None:
    server = FakeServer()
    server.elector("db-0", DB, duration=1).lead(10)
    for duration, user in ((1, "alice"), (20, "carol")):
        server.wait(0.5)
        server.log_request(DB, "patch", user, "", {})
        make_patch(server.log[-1], leaseDurationSeconds=duration)
    for duration, user in ((20, "bob"), (1, "alice")):
        server.wait(5)
        server.write(DB, {**server.leases[DB]["spec"], "leaseDurationSeconds": duration}, "kubectl", user, "")
        make_patch(server.log[-1], leaseDurationSeconds=duration)
    assert [one.writer for one in follow(server, managed_fields=False).edits] == [None, None]


def test_a_late_renewal_that_a_log_dates_is_not_said_to_be_by_its_writers_clock() -> None:
    server = FakeServer()
    db = server.elector("db-0", DB, ahead=3600)
    db.lead(20)
    last = server.now
    server.wait(40)
    db.renew()
    server.wait(5)
    server.log_request(DB, "patch", "velero", "", {})
    for event in server.log:
        hide(event)
    claims = find_claims(account(follow_all(server, managed_fields=False), server.now))
    (late,) = (one.arguments for one in claims if one.check == "renewal-late")
    assert (late["from"], late["to"], "how" in late) == (last, last + 40_000_000, False)


def test_a_patch_that_asked_for_the_renewal_before_did_not_make_the_next_one_whatever_else_it_asked_for() -> None:
    server = FakeServer()
    db = server.elector("db-0", DB)
    db.lead(10)
    server.wait(0.1)
    renewed = server.leases[DB]["spec"]["renewTime"]
    add_patch(server, "alice", renewTime=renewed, strategy="OldestEmulationVersion")
    patch = server.log[-1]
    server.wait(2)
    db.renew()
    for event in server.log:
        if event is not patch:
            hide(event)
    last = follow(server, managed_fields=False).tenures[-1].last_renewal_write
    assert last is not None
    assert last.dating is Dating.LOG


def test_a_renewal_whose_writer_is_not_known_is_counted_for_neither_of_two_pods() -> None:
    server = FakeServer()
    db, twin = server.elector("db", DB), server.elector("twin", DB)
    twin.identity = db.identity
    db.take()
    for elector in (db, twin, db, twin, db, twin, db):
        server.wait(1.1)
        elector.renew()
    for event in server.log:
        hide(event)
    del server.log[3]
    (tenure,) = follow(server, managed_fields=False).tenures
    (other, seen), *_ = tenure.processes.others.items()
    assert "from pod twin renewed it as db_1, at least 3 times until" in describe_renewals_of_another(
        tenure, other, seen, server.now
    )


def test_a_renewal_that_only_a_clock_that_is_ahead_dates_is_not_said_to_be_the_last_one() -> None:
    server = FakeServer()
    server.elector("db-0", DB, ahead=3600).lead(20)
    server.wait(0.3)
    server.write(DB, {}, "kubectl", "evil", "")
    make_patch(server.log[-1])
    for event in server.log:
        hide(event)
    assert account(follow_all(server, managed_fields=False), server.now).last_renewal is None


@pytest.mark.parametrize("is_request_shown", [False, True], ids=["at Metadata", "at Request"])
@pytest.mark.parametrize("by", ["evil", "alice"], ids=["by the thief", "by another one"])
def test_an_update_that_changes_nothing_hides_no_theft(by: str, is_request_shown: bool) -> None:
    server = FakeServer()
    server.elector("db-0", DB).lead(20)
    server.wait(1.2)
    stored = server.leases[DB]
    server.log_request(DB, "update", by, by, stored)
    server.log[-1]["objectRef"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
    server.wait(1.2)
    server.elector("evil-0", DB, user="evil").take()
    for event in server.log:
        if is_request_shown:
            show_request(event)
        else:
            hide(event)
    assert follow(server).tenures[-1].began is Handover.STOLEN
