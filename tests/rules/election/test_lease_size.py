"""How large a lease may grow, and the API server's own way out of one that is too large for etcd."""

from time import process_time

import pytest

from tests.factories import Document, Tweak, drop, make_entry, make_lease, make_review, put
from tests.rules.findings import DENY, FORBIDDEN, RIVAL, WARN, change_of, said, take, update, written
from webhook.admission.rules.change import LeaseChange
from webhook.admission.rules.election.renewal_stamp import renewal_stamp_tampered

LIMIT = 256 * 1024
MIB = 1024 * 1024
ENTRIES = "metadata.managedFields"
DENIED = {(FORBIDDEN, "metadata", DENY)}
STAMPED = "2025-11-20T12:00:02Z"
RENEWAL = written(put("spec.renewTime", "2025-11-20T12:00:02.000000Z"), at=STAMPED)
BARE_RENEWAL: Tweak = put("spec.renewTime", "2025-11-20T12:00:02.000000Z")


def taken_by(holder: str) -> Tweak:
    """A takeover as electors write it."""

    def tweak(lease: Document) -> None:
        take(holder)(lease)
        BARE_RENEWAL(lease)

    return tweak


def owning(size: int, manager: str = "z", operation: str = "Apply") -> Document:
    """An entry of about so many bytes that owns a label which nothing has."""
    fields: Document = {"f:metadata": {"f:labels": {"f:" + "a" * size: {}}}}
    return make_entry(manager=manager, time=STAMPED) | {"operation": operation, "fieldsV1": fields}


def add(*entries: Document) -> Tweak:
    def tweak(lease: Document) -> None:
        lease["metadata"]["managedFields"].extend(entries)

    return tweak


