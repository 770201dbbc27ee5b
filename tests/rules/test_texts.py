"""What the rules say, word for word: the text is all that a person who was refused gets to see."""

import pytest

from tests.factories import Document, drop, make_lease, make_review, put
from tests.rules.judging import RIVAL, by_node, by_service_account, findings, take, update, written


@pytest.mark.parametrize(
    ("rule", "review", "text"),
    [
        pytest.param(
            "takeover-by-node",
            update(written(take(RIVAL), at="2025-11-20T12:00:01Z"), review=[by_node("n1")]),
            (
                'spec.holderIdentity: Forbidden: lease "shop/checkout" is held by '
                '"checkout-6d5f9c-x2x8p_1f0e", last write seen 1 s ago (12:00:00Z, API server clock), '
                'duration 15 s, and "system:node:n1" is a node; retry in 14 s, or ask the holder to '
                "release it"
            ),
            id="a node",
        ),
        pytest.param(
            "takeover-across-namespaces",
            update(written(take(RIVAL), at="2025-11-20T12:00:01Z"), review=[by_service_account("guest", "intruder")]),
            (
                'spec.holderIdentity: Forbidden: lease "shop/checkout" is held by '
                '"checkout-6d5f9c-x2x8p_1f0e", last write seen 1 s ago (12:00:00Z, API server clock), '
                'duration 15 s, and "system:serviceaccount:guest:intruder" belongs to another '
                "namespace; retry in 14 s, or ask the holder to release it"
            ),
            id="another namespace",
        ),
        pytest.param(
            "acquire-time-changed",
            update(put("spec.leaseTransitions", 6), put("spec.acquireTime", "2025-11-20T12:00:00.000000Z")),
            (
                'spec.acquireTime: Invalid value: "2025-11-20T12:00:00.000000Z": must stay within 1 s '
                "of the old value while the holder stays"
            ),
            id="acquireTime moved",
        ),
        pytest.param(
            "preferred-holder-writer",
            update(put("spec.leaseTransitions", 6), put("spec.preferredHolder", "a"), put("spec.strategy", "a/b")),
            (
                "spec.preferredHolder: Forbidden: preferredHolder may be set by the API server's "
                "coordinated leader election only; leave it out, or have the policy exempt this writer"
            ),
            id="preferredHolder set",
        ),
        pytest.param(
            "holder-identity-shape",
            make_review(new=make_lease(put("spec.holderIdentity", "a\x07"))),
            'spec.holderIdentity: Invalid value: "a\\x07": must not contain control characters',
            id="a control character",
        ),
        pytest.param(
            "holder-identity-shape",
            make_review(new=make_lease(put("spec.holderIdentity", "a\u200b"))),
            ('spec.holderIdentity: Invalid value: "a\\u200b": must not contain bidirectional or invisible characters'),
            id="an invisible character",
        ),
        pytest.param(
            "holder-identity-mismatch",
            make_review(new=make_lease(put("spec.holderIdentity", "rival"))),
            (
                'spec.holderIdentity: Forbidden: holder "rival" must begin with the name of the '
                'writing pod, "checkout-6d5f9c-x2x8p"'
            ),
            id="not the writer's pod",
        ),
        pytest.param(
            "transitions-jump",
            update(put("spec.leaseTransitions", 2147483647)),
            (
                "spec.leaseTransitions: Invalid value: 2147483647: must not jump to 1000000000 or "
                "more; write the old value 5 plus 1"
            ),
            id="a jump to the end",
        ),
        pytest.param(
            "transitions-jump",
            update(put("spec.leaseTransitions", 7)),
            "spec.leaseTransitions: Invalid value: 7: must not rise by more than 1 from 5",
            id="a small jump",
        ),
        pytest.param(
            "transitions-decrease",
            update(put("spec.leaseTransitions", 4)),
            "spec.leaseTransitions: Invalid value: 4: must not be less than the old value 5",
            id="fewer transitions",
        ),
        pytest.param(
            "transitions-mismatch",
            update(put("spec.leaseTransitions", 6)),
            "spec.leaseTransitions: Invalid value: 6: must not rise without a new holder",
            id="a transition without a new holder",
        ),
        pytest.param(
            "transitions-mismatch",
            update(written(put("spec.holderIdentity", RIVAL), at="2025-11-20T12:00:01Z")),
            "spec.leaseTransitions: Invalid value: 5: must rise by 1 with a new holder",
            id="a new holder without a transition",
        ),
        pytest.param(
            "duration-too-long",
            make_review(new=make_lease(put("spec.leaseDurationSeconds", 31536001))),
            (
                "spec.leaseDurationSeconds: Invalid value: 31536001: must not be greater than "
                "31536000; a dead holder would keep the lease for as long"
            ),
            id="longer than a year",
        ),
        pytest.param(
            "duration-too-long",
            make_review(new=make_lease(put("spec.leaseDurationSeconds", 86401))),
            (
                "spec.leaseDurationSeconds: Invalid value: 86401: must not be greater than 86400; a "
                "dead holder would keep the lease for as long"
            ),
            id="longer than a day",
        ),
        pytest.param(
            "duration-shortened",
            update(drop("spec.leaseDurationSeconds")),
            (
                "spec.leaseDurationSeconds: Forbidden: leaseDurationSeconds may not be removed while "
                "the lease is held; release it instead, or let the holder write it"
            ),
            id="duration removed",
        ),
        pytest.param(
            "duration-shortened",
            update(drop("spec.renewTime")),
            (
                "spec.leaseDurationSeconds: Forbidden: renewTime may not be removed while the lease is "
                "held; release it instead, or let the holder write it"
            ),
            id="renewTime removed",
        ),
        pytest.param(
            "duration-shortened",
            update(put("spec.leaseDurationSeconds", 1)),
            (
                "spec.leaseDurationSeconds: Forbidden: leaseDurationSeconds may not be lowered from 15 "
                "to 1 without a new renewTime while the lease is held; release it instead, or let the "
                "holder write it"
            ),
            id="duration lowered",
        ),
    ],
)
def test_text(rule: str, review: Document, text: str) -> None:
    assert [str(one.error) for one in findings(review)[rule]] == [text]
