"""A writer that renews in a holder's name, or edits its lease, is not a second application that shares it."""

from typing import Any

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer
from tests.history.observing import View, cluster_of, follow_both, follow_log, follow_watch
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.facts import find_claims
from webhook.analysis.claims.findings.headline import make_headline
from webhook.analysis.claims.presentation.urgency import advise_with_urgency
from webhook.findings import Severity
from webhook.kubernetes.times import format_micro_time

SHIPPER = "system:serviceaccount:logging:shipper"
VIEWS = pytest.mark.parametrize("follow", [follow_watch, follow_log, follow_both])


def patch(server: FakeServer, manager: str = "curl", **changes: Any) -> None:
    """Write a field of shop/db beside its holder, from no pod."""
    server.write("shop/db", {**server.leases["shop/db"]["spec"], **changes}, manager, SHIPPER, "")


def kept_alive_by_a_stranger(*, until_taken: bool = True) -> FakeServer:
    """The holder dies; a stranger renews in its name for a minute; then another replica takes the lease."""
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(40)
    for _ in range(10):
        server.wait(6)
        patch(server, renewTime=format_micro_time(server.now - 3000))
    if until_taken:
        server.wait(18)
        server.elector("db-1", "shop/db").lead(20)
    return server


@VIEWS
def test_who_renewed_in_the_name_of_a_dead_holder_shares_no_lease(follow: View) -> None:
    server = kept_alive_by_a_stranger()
    assert "lease-shared" not in {one.check for one in account(follow(server), server.now).findings}


def test_a_log_names_it_as_one_who_writes_in_the_name_of_another() -> None:
    server = kept_alive_by_a_stranger()
    assert "identity-shared" in {one.check for one in account(follow_log(server), server.now).findings}


def test_a_log_that_begins_after_the_death_makes_it_no_application_either() -> None:
    server = kept_alive_by_a_stranger()
    del server.log[:22]
    assert "lease-shared" not in {one.check for one in account(follow_log(server), server.now).findings}


def test_a_watch_does_not_say_that_the_holder_made_the_last_renewal() -> None:
    server = kept_alive_by_a_stranger()
    said = text(account(follow_watch(server), server.now))
    assert "the lease expired, 15 s after the last renewal by db-0_1, or by someone writing in its name" in said
    assert "db-1_1 took it once it had expired with db-0_1 in it" in said
    assert "let it expire" not in said


def test_a_list_during_that_shows_no_second_application() -> None:
    server = kept_alive_by_a_stranger(until_taken=False)
    server.wait(2)
    assert "lease-shared" not in {one.check for one in account(cluster_of(server.dump()), server.now).findings}


def test_a_list_after_a_takeover_shows_what_an_earlier_application_left() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db", manager="old").lead(10)
    server.wait(20)
    server.elector("db-1", "shop/db", manager="new").lead(10)
    found = account(cluster_of(server.dump()), server.now)
    assert [one.message for one in found.findings if one.check == "lease-shared"] == [
        'at least 2 programs have written this lease: "new", "old"'
    ]


def roll_out(old: str, new: str, *, waits: bool = False) -> FakeServer:
    """A holder that releases the lease, and one of another program, which takes it, for a while or for good."""
    server = FakeServer()
    before = server.elector(old, "shop/db", manager="db")
    before.lead(20)
    before.release()
    server.wait(4)
    after = server.elector(new, "shop/db", manager="db-rs")
    after.lead(20)
    if waits:
        after.release()
        server.wait(4)
        before.lead(20)
    return server


@pytest.mark.parametrize(
    ("old", "new", "waits", "severity"),
    [
        ("db-7cc86ff48c-g8ftf", "db-964cf9d45-4xjnl", False, Severity.INFO),
        ("db-7cc86ff48c-g8ftf", "db-964cf9d45-4xjnl", True, Severity.WARNING),
        ("db-7cc86ff48c-g8ftf", "queue-964cf9d45-4xjnl", False, Severity.WARNING),
        ("db-0", "db-1", False, Severity.WARNING),
    ],
    ids=["one Deployment", "in turns", "two Deployments", "names without a Deployment"],
)
def test_a_watch_of_a_rollout_shows_a_new_version_and_no_second_application(
    old: str, new: str, *, waits: bool, severity: Severity
) -> None:
    server = roll_out(old, new, waits=waits)
    found = account(follow_watch(server), server.now)
    (shared,) = (one for one in found.findings if one.check == "lease-shared")
    assert shared.severity is severity
    assert ("by the names of its holders, pods of Deployment db" in shared.message) is (severity is Severity.INFO)


