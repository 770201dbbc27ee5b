"""What the policies of deploy/stamp decide, by a CEL library; `make e2e E2E="--only stamp"` asks an API server."""

from typing import Any, Final

import pytest

from tests.cel_values import value, variable
from tests.factories import Document
from tests.stamp_policies import BOUNDS, GUARD, STAMP

A, B = "uid-a system:serviceaccount:shop:a", "uid-b system:serviceaccount:shop:b"
OWNER: Final = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1"}]


def lease(
    second: int = 0, *, writer: str = A, holder: str = "a", revision: str = "70", term: str = "40", **metadata: Any
) -> Document:
    """A lease of 15 s that was written in this second."""
    time = f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"
    annotations = {"lease-webhook/writer-x": writer, "lease-webhook/written-x": time, "lease-webhook/term-x": term}
    entry = {"manager": "lease-webhook-stamp", "time": "2000-01-01T00:00:00Z"}
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": time}
    whole = {"annotations": annotations, "resourceVersion": revision, "managedFields": [entry]}
    return {"metadata": whole | metadata, "spec": spec}


def request(writer: str, operation: str = "UPDATE") -> Document:
    uid, _, user = writer.partition(" ")
    info = {"username": user, "groups": [], "extra": {"authentication.kubernetes.io/pod-uid": [uid]}}
    return {"operation": operation, "userInfo": info, "options": {}}


def written(by: str, new: Document | None, old: Document | None, operation: str = "UPDATE") -> Document:
    namespace: Document = {"metadata": {"labels": {}}}
    return {"request": request(by, operation), "object": new, "oldObject": old, "namespaceObject": namespace}


def refused_by(data: Document) -> list[str]:
    """Return the messages of the validations of the guard that are not true."""
    return [one["message"] for one in GUARD["validations"] if not value(GUARD, one["expression"], data)]


def is_admitted(data: Document) -> bool:
    """Return whether every validation of the guard is true."""
    return not refused_by(data)


@pytest.mark.parametrize(
    ("by", "new", "old", "term"),
    [
        pytest.param(A, lease(2), lease(), "40", id="a renewal"),
        pytest.param(B, lease(2, holder="b"), lease(), "70", id="another writer"),
        pytest.param(A, lease(2, holder="b"), lease(), "70", id="another holder, by the same writer"),
        pytest.param(A, lease(2), lease(term=""), "69", id="the first renewal of a created lease"),
        pytest.param(A, lease(labels={"a": "b"}), lease(), "40", id="a label"),
    ],
)
def test_a_term_begins_with_each_change_of_writer_or_holder(by: str, new: Document, old: Document, term: str) -> None:
    assert variable(STAMP, "term", written(by, new, old)) == term


@pytest.mark.parametrize(
    ("by", "holder", "inherited"),
    [
        pytest.param(A, "a", False, id="a renewal"),
        pytest.param(A, "b", True, id="another holder"),
        pytest.param(B, "a", True, id="another writer"),
    ],
)
def test_owners_are_not_inherited(by: str, holder: str, inherited: bool) -> None:
    data = written(by, lease(2, holder=holder, ownerReferences=OWNER), lease(ownerReferences=OWNER))
    assert variable(STAMP, "inherited", data) == inherited


@pytest.mark.parametrize(
    ("by", "second", "holder", "admitted"),
    [
        pytest.param(A, 2, "a", True, id="the writer renews"),
        pytest.param(B, 2, "b", False, id="another takes it"),
        pytest.param(B, 2, "a", False, id="another renews it in the holder's name"),
        pytest.param(B, 12, "b", False, id="another takes it three seconds early"),
        pytest.param(B, 13, "b", True, id="another takes it within the tolerance"),
        pytest.param(B, 15, "b", True, id="another takes it after the duration"),
    ],
)
def test_a_live_lease_is_its_writers(by: str, second: int, holder: str, admitted: bool) -> None:
    assert is_admitted(written(by, lease(second, writer=by, holder=holder), lease())) == admitted


@pytest.mark.parametrize(
    ("ahead", "admitted"),
    [
        pytest.param(1, False, id="a second ahead"),
        pytest.param(60, False, id="a minute ahead"),
        pytest.param(61, True, id="further ahead than clocks of API servers are"),
    ],
)
def test_a_stamp_that_is_later_than_a_takeover_keeps_the_lease_live(ahead: int, admitted: bool) -> None:
    """API servers have clocks of their own."""
    assert is_admitted(written(B, lease(100, writer=B, holder="b"), lease(100 + ahead))) == admitted


@pytest.mark.parametrize("policy", [STAMP, GUARD, BOUNDS], ids=["the stamp", "the guard", "the bounds"])
def test_a_pod_uid_has_no_blank(policy: Document) -> None:
    """A user name may have one, so the uid would take the beginning of another writer's user."""
    stored = lease(writer="uid jane doe")
    for uid, name, own in (("uid", "jane doe", True), ("uid jane", "doe", False)):
        data = written(B, lease(2, writer="uid jane doe"), stored)
        extra = {"authentication.kubernetes.io/pod-uid": [uid]}
        data["request"]["userInfo"] = {"username": name, "groups": [], "extra": extra}
        assert variable(policy, "own", data) == own


