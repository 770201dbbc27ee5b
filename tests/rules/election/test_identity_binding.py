"""Bindings: the only rule that may deny a renewal for its writer."""

import json

import pytest

from tests.factories import Document, Tweak, changed, drop, make_candidate, make_lease, make_review, put
from tests.rules import dates_in_cel, wording
from tests.rules.findings import (
    DENY,
    FORBIDDEN,
    RIVAL,
    WARN,
    by_service_account,
    by_user,
    deleted,
    said,
    take,
    update,
    written,
)
from webhook.admission.rules.holders import Binding

POD = "checkout-6d5f9c-x2x8p"
BOUND = Binding(
    service_accounts=frozenset({("shop", "checkout")}), users=frozenset({"ci"}), holders=("${pod}_*", "manual-?")
)
RENEWAL = written(put("spec.renewTime", "2025-11-20T12:00:02.000000Z"), at="2025-11-20T12:00:02Z")
DELETED = (put("metadata.finalizers", ["a/b"]), put("metadata.deletionTimestamp", "2025-11-20T12:00:01Z"))
LABEL = put("metadata.labels.a", "1")
OWNED = put("metadata.ownerReferences", [wording.OWNER])
GENERATED = put("metadata.generateName", "a-")
ENTRY = put(
    "metadata.managedFields",
    [
        {
            "manager": "a",
            "operation": "Apply",
            "apiVersion": "coordination.k8s.io/v1",
            "time": "2025-11-20T12:00:01Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:leaseDurationSeconds": {}}},
        }
    ],
)
"""What an apply of a value that is stored already leaves behind."""
UNHELD = put("spec.holderIdentity", "")
REPLACED = put("metadata.annotations", {"a": "\ufffd"})
"""An annotation as a review shows it that is not UTF-8, whatever its bytes are."""
REPLACED_IN_ENTRY = put(
    "metadata.managedFields",
    [{"manager": "a", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:a\ufffd": {}}}],
)
OWN = by_service_account("shop", "checkout", POD)
PODLESS = by_service_account("shop", "checkout")


@pytest.mark.parametrize(
    ("review", "tier"),
    [
        pytest.param(update(RENEWAL, review=[OWN]), None, id="a renewal by the bound writer"),
        pytest.param(update(RENEWAL, review=[by_user("ci")]), WARN, id="a renewal by a bound user without a pod"),
        pytest.param(update(RENEWAL, review=[by_user("intruder")]), DENY, id="a renewal by another writer"),
        pytest.param(
            update(RENEWAL, review=[by_service_account("guest", "checkout", POD)]), DENY, id="by a namesake elsewhere"
        ),
        pytest.param(update(RENEWAL, review=[put("request.userInfo", None)]), DENY, id="by an unknown writer"),
        pytest.param(update(take(RIVAL), review=[OWN]), DENY, id="another pod's name"),
        pytest.param(update(take("manual-1"), review=[PODLESS]), None, id="a template without a pod"),
        pytest.param(update(take("manual-12"), review=[OWN]), DENY, id="one character too many"),
        pytest.param(update(take(RIVAL), review=[PODLESS]), WARN, id="no pod name to compare with"),
        pytest.param(update(take(""), review=[PODLESS]), None, id="a release by a bound writer"),
        pytest.param(update(take(""), review=[by_user("intruder")]), DENY, id="a release by another writer"),
        pytest.param(update(LABEL, review=[by_user("intruder")]), DENY, id="a label of a held lease by another writer"),
        pytest.param(
            update(put("metadata.annotations", {"a": "1"}), review=[by_user("intruder")]), DENY, id="an annotation"
        ),
        pytest.param(
            update(put("metadata.finalizers", ["a/b"]), review=[by_user("intruder")]), DENY, id="a finalizer of it"
        ),
        pytest.param(update(OWNED, review=[by_user("intruder")]), DENY, id="an owner of it"),
        pytest.param(
            update(drop("metadata.ownerReferences"), old=[OWNED], review=[by_user("intruder")]),
            DENY,
            id="the owner of it removed",
        ),
        pytest.param(update(LABEL, review=[PODLESS]), None, id="a label by a bound writer without a pod"),
        pytest.param(
            update(LABEL, review=[by_user("system:kube-controller-manager")]), None, id="a label by a cleaner"
        ),
        pytest.param(update(LABEL, old=[UNHELD], review=[by_user("intruder")]), None, id="a label of a free lease"),
        pytest.param(update(review=[by_user("intruder")]), None, id="a write that changes nothing"),
        pytest.param(update(GENERATED, review=[by_user("intruder")]), DENY, id="a generateName of it"),
        pytest.param(
            update(drop("metadata.generateName"), old=[GENERATED], review=[by_user("intruder")]),
            DENY,
            id="the generateName of it removed",
        ),
        pytest.param(update(GENERATED, review=[PODLESS]), None, id="a generateName by a bound writer"),
        pytest.param(update(GENERATED, old=[UNHELD], review=[by_user("intruder")]), None, id="of a free lease"),
        pytest.param(
            update(put("metadata.managedFields", []), review=[by_user("intruder")]), DENY, id="its entries removed"
        ),
        pytest.param(
            update(ENTRY, old=[put("metadata.managedFields", [])], review=[by_user("intruder")]),
            DENY,
            id="an entry added",
        ),
        pytest.param(update(ENTRY, old=[ENTRY], review=[by_user("intruder")]), None, id="an entry kept"),
        pytest.param(update(old=[REPLACED], review=[by_user("intruder")]), DENY, id="an annotation that is not UTF-8"),
        pytest.param(
            update(old=[REPLACED_IN_ENTRY], review=[by_user("intruder")]), DENY, id="an entry that is not UTF-8"
        ),
        pytest.param(
            update(old=[put("spec.holderIdentity", "a\ufffd")], review=[by_user("intruder")]),
            DENY,
            id="a holder that is not UTF-8",
        ),
        pytest.param(update(old=[REPLACED], review=[PODLESS]), None, id="an annotation of a bound writer"),
        pytest.param(
            update(RENEWAL, old=[REPLACED], review=[OWN]), None, id="a renewal of a lease whose annotation is not UTF-8"
        ),
        pytest.param(
            update(old=[REPLACED], review=[by_user("system:kube-controller-manager")]), None, id="and by a cleaner"
        ),
        pytest.param(update(old=[REPLACED, UNHELD], review=[by_user("intruder")]), None, id="and while it is free"),
        pytest.param(
            update(put("metadata.managedFields", []), review=[by_user("system:kube-controller-manager")]),
            None,
            id="its entries removed by a cleaner",
        ),
        pytest.param(
            update(
                put("metadata.managedFields", []), old=[drop("metadata.managedFields")], review=[by_user("intruder")]
            ),
            None,
            id="a list that was absent and is empty",
        ),
        pytest.param(make_review(OWN, new=make_lease()), None, id="CREATE by the bound writer"),
        pytest.param(make_review(by_user("intruder"), new=make_lease()), DENY, id="CREATE by another writer"),
        pytest.param(make_review(PODLESS, old=make_lease()), None, id="DELETE by the bound writer"),
        pytest.param(make_review(by_user("intruder"), old=make_lease()), DENY, id="DELETE by another writer"),
        pytest.param(
            make_review(by_user("system:kube-controller-manager"), old=make_lease()), None, id="DELETE by a cleaner"
        ),
        pytest.param(
            update(drop("metadata.finalizers"), old=DELETED, review=[by_user("intruder")]),
            DENY,
            id="the last finalizer of a deleted lease by another writer",
        ),
        pytest.param(
            update(drop("metadata.finalizers"), old=DELETED, review=[PODLESS]), None, id="and by the bound writer"
        ),
        pytest.param(
            update(RENEWAL, review=[by_user("system:kube-controller-manager")]), DENY, id="a renewal by a cleaner"
        ),
    ],
)
def test_who_may_write_a_bound_lease(review: Document, tier: object) -> None:
    expected = {(FORBIDDEN, "spec.holderIdentity", tier)} if tier else set()
    assert said("identity-binding", review, binding=BOUND) == expected
    assert said("identity-binding", review) == set(), "without a binding the rule is silent"


def test_a_pod_may_be_required() -> None:
    strict = Binding(service_accounts=BOUND.service_accounts, holders=("${pod}_*",), require_pod=True)
    assert said("identity-binding", update(take(RIVAL), review=[PODLESS]), binding=strict) == {
        (FORBIDDEN, "spec.holderIdentity", DENY)
    }


@pytest.mark.parametrize(
    ("holder", "writer", "tier"),
    [
        pytest.param("_1f0e", PODLESS, WARN, id="what follows the name of a pod, and none is known"),
        pytest.param(r"a.b_1f0e", by_service_account("shop", "checkout", r"a\E.b"), DENY, id="an end of literal text"),
    ],
)
def test_the_name_of_a_pod_is_compared_as_text(holder: str, writer: Tweak, tier: object) -> None:
    review = update(take(holder), review=[writer])
    assert said("identity-binding", review, binding=BOUND) == {(FORBIDDEN, "spec.holderIdentity", tier)}


def test_a_template_without_a_pod_is_a_refusal_even_for_a_writer_without_one() -> None:
    named = Binding(users=frozenset({"ci"}), holders=("manual-*",))
    assert said("identity-binding", update(take(RIVAL), review=[by_user("ci")]), binding=named) == {
        (FORBIDDEN, "spec.holderIdentity", DENY)
    }


def candidate(*tweaks: Tweak, by: Tweak, name: str = f"{POD}_1") -> Document:
    """The UPDATE of a candidate of this name."""
    old = make_candidate(put("metadata.name", name))
    return make_review(by, old=old, new=changed(old, *tweaks))


def replaced_candidate(*, by: Tweak) -> Document:
    """An UPDATE of a candidate that has U+FFFD before and after it."""
    old = make_candidate(put("metadata.name", f"{POD}_1"), REPLACED)
    return make_review(by, old=old, new=changed(old))


RENEWED = put("spec.renewTime", "2025-11-20T12:00:02.000000Z")
INTRUDER = by_service_account("guest", "checkout", POD)


@pytest.mark.parametrize(
    ("review", "tier"),
    [
        pytest.param(candidate(RENEWED, by=OWN), None, id="a renewal by the bound writer"),
        pytest.param(candidate(RENEWED, by=INTRUDER), DENY, id="a renewal by another writer"),
        pytest.param(candidate(RENEWED, by=PODLESS), WARN, id="no pod name to compare with"),
        pytest.param(candidate(RENEWED, by=OWN, name="mallory"), DENY, id="another name"),
        pytest.param(candidate(LABEL, by=INTRUDER), DENY, id="a label"),
        pytest.param(candidate(put("metadata.annotations", {"a": "1"}), by=INTRUDER), DENY, id="an annotation"),
        pytest.param(candidate(put("metadata.finalizers", ["a/b"]), by=INTRUDER), DENY, id="a finalizer"),
        pytest.param(candidate(OWNED, by=INTRUDER), DENY, id="an owner"),
        pytest.param(candidate(GENERATED, by=INTRUDER), DENY, id="a generateName"),
        pytest.param(candidate(ENTRY, by=INTRUDER), DENY, id="an entry of managedFields"),
        pytest.param(candidate(LABEL, by=OWN, name="mallory"), None, id="a label by the bound writer"),
        pytest.param(candidate(OWNED, by=by_user("system:kube-controller-manager")), None, id="an owner by a cleaner"),
        pytest.param(candidate(by=INTRUDER), None, id="a write that changes nothing"),
        pytest.param(replaced_candidate(by=INTRUDER), DENY, id="an annotation that is not UTF-8"),
        pytest.param(replaced_candidate(by=OWN), None, id="an annotation of a bound writer"),
        pytest.param(make_review(INTRUDER, new=make_candidate()), DENY, id="CREATE by another writer"),
        pytest.param(make_review(PODLESS, old=make_candidate()), None, id="DELETE by the bound writer"),
        pytest.param(make_review(INTRUDER, old=make_candidate()), DENY, id="DELETE by another writer"),
        pytest.param(
            make_review(by_user("system:kube-controller-manager"), old=make_candidate()), None, id="DELETE by a cleaner"
        ),
    ],
)
def test_candidates_of_a_bound_lease(review: Document, tier: object) -> None:
    expected = {(FORBIDDEN, "spec.leaseName", tier)} if tier else set()
    assert said("identity-binding", review, binding=BOUND) == expected


WORDING = [
    pytest.param(
        "identity-binding",
        update(wording.RENEWAL, review=[by_user("intruder")]),
        (
            "spec.holderIdentity: Forbidden: only the writers bound in the webhook's policy may write this "
            'lease, and "intruder" is not one of them; ask the operators of lease-webhook'
        ),
        '"intruder" wrote lease "shop/checkout", which the policy binds to other writers',
        id="a writer that is not bound",
    ),
    pytest.param(
        "identity-binding",
        deleted(by_user("intruder")),
        (
            "spec.holderIdentity: Forbidden: only the writers bound in the webhook's policy may write this "
            'lease, and "intruder" is not one of them; ask the operators of lease-webhook'
        ),
        '"intruder" deleted lease "shop/checkout", which the policy binds to other writers',
        id="a deletion by a writer that is not bound",
    ),
    pytest.param(
        "identity-binding",
        update(wording.STOLEN, review=[wording.OWN]),
        (
            'spec.holderIdentity: Forbidden: the holder of this lease must match the binding "${pod}_*", '
            '"manual-?", and "rival-5b8f7d-lk2mn_77aa" does not; ask the operators of lease-webhook'
        ),
        'holder "rival-5b8f7d-lk2mn_77aa" does not match the binding "${pod}_*" of this lease',
        id="a holder that does not fit",
    ),
    pytest.param(
        "identity-binding",
        update(wording.STOLEN, review=[wording.PODLESS]),
        (
            'spec.holderIdentity: Forbidden: "system:serviceaccount:shop:checkout" does not write from a '
            'pod, so its holder name cannot be checked (binding "${pod}_*", "manual-?"); write from a pod, '
            "or ask the operators of lease-webhook"
        ),
        (
            '"system:serviceaccount:shop:checkout" does not write from a pod, so its holder name cannot be '
            'checked (binding "${pod}_*")'
        ),
        id="a bound writer without a pod",
    ),
]


def is_long_holder(request: Document, _field: str) -> bool:
    new, _ = dates_in_cel.find_objects(request)
    return len(str((new.get("spec") or {}).get("holderIdentity") or "")) > 4096


def is_long_or_replaced(request: Document, field: str) -> bool:
    return is_long_holder(request, field) or "\\ufffd" in json.dumps(request)


WHERE_CEL_DIFFERS = {"identity-binding": is_long_or_replaced}
