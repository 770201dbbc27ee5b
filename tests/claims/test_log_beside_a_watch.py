"""A watch shows writes that a log beside it does not have: the log says nothing of who was silent."""

from collections.abc import Callable

import pytest

from tests.claims.accounts import account, text
from tests.factories import Document
from tests.history.fake_server import START, FakeServer, together
from tests.history.observing import follow_both, follow_log
from webhook.analysis.claims.account import Account
from webhook.kubernetes.times import SECOND, format_micro_time

Rule = Callable[[Document, int], bool]
SILENT = "For most of that time the log has no answered request for the lease from its pod"
NOT_SHOWN = "Not shown: who made some writes, and what else was asked: the log lacks requests that another input shows"


def _is_of(event: Document, pod: str) -> bool:
    return bool(event["user"]["extra"].get("authentication.kubernetes.io/pod-name") == [pod])


def move_holder(event: Document, number: int) -> bool:
    """From 30 s on, the holder uses another API server, whose log is missing."""
    is_later = str(event["stageTimestamp"]) > format_micro_time(START + 30 * SECOND)
    return _is_of(event, "db-0") and is_later


def sample(event: Document, number: int) -> bool:
    """The collector keeps half of the lines, by chance not those that were refused."""
    return bool(number % 2 and event["objectRef"]["name"] == "db") or event["responseStatus"]["code"] >= 400


def refuse(rule: Rule | None) -> FakeServer:
    """A holder whose writes are refused after a minute; another one takes the lease."""
    server = FakeServer()
    holder, follower = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    mail = server.elector("mail-0", "shop/mail")
    holder.take()
    mail.take()
    for number in range(1, 38):
        server.wait(2)
        mail.renew()
        holder.renew() if number <= 30 else holder.fail(403, "forbidden")
        follower.ask()
    server.wait(2)
    follower.lead(20)
    kept = [event for number, event in enumerate(server.log) if rule is None or not rule(event, number)]
    server.log = kept
    return server


def explain(rule: Rule | None) -> Account:
    server = refuse(rule)
    return account(follow_both(server), server.now)


@pytest.mark.parametrize("rule", [move_holder, sample], ids=["another API server answered them", "lines are missing"])
def test_refusals_that_a_log_does_not_have_are_not_called_silence(rule: Rule) -> None:
    said = text(explain(rule))
    assert SILENT not in said
    assert "It stored no renewal (it may have ended, or been paused, cut off or refused)" in said
    assert f"{NOT_SHOWN}, from 11:0" in said


def test_where_nothing_else_is_wrong_the_logs_of_all_api_servers_are_to_be_collected() -> None:
    server = FakeServer()
    holder, mail = server.elector("db-0", "shop/db"), server.elector("mail-0", "shop/mail")
    for elector in (holder, mail):
        elector.take()
    together(60, holder, mail)
    server.log = [event for number, event in enumerate(server.log) if not move_holder(event, number)]
    said = text(account(follow_both(server), server.now))
    assert f"{NOT_SHOWN}, from 11:07:12Z to 11:07:40Z" in said
    assert said.endswith(
        "ADVICE It is held and renewed, and the log lacks requests for it. "
        "Collect the logs of all API servers, and compare their audit policies; if a buffer overflowed, "
        "apiserver_audit_error_total counts what was dropped."
    )


def test_a_log_that_has_what_the_watch_shows_names_the_refusal() -> None:
    said = text(explain(None))
    assert "The writes of db-0_1 were refused: 7 writes answered with 403" in said
    assert "Not shown" not in said


def test_a_watch_that_goes_on_after_a_log_says_nothing_of_what_the_log_had() -> None:
    server = FakeServer()
    first, second, mail = (server.elector(f"{name}-0", f"shop/{name}") for name in ("db", "second", "mail"))
    second.lease = "shop/db"
    first.take()
    mail.take()
    for _ in range(30):
        server.wait(2)
        first.renew()
        mail.renew()
    for _ in range(9):
        server.wait(2)
        mail.renew()
    second.take()
    end = len(server.log)
    for _ in range(10):
        server.wait(2)
        second.renew()
    server.log = server.log[:end]
    found = account(follow_both(server), server.now)
    assert NOT_SHOWN not in text(found)


def test_no_candidate_is_missed_in_a_log_that_lacks_requests() -> None:
    server = FakeServer()
    holder, mail = server.elector("db-0", "shop/db"), server.elector("mail-0", "shop/mail")
    holder.take()
    mail.take()
    for number in range(60):
        server.wait(2)
        mail.renew()
        if number < 30:
            holder.renew()
    assert "no other process has tried to write it" in text(account(follow_log(server), server.now))
    server.log = [event for number, event in enumerate(server.log) if not move_holder(event, number)]
    said = text(account(follow_both(server), server.now))
    assert "no other process" not in said
    assert NOT_SHOWN in said


def test_a_single_write_that_the_log_lacks_has_one_time() -> None:
    server = FakeServer()
    holder, mail = server.elector("db-0", "shop/db"), server.elector("mail-0", "shop/mail")
    for elector in (holder, mail):
        elector.take()
    together(60, holder, mail)
    lost = [event for event in server.log if event["objectRef"]["name"] == "db"][15]
    server.log.remove(lost)
    assert f"{NOT_SHOWN}, at 11:07:10Z" in text(account(follow_both(server), server.now))


def test_without_renewals_a_lease_was_gone_from_its_deletion_to_its_creation() -> None:
    server = FakeServer()
    first, second = (server.elector(f"db-{number}", "shop/db") for number in range(2))
    server.write("shop/db", {"holderIdentity": first.identity}, "operator", first.user, first.pod)
    server.wait(30)
    server.delete("shop/db")
    server.wait(2.5)
    server.write("shop/db", {"holderIdentity": second.identity}, "operator", second.user, second.pod)
    assert "db-1_1 created it again 2.5 s later" in text(account(follow_both(server), server.now))
