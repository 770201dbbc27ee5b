"""Who owns what, as the API server's own format has it."""

from typing import Any

import pytest
from msgspec import Raw

from tests.factories import make_entry, to_bytes
from webhook.kubernetes import managed_fields
from webhook.kubernetes.managed_fields import (
    MAX_ENTRIES,
    NO_ENTRIES,
    Entry,
    is_nested_too_deeply,
    is_same_list,
    list_entries,
)


def entry(fields: Any = None, **changes: Any) -> Entry:
    (decoded,) = list_entries(Raw(to_bytes([make_entry() | {"fieldsV1": fields} | changes])))
    return decoded


@pytest.mark.parametrize(
    ("value", "owned"),
    [
        pytest.param({}, True, id="a leaf"),
        pytest.param({".": {}}, True, id="the field itself"),
        pytest.param({".": {}, "f:x": {}}, True, id="the field and something below"),
        pytest.param({"f:x": {}}, False, id="something below"),
        pytest.param({"k:{}": {}}, False, id="an item below"),
        pytest.param(None, False, id="null"),
        pytest.param([], False, id="a list"),
        pytest.param("x", False, id="a text"),
    ],
)
def test_a_field_is_owned_where_it_is_a_member_of_the_set(value: Any, owned: bool) -> None:
    assert entry({"f:spec": {"f:renewTime": value}}).owns_renew_time is owned
    assert "f:holderIdentity" not in entry({"f:spec": {"f:renewTime": value}}).owned.spec


@pytest.mark.parametrize("fields", [None, {}, {"f:spec": None}, {"f:spec": []}, {"f:metadata": {}}])
def test_an_entry_that_says_nothing_of_spec_owns_nothing_there(fields: Any) -> None:
    decoded = entry(fields)
    assert decoded.owns_renew_time is False
    assert not decoded.owned.spec
    assert decoded.owned.below == ()


def test_owners_below_fields_of_spec_are_named() -> None:
    decoded = entry(
        {"f:spec": {"f:a": {}, "f:b": {".": {}}, "f:c": {"f:x": {}}, "f:d": {".": {}, "k:{}": {}}, "f:e": 5}}
    )
    assert decoded.owned.below == ("c", "d")
    assert decoded.owned.spec == {"f:a", "f:b", "f:d"}


def test_the_key_of_an_entry_is_that_of_the_api_server() -> None:
    update = entry({})
    assert update.key == ("checkout", "Update", "coordination.k8s.io/v1", "")
    assert entry({}, operation="Apply").key == ("checkout", "Apply", "", "")
    assert entry({}, subresource="status", apiVersion=None, manager=None, operation=None).key == ("", "", "", "status")


@pytest.mark.parametrize(
    "text", ["null", "{}", "[null]", '["x"]', '[{"time":5}]', '[{"fieldsV1":[]}]', '[{"manager":"a"},{"manager":1}]']
)
def test_a_broken_list_has_no_entries(text: str) -> None:
    assert list_entries(Raw(text.encode())) == []


def test_a_list_that_is_not_utf_8_has_no_entries() -> None:
    assert list_entries(Raw(b'[{"manager":"\x80"}]')) == []


def test_a_list_of_more_entries_than_a_write_can_have_has_none() -> None:
    assert len(list_entries(Raw(b"[" + b",".join([b"{}"] * MAX_ENTRIES) + b"]"))) == MAX_ENTRIES
    assert list_entries(Raw(b"[" + b",".join([b"{}"] * (MAX_ENTRIES + 1)) + b"]")) == []


@pytest.mark.parametrize(("levels", "too_deep"), [(3, False), (32, False), (33, True), (5000, True)])
def test_depth_counts_lists_and_objects_from_the_list_itself(levels: int, too_deep: bool) -> None:
    fields = '{"f:a":' * (levels - 3) + "{}" + "}" * (levels - 3)
    entries = list_entries(Raw(f'[{{"manager":"x"}},{{"fieldsV1":{fields}}}]'.encode()))
    assert is_nested_too_deeply(entries) is too_deep
    mixed = list_entries(Raw(b'[{"fieldsV1":{"a":[[{"b":' + b"[" * 30 + b"]" * 30 + b"}]]}}]"))
    assert is_nested_too_deeply(mixed) is True


def test_what_is_remembered_is_bounded() -> None:
    for number in range(managed_fields.MAX_REMEMBERED + 2):
        assert entry({"f:spec": {f"f:{number}": {}}}).owned.spec == {f"f:{number}"}
    long = "x" * 1024
    assert entry({"f:spec": {f"f:{long}": {}}}).owned.spec == {f"f:{long}"}


ONE = Raw(to_bytes([make_entry()]))
DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        pytest.param(Raw(bytes(ONE)), True, id="the same bytes"),
        pytest.param(Raw(to_bytes([dict(reversed(make_entry().items()))])), True, id="keys in another order"),
        pytest.param(Raw(to_bytes([make_entry(), make_entry()])), False, id="one more"),
        pytest.param(Raw(to_bytes([make_entry() | {"manager": "a"}])), False, id="another manager"),
        pytest.param(Raw(to_bytes([make_entry() | {"time": "2025-11-20T11:00:00Z"}])), False, id="another time"),
        pytest.param(Raw(b"[]"), False, id="an empty list"),
        pytest.param(NO_ENTRIES, False, id="no list"),
        pytest.param(Raw(DEEP.encode()), False, id="a list that nests too deeply"),
        pytest.param(Raw(b'["\xff"]'), False, id="a text that is not UTF-8"),
    ],
)
def test_lists_are_compared_by_their_values(other: Raw, is_same: bool) -> None:
    assert is_same_list(ONE, other) is is_same
    assert is_same_list(other, ONE) is is_same


def test_a_list_that_is_absent_is_empty() -> None:
    assert is_same_list(NO_ENTRIES, Raw(b"[]"))
