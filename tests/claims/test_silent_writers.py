"""Writers that had fallen silent, by their own rhythm, before a log ended that does not show their lease.

Source: the recorded incident of an agent that moved to another hub, whose lease stayed behind.
"""

import pytest

from tests.claims.accounts import account, text
from tests.claims.test_nameless_heartbeats import AGENT, beat
from tests.history.fake_server import SECOND, FakeServer, together
from tests.history.observing import LEASE, View, follow_both, follow_log, follow_metadata, follow_watch, observe_all
from tests.inputs.reading import read
from webhook.analysis.history.follow import ClusterHistory

SILENT = (
    "Silent: since 11:07:10Z: the log, which ends at 11:08:00Z, has no request for it by its writer in these 50 s; "
    "before, one came every 10 s"
)


def fall_silent(times: int = 4, seconds: int = 40) -> FakeServer:
    """An agent renews its heartbeat every 10 s, and then no more, while another lease is renewed on."""
    server = FakeServer()
    beat(server, times)
    together(seconds, server.elector("mail-0", "shop/mail"))
    return server


def say(server: FakeServer, follow: View = follow_metadata) -> str:
    return text(account(follow(server), server.now))


@pytest.mark.parametrize("follow", [follow_metadata, follow_log, follow_both], ids=["requests", "log", "both"])
def test_since_when_its_writer_is_silent_and_when_the_log_ends_is_said(follow: View) -> None:
    assert SILENT in say(fall_silent(), follow)


def test_a_log_may_end_long_before_a_watch_does() -> None:
    server = fall_silent()
    log = server.audit_log(metadata_only=True)
    server.elector("mail-0", "shop/mail").lead(60)
    histories = ClusterHistory()
    observe_all(histories, read("watch", [server.watch()]), read("log", [log]))
    assert SILENT in text(account(histories, server.now))


def test_a_read_before_a_write_is_none_of_its_rhythm() -> None:
    server = FakeServer()
    agent = server.elector("db-0", "shop/db", user=AGENT, pod="")
    for _ in range(4):
        if agent.lease in server.leases:
            agent.ask()
        server.wait(0.01)
        beat(server)
    together(40, server.elector("mail-0", "shop/mail"))
    assert "before, one came every 10 s" in say(server)


@pytest.mark.parametrize(
    ("server", "follow"),
    [
        (fall_silent(times=2), follow_metadata),
        (fall_silent(seconds=18), follow_metadata),
        (fall_silent(), follow_watch),
    ],
    ids=["too few writes to know a rhythm", "two writes missed", "a watch shows no requests"],
)
def test_nothing_is_said_of_who_need_not_be_silent(server: FakeServer, follow: View) -> None:
    assert "Silent:" not in say(server, follow)


def test_of_a_holder_that_is_shown_something_else_says_it() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(20)
    together(40, server.elector("mail-0", "shop/mail"))
    assert "Silent:" not in say(server, follow_log)
    assert "Silent:" in say(server, follow_metadata)


def test_a_lease_that_nobody_wrote_has_no_writer() -> None:
    server = fall_silent()
    server.elector("db-0", "shop/other").take()
    histories = follow_metadata(server)
    histories.leases[LEASE].succession.tenures.clear()
    assert "Silent:" not in text(account(histories, server.now))


@pytest.mark.parametrize("doubt", ["skew", "leaky"])
def test_what_a_log_may_lack_is_no_silence(doubt: str) -> None:
    server = fall_silent()
    histories = follow_metadata(server)
    if doubt == "skew":
        histories.bounds.skew = 2 * SECOND
    else:
        histories.bounds.is_log_leaky = True
    assert "Silent:" not in text(account(histories, server.now))
