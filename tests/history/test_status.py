"""How a stored lease stands, from one healthy lease with one thing changed."""

import pytest

from tests.factories import NOW, Tweak, drop, make_entry, make_lease, put, to_bytes
from webhook.analysis.history.status import LeaseState, LeaseStatus, date_state, find_state_of_lease, was_live
from webhook.analysis.inputs.our_objects import decode_our_object
from webhook.kubernetes.managed_fields import list_entries
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import format_micro_time

SECOND = 1_000_000


def lease_of(*tweaks: Tweak) -> Lease:
    lease, _, _ = decode_our_object("Lease", "v1", to_bytes(make_lease(*tweaks)))
    assert isinstance(lease, Lease)
    return lease


def status_after(*tweaks: Tweak, after: float = 4) -> LeaseStatus:
    lease = lease_of(*tweaks)
    return find_state_of_lease(lease, list_entries(lease.metadata.managed_fields), NOW + int(after * SECOND))


def test_a_healthy_lease_is_live_until_its_duration_after_the_stamp() -> None:
    status = status_after()
    assert (status.state, status.from_stamps, status.ahead) == (LeaseState.LIVE, True, 0)
    assert (status.last_renewal, status.takeable_at, status.manager) == (NOW, NOW + 15 * SECOND, "checkout")
    assert status_after(after=15).state is LeaseState.EXPIRED


RENEWED = "spec.renewTime"
ENTRY = "metadata.managedFields[0]"
AN_HOUR_AHEAD = format_micro_time(NOW + 3600 * SECOND)


@pytest.mark.parametrize(
    ("tweaks", "state"),
    [
        pytest.param((put("spec.holderIdentity", ""),), LeaseState.RELEASED, id="released"),
        pytest.param((drop("spec.holderIdentity"),), LeaseState.RELEASED, id="released by removing the holder"),
        pytest.param((put("spec", {}),), LeaseState.NEVER_HELD, id="empty"),
        pytest.param((put("spec", {"leaseTransitions": 3}),), LeaseState.RELEASED, id="counts holders of before"),
        pytest.param(
            (put("spec", {"holderIdentity": "a", "acquireTime": "2025-11-20T12:00:00.000000Z"}),),
            LeaseState.UNKNOWN,
            id="as Pekko writes it",
        ),
        pytest.param((drop("spec.leaseDurationSeconds"),), LeaseState.UNKNOWN, id="no duration"),
        pytest.param(
            (put(RENEWED, AN_HOUR_AHEAD), drop("metadata.managedFields")),
            LeaseState.UNKNOWN,
            id="renewTime in the future, and no stamps",
        ),
        pytest.param((drop(RENEWED), drop("metadata.managedFields")), LeaseState.UNKNOWN, id="no renewTime"),
        pytest.param((put("spec.leaseDurationSeconds", -1),), LeaseState.EXPIRED, id="a negative duration"),
        pytest.param((put("spec.leaseTransitions", 2**31 - 1),), LeaseState.FROZEN, id="transitions at the end"),
        pytest.param((put("spec.leaseDurationSeconds", 2**31 - 1),), LeaseState.FROZEN, id="68 years"),
        pytest.param((put(RENEWED, "2035-11-20T12:00:00.000000Z"),), LeaseState.FROZEN, id="ten years ahead"),
        pytest.param((put(RENEWED, "10000-01-01T00:59:59.999999Z"),), LeaseState.FROZEN, id="year 10000"),
        pytest.param((put(RENEWED, "soon"),), LeaseState.FROZEN, id="noise"),
        pytest.param((put(f"{ENTRY}.time", "20000-01-01T00:00:00Z"),), LeaseState.FROZEN, id="an entry of year 20000"),
        pytest.param((put(f"{ENTRY}.time", "0001-01-01T00:00:00Z"),), LeaseState.LIVE, id="an entry of the zero time"),
        pytest.param((put(RENEWED, "2025-11-20T21:00:00.000000Z"),), LeaseState.LIVE, id="nine hours ahead"),
    ],
)
def test_the_state_of_a_lease_by_its_fields(tweaks: tuple[Tweak, ...], state: LeaseState) -> None:
    assert status_after(*tweaks).state is state


def test_a_released_lease_with_its_holder_left_in_it() -> None:
    spec = (put("spec.leaseDurationSeconds", 1), put("spec.acquireTime", "2025-11-20T12:00:00.000000Z"))
    status = status_after(*spec)
    assert (status.state, status.takeable_at) == (LeaseState.RELEASED, NOW)


