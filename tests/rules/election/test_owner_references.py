"""An owner that does not exist has the garbage collector delete the lease, so owners may not be added to one in use."""

import pytest

from tests.factories import NOW, Document, Tweak, drop, put
from tests.rules import dates_in_cel, wording
from tests.rules.findings import (
    DENY,
    FORBIDDEN,
    RIVAL,
    WARN,
    by_node,
    by_service_account,
    by_user,
    in_namespace,
    said,
    take,
    update,
)
from webhook.admission.rules.holders import Binding

RULE = "owner-reference-added"
DENIED = {(FORBIDDEN, "metadata.ownerReferences", DENY)}
OWNER = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "checkout", "uid": "1"}
NODE = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "2"}
INTRUDER = by_service_account("guest", "intruder", "intruder-0")
UNHELD = put("spec.holderIdentity", "")


def owned(*owners: Document | None) -> Tweak:
    return put("metadata.ownerReferences", list(owners))


@pytest.mark.parametrize(
    "review",
    [
        pytest.param(update(owned(OWNER)), id="by the holder's own service account"),
        pytest.param(update(owned(OWNER), review=[INTRUDER]), id="by an intruder"),
        pytest.param(update(owned(OWNER), review=[put("request.userInfo", None)]), id="by an unknown writer"),
        pytest.param(update(owned(OWNER), put("spec.leaseTransitions", 6)), id="beside another change"),
        pytest.param(update(owned(OWNER), drop("spec.renewTime")), id="with renewTime removed"),
        pytest.param(update(owned(OWNER), old=[UNHELD]), id="to a released lease, which is held again later"),
        pytest.param(update(owned(OWNER, OWNER | {"uid": "2"}), old=[owned(OWNER)]), id="of another uid"),
        pytest.param(update(owned(OWNER | {"name": "b"}), old=[owned(OWNER)]), id="of another name"),
        pytest.param(update(owned(OWNER | {"kind": "Job"}), old=[owned(OWNER)]), id="of another kind"),
        pytest.param(update(owned(OWNER | {"apiVersion": "v1"}), old=[owned(OWNER)]), id="of another group"),
        pytest.param(update(owned(NODE), review=[by_node("n1")]), id="by a node outside kube-node-lease"),
        pytest.param(
            update(owned(NODE), review=[by_node("n2"), in_namespace("kube-node-lease", "n1")]), id="by another node"
        ),
        pytest.param(
            update(owned(NODE | {"name": "n2"}), review=[by_node("n1"), in_namespace("kube-node-lease", "n1")]),
            id="by a node, of another node",
        ),
        pytest.param(
            update(owned(NODE, OWNER), review=[by_node("n1"), in_namespace("kube-node-lease", "n1")]),
            id="by a node, of something else as well",
        ),
    ],
)
def test_an_owner_that_another_one_adds_is_denied(review: Document) -> None:
    assert said(RULE, review) == DENIED


RENEWAL = put("spec.renewTime", "2025-11-20T12:00:02.000000Z")
HEARTBEAT = put("spec.acquireTime", "2025-11-20T12:00:02.000000Z")


@pytest.mark.parametrize(
    "review",
    [
        pytest.param(update(owned(OWNER), RENEWAL), id="in a renewal"),
        pytest.param(update(owned(OWNER), HEARTBEAT), id="in a heartbeat"),
        pytest.param(update(owned(OWNER), RENEWAL, put("spec.leaseTransitions", 6)), id="in a renewal that counts"),
        pytest.param(update(owned(OWNER), take(RIVAL)), id="in a takeover"),
        pytest.param(update(owned(OWNER), take("")), id="in a release"),
        pytest.param(update(owned(OWNER), take(RIVAL), old=[UNHELD]), id="in a claim"),
    ],
)
def test_what_an_elector_may_put_back_is_a_warning(review: Document) -> None:
    assert said(RULE, review) == {(FORBIDDEN, "metadata.ownerReferences", WARN)}
    bound = Binding(users=frozenset({"someone else"}))
    assert said(RULE, review, binding=bound) == DENIED


@pytest.mark.parametrize(
    "review",
    [
        pytest.param(update(owned(OWNER), old=[owned(OWNER)]), id="as before"),
        pytest.param(update(owned(OWNER | {"apiVersion": "apps/v2"}), old=[owned(OWNER)]), id="of a newer version"),
        pytest.param(update(owned(OWNER | {"controller": True}), old=[owned(OWNER)]), id="that becomes the controller"),
        pytest.param(update(owned(), old=[owned(OWNER)]), id="removed"),
        pytest.param(update(owned(None)), id="null"),
        pytest.param(update(owned(OWNER), old=[UNHELD, drop("spec.renewTime")]), id="to a lease that was never held"),
        pytest.param(
            update(owned(OWNER), review=[by_user("system:serviceaccount:kube-system:generic-garbage-collector")]),
            id="by the garbage collector",
        ),
        pytest.param(
            update(owned(NODE), review=[by_node("n1"), in_namespace("kube-node-lease", "n1")]),
            id="by a node to its own lease",
        ),
    ],
)
def test_an_owner_that_takes_nothing_from_the_holder_is_allowed(review: Document) -> None:
    assert said(RULE, review) == set()


