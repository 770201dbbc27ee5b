"""Who may take a lease, and when: the clock is the API server's, inside the review."""

import pytest

from tests.factories import NOW, Document, changed, drop, make_entry, put
from tests.rules import dates_in_cel, wording
from tests.rules.findings import (
    DENY,
    FORBIDDEN,
    RIVAL,
    SECOND,
    by_node,
    by_service_account,
    by_user,
    change_of,
    findings,
    in_namespace,
    said,
    take,
    update,
    written,
)
from webhook.admission.rules.change import Event

HOLDER = "spec.holderIdentity"
DENIED = {(FORBIDDEN, HOLDER, DENY)}


def taken(at: str, **changes: object) -> Document:
    """The rival writes its own name; the API server stamps the write."""
    return update(written(take(RIVAL), at=at), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("review", "event"),
    [
        pytest.param(taken("2025-11-20T12:00:04Z"), Event.STEAL, id="4 s after the renewal was seen"),
        pytest.param(taken("2025-11-20T12:00:12Z"), Event.STEAL, id="just before the tolerance ends the duration"),
        pytest.param(taken("2025-11-20T12:00:13Z"), Event.TAKEOVER, id="at the duration less the tolerance"),
        pytest.param(taken("2025-11-20T12:00:15Z"), Event.TAKEOVER, id="at the duration"),
        pytest.param(
            taken("2025-11-20T12:00:15Z", old=[put("spec.renewTime", "2025-11-20T12:05:00.000000Z")]),
            Event.TAKEOVER,
            id="at the duration, though the holder's clock runs 5 min ahead",
        ),
        pytest.param(
            taken("2025-11-20T12:00:04Z", old=[put("spec.renewTime", "2025-11-20T11:00:00.000000Z")]),
            Event.STEAL,
            id="4 s after the renewal, though the holder's clock is an hour behind",
        ),
        pytest.param(taken("2025-11-20T12:00:04Z", old=[put(HOLDER, "")]), Event.CLAIM, id="of an empty holder"),
        pytest.param(taken("2025-11-20T12:00:04Z", old=[drop(HOLDER)]), Event.CLAIM, id="of no holder"),
        pytest.param(
            taken("2025-11-20T12:00:04Z", old=[drop("spec.leaseDurationSeconds")]), Event.TAKEOVER, id="of no duration"
        ),
        pytest.param(taken("2025-11-20T12:00:04Z", old=[drop("spec.renewTime")]), Event.TAKEOVER, id="of no renewTime"),
        pytest.param(
            taken("2025-11-20T12:00:04Z", old=[put("spec.renewTime", "0001-01-01T00:00:00.000000Z")]),
            Event.TAKEOVER,
            id="of the zero renewTime",
        ),
        pytest.param(
            taken("2025-11-20T12:00:04Z", old=[put("spec.renewTime", "-0001-12-31T23:00:00.000000Z")]),
            Event.STEAL,
            id="of a renewTime before year 0",
        ),
        pytest.param(
            taken("2025-11-20T12:00:04Z", old=[put("spec.renewTime", "10000-01-01T00:59:59.999999Z")]),
            Event.STEAL,
            id="of a renewTime after year 9999, 4 s after the write was seen",
        ),
        pytest.param(
            update(
                take(RIVAL),
                put("metadata.managedFields[0].time", "2025-11-20T12:00:03Z"),
                old=[put("spec.leaseDurationSeconds", 4)],
            ),
            Event.STEAL,
            id="of a short lease, one fifth of it before its end",
        ),
        pytest.param(
            update(
                take(RIVAL),
                put("metadata.managedFields[0].time", "2025-11-20T12:00:04Z"),
                old=[put("spec.leaseDurationSeconds", 4)],
            ),
            Event.TAKEOVER,
            id="of a short lease, at its end",
        ),
    ],
)
def test_a_live_lease_is_stolen_and_an_expired_one_taken_over(review: Document, event: Event) -> None:
    assert change_of(review).event is event
    expected = DENIED if event is Event.STEAL else set()
    assert said("takeover-before-expiry", review) == expected