@pytest.mark.parametrize(
    ("tweak", "rule", "until"),
    [
        pytest.param(
            put("spec.leaseTransitions", 2**31 - 1), "transitions-jump", None, id="no further holder can be counted"
        ),
        pytest.param(
            put("spec.leaseDurationSeconds", 2**31 - 1),
            "duration-too-long",
            NOW + (2**31 - 1) * SECOND,
            id="it lasts for decades",
        ),
        pytest.param(
            put(RENEWED, "2025-11-22T12:00:00.000000Z"),
            "renew-time-in-future",
            NOW + (2 * 86400 + 15) * SECOND,
            id="it was renewed in two days",
        ),
        pytest.param(
            put(RENEWED, "10000-01-01T00:59:59.999999Z"), "time-unreadable", None, id="its time has a year too many"
        ),
    ],
)
def test_a_frozen_lease_says_why_and_until_when(tweak: Tweak, rule: str, until: int | None) -> None:
    status = status_after(tweak)
    assert status.block is not None
    assert (status.block.rule, status.block.until, status.takeable_at) == (rule, until, until)


def test_a_released_lease_is_frozen_by_its_count_only() -> None:
    released = put("spec.holderIdentity", "")
    assert status_after(released, put("spec.leaseTransitions", 2**31 - 1)).state is LeaseState.FROZEN
    assert status_after(released, put("spec.leaseDurationSeconds", 2**31 - 1)).state is LeaseState.RELEASED


def test_the_clock_of_the_holder_is_measured_against_the_stamp() -> None:
    assert status_after(put(RENEWED, "2025-11-20T12:00:00.700000Z")).ahead == 0
    assert status_after(put(RENEWED, "2025-11-20T12:00:05.000000Z")).ahead == pytest.approx(4 * SECOND, abs=1)
    assert status_after(put(RENEWED, "2025-11-20T11:59:50.000000Z")).ahead == -10 * SECOND
    assert status_after(drop(RENEWED)).ahead is None


def test_without_stamps_the_holders_own_clock_decides() -> None:
    status = status_after(drop("metadata.managedFields"))
    assert (status.state, status.from_stamps, status.last_renewal, status.ahead) == (LeaseState.LIVE, False, NOW, None)


def test_a_lease_of_before_1970_expires() -> None:
    stamped = {**make_entry("holderIdentity", "renewTime"), "time": "1965-11-20T12:00:00Z"}
    lease = lease_of(put(RENEWED, "1965-11-20T12:00:00.000000Z"), put("metadata.managedFields", [stamped]))
    entries = list_entries(lease.metadata.managed_fields)
    renewed = entries[0].stamp
    assert renewed is not None
    assert renewed < 0
    states = [find_state_of_lease(lease, entries, renewed + seconds * SECOND).state for seconds in (14, 15)]
    assert states == [LeaseState.LIVE, LeaseState.EXPIRED]


def test_a_stamp_of_the_future_is_none() -> None:
    entry = {**make_entry("holderIdentity", "renewTime"), "time": "2025-11-20T12:10:00Z"}
    status = status_after(put("metadata.managedFields", [entry]))
    assert (status.state, status.from_stamps, status.last_renewal) == (LeaseState.LIVE, False, NOW)


def test_when_a_state_was_written() -> None:
    lease = lease_of()
    assert date_state(lease.spec, list_entries(lease.metadata.managed_fields)) == NOW
    assert date_state(lease.spec, ()) == NOW
    removed = lease_of(drop("spec.holderIdentity"), drop(RENEWED))
    assert date_state(removed.spec, list_entries(removed.metadata.managed_fields)) == NOW
    nothing = lease_of(put("spec", {}), put("metadata.managedFields", []))
    assert date_state(nothing.spec, ()) is None
    # The lease was taken, and no one can say when it was renewed.
    taken = lease_of(drop(RENEWED), put("metadata.managedFields", [make_entry("holderIdentity")]))
    assert date_state(taken.spec, list_entries(taken.metadata.managed_fields)) == NOW


def test_whether_a_lease_still_ran() -> None:
    assert was_live(NOW, 15, NOW + 12 * SECOND)
    assert not was_live(NOW, 15, NOW + 13 * SECOND)
    assert not was_live(None, 15, NOW)
    assert not was_live(NOW, None, NOW)
