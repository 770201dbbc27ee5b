"""Since when a lease is held, or written, by a log that begins while it is."""

from typing import Any

import pytest

from tests.claims.accounts import account, shop, text
from tests.claims.test_related_writes import log_write
from tests.factories import put
from tests.history.fake_server import SECOND, START, FakeServer
from tests.history.observing import cluster_of, follow_both, follow_log
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.presentation.text import Line, list_facts


def hide_stamps(server: FakeServer) -> FakeServer:
    """Have a log begin after the lease was taken, as one with `omitManagedFields`."""
    del server.log[0]
    for event in server.log:
        del event["responseObject"]["metadata"]["managedFields"]
    return server


def held(**spec: Any) -> str:
    """Return what is said of a holder that renews with fields of the spec changed."""
    server, (db, *_) = shop()
    db.take()
    for _ in db.ticks(10):
        db.renew(**spec)
    output = text(account(follow_log(hide_stamps(server)), server.now))
    return output.partition("Held by: ")[2].partition("\n")[0]


def test_acquire_time_is_what_clients_say() -> None:
    assert held() == ("db-0_1; since when is not known: acquireTime, which clients write, says 11:06:39Z")


@pytest.mark.parametrize(
    "acquired",
    [None, "2027-01-01T00:00:00.000000Z", "2026-11-18T11:06:51.500000Z", "x"],
    ids=["absent", "of the future", "after the last renewal", "unreadable"],
)
def test_no_other_acquire_time_is_shown(acquired: str | None) -> None:
    assert held(acquireTime=acquired) == "db-0_1; since when is not known"


def test_who_has_not_renewed_it_need_not_have_written_acquire_time() -> None:
    server, (db, *_) = shop()
    db.lead(4)
    del server.log[:2]
    server.log[0]["user"] = {"username": "alice"}
    del server.log[0]["responseObject"]["metadata"]["managedFields"]
    output = text(account(follow_log(server), server.now))
    assert "acquireTime" not in output.partition("\n")[2].partition("\n")[0]


def written(*, is_created: bool) -> str:
    """Return who is said to have written a lease, by a log without objects that has its creation, or begins later."""
    server, (db, *_) = shop()
    db.lead(10)
    if not is_created:
        del server.log[0]
    output = text(account(cluster_of(server.audit_log(metadata_only=True)), server.now))
    return output.partition("Written by: ")[2].partition("\n")[0]


def test_before_a_log_begins_the_first_writer_may_have_written_too() -> None:
    assert written(is_created=False) == "db-0, since 11:06:42Z at least (8 s ago)"


def test_a_writer_that_created_it_wrote_it_since_then() -> None:
    assert written(is_created=True) == "db-0, since 11:06:40Z (10 s ago)"


def follow_stripped(seconds_before: float, **spec: Any) -> Account:
    """The account by a watch without managedFields, which begins so long after the lease was created."""
    server, (db, *_) = shop()
    db.lead(60)
    db.renew(**spec)
    server.events = [one for one in server.events if one[0] >= START + int(seconds_before * SECOND)]
    server.events[0] = (server.events[0][0], "ADDED", server.events[0][2])
    return account(cluster_of(server.watch(managed_fields=False)), server.now)


def test_a_watch_without_managed_fields_shows_what_clients_say_of_when_it_was_taken() -> None:
    answer = follow_stripped(30, leaseTransitions=1)
    said = "not known: acquireTime, which clients write, says 11:06:39Z, and leaseTransitions 1"
    assert f"Held by: db-0_1; since when is {said}" in text(answer)
    assert Line("Held since", said) in list(list_facts(answer, verbose=False))


@pytest.mark.parametrize("acquired", [None, "2027-01-01T00:00:00.000000Z"])
def test_a_watch_shows_no_acquire_time_that_cannot_be(acquired: str | None) -> None:
    answer = follow_stripped(30, acquireTime=acquired)
    assert "Held by: db-0_1; since when is not known\n" in text(answer)
    assert "Held since" not in {line.label for line in list_facts(answer, verbose=False)}


def test_a_lease_that_a_watch_shows_from_its_creation_is_held_since_then() -> None:
    answer = follow_stripped(0)
    assert "Held by: db-0_1, since 11:06:40Z, when it was created, as far as the input shows" in text(answer)
    assert "11:06:40Z: the lease was created (creationTimestamp)" in text(answer)
    assert "Held since" not in {line.label for line in list_facts(answer, verbose=False)}


def test_a_lease_that_was_there_before_is_not_said_to_be_created() -> None:
    assert "created" not in text(follow_stripped(30))


def test_a_lease_without_a_time_of_its_creation_is_not_said_to_be_created() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    for _, _, one in server.events:
        del one["metadata"]["creationTimestamp"]
    assert "created" not in text(account(cluster_of(server.watch(managed_fields=False)), server.now))


def test_what_clients_say_of_when_it_was_taken_is_not_in_the_short_text_where_stamps_say_more() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    answer = account(cluster_of(server.watch()), server.now)
    assert "Held since" not in {line.label for line in list_facts(answer, verbose=False)}


def test_who_followed_another_holder_has_not_held_it_since_its_creation() -> None:
    server, (db, *_) = shop()
    db.lead(10)
    server.elector("db-1", "shop/db").lead(10)
    assert "created" not in text(account(cluster_of(server.watch(managed_fields=False)), server.now))


@pytest.mark.parametrize(("is_changed", "is_told"), [(True, True), (False, False)], ids=["updated", "as it was"])
def test_a_holder_that_was_there_before_its_workload_was_updated_is_no_result_of_that(
    *, is_changed: bool, is_told: bool
) -> None:
    server, (db, *_) = shop()
    db.user, db.pod = "system:serviceaccount:shop:db", "db-7d9c6b5f4-7hq2x"
    db.lead(20)
    del server.log[0]
    server.events[0] = (server.events[1][0], "ADDED", server.events[1][2])
    del server.events[1]
    if is_changed:
        log_write(server, "deployments", "apps", put("verb", "patch"))
    db.lead(20)
    answer = account(follow_both(server), server.now)
    assert (Line("Held since", "11:06:40Z, as it wrote itself") in list(list_facts(answer, verbose=False))) is is_told


def test_a_holder_of_a_lease_that_was_created_again_need_not_have_lost_it() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.delete("shop/db")
    server.wait(1)
    db.lead(20)
    assert "db-0_1 holds it since 11:07:01Z, when the lease was created again, renewed" in text(
        account(follow_log(server), server.now)
    )
    server.delete("shop/db")
    server.elector("db-1", "shop/db").lead(20)
    assert "db-1_1 holds it since 11:07:21Z, renewed" in text(account(follow_log(server), server.now))
