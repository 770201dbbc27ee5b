"""Stored histories of `tests/truth` that show what no other example shows: what is said of them is true."""

import pytest

from tests.truth.evaluation import evaluate
from tests.truth.inputs import Kind, input_of
from tests.truth.stored import play_stored


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a-wipe-that-nothing-dates-after-the-lease-had-expired", Kind.WATCH),
        ("another-one-held-it-in-a-hole-of-the-log-and-released-it", Kind.HOLE),
        ("a-lease-that-was-created-again-in-the-gap-of-a-record", Kind.BROKEN_RECORD),
        ("a-slow-holder-before-one-whose-clock-is-behind", Kind.BROKEN_RECORD),
        ("a-command-in-the-pod-of-a-chosen-holder-releases-it", Kind.MIXED),
        ("GitOps-applies-a-holder-and-leaves-renewTime", Kind.LOG),
        ("GitOps-applies-a-holder-and-leaves-renewTime", Kind.SENT),
        ("another-writer-goes-on-after-a-hole-in-the-log", Kind.SENT),
        ("a-removal-in-a-gap-is-found-after-it", Kind.BROKEN_RECORD),
        ("a-renewal-whose-fraction-is-cut-changes-nothing", Kind.SENT),
        ("a-webhook-that-moves-renewTime-hides-whose-patch-made-a-state", Kind.SENT),
        ("a-creation-in-a-hole-of-the-log-is-not-the-update-after-it", Kind.HOLE),
        ("a-read-is-answered-before-a-removal-that-only-a-stamp-dates", Kind.SENT),
        ("a-renewal-hidden-before-a-request-to-step-down", Kind.SENT),
        ("a-removal-after-patches-has-the-stamp-of-an-earlier-write", Kind.SENT),
        ("stamps-dated-ahead-before-the-lease-is-deleted", Kind.SENT),
    ],
)
def test_no_claim_about_a_stored_history_is_false(name: str, kind: Kind) -> None:
    history = play_stored(name)
    given = input_of(history, kind)
    assert given
    evaluations = list(evaluate(history, given))
    assert [(one.command, one.claim) for one in evaluations if one.is_true is not True] == []
    assert len(evaluations) > 5
