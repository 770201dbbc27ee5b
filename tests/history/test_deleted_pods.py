"""The pods that were deleted: which deletion may be that of a process, and how many are remembered."""

import pytest
from msgspec.structs import replace

from webhook.analysis.history.audit_log import deleted_pods
from webhook.analysis.history.audit_log.deleted_pods import DeletedPods
from webhook.analysis.inputs.items import PodDeletion, Writer

USER = "system:serviceaccount:shop:db"
OWN = Writer(USER, "db-0", uid="u-1")


def deletion(at: int = 1, namespace: str = "shop", name: str = "db-0", uid: str = "") -> PodDeletion:
    return PodDeletion(at=at, namespace=namespace, name=name, writer=Writer("alice"), uid=uid)


def remember(*deletions: PodDeletion) -> DeletedPods:
    pods = DeletedPods()
    for deletion in deletions:
        pods.add(deletion)
    return pods


def test_deletions_of_a_process_are_in_order_of_time() -> None:
    assert [one.at for one in remember(deletion(3), deletion(1), deletion(2, uid="u-1")).list_deletions_by(OWN)] == [
        1,
        2,
        3,
    ]


@pytest.mark.parametrize("is_reversed", [False, True], ids=["then with its body", "then without"])
def test_a_request_in_two_copies_of_a_log_is_one_with_what_both_show(*, is_reversed: bool) -> None:
    whole = replace(deletion(uid="u-1"), grace=0)
    copies = [replace(deletion(), is_surely_not_dry_run=False), whole]
    assert remember(*(reversed(copies) if is_reversed else copies)).list_deletions_by(OWN) == [whole]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(deletion(2), id="at another time"),
        pytest.param(replace(deletion(), writer=Writer("bob")), id="by another writer"),
        pytest.param(replace(deletion(), is_eviction=True), id="an eviction"),
    ],
)
def test_another_request_to_delete_the_same_pod_is_kept(other: PodDeletion) -> None:
    assert len(remember(deletion(), other).list_deletions_by(OWN)) == 2


def test_the_deletion_of_another_pod_of_the_name_at_that_moment_takes_nothing_from_its_own() -> None:
    found = remember(deletion(uid="u-1"), deletion(uid="u-2")).list_deletions_by(OWN)
    assert [one.uid for one in found] == ["u-1"]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(deletion(uid="u-2"), id="another pod of that name"),
        pytest.param(deletion(namespace="infra"), id="another namespace"),
        pytest.param(deletion(name="db-1"), id="another name"),
    ],
)
def test_the_deletion_of_another_pod(other: PodDeletion) -> None:
    assert list(remember(other).list_deletions_by(OWN)) == []


@pytest.mark.parametrize(
    "process",
    [
        pytest.param(Writer("alice", "db-0"), id="no service account"),
        pytest.param(Writer(USER), id="no pod"),
        pytest.param(Writer(USER, "db-0", impersonator="alice"), id="somebody who acts as it"),
    ],
)
def test_a_process_whose_pod_is_not_known(process: Writer) -> None:
    assert list(remember(deletion()).list_deletions_by(process)) == []


def test_a_process_without_a_uid_may_be_any_pod_of_its_name() -> None:
    assert list(remember(deletion(uid="u-2")).list_deletions_by(Writer(USER, "db-0")))


def test_the_latest_deletions_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deleted_pods, "MAX_PODS", 2)
    pods = remember(deletion(1), deletion(2, name="db-1"), deletion(3), deletion(4, name="db-2"))
    assert [[one.at for one in pods.list_deletions_by(Writer(USER, f"db-{number}"))] for number in range(3)] == [
        [1, 3],
        [],
        [4],
    ]
    many = remember(*map(deletion, range(deleted_pods.MAX_DELETIONS + 2)))
    assert [one.at for one in many.list_deletions_by(OWN)] == [*range(2, deleted_pods.MAX_DELETIONS + 2)]
