"""What a write set: the fields whose owner afterwards is the writer."""

from typing import Any

import pytest
from msgspec import Raw

from tests.factories import Document, Tweak, drop, make_entry, make_lease, make_review, put, to_bytes
from tests.rules.findings import change_of, update
from webhook.admission.rules.change import SetFields
from webhook.kubernetes.managed_fields import list_entries
from webhook.kubernetes.review import decode

POD = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1"}


def set_fields(*tweaks: Tweak, old: tuple[Tweak, ...] = ()) -> SetFields:
    return change_of(update(*tweaks, old=old)).set_fields


@pytest.mark.parametrize(
    ("tweak", "expected"),
    [
        pytest.param(put("spec.leaseTransitions", 6), {"spec": {"f:leaseTransitions"}}, id="changed"),
        pytest.param(put("spec.strategy", None), {"spec": {"f:strategy"}}, id="null, the zero value, which is owned"),
        pytest.param(put("spec.later", {"a": 1}), {"spec": {"f:later"}}, id="a field that is not known"),
        pytest.param(drop("spec.renewTime"), {}, id="removed"),
        pytest.param(put("spec", None), {}, id="all of spec removed"),
        pytest.param(put("metadata.labels", {"a.b/c": "1"}), {"labels": {"f:a.b/c"}}, id="a label"),
        pytest.param(put("metadata.labels", {"a": None}), {"labels": {"f:a"}}, id="a label that is null"),
        pytest.param(put("metadata.annotations", {"a": ""}), {"annotations": {"f:a"}}, id="an annotation"),
        pytest.param(put("metadata.finalizers", ["a/b", None]), {"finalizers": {"a/b", ""}}, id="finalizers"),
        pytest.param(put("metadata.ownerReferences", [POD, None]), {"owners": {"1"}}, id="an owner"),
        pytest.param(put("metadata.generateName", "a-"), {"metadata": {"f:generateName"}}, id="generateName"),
        pytest.param(put("metadata.resourceVersion", "9"), {}, id="what no manager owns"),
    ],
)
def test_what_is_set(tweak: Tweak, expected: dict[str, set[str]]) -> None:
    fields = set_fields(tweak)
    assert fields == SetFields(**{part: frozenset(names) for part, names in expected.items()})
    assert bool(fields) is bool(expected)


@pytest.mark.parametrize(
    ("stored", "written", "uids"),
    [
        pytest.param([POD], [POD], set(), id="as before"),
        pytest.param([POD], [POD | {"controller": True}], {"1"}, id="an item that differs, because it is atomic"),
        pytest.param([POD, POD | {"name": "b"}], [POD], {"1"}, id="one of two with the same uid removed"),
        pytest.param([POD], [], set(), id="removed"),
        pytest.param([], [{}], {""}, id="an owner without a uid"),
    ],
)
def test_owners_count_by_uid(stored: list[Any], written: list[Any], uids: set[str]) -> None:
    fields = set_fields(put("metadata.ownerReferences", written), old=(put("metadata.ownerReferences", stored),))
    assert fields.owners == uids


ALL = SetFields(
    spec=frozenset({"f:a"}),
    metadata=frozenset({"f:generateName"}),
    labels=frozenset({"f:a"}),
    annotations=frozenset({"f:a"}),
    finalizers=frozenset({"a/b"}),
    owners=frozenset({"1"}),
)


@pytest.mark.parametrize(
    ("fields", "owned"),
    [
        pytest.param({"f:spec": {"f:a": {}}}, True, id="a field of spec"),
        pytest.param({"f:spec": {"f:a": {"f:x": {}}}}, False, id="something below it"),
        pytest.param({"f:metadata": {"f:a": {}}}, False, id="the same name elsewhere"),
        pytest.param({"f:metadata": {"f:labels": {".": {}}}}, False, id="the map of labels"),
        pytest.param({"f:metadata": {"f:labels": {"f:a": {}}}}, True, id="a label"),
        pytest.param({"f:metadata": {"f:annotations": {"f:a": {}}}}, True, id="an annotation"),
        pytest.param({"f:metadata": {"f:generateName": {}}}, True, id="generateName"),
        pytest.param({"f:metadata": {"f:finalizers": {'v:"a/b"': {}}}}, True, id="a finalizer"),
        pytest.param(
            {"f:metadata": {"f:finalizers": {'v:"a\\u002fb"': {}}}}, True, id="a finalizer, spelled otherwise"
        ),
        pytest.param({"f:metadata": {"f:finalizers": {"v:5": {}, "v:": {}, "f:a/b": {}}}}, False, id="no finalizer"),
        pytest.param({"f:metadata": {"f:ownerReferences": {'k:{"uid":"1"}': {}}}}, True, id="an owner"),
        pytest.param({"f:metadata": {"f:ownerReferences": {'k:{"uid":"2"}': {}}}}, False, id="another owner"),
        pytest.param({"f:metadata": {"f:ownerReferences": {'k:{"uid":1}': {}, "k:[]": {}}}}, False, id="no uid"),
        pytest.param(
            {"f:metadata": {"f:ownerReferences": {'k:{"a":"b","uid":"1"}': {}}}},
            False,
            id="an owner by another key too",
        ),
        pytest.param(
            {"f:metadata": {"f:ownerReferences": {'k:{"uid":"1","uid":"1"}': {}}}}, False, id="an owner twice"
        ),
        pytest.param({"f:metadata": {"f:ownerReferences": {'k:[["uid","1"]]': {}}}}, False, id="a list like an owner"),
        pytest.param({"f:metadata": {"f:ownerReferences": {"k:" + "[" * 5000: {}}}}, False, id="a key that is a bomb"),
        pytest.param(None, False, id="nothing"),
    ],
)
def test_who_owns_it(fields: Any, owned: bool) -> None:
    (entry,) = list_entries(Raw(to_bytes([make_entry() | {"fieldsV1": fields}])))
    assert ALL.is_owned_in_part_by(entry) is owned
    assert SetFields().is_owned_in_part_by(entry) is False


@pytest.mark.parametrize(
    ("review", "names"),
    [
        pytest.param(make_review(new=make_lease(put("spec", None))), set(), id="absent"),
        pytest.param(
            make_review(put("request.oldObject", 0.5), new=make_lease(put("spec", {"a": 1}))),
            {"f:a"},
            id="beside what the operation has no use for",
        ),
        pytest.param(make_review(new=make_lease(put("spec", []))), set(), id="a list"),
        pytest.param(
            make_review(new=make_lease(put("spec", {"a": 1, "b": [2]})), old=make_lease(put("spec", {"a": 1}))),
            {"f:b"},
            id="one of two",
        ),
        pytest.param(
            make_review(new=make_lease(put("spec", {"a": None, "b": None})), old=make_lease(put("spec", {"b": None}))),
            {"f:a"},
            id="null where nothing was",
        ),
    ],
)
def test_the_spec_is_compared_as_json(review: Document, names: set[str]) -> None:
    assert decode(to_bytes(review)).set_in_spec == names


def test_a_spec_beside_lists_that_nest_too_deeply_is_read() -> None:
    deep = b'[{"fieldsV1":' + b'{"f:a":' * 5000 + b"{}" + b"}" * 5000 + b"}]"
    review = make_review(new=make_lease(put("metadata.managedFields", "@@"), put("spec", {"a": 1})))
    assert decode(to_bytes(review).replace(b'"@@"', deep)).set_in_spec == {"f:a"}
