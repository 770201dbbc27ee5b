"""Patches of leases: those that leave the spec as it was, and the fields that others set."""

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from webhook.analysis.inputs.patches import (
    Mark,
    SentPatch,
    SpecChanges,
    find_stored_changes,
    leaves_spec,
    list_marks,
    list_owners_of_patch,
    patch_spec,
    read_asked_changes,
    read_sent_patch,
)
from webhook.analysis.inputs.workload_changes import WorkloadChange, describe_workload_change
from webhook.kubernetes.objects import LeaseSpec


def read_spec_changes(patch: bytes) -> SpecChanges | None:
    return find_stored_changes(read_asked_changes(patch))


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param(b'{"metadata":{"annotations":{"a":"1"}}}', id="an annotation"),
        pytest.param(b'{"metadata":{"labels":null,"annotations":{}}}', id="labels and annotations"),
        pytest.param(b'{"metadata":{"name":"db","resourceVersion":"7","labels":{"a":"1"}}}', id="a version is named"),
        pytest.param(b'{"metadata":{"ownerReferences":[{"kind":"ReplicaSet","uid":"1"}]}}', id="an owner"),
        pytest.param(b'[{"op":"add","path":"/metadata/annotations/a","value":"1"}]', id="an operation"),
        pytest.param(
            b'[{"op":"test","path":"/spec/holderIdentity","value":"a"},{"op":"remove","path":"/metadata/labels"}]',
            id="a test of the spec",
        ),
        pytest.param(
            b'[{"op":"move","from":"/metadata/labels/a","path":"/metadata/labels/b"}]', id="a move of a label"
        ),
    ],
)
def test_a_patch_of_annotations_labels_and_owners_leaves_the_spec(patch: bytes) -> None:
    assert leaves_spec(patch)


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param(b"null", id="nothing is shown"),
        pytest.param(b"{}", id="it is empty"),
        pytest.param(b'{"spec":{"renewTime":null}}', id="a spec"),
        pytest.param(b'{"metadata":{"annotations":{"a":"1"}},"spec":{}}', id="a spec beside"),
        pytest.param(b'{"metadata":{"annotations":{"a":"1"}},"Spec":{}}', id="a spec in another case"),
        pytest.param(b'{"$patch":"replace","metadata":{"annotations":{"a":"1"}}}', id="all is replaced"),
        pytest.param(b'{"apiVersion":"v1","kind":"Lease","metadata":{"labels":{"a":"1"}}}', id="it may be an apply"),
        pytest.param(b'{"metadata":{"finalizers":null,"labels":{}}}', id="finalizers"),
        pytest.param(b'{"metadata":{"name":"db"}}', id="it names the lease only"),
        pytest.param(b'{"metadata":null}', id="no metadata"),
        pytest.param(b'{"metadata":', id="it is cut"),
        pytest.param(b'"\\"metadata\\""', id="a text"),
        pytest.param(b'["/metadata/labels"]', id="no operation"),
        pytest.param(b'[{"op":"add","path":"/metadata/annotationsOfAll","value":"1"}]', id="another part"),
        pytest.param(b'[{"op":"replace","path":"","value":{"metadata":{"labels":{}}}}]', id="the whole object"),
        pytest.param(b'[{"op":"replace","path":"/spec","value":"/metadata/labels"}]', id="the spec by an operation"),
        pytest.param(b'[{"op":"move","from":"/spec/renewTime","path":"/metadata/labels/a"}]', id="it moves renewTime"),
        pytest.param(b'[{"op":"add","value":"/metadata/labels"}]', id="no path"),
    ],
)
def test_any_other_patch_may_have_changed_the_spec(patch: bytes) -> None:
    assert not leaves_spec(patch)


@pytest.mark.parametrize(
    ("patch", "changes"),
    [
        pytest.param(b'{"spec":{"holderIdentity":"a"}}', {"holderIdentity": "a"}, id="a merge patch"),
        pytest.param(b'{"spec":{"holderIdentity":null}}', {"holderIdentity": None}, id="a field that is removed"),
        pytest.param(
            b'{"metadata":{"resourceVersion":"7","labels":{}},"spec":{"renewTime":"x"}}',
            {"renewTime": "x"},
            id="labels beside",
        ),
        pytest.param(
            b'[{"op":"test","path":"/spec/holderIdentity","value":"a"},'
            b'{"op":"replace","path":"/spec/renewTime","value":"x"},{"op":"add","path":"/metadata/labels/b","value":""},'
            b'{"op":"remove","path":"/spec/holderIdentity"}]',
            {"renewTime": "x", "holderIdentity": None},
            id="operations",
        ),
        pytest.param(b'{"kind":"Lease","spec":{"holderIdentity":"a"}}', None, id="an apply"),
        pytest.param(b'{"spec":{"$patch":"replace"}}', None, id="all is replaced"),
        pytest.param(b'{"metadata":{"finalizers":null},"spec":{}}', None, id="finalizers"),
        pytest.param(b'{"metadata":null,"spec":{}}', None, id="no metadata"),
        pytest.param(b'{"spec":null}', None, id="no spec"),
        pytest.param(b'"spec"', None, id="a text"),
        pytest.param(b'{"spec":', None, id="it is cut"),
        pytest.param(b'["spec"]', None, id="no operation"),
        pytest.param(b'[{"op":"copy","path":"/spec/renewTime","from":"/spec/acquireTime"}]', None, id="a copy"),
        pytest.param(b'[{"op":"add","path":"/spec","value":{}}]', None, id="the whole spec"),
    ],
)
def test_what_a_patch_set_in_the_spec(patch: bytes, changes: object) -> None:
    assert read_spec_changes(patch) == changes


