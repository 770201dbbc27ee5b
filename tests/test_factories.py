"""The documents that other tests start from."""

import json
from datetime import UTC, datetime

from tests.factories import NOW, RENEWED, changed, drop, make_lease, make_review, put, to_bytes


def test_now_is_the_moment_of_the_last_renewal() -> None:
    assert datetime.fromtimestamp(NOW / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ") == RENEWED


def test_a_tweak_changes_one_thing_and_leaves_the_original_alone() -> None:
    lease = make_lease()
    other = changed(
        lease, put("metadata.labels[a.b/c]", "x"), drop("spec.renewTime"), put("metadata.managedFields[0].time", 1)
    )
    assert other["metadata"]["labels"] == {"a.b/c": "x"}
    assert other["metadata"]["managedFields"][0]["time"] == 1
    assert "renewTime" not in other["spec"]
    assert lease == make_lease()


def test_the_operation_follows_from_what_is_there() -> None:
    lease = make_lease()
    reviews = [make_review(new=lease), make_review(new=lease, old=lease), make_review(old=lease)]
    assert [review["request"]["operation"] for review in reviews] == ["CREATE", "UPDATE", "DELETE"]
    assert [review["request"]["resource"]["resource"] for review in reviews] == ["leases"] * 3


def test_bytes_are_escaped_as_go_escapes_them() -> None:
    assert to_bytes({"a": "<é&>"}) == '{"a":"\\u003cé\\u0026\\u003e"}\n'.encode()
    assert json.loads(to_bytes(make_review())) == make_review()
