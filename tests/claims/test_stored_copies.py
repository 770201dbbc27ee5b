"""Tests of a lease that a stored copy overwrites, such as a manifest in git: no clock explains its old times."""

from typing import Any

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import SECOND, FakeServer, together
from tests.history.observing import advise, follow_log, follow_watch
from webhook.kubernetes.times import format_micro_time

HOUR = 3600 * SECOND
FLUX = "system:serviceaccount:flux-system:kustomize-controller"
UIDS = {"db-0": "uid-of-db-0", "db-1": "uid-of-db-1"}


def overwrite(server: FakeServer, age: int, **changes: Any) -> None:
    """Write a state whose renewTime is so many microseconds old, with a holder of long ago."""
    times = {"renewTime": format_micro_time(server.now - age), "acquireTime": format_micro_time(server.now - age)}
    spec = {**server.leases["shop/db"]["spec"], "holderIdentity": "db-9_1", "leaseTransitions": 3, **times, **changes}
    server.write("shop/db", spec, "kustomize-controller", FLUX, "")


def apply_again_and_again(age: int = 104 * HOUR, times: int = 3) -> FakeServer:
    """A lease that is overwritten each minute, and whose holder takes it back at once."""
    server = FakeServer(uids=UIDS)
    db = server.elector("db-0", "shop/db")
    other = server.elector("cart-0", "shop/cart")
    for _ in range(times):
        together(60, db, other)
        overwrite(server, age)
        server.wait(0.5)
        db.take(leaseTransitions=3)
    together(4, db, other)
    return server


def test_who_applies_an_old_copy_is_to_stop_and_no_clock_is_blamed() -> None:
    server = apply_again_and_again()
    answer = account(follow_log(server), server.now)
    output = text(answer)
    assert "clock" not in output
    assert "the renewTime written with it was 4 d 8 h old" in output
    assert advise(answer).startswith(
        "If that old renewTime is of a stored copy of the lease, such as a manifest in git or a backup, take the Lease "
        "out. Find out why flux-system/kustomize-controller wrote the holder."
    )


def test_the_holder_that_takes_its_lease_back_takes_it_from_nobody() -> None:
    server = apply_again_and_again()
    output = text(account(follow_log(server), server.now))
    assert "db-0_1 took it (shop/db from pod db-0) from db-9_1, which had been written in and had not renewed it" in (
        output
    )


def test_a_new_state_that_another_one_writes_is_no_old_copy() -> None:
    server = apply_again_and_again(age=0)
    answer = account(follow_log(server), server.now)
    assert "old" not in text(answer).replace("holder", "").replace("hold", "")
    assert advise(answer).startswith("Find out why flux-system/kustomize-controller wrote the holder.")


def test_a_watch_says_whose_renew_time_was_old_each_time() -> None:
    server = apply_again_and_again()
    answer = account(follow_watch(server), server.now)
    output = text(answer)
    assert "holder's clock" not in output
    assert (
        "Each time db-9_1 was written in, with the field manager kustomize-controller, renewTime was old, 4 d 8 h at "
        "last, and no renewal followed, as if a stored copy of the lease was written, such as a manifest"
    ) in output


def test_without_field_managers_a_watch_blames_no_clock_either() -> None:
    server = apply_again_and_again()
    for _, _, document in server.events:
        for entry in document["metadata"]["managedFields"]:
            entry["manager"] = "operator"
    assert "holder's clock" not in text(account(follow_watch(server), server.now))


@pytest.mark.parametrize("seconds", [2, 10])
def test_in_a_watch_two_that_write_themselves_in_have_no_copies(seconds: int) -> None:
    server = FakeServer(uids=UIDS)
    electors = [server.elector(name, "shop/db") for name in UIDS]
    electors[0].lead(20)
    for number in range(6):
        electors[(number + 1) % 2].lead(seconds)
    output = text(account(follow_watch(server), server.now))
    assert "in place of each other" in output
    assert "renewTime was old" not in output


def test_the_clock_of_who_was_written_in_and_renews_is_its_own() -> None:
    server = FakeServer(uids=UIDS)
    db = server.elector("db-0", "shop/db", ahead=-300)
    db.lead(20)
    server.wait(1)
    server.elector("db-1", "shop/db").take()
    assert server.now > 20 * SECOND
    assert "The old holder's clock is 5 min 0 s behind" in text(account(follow_log(server), server.now))