def test_the_earliest_owner_counts_whoever_joined_it_from_the_future() -> None:
    joined = make_entry("renewTime", manager="intruder", time="2036-01-01T00:00:00Z")
    review = taken("2025-11-20T12:00:15Z", old=[lambda lease: lease["metadata"]["managedFields"].append(joined)])
    assert change_of(review).event is Event.TAKEOVER


def test_invented_entries_cannot_move_the_stamp_of_a_steal() -> None:
    """The writer's own entry and an invented one folded into ancient-changes, with the invented time."""
    review = update(
        take(RIVAL),
        put("metadata.managedFields[0].manager", "ancient-changes"),
        put("metadata.managedFields[0].time", "2036-01-01T00:00:00Z"),
    )
    assert change_of(review, now=NOW + 4 * SECOND).event is Event.STEAL


def test_a_stamp_moved_to_the_past_by_an_earlier_write_looks_expired() -> None:
    review = update(
        written(take(RIVAL), at="2025-11-20T12:00:04Z"),
        old=[put("metadata.managedFields[0].time", "2025-11-20T11:59:00Z")],
    )
    assert change_of(review).event is Event.TAKEOVER


def test_a_co_owner_without_a_time_is_passed_over() -> None:
    co_owner = make_entry("renewTime", manager="applier")
    del co_owner["time"]
    review = taken("2025-11-20T12:00:15Z", old=[lambda lease: lease["metadata"]["managedFields"].append(co_owner)])
    assert change_of(review).event is Event.TAKEOVER


def test_without_an_owner_of_renew_time_no_other_field_counts() -> None:
    review = update(
        written(take(RIVAL), at="2025-11-20T12:00:04Z"),
        old=[put("metadata.managedFields[0].fieldsV1", {"f:spec": {"f:holderIdentity": {}}})],
    )
    assert change_of(review).event is Event.STEAL
    assert findings(review)["takeover-before-expiry"][0].without_stamps


WITHOUT_STAMPS = [drop("metadata.managedFields")]


@pytest.mark.parametrize(
    ("now", "old", "event"),
    [
        pytest.param(NOW + 4 * SECOND, (), Event.STEAL, id="renewTime 4 s ago"),
        pytest.param(NOW + 15 * SECOND, (), Event.TAKEOVER, id="renewTime 15 s ago"),
        pytest.param(
            NOW,
            [put("spec.renewTime", "2025-11-20T13:00:00.000000Z")],
            Event.STEAL,
            id="renewTime an hour ahead counts as now",
        ),
    ],
)
def test_without_stamps_the_holders_clock_decides_and_is_named(now: int, old: list[object], event: Event) -> None:
    review = update(take(RIVAL), old=[*WITHOUT_STAMPS, *old])  # type: ignore[list-item]
    assert change_of(review, now=now).event is event
    raised = findings(review, now=now)
    assert ("takeover-before-expiry" in raised) == (event is Event.STEAL)
    assert all(one.without_stamps for one in raised.get("takeover-before-expiry", ()))
    assert said("lease-without-stamps", review, now=now) == {(FORBIDDEN, "metadata.managedFields", DENY)}
    if event is Event.STEAL:
        assert "the holder's clock" in str(raised["takeover-before-expiry"][0].error)


def test_a_label_under_the_holders_manager_keeps_the_lease_live() -> None:
    """It moved the stamp a day after the last renewal; this errs towards "still held"."""
    review = update(
        written(take(RIVAL), at="2025-11-21T12:00:18Z"),
        old=[put("metadata.managedFields[0].time", "2025-11-21T12:00:16Z")],
    )
    assert change_of(review, now=NOW + 86_418 * SECOND).event is Event.STEAL


def test_a_write_without_a_stamp_of_its_own_is_measured_by_our_clock() -> None:
    """ManagedFields emptied in the same write: the deny stands, because the last renewal is the API server's."""
    review = update(take(RIVAL), put("metadata.managedFields", []))
    (finding,) = findings(review, now=NOW + 4 * SECOND)["takeover-before-expiry"]
    assert not finding.without_stamps
    assert change_of(review, now=NOW + 15 * SECOND).event is Event.TAKEOVER


