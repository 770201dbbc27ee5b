"""Logs that show some writes with what they stored, and others without: by their level, or of two API servers."""

import pytest

from tests.claims.accounts import account, text
from tests.factories import Document
from tests.history.fake_server import Elector, FakeServer
from tests.history.observing import View, follow_both, follow_log, merge_inputs
from tests.inputs.reading import read
from webhook.analysis.claims.account import Account
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.status import LeaseState


def hide(event: Document) -> None:
    """Have a log show an event at level Metadata."""
    event["level"] = "Metadata"
    event.pop("responseObject", None)


def elect(*, user: str = "") -> tuple[FakeServer, Elector, Elector]:
    server = FakeServer()
    users = {"user": user, "pod": ""} if user else {}
    return server, server.elector("db-0", "shop/db", **users), server.elector("db-1", "shop/db", **users)


def explain(server: FakeServer, view: View = follow_log) -> Account:
    return account(view(server), server.now)


def hand_over() -> FakeServer:
    """A holder releases the lease, which the log does not show, and another one takes it at once."""
    server, first, second = elect()
    first.lead(20)
    server.wait(1)
    first.release()
    hide(server.log[-1])
    server.wait(0.1)
    second.lead(20)
    return server


def test_the_last_write_of_a_holder_that_a_log_hides_may_have_been_its_release() -> None:
    said = text(explain(hand_over()))
    assert "lease-stolen" not in said
    assert "the input does not show what all writes from then until 11:07:01Z changed" in said
    assert "db-1_1 came to hold it after db-0_1, at a time that was not recorded" in said


def test_where_a_watch_shows_it_as_well_it_was_a_release() -> None:
    said = text(explain(hand_over(), follow_both))
    assert "db-0_1 released it" in said
    assert "db-1_1 took it" in said


def test_the_last_write_of_a_holder_that_the_log_of_another_api_server_hides_may_have_been_its_release() -> None:
    server = hand_over()
    hidden = FakeServer(log=[one for one in server.log if one["level"] == "Metadata"])
    server.log = [one for one in server.log if one["level"] != "Metadata"]
    histories = ClusterHistory()
    for item in merge_inputs(read("1.log", [server.audit_log()]), read("2.log", [hidden.audit_log()])):
        histories.add(item)
    assert "lease-stolen" not in text(account(histories, server.now))


def test_a_theft_is_one_if_the_log_shows_what_the_holder_wrote_last() -> None:
    server, first, second = elect()
    first.lead(20)
    for event in server.log[5:-1]:
        hide(event)
    server.wait(1)
    second.lead(20)
    assert "lease-stolen" in text(explain(server))


@pytest.mark.parametrize("seconds", [12, 60, 300], ids=str)
def test_renewals_that_a_log_hides_are_renewals(seconds: int) -> None:
    server, first, _ = elect()
    first.lead(seconds)
    for event in server.log[1:]:
        hide(event)
    found = explain(server)
    assert found.state is LeaseState.LIVE
    assert found.last_renewal == server.now
    assert found.history.renewals.usual == 2_000_000
    assert {one.check for one in found.findings} == {"timing-tight"}


def test_a_holder_that_comes_back_behind_the_hidden_writes_of_another_need_not_have_held_it_meanwhile() -> None:
    server, first, second = elect()
    first.lead(20)
    server.wait(16)
    second.lead(20)
    server.wait(16)
    first.lead(20)
    for event in server.log[1:]:
        hide(event)
    said = text(explain(server))
    assert "db-0_1 held it at" in said
    assert "and the log may lack what was written to it since" in said


def test_a_holder_that_goes_on_behind_the_hidden_write_of_another_holds_it() -> None:
    server, first, _ = elect()
    first.lead(20)
    server.write("shop/db", server.leases["shop/db"]["spec"], "label", "labeler", "")
    hide(server.log[-1])
    first.lead(20)
    for event in server.log[-10:]:
        hide(event)
    assert explain(server).state is LeaseState.LIVE


def test_users_without_pods_who_look_alike_are_not_accused_for_a_write_that_is_hidden() -> None:
    server, first, second = elect(user="kube-vip")
    first.lead(20)
    first.release()
    hide(server.log[-1])
    second.lead(20)
    assert "lease-stolen" not in text(explain(server))
