"""The model must notice when the webhook gets worse: each mutation here makes a law or the list of threats fail."""

from collections.abc import Iterator, Sequence

import pytest

from tests.model import attacker, world
from tests.model.attacker import ATTACKERS, threats, works
from tests.model.honest_search import PLACES, explore
from tests.model.world import LawBrokenError
from webhook.admission import evaluate as evaluation
from webhook.admission.rules import change, expiry
from webhook.admission.rules.checks import Checks
from webhook.admission.rules.election import identity_binding
from webhook.admission.rules.registry import RULES
from webhook.kubernetes.managed_fields import Entry

pytestmark = pytest.mark.deep

POD = "a pod of the same namespace"
TWO_SECONDS_APART = PLACES[0]


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> Iterator[None]:
    world.verdict_of.cache_clear()
    yield
    world.verdict_of.cache_clear()


@pytest.fixture(scope="module")
def listed() -> set[attacker.Trace]:
    """Return what the search finds in strict before anything is changed."""
    world.verdict_of.cache_clear()
    return set(threats(world.STRICT, ATTACKERS[POD], 2))


def without(monkeypatch: pytest.MonkeyPatch, *ids: str) -> None:
    others = [rule for rule in RULES.values() if rule.id not in ids]
    monkeypatch.setattr(evaluation, "CHECKS", Checks(others))


def test_without_the_tamper_rule_there_are_more_threats(
    monkeypatch: pytest.MonkeyPatch, listed: set[attacker.Trace]
) -> None:
    without(monkeypatch, "renewal-stamp-tampered")
    more = set(threats(world.STRICT, ATTACKERS[POD], 2)) - listed
    assert ("date the stamps back, with a label added", "take the lease") in more
    assert ("empty managedFields", "take the lease") in more


def test_a_binding_keeps_stamps_without_the_tamper_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "renewal-stamp-tampered")
    assert list(threats("strict, bound", ATTACKERS[POD], 1)) == []


def test_a_binding_that_compares_no_managed_fields_needs_the_tamper_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "renewal-stamp-tampered")
    monkeypatch.setattr(identity_binding, "is_same_list", lambda *_: True)
    with pytest.raises(LawBrokenError, match="change the stamp of the last renewal"):
        list(threats("strict, bound", ATTACKERS[POD], 1))


def test_with_the_latest_owner_of_renew_time_believed_there_are_more_threats(
    monkeypatch: pytest.MonkeyPatch, listed: set[attacker.Trace]
) -> None:
    def latest(entries: Sequence[Entry]) -> int | None:
        stamps = (entry.stamp for entry in entries if entry.owns_renew_time)
        return max((stamp for stamp in stamps if stamp is not None), default=None)

    monkeypatch.setattr(expiry, "date_last_renewal", latest)
    more = set(threats(world.STRICT, ATTACKERS[POD], 2)) - listed
    assert ("own renewTime by an invented apply entry of a year ahead", "take the lease") in more


def test_with_a_fold_believed_one_write_takes_a_live_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    def any_owner(entries: Sequence[Entry], _before: Sequence[Entry], field: str, now: int) -> int:
        stamps = (entry.stamp for entry in entries if field in entry.owned.spec)
        return min((stamp for stamp in stamps if stamp is not None), default=now)

    without(monkeypatch, "renewal-stamp-tampered")
    alone = ("take the lease beside twelve entries an hour ahead",)
    assert alone not in set(threats(world.STRICT, ATTACKERS[POD], 1))
    world.verdict_of.cache_clear()
    monkeypatch.setattr(change, "date_write_by_field", any_owner)
    assert alone in set(threats(world.STRICT, ATTACKERS[POD], 1))


def test_with_an_owner_of_before_believed_two_writes_take_a_live_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    believed = expiry.date_write_by_field

    def any_stamp(entries: Sequence[Entry], _before: Sequence[Entry], field: str, now: int) -> int:
        return believed(entries, (), field, now)

    steps = (
        "own holderIdentity by an invented apply entry of a year ahead",
        "take the lease beside an entry that makes Kubernetes 1.37 keep the stored ones",
    )
    assert not works(steps, world.STRICT, ATTACKERS[POD])
    world.verdict_of.cache_clear()
    monkeypatch.setattr(change, "date_write_by_field", any_stamp)
    assert works(steps, world.STRICT, ATTACKERS[POD])


def test_without_the_tolerance_an_honest_takeover_is_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(duration_seconds: int | None) -> int:
        return 0

    monkeypatch.setattr(expiry, "find_tolerance", none)
    with pytest.raises(LawBrokenError, match="takeover after the server-observed duration"):
        explore(TWO_SECONDS_APART, 3)


def test_without_the_rule_about_steals_strict_lets_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "takeover-before-expiry")
    with pytest.raises(LawBrokenError, match="strict must deny a steal"):
        explore(next(place for place in PLACES if place.text.startswith("fabric8 hours ahead")), 2)


def test_without_the_rule_about_bindings_a_stranger_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "identity-binding")
    with pytest.raises(LawBrokenError, match="lets a stranger write"):
        list(threats("strict, bound", ATTACKERS[POD], 1))


@pytest.mark.parametrize("rule", ["duration-shortened", "foreign-release", "live-lease-deleted"])
def test_without_one_of_strict_s_rules_there_are_more_threats(
    monkeypatch: pytest.MonkeyPatch, listed: set[attacker.Trace], rule: str
) -> None:
    without(monkeypatch, rule)
    assert set(threats(world.STRICT, ATTACKERS[POD], 2)) - listed
