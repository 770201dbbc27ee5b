"""Labels that others than its holder set, change or remove: what selects leases goes by them.

Source: the recorded incident of a lease that was labeled into the ring of another program.
"""

from typing import Any

import pytest

from tests.claims.accounts import account, text
from tests.factories import Document
from tests.history.fake_server import Elector, FakeServer
from tests.history.observing import LEASE, View, follow_both, follow_log, follow_watch
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.analysis.history.marks import MAX_MARKS, LabelChange, add_label_change
from webhook.analysis.inputs.items import Writer

JANE = ("kubectl-label", "jane", "")
WRITER = Writer("jane")
HOLDER = ("operator", "system:serviceaccount:shop:db", "db-0")


def label(server: FakeServer, labels: dict[str, str], *, who: tuple[str, str, str] = JANE, **spec: Any) -> None:
    """Store these labels, and no others; `spec` is what else the write changes."""
    stored = server.leases["shop/db"]
    before = stored["metadata"].get("labels", {})
    server.write("shop/db", stored["spec"] | spec, *who)
    metadata = server.leases["shop/db"]["metadata"]
    metadata["labels"] = labels
    own: Document = {f"f:{key}": {} for key in labels if before.get(key) != labels[key]}
    entries = [one for one in metadata["managedFields"] if one["manager"] != who[0] or spec]
    kept = [one | {"time": entry["time"]} for one in entries for entry in stored["metadata"]["managedFields"][-1:]]
    entry = metadata["managedFields"][-1]
    new = [entry | {"fieldsV1": {"f:spec": {}, "f:metadata": {"f:labels": own}}}] if own and not spec else []
    metadata["managedFields"] = [*(kept if not spec else metadata["managedFields"]), *new]


def renew(holder: Elector, times: int = 5) -> None:
    for _ in holder.ticks(2 * times):
        labels = holder.server.leases[holder.lease]["metadata"].get("labels", {})
        holder.renew()
        holder.server.leases[holder.lease]["metadata"]["labels"] = labels


def start() -> tuple[FakeServer, Elector]:
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    holder.take()
    renew(holder)
    server.wait(1)
    return server, holder


def say(server: FakeServer, follow: View = follow_log) -> str:
    return text(account(follow(server), server.now))


def list_said(server: FakeServer, follow: View = follow_log) -> list[str]:
    return [line for line in say(server, follow).splitlines() if "label " in line]


def in_the_ring_for_a_while() -> FakeServer:
    server, holder = start()
    label(server, {"ring": "tenants"})
    server.wait(1)
    renew(holder)
    server.wait(1)
    label(server, {})
    server.wait(1)
    renew(holder)
    return server


@pytest.mark.parametrize("follow", [follow_log, follow_both], ids=["log", "both"])
def test_who_set_and_removed_a_label_is_said(follow: View) -> None:
    server = in_the_ring_for_a_while()
    assert list_said(server, follow) == [
        "11:06:51Z: label ring=tenants was set by jane",
        "11:07:03Z: label ring=tenants was removed by jane",
    ]
    latest = [line.text for line in list_latest(account(follow(server), server.now))]
    assert "label ring=tenants was removed by jane" in latest


def test_a_watch_shows_the_field_manager_alone_and_of_a_removal_not_when() -> None:
    assert list_said(in_the_ring_for_a_while(), follow_watch) == [
        "11:06:51Z: label ring=tenants was set, under field manager kubectl-label",
        "11:07:02Z: label ring=tenants was removed, then or later",
    ]


def test_another_value_is_said_with_the_one_before_and_values_are_quoted() -> None:
    server, _ = start()
    label(server, {"ring": "a b"})
    server.wait(1)
    label(server, {"ring": "x" * 100})
    shown = "x" * 75
    assert list_said(server)[0] == '11:06:51Z: label "ring=a b" was set by jane'.replace('"ring=a b"', 'ring="a b"')
    assert list_said(server)[1].startswith('11:06:52Z: label ring was changed from "a b" to "' + shown[:60])
    assert len(list_said(server)[1]) < 160


def test_what_is_set_and_removed_again_and_again_is_two_lines() -> None:
    server, _ = start()
    for _ in range(10):
        label(server, {"ring": "tenants"})
        server.wait(1)
        label(server, {})
        server.wait(1)
    assert list_said(server) == [
        "11:06:51Z: label ring=tenants was set by jane, 10 times until 11:07:09Z",
        "11:06:52Z: label ring=tenants was removed by jane, 10 times until 11:07:10Z",
    ]


