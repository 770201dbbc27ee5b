"""Deletions of a live lease."""

import pytest

from tests.factories import NOW, Document, put
from tests.rules.findings import (
    DENY,
    FORBIDDEN,
    SECOND,
    by_service_account,
    by_user,
    deleted,
    said,
    take,
)


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
