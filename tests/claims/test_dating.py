"""Renewals that a state does not date: stamps that others moved, and clocks that differ."""

import copy
import json

import pytest

from tests.claims.accounts import account, text
from tests.claims.test_identities import claims
from tests.factories import Document
from tests.history.fake_server import SECOND, Elector, FakeServer, strip_stamps, together
from tests.history.observing import LEASE, cluster_of, follow_log, follow_watch
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.claims.words import format_clock
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.renewals import Renewals
from webhook.analysis.history.status import LeaseState
from webhook.kubernetes.times import format_time


def shop(seconds: float = 20) -> tuple[FakeServer, Elector]:
    """`shop/db`, led by a clock that is right, beside another lease."""
    server = FakeServer()
    db, mail = server.elector("db-0", "shop/db"), server.elector("mail-0", "shop/mail")
    together(seconds, db, mail)
    return server, db


def date(server: FakeServer, by: float) -> None:
    """Have mallory label the lease, and send managedFields that date its renewal so many seconds from now."""
    document = copy.deepcopy(server.leases["shop/db"])
    metadata = document["metadata"]
    server.revision += 1
    before = metadata["resourceVersion"]
    metadata |= {"resourceVersion": str(server.revision), "labels": {"seen": str(server.now)}}
    own = metadata["managedFields"][0]
    own["time"] = format_time(server.now + int(by * SECOND))
    labels: Document = {"f:metadata": {"f:labels": {"f:seen": {}}}, "f:spec": {}}
    metadata["managedFields"] = [
        own,
        own | {"manager": "mallory", "time": format_time(server.now), "fieldsV1": labels},
    ]
    server.leases["shop/db"] = document
    server.events.append((server.now, "MODIFIED", document))
    server.log_request("shop/db", "update", "mallory", "", document)
    server.log[-1]["objectRef"]["resourceVersion"] = before


def late_watch(server: FakeServer, begins: int) -> ClusterHistory:
    """A watch that begins with what was stored after so many events."""
    states = {f"{one['metadata']['namespace']}/{one['metadata']['name']}": one for _, _, one in server.events[:begins]}
    events = [("ADDED", one) for one in states.values()] + [(kind, one) for _, kind, one in server.events[begins:]]
    return cluster_of(b"".join(json.dumps({"type": kind, "object": one}).encode() + b"\n" for kind, one in events))


def test_a_renewal_that_was_dated_back_after_it_was_seen_keeps_its_time() -> None:
    server, _ = shop()
    server.wait(1)
    date(server, -30)
    for cluster in (follow_watch(server), follow_log(server)):
        (live,) = claims(cluster, server, "expires")
        assert live["from"].endswith("11:07:16.000000Z")
        assert claims(cluster, server, "expired") == []


@pytest.mark.parametrize("waits", [0, 60], ids=["expires", "expired"])
def test_one_time_of_expiry_is_printed_everywhere(waits: int) -> None:
    server, _ = shop()
    server.wait(waits)
    for cluster in (follow_watch(server), cluster_of(server.dump())):
        cluster.bounds.extend_to(server.now)
        shown = account(cluster, server.now)
        assert shown.takeable_at is not None
        (said,) = (
            one["text"]
            for kind, words in (("expires", "it expires at"), ("expired", "the lease has expired, since"))
            for one in claims(cluster, server, kind)
            if words in one["text"]
        )
        time = format_clock(shown.takeable_at, server.now)
        assert f" {time}" in said
        assert f" {time}" in text(shown)


def test_a_list_does_not_show_which_of_two_times_is_that_of_the_last_renewal() -> None:
    server, _ = shop()
    server.wait(1)
    date(server, -30)
    cluster = cluster_of(server.dump())
    output = text(account(cluster, server.now))
    assert "whether it is renewed is not known: renewTime and its stamp differ" in output
    assert claims(cluster, server, "expired") == []
    server.wait(30)
    assert claims(cluster, server, "expired") != []


def test_a_list_does_not_show_which_of_two_times_is_true_of_a_holder_whose_clock_is_behind() -> None:
    """By both times the lease has expired, and yet it is live."""
    server = FakeServer()
    server.elector("db-0", "shop/db", ahead=-60).lead(10)
    server.wait(1)
    date(server, -30)
    cluster = cluster_of(server.dump())
    assert claims(cluster, server, "expired") == []
    server.wait(30)
    assert claims(cluster, server, "expired") != []


