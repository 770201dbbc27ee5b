"""What a write is called: exactly one word for any UPDATE of a Lease."""

import pytest

from tests.factories import (
    Document,
    Tweak,
    changed,
    drop,
    make_candidate,
    make_lease,
    make_review,
    put,
)
from tests.rules.findings import RIVAL, candidate_updated, change_of, take, update, written
from webhook.admission.rules.change import CandidateChange, Event, LeaseChange, is_candidate_untouched
from webhook.kubernetes.objects import LeaseCandidateSpec

RENEW = "spec.renewTime"
DURATION = "spec.leaseDurationSeconds"
COUNT = "spec.leaseTransitions"
ACQUIRE = "spec.acquireTime"
LATER = "2025-11-20T12:00:02.000000Z"
ZERO = "0001-01-01T00:00:00.000000Z"
S, P = "spec.strategy", "spec.preferredHolder"


@pytest.mark.parametrize(
    ("event", "new", "old"),
    [
        pytest.param(Event.UNTOUCHED, [put("metadata.labels.a", "1")], [], id="a label"),
        pytest.param(Event.UNTOUCHED, [drop("spec.holderIdentity")], [take("")], id="an empty holder and none are one"),
        pytest.param(Event.UNTOUCHED, [put(S, "")], [], id="an empty strategy and none are one"),
        pytest.param(Event.UNTOUCHED, [put(P, "")], [], id="an empty preferredHolder and none are one"),
        pytest.param(Event.UNTOUCHED, [put(ACQUIRE, ZERO)], [drop(ACQUIRE)], id="the zero time and none are one"),
        pytest.param(
            Event.UNTOUCHED,
            [put(RENEW, "0001-01-01T01:00:00.000000+01:00")],
            [put(RENEW, None)],
            id="the zero time in any zone",
        ),
        pytest.param(
            Event.UNTOUCHED, [put(RENEW, "2025-11-20T13:00:00.000000+01:00")], [], id="one instant in another zone"
        ),
        pytest.param(Event.UNTOUCHED, [put("metadata.labels.a", "1")], [put(ACQUIRE, "noise")], id="noise that stays"),
        pytest.param(Event.RENEWAL, [put(RENEW, LATER)], [], id="renewTime alone"),
        pytest.param(Event.RENEWAL, [put(RENEW, LATER), put(DURATION, 5)], [], id="with a shorter duration"),
        pytest.param(Event.RENEWAL, [put(RENEW, LATER), put(ACQUIRE, LATER)], [], id="with a new acquireTime"),
        pytest.param(Event.RENEWAL, [put(RENEW, LATER), drop(ACQUIRE)], [], id="with acquireTime removed"),
        pytest.param(Event.RENEWAL, [put(ACQUIRE, "noise")], [], id="acquireTime to noise"),
        pytest.param(Event.RENEWAL, [put(RENEW, LATER), put(COUNT, 0)], [drop(COUNT)], id="transitions absent to 0"),
        pytest.param(
            Event.RENEWAL,
            [put(RENEW, LATER), drop(S), drop(P)],
            [put(S, "a/b"), put(P, "x")],
            id="strategy and preferredHolder cleared",
        ),
        pytest.param(
            Event.RENEWAL, [put(RENEW, LATER)], [put(S, "a/b"), put(P, "x")], id="strategy and preferredHolder kept"
        ),
        pytest.param(Event.RENEWAL, [put(RENEW, LATER)], [drop(RENEW)], id="renewTime set if there was none"),
        pytest.param(Event.RENEWAL, [put(RENEW, LATER)], [drop(DURATION)], id="without a duration before and after"),
        pytest.param(Event.RENEWAL, [put(RENEW, LATER)], [take("")], id="of a lease without a holder"),
        pytest.param(
            Event.RENEWAL,
            [put(RENEW, LATER), put("metadata.deletionTimestamp", "2025-11-20T12:00:00Z")],
            [],
            id="while being deleted",
        ),
        pytest.param(Event.EDIT, [put(COUNT, 6)], [], id="transitions alone"),
        pytest.param(Event.EDIT, [put(RENEW, LATER), drop(COUNT)], [put(COUNT, 0)], id="transitions 0 to absent"),
        pytest.param(Event.EDIT, [drop(RENEW)], [], id="renewTime removed"),
        pytest.param(Event.EDIT, [put(RENEW, ZERO)], [], id="renewTime to the zero time"),
        pytest.param(Event.EDIT, [put(RENEW, LATER), drop(DURATION)], [], id="duration removed"),
        pytest.param(Event.EDIT, [put(RENEW, LATER), put(S, "a/b")], [], id="strategy introduced"),
        pytest.param(Event.EDIT, [put(RENEW, LATER), put(P, "y")], [put(P, "x")], id="preferredHolder changed"),
        pytest.param(
            Event.DELETE,
            [drop("metadata.finalizers")],
            [put("metadata.finalizers", ["a/b"]), put("metadata.deletionTimestamp", "2025-11-20T12:00:01Z")],
            id="the last finalizer of a deleted lease removed",
        ),
        pytest.param(Event.RELEASE, [take("")], [], id="holder emptied"),
        pytest.param(Event.RELEASE, [put("spec", {})], [], id="everything removed"),
        pytest.param(Event.CLAIM, [take(RIVAL)], [take("")], id="from an empty holder"),
        pytest.param(Event.CLAIM, [put("spec", {"holderIdentity": RIVAL})], [put("spec", None)], id="from no spec"),
        pytest.param(Event.STEAL, [written(take(RIVAL), at="2025-11-20T12:00:02Z")], [], id="of a live lease"),
        pytest.param(Event.TAKEOVER, [written(take(RIVAL), at="2025-11-20T12:01:00Z")], [], id="of an expired lease"),
    ],
)
def test_updates_of_a_lease(event: Event, new: list[Tweak], old: list[Tweak]) -> None:
    assert change_of(update(*new, old=old)).event is event


