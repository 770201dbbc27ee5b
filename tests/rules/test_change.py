"""What a change knows of one write."""

from tests.factories import NOW, make_entry, make_lease, make_review, put
from tests.rules.findings import (
    change_of,
)

ENTRIES = "metadata.managedFields"


def test_the_stamp_of_the_renewal_is_not_the_stamp_of_the_holder() -> None:
    review = make_review(
        new=make_lease(
            put(ENTRIES, [make_entry("holderIdentity", time="2025-11-20T11:00:00Z"), make_entry("renewTime")])
        )
    )
    assert change_of(review).renew_time_written_at == NOW