def test_the_names_of_holders_say_nothing_of_two_users() -> None:
    server = roll_out("db-7cc86ff48c-g8ftf", "db-964cf9d45-4xjnl")
    server.elector("db-964cf9d45-6bzwg", "shop/db", user="system:serviceaccount:shop:queue").lead(20)
    (shared,) = (one for one in account(follow_log(server), server.now).findings if one.check == "lease-shared")
    assert shared.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("retry", "has_followed", "words"),
    [
        (5, True, "typically every 5 s by the present holder, every 2 s by the one before; longest gap"),
        (2, True, "typically every 2 s; longest gap"),
        (5, False, "typically every 2 s; longest gap"),
    ],
    ids=["another rhythm", "the same rhythm", "one holder"],
)
def test_a_holder_that_renews_in_a_rhythm_of_its_own_is_not_late(
    retry: float, words: str, *, has_followed: bool
) -> None:
    server = FakeServer()
    before = server.elector("db-0", "shop/db")
    before.lead(60)
    after = before
    if has_followed:
        before.release()
        after = server.elector("db-1", "shop/db")
    after.retry = retry
    after.lead(40)
    assert f"Renewals: {words}" in text(account(follow_log(server), server.now))


def frozen(*, silent: bool = True) -> FakeServer:
    """A stranger sets leaseTransitions to the greatest number; after a while the holder stops."""
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.lead(20)
    patch(server, leaseTransitions=2**31 - 1)
    db.lead(20)
    if silent:
        server.wait(30)
    else:
        server.delete_pod("db-0")
    return server


@VIEWS
def test_who_set_the_count_to_the_greatest_number_shares_no_lease(follow: View) -> None:
    server = frozen()
    checks = {one.check for one in account(follow(server), server.now).findings}
    assert "transitions-jump" in checks
    assert "lease-shared" not in checks


@VIEWS
def test_a_frozen_lease_that_no_one_renews_is_kept_by_no_one(follow: View) -> None:
    server = frozen()
    found = account(follow(server), server.now)
    headline = make_headline(found)
    assert headline.startswith("db-0_1 has not renewed it for 30 s, and no one can take it until it is repaired: ")
    assert advise_with_urgency(found).sentence.startswith("Act now. Repair it")


def test_a_frozen_lease_that_a_log_shows_only_in_part_may_be_renewed() -> None:
    server = frozen()
    # The log of another API server has every third renewal.
    server.log = [event for number, event in enumerate(server.log) if number % 3]
    found = account(follow_log(server), server.now)
    assert found.doubt.is_log_leaky
    assert "has not renewed it" not in make_headline(found)


def test_a_frozen_lease_whose_pod_was_deleted_is_kept_by_no_one() -> None:
    server = frozen(silent=False)
    server.wait(1)
    headline = make_headline(account(follow_log(server), server.now))
    assert headline.startswith("the pod of db-0_1 was deleted, and no one can take it until it is repaired: ")


@VIEWS
def test_a_frozen_lease_that_is_renewed_is_kept_by_its_holder(follow: View) -> None:
    server = frozen(silent=False)
    del server.log[-1]
    assert make_headline(account(follow(server), server.now)).startswith("db-0_1 keeps it until it is repaired: ")


def hold_in_between(*, pod: str = "db-1", is_first: bool = False) -> list[Claim]:
    """A person holds the lease of an application for a while, between two pods of it, and another application next."""
    server = FakeServer()
    if not is_first:
        server.elector("db-0", "shop/db").lead(20)
        server.elector("db-0", "shop/db").release()
    person = server.elector("laptop", "shop/db", user="dave@example.org", pod="")
    person.lead(20)
    if is_first:
        del server.log[:3]
    for name, user in ((pod, "db"), (pod and "queue-0", "queue")):
        server.wait(20)
        server.elector(name or user, "shop/db", user=f"system:serviceaccount:shop:{user}", pod=name).lead(20)
    return [one for one in find_claims(account(follow_log(server), server.now)) if one.check == "lease-shared"]


def test_a_person_that_held_the_lease_of_an_application_before_is_named_with_the_time() -> None:
    (claim,) = hold_in_between()
    assert claim.message.endswith("; dave@example.org, not with the token of a pod, from 11:07:00Z to 11:07:20Z")
    assert claim.advice.startswith("dave@example.org held it until 11:07:20Z, and not with the token of a pod.")


@pytest.mark.parametrize(
    "claims",
    [hold_in_between(pod=""), hold_in_between(is_first=True)],
    ids=["no tokens of pods", "since before the log begins"],
)
def test_a_user_beside_others_of_which_none_is_known_to_be_a_pod_is_no_news(claims: list[Claim]) -> None:
    (claim,) = claims
    assert "held it until" not in claim.advice


@pytest.mark.parametrize("user", ["system:serviceaccount:staging:db", "system:serviceaccount:shop:db2"])
def test_a_holder_of_another_namespace_is_named_with_its_times(user: str) -> None:
    server = FakeServer()
    first, last = server.elector("db-0", "shop/db"), server.elector("db-2", "shop/db")
    guest = server.elector("db-1", "shop/db", user=user)
    for elector in (first, guest, last):
        elector.lead(20)
        server.wait(1)
        elector.release()
        server.wait(1)
    last.lead(20)
    output = text(account(follow_log(server), server.now))
    is_guest = "staging" in user
    held = "staging/db from pod db-1, of another namespace, held it from 11:07:02Z to 11:07:23Z"
    assert (held in output) is is_guest
    assert ("lease-webhook writers shop/db; kubectl -n staging get pods -o wide" in output) is is_guest
