"""What is noted of a lease whose deletion waits for finalizers."""

from webhook.analysis.history.existence import Existence


def test_a_deletion_was_asked_for_when_that_was_first_seen() -> None:
    existence = Existence()
    existence.mark(None, 5)
    existence.mark(None, 7)
    assert existence.marked_at == 5
