"""Requests of a log at level Request, joined with the states of a watch without managedFields that they made."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.history.fake_server import FakeServer, hide_responses, together
from tests.history.observing import observe_all
from tests.inputs.reading import read
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.tenure import Handover
from webhook.analysis.history.write import Dating


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
    assert tenure.renewed
    return {tenure.taken.dating, tenure.renewed.dating}


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


def send_a_patch(event: dict[str, Any]) -> None:
    event["verb"] = "patch"


def answer_a_minute_later(event: dict[str, Any]) -> None:
    event["requestReceivedTimestamp"] = event["stageTimestamp"] = "2026-11-18T12:00:00.000000Z"


@pytest.mark.parametrize(
    ("verb", "change"),
    [
        ("update", send_another_time),
        ("update", send_no_time),
        ("update", send_a_patch),
        ("create", answer_a_minute_later),
    ],
    ids=["another time", "no time", "a patch", "another creation"],
)
def test_a_state_is_not_joined_with_a_request_that_did_not_make_it(
    verb: str, change: Callable[[dict[str, Any]], None]
) -> None:
    server = lead()
    for event in server.log:
        if event["verb"] == verb:
            change(event)
    assert Dating.WRITER_CLOCK in list_datings(follow(server))


def test_a_second_creation_is_no_renewal_of_what_was_created_before() -> None:
    server = lead()
    server.log[5]["verb"] = "create"
    tenures = follow(server, managed_fields=True).tenures
    assert [one.began for one in tenures] == [Handover.CREATED, Handover.DELETED]
