"""What a LeaseCandidate may become, and who may ping it."""

import pytest

from tests.factories import (
    Document,
    drop,
    make_candidate,
    make_entry,
    make_review,
    put,
)
from tests.rules.findings import (
    DAY,
    DENY,
    FORBIDDEN,
    HOUR,
    INVALID,
    SECOND,
    WARN,
    at,
    by_service_account,
    by_user,
    candidate_updated,
    said,
)
from webhook.admission.rules.holders import Binding

RENEW = "spec.renewTime"

PING = "spec.pingTime"

ELSEWHERE = by_service_account("guest", "intruder")
LISTED = Binding(service_accounts=frozenset({("guest", "intruder")}), holders=("*",))
CHANGED = put("spec.binaryVersion", "1.99.0")
PINGED = put(PING, "2025-11-20T12:00:00.000000Z")


@pytest.mark.parametrize(
    ("review", "speaks"),
    [
        pytest.param(candidate_updated(PINGED), True, id="set"),
        pytest.param(candidate_updated(put(PING, "2025-11-20T12:00:01.000000Z"), old=(PINGED,)), True, id="changed"),
        pytest.param(make_review(new=make_candidate(PINGED)), True, id="set on CREATE"),
        pytest.param(candidate_updated(drop(PING), old=(PINGED,)), False, id="cleared"),
        pytest.param(
            candidate_updated(put("spec.renewTime", "2025-11-20T12:00:01.000000Z"), old=(PINGED,)), False, id="kept"
        ),
        pytest.param(
            candidate_updated(put(PING, "2025-11-20T13:00:00.000000+01:00"), put("spec.leaseName", "b"), old=(PINGED,)),
            False,
            id="the same instant in another zone",
        ),
    ],
)
def test_ping_time_writer(review: Document, speaks: bool) -> None:
    assert said("ping-time-writer", review) == ({(FORBIDDEN, PING, DENY)} if speaks else set())


@pytest.mark.parametrize(
    ("review", "fields"),
    [
        pytest.param(candidate_updated(put("spec.binaryVersion", "1.37.0")), {"binaryVersion"}, id="binaryVersion"),
        pytest.param(
            candidate_updated(put("spec.emulationVersion", "1.35.0")), {"emulationVersion"}, id="emulationVersion"
        ),
        pytest.param(candidate_updated(put("spec.strategy", "a/b")), {"strategy"}, id="strategy"),
        pytest.param(
            candidate_updated(put("spec.preferredStrategies", ["a/b"]), version="v1alpha1"),
            {"preferredStrategies"},
            id="preferredStrategies",
        ),
        pytest.param(
            candidate_updated(put("spec.strategy", "a/b"), drop("spec.emulationVersion")),
            {"strategy", "emulationVersion"},
            id="two at once",
        ),
        pytest.param(candidate_updated(put("spec.renewTime", "2025-11-20T12:00:01.000000Z")), set(), id="a renewal"),
    ],
)
def test_candidate_changed(review: Document, fields: set[str]) -> None:
    assert said("candidate-changed", review) == {(FORBIDDEN, f"spec.{field}", DENY) for field in fields}


@pytest.mark.parametrize(
    ("review", "tier"),
    [
        pytest.param(candidate_updated(put(RENEW, at(10 * SECOND))), None, id="10 s ahead"),
        pytest.param(candidate_updated(put(RENEW, at(10 * SECOND + 1))), WARN, id="more than 10 s ahead"),
        pytest.param(candidate_updated(put(RENEW, at(DAY + 1))), DENY, id="more than a day ahead"),
        pytest.param(make_review(new=make_candidate(put(RENEW, at(DAY + 1)))), DENY, id="on CREATE"),
        pytest.param(
            candidate_updated(put(RENEW, at(3 * DAY)), old=(put(RENEW, at(2 * DAY)),)),
            WARN,
            id="a day ahead of the old value",
        ),
        pytest.param(
            candidate_updated(put("spec.leaseName", "other"), old=(put(RENEW, at(9 * DAY)),)), None, id="what was there"
        ),
        pytest.param(candidate_updated(put(RENEW, None)), None, id="removed"),
    ],
)
def test_candidate_renew_time_in_future(review: Document, tier: object) -> None:
    assert said("candidate-renew-time-in-future", review) == ({(INVALID, RENEW, tier)} if tier else set())


@pytest.mark.parametrize(
    ("review", "speaks"),
    [
        pytest.param(candidate_updated(put(RENEW, at(-HOUR))), False, id="an hour back"),
        pytest.param(candidate_updated(put(RENEW, at(-HOUR - 1))), True, id="more than an hour back"),
        pytest.param(candidate_updated(put(RENEW, None)), False, id="removed"),
        pytest.param(candidate_updated(put(RENEW, at(0)), old=(drop(RENEW),)), False, id="set if there was none"),
    ],
)
def test_candidate_renew_time_backwards(review: Document, speaks: bool) -> None:
    assert said("candidate-renew-time-backwards", review) == ({(INVALID, RENEW, DENY)} if speaks else set())


