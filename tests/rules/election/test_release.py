"""Releases of a live lease by others than its holder."""

import pytest

from tests.factories import NOW, Document, Tweak, drop, make_entry, put
from tests.rules import dates_in_cel, wording
from tests.rules.findings import (
    DENY,
    FORBIDDEN,
    SECOND,
    by_service_account,
    by_user,
    said,
    take,
    update,
    written,
)

HOLDER_FIELD = "spec.holderIdentity"

POD = "checkout-6d5f9c-x2x8p"

DENIED = {(FORBIDDEN, HOLDER_FIELD, DENY)}


def release(*tweaks: Tweak, at: str = "2025-11-20T12:00:04Z", by: Tweak) -> Document:
    return update(written(take(""), *tweaks, at=at), review=[by])


@pytest.mark.parametrize(
    ("review", "foreign", "across"),
    [
        pytest.param(release(by=by_service_account("shop", "checkout", POD)), False, False, id="by the holder's pod"),
        pytest.param(release(by=by_service_account("shop", "checkout", "other-1")), True, False, id="by another pod"),
        pytest.param(
            release(by=by_service_account("guest", "intruder", "x-1")), True, True, id="by a pod of another namespace"
        ),
        pytest.param(
            release(by=by_service_account("guest", "intruder")),
            False,
            True,
            id="by a token of another namespace without a pod",
        ),
        pytest.param(
            release(by=by_service_account("guest", "intruder", POD)),
            False,
            True,
            id="by a pod of another namespace that bears the holder's name",
        ),
        pytest.param(
            release(by=by_service_account("shop", "checkout", POD.rpartition("-")[0])),
            True,
            False,
            id="by a pod whose name begins the holder's",
        ),
        pytest.param(release(by=by_user("dev")), False, False, id="by a user"),
        pytest.param(
            release(by=by_service_account("guest", "intruder", "x-1"), at="2025-11-20T12:00:15Z"),
            False,
            False,
            id="after expiry",
        ),
    ],
)
def test_foreign_release(review: Document, foreign: bool, across: bool) -> None:
    assert said("foreign-release", review) == (DENIED if foreign else set())
    assert said("foreign-release-across-namespaces", review) == (DENIED if across else set())


def test_a_release_to_null_is_measured_by_our_clock() -> None:
    unowned = drop("metadata.managedFields[0].fieldsV1.f:spec.f:holderIdentity")
    review = update(drop(HOLDER_FIELD), unowned, review=[by_service_account("guest", "intruder", "x-1")])
    assert said("foreign-release", review, now=NOW + 4 * SECOND) == DENIED
    assert said("foreign-release", review, now=NOW + 15 * SECOND) == set()


@pytest.mark.parametrize("operation", ["Update", "Apply"])
def test_who_claims_to_own_a_removed_holder_does_not_date_the_release(operation: str) -> None:
    """An hour later the lease would have expired."""
    unowned = drop("metadata.managedFields[0].fieldsV1.f:spec.f:holderIdentity")
    planted = make_entry("holderIdentity", manager="z", time="2025-11-20T13:00:00Z") | {"operation": operation}

    def plant(lease: Document) -> None:
        lease["metadata"]["managedFields"].append(planted)

    review = update(drop(HOLDER_FIELD), unowned, plant, review=[by_service_account("guest", "intruder", "x-1")])
    for rule in ("foreign-release", "foreign-release-across-namespaces"):
        assert said(rule, review, now=NOW + 4 * SECOND) == DENIED


WORDING = [
    pytest.param(
        "foreign-release",
        update(put("spec.holderIdentity", ""), review=[by_service_account("shop", "x", "other-1")]),
        (
            "spec.holderIdentity: Forbidden: this write clears the holder of a live lease, which only "
            '"checkout-6d5f9c-x2x8p_1f0e" may do, not pod "other-1"; delete the pod of '
            '"checkout-6d5f9c-x2x8p_1f0e", or wait 15 s'
        ),
        (
            'lease "shop/checkout" was released on behalf of "checkout-6d5f9c-x2x8p_1f0e" 15 s before expiry: '
            "there may be two leaders"
        ),
        id="a release by another pod",
    ),
    pytest.param(
        "foreign-release-across-namespaces",
        update(put("spec.holderIdentity", ""), review=[wording.INTRUDER]),
        (
            "spec.holderIdentity: Forbidden: this write clears the holder of a live lease, which only "
            '"checkout-6d5f9c-x2x8p_1f0e" may do, not "system:serviceaccount:guest:intruder" of another '
            'namespace; delete the pod of "checkout-6d5f9c-x2x8p_1f0e", or wait 15 s'
        ),
        (
            'lease "shop/checkout" was released on behalf of "checkout-6d5f9c-x2x8p_1f0e" 15 s before expiry: '
            "there may be two leaders"
        ),
        id="a release from another namespace",
    ),
]


def is_beyond_cel(request: Document, _field: str) -> bool:
    return dates_in_cel.is_undated(request) or dates_in_cel.has_long_holder(request)


WHERE_CEL_DIFFERS = {
    "foreign-release": is_beyond_cel,
    "foreign-release-across-namespaces": dates_in_cel.is_undated,
}