def test_a_holder_that_was_put_there_keeps_the_time_of_that_write() -> None:
    """As a restored copy does, whose renewTime is old and whose stamp is dated back."""
    server, _ = shop()
    restored = {**server.leases["shop/db"]["spec"], "holderIdentity": "db-9_1"}
    server.write("shop/db", {**restored, "renewTime": "2026-11-17T00:00:00.000000Z"}, "velero", "velero", "")
    server.wait(1)
    date(server, -30)
    clusters = (follow_watch(server), follow_log(server))
    assert [claims(cluster, server, "expired") for cluster in clusters] == [[], []]
    server.wait(30)
    assert all(claims(cluster, server, "expired") for cluster in clusters)


def test_a_clock_that_is_ahead_does_not_keep_a_lease_that_no_one_else_wrote() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db", ahead=60).lead(10)
    server.wait(20)
    cluster = cluster_of(server.dump())

    assert [one["claim"] for one in claims(cluster, server, "expired")] == ["expired", "expired"]


def test_no_silence_begins_with_a_state_that_was_dated_back() -> None:
    server, db = shop()
    server.wait(1)
    date(server, -30)
    begins = len(server.events)
    db.lead(20)
    cluster = late_watch(server, begins)
    assert claims(cluster, server, "renewal-late") == []
    assert "renewed 0 s ago" in text(account(cluster, server.now))


def test_no_silence_of_a_holder_begins_before_it_was_written_in() -> None:
    server, db = shop()
    server.wait(12)
    server.write("shop/db", {**server.leases["shop/db"]["spec"], "holderIdentity": "db-1_1"}, "argocd", "argocd", "")
    begins, logged = len(server.events), len(server.log)
    server.wait(4)
    elector = server.elector("db-1", "shop/db")
    elector.renew()
    elector.lead(20)
    assert claims(late_watch(server, begins), server, "renewal-late") == []
    server.log = server.log[logged - 1 :]
    assert claims(follow_log(server), server, "renewal-late") == []
    assert db.identity not in text(account(follow_log(server), server.now))


def test_a_list_does_not_date_a_renewal_by_a_stamp_that_another_write_may_have_moved() -> None:
    server, _ = shop()
    assert len(claims(cluster_of(server.dump()), server, "last-renewed")) == 1
    date(server, 0)
    assert claims(cluster_of(server.dump()), server, "last-renewed") == []


def test_the_first_renewal_after_a_forgotten_one_is_no_silence() -> None:
    renewals = Renewals()
    renewals.restart(0)
    renewals.forget()
    assert renewals.add(90 * SECOND, 15) is None
    assert (renewals.last, renewals.longest, renewals.count) == (90 * SECOND, 0, 1)


def deleted_at(server: FakeServer, seconds: float) -> None:
    """Delete the lease, as an API server logs it whose clock differs by so much."""
    server.delete("shop/db")
    entry = server.log.pop()
    at = format_time(server.now + int(seconds * SECOND))[:-1]
    entry["requestReceivedTimestamp"], entry["stageTimestamp"] = f"{at}.000000Z", f"{at}.004000Z"
    server.log.append(entry)
    server.log.sort(key=lambda event: event["stageTimestamp"])


def created_again(server: FakeServer, db: Elector) -> ClusterHistory:
    server.wait(2)
    db.lead(10)
    return follow_log(server)


def test_a_deletion_that_a_slower_clock_logged_follows_what_it_deleted() -> None:
    server, db = shop()
    server.wait(0.5)
    deleted_at(server, -1)
    db.ask()
    (claim,) = claims(created_again(server, db), server, "lease-deleted")
    assert claim["by"]["user"] == "admin"


def test_a_deletion_long_before_other_writes_of_its_object_was_a_dry_run() -> None:
    server, db = shop()
    server.wait(0.5)
    deleted_at(server, -9)
    (claim,) = claims(created_again(server, db), server, "lease-deleted")
    assert claim["by"]["user"] == ""


def test_of_two_deletions_the_first_may_have_been_a_dry_run() -> None:
    server, db = shop()
    db.server.wait(0.5)
    lease = server.leases["shop/db"]
    deleted_at(server, -1)
    server.leases["shop/db"] = lease
    server.wait(1)
    server.delete("shop/db", "alice")
    (claim,) = claims(created_again(server, db), server, "lease-deleted")
    assert claim["by"]["user"] == "alice"


