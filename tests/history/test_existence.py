"""What is noted of a lease whose deletion waits for finalizers."""

import pytest

from webhook.analysis.history.visibility.existence import Existence
from webhook.analysis.inputs.items import Writer

MALLORY = Writer("mallory")


def test_a_deletion_was_asked_for_when_that_was_first_seen() -> None:
    existence = Existence()
    existence.mark(None, 5)
    existence.mark(None, 7)
    assert existence.marked_at == 5


@pytest.mark.parametrize(
    ("is_deleted", "is_other", "marked_at"),
    [(False, False, 5), (True, False, 0), (False, True, 0)],
    ids=["the same lease", "one that was created again", "another one that was created unseen"],
)
def test_another_lease_has_not_the_mark_of_the_one_before(is_deleted: bool, is_other: bool, marked_at: int) -> None:
    existence = Existence()
    existence.mark(MALLORY, 5)
    if is_deleted:
        existence.delete(7, None, is_surely_not_dry_run=True)
    existence.restore(is_other=is_other)
    assert existence.marked_at == marked_at
    assert not existence.is_deleted


def test_a_store_that_was_put_back_may_not_have_the_deletion() -> None:
    existence = Existence()
    existence.mark(MALLORY, 5)
    existence.forget_uid()
    existence.mark(None, 9)
    assert existence.marked_at == 9