def test_a_patch_keeps_what_it_does_not_set() -> None:
    before = LeaseSpec(holder_identity="a", lease_duration_seconds=15)
    assert patch_spec(before, {"holderIdentity": None}) == LeaseSpec(lease_duration_seconds=15)
    assert patch_spec(before, {"leaseDurationSeconds": "9"}) is None


PATHS = (
    "/metadata/labels/a",
    "/spec/renewTime",
    "/spec/replicas",
    "/spec/template/spec/containers/0/args",
    "/spec",
    "",
)
KEYS = ("metadata", "labels", "spec", "strategy", "renewTime", "template", "containers", "args", "replicas")
ANY_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=5,
)
OPERATION = st.fixed_dictionaries(
    {"op": st.sampled_from(("add", "remove", "test")) | ANY_JSON, "path": st.sampled_from(PATHS) | ANY_JSON},
    optional={"from": st.sampled_from(PATHS) | ANY_JSON, "value": ANY_JSON},
)
OPERATIONS = st.lists(OPERATION, min_size=1, max_size=2)
OBJECTS = st.fixed_dictionaries({}, optional={"metadata": ANY_JSON, "spec": ANY_JSON})


@settings(max_examples=200)
@given(ANY_JSON | OPERATIONS | OBJECTS)
def test_whatever_json_is_sent_as_a_patch_is_read(body: Any) -> None:
    sent = json.dumps(body).encode()
    assert not leaves_spec(sent) or all(isinstance(one.value, str) for one in list_marks(sent))
    changes = read_spec_changes(sent)
    assert changes is None or isinstance(patch_spec(LeaseSpec(), changes), LeaseSpec | None)
    assert all(isinstance(describe_workload_change(verb, sent), WorkloadChange) for verb in ("patch", "update"))


@pytest.mark.parametrize("name", ["op", "path", "from", "value"])
def test_a_list_in_place_of_a_text_is_no_operation_that_is_known(name: str) -> None:
    mark = {"op": "add", "path": "/metadata/labels/a", "value": "b"}
    assert list_marks(json.dumps([mark]).encode()) == (Mark("label", "a", "b"),)
    sent = json.dumps([{**mark, name: ["a"]}]).encode()
    assert not (leaves_spec(sent) and list_marks(sent))
    change = {"op": "add", "path": "/spec/holderIdentity", "value": "b"}
    changes = read_spec_changes(json.dumps([{**change, name: ["a"]}]).encode())
    assert changes is None or patch_spec(LeaseSpec(), changes) in {None, LeaseSpec(holder_identity="b")}


@pytest.mark.parametrize(
    ("owners", "uids"),
    [
        ([{"kind": "Pod", "uid": "1"}], ["1"]),
        ([{"$patch": "delete", "uid": "1"}], []),
        ([{"kind": 1}], []),
        (None, []),
        (5, []),
    ],
    ids=["an owner", "one that is removed", "a number for a kind", "none", "a number"],
)
def test_the_owners_that_a_patch_sets(owners: Any, uids: list[str]) -> None:
    patch = json.dumps({"metadata": {"ownerReferences": owners}}).encode()
    assert [one.uid for one in list_owners_of_patch(patch)] == uids


def test_operations_do_not_show_all_owners() -> None:
    assert list_owners_of_patch(b'[{"op":"add","path":"/metadata/ownerReferences","value":[]}]') == ()


def test_a_path_that_is_none_names_no_field() -> None:
    assert read_spec_changes(b'[{"op":"add","path":"holderIdentity","value":"b"}]') is None
    assert read_spec_changes(b'[{"op":"add","path":"/status/spec/holderIdentity","value":"b"}]') is None


@pytest.mark.parametrize("field", ["strategy", "preferredHolder"])
def test_what_api_servers_may_drop_is_not_known_to_be_stored(field: str) -> None:
    assert read_spec_changes(json.dumps({"spec": {"holderIdentity": "a", field: "b"}}).encode()) is None
    assert read_spec_changes(json.dumps([{"op": "add", "path": f"/spec/{field}", "value": "b"}]).encode()) is None
    assert read_spec_changes(json.dumps({"spec": {field: None}}).encode()) == {field: None}


@pytest.mark.parametrize(
    ("patch", "sent"),
    [
        ({"spec": {"holderIdentity": ""}}, SentPatch(names_holder=True, has_precondition=False)),
        ({"spec": {"renewTime": "x"}}, SentPatch(names_holder=False, has_precondition=False)),
        (
            {"metadata": {"resourceVersion": "7"}, "spec": {"holderIdentity": None}},
            SentPatch(names_holder=True, has_precondition=True),
        ),
        (
            [{"op": "test", "path": "/spec/holderIdentity", "value": "a"}, {"op": "remove", "path": "/spec/renewTime"}],
            SentPatch(names_holder=False, has_precondition=True),
        ),
        (
            [{"op": "replace", "path": "/spec/holderIdentity", "value": ""}],
            SentPatch(names_holder=True, has_precondition=False),
        ),
        ({"kind": "Lease", "spec": {}}, None),
    ],
    ids=["a holder", "a renewal", "a version", "a test", "an operation", "an apply"],
)
def test_a_patch_names_the_holder_or_not_and_has_a_precondition_or_none(patch: Any, sent: SentPatch | None) -> None:
    assert read_sent_patch(json.dumps(patch).encode()) == sent
