"""The status of a lease by its history, where the latest state alone says another thing."""

from tests.factories import NOW, Tweak, drop, put
from tests.history.test_status import lease_of
from webhook.analysis.history.holders.beginning import Beginning
from webhook.analysis.history.holders.duration import HeldDuration
from webhook.analysis.history.holders.processes import HolderProcesses
from webhook.analysis.history.holders.succession import Succession
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.known_status import date_known_renewal, find_status
from webhook.analysis.history.status import LeaseState, LeaseStatus
from webhook.analysis.history.write import Dating, Write
from webhook.kubernetes.managed_fields import list_entries

SECOND = 1_000_000
LATER = NOW + 60 * SECOND


def held(*, since: int = NOW, began: Handover = Handover.CLAIMED, dating: Dating = Dating.LOG) -> Tenure:
    write = Write(since, since, since, dating)
    return Tenure(
        HolderProcesses("checkout-7d4b9c-x2x8p_8c1"),
        since,
        began,
        since,
        beginning=Beginning(write),
        last_extension=write,
    )


def status_after(*tweaks: Tweak, tenure: Tenure | None = None, created: bool = True, now: int = LATER) -> LeaseStatus:
    lease, succession = lease_of(*tweaks), Succession()
    if tenure is not None:
        succession.begin(tenure)
    entries = list_entries(lease.metadata.managed_fields)
    return find_status(lease, entries, succession, now, logged=None, is_seen_created=created, is_list_only=False)


def test_a_state_that_was_dated_back_keeps_the_renewal_that_a_log_dates() -> None:
    renewed = LATER - 5 * SECOND
    assert status_after(tenure=held(since=NOW)).state is LeaseState.EXPIRED
    status = status_after(tenure=held(since=renewed))
    assert (status.state, status.last_renewal) == (LeaseState.LIVE, renewed)


def test_a_holder_that_does_not_know_a_shorter_duration_may_still_lead() -> None:
    tenure = held(since=LATER - 30 * SECOND)  # longer ago than the 15 s that the lease now says
    assert status_after(tenure=tenure).state is LeaseState.EXPIRED
    tenure.held_duration = HeldDuration(60)
    assert status_after(tenure=tenure).state is LeaseState.UNKNOWN


def test_what_only_its_writer_dates_says_nothing_else_than_the_state() -> None:
    assert date_known_renewal(held(), is_list_only=False) == NOW
    assert date_known_renewal(held(dating=Dating.WRITER_CLOCK), is_list_only=False) is None
    assert date_known_renewal(held(began=Handover.SEEN), is_list_only=True) is None
    assert date_known_renewal(held(began=Handover.SEEN), is_list_only=False) == NOW
    assert date_known_renewal(None, is_list_only=False) is None


def test_an_empty_lease_that_had_a_holder_was_released() -> None:
    empty = put("spec", {})
    assert status_after(empty).state is LeaseState.NEVER_HELD
    tenure = held()
    tenure.end(NOW, Write(NOW))
    assert status_after(empty, tenure=tenure).state is LeaseState.RELEASED


def test_a_lease_that_was_created_without_a_holder_was_never_held() -> None:
    tweaks = drop("spec.holderIdentity"), drop("spec.acquireTime"), drop("spec.leaseTransitions")
    assert status_after(*tweaks).state is LeaseState.NEVER_HELD
    assert status_after(*tweaks, drop("spec.leaseDurationSeconds"), created=False).state is LeaseState.RELEASED