def padded(size: int) -> Tweak:
    """Labels, of which an object may have any number."""
    return put("metadata.labels", {f"l{at}": "v" * 60 for at in range(size // 70)})


@pytest.mark.parametrize(
    "review",
    [
        pytest.param(update(add(owning(LIMIT))), id="by an entry"),
        pytest.param(update(RENEWAL, add(owning(LIMIT + 9000))), id="by an entry, in a renewal"),
        pytest.param(update(RENEWAL, padded(2 * LIMIT)), id="by labels, in a renewal"),
        pytest.param(update(padded(LIMIT + 9000)), id="by labels"),
        pytest.param(update(put("metadata.annotations", {"a": "b" * LIMIT})), id="by an annotation"),
        pytest.param(update(put("spec.preferredHolder", "b" * LIMIT)), id="by spec"),
        pytest.param(update(put("metadata.labels.a", "1"), old=[add(owning(LIMIT))]), id="a larger one, by a label"),
        pytest.param(
            update(RENEWAL, add(owning(LIMIT), owning(LIMIT, "y")), old=[add(owning(LIMIT))]),
            id="a larger one, in a renewal",
        ),
        pytest.param(make_review(new=make_lease(put("metadata.annotations", {"a": "b" * LIMIT}))), id="on CREATE"),
    ],
)
def test_a_lease_does_not_grow(review: Document) -> None:
    assert said("lease-too-large", review) == DENIED


LARGER = add(owning(LIMIT))
RESTORED: Tweak = put("metadata.annotations", {"elector": "b" * 20_000})
RELEASE: Tweak = put("spec", {"holderIdentity": "", "leaseTransitions": 0})


@pytest.mark.parametrize(
    "review",
    [
        pytest.param(update(put("metadata.annotations", {"a": "b" * (LIMIT - 9000)})), id="up to the limit"),
        pytest.param(update(old=[LARGER]), id="nothing"),
        pytest.param(update(RENEWAL, old=[LARGER]), id="a renewal"),
        pytest.param(
            update(RENEWAL, add(make_entry("acquireTime", manager="m" * 128)), old=[LARGER]),
            id="the first renewal of a manager",
        ),
        pytest.param(update(RENEWAL, RESTORED, old=[LARGER]), id="a renewal that restores an annotation"),
        pytest.param(
            update(put("spec.acquireTime", "2025-11-20T12:00:02.000000Z"), RESTORED, old=[LARGER]),
            id="a heartbeat that does so",
        ),
        pytest.param(update(RELEASE, RESTORED, old=[LARGER]), id="a release that does so"),
        pytest.param(
            update(RENEWAL, RESTORED, old=[put("metadata.annotations", {"pad": "b" * (LIMIT - 3000)})]),
            id="one of a lease that was a little smaller",
        ),
        pytest.param(
            update(written(taken_by("r" * 4096), at="2025-11-20T12:00:20Z"), old=[LARGER]),
            id="a takeover by a long name",
        ),
        pytest.param(update(put("metadata.labels", None), old=[padded(2 * LIMIT)]), id="what makes it smaller"),
        pytest.param(update(drop(f"{ENTRIES}[1]"), old=[LARGER]), id="without the large entry"),
        pytest.param(make_review(old=make_lease(LARGER)), id="its deletion"),
    ],
)
def test_a_lease_that_is_larger_may_stay_so(review: Document) -> None:
    assert said("lease-too-large", review) == set()


EMPTIED = "metadata.managedFields"
NEAR = add(owning(MIB))


@pytest.mark.parametrize("bare", [drop(ENTRIES), put(ENTRIES, [])], ids=["removed", "emptied"])
@pytest.mark.parametrize(
    ("tweak", "old", "tier"),
    [
        pytest.param(BARE_RENEWAL, NEAR, WARN, id="a renewal of a lease near the limit of etcd"),
        pytest.param(taken_by(RIVAL), NEAR, WARN, id="a takeover of one"),
        pytest.param(BARE_RENEWAL, add(owning(MIB - 2000)), DENY, id="a renewal of a smaller one"),
        pytest.param(put("metadata.labels.a", "1"), NEAR, DENY, id="a label"),
        pytest.param(put("spec.leaseDurationSeconds", 1), NEAR, DENY, id="a shorter duration"),
        pytest.param(lambda _: None, NEAR, DENY, id="nothing else"),
    ],
)
def test_managed_fields_that_the_api_server_may_have_removed(
    tweak: Tweak, old: Tweak, tier: object, bare: Tweak
) -> None:
    review = update(tweak, bare, old=[old])
    assert said("renewal-stamp-tampered", review) == {(FORBIDDEN, EMPTIED, tier)}
    assert said("lease-too-large", review) == set()


def test_the_size_of_a_list_that_nests_too_deeply_is_not_known() -> None:
    fields: Document = {}
    for _ in range(40):
        fields = {"f:a": fields}
    deep = make_entry(manager="deep") | {"fieldsV1": fields}
    assert said("renewal-stamp-tampered", update(BARE_RENEWAL, drop(ENTRIES), old=[add(deep)])) == {
        (FORBIDDEN, EMPTIED, WARN)
    }


def test_a_renewal_that_keeps_a_large_list_is_compared_as_any_other() -> None:
    assert said("renewal-stamp-tampered", update(BARE_RENEWAL, old=[NEAR])) == set()
    forged = update(BARE_RENEWAL, drop(f"{ENTRIES}[0].time"), old=[NEAR])
    assert said("renewal-stamp-tampered", forged) == {(FORBIDDEN, EMPTIED, DENY)}


# ---- what an apply owns ---------------------------------------------------------------------------------------------


def owner(fields: Document, **changes: object) -> Document:
    return make_entry(manager="gitops", time=STAMPED) | {"operation": "Apply", "fieldsV1": fields} | changes


OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u"}
THERE: dict[str, tuple[Document, tuple[Tweak, ...]]] = {
    "fields of spec, present or not": ({"f:spec": {"f:renewTime": {}, "f:strategy": {}}}, ()),
    "a field of spec that is new": ({"f:spec": {"f:next": {}}}, (put("spec.next", 1),)),
    "a label": ({"f:metadata": {"f:labels": {"f:a": {}}}}, (put("metadata.labels.a", "1"),)),
    "an annotation": (
        {"f:metadata": {"f:annotations": {".": {}, "f:a": {}}}},
        (put("metadata.annotations", {"a": "1"}),),
    ),
    "a finalizer": ({"f:metadata": {"f:finalizers": {'v:"a/b"': {}}}}, (put("metadata.finalizers", ["a/b"]),)),
    "an owner": (
        {"f:metadata": {"f:ownerReferences": {'k:{"uid":"u"}': {}}}},
        (put("metadata.ownerReferences", [OWNER]),),
    ),
}
TAMPERED = {(FORBIDDEN, EMPTIED, DENY)}


@pytest.mark.parametrize("name", THERE)
def test_an_apply_owns_what_it_applied(name: str) -> None:
    fields, tweaks = THERE[name]
    assert said("renewal-stamp-tampered", update(add(owner(fields)), *tweaks)) == set()


@pytest.mark.parametrize("name", [name for name, (_, tweaks) in THERE.items() if tweaks])
def test_an_apply_owns_nothing_else(name: str) -> None:
    fields, _ = THERE[name]
    assert said("renewal-stamp-tampered", update(add(owner(fields)))) == TAMPERED
    unknown = update(add(owner({"f:metadata": {"f:selfLink": {}}})))
    assert said("renewal-stamp-tampered", unknown) == TAMPERED


@pytest.mark.parametrize("name", [name for name, (_, tweaks) in THERE.items() if tweaks])
def test_what_an_apply_owned_before_is_not_held_against_it(name: str) -> None:
    fields, _ = THERE[name]
    before = add(owner(fields))
    assert said("renewal-stamp-tampered", update(RENEWAL, old=[before])) == set()
    more = fields | {"f:spec": {"f:strategy": {}}}
    assert said("renewal-stamp-tampered", update(put(f"{ENTRIES}[1].fieldsV1", more), old=[before])) == set()


def test_many_applies_beside_many_labels_are_compared_in_one_pass() -> None:
    """A second for each would let the write pass unreviewed: 300 entries beside 60,000 labels took ten."""
    old = [make_entry(manager=f"m{at}", time=STAMPED) | {"operation": "Apply"} for at in range(300)]
    new = [one | {"fieldsV1": {"f:metadata": {"f:labels": {"f:l1": {}}}, "f:spec": {".": {}}}} for one in old]
    labels = put("metadata.labels", {f"l{at}": "" for at in range(60_000)})
    change = change_of(update(labels, put(ENTRIES, new), old=[put(ENTRIES, old)]))
    assert isinstance(change, LeaseChange)
    began = process_time()
    assert not list(renewal_stamp_tampered(change))
    assert process_time() - began < 2


def test_the_first_entries_may_be_as_large_as_what_they_own() -> None:
    padding = padded(LIMIT - 9000)
    names: Document = {f"f:{key}": {} for key in make_lease(padding)["metadata"]["labels"]}
    owned = [{"f:metadata": {"f:labels": names}, "f:spec": {"f:renewTime": {}}}, {"f:spec": {"f:holderIdentity": {}}}]
    first = [make_entry(time=STAMPED) | {"operation": "Apply", "fieldsV1": one} for one in owned]
    review = update(padding, RENEWAL, put(ENTRIES, first), old=[padding, drop(ENTRIES)])
    assert said("lease-too-large", review) == set()


def test_a_new_lease_has_no_owner_of_nothing() -> None:
    new = (drop("metadata.resourceVersion"), put("metadata.creationTimestamp", "2025-11-20T12:00:00Z"))
    created = make_review(new=make_lease(*new, add(owner({"f:metadata": {"f:labels": {"f:a": {}}}}, time=None))))
    assert said("renewal-stamp-tampered", created) == TAMPERED


WORDING = [
    pytest.param(
        "lease-too-large",
        update(put("metadata.annotations", {"a": "b" * 300_000})),
        (
            "metadata: Forbidden: must not grow beyond 262144 bytes, from 693 to 300716: etcd refuses objects that are "
            "too large; write fewer or shorter labels, owners, finalizers and entries of managedFields"
        ),
        "the lease grew from 693 to 300716 bytes: etcd refuses objects that are too large",
        id="a lease that grows",
    ),
]