def test_a_deletion_before_the_last_writes_of_a_lease_that_is_still_there_deleted_nothing() -> None:
    server, db = shop()
    server.wait(0.5)
    lease = server.leases["shop/db"]
    deleted_at(server, -1)
    server.leases["shop/db"] = lease
    db.lead(0)
    assert claims(follow_log(server), server, "lease-deleted") == []


def test_of_a_stamp_that_is_after_the_moment_only_the_writer_s_clock_counts() -> None:
    server, _ = shop()
    cluster = cluster_of(server.dump())
    early = make_account_json(account(cluster, server.now - 120 * SECOND))["claims"]
    (claim,) = (one for one in early if one["claim"] == "last-renewed")
    assert claim["how"] == "writer-clock"
    assert claim["earliest"] == claim["latest"]


def test_a_stamped_list_that_is_read_without_a_policy_dates_nothing() -> None:
    server, _ = shop()
    document = server.leases["shop/db"]
    constant = {"manager": "lease-webhook-stamp", "time": "2000-01-01T00:00:00Z", "fieldsV1": {}}
    document["metadata"]["managedFields"] = [document["metadata"]["managedFields"][0] | constant]
    server.wait(60)
    assert "--policy FILE says which stamps to believe" in text(account(cluster_of(server.dump()), server.now))


def test_how_long_a_state_had_not_been_renewed_is_counted_from_the_second_of_its_stamp() -> None:
    """Its holder's clock is ahead by less: the first write that a log shows came before its renewTime."""
    server = FakeServer()
    db, other = server.elector("db-0", "shop/db", ahead=0.4), server.elector("db-1", "shop/db")
    db.lead(10)
    server.log = server.log[-1:]
    server.wait(20)
    other.lead(4)
    (taken,) = claims(follow_log(server), server, "taken")
    assert taken["how"] == "after-expiry"
    assert 20 <= taken["seconds"] <= 21


def test_between_a_writer_s_clock_and_that_of_an_api_server_there_is_no_silence() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db", ahead=-90.0)
    db.lead(20)
    for at, (when, kind, lease) in enumerate(server.events):
        server.events[at] = (when, kind, strip_stamps(lease))
    db.lead(10)
    history = follow_watch(server).leases[LEASE]
    assert history.renewals.longest < 3 * SECOND
    assert "renewal-late" not in {one.check for one in account(follow_watch(server), server.now).findings}


def test_an_edit_is_dated_by_its_own_stamp_and_not_by_one_that_was_dated_ahead_before() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(10)
    date(server, by=30)
    server.wait(4)
    spec = {**server.leases["shop/db"]["spec"], "preferredHolder": "db-1"}
    server.write("shop/db", spec, "kubectl", "alice", "")
    history = follow_watch(server).leases[LEASE]
    assert history.moment // SECOND == server.now // SECOND


def test_a_renewal_with_which_a_log_begins_was_not_made_after_it_was_answered() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db", ahead=0.2)
    db.lead(10)
    del server.log[:-1]
    (tenure,) = follow_log(server).leases[LEASE].tenures
    assert tenure.last_renewal == server.now


def test_who_wrote_a_lease_with_another_renew_time_than_now_is_not_known_to_have_renewed_it() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db", ahead=-7200.0).lead(10)
    server.log = json.loads(json.dumps(server.log[-1:]))
    del server.log[0]["responseObject"]["metadata"]["managedFields"]
    assert make_account_json(account(follow_log(server), server.now))["last_renewal_by"] is None


def test_a_first_state_whose_renewal_is_dated_back_may_be_live_until_its_latest_stamp() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(10)
    date(server, by=-30)
    del server.events[:-1]
    (tenure,) = follow_watch(server).leases[LEASE].tenures
    assert tenure.last_extension.latest == server.now + SECOND


def test_a_lease_lasts_from_when_a_log_has_its_renewal_and_not_from_the_fraction_of_the_holders_clock() -> None:
    """Both are of one second."""
    server = FakeServer()
    server.wait(0.9)
    db = server.elector("db-0", "shop/db", ahead=-0.6)
    db.lead(20)
    server.wait(14.7)
    server.elector("mail-0", "shop/mail").take()
    answer = account(follow_log(server), server.now)
    assert (answer.state, answer.last_renewal) == (LeaseState.LIVE, server.now - 14_700_000)