def test_create_and_delete() -> None:
    assert change_of(make_review(new=make_lease())).event is Event.CREATE
    deletion = change_of(make_review(old=make_lease()))
    assert isinstance(deletion, LeaseChange)
    assert deletion.event is Event.DELETE
    assert deletion.new_holder == ""
    assert deletion.new_metadata.name is None


@pytest.mark.parametrize(
    ("event", "new"),
    [
        pytest.param(Event.UNTOUCHED, put("metadata.labels.a", "1"), id="a label"),
        pytest.param(Event.UNTOUCHED, put("spec.pingTime", ZERO), id="the zero pingTime and none are one"),
        pytest.param(Event.UPDATE, put("spec.renewTime", LATER), id="a renewal"),
        pytest.param(Event.UPDATE, put("spec.pingTime", LATER), id="a ping"),
        pytest.param(Event.UPDATE, put("spec.leaseName", "other"), id="leaseName"),
        pytest.param(Event.UPDATE, put("spec.binaryVersion", "1.37.0"), id="binaryVersion"),
        pytest.param(Event.UPDATE, drop("spec.emulationVersion"), id="emulationVersion"),
        pytest.param(Event.UPDATE, put("spec.strategy", "a/b"), id="strategy"),
        pytest.param(Event.UNTOUCHED, put("spec.preferredStrategies", ["a/b"]), id="a field of v1alpha1"),
    ],
)
def test_updates_of_a_candidate(event: Event, new: Tweak) -> None:
    before = make_candidate()
    assert change_of(make_review(old=before, new=changed(before, new))).event is event


@pytest.mark.parametrize(
    ("event", "strategies"),
    [
        pytest.param(Event.UNTOUCHED, ["a/b", "c/d"], id="the same"),
        pytest.param(Event.UPDATE, ["c/d", "a/b"], id="another order"),
        pytest.param(Event.UPDATE, ["a/b"], id="one removed"),
        pytest.param(Event.UPDATE, None, id="removed"),
    ],
)
def test_updates_of_preferred_strategies(event: Event, strategies: list[str] | None) -> None:
    review = candidate_updated(
        put("spec.preferredStrategies", strategies),
        old=(put("spec.preferredStrategies", ["a/b", "c/d"]),),
        version="v1alpha1",
    )
    assert change_of(review).event is event


def test_create_and_delete_of_a_candidate() -> None:
    created = change_of(make_review(new=make_candidate()))
    assert isinstance(created, CandidateChange)
    assert created.event is Event.CREATE
    assert created.old_spec.lease_name is None
    deleted: Document = make_review(old=make_candidate())
    assert change_of(deleted).event is Event.DELETE


def test_facts_are_worked_out_once_and_readable_on_the_class() -> None:
    change = change_of(make_review(new=make_lease()))
    assert change.set_fields is change.set_fields
    assert type(change).set_fields.__doc__ == "Return what this write added or changed."


EMPTY = LeaseCandidateSpec(lease_name="", binary_version="", emulation_version="")


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
