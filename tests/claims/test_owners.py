"""Owners that a write adds to a lease: Kubernetes deletes what names only owners that do not exist."""

import pytest

from tests.claims.accounts import account, text
from tests.factories import Document
from tests.history.fake_server import FakeServer
from tests.history.observing import follow_log, follow_watch
from tests.timeline.test_truth import View, read_log, read_watch
from webhook.admission.rules.change import GARBAGE_COLLECTOR
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.happened import list_latest
from webhook.analysis.timeline.model import MarkKind
from webhook.kubernetes.times import format_time

ADDED = "the owner ConfigMap settings was added"
UI = ("ui", "system:serviceaccount:shop:ui", "ui-1")
"""A field manager, a user, and its pod: not the holder's."""
HOLDER = ("operator", "system:serviceaccount:shop:db", "db-0")


def own_by(*owners: tuple[str, str]) -> list[Document]:
    return [{"apiVersion": "v1", "kind": kind, "name": name, "uid": f"uid-of-{name}"} for kind, name in owners]


def write_owners(server: FakeServer, writer: tuple[str, str, str], owners: list[Document]) -> None:
    """Write the owners of shop/db, and nothing else."""
    manager, user, pod = writer
    stored = server.leases["shop/db"]
    entries = list(stored["metadata"]["managedFields"])
    fields: Document = {"f:metadata": {"f:ownerReferences": {f'k:{{"uid":"{one["uid"]}"}}': {} for one in owners}}}
    if manager == entries[0]["manager"]:
        entry = entries.pop(0)
        fields |= entry["fieldsV1"]
    written = {"manager": manager, "operation": "Update", "apiVersion": "coordination.k8s.io/v1"}
    entries.append({**written, "time": format_time(server.now), "fieldsType": "FieldsV1", "fieldsV1": fields})
    server.revision += 1
    version = str(server.revision)
    metadata = {**stored["metadata"], "resourceVersion": version, "ownerReferences": owners, "managedFields": entries}
    owned = {**stored, "metadata": metadata}
    server.leases["shop/db"] = owned
    server.events.append((server.now, "MODIFIED", owned))
    server.log_request("shop/db", "update", user, pod, owned)
    server.log[-1]["objectRef"]["resourceVersion"] = stored["metadata"]["resourceVersion"]


def play(writer: tuple[str, str, str], *owners: tuple[str, str], is_deleted: bool = True) -> FakeServer:
    """A held lease to which somebody adds owners; then it is deleted, and the holder creates it again."""
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    holder.lead(20)
    server.wait(1.5)
    write_owners(server, writer, own_by(*owners))
    if is_deleted:
        server.wait(0.2)
        server.delete("shop/db", GARBAGE_COLLECTOR)
        server.wait(0.2)
        holder.lead(6)
    return server


def list_lines(account: Account) -> list[str]:
    return [line.text for line in list_latest(account)]


def test_a_log_shows_who_added_an_owner_to_a_lease_that_was_deleted_because_of_that() -> None:
    server = play(UI, ("ConfigMap", "settings"))
    answer = account(follow_log(server), server.now)
    assert f"{ADDED} by shop/ui from pod ui-1" in list_lines(answer)
    (deleted,) = (one for one in answer.findings if one.check == "lease-deleted")
    assert f"({ADDED} at 11:07:01Z by shop/ui from pod ui-1)" in deleted.message
    output = text(answer)
    assert "Find out why shop/ui added one. To see the pod that did it: kubectl -n shop describe pod ui-1" in output


def test_of_a_watch_the_field_manager_is_named_as_such() -> None:
    server = play(UI, ("ConfigMap", "settings"))
    answer = account(follow_watch(server), server.now)
    assert f"{ADDED} under field manager ui" in list_lines(answer)
    assert "shop/ui" not in text(answer)


@pytest.mark.parametrize("follow", [follow_log, follow_watch], ids=["audit log", "watch"])
def test_an_owner_that_the_holder_adds_itself_is_not_news_and_blames_no_one(follow: object) -> None:
    server = play(HOLDER, ("ConfigMap", "settings"))
    assert callable(follow)
    answer = account(follow(server), server.now)
    assert not any("was added" in line for line in list_lines(answer))
    assert ADDED in text(answer)
    assert "Find out why" not in text(answer)


def test_the_next_lease_of_the_name_does_not_show_who_added_an_owner() -> None:
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    holder.lead(20)
    server.delete("shop/db", GARBAGE_COLLECTOR)
    server.wait(0.2)
    holder.lead(6)
    output = text(account(follow_log(server), server.now))
    assert "was added" not in output
    assert "To see who may add one: lease-webhook writers shop/db" in output


@pytest.mark.parametrize(
    ("owners", "words"),
    [
        ([("ConfigMap", "a"), ("Pod", "b")], "the owners ConfigMap a, Pod b were added"),
        ([("ConfigMap", name) for name in "abcd"], "the owners ConfigMap a, ConfigMap b and 2 more were added"),
        ([("ConfigMap", "{} was gone")], 'the owner ConfigMap "{} was gone" was added'),
    ],
    ids=["two", "many", "a name that reads like a sentence"],
)
def test_owners_are_named_and_what_a_client_chose_is_quoted(owners: list[tuple[str, str]], words: str) -> None:
    server = play(UI, *owners, is_deleted=False)
    assert f"{words} by shop/ui from pod ui-1" in text(account(follow_log(server), server.now))


def test_owners_that_are_written_in_another_order_or_removed_are_not_added() -> None:
    server = play(UI, ("ConfigMap", "a"), ("Pod", "b"), is_deleted=False)
    for owners in (own_by(("Pod", "b"), ("ConfigMap", "a")), own_by(("Pod", "b"))):
        server.wait(1)
        write_owners(server, UI, owners)
    assert text(account(follow_log(server), server.now)).count("added") == 1


@pytest.mark.parametrize("view", [read_log, read_watch], ids=["audit log", "watch"])
def test_a_timeline_marks_the_write_that_added_owners(view: View) -> None:
    server = play(UI, ("ConfigMap", "settings"))
    (lane,) = view(server).lanes
    (mark,) = (mark for mark in lane.marks if mark.kind is MarkKind.EDIT)
    assert mark.text.startswith(ADDED)
    assert mark.holder == "db-0_1"


def test_owners_of_a_lease_without_a_holder_are_not_marked() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(20)
    server.elector("db-0", "shop/db").release()
    server.wait(1)
    write_owners(server, UI, own_by(("ConfigMap", "settings")))
    (lane,) = read_log(server).lanes
    assert not [mark for mark in lane.marks if mark.kind is MarkKind.EDIT]
