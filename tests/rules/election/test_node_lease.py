"""Node heartbeats: who may write them, and under which holder."""

import pytest

from tests.factories import Document, make_lease, make_review, put
from tests.rules import wording
from tests.rules.findings import (
    DENY,
    FORBIDDEN,
    RIVAL,
    by_node,
    by_service_account,
    by_user,
    in_namespace,
    said,
    take,
    update,
)

HOLDER_FIELD = "spec.holderIdentity"

DENIED = {(FORBIDDEN, HOLDER_FIELD, DENY)}

NODE = in_namespace("kube-node-lease", "n1")


@pytest.mark.parametrize(
    ("review", "speaks"),
    [
        pytest.param(update(take(RIVAL), review=[by_node("n1"), NODE]), True, id="another holder"),
        pytest.param(update(take(""), review=[by_node("n1"), NODE]), True, id="no holder"),
        pytest.param(update(take("n1"), review=[by_node("n1"), NODE]), False, id="its own name"),
        pytest.param(
            update(put("spec.leaseTransitions", 6), review=[by_node("n1"), NODE]), False, id="the holder stays"
        ),
        pytest.param(update(take(RIVAL), review=[by_node("n1")]), False, id="elsewhere than in kube-node-lease"),
        pytest.param(
            update(take(RIVAL), review=[by_service_account("kwok", "kwok"), NODE]),
            False,
            id="by a service account, as kwok",
        ),
    ],
)
def test_node_lease_holder(review: Document, speaks: bool) -> None:
    assert said("node-lease-holder", review) == (DENIED if speaks else set())


@pytest.mark.parametrize(
    ("review", "speaks"),
    [
        pytest.param(make_review(NODE, by_node("n1"), new=make_lease()), False, id="its node"),
        pytest.param(make_review(NODE, by_node("n2"), new=make_lease()), True, id="another node"),
        pytest.param(make_review(by_node("n2"), new=make_lease()), False, id="elsewhere than in kube-node-lease"),
        pytest.param(update(take(RIVAL), review=[NODE, by_user("dev")]), True, id="a user"),
        pytest.param(
            update(put("spec.renewTime", "2025-11-20T12:00:02.000000Z"), review=[NODE, by_user("dev")]),
            False,
            id="a renewal",
        ),
    ],
)
def test_node_lease_writer(review: Document, speaks: bool) -> None:
    assert said("node-lease-writer", review) == ({(FORBIDDEN, "spec", DENY)} if speaks else set())


WORDING = [
    pytest.param(
        "node-lease-holder",
        update(wording.STOLEN, review=[wording.NODE, by_node("n1")]),
        'spec.holderIdentity: Forbidden: a node may name only itself, "n1", as the holder of its lease',
        'a node made "rival-5b8f7d-lk2mn_77aa" the holder of the lease of "n1"',
        id="a node that names another holder",
    ),
    pytest.param(
        "node-lease-writer",
        update(wording.STOLEN, review=[wording.NODE, by_user("dev")]),
        ('spec: Forbidden: this lease may be written by "system:node:n1" only; have the policy exempt this writer'),
        '"dev" wrote the lease of node "n1": a dead node may look alive',
        id="a user writes a node's lease",
    ),
]
