"""Leases up to etcd's limit: a holder that can renew without us can renew with us, and so can its successor take over.

The lease was filled before the webhook was installed. Its managedFields go with the first write that no longer fits.
"""

from typing import Final

import pytest
from msgspec.structs import replace

from tests.model import electors, world
from tests.model.api_server import ETCD_LIMIT, Lease, Write, stored_size
from tests.model.arsenal import TAKE
from tests.model.attacker import ATTACKERS, scene
from tests.model.managed_fields import APPLY, SECOND, Entry
from tests.model.world import MINUTE, World
from webhook.admission.rules.mode import Mode

SIZES: Final = {
    "256 KiB": 256 * 1024,
    "1 MiB": 1024 * 1024,
    "a byte below the limit of etcd": ETCD_LIMIT - 1,
    "the limit of etcd": ETCD_LIMIT,
}
STALE: Final = Entry("pad", APPLY, 1_700_000_000 * SECOND, frozenset())


def filled(here: World, size: int) -> World:
    """The scene in which one entry fills the lease to exactly so many bytes, renewed in a whole second."""
    assert here.lease is not None
    renewed = (here.lease.spec.renewed or 0) // SECOND * SECOND
    bare = replace(here.lease, spec=replace(here.lease.spec, renewed=renewed))
    large = _padded(bare, size - (stored_size(_padded(bare, ETCD_LIMIT)) - ETCD_LIMIT))
    return replace(here, lease=large, forged=True)


def _padded(lease: Lease, length: int) -> Lease:
    return replace(lease, entries=(*lease.entries, replace(STALE, fields=frozenset({f"labels.{'a' * length}"}))))


@pytest.mark.parametrize("policy", world.POLICIES)
@pytest.mark.parametrize("size", SIZES)
def test_who_holds_a_lease_of_any_size_renews_it(size: str, policy: str) -> None:
    here = filled(scene(), SIZES[size])
    lost = False
    for _ in range(3):
        here = world.waited(here, 2 * SECOND + 1)
        elector = here.electors[0]
        write = electors.intention(elector, here.lease, here.now, here.clock(0))
        assert write is not None
        outcome = world.evaluate(here, elector.user, write, 0, (policy,))
        assert outcome is not None
        assert outcome.verdicts[policy].allowed, outcome.verdicts[policy].message
        here = world.settled(here, outcome)
        lost = lost or not (here.lease and here.lease.entries)
    assert lost is size.endswith("of etcd")


@pytest.mark.parametrize("policy", world.POLICIES)
@pytest.mark.parametrize("size", SIZES)
def test_an_expired_lease_of_any_size_is_taken_over(size: str, policy: str) -> None:
    here = world.waited(filled(scene(), SIZES[size]), (electors.DURATION + 2) * SECOND + MINUTE)
    other = here.electors[1]
    assert here.lease is not None
    outcome = world.evaluate(here, other.user, electors.acquisition(other, here.lease, here.now), 0, (policy,))
    assert outcome is not None
    assert outcome.verdicts[policy].allowed, outcome.verdicts[policy].message


@pytest.mark.parametrize("name", ATTACKERS)
@pytest.mark.parametrize("size", SIZES)
def test_no_single_write_takes_a_live_lease_of_any_size_in_strict(size: str, name: str) -> None:
    here = filled(scene(), SIZES[size])
    assert here.lease is not None
    write = TAKE.send(here.lease, here.now + 1)
    outcome = world.evaluate(world.waited(here, 1), ATTACKERS[name], write, 0, (world.STRICT, world.STANDARD))
    assert outcome is not None
    assert not outcome.verdicts[world.STRICT].allowed
    assert ("takeover-before-expiry", Mode.WARN) in {
        (finding.rule, finding.mode) for finding in outcome.verdicts[world.STANDARD].findings
    }


@pytest.mark.parametrize("policy", world.POLICIES)
def test_a_stranger_that_strips_a_large_lease_is_warned_of_and_so_is_the_steal(policy: str) -> None:
    """It renews for the holder; the lease then has no stamps, and a steal is never silent."""
    here = world.waited(filled(scene(), ETCD_LIMIT), 1)
    assert here.lease is not None
    stranger = ATTACKERS["a pod of another namespace"]
    strip = Write("checkout", replace(here.lease.spec, renewed=here.now), here.lease.labels, entries=())
    first = world.evaluate(here, stranger, strip, 0, (policy,))
    assert first is not None
    if policy.endswith("bound"):
        assert not first.verdicts[policy].allowed
        return
    assert ("renewal-stamp-tampered", Mode.WARN) in {(one.rule, one.mode) for one in first.verdicts[policy].findings}
    here = world.settled(here, first)
    assert here.lease is not None
    second = world.evaluate(world.waited(here, 1), stranger, TAKE.send(here.lease, here.now + 1), 0, (policy,))
    assert second is not None
    assert second.verdicts[policy].allowed is not policy.endswith("enforce")
    assert any(one.mode >= Mode.WARN for one in second.verdicts[policy].findings)


@pytest.mark.parametrize("policy", [world.STANDARD, world.STRICT])
@pytest.mark.parametrize("operation", ["Apply", "Update"])
def test_no_one_fills_a_lease(policy: str, operation: str) -> None:
    here = world.waited(scene(), 1)
    assert here.lease is not None
    for size in (256 * 1024, ETCD_LIMIT // 2 + 1000, ETCD_LIMIT - 2000, ETCD_LIMIT):
        entry = replace(STALE, operation=operation, fields=frozenset({f"labels.{'a' * size}"}))
        for spec in (here.lease.spec, replace(here.lease.spec, renewed=here.now)):
            write = Write("mallory", spec, here.lease.labels, entries=(*here.lease.entries, entry))
            outcome = world.evaluate(here, ATTACKERS["a pod of another namespace"], write, 0, (policy,))
            assert outcome is not None
            assert not outcome.verdicts[policy].allowed
