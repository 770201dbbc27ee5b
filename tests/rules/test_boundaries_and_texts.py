"""Where a rule begins to speak, to the second, and what it takes from a review."""

import pytest

from tests.factories import HOLDER, Document, Tweak, drop, make_candidate, make_entry, make_lease, make_review, put
from tests.rules.verdicts import (
    DENY,
    INVALID,
    NOW,
    RIVAL,
    by_service_account,
    change_of,
    findings,
    said,
    take,
    update,
    written,
)
from webhook.api.objects import LeaseCandidateSpec
from webhook.rules.events import is_candidate_untouched
from webhook.rules.glob import holder_matches
from webhook.rules.registry import RULES, RULES_BY_OCCASION, by_occasion, checked

ENTRIES = "metadata.managedFields"
TIME = f"{ENTRIES}[0].time"
LABEL = put("metadata.labels.tier", "1")
RENEW = "spec.renewTime"


def texts(rule: str, review: Document) -> list[str]:
    return [str(one.error) for one in findings(review)[rule]]


def second(entry: Document) -> Tweak:
    def tweak(lease: Document) -> None:
        lease["metadata"]["managedFields"].append(entry)

    return tweak


# ---- a denial that rests on the caller's clock says so --------------------------------------------------------------

STRANGER = by_service_account("guest", "intruder", "intruder-0")
NO_STAMP = drop(TIME)


@pytest.mark.parametrize(
    ("rule", "review"),
    [
        pytest.param("takeover-before-expiry", update(take(RIVAL), old=[NO_STAMP]), id="a steal"),
        pytest.param(
            "foreign-release", update(put("spec.holderIdentity", ""), old=[NO_STAMP], review=[STRANGER]), id="a release"
        ),
        pytest.param("live-lease-deleted", make_review(old=make_lease(NO_STAMP)), id="a deletion"),
    ],
)
def test_without_stamps(rule: str, review: Document) -> None:
    (found,) = findings(review)[rule]
    assert found.without_stamps is True


@pytest.mark.parametrize(
    ("rule", "review"),
    [
        pytest.param("takeover-before-expiry", update(written(take(RIVAL), at="2025-11-20T12:00:01Z")), id="a steal"),
        pytest.param("foreign-release", update(put("spec.holderIdentity", ""), review=[STRANGER]), id="a release"),
        pytest.param("live-lease-deleted", make_review(old=make_lease()), id="a deletion"),
    ],
)
def test_with_stamps(rule: str, review: Document) -> None:
    (found,) = findings(review)[rule]
    assert found.without_stamps is False


def test_a_takeover_over_a_stamp_is_no_lease_without_stamps() -> None:
    assert said("lease-without-stamps", update(written(take(RIVAL), at="2025-11-20T12:00:01Z"))) == set()


# ---- stamps ---------------------------------------------------------------------------------------------------------


def test_what_is_said_of_emptied_stamps() -> None:
    manager = "a-manager-with-a-name-of-more-than-forty-characters"
    (without,) = texts("renewal-stamp-tampered", update(put(ENTRIES, []), old=[NO_STAMP]))
    (long,) = texts("renewal-stamp-tampered", update(put(ENTRIES, []), old=[put(f"{ENTRIES}[0].manager", manager)]))
    (nameless,) = texts("renewal-stamp-tampered", update(put(ENTRIES, []), old=[drop(f"{ENTRIES}[0].manager")]))
    assert "empties managedFields and with it what the API server saw of the lease; leave" in without
    assert 'manager "a-manager-with-a-name-of-more-than-forty' in long
    assert "forty-c" not in long
    assert 'manager "")' in nameless


def test_the_stamp_of_the_renewal_is_not_the_stamp_of_the_holder() -> None:
    review = make_review(
        new=make_lease(
            put(ENTRIES, [make_entry("holderIdentity", time="2025-11-20T11:00:00Z"), make_entry("renewTime")])
        )
    )
    assert change_of(review).renewed_at == NOW


def test_an_entry_time_that_is_unreadable() -> None:
    review = update(LABEL, put(TIME, "10000-01-01T00:00:00Z"))
    assert said("time-unreadable", review) == {(INVALID, TIME, DENY)}


# ---- renewTime ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("time", "limit"),
    [
        pytest.param("2025-11-20T12:01:00.000000Z", None, id="a minute ahead"),
        pytest.param("2025-11-20T12:01:00.000001Z", 60, id="more than a minute ahead"),
        pytest.param("2025-11-21T12:00:00.000000Z", 60, id="a day ahead"),
        pytest.param("2025-11-21T12:00:00.000001Z", 86400, id="more than a day ahead"),
    ],
)
def test_renew_time_ahead(time: str, limit: int | None) -> None:
    review = make_review(new=make_lease(put(RENEW, time)))
    found = [one.error.detail for one in findings(review).get("renew-time-in-future", ())]
    assert [detail.startswith(f"must not be more than {limit} s ahead of ") for detail in found] == [True] * bool(limit)


# ---- candidates -----------------------------------------------------------------------------------------------------


def candidate(*tweaks: Tweak, old: tuple[Tweak, ...] = ()) -> Document:
    return make_review(old=make_candidate(*old), new=make_candidate(*old, *tweaks))


EMPTY = LeaseCandidateSpec(lease_name="", binary_version="", emulation_version="", strategy="", preferred_strategies=[])
PINGED = LeaseCandidateSpec(ping_time="2025-11-20T12:00:00.000000Z")


@pytest.mark.parametrize(
    ("old", "new", "untouched"),
    [
        pytest.param(LeaseCandidateSpec(), EMPTY, True, id="absent and empty"),
        pytest.param(EMPTY, LeaseCandidateSpec(), True, id="empty and absent"),
        pytest.param(PINGED, PINGED, True, id="pinged before"),
        pytest.param(LeaseCandidateSpec(), PINGED, False, id="pinged now"),
    ],
)
def test_untouched_candidates(old: LeaseCandidateSpec, new: LeaseCandidateSpec, untouched: bool) -> None:
    assert is_candidate_untouched(old, new) is untouched


@pytest.mark.parametrize("name", ["binaryVersion", "emulationVersion", "strategy"])
@pytest.mark.parametrize(("old", "new"), [("", None), (None, "")])
def test_absent_and_empty_are_no_change(name: str, old: str | None, new: str | None) -> None:
    renewal = put(RENEW, "2025-11-20T12:00:05.000000Z")
    review = candidate(put(f"spec.{name}", new), renewal, old=(put(f"spec.{name}", old),))
    assert said("candidate-changed", review) == set()


def test_a_candidates_time_ahead_that_is_not_new_is_kept() -> None:
    ahead = put(RENEW, "2035-11-20T12:00:00.000000Z")
    review = candidate(put("spec.binaryVersion", "1.37.0"), old=(ahead,))
    assert said("candidate-renew-time-in-future", review) == set()
    assert said("candidate-renew-time-in-future", candidate(put("spec.binaryVersion", "1.37.0"), drop(RENEW))) == set()


# ---- the registry, and globs ----------------------------------------------------------------------------------------


def test_every_rule_is_asked_on_its_occasions_and_no_other() -> None:
    assert by_occasion(checked(RULES.values()).values()) == RULES_BY_OCCASION
    assert checked(RULES.values()) == RULES


@pytest.mark.parametrize("pod", ["a*", "a?", "a[b]", "a!b", HOLDER])
def test_a_pods_name_stands_for_itself(pod: str) -> None:
    assert holder_matches("${pod}_*", f"{pod}_1", pod)
    assert not holder_matches("${pod}_*", "ab_1", pod)