def test_of_very_many_labels_the_latest_are_said() -> None:
    server, _ = start()
    for number in range(MAX_MARKS + 20):
        label(server, {"ring": str(number)})
        server.wait(1)
    found = account(follow_log(server), server.now)
    assert len(found.history.label_changes) == MAX_MARKS
    assert len(list_said(server)) == 6
    assert "from 118 to 119" in list_said(server)[-1]
    assert sum("label " in line.text for line in list_latest(found)) == 2


def test_what_the_holder_itself_labels_is_not_said() -> None:
    server, _ = start()
    label(server, {"ring": "tenants"}, who=HOLDER)
    assert list_said(server) == []


@pytest.mark.parametrize("follow", [follow_log, follow_watch], ids=["log", "watch"])
def test_what_the_next_holder_labels_as_it_takes_the_lease_is_not_said(follow: View) -> None:
    server, _ = start()
    server.wait(30)
    label(
        server,
        {"version": "2"},
        who=("operator", HOLDER[1], "db-1"),
        holderIdentity="db-1_1",
        renewTime="2026-11-18T11:07:21.000000Z",
        acquireTime="2026-11-18T11:07:21.000000Z",
        leaseTransitions=1,
    )
    assert list_said(server, follow) == []


@pytest.mark.parametrize(("manager", "is_told"), [("operator", False), ("curl", True)], ids=["the same", "another"])
def test_in_a_watch_a_label_that_comes_with_a_renewal_is_its_holders_unless_the_manager_is_another(
    manager: str, *, is_told: bool
) -> None:
    server, _ = start()
    label(server, {"ring": "tenants"}, who=(manager, "", ""), renewTime="2026-11-18T11:06:51.000000Z")
    entries = server.leases["shop/db"]["metadata"]["managedFields"]
    entries[-1]["fieldsV1"] = entries[-1]["fieldsV1"] | {"f:metadata": {"f:labels": {"f:ring": {}}}}
    assert bool(list_said(server, follow_watch)) == is_told


def test_a_lease_that_nobody_holds_may_be_labeled_too() -> None:
    server, holder = start()
    holder.release()
    server.wait(1)
    label(server, {"ring": "tenants"})
    assert list_said(server) == ["11:06:52Z: label ring=tenants was set by jane"]


def patch(server: FakeServer, labels: dict[str, str | None], user: str = "jane", pod: str = "") -> None:
    """Patch labels in a log that does not show what was stored."""
    server.log_request("shop/db", "patch", user, pod, {})
    del server.log[-1]["responseObject"]
    server.log[-1] |= {"level": "Request", "requestObject": {"metadata": {"labels": labels}}}
    server.wait(1)


def test_patches_of_labels_are_said_without_what_was_stored() -> None:
    server, _ = start()
    patch(server, {"ring": "tenants"})
    patch(server, {"ring": "tenants"})
    patch(server, {"ring": "other", "gone": None})
    patch(server, {"ring": None})
    patch(server, {"ring": "tenants"}, HOLDER[1], HOLDER[2])
    assert [line.partition(": ")[2] for line in list_said(server)] == [
        "label ring=tenants was set by jane",
        "label ring was changed from tenants to other by jane",
        "label ring=other was removed by jane",
    ]


def test_of_a_lease_that_a_log_does_not_show_a_removed_value_is_not_known() -> None:
    server, _ = start()
    server.log.clear()
    patch(server, {"ring": None})
    patch(server, {"ring": "tenants"})
    found = follow_log(server).leases[LEASE].label_changes
    assert [(one.before, one.after) for one in found] == [(None, None), (None, "tenants")]


def make(after: str | None, writer: Writer | None, before: str | None = None) -> LabelChange:
    return LabelChange(1, "ring", before, after, writer)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([make("a", None, "b"), make("a", WRITER)], [make("a", WRITER, "b")]),
        ([make("a", WRITER), make("a", None, "b")], [make("a", WRITER)]),
        ([make("a", WRITER), make("a", WRITER)], [make("a", WRITER), make("a", WRITER)]),
        ([make("a", WRITER), make(None, None)], [make("a", WRITER), make(None, None)]),
    ],
    ids=["state first", "request first", "two requests", "two changes"],
)
def test_what_a_log_and_a_watch_show_is_one_change(changes: list[LabelChange], expected: list[LabelChange]) -> None:
    found: list[LabelChange] = []
    for one in changes:
        add_label_change(found, one)
    assert found == expected


def test_what_a_finding_says_of_a_label_is_not_said_twice() -> None:
    server, _ = start()
    label(server, {"app": "shop"})
    server.wait(1)
    server.delete("shop/db", user="pruner")
    server.wait(1)
    server.elector("db-1", "shop/db").lead(20)
    found = account(follow_log(server), server.now)
    assert "jane put the label app=shop on it" in text(found)
    assert not any("label app=shop was set" in line.text for line in list_latest(found))
