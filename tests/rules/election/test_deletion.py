"""Deletions of a live lease."""

import pytest

from tests.factories import NOW, Document, Tweak, changed, drop, make_lease, make_review, put
from tests.rules import wording
from tests.rules.findings import (
    DENY,
    FORBIDDEN,
    RIVAL,
    SECOND,
    WARN,
    by_service_account,
    by_user,
    deleted,
    said,
    take,
)


def finalized(*tweaks: Tweak, deleted_at: str | None = "2025-11-20T12:00:01Z") -> Document:
    """An UPDATE that removes the last finalizer of a lease whose deletion waits for it."""
    finalizers = put("metadata.finalizers", ["example.com/keep"])
    before = make_lease(finalizers, put("metadata.deletionTimestamp", deleted_at))
    return make_review(old=before, new=changed(before, drop("metadata.finalizers"), *tweaks))


@pytest.mark.parametrize(
    ("review", "after_seconds", "speaks"),
    [
        pytest.param(deleted(), 4, True, id="live"),
        pytest.param(deleted(put("request.name", "")), 4, True, id="live, as an item of a collection"),
        pytest.param(deleted(), 15, False, id="expired"),
        pytest.param(deleted(old=(take(""),)), 4, False, id="released"),
        pytest.param(deleted(by_user("system:kube-controller-manager")), 4, False, id="by the controller manager"),
        pytest.param(
            deleted(by_service_account("kube-system", "generic-garbage-collector")),
            4,
            False,
            id="by the garbage collector",
        ),
        pytest.param(
            deleted(by_service_account("kube-system", "namespace-controller")),
            4,
            False,
            id="by the namespace controller",
        ),
        pytest.param(deleted(by_service_account("guest", "namespace-controller")), 4, True, id="by a namesake"),
    ],
)
def test_live_lease_deleted(review: Document, after_seconds: int, speaks: bool) -> None:
    expected = {(FORBIDDEN, "metadata", DENY)} if speaks else set()
    assert said("live-lease-deleted", review, now=NOW + after_seconds * SECOND) == expected


BY_THE_COLLECTOR = by_service_account("kube-system", "generic-garbage-collector")


@pytest.mark.parametrize(
    "tweak",
    [
        pytest.param(put("spec.renewTime", "2025-11-20T12:00:04.000000Z"), id="a renewal"),
        pytest.param(put("spec.acquireTime", "2025-11-20T12:00:04.000000Z"), id="a heartbeat"),
        pytest.param(put("spec.holderIdentity", ""), id="a release"),
        pytest.param(put("spec", {}), id="a release that removes all"),
    ],
)
def test_an_elector_that_writes_no_finalizers_removes_the_last_one(tweak: Tweak) -> None:
    """A denial would end it for good, for what someone else left in the lease."""
    assert said("live-lease-deleted", finalized(tweak), now=NOW + 4 * SECOND) == {(FORBIDDEN, "metadata", WARN)}


@pytest.mark.parametrize(
    ("review", "after_seconds", "speaks"),
    [
        pytest.param(finalized(), 4, True, id="of a live lease"),
        pytest.param(finalized(take(RIVAL)), 4, True, id="and takes it in the same write"),
        pytest.param(finalized(put("metadata.finalizers", [])), 4, True, id="leaves an empty list"),
        pytest.param(finalized(), 15, False, id="of an expired lease"),
        pytest.param(finalized(put("metadata.finalizers", ["example.com/other"])), 4, False, id="leaves another one"),
        pytest.param(finalized(deleted_at=None), 4, False, id="of a lease that was not deleted"),
        pytest.param(changed(finalized(), BY_THE_COLLECTOR), 4, False, id="by the garbage collector"),
    ],
)
def test_an_update_that_removes_the_last_finalizer(review: Document, after_seconds: int, speaks: bool) -> None:
    expected = {(FORBIDDEN, "metadata", DENY)} if speaks else set()
    assert said("live-lease-deleted", review, now=NOW + after_seconds * SECOND) == expected


WORDING = [
    pytest.param(
        "live-lease-deleted",
        deleted(),
        (
            'metadata: Forbidden: the lease is held by "checkout-6d5f9c-x2x8p_1f0e" for another 11 s; stop '
            "its holder first, and delete the lease once it is released or has expired"
        ),
        (
            'lease "shop/checkout" of "checkout-6d5f9c-x2x8p_1f0e" was deleted 11 s before expiry: '
            "there may be two leaders"
        ),
        id="a live lease deleted",
    ),
    pytest.param(
        "live-lease-deleted",
        deleted(old=[wording.STAMPLESS]),
        (
            'metadata: Forbidden: the lease is held by "checkout-6d5f9c-x2x8p_1f0e" for another 11 s by '
            "its holder's clock; stop its holder first, and delete the lease once it is released or has expired"
        ),
        (
            'lease "shop/checkout" of "checkout-6d5f9c-x2x8p_1f0e" was deleted 11 s before expiry by its '
            "holder's clock: there may be two leaders"
        ),
        id="a live lease without stamps deleted",
    ),
]

WRITES_IT_SPEAKS_OF = {"live-lease-deleted": [finalized(put("spec.leaseDurationSeconds", 20))]}
