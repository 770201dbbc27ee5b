"""A log in which all clients of its leases fall silent: it goes on if an API server renews its own lease there."""

import json
from typing import Any, Final

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import Elector, FakeServer
from tests.history.observing import follow_both, follow_log
from tests.inputs.reading import read
from tests.timeline.test_truth import read_log
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.inputs.items import ClockSkew
from webhook.analysis.timeline.model import SpanKind

SELF: Final = "kube-system/apiserver-x"
GOES_ON: Final = "db-0_1 has not renewed it for "
HIDDEN: Final = "db-0_1 held it at "


def shop() -> tuple[FakeServer, Elector, Elector]:
    """Return an API server that renews its own lease every 10 s, and the holder of another one, after 50 s."""
    server = FakeServer()
    api, db = server.elector("api", SELF, retry=10.0), server.elector("db-0", "shop/db")
    api.take()
    db.take()
    go_on(50, api, db)
    return server, api, db


def go_on(seconds: int, api: Elector, *others: Elector, every: int = 10) -> None:
    """Have an API server renew its lease for so long, and others theirs every two seconds."""
    for second in range(1, seconds + 1):
        api.server.wait(1)
        if second % every == 0:
            api.renew()
        for elector in others if second % 2 == 0 else ():
            elector.renew()


def explain(server: FakeServer) -> str:
    return text(account(follow_log(server), server.now))


def claims(server: FakeServer) -> dict[str, dict[str, Any]]:
    claims: list[dict[str, Any]] = make_account_json(account(follow_log(server), server.now))["claims"]
    return {one["claim"]: one for one in claims}


def test_where_only_an_api_server_goes_on_a_lease_is_expired_as_far_as_the_log_shows() -> None:
    server, api, _ = shop()
    go_on(60, api)
    output, claimed = explain(server), claims(server)
    assert output.startswith(
        "db-0_1 has not renewed it for 1 min 0 s, and no other process has tried to write it since it expired, as far "
        "as the log shows"
    )
    assert "Not shown: what another API server answered: if there are several, give the logs of all" in output
    assert claimed["expired"]["identity"] == claimed["holder"]["identity"] == "db-0_1"


def test_a_log_in_which_others_are_silent_for_one_interval_goes_on() -> None:
    server, api, _ = shop()
    go_on(20, api)
    assert explain(server).startswith(GOES_ON)


def test_a_lease_that_is_written_again_is_doubted_no_longer() -> None:
    server, api, db = shop()
    go_on(20, api)
    db.renew()
    server.wait(20)
    api.renew()
    go_on(20, api)
    assert "as far as the log shows" not in explain(server)
    assert follow_log(server).leases["shop", "db"].continuity.sparse_since is None


def test_a_log_that_lacks_a_renewal_of_an_api_server_has_a_hole() -> None:
    server, api, _ = shop()
    go_on(20, api)
    del server.log[-1]
    go_on(40, api)
    assert explain(server).startswith(HIDDEN)


def test_a_log_in_which_an_api_server_renews_late_has_a_hole() -> None:
    server, api, _ = shop()
    server.wait(16)
    go_on(60, api)
    assert explain(server).startswith(HIDDEN)


def test_an_api_server_that_restarts_does_not_show_what_others_wrote_meanwhile() -> None:
    server, api, _ = shop()
    api.identity = "api_2"
    go_on(60, api)
    assert explain(server).startswith(HIDDEN)


def test_renewals_that_are_far_apart_leave_room_for_a_hole() -> None:
    server = FakeServer()
    api, db = server.elector("api", SELF), server.elector("db-0", "shop/db")
    api.take()
    db.take()
    go_on(100, api, db, every=20)
    go_on(60, api, every=20)
    assert explain(server).startswith(HIDDEN)


def test_a_patch_does_not_say_what_it_follows() -> None:
    server, api, _ = shop()
    known = len(server.log)
    go_on(60, api)
    for event in server.log[known:]:
        event["verb"] = "patch"
        del event["objectRef"]["resourceVersion"]
    assert explain(server).startswith(HIDDEN)


@pytest.mark.parametrize("is_listed", [False, True], ids=["that the log names", "that a list names"])
def test_another_api_server_may_have_answered(is_listed: bool) -> None:
    server, api, _ = shop()
    server.elector("other", "kube-system/apiserver-y").take()
    go_on(10, api)
    listed = server.dump()
    if is_listed:
        server.log = [one for one in server.log if one["objectRef"]["name"] != "apiserver-y"]
    go_on(60, api)
    histories = ClusterHistory()
    for item in [*(read("list", [listed]) if is_listed else ()), *read("log", [server.audit_log()])]:
        histories.add(item)
    assert text(account(histories, server.now)).startswith(HIDDEN)