@pytest.mark.parametrize("name", ["binaryVersion", "emulationVersion", "strategy"])
@pytest.mark.parametrize(("old", "new"), [("", None), (None, "")])
def test_absent_and_empty_are_no_change(name: str, old: str | None, new: str | None) -> None:
    renewal = put(RENEW, "2025-11-20T12:00:05.000000Z")
    review = candidate_updated(put(f"spec.{name}", new), renewal, old=(put(f"spec.{name}", old),))
    assert said("candidate-changed", review) == set()


def test_an_owner_that_was_there_before_does_not_date_a_renewal() -> None:
    planted = make_entry("renewTime", manager="x", time="2035-11-20T12:00:00Z")
    entries = put("metadata.managedFields", [planted])
    review = candidate_updated(put(RENEW, "2034-11-20T12:00:00.000000Z"), old=(entries,))
    assert said("candidate-renew-time-in-future", review) == {(INVALID, RENEW, DENY)}


def test_a_candidates_time_ahead_that_is_not_new_is_kept() -> None:
    ahead = put(RENEW, "2035-11-20T12:00:00.000000Z")
    review = candidate_updated(put("spec.binaryVersion", "1.37.0"), old=(ahead,))
    assert said("candidate-renew-time-in-future", review) == set()
    assert (
        said("candidate-renew-time-in-future", candidate_updated(put("spec.binaryVersion", "1.37.0"), drop(RENEW)))
        == set()
    )


@pytest.mark.parametrize(
    ("review", "binding", "speaks"),
    [
        pytest.param(make_review(ELSEWHERE, new=make_candidate()), None, True, id="of another namespace, on CREATE"),
        pytest.param(
            make_review(ELSEWHERE, old=make_candidate(), new=make_candidate(CHANGED)), None, True, id="UPDATE"
        ),
        pytest.param(make_review(ELSEWHERE, old=make_candidate()), None, False, id="DELETE"),
        pytest.param(make_review(ELSEWHERE, new=make_candidate()), Binding(), True, id="of a bound lease"),
        pytest.param(make_review(ELSEWHERE, new=make_candidate()), LISTED, False, id="by a bound writer"),
        pytest.param(make_review(by_service_account("shop", "x"), new=make_candidate()), None, False, id="of its own"),
        pytest.param(make_review(by_user("dev"), new=make_candidate()), None, False, id="a user"),
    ],
)
def test_a_candidate_by_a_service_account(review: Document, binding: Binding | None, speaks: bool) -> None:
    expected = {(FORBIDDEN, "spec.leaseName", DENY)} if speaks else set()
    assert said("candidate-across-namespaces", review, binding=binding) == expected


WORDING = [
    pytest.param(
        "candidate-across-namespaces",
        make_review(by_service_account("guest", "intruder"), new=make_candidate()),
        (
            'spec.leaseName: Forbidden: "system:serviceaccount:guest:intruder" belongs to another namespace; the API '
            'server may make this candidate the holder of lease "checkout"; bind that lease'
        ),
        '"system:serviceaccount:guest:intruder" of another namespace wrote a candidate of lease "shop/checkout": it '
        "may become the leader",
        id="a candidate by another namespace",
    ),
    pytest.param(
        "ping-time-writer",
        candidate_updated(put("spec.pingTime", "2025-11-20T12:00:11.000000Z")),
        (
            "spec.pingTime: Forbidden: pingTime may be set by the API server's coordinated leader election "
            "only; leave it as it is"
        ),
        "a client set pingTime: the election may leave this candidate out",
        id="pingTime set",
    ),
    pytest.param(
        "candidate-renew-time-in-future",
        candidate_updated(put("spec.renewTime", "2025-11-20T12:00:20.000000Z")),
        (
            'spec.renewTime: Invalid value: "2025-11-20T12:00:20.000000Z": must not be more than 10 s ahead '
            "of the API server (12:00:04Z), is 16 s ahead; write the current time, or set the client's clock"
        ),
        "renewTime is 16 s ahead of the API server (12:00:04Z): set the client's clock",
        id="a candidate 16 seconds ahead",
    ),
    pytest.param(
        "candidate-renew-time-backwards",
        candidate_updated(put("spec.renewTime", "2025-11-20T10:59:59.000000Z")),
        (
            'spec.renewTime: Invalid value: "2025-11-20T10:59:59.000000Z": must not be more than 3600 s '
            "before the old value; check the candidate's clock"
        ),
        "renewTime moved back by 1 h 0 min: the election may leave this candidate out",
        id="a candidate an hour back",
    ),
    pytest.param(
        "candidate-changed",
        candidate_updated(put("spec.binaryVersion", "1.37.0")),
        (
            "spec.binaryVersion: Forbidden: binaryVersion may not change after creation; delete and "
            "recreate the candidate"
        ),
        "binaryVersion changed after creation: the election may choose another leader",
        id="a candidate changed",
    ),
]


def is_of_an_item(_request: Document, field: str) -> bool:
    """Each item is validated before a policy is evaluated."""
    return field.startswith("spec.preferredStrategies[")


WHERE_CEL_DIFFERS = {"candidate-preferred-strategies": is_of_an_item}
TEXT_DIFFERS_IN_CEL = {
    "candidate-lease-name-format": r": (a lowercase RFC 1123 subdomain .*|must be a valid name of a Lease.*)",
    "candidate-strategies-unique": r"\[\d+\]",
}
