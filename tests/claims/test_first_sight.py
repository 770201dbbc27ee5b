"""Since when a lease is held that was held when the input begins: each place says the earlier of what is known."""

import pytest

from tests.claims.accounts import account, shop, text
from tests.history.fake_server import FakeServer, together
from tests.history.observing import View, follow_both, follow_log, follow_watch
from webhook.analysis.claims.assemble import make_account
from webhook.kubernetes.times import SECOND, format_micro_time


def beat() -> FakeServer:
    """A heartbeat that is renewed for two minutes, of which the input does not show the creation."""
    server = FakeServer()
    node = server.elector("n1", "kube-node-lease/n1", user="system:node:n1", retry=10, duration=40, pod="")
    node.identity = "n1"
    node.lead(120)
    for _, _, document in server.events:
        document["metadata"]["creationTimestamp"] = "2026-11-18T10:00:00Z"
        document["spec"].pop("acquireTime", None)
        document["spec"].pop("leaseTransitions", None)
        (entry,) = document["metadata"]["managedFields"]
        entry["fieldsV1"]["f:spec"] = {f"f:{name}": {} for name in document["spec"]}
    del server.log[0]
    server.events[0] = (*server.events[0][:1], "ADDED", server.events[0][2])
    return server


@pytest.mark.parametrize("follow", [follow_log, follow_watch, follow_both])
def test_a_heartbeat_is_held_since_it_was_first_seen_at_the_latest(follow: View) -> None:
    server = beat()
    histories = follow(server)
    output = text(make_account(histories, histories.leases["kube-node-lease", "n1"], server.now))
    first = "11:06:50Z" if follow is follow_log else "11:06:40Z"
    assert f"Held by: n1, since {first} at the latest" in output


def test_who_wrote_itself_in_is_said_to_have_taken_it_then() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    server.write("shop/db", {"holderIdentity": "", "leaseTransitions": 4}, "operator", db.user, "db-0")
    server.wait(20)
    db.lead(20)
    del server.log[0], server.events[0]
    db.release()
    histories = follow_log(server)
    output = text(make_account(histories, histories.leases["shop", "db"], server.now))
    assert "11:07:00Z: db-0_1 took it, as it wrote itself" in output
    assert "when the input first shows it" not in output


def test_who_had_taken_it_by_its_acquire_time_before_is_named_since_then() -> None:
    server, (db, *others) = shop()
    together(30, db, *others)
    together(60, *others)
    second = server.elector("db-1", "shop/db")
    acquired = format_micro_time(server.now - 40 * SECOND)
    second.take(acquireTime=acquired)
    together(10, *others)
    second.renew()
    found = text(account(follow_watch(server), server.now))
    assert found.startswith("db-1_1 is named in it since 11:08:10Z, with acquireTime 11:07:30Z, renewed ")
    assert "its acquireTime says 11:07:30Z, so it may have led since" in found
    assert "db-1_1 holds it" not in found


def test_an_acquire_time_from_before_the_last_renewal_is_that_of_the_holder_before() -> None:
    server, (db, *others) = shop()
    together(30, db, *others)
    together(60, *others)
    second = server.elector("db-1", "shop/db")
    second.take(acquireTime=server.leases["shop/db"]["spec"]["acquireTime"])
    assert text(account(follow_watch(server), server.now)).startswith("db-1_1 holds it since 11:08:10Z")
