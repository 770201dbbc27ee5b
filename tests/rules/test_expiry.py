"""Expiry, asked directly: which stamp counts, and to which second."""

import pytest
from msgspec import Raw

from tests.factories import (
    NOW,
    Document,
    Tweak,
    drop,
    make_entry,
    make_lease,
    make_review,
    put,
    to_bytes,
)
from tests.rules.findings import (
    RIVAL,
    by_service_account,
    findings,
    take,
    update,
    written,
)
from webhook.admission.evaluate import evaluate
from webhook.admission.policy.parse import parse
from webhook.admission.rules.change import Event
from webhook.admission.rules.expiry import (
    Expiry,
    date_write_by_field,
    date_write_by_writer,
    find_expiry,
    find_tolerance,
)
from webhook.admission.rules.mode import Mode
from webhook.kubernetes import times
from webhook.kubernetes.managed_fields import HOLDER, RENEW_TIME, Entry, list_entries
from webhook.kubernetes.review import decode
from webhook.kubernetes.times import DAY, SECOND

TIME = "metadata.managedFields[0].time"


@pytest.mark.parametrize(
    ("duration", "tolerance"),
    [
        pytest.param(None, 2_000_000, id="no duration"),
        pytest.param(0, 2_000_000, id="no length"),
        pytest.param(-1, 2_000_000, id="negative"),
        pytest.param(1, 200_000, id="a released lease"),
        pytest.param(3, 600_000, id="three seconds"),
        pytest.param(9, 1_800_000, id="nine seconds"),
        pytest.param(10, 2_000_000, id="ten seconds"),
        pytest.param(3600, 2_000_000, id="an hour"),
    ],
)
def test_how_much_clocks_may_differ_by_duration(duration: int | None, tolerance: int) -> None:
    assert find_tolerance(duration) == tolerance


def stamped(at: int, *fields: str) -> Entry:
    entry = make_entry(*(fields or ("renewTime",)), time=times.format_time(at))
    return list_entries(Raw(to_bytes([entry])))[0]


def expiry_at(
    *entries: Entry,
    written_at: int = NOW,
    renew_time: int = NOW,
    duration: int | None = 15,
    now: int = NOW,
    held: bool = True,
) -> Expiry:
    return find_expiry(
        holder="pod-a" if held else "",
        duration_seconds=duration,
        renew_time=renew_time,
        entries=entries,
        written_at=written_at,
        now=now,
    )


@pytest.mark.parametrize(
    ("ahead", "used"),
    [
        pytest.param(2 * SECOND, True, id="within the tolerance"),
        pytest.param(60 * SECOND, True, id="at the bound"),
        pytest.param(61 * SECOND, False, id="beyond the bound, which no clock of an API server is"),
    ],
)
def test_a_stamp_later_than_this_write(ahead: int, used: bool) -> None:
    expiry = expiry_at(stamped(NOW + ahead))
    assert expiry.from_stamps is used
    assert expiry.last_renewal == (NOW + ahead if used else NOW)
    assert not expiry.is_expired


def test_a_stamp_within_the_bound_keeps_a_short_lease_live() -> None:
    assert not expiry_at(stamped(NOW + 60 * SECOND), duration=1).is_expired


def test_the_earliest_owner_of_renew_time_counts_and_no_other_field_stands_in() -> None:
    renewed, joined = stamped(NOW - 9 * SECOND), stamped(NOW - SECOND)
    assert expiry_at(joined, renewed).last_renewal == NOW - 9 * SECOND
    other = expiry_at(stamped(NOW - SECOND, "leaseTransitions"), renew_time=NOW - 5 * SECOND)
    assert (other.last_renewal, other.from_stamps) == (NOW - 5 * SECOND, False)


@pytest.mark.parametrize("late", [0, DAY, 3653 * DAY], ids=["none", "a day", "ten years"])
def test_how_far_a_stamp_lies_from_renew_time_decides_nothing(late: int) -> None:
    assert expiry_at(stamped(NOW), renew_time=NOW - late) == expiry_at(stamped(NOW))


def test_renew_time_ahead_of_the_clock_counts_as_now() -> None:
    assert expiry_at(renew_time=NOW + DAY, now=NOW + SECOND).last_renewal == NOW + SECOND


@pytest.mark.parametrize(
    ("owners", "expected"),
    [
        pytest.param([{}], NOW - SECOND, id="one owner"),
        pytest.param([], NOW, id="no owner"),
        pytest.param([{}, {"manager": "b"}], NOW, id="two owners"),
        pytest.param([{"time": None}], NOW, id="an owner without a time"),
        pytest.param([{"time": "0001-01-01T00:00:00Z"}], NOW, id="an owner with the zero time"),
        pytest.param([{"time": "noise"}], NOW, id="an owner with an unreadable time"),
        pytest.param([{"manager": "ancient-changes"}], NOW, id="a fold, whose time a client chooses"),
        pytest.param([{"fieldsV1": {"f:spec": {"f:renewTime": {"f:x": {}}}}}], NOW, id="an owner of something below"),
        pytest.param(
            [{"fieldsV1": {"f:spec": {"f:renewTime": {".": {}, "f:x": {}}}}}],
            NOW - SECOND,
            id="an owner of the field and of something below",
        ),
        pytest.param(
            [{}, {"fieldsV1": {"f:spec": {"f:renewTime": {"f:x": {}}}}}], NOW - SECOND, id="an owner, and one below"
        ),
    ],
)
def test_the_stamp_of_a_write_is_that_of_the_one_owner(owners: list[dict[str, object]], expected: int) -> None:
    entries = [make_entry("renewTime", time=times.format_time(NOW - SECOND)) | owner for owner in owners]
    assert date_write_by_field(list_entries(Raw(to_bytes(entries))), (), RENEW_TIME, NOW + 999_999) == expected


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        pytest.param({"manager": "b"}, NOW + DAY, id="a later entry of the writer"),
        pytest.param({"manager": "ancient-changes"}, NOW - SECOND, id="a later fold, whose time a client chooses"),
        pytest.param({"manager": "b", "time": None}, NOW - SECOND, id="an entry without a time"),
    ],
)
def test_a_writer_is_dated_by_the_latest_of_its_entries(second: Document, expected: int) -> None:
    first = make_entry("renewTime", time=times.format_time(NOW - SECOND))
    entries = [first, make_entry("acquireTime", time=times.format_time(NOW + DAY)) | second]
    assert date_write_by_writer(list_entries(Raw(to_bytes(entries))), NOW + 999_999) == expected


