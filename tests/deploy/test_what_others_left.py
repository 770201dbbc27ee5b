"""Whatever others wrote into a lease, its writer renews it and whoever may take it can, by deploy/stamp."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from tests.factories import Document
from tests.stamp_policies import SUFFIX, Written, refusals, stamped, stored

KEYS: Final = [f"lease-webhook/{name}-{SUFFIX}" for name in ("writer", "written", "term")]
CONSTANT: Final = {"manager": "lease-webhook-stamp", "operation": "Update", "time": "2000-01-01T00:00:00Z"}
SPEC: Final = {"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 3}
OWNER: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "checkout", "uid": "1"}
NAMESPACE: Final = {"lease-webhook/stamp": "required"}
OPEN: Final = NAMESPACE | {"lease-webhook/stamp-metadata": "open"}
PENDING: Final = {"lease-webhook/stamp": "pending"}


def user(name: str, *groups: str) -> Document:
    """A service account with a pod of the same name."""
    extra = {"authentication.kubernetes.io/pod-uid": [f"uid-{name}"]}
    return {"username": f"system:serviceaccount:shop:{name}", "groups": list(groups), "extra": extra}


A, B, ADMIN = user("a"), user("b"), {"username": "jane", "groups": ["system:masters"], "extra": {}}


def second(number: int) -> str:
    return f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z"


def lease(*, at: int = 0, writer: str = "a", **metadata: Any) -> Document:
    """A lease that was renewed at this second by this writer; it has no stamps if that is ""."""
    annotations = dict(zip(KEYS, (f"uid-{writer} system:serviceaccount:shop:{writer}", second(at), "40"), strict=True))
    whole: Document = {"resourceVersion": "70", "creationTimestamp": second(0), "managedFields": [CONSTANT]} | metadata
    whole["annotations"] = (annotations if writer else {}) | metadata.get("annotations", {})
    return {"metadata": whole, "spec": SPEC | {"renewTime": second(at).replace("Z", ".000000Z")}}


def changed(old: Document | None, at: int = 1, **spec: Any) -> Document:
    """The lease with another renewTime, and with the entry that the API server makes for this write."""
    base = old or lease(writer="")
    renewed = {"renewTime": second(at).replace("Z", ".100000Z")} | spec
    fields: Document = {f"f:{name}": {} for name in renewed}
    entry = {"manager": "elector", "operation": "Update", "time": second(at), "fieldsV1": {"f:spec": fields}}
    metadata = base["metadata"] | {"managedFields": [CONSTANT, entry]}
    return {"metadata": metadata, "spec": base["spec"] | renewed}


def with_metadata(document: Document, **metadata: Any) -> Document:
    """The document with more of maps and lists, as an elector puts its own back with each write."""
    merged = dict(document["metadata"])
    for name, more in metadata.items():
        before = merged.get(name)
        if isinstance(before, dict):
            merged[name] = before | more
        else:
            merged[name] = [*(before or ()), *more] if isinstance(more, list) else more
    return document | {"metadata": merged}


def many(number: int, name: str = "x") -> dict[str, str]:
    return {f"{name}{at}": "" for at in range(number)}


FILLED: Final[dict[str, Document]] = {
    "64 labels": {"labels": many(64)},
    "65 labels": {"labels": many(65)},
    "1,500 labels": {"labels": many(1_500)},
    "97 annotations": {"annotations": many(97)},
    **{f"{number} annotations": {"annotations": many(number)} for number in range(98, 108)},
    "199 annotations": {"annotations": many(199)},
    "1,500 annotations": {"annotations": many(1_500)},
    "16,384 characters of annotations": {"annotations": {"x": "v" * 16_383}},
    "250,000 characters of annotations": {"annotations": {"x": "v" * 250_000}},
    "8 finalizers": {"finalizers": [f"a.b/c{at}" for at in range(8)]},
    "9 finalizers": {"finalizers": [f"a.b/c{at}" for at in range(9)]},
    "500 finalizers": {"finalizers": [f"a.b/c{at}" for at in range(500)]},
    "8 owners": {"ownerReferences": [OWNER | {"uid": f"u{at}"} for at in range(8)]},
    "500 owners": {"ownerReferences": [OWNER | {"uid": f"u{at}"} for at in range(500)]},
    "a long generateName": {"generateName": "x" * 1_000_000},
    "65 labels and an owner": {"labels": many(65), "ownerReferences": [OWNER | {"uid": "u"}]},
    "9 finalizers and an owner": {
        "finalizers": [f"a.b/c{at}" for at in range(9)],
        "ownerReferences": [OWNER | {"uid": "u"}],
    },
    "an emptied list": {"managedFields": []},
    "nothing": {},
}
OWN: Final[dict[str, Document]] = {
    "puts nothing back": {},
    "puts its label back": {"labels": {"own": "1"}},
    "puts its annotation back": {"annotations": {"elector/epoch": "9"}},
    "puts its finalizer back": {"finalizers": ["own/one"]},
    "puts its owner back": {"ownerReferences": [OWNER]},
}
QUICK: Final = {
    *("nothing", "65 labels", "101 annotations", "1,500 annotations", "9 finalizers", "500 owners"),
    *("puts nothing back", "puts its owner back"),
}
"""The combinations that `make test` runs; all of them take ten times as long."""


def each(name: str, documents: Mapping[str, Document]) -> pytest.MarkDecorator:
    """A case for each document, as the argument of this name."""
    return pytest.mark.parametrize(
        name,
        [
            pytest.param(document, id=title, marks=[] if title in QUICK else [pytest.mark.slow])
            for title, document in documents.items()
        ],
    )


def refused(write: Written) -> list[str]:
    return stored(write)[1]


@each("own", OWN)
@each("filled", FILLED)
@pytest.mark.parametrize("writer", ["a", ""], ids=["stamped", "filled before the label"])
def test_the_holder_renews_and_releases(writer: str, filled: Document, own: Document) -> None:
    old = lease(writer=writer, **filled)
    renewal = Written(A, with_metadata(changed(old), **own), old)
    assert refused(renewal) == []
    release = Written(A, with_metadata(changed(old, holderIdentity="", leaseDurationSeconds=1), **own), old)
    assert refused(release) == []


@each("own", OWN)
@each("filled", FILLED)
@pytest.mark.parametrize(
    ("writer", "holder"),
    [("a", "a"), ("a", ""), ("", "a"), ("", "")],
    ids=["expired", "released", "expired before the label", "free before the label"],
)
def test_the_next_holder_takes_it_and_has_it_with_stamps(
    writer: str, holder: str, filled: Document, own: Document
) -> None:
    old = lease(writer=writer, **filled)
    old["spec"]["holderIdentity"] = holder
    claim = Written(B, with_metadata(changed(old, at=30, holderIdentity="b"), **own), old)
    new, refusal = stored(claim)
    assert refusal == []
    assert new is not None
    assert [new["metadata"]["annotations"].get(key) for key in KEYS[:2]] == [
        "uid-b system:serviceaccount:shop:b",
        second(30),
    ]
    for kind, most in (("labels", 1_000), ("finalizers", 200), ("ownerReferences", 100)):
        if len(filled.get(kind, ())) <= most:
            assert [one for one in own.get(kind, ()) if one not in new["metadata"].get(kind, ())] == []
    # Its own renewal follows, with everything put back.
    again = with_metadata(changed(new, at=32), **own)
    assert refused(Written(B, again, new)) == []


@each("own", OWN)
@each("filled", FILLED)
@pytest.mark.parametrize("writer", ["a", ""], ids=["stamped", "filled before the label"])
def test_a_release_may_come_late(writer: str, filled: Document, own: Document) -> None:
    """Someone else made the lease free, and its holder releases it over a copy of before."""
    old = lease(writer=writer, **filled)
    old["spec"]["holderIdentity"] = ""
    release = changed(old, at=30, leaseDurationSeconds=1)
    assert refused(Written(A, with_metadata(release, **own), old)) == []
    assert refused(Written(B, with_metadata(release, **own), old)) == []


@pytest.mark.parametrize("count", [101, 199, 1_500])
@pytest.mark.parametrize(
    ("holder", "namespace"), [("", NAMESPACE), ("a", OPEN)], ids=["a free lease", "a held one with open metadata"]
)
def test_others_only_remove_annotations_of_a_lease_that_has_too_many(
    holder: str, namespace: Document, count: int
) -> None:
    writer = "a" if count < 200 else ""  # the stamps are removed from a lease that has too many for them
    old = lease(writer=writer, annotations=many(count))
    old["spec"]["holderIdentity"] = holder
    for annotations, number in ((many(count + 1), 1), (many(count - 1), 0), (many(100), 0)):
        new = lease(writer=writer, annotations=annotations) | {"spec": old["spec"]}
        assert len(refused(Written(B, new, old, namespace))) == number


def test_what_is_within_the_bounds_stays_with_the_next_holder() -> None:
    old = lease(labels=many(64), annotations=many(100), finalizers=["a.b/c"])
    new = stamped(Written(B, changed(old, at=30, holderIdentity="b"), old))
    assert new is not None
    assert len(new["metadata"]["labels"]) == 64
    assert len(new["metadata"]["annotations"]) == 103
    assert new["metadata"]["finalizers"] == ["a.b/c"]


def test_a_next_holder_has_its_own_owner_and_not_those_of_before() -> None:
    old = lease(ownerReferences=[OWNER | {"uid": f"u{at}"} for at in range(8)])
    claim = with_metadata(changed(old, at=30, holderIdentity="b"), ownerReferences=[OWNER])
    new = stamped(Written(B, claim, old))
    assert new is not None
    assert new["metadata"]["ownerReferences"] == [OWNER]


def test_a_lease_that_is_being_deleted_keeps_its_finalizers() -> None:
    old = lease(finalizers=[f"a.b/c{at}" for at in range(9)], deletionTimestamp=second(0))
    new, refusal = stored(Written(B, changed(old, at=30, holderIdentity="b"), old))
    assert refusal == []
    assert new is not None
    assert len(new["metadata"]["finalizers"]) == 9


@pytest.mark.parametrize("size", [1_000_000])
def test_a_list_that_the_api_server_emptied_stays_empty_without_room_for_stamps(size: int) -> None:
    old = lease(writer="", managedFields=[], generateName="x" * size)
    renewal = changed(old)
    renewal["metadata"]["managedFields"] = []
    new = stamped(Written(A, renewal, old))
    assert new == renewal


def put(by: Document, old: Document, sent: Document) -> Document:
    """Return the object that is stored after an admitted write."""
    new, refusal = stored(Written(by, sent, old))
    assert refusal == []
    assert new is not None
    return new


def stamps(document: Document) -> list[str | None]:
    return [document["metadata"]["annotations"].get(key) for key in KEYS]


AT_THE_LIMIT: Final[dict[str, Document]] = {
    "1,000 labels": {"labels": many(1_000)},
    "200 annotations": {"annotations": many(200)},
    "49,152 characters": {"annotations": {"x": "v" * 49_151}},
    "200 finalizers": {"finalizers": [f"a.b/c{at}" for at in range(200)]},
    "100 owners": {"ownerReferences": [OWNER | {"uid": f"u{at}"} for at in range(100)]},
    "an owner of 65,522 characters": {"ownerReferences": [OWNER | {"uid": "u", "name": "x" * 65_504}]},
    "a generateName of 32,768 characters": {"generateName": "x" * 32_768},
    "nothing": {},
}
GROWTH: Final[dict[str, Document]] = {
    "labels": {"labels": many(1_001, "y")},
    "a label": {"labels": {"own": "1"}},
    "annotations": {"annotations": many(201, "y")},
    "an annotation": {"annotations": {"own": "1"}},
    "characters": {"annotations": {"y": "v" * 49_153}},
    "finalizers": {"finalizers": [f"a.b/d{at}" for at in range(201)]},
    "a finalizer": {"finalizers": ["own/one"]},
    "owners": {"ownerReferences": [OWNER | {"uid": f"v{at}"} for at in range(101)]},
    "an owner": {"ownerReferences": [OWNER]},
    "a long owner": {"ownerReferences": [OWNER | {"name": "x" * 65_537}]},
    "a generateName": {"generateName": "x" * 32_769},
}


EIGHT_OWN: Final = [OWNER | {"uid": f"own{at}"} for at in range(8)]
FROM_ITSELF: Final[dict[str, tuple[str, Any]]] = {
    "a label": ("labels", {"own": "1"}),
    "64 labels": ("labels", many(64, "own")),
    "a finalizer": ("finalizers", ["own/one"]),
    "8 finalizers": ("finalizers", [f"own/{at}" for at in range(8)]),
    "an owner": ("ownerReferences", [OWNER | {"uid": "own", "controller": True}]),
    "8 owners": ("ownerReferences", EIGHT_OWN),
}


@pytest.mark.parametrize(("kind", "own"), FROM_ITSELF.values(), ids=list(FROM_ITSELF))
@pytest.mark.parametrize("before", AT_THE_LIMIT.values(), ids=list(AT_THE_LIMIT))
def test_what_a_claim_brings_is_there_beside_the_most_that_a_writer_leaves(
    before: Document, kind: str, own: Any
) -> None:
    """It is all that is there of a kind that was beyond its bound; within it, labels and finalizers of before stay."""
    old = lease(**before)
    new = put(B, old, with_metadata(changed(old, at=30, holderIdentity="b"), **{kind: own}))
    assert all(stamps(new))
    assert new["metadata"][kind] == own


@pytest.mark.parametrize("count", [1, 2])
def test_a_writer_that_goes_beyond_the_room_keeps_what_it_adds(count: int) -> None:
    for kind, most, own in (
        ("labels", many(1_000), many(count, "own")),
        ("finalizers", [f"a.b/c{at}" for at in range(200)], [f"own/{at}" for at in range(count)]),
        ("ownerReferences", [OWNER | {"uid": f"u{at}"} for at in range(100)], EIGHT_OWN[:count]),
    ):
        full: dict[str, Any] = {kind: most}
        old = lease(**full)
        assert put(A, old, with_metadata(old, **{kind: own}))["metadata"][kind] == own


@pytest.mark.parametrize("growth", GROWTH.values(), ids=list(GROWTH))
@pytest.mark.parametrize("before", AT_THE_LIMIT.values(), ids=list(AT_THE_LIMIT))
@pytest.mark.parametrize("spec", [None, {}, {"holderIdentity": "b"}], ids=["metadata", "a renewal", "another holder"])
def test_the_writer_keeps_its_stamps_whatever_it_adds(
    before: Document, growth: Document, spec: Document | None
) -> None:
    """Else whoever holds a lease briefly could leave it without stamps, under the name of its next holder."""
    old = lease(**before)
    for at in (1, 2):
        sent = old if spec is None else changed(old, at=at, **spec)
        old = put(A, old, with_metadata(sent, **growth))
        assert all(stamps(old))
    for kind in ("labels", "finalizers"):
        own = growth.get(kind, ())
        assert len(own) > 1 or all(one in old["metadata"][kind] for one in own)


@pytest.mark.parametrize("growth", GROWTH.values(), ids=list(GROWTH))
@pytest.mark.parametrize("before", AT_THE_LIMIT.values(), ids=list(AT_THE_LIMIT))
def test_a_lease_gets_its_first_stamp_whatever_its_holder_adds(before: Document, growth: Document) -> None:
    old = lease(writer="", **before)
    assert all(stamps(put(A, old, with_metadata(changed(old), **growth))))


def test_the_writer_of_a_lease_without_room_renews_it_and_cuts_it() -> None:
    old = put(A, lease(writer="", labels=many(1_500)), changed(lease(writer="", labels=many(1_500))))
    assert not any(stamps(old))
    assert len(old["metadata"]["labels"]) == 1_500
    cut = put(A, old, with_metadata(old, labels={}) | {"metadata": old["metadata"] | {"labels": many(900)}})
    assert stamps(put(A, cut, changed(cut, at=2)))[0] == "uid-a system:serviceaccount:shop:a"


def test_a_lease_that_is_being_deleted_has_stamps_beside_201_finalizers() -> None:
    """None can be added or removed for its next holder, so their number is no way to keep stamps off it."""
    old = lease(writer="", finalizers=[f"a.b/c{at}" for at in range(201)], deletionTimestamp=second(0))
    old["spec"]["holderIdentity"] = ""
    assert all(stamps(put(B, old, changed(old, at=30, holderIdentity="b"))))


@pytest.mark.parametrize("by", [A, B], ids=["the holder", "another writer"])
def test_the_first_write_of_a_holder_that_an_exempt_writer_chose_removes_owners(by: Document) -> None:
    """Anyone may have left them in the lease since."""
    old = lease(ownerReferences=[OWNER])
    old["metadata"]["annotations"][KEYS[0]] = ""
    assert not put(by, old, changed(old, at=1))["metadata"]["ownerReferences"]


def test_the_first_stamp_of_a_held_lease_keeps_its_owner() -> None:
    old = lease(writer="", ownerReferences=[OWNER])
    assert put(A, old, changed(old, at=1))["metadata"]["ownerReferences"] == [OWNER]


FULL: Final[Document] = {
    "labels": many(70),
    "annotations": many(150),
    "finalizers": [f"a.b/c{at}" for at in range(9)],
    "ownerReferences": [OWNER],
}


def cut(old: Document, **metadata: Any) -> Document:
    """Return the request of someone who replaces some metadata."""
    return old | {"metadata": old["metadata"] | metadata}


EIGHT: Final[Document] = {"ownerReferences": [OWNER | {"uid": f"{at}"} for at in range(492, 500)]}
BEFORE_FIRST: Final[dict[str, tuple[Document, Document]]] = {
    "annotations are cut": (FULL | {"annotations": many(300)}, {"annotations": many(150)}),
    "labels are cut": (FULL | {"labels": many(1_001)}, {"labels": many(70)}),
    "finalizers are cut": (FULL | {"finalizers": [f"a.b/c{at}" for at in range(201)]}, {"finalizers": ["a.b/c0"]}),
    "owners are cut": (FULL | {"ownerReferences": [OWNER, OWNER | {"uid": "2"}]}, {"ownerReferences": [OWNER]}),
    "500 owners are cut": (FULL | {"ownerReferences": [OWNER | {"uid": f"{at}"} for at in range(500)]}, EIGHT),
    "all finalizers are removed": (FULL, {"finalizers": []}),
    "nothing is changed": (FULL, {}),
    "a label is set": (FULL | {"labels": many(63)}, {"labels": many(64)}),
    "a stamp is forged": (FULL, {"annotations": FULL["annotations"] | dict.fromkeys(KEYS, "-  ")}),
}


@pytest.mark.parametrize(("before", "change"), BEFORE_FIRST.values(), ids=list(BEFORE_FIRST))
@pytest.mark.parametrize("by", [A, B, ADMIN], ids=["the holder", "a stranger", "an administrator"])
def test_a_write_before_the_first_stamp_of_a_held_lease_ends_nothing(
    by: Document, before: Document, change: Document
) -> None:
    old = lease(writer="", **before)
    old = put(by, old, cut(old, **change))
    assert not any(key in old["metadata"]["annotations"] for key in KEYS)
    new = put(A, old, changed(old))
    assert all(stamps(new))
    for kind in ("labels", "finalizers", "ownerReferences"):
        assert new["metadata"][kind] == old["metadata"][kind]
    assert old["metadata"]["annotations"].items() <= new["metadata"]["annotations"].items()


def test_a_correction_before_the_first_stamp_of_a_held_lease_ends_nothing() -> None:
    old = lease(writer="", **FULL)
    old = put(ADMIN, old, changed(old, leaseDurationSeconds=700))
    new = put(A, old, changed(old, at=2))
    assert all(stamps(new))
    assert new["metadata"]["ownerReferences"] == [OWNER]
    assert len(new["metadata"]["annotations"]) == 153


@pytest.mark.parametrize(
    "owners",
    [[OWNER, OWNER | {"uid": "2"}], [OWNER | {"uid": "2"}], [OWNER | {"controller": True}]],
    ids=["one more", "another", "one that is changed"],
)
@pytest.mark.parametrize("then", ["a renewal", "a cut, then a renewal"])
def test_an_owner_that_is_set_before_the_first_stamp_of_a_held_lease_is_removed(owners: list[Any], then: str) -> None:
    """Whoever sets an owner may delete that, and the garbage collector then deletes the lease."""
    old = lease(writer="", ownerReferences=[OWNER])
    old = put(B, old, cut(old, ownerReferences=owners))
    if then != "a renewal":
        old = put(ADMIN, old, cut(old, labels={}))
    assert not put(A, old, changed(old, at=2))["metadata"]["ownerReferences"]


@pytest.mark.parametrize("holder", ["a", ""], ids=["held", "free"])
@pytest.mark.parametrize("by", [A, B, ADMIN], ids=["the holder", "a stranger", "an administrator"])
@pytest.mark.parametrize(
    "change",
    [{}, {"finalizers": []}, {"labels": {}}, {"ownerReferences": []}],
    ids=["nothing", "finalizers", "labels", "owners"],
)
def test_the_first_stamp_adds_no_annotation_that_counts(holder: str, by: Document, change: Document) -> None:
    old = lease(writer="", annotations=many(101), finalizers=[f"a.b/c{at}" for at in range(201)], labels=many(70))
    old["spec"] = old["spec"] | {"holderIdentity": holder}
    put(by, old, cut(old, **change))


@pytest.mark.parametrize("count", [101, 149, 200])
def test_whoever_removes_an_annotation_may_shorten_another(count: int) -> None:
    old = lease(annotations=many(count) | {"x1": "v" * 20_000})
    for text, number in (("v" * 20_000, 0), ("w" * 19_999, 0), ("v" * 20_005, 1)):
        new = lease(annotations=many(count - 1) | {"x1": text})
        assert len(refused(Written(B, new, old, OPEN))) == number


def test_whoever_takes_a_lease_does_not_bring_as_much_as_it_had() -> None:
    old = lease(annotations={"x": "v" * 40_000})
    claim = changed(old, at=30, holderIdentity="b")
    assert len(refused(Written(B, cut(claim, annotations={"x": "w" * 40_000}), old))) == 1


@pytest.mark.parametrize("by", [A, B], ids=["renewed by its writer", "taken"])
def test_a_lease_that_is_being_deleted_outlives_a_put_without_metadata(by: Document) -> None:
    """Else it would be gone, and free for anyone to create, while the elector believes to hold it."""
    old = lease(finalizers=["a.b/c", "a.b/d"], deletionTimestamp=second(0))
    holder = "a" if by is A else "b"
    for finalizers in ([], ["a.b/d"]):
        sent = cut(changed(old, at=30, holderIdentity=holder), finalizers=finalizers, annotations={})
        new = put(by, old, sent)
        assert new["metadata"]["finalizers"] == old["metadata"]["finalizers"]
        assert all(stamps(new))
        again = put(
            by, new, cut(new, finalizers=finalizers, annotations={}, managedFields=sent["metadata"]["managedFields"])
        )
        assert again == new


@pytest.mark.parametrize(
    "way", ["a release", "metadata alone", "a lease that is not being deleted", "an administrator"]
)
def test_finalizers_can_be_removed(way: str) -> None:
    deleted: Document = {} if "not" in way else {"deletionTimestamp": second(0)}
    old = lease(finalizers=["a.b/c"], **deleted)
    sent = (
        old if way == "metadata alone" else changed(old, at=2, **({"holderIdentity": ""} if "release" in way else {}))
    )
    new = put(ADMIN if "administrator" in way else A, old, cut(sent, finalizers=[]))
    assert not new["metadata"]["finalizers"]


@pytest.mark.parametrize("count", [101, 199])
def test_whoever_removes_one_of_too_many_annotations_changes_no_other(count: int) -> None:
    old = lease(annotations=many(count))
    new = lease(annotations=many(count - 1) | {"x1": "v" * 250_000})
    text = "a lease has at most 100 annotations, of 16,384 characters together (lease-webhook)"
    assert text in refused(Written(B, new, old, OPEN))
    taken = lease(annotations={"own": "v" * 250_000})
    claim = changed(old, at=30, holderIdentity="b")
    claim["metadata"] = claim["metadata"] | {"annotations": taken["metadata"]["annotations"]}
    assert refused(Written(B, claim, old)) == [text]


def test_whoever_takes_a_lease_with_too_many_annotations_brings_no_more_than_others() -> None:
    old = lease(writer="", annotations=many(1_500))
    claim = changed(old, at=30, holderIdentity="b")
    claim["metadata"] = claim["metadata"] | {"annotations": many(300, "y")}
    assert len(refused(Written(B, claim, old))) == 1


METADATA: Final[dict[str, Document]] = {
    "a label": {"labels": {"x": "1"}},
    "an annotation": {"annotations": {"x": "1"}},
    "a finalizer": {"finalizers": ["a.b/c"]},
    "an owner": {"ownerReferences": [OWNER]},
}


@pytest.mark.parametrize("metadata", METADATA.values(), ids=list(METADATA))
def test_nobody_else_changes_metadata_of_a_held_lease(metadata: Document) -> None:
    for old, new in ((lease(), with_metadata(lease(), **metadata)), (with_metadata(lease(), **metadata), lease())):
        text = "only the writer of a held lease may change its metadata (lease-webhook)"
        assert refused(Written(B, new, old))[0] == text
        assert refused(Written(A, new, old)) == []
        assert refused(Written(ADMIN, new, old)) == []
    free = lease()
    free["spec"]["holderIdentity"] = ""
    assert refused(Written(B, with_metadata(free, **metadata), free)) == []


def test_a_write_that_changes_nothing_is_everyones() -> None:
    assert refused(Written(B, lease(), lease())) == []


@pytest.mark.parametrize(("name", "count"), [("a label", 0), ("an annotation", 0), ("a finalizer", 0), ("an owner", 1)])
def test_a_namespace_may_leave_metadata_open(name: str, count: int) -> None:
    write = Written(B, with_metadata(lease(), **METADATA[name]), lease(), OPEN)
    assert len(refused(write)) == count


@pytest.mark.parametrize("field", ["strategy", "preferredHolder"])
@pytest.mark.parametrize("length", [1, 32_769], ids=["stamped", "too long for stamps"])
@pytest.mark.parametrize("adopters", [False, True], ids=["open metadata", "an adopter"])
def test_fields_that_the_api_server_drops_make_no_other_writer(field: str, length: int, adopters: bool) -> None:
    """Without the feature gate CoordinatedLeaderElection it drops them after the stamp and before the guard."""
    old = lease()
    sent = lease() | {"spec": old["spec"] | {field: "x" * length}}
    labels, annotations = (NAMESPACE, ADOPTERS) if adopters else (OPEN, {})
    for by, number in ((B, 1), (A, 0)):
        left = stamped(Written(by, sent, old, labels, annotations=annotations))
        assert left is not None
        assert len(refusals(Written(by, left | {"spec": old["spec"]}, old, labels, annotations=annotations))) == number
    free = {"spec": old["spec"] | {"holderIdentity": ""}}
    left = stamped(Written(B, sent | {"spec": free["spec"] | {field: "x"}}, old | free, labels))
    assert left is not None
    assert refusals(Written(B, left | free, old | free, labels)) == []


ADOPTERS: Final = {"lease-webhook/stamp-adopters": "system:serviceaccount:shop:c,system:serviceaccount:shop:b"}


@pytest.mark.parametrize("metadata", METADATA.values(), ids=list(METADATA))
def test_whom_the_namespace_names_changes_metadata_of_a_held_lease(metadata: Document) -> None:
    new = with_metadata(lease(), **metadata)
    assert refused(Written(B, new, lease(), annotations=ADOPTERS)) == []
    for name in ("system:serviceaccount:shop", "system:serviceaccount:shop:c ", ""):
        others = {"lease-webhook/stamp-adopters": name}
        assert refused(Written(B, new, lease(), annotations=others)) != []


def test_whom_the_namespace_names_may_do_nothing_else() -> None:
    deleted = lease(deletionTimestamp=second(0), finalizers=["a.b/c"])
    for new, old in (
        (changed(lease()), lease()),
        (changed(lease(), holderIdentity="b"), lease()),
        (None, lease()),
        (lease(deletionTimestamp=second(0)), deleted),
    ):
        assert len(refused(Written(B, new, old, annotations=ADOPTERS))) == 1


def test_an_owner_that_an_operator_sets_again_after_a_takeover_stays() -> None:
    """The takeover removes the owner: who set it is not known then."""
    old = lease(ownerReferences=[OWNER])
    taken = stamped(Written(B, changed(old, at=30, holderIdentity="b"), old))
    assert taken is not None
    assert not taken["metadata"]["ownerReferences"]
    operator = user("c")
    owned, refusal = stored(
        Written(operator, with_metadata(taken, ownerReferences=[OWNER]), taken, annotations=ADOPTERS)
    )
    assert refusal == []
    assert owned is not None
    renewed, refusal = stored(Written(B, changed(owned, at=32), owned))
    assert refusal == []
    assert renewed is not None
    assert renewed["metadata"]["ownerReferences"] == [OWNER]


@pytest.mark.parametrize("own", OWN.values(), ids=list(OWN))
def test_open_metadata_costs_the_writer_no_renewal(own: Document) -> None:
    """Strangers fill what they may; the elector puts its own back."""
    full: Document = {"labels": many(64), "annotations": many(100), "finalizers": [f"a.b/c{at}" for at in range(8)]}
    assert refused(Written(B, with_metadata(lease(), **full), lease(), OPEN)) == []
    old = lease(**full)
    assert refused(Written(A, with_metadata(changed(old), **own), old, OPEN)) == []


BEYOND: Final[dict[str, Document]] = {
    "65 labels": {"labels": many(65)},
    "101 annotations": {"annotations": many(101)},
    "16,385 characters": {"annotations": {"x": "v" * 16_384}},
    "9 finalizers": {"finalizers": [f"a.b/c{at}" for at in range(9)]},
    "9 owners": {"ownerReferences": [OWNER | {"uid": f"u{at}"} for at in range(9)]},
    "a long generateName": {"generateName": "x" * 254},
    "50,000 finalizers": {"finalizers": [f"{at:x}" for at in range(50_000)]},
    "a finalizer of the collector": {"finalizers": ["orphan"]},
}


@pytest.mark.parametrize("beyond", BEYOND.values(), ids=list(BEYOND))
def test_what_a_stranger_leaves_in_a_free_lease_is_small(beyond: Document) -> None:
    free = lease()
    free["spec"]["holderIdentity"] = ""
    assert refused(Written(B, with_metadata(free, **beyond), free)) != []
    created = with_metadata(changed(None), **beyond)
    assert refused(Written(B, created, None)) != []


@pytest.mark.parametrize("name", ["labels", "finalizers"])
def test_a_person_cuts_what_is_too_much(name: str) -> None:
    some: list[Any] = [many(70), many(69)] if name == "labels" else [[f"{at}" for at in range(20)], ["1", "2"]]
    old, new = (lease(writer="", **{name: one}) for one in some)
    assert refused(Written(B, new, old)) == []


@pytest.mark.parametrize("finalizer", ["orphan", "foregroundDeletion"])
def test_the_writer_cannot_have_the_collector_delete_the_lease_later_and_is_not_refused(finalizer: str) -> None:
    old = lease(finalizers=["a.b/c"])
    new, refusal = stored(Written(A, with_metadata(changed(old), finalizers=[finalizer]), old))
    assert refusal == []
    assert new is not None
    assert new["metadata"]["finalizers"] == ["a.b/c"]


@pytest.mark.parametrize("by", [A, B], ids=["its writer", "another, who takes it"])
@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"leaseTransitions": 2_147_483_647}, id="a count that overflows"),
        pytest.param({"leaseTransitions": 1_000_000_000}, id="a count near it"),
        pytest.param({"leaseDurationSeconds": 86_401}, id="a duration of more than a day"),
        pytest.param({"holderIdentity": "x" * 1_025}, id="a holder of 1,025 characters"),
        pytest.param({"strategy": "x" * 1_025}, id="a strategy of 1,025 characters"),
        pytest.param({"preferredHolder": "x" * 1_025}, id="a preferred holder of 1,025 characters"),
        pytest.param({"renewTime": "2999-01-01T00:00:00.000000Z"}, id="the year 2999"),
        pytest.param({"renewTime": "2026-01-02T00:00:31.000000Z"}, id="a day and a second ahead"),
        pytest.param({"renewTime": "10000-01-01T00:00:00.000000Z"}, id="a year that no client reads"),
    ],
)
def test_no_value_keeps_everyone_else_from_the_lease(by: Document, spec: Document) -> None:
    old = lease()
    holder = {"holderIdentity": "a" if by is A else "b"}
    assert len(refused(Written(by, changed(old, at=30, **holder | spec), old))) == 1


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"holderIdentity": "x" * 1_024}, id="a holder of 1,024 characters"),
        pytest.param({"strategy": "x" * 1_024}, id="a strategy of 1,024 characters"),
        pytest.param({"preferredHolder": "x" * 1_024}, id="a preferred holder of 1,024 characters"),
        pytest.param({"leaseDurationSeconds": 86_400}, id="a duration of a day"),
        pytest.param({"leaseTransitions": 999_999_999}, id="the greatest count"),
        pytest.param({"renewTime": "2026-01-02T00:00:30.000000Z"}, id="a day ahead"),
    ],
)
def test_a_value_at_its_bound_is_stored(spec: Document) -> None:
    old = lease()
    assert refused(Written(A, changed(old, at=30, **spec), old)) == []
    assert refused(Written(B, changed(old, at=30, **{"holderIdentity": "b"} | spec), old)) == []


def test_a_count_goes_on_from_what_others_set() -> None:
    old = lease()
    old["spec"] = old["spec"] | {"leaseTransitions": 999_999_999}
    claim = changed(old, at=30, holderIdentity="b", leaseTransitions=1_000_000_000)
    assert refused(Written(B, claim, old)) == []


@pytest.mark.parametrize(
    "renew", ["2026-01-02T00:00:29.000000Z", "2025-01-01T00:00:00.000000Z", "0001-01-01T00:00:00.000000Z"]
)
def test_a_clock_may_be_wrong_by_a_day_and_slow_by_any(renew: str) -> None:
    old = lease()
    assert refused(Written(A, changed(old, at=30, renewTime=renew), old)) == []


def test_a_write_is_not_dated_by_its_client() -> None:
    """A list that the client emptied leaves the write without a time: it does not choose one either."""
    old = lease()
    old["spec"] = old["spec"] | {"holderIdentity": ""}
    for far, number in (("2999-01-01T00:00:00.000000Z", 1), ("2026-01-01T00:00:30.000000Z", 0)):
        claim = changed(old, at=30, holderIdentity="b", renewTime=far)
        claim["metadata"] = claim["metadata"] | {"managedFields": []}
        assert len(refused(Written(B, claim, old))) == number


def test_an_administrator_repairs_a_renew_time() -> None:
    old = lease()
    correction = changed(old, at=30, renewTime="2026-02-01T00:00:00.000000Z")
    assert refused(Written(ADMIN, correction, old)) == []


@pytest.mark.parametrize("write", ["a label", "a renewal", "a creation"])
def test_a_pending_namespace_only_loses_what_looks_like_a_stamp(write: str) -> None:
    planted = lease(writer="b", labels={"a": "b"}, annotations={"note": "1"})
    new = changed(planted) if write != "a label" else with_metadata(planted, labels={"x": "1"})
    after = stamped(Written(A, new, None if write == "a creation" else planted, PENDING))
    assert after is not None
    assert after["metadata"] == new["metadata"] | {"annotations": {"note": "1"}}
    assert after["spec"] == new["spec"]


def test_a_pending_namespace_leaves_other_writes_as_they_are() -> None:
    old = lease(writer="")
    assert stamped(Written(A, changed(old), old, PENDING)) == changed(old)


YEAR_10000: Final = "10000-01-01T00:59:59.999999Z"
REQUIRED_OR_PENDING: Final = pytest.mark.parametrize("namespace", [NAMESPACE, PENDING], ids=["required", "pending"])


def with_spec(document: Document, **spec: Any) -> Document:
    return document | {"spec": document["spec"] | spec}


@REQUIRED_OR_PENDING
@pytest.mark.parametrize("text", [YEAR_10000, "-0001-01-01T00:59:59.999999Z"])
@pytest.mark.parametrize("writer", ["a", ""], ids=["stamped", "left before the label"])
def test_a_time_that_cannot_be_read_ends_with_a_renewal(writer: str, text: str, namespace: Document) -> None:
    """The API server reads what the policy leaves from JSON again, and would refuse the renewal."""
    old = with_spec(lease(writer=writer), acquireTime=text)
    new, refusal = stored(Written(A, changed(old), old, namespace))
    assert refusal == []
    assert new is not None
    assert new["spec"] == {**SPEC, "renewTime": "2026-01-01T00:00:01.100000Z"}
    assert all(stamps(new)) == (namespace is NAMESPACE)


@REQUIRED_OR_PENDING
@pytest.mark.parametrize("text", [None, "0000-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z"])
def test_a_time_that_can_be_read_stays(text: str | None, namespace: Document) -> None:
    """An API server makes null of the beginning of year 1."""
    old = with_spec(lease(), acquireTime=text, renewTime=text)
    for sent in (with_metadata(old, labels={"x": "1"}), with_spec(changed(old), renewTime=text)):
        new = stamped(Written(A, sent, old, namespace))
        assert new is not None
        assert new["spec"] == old["spec"]


@REQUIRED_OR_PENDING
def test_a_time_that_a_write_sets_itself_stays_and_is_refused_by_the_api_server(namespace: Document) -> None:
    for old in (lease(), None):
        sent = changed(old, renewTime=YEAR_10000, acquireTime=YEAR_10000)
        new = stamped(Written(A, sent, old, namespace))
        assert new is not None
        assert new["spec"] == sent["spec"]


def test_a_time_that_cannot_be_read_helps_no_stranger() -> None:
    """Without it the write would change spec, so it does not pass for one of metadata alone."""
    old = with_spec(lease(), acquireTime=YEAR_10000)
    for sent in (old, with_metadata(old, labels={"x": "1"}), changed(old, holderIdentity="b")):
        assert "lease is held; retry when it has expired (lease-webhook)" in refused(Written(B, sent, old, OPEN))
    assert refused(Written(B, changed(old, at=30, holderIdentity="b"), old)) == []
    assert refused(Written(ADMIN, with_metadata(old, labels={"x": "1"}), old)) == []


@pytest.mark.parametrize("time", ["10000-01-01T00:59:59Z", "-0001-01-01T00:59:59Z"])
def test_a_pending_namespace_loses_entries_whose_time_cannot_be_read(time: str) -> None:
    unreadable, no_time, null = ({"manager": name} for name in ("x", "y", "z"))
    old = lease(writer="", managedFields=[unreadable | {"time": time}, no_time, null | {"time": None}])
    sent = changed(old)
    entries = sent["metadata"]["managedFields"] = [
        *old["metadata"]["managedFields"],
        *sent["metadata"]["managedFields"],
    ]
    new = stamped(Written(A, sent, old, PENDING))
    assert new is not None
    assert new["metadata"]["managedFields"] == entries[1:]
    assert new["spec"] == sent["spec"]


@pytest.mark.parametrize(("count", "left"), [(498, 499), (499, 0)])
def test_a_pending_namespace_loses_all_of_more_entries_than_anyone_needs(count: int, left: int) -> None:
    """Each costs, and an expression that costs too much would refuse the write."""
    entries: list[Document] = [CONSTANT | {"manager": f"m{at}", "subresource": "x"} for at in range(count)]
    old = lease(writer="")
    sent = changed(old)
    own = sent["metadata"]["managedFields"][1]
    sent["metadata"]["managedFields"] = [CONSTANT | {"time": "10000-01-01T00:59:59Z"}, own, *entries]
    new = stamped(Written(A, sent, old, PENDING))
    assert new is not None
    assert new["metadata"]["managedFields"] == [own, *entries][:left]


def test_without_the_mutating_policy_only_the_stamped_writer_writes_a_held_lease() -> None:
    """The bounds do not take the annotations of a client for those of the API server then."""
    old = lease()
    forged = with_metadata(changed(old, at=30, holderIdentity="b"), labels=many(65))
    assert refusals(Written(B, forged, old)) != []
    assert refusals(Written(A, changed(old), old)) == []
