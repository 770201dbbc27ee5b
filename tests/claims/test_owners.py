"""Owners that a write adds to a lease: Kubernetes deletes an object if none of the owners that it names exists."""

import pytest

from tests.claims.accounts import account, text
from tests.claims.test_pods import log_status
from tests.claims.test_related_writes import log_write
from tests.factories import Document, put
from tests.history.fake_server import SECOND, FakeServer
from tests.history.observing import View as Follow
from tests.history.observing import follow_both, follow_log, follow_watch
from tests.timeline.test_truth import View, read_log, read_watch
from webhook.admission.rules.change import GARBAGE_COLLECTOR
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.analysis.claims.words import format_clock
from webhook.analysis.timeline.model import MarkKind
from webhook.kubernetes.request import NODE_CONTROLLER
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
    assert "Find out why shop/ui added an owner to the lease. To see the pod that did it: kubectl -n shop" in output


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
    assert "To see who may add an owner: lease-webhook writers shop/db" in output


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


POD = "db-7d9f8b6c54-x2vqk"
"""A name that Kubernetes made up for a pod of a Deployment."""
NEXT = "db-7d9f8b6c54-b8zzt"
OWNED = {"apiVersion": "v1", "kind": "Pod", "name": POD, "uid": "uid-of-the-pod"}
WHICH_HELD = f"the owner of the deleted lease was pod {POD}, which held it"
AND_WAS_GONE = f"{WHICH_HELD} and was gone"


def own(server: FakeServer, owner: Document, manager: str = "") -> None:
    """Have the lease name an owner since it was created, as its holder wrote it, or another field manager."""
    stored = server.leases["shop/db"]
    entries = [dict(one) for one in stored["metadata"]["managedFields"]]
    written: Document = {"f:metadata": {"f:ownerReferences": {f'k:{{"uid":"{owner["uid"]}"}}': {}}}}
    if manager:
        entries.append({**entries[0], "manager": manager, "fieldsType": "FieldsV1", "fieldsV1": written})
    else:
        entries[0]["fieldsV1"] = {**entries[0]["fieldsV1"], **written}
    owned = {**stored, "metadata": {**stored["metadata"], "ownerReferences": [owner], "managedFields": entries}}
    server.leases["shop/db"] = owned
    server.events[-1] = (*server.events[-1][:2], owned)
    server.log[-1]["responseObject"] = owned


def lead_for_life(
    pod: str = POD, deleter: str = GARBAGE_COLLECTOR, manager: str = "", *, is_followed: bool = True, **owner: str
) -> FakeServer:
    """A lease that says neither when it was renewed nor until when it is held, with the pod of its holder as owner."""
    server = FakeServer()
    server.elector(pod, "shop/db").take(renewTime=None, leaseDurationSeconds=None)
    own(server, {**OWNED, "name": pod, **owner}, manager)
    server.elector("mail-0", "shop/mail").lead(100)
    server.wait(1)
    server.delete("shop/db", deleter)
    if is_followed:
        server.wait(2)
        server.elector(NEXT, "shop/db").take(renewTime=None, leaseDurationSeconds=None)
    return server


def find_deleted(follow: Follow, server: FakeServer) -> tuple[str, str]:
    """Return the message of a deletion, and its advice."""
    found = account(follow(server), server.now).findings
    (deleted,) = (one for one in found if isinstance(one, Claim) and one.check == "lease-deleted")
    return deleted.message, f"{deleted.advice} {deleted.fix}"


@pytest.mark.parametrize("is_followed", [True, False], ids=["created again", "gone"])
@pytest.mark.parametrize("follow", [follow_log, follow_both], ids=["audit log", "both"])
def test_a_lease_whose_owner_was_the_pod_of_its_holder_was_deleted_with_it(
    follow: Follow, *, is_followed: bool
) -> None:
    message, advice = find_deleted(follow, lead_for_life(is_followed=is_followed))
    assert message.endswith(AND_WAS_GONE)
    assert "two may have led" not in message
    assert "at once" not in message
    events = f"kubectl -n shop get events --field-selector involvedObject.name={POD}"
    assert advice == f"See why pod {POD} was gone; if its node is cut off, it may run on there: {events}"


def test_a_watch_shows_neither_who_deleted_a_lease_nor_whether_its_owner_was_gone() -> None:
    message, _ = find_deleted(follow_watch, lead_for_life())
    assert message == (
        f"the lease was deleted between 11:06:40Z and 11:08:23Z while {POD}_1 held it; it was created again with the "
        f"holder {NEXT}_1 at 11:08:23Z: {WHICH_HELD}; unless that pod was gone, or deleted the lease itself, two may "
        "have led at once"
    )