def test_an_api_server_whose_lease_was_deleted_answers_no_one() -> None:
    server, api, _ = shop()
    server.elector("other", "kube-system/apiserver-y").take()
    server.delete("kube-system/apiserver-y")
    go_on(60, api)
    assert explain(server).startswith(GOES_ON)


def test_logs_of_two_api_servers_go_on_together() -> None:
    server = FakeServer()
    api, other = server.elector("api", SELF), server.elector("other", "kube-system/apiserver-y")
    db = server.elector("db-0", "shop/db")
    for elector in (api, other, db):
        elector.take()
    for number in range(11):
        go_on(10, api, *([db] if number < 5 else []))
        other.renew()
    assert explain(server).startswith(GOES_ON)


@pytest.mark.parametrize("seconds", [1, 12], ids=["before the API server renews again", "after that"])
def test_a_write_that_follows_a_missing_one_shows_that_it_was_a_hole(seconds: int) -> None:
    server, api, db = shop()
    mail = server.elector("mail-0", "shop/mail")
    mail.take()
    go_on(20, api, db, mail)
    since = server.now
    server.wait(8)
    known = len(server.log)
    mail.renew()
    del server.log[known:]
    server.wait(2)
    if seconds > 10:
        api.renew()
    server.wait(seconds)
    mail.renew()
    if seconds < 10:
        api.renew()
    go_on(40, api, mail)
    histories = follow_log(server)
    assert text(account(histories, server.now)).startswith(HIDDEN)
    assert histories.leases["shop", "db"].hidden_since == since
    assert histories.bounds.has_hole(since, since + 1)


def test_what_was_no_hole_stays_none_where_a_later_one_is_found() -> None:
    server, api, _ = shop()
    go_on(30, api)
    server.wait(30)
    go_on(30, api)
    assert explain(server).startswith(HIDDEN)


def test_by_clocks_that_differ_a_log_does_not_show_that_it_went_on() -> None:
    server, api, _ = shop()
    go_on(60, api)
    histories = ClusterHistory()
    for item in [ClockSkew(20_000_000, is_within=True), *read("log", [server.audit_log()])]:
        histories.add(item)
    assert text(account(histories, server.now)).startswith(HIDDEN)


def test_a_store_that_was_put_back_hides_what_a_sparse_log_shows() -> None:
    server, api, _ = shop()
    go_on(60, api)
    histories = follow_log(server)
    history = histories.leases["shop", "db"]
    history.mark_store_restored(server.now)
    assert history.hidden_since == server.now


def test_a_patch_of_a_lease_in_a_sparse_log_changes_the_known_state() -> None:
    server, api, _ = shop()
    go_on(20, api)
    spec = {**server.leases["shop/db"]["spec"], "leaseTransitions": 7}
    server.write("shop/db", spec, "kubectl-patch", "alice", "")
    server.log[-1] = json.loads(json.dumps({**server.log[-1], "verb": "patch"}))
    assert explain(server).startswith(GOES_ON)


def test_a_page_knows_as_little_of_a_log_whose_api_server_falls_silent() -> None:
    server, api, db = shop()
    slow = server.elector("slow", "shop/slow", retry=10.0)
    slow.take()
    for _ in range(5):
        go_on(10, api, db)
        slow.renew()
    for _ in range(6):
        server.wait(10)
        slow.renew()
    assert explain(server).startswith(HIDDEN)
    lanes = {lane.name: lane for lane in read_log(server).lanes}
    assert [span.kind for span in lanes["db"].spans] == [SpanKind.HELD, SpanKind.OVERDUE, SpanKind.UNRECORDED]


def explain_both(server: FakeServer) -> str:
    return text(account(follow_both(server), server.now))


def test_beside_a_watch_who_asked_for_a_lease_is_said_as_far_as_the_log_shows() -> None:
    server, api, _ = shop()
    go_on(60, api)
    assert explain_both(server).startswith(
        "db-0_1 has not renewed it for 1 min 0 s, and no other process has tried to write it since it expired, as far "
        "as the log shows"
    )


def test_a_renewal_that_replaces_what_a_watch_alone_shows_does_not_show_that_the_log_went_on() -> None:
    server, api, _ = shop()
    go_on(60, api)
    # Another API server answered each second renewal, and its log is missing.
    own = [event for event in server.log if event["objectRef"]["name"] == "apiserver-x"]
    server.log = [event for event in server.log if event not in own[1::2]]
    assert "no other process has tried to write it" not in explain_both(server)
