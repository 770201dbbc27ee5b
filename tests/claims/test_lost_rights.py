"""A holder that loses the right to renew, and is replaced: replicas that ask on displace none of its refusals."""

import pytest

from tests.claims.accounts import account, shop, text
from tests.claims.test_granted_rights import FORBIDDEN
from tests.claims.test_refused_floods import log_role
from tests.history.fake_server import Elector, FakeServer, together
from tests.history.observing import advise, follow_log

MANY = 90


def refuse(*electors: Elector, verbs: tuple[str, ...] = ("update", "get")) -> None:
    for elector in electors:
        for verb in verbs:
            elector.fail(403, FORBIDDEN.format(verb), verb=verb)


def lose_rights(*, asks: tuple[str, ...] = ("update", "get"), replicas: int = 2) -> FakeServer:
    """db-0 leads until a role is written, asks twice, and its pod is deleted; then replicas read the lease in vain."""
    server, (db, *others) = shop()
    server.uids["db-0"] = "u-0"
    together(30, db, *others)
    server.wait(1)
    log_role(server)
    for _ in range(2):
        server.wait(1)
        refuse(db, verbs=asks)
    server.delete_pod("db-0")
    after = [server.elector(f"db-{one + 1}", "shop/db") for one in range(replicas)]
    for _ in range(MANY):
        together(2, *others)
        refuse(*after, verbs=("get",))
    return server


def test_the_refusals_of_the_holder_are_the_cause_however_many_followed() -> None:
    said = text(account(follow_log(lose_rights()), lose_rights().now))
    assert "Why: Its writes were refused: 2 writes answered with 403, the last one: " in said
    assert "; 2 reads likewise, all from 11:07:12Z until 11:07:13Z." in said
    assert "none of which renewed it" not in said


def test_the_role_that_was_written_before_the_first_refusal_is_said() -> None:
    server = lose_rights()
    said = text(account(follow_log(server), server.now))
    assert "11:07:11Z: Role shop/db was updated by alice@example.org\n" in said
    assert "Role shop/db" not in text(account(follow_log(lose_rights(asks=(), replicas=0)), server.now))


def test_every_right_that_the_holder_and_its_replicas_lacked_is_named() -> None:
    server = lose_rights()
    advice = advise(account(follow_log(server), server.now))
    assert "shop/db lacked the rights to get and update the lease; grant those rights" in advice
    assert "can-i update leases.coordination.k8s.io/db" in advice


def test_who_may_not_read_the_lease_has_to_write_it_as_well_to_lead() -> None:
    server = lose_rights(asks=("get",))
    advice = advise(account(follow_log(server), server.now))
    assert "lacked the right to get the lease; grant that right" in advice
    assert "To see whether it may get and update the lease now: kubectl auth can-i get " in advice
    assert "; kubectl auth can-i update leases.coordination.k8s.io/db" in advice


@pytest.mark.parametrize(("replicas", "is_refused"), [(1, True), (0, False)], ids=["a refused one", "none"])
def test_after_a_pod_was_deleted_a_replica_that_is_refused_is_what_to_look_at(
    replicas: int, *, is_refused: bool
) -> None:
    server = lose_rights(asks=(), replicas=replicas)
    advice = advise(account(follow_log(server), server.now))
    assert ("lacked the right to get the lease" in advice) is is_refused
    assert ("No other replica tries to take it" in advice) is not is_refused


def test_what_a_stranger_may_not_do_is_not_what_keeps_the_lease_from_a_replica() -> None:
    server = lose_rights(asks=(), replicas=0)
    stranger = server.elector("x-0", "shop/db", user="system:serviceaccount:shop:x")
    stranger.fail(403, FORBIDDEN.format("update"))
    for _ in range(10):
        server.wait(2)
        refuse(stranger, verbs=("get",))
    assert "shop/x" not in advise(account(follow_log(server), server.now))