def test_the_writers_of_a_binding_are_free() -> None:
    binding = Binding(service_accounts=frozenset({("shop", "checkout")}))
    assert said(RULE, update(owned(OWNER)), now=NOW, binding=binding) == set()
    assert said(RULE, update(owned(OWNER), review=[INTRUDER]), binding=binding) == DENIED
    never_held = update(owned(OWNER), old=[UNHELD, drop("spec.renewTime")], review=[INTRUDER])
    assert said(RULE, never_held, binding=binding) == DENIED


REMOVED = "owner-reference-removed"


@pytest.mark.parametrize(
    "review",
    [
        pytest.param(update(drop("metadata.ownerReferences"), old=[owned(OWNER)], review=[INTRUDER]), id="all"),
        pytest.param(update(owned(), old=[owned(OWNER)], review=[INTRUDER]), id="to an empty list"),
        pytest.param(update(owned(NODE), old=[owned(OWNER, NODE)], review=[INTRUDER]), id="one of two"),
        pytest.param(update(owned(), put("spec.leaseDurationSeconds", 9), old=[owned(OWNER)]), id="beside an edit"),
        pytest.param(update(owned(), drop("spec.renewTime"), old=[owned(OWNER)]), id="with renewTime removed"),
    ],
)
def test_the_owner_of_a_held_lease_is_not_removed_alone(review: Document) -> None:
    assert said(REMOVED, review) == DENIED


@pytest.mark.parametrize(
    "review",
    [
        pytest.param(update(owned(OWNER), old=[owned(OWNER)]), id="as before"),
        pytest.param(update(owned(OWNER | {"apiVersion": "apps/v2"}), old=[owned(OWNER)]), id="of a newer version"),
        pytest.param(update(owned(OWNER | {"uid": "2"}), old=[owned(OWNER)]), id="replaced, which is an addition"),
        pytest.param(update(owned(), RENEWAL, old=[owned(OWNER)]), id="in a renewal"),
        pytest.param(update(owned(), HEARTBEAT, old=[owned(OWNER)]), id="in a heartbeat"),
        pytest.param(update(owned(), take(RIVAL), old=[owned(OWNER)]), id="in a takeover"),
        pytest.param(update(owned(), old=[owned(OWNER), UNHELD]), id="of a free lease"),
        pytest.param(update(old=[owned(None)]), id="null"),
        pytest.param(
            update(
                owned(),
                old=[owned(OWNER)],
                review=[by_user("system:serviceaccount:kube-system:generic-garbage-collector")],
            ),
            id="by the garbage collector",
        ),
        pytest.param(
            update(owned(), old=[owned(NODE)], review=[by_node("n1"), in_namespace("kube-node-lease", "n1")]),
            id="by a node from its own lease",
        ),
    ],
)
def test_other_removals_are_free(review: Document) -> None:
    assert said(REMOVED, review) == set()


def test_a_listed_writer_removes_an_owner() -> None:
    binding = Binding(service_accounts=frozenset({("shop", "checkout")}))
    removal = update(owned(), old=[owned(OWNER)])
    assert said(REMOVED, removal, binding=binding) == set()
    assert said(REMOVED, update(owned(), old=[owned(OWNER)], review=[INTRUDER]), binding=binding) == DENIED


WORDING = [
    pytest.param(
        "owner-reference-added",
        update(put("metadata.ownerReferences", [wording.OWNER]), review=[wording.INTRUDER]),
        (
            'metadata.ownerReferences: Forbidden: the garbage collector deletes this lease if "Deployment" '
            '"checkout" does not exist; add owners when the lease is created'
        ),
        'the garbage collector deletes this lease if "Deployment" "checkout" does not exist, held or not',
        id="an owner added",
    ),
    pytest.param(
        "owner-reference-removed",
        update(
            drop("metadata.ownerReferences"),
            old=[put("metadata.ownerReferences", [wording.OWNER])],
            review=[wording.INTRUDER],
        ),
        (
            'metadata.ownerReferences: Forbidden: the lease is held by "checkout-6d5f9c-x2x8p_1f0e", and only its '
            'holder may remove its owner "Deployment" "checkout", in a renewal; remove it after the release'
        ),
        'the lease of "checkout-6d5f9c-x2x8p_1f0e" lost its owner "Deployment" "checkout"',
        id="an owner removed",
    ),
]

WRITES_IT_SPEAKS_OF = {
    "owner-reference-added": [update(wording.RENEWAL, put("metadata.ownerReferences", [wording.OWNER]))],
    "owner-reference-removed": [update(owned(), put("spec.leaseDurationSeconds", 20), old=[owned(OWNER)])],
}


def has_many_owners(request: Document, _field: str) -> bool:
    objects = dates_in_cel.find_objects(request)
    return sum(len(one.get("metadata", {}).get("ownerReferences") or ()) for one in objects) > 100


WHERE_CEL_DIFFERS = {"owner-reference-added": has_many_owners, "owner-reference-removed": has_many_owners}
