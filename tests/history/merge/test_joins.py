"""Requests of a log at level Request, joined with the states of a watch without managedFields that they made."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.history.fake_server import FakeServer, hide_responses, together
from tests.history.observing import observe_all
from tests.inputs.reading import read
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.write import Dating
from webhook.kubernetes.times import SECOND, format_micro_time, parse


def lead() -> FakeServer:
    """A server on which one process created a lease, and renewed it for 20 s; its log can be changed."""
    server = FakeServer()
    together(20, server.elector("db-0", "shop/db"))
    server.log = json.loads(json.dumps(server.log))
    return server


def follow(server: FakeServer, *, managed_fields: bool = False) -> LeaseHistory:
    histories, watch = ClusterHistory(), server.watch(managed_fields=managed_fields)
    observe_all(histories, read("watch", [watch]), read("log", [hide_responses(server).audit_log()]))
    return histories.leases["shop", "db"]


def list_datings(history: LeaseHistory) -> set[Dating]:
    """Return what dates the beginning of the first tenure, and its last renewal."""
    tenure = history.tenures[0]
    assert tenure.last_renewal_write
    return {tenure.beginning.write.dating, tenure.last_renewal_write.dating}


def test_a_log_dates_a_renewal_that_has_the_renew_time_that_was_sent() -> None:
    history = follow(lead())
    (tenure,) = history.tenures
    assert list_datings(history) == {Dating.LOG}
    assert ([one.pod for one in tenure.processes.writers], tenure.processes.renewals) == (["db-0"], 10)


def test_a_log_dates_a_renewal_that_a_webhook_changed_by_the_state_that_it_replaced() -> None:
    server = lead()
    for event in server.log:
        event["annotations"] = {"mutation.webhook.admission.k8s.io/round_0_index_0": '{"webhook":"a","mutated":true}'}
    assert list_datings(follow(server)) == {Dating.LOG}


def send_another_time(event: dict[str, Any]) -> None:
    event["responseObject"]["spec"]["renewTime"] = "2026-11-18T00:00:00.000000Z"


def send_no_time(event: dict[str, Any]) -> None:
    del event["responseObject"]["spec"]["renewTime"]


def send_another_patch(event: dict[str, Any]) -> None:
    event["verb"] = "patch"
    send_another_time(event)


def send_a_patch_of_wrong_type(event: dict[str, Any]) -> None:
    event["verb"] = "patch"
    event["responseObject"]["spec"]["renewTime"] = ["2026-11-18T00:00:00.000000Z"]


def change_a_patch(event: dict[str, Any]) -> None:
    event["verb"] = "patch"
    event["annotations"] = {"mutation.webhook.admission.k8s.io/round_0_index_0": '{"webhook":"a","mutated":true}'}


def answer_a_minute_later(event: dict[str, Any]) -> None:
    event["requestReceivedTimestamp"] = event["stageTimestamp"] = "2026-11-18T12:00:00.000000Z"


@pytest.mark.parametrize(
    ("verb", "change"),
    [
        ("update", send_another_time),
        ("update", send_no_time),
        ("update", send_another_patch),
        ("update", send_a_patch_of_wrong_type),
        ("update", change_a_patch),
        ("create", answer_a_minute_later),
    ],
    ids=[
        "another time",
        "no time",
        "a patch of another time",
        "a patch of a wrong type",
        "a patch that a webhook changed",
        "another creation",
    ],
)
def test_a_state_is_not_joined_with_a_request_that_did_not_make_it(
    verb: str, change: Callable[[dict[str, Any]], None]
) -> None:
    server = lead()
    for event in server.log:
        if event["verb"] == verb:
            change(event)
    assert Dating.WRITER_CLOCK in list_datings(follow(server))


def test_an_update_that_asks_again_for_what_a_webhook_changed_did_not_make_the_next_state() -> None:
    server = lead()
    server.wait(2)
    server.elector("db-0", "shop/db").renew()
    # The webhook moves renewTime, also when another one edits the lease; the same update stores the same again.
    asked = json.loads(json.dumps(server.log.pop()))
    asked["annotations"] = {"mutation.webhook.admission.k8s.io/round_0_index_0": '{"webhook":"a","mutated":true}'}
    stored, at = json.loads(json.dumps(server.leases["shop/db"])), parse(asked["stageTimestamp"])
    stored["spec"]["renewTime"] = format_micro_time(at - 300 * SECOND)
    server.events[-1] = (server.now, "MODIFIED", stored)
    again = json.loads(json.dumps(asked))
    again["objectRef"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
    again["requestReceivedTimestamp"] = again["stageTimestamp"] = format_micro_time(at + SECOND // 100)
    spec = {**stored["spec"], "leaseDurationSeconds": 120, "renewTime": format_micro_time(at - 600 * SECOND)}
    server.leases["shop/db"] = stored
    server.write("shop/db", spec, "kubectl-edit", "alice", "")
    edit = json.loads(json.dumps(server.log.pop()))
    edit["verb"] = "patch"
    edit["objectRef"].pop("resourceVersion", None)
    server.log += [asked, again, edit]
    history = follow(server, managed_fields=True)
    assert "leaseDurationSeconds" not in history.requests.rewritten.found


def patch_renewals(server: FakeServer) -> None:
    """Have a log say that every renewal was a merge patch."""
    for event in server.log:
        if event["verb"] == "update":
            event["verb"] = "patch"
            event["objectRef"].pop("resourceVersion", None)


@pytest.mark.parametrize("managed_fields", [True, False], ids=["with its stamps", "without stamps"])
def test_a_patch_made_the_state_that_has_the_renew_time_that_it_asked_for(managed_fields: bool) -> None:
    server = lead()
    patch_renewals(server)
    history = follow(server, managed_fields=managed_fields)
    (tenure,) = history.tenures
    assert list_datings(history) == {Dating.LOG}
    assert ([one.pod for one in tenure.processes.writers], tenure.processes.renewals) == (["db-0"], 10)


def test_a_patch_did_not_make_a_state_that_another_one_replaced_a_minute_before() -> None:
    server = lead()
    patch_renewals(server)
    answer_a_minute_later(server.log[3])
    last = follow(server).renewals.last
    assert last is not None
    assert last < parse(server.log[3]["stageTimestamp"])


def test_a_webhook_that_changes_the_holder_is_known_by_what_a_log_shows_that_was_asked() -> None:
    server = lead()
    for event in server.log:
        event["annotations"] = {"mutation.webhook.admission.k8s.io/round_0_index_0": '{"webhook":"a","mutated":true}'}
        event["requestObject"] = json.loads(json.dumps(event["responseObject"]))
        event["requestObject"]["spec"]["holderIdentity"] = "db-0.cluster-a"
    histories, watch = ClusterHistory(), server.watch(managed_fields=False)
    for event in server.log:
        event["responseObject"] = {}
    observe_all(histories, read("watch", [watch]), read("log", [server.audit_log()]))
    (tenure,) = histories.leases["shop", "db"].tenures
    assert (tenure.holder, tenure.asked_holder) == ("db-0_1", "db-0.cluster-a")


def test_a_second_creation_is_no_renewal_of_what_was_created_before() -> None:
    server = lead()
    server.log[5]["verb"] = "create"
    tenures = follow(server, managed_fields=True).tenures
    assert [one.began for one in tenures] == [Handover.CREATED, Handover.DELETED]


def test_what_was_asked_is_compared_with_no_state_that_a_request_did_not_replace() -> None:
    server = lead()
    event = server.log[4]
    event["annotations"] = {"mutation.webhook.admission.k8s.io/round_0_index_0": '{"webhook":"a","mutated":true}'}
    event["requestObject"] = json.loads(json.dumps(event["responseObject"]))
    event["requestObject"]["spec"]["leaseDurationSeconds"] = 99
    event["objectRef"]["resourceVersion"] = "1"
    history = follow(server, managed_fields=True)
    assert history.requests.rewritten.found == {}


def test_a_lease_that_was_created_unseen_was_not_made_by_the_first_write_that_is_shown() -> None:
    server = FakeServer()
    elector = server.elector("db-0", "shop/db")
    elector.lead(4)
    server.delete("shop/db")
    server.wait(1)
    elector.lead(4)
    for event in server.log:
        if event["verb"] == "create" and event is not server.log[0]:
            event.pop("responseObject")
            event["level"] = "Metadata"
    histories = ClusterHistory()
    observe_all(histories, read("log", [server.audit_log()]))
    assert histories.leases["shop", "db"].tenures[-1].beginning.is_unseen


def renew_without_change(server: FakeServer, *, writer: str = "") -> None:
    """Have a holder send its last state again, which stores nothing, and then renew; a log has what was sent."""
    elector = server.elector("db-0", "shop/db")
    elector.lead(10)
    again = copy.deepcopy(server.log[-1])
    again["objectRef"]["resourceVersion"] = again["responseObject"]["metadata"]["resourceVersion"]
    server.wait(0.01)
    again["requestReceivedTimestamp"] = again["stageTimestamp"] = format_micro_time(server.now)
    if writer:
        again["user"]["username"] = writer
    server.log.append(again)
    server.wait(2)
    elector.renew()
    for event in hide_responses(server).log:
        event["user"]["extra"] = {"authentication.kubernetes.io/pod-uid": ["00000000-0000-4000-8000-000000000001"]}


@pytest.mark.parametrize(("writer", "is_renewed"), [("", True), ("other", False)], ids=["one process", "two"])
def test_of_updates_by_one_process_that_name_one_state_the_last_may_have_changed_it(
    writer: str, is_renewed: bool
) -> None:
    server = FakeServer()
    renew_without_change(server, writer=writer)
    histories = ClusterHistory()
    observe_all(histories, read("log", [server.audit_log()]))
    (tenure,) = histories.leases["shop", "db"].tenures
    assert (tenure.last_renewal >= server.now - 10_000) is is_renewed