@pytest.mark.parametrize(
    "server",
    [
        lead_for_life("db-0"),
        lead_for_life(name=NEXT),
        lead_for_life(kind="ConfigMap"),
        lead_for_life(apiVersion="example.com/v1"),
        lead_for_life(manager="ui"),
    ],
    ids=["a name that another pod may get", "another pod", "another kind", "another group", "by another manager"],
)
def test_an_owner_that_need_not_be_the_holder_s_pod_does_not_show_that_it_was_gone(server: FakeServer) -> None:
    message, advice = find_deleted(follow_log, server)
    assert WHICH_HELD.partition(" was pod ")[0] not in message
    assert "two may have led at once, unless the owner was the pod of" in message
    assert "To see who may add an owner" in advice


def test_an_owner_that_another_one_added_does_not_show_that_the_holder_was_gone() -> None:
    server = FakeServer()
    server.elector(POD, "shop/db").lead(20)
    server.wait(1)
    write_owners(server, UI, [OWNED])
    server.wait(1)
    server.delete("shop/db", GARBAGE_COLLECTOR)
    server.wait(1)
    server.elector(NEXT, "shop/db").lead(4)
    assert "two may have led at once, unless the owner was" in find_deleted(follow_log, server)[0]


def test_who_deletes_a_lease_that_has_an_owner_need_not_wait_for_the_owner_to_be_gone() -> None:
    message, _ = find_deleted(follow_log, lead_for_life(deleter="alice"))
    assert "owner" not in message
    assert "two may have led at once, as most clients" in message


def test_a_log_that_does_not_show_the_holder_before_shows_who_deleted_the_lease() -> None:
    server = lead_for_life()
    first = next(number for number, one in enumerate(server.log) if one["objectRef"]["name"] == "db")
    del server.log[first]
    answer = account(follow_log(server), server.now)
    lines = list_lines(answer)
    assert "kube-system/generic-garbage-collector deleted the lease" in lines
    assert any(line.startswith(f"{NEXT}_1 created it again") and "after it was deleted" in line for line in lines)
    assert text(answer).count("kube-system/generic-garbage-collector deleted the lease") == 1


CONTROLLER = put("user.username", NODE_CONTROLLER)
COLLECTED_BY = "system:serviceaccount:kube-system:pod-garbage-collector"
COLLECTOR = put("user.username", COLLECTED_BY)


def lose_node(*, has_first_write: bool = True, reads: int = 0) -> FakeServer:
    """The lease of a holder on a node that is not heard, which goes with its pod."""
    server = FakeServer()
    server.elector(POD, "shop/db").take(renewTime=None, leaseDurationSeconds=None)
    own(server, OWNED)
    server.wait(1)
    for _ in range(reads):
        server.wait(5)
        server.elector(NEXT, "shop/db").ask(is_shown=True)
    log_status(server, POD, CONTROLLER)
    server.wait(30)
    log_status(server, POD, CONTROLLER)
    server.delete_pod(POD, CONTROLLER, uid=OWNED["uid"])
    server.wait(33)
    server.delete_pod(POD, COLLECTOR, uid=OWNED["uid"])
    server.wait(1)
    server.delete("shop/db", GARBAGE_COLLECTOR)
    server.wait(2)
    server.elector(NEXT, "shop/db").take(renewTime=None, leaseDurationSeconds=None)
    if not has_first_write:
        del server.log[0]
    return server


@pytest.mark.parametrize(("has_first_write", "reads"), [(True, 0), (False, 2)], ids=["written", "only read before"])
def test_who_deleted_the_owner_of_a_lease_is_said(*, has_first_write: bool, reads: int) -> None:
    """Reads show the state of a lease, too, if it was written before the log begins."""
    server = lose_node(has_first_write=has_first_write, reads=reads)
    message, _ = find_deleted(follow_log, server)
    at, gone = (format_clock(server.now - seconds * SECOND, server.now) for seconds in (36, 3))
    assert message.endswith(f"{WHICH_HELD}, and was deleted at {at} by kube-system/node-controller, and gone by {gone}")
    seen = [line for line in list_lines(account(follow_log(server), server.now)) if "wrote the status" in line]
    assert seen == [
        f"kube-system/node-controller wrote the status of pod {POD}, which held it, as it does when a node is not ready"
    ]


def test_without_reads_a_log_does_not_show_the_lease_before_its_deletion() -> None:
    server = lose_node(has_first_write=False)
    assert not [one for one in account(follow_log(server), server.now).findings if one.check == "lease-deleted"]


def test_a_pod_that_nothing_is_known_to_have_taken_away_was_deleted_all_the_same() -> None:
    server = lose_node()
    server.log = [one for one in server.log if one["user"] != {"username": COLLECTED_BY}]
    assert find_deleted(follow_log, server)[0].endswith("by kube-system/node-controller")