def test_a_writer_that_has_only_a_fold_is_dated_by_our_clock() -> None:
    fold = make_entry("renewTime", manager="ancient-changes", time=times.format_time(NOW + DAY))
    assert date_write_by_writer(list_entries(Raw(to_bytes([fold]))), NOW + 999_999) == NOW


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        pytest.param({}, NOW, id="the same manager with the same stamp"),
        pytest.param({"time": times.format_time(NOW)}, NOW + DAY, id="an earlier stamp"),
        pytest.param({"manager": "b"}, NOW + DAY, id="another manager"),
        pytest.param({"fieldsV1": {"f:spec": {"f:acquireTime": {}}}}, NOW + DAY, id="an owner of another field"),
    ],
)
def test_an_owner_that_was_there_before_with_its_stamp_dates_nothing_ahead(before: Document, expected: int) -> None:
    owner = make_entry("renewTime", time=times.format_time(NOW + DAY))
    entries, old = (list_entries(Raw(to_bytes([one]))) for one in (owner, owner | before))
    assert date_write_by_field(entries, old, RENEW_TIME, NOW + 999_999) == expected


def test_two_writes_of_one_manager_in_one_second_have_one_stamp() -> None:
    entries = list_entries(Raw(to_bytes([make_entry("renewTime", time=times.format_time(NOW))])))
    assert date_write_by_field(entries, entries, RENEW_TIME, NOW + DAY) == NOW


def test_a_clock_that_is_behind_does_not_date_a_new_holder_before_the_last_renewal() -> None:
    owner = make_entry("holderIdentity", "renewTime", time=times.format_time(NOW))
    entries = list_entries(Raw(to_bytes([owner])))
    assert date_write_by_field(entries, entries, HOLDER, NOW - DAY) == NOW


def test_an_unheld_lease_rests_on_nothing() -> None:
    assert expiry_at(held=False, written_at=NOW + SECOND) == Expiry(
        is_expired=True, last_renewal=None, written_at=NOW + SECOND, duration_seconds=15, from_stamps=True
    )


@pytest.mark.parametrize("time", ["20000-01-01T00:00:00.000000Z", "-0400-01-01T00:00:00.000000Z", "noise"])
@pytest.mark.parametrize(
    ("stamps", "mode"),
    [pytest.param([], Mode.DENY, id="stamped"), pytest.param([drop(TIME)], Mode.WARN, id="not stamped")],
)
def test_a_stored_renew_time_that_nobody_can_read_is_not_one_that_has_passed(
    time: str, stamps: list[Tweak], mode: Mode
) -> None:
    stolen = update(written(take(RIVAL), at="2025-11-20T12:00:01Z"), old=[put("spec.renewTime", time), *stamps])
    verdict = evaluate(decode(to_bytes(stolen)), parse("apiVersion: lease-webhook/v1\npreset: strict\n"), NOW)
    assert verdict.event is Event.STEAL
    assert {one.mode for one in verdict.findings if one.rule == "takeover-before-expiry"} == {mode}


def test_a_lease_that_nobody_can_read_expires_by_its_stamp() -> None:
    expiry = expiry_at(stamped(NOW), renew_time=times.AFTER_LAST_READABLE, written_at=NOW + 15 * SECOND)
    assert (expiry.is_expired, expiry.from_stamps) == (True, True)


def test_a_lease_without_a_duration_has_expired() -> None:
    assert expiry_at(stamped(NOW), duration=None).is_expired


INTRUDER = by_service_account("guest", "intruder", "intruder-0")


NO_STAMP = drop(TIME)


@pytest.mark.parametrize(
    ("rule", "review"),
    [
        pytest.param("takeover-before-expiry", update(take(RIVAL), old=[NO_STAMP]), id="a steal"),
        pytest.param(
            "foreign-release", update(put("spec.holderIdentity", ""), old=[NO_STAMP], review=[INTRUDER]), id="a release"
        ),
        pytest.param("live-lease-deleted", make_review(old=make_lease(NO_STAMP)), id="a deletion"),
    ],
)
def test_without_stamps(rule: str, review: Document) -> None:
    (finding,) = findings(review)[rule]
    assert finding.without_stamps is True


@pytest.mark.parametrize(
    ("rule", "review"),
    [
        pytest.param("takeover-before-expiry", update(written(take(RIVAL), at="2025-11-20T12:00:01Z")), id="a steal"),
        pytest.param("foreign-release", update(put("spec.holderIdentity", ""), review=[INTRUDER]), id="a release"),
        pytest.param("live-lease-deleted", make_review(old=make_lease()), id="a deletion"),
    ],
)
def test_with_stamps(rule: str, review: Document) -> None:
    (finding,) = findings(review)[rule]
    assert finding.without_stamps is False