UNSTAMPED: Final = [{"manager": "elector", "time": "2026-01-01T00:00:15Z", "fieldsV1": {"f:spec": {"f:renewTime": {}}}}]
NOT_IN_FORCE: Final = "the policy lease-webhook-stamp is not in force, or the lease is too large (lease-webhook)"


@pytest.mark.parametrize(
    ("holder", "annotations", "messages"),
    [
        pytest.param("a", {}, [NOT_IN_FORCE], id="of a held lease"),
        pytest.param("", {}, [], id="of a free lease"),
        pytest.param("", {"lease-webhook/writer-x": B}, [NOT_IN_FORCE], id="of a free lease, with a stamp of its own"),
    ],
)
def test_a_write_without_the_entry_of_the_stamp_takes_no_held_lease(
    holder: str, annotations: Document, messages: list[str]
) -> None:
    """The annotations that say that the lease has expired are the client's then."""
    old = lease(holder=holder)
    new = lease(15, holder="b", managedFields=UNSTAMPED)
    if not holder:
        new["metadata"]["annotations"] = old["metadata"]["annotations"]
    new["metadata"]["annotations"] = new["metadata"]["annotations"] | annotations
    assert refused_by(written(B, new, old)) == messages
    assert refused_by(written(A, new, old)) == []


@pytest.mark.parametrize(
    ("by", "old", "admitted"),
    [
        pytest.param(A, lease(), True, id="its writer"),
        pytest.param(B, lease(), False, id="another"),
        pytest.param(B, lease(holder=""), True, id="another, after a release"),
    ],
)
def test_a_held_lease_is_deleted_by_its_writer_only(by: str, old: Document, admitted: bool) -> None:
    assert is_admitted(written(by, None, old, "DELETE")) == admitted


@pytest.mark.parametrize(
    ("options", "admitted"),
    [
        pytest.param({"propagationPolicy": "Background"}, True, id="in the background"),
        pytest.param({"propagationPolicy": "Foreground"}, False, id="in the foreground"),
        pytest.param({"propagationPolicy": "Orphan"}, False, id="with orphans"),
        pytest.param({"orphanDependents": True}, False, id="with orphans, as older clients ask for it"),
        pytest.param({"orphanDependents": False}, True, id="without orphans"),
    ],
)
@pytest.mark.parametrize("old", [lease(), lease(holder="")], ids=["held", "free"])
@pytest.mark.parametrize("by", [A, B], ids=["by its writer", "by another"])
def test_a_lease_is_deleted_in_the_background_only(by: str, old: Document, options: Document, admitted: bool) -> None:
    """The collector would complete another deletion later, whoever holds the lease by then."""
    data = written(by, None, old, "DELETE")
    data["request"]["options"] = options
    text = "a lease can be deleted in the background only (lease-webhook)"
    assert (text in refused_by(data)) == (not admitted)


def test_a_stranger_adds_no_owner() -> None:
    assert not is_admitted(written(B, lease(ownerReferences=OWNER), lease()))


def refusal(data: Document) -> str:
    """Return the text of the only refusal, as an API server makes it: `message` if the expression errs."""
    (validation,) = [one for one in GUARD["validations"] if not value(GUARD, one["expression"], data)]
    try:
        return str(value(GUARD, validation["messageExpression"], data))
    except ValueError:
        return str(validation["message"])


BY_A: Final = "lease is held by system:serviceaccount:shop:a (pod uid uid-a)"
LATEST: Final = (
    "which wrote it last at 2026-01-01T00:00:00Z; retry after 2026-01-01T00:00:15Z unless it is renewed before"
)


@pytest.mark.parametrize(
    ("writer", "text"),
    [
        pytest.param(A, f"{BY_A}, {LATEST} (lease-webhook)", id="a pod"),
        pytest.param(
            "- kube scheduler", f"lease is held by kube scheduler (no pod), {LATEST} (lease-webhook)", id="none"
        ),
        pytest.param("planted", "lease is held; retry when it has expired (lease-webhook)", id="not a stamp"),
    ],
)
def test_a_refused_takeover_says_who_holds_the_lease_and_until_when(writer: str, text: str) -> None:
    assert refusal(written(B, lease(2, writer=B, holder="b"), lease(writer=writer))) == text


@pytest.mark.parametrize("field", ["", "lease-webhook/written-x", "leaseDurationSeconds"])
def test_a_refused_takeover_without_a_time_says_what_to_do(field: str) -> None:
    old, new = lease(), lease(2, writer=B, holder="b")
    new["metadata"]["annotations"]["lease-webhook/written-x"] = ""
    for part in (old["metadata"]["annotations"], old["spec"]):
        part.pop(field, None)
    undated = "this write has no time of the API server, so it does not show that the lease has expired"
    assert (
        refusal(written(B, new, old))
        == f"{BY_A}; {undated}: set renewTime in it, and leave managedFields out (lease-webhook)"
    )


def test_a_refused_deletion_says_who_holds_the_lease() -> None:
    assert refusal(written(B, None, lease(), "DELETE")) == (
        f"{BY_A}; delete it after its release, or take it when it has expired and delete it then (lease-webhook)"
    )