def test_what_a_read_shows_is_older_than_a_write_after_it() -> None:
    """The first write after the read is what was deleted."""
    server = FakeServer()
    server.elector(POD, "shop/db").take(renewTime=None, leaseDurationSeconds=None)
    server.wait(5)
    server.elector(NEXT, "shop/db").ask(is_shown=True)
    del server.log[0]
    server.wait(5)
    server.elector(NEXT, "shop/db").take(renewTime=None, leaseDurationSeconds=None)
    server.wait(5)
    server.delete("shop/db", GARBAGE_COLLECTOR)
    assert f"while {NEXT}_1 held it" in find_deleted(follow_log, server)[0]
    assert POD not in text(account(follow_log(server), server.now))


@pytest.mark.parametrize("reads", [0, 2], ids=["written", "only read before"])
def test_how_long_a_lock_that_nobody_renews_was_free_after_its_deletion_is_known(reads: int) -> None:
    """Its renewTime is by the clock of its holder, which says nothing of the time since the deletion."""
    server = FakeServer()
    server.elector("job-7", "shop/db", duration=3600).take()
    server.wait(20)
    for _ in range(reads):
        server.wait(5)
        server.elector("job-8", "shop/db").ask(is_shown=True)
    server.wait(5)
    server.delete("shop/db", "alice@example.org")
    server.wait(4.6)
    server.elector("job-8", "shop/db", duration=3600).take()
    if reads:
        del server.log[0]
    message, _ = find_deleted(follow_log, server)
    assert "alice@example.org deleted the lease at " in message
    assert "while job-7_1 held it; job-8_1 created it again 4.6 s later: two may have led at once" in message


def collect(server: FakeServer, *more: tuple[str, str], is_named_again: bool = False) -> FakeServer:
    """Delete shop/db as its owner, a ReplicaSet, is gone; its holder creates it again, perhaps with another owner."""
    holder = server.elector("db-0", "shop/db")
    holder.lead(20)
    write_owners(server, HOLDER, own_by(("ReplicaSet", "db-7f9c"), *more))
    server.wait(1.1)
    log_write(server, "replicasets", "apps", put("objectRef.name", "db-7f9c"))
    server.wait(0.1)
    server.delete("shop/db", GARBAGE_COLLECTOR)
    server.wait(0.2)
    holder.take()
    server.wait(0.01)
    if is_named_again:
        write_owners(server, HOLDER, own_by(("ReplicaSet", "db-5b8d")))
    holder.lead(6)
    return server


def test_the_owner_without_which_a_lease_was_deleted_is_named_with_its_deletion() -> None:
    output = text(account(follow_log(server := collect(FakeServer())), server.now))
    assert "deleted the lease, as no owner that it named exists (ReplicaSet db-7f9c), at " in output
    assert "ReplicaSet shop/db-7f9c was deleted by alice@example.org\n" in output
    assert "To see who may add an owner: lease-webhook writers shop/db" in output


def test_the_deletion_of_another_replica_set_has_nothing_to_do_with_a_lease() -> None:
    server = FakeServer()
    log_write(server, "replicasets", "apps", put("objectRef.name", "web-7f9c"))
    assert "web-7f9c" not in text(account(follow_log(collect(server)), server.now))


def test_the_deletion_of_an_owner_long_before_the_lease_was_deleted_did_not_cause_that() -> None:
    server = FakeServer()
    log_write(server, "replicasets", "apps", put("objectRef.name", "db-7f9c"))
    server.wait(300)
    assert text(account(follow_log(collect(server)), server.now)).count("db-7f9c was deleted") == 1


def test_the_owner_that_a_lease_names_now_is_said() -> None:
    server = collect(FakeServer())
    write_owners(server, HOLDER, own_by(("ReplicaSet", "db-5b8d")))
    output = text(account(follow_log(server), server.now))
    assert "The lease now names ReplicaSet db-5b8d. To see the field manager that set its owners: " in output


def test_a_watch_shows_which_owner_a_deleted_lease_named() -> None:
    server = collect(FakeServer())
    output = text(account(follow_watch(server), server.now))
    assert "Kubernetes deletes a lease once none of its owners exists; this one named ReplicaSet db-7f9c. A " in output


def test_a_lease_of_two_owners_is_not_said_to_go_with_one_of_them() -> None:
    server = collect(FakeServer(), ("ConfigMap", "settings"))
    output = text(account(follow_watch(server), server.now))
    assert "none of its owners exists; this one named ReplicaSet db-7f9c and ConfigMap settings. A " in output


@pytest.mark.parametrize(
    ("follow", "created"),
    [(follow_watch, "it was created again"), (follow_both, "db-0_1 created it again")],
    ids=["watch", "both"],
)
def test_an_owner_that_is_added_within_the_second_of_the_creation_comes_after_it(follow: Follow, created: str) -> None:
    server = collect(FakeServer(), is_named_again=True)
    output = text(account(follow(server), server.now))
    assert output.index(f": {created}") < output.index("the owner ReplicaSet db-5b8d was added")