@pytest.mark.parametrize(
    ("rule", "tweaks", "expected"),
    [
        pytest.param("takeover-by-node", [by_node("n1")], DENIED, id="by a node"),
        pytest.param("takeover-by-node", [by_user("admin")], set(), id="by no node"),
        pytest.param(
            "takeover-by-node",
            [by_node(RIVAL), in_namespace("kube-node-lease", RIVAL)],
            set(),
            id="by a node that puts its own name back",
        ),
        pytest.param(
            "takeover-by-node",
            [by_node("n1"), in_namespace("kube-node-lease", "n1")],
            DENIED,
            id="by a node that writes another name",
        ),
        pytest.param(
            "takeover-across-namespaces",
            [by_service_account("guest", "intruder")],
            DENIED,
            id="by a service account of another namespace",
        ),
        pytest.param(
            "takeover-across-namespaces",
            [by_service_account("shop", "other")],
            set(),
            id="by a service account of the same namespace",
        ),
        pytest.param("takeover-across-namespaces", [by_user("dev")], set(), id="by a user of no namespace"),
        pytest.param(
            "takeover-across-namespaces",
            [put("request.userInfo", None)],
            set(),
            id="by an unknown writer",
        ),
    ],
)
def test_who_takes_a_live_lease(rule: str, tweaks: list[object], expected: set[object]) -> None:
    review = changed(taken("2025-11-20T12:00:04Z"), *tweaks)  # type: ignore[arg-type]
    assert said(rule, review) == expected
    late = changed(taken("2025-11-20T12:00:15Z"), *tweaks)  # type: ignore[arg-type]
    assert said(rule, late) == set(), "an expired lease may be taken"


WORDING = [
    pytest.param(
        "takeover-before-expiry",
        update(wording.STOLEN),
        (
            'spec.holderIdentity: Forbidden: lease "shop/checkout" is held by "checkout-6d5f9c-x2x8p_1f0e", '
            "last renewed 4 s ago (12:00:00Z, API server clock), duration 15 s; retry in 11 s, or ask the "
            "holder to release it"
        ),
        (
            'lease "shop/checkout" was taken from "checkout-6d5f9c-x2x8p_1f0e" 11 s before expiry: '
            "there may be two leaders"
        ),
        id="a steal",
    ),
    pytest.param(
        "takeover-before-expiry",
        update(take(RIVAL), old=[wording.STAMPLESS]),
        (
            'spec.holderIdentity: Forbidden: lease "shop/checkout" is held by "checkout-6d5f9c-x2x8p_1f0e", '
            "last renewed 4 s ago (12:00:00Z, the holder's clock), duration 15 s; retry in 11 s, or ask the "
            "holder to release it"
        ),
        (
            'lease "shop/checkout" was taken from "checkout-6d5f9c-x2x8p_1f0e" 11 s before expiry '
            "by its holder's clock: there may be two leaders"
        ),
        id="a steal without stamps",
    ),
    pytest.param(
        "takeover-by-node",
        update(wording.STOLEN, review=[by_node("n1")]),
        (
            'spec.holderIdentity: Forbidden: lease "shop/checkout" is held by "checkout-6d5f9c-x2x8p_1f0e", '
            'last renewed 4 s ago (12:00:00Z, API server clock), duration 15 s, and "system:node:n1" is a '
            "node; retry in 11 s, or ask the holder to release it"
        ),
        (
            'lease "shop/checkout" was taken from "checkout-6d5f9c-x2x8p_1f0e" 11 s before expiry: '
            "there may be two leaders"
        ),
        id="a node",
    ),
    pytest.param(
        "takeover-across-namespaces",
        update(wording.STOLEN, review=[wording.INTRUDER]),
        (
            'spec.holderIdentity: Forbidden: lease "shop/checkout" is held by "checkout-6d5f9c-x2x8p_1f0e", '
            "last renewed 4 s ago (12:00:00Z, API server clock), duration 15 s, and "
            '"system:serviceaccount:guest:intruder" belongs to another namespace; retry in 11 s, or ask the '
            "holder to release it"
        ),
        (
            'lease "shop/checkout" was taken from "checkout-6d5f9c-x2x8p_1f0e" 11 s before expiry: '
            "there may be two leaders"
        ),
        id="another namespace",
    ),
]

WHERE_CEL_DIFFERS = dict.fromkeys(
    ("takeover-before-expiry", "takeover-by-node", "takeover-across-namespaces"), dates_in_cel.is_undated
)
