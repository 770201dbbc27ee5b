"""Several inputs as one stream: how many are open at once, and what comes first where clocks differ."""

import json
from collections.abc import Iterator
from functools import partial

import pytest

from tests.claims.accounts import account, text
from tests.factories import Document
from tests.history.fake_server import SECOND, Elector, FakeServer, together
from tests.history.observing import cluster_of, merge_inputs
from tests.inputs.reading import read
from webhook.analysis.history import merge
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.tenure import Handover
from webhook.analysis.inputs.items import Input, Item, LogEnd, Observation, Place, Unreadable
from webhook.kubernetes.times import format_micro_time, parse


class Files:
    """Inputs that count how many of them are read at the same time."""

    def __init__(self) -> None:
        self.open = 0
        self.most = 0

    def read(self, items: list[Item]) -> Iterator[Item]:
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            yield from items
        finally:
            self.open -= 1


@pytest.mark.parametrize(
    "items",
    [
        pytest.param([LogEnd(5), LogEnd(9)], id="all of one hour"),
        pytest.param([Unreadable(Place("in", 1), "not JSON"), LogEnd(9)], id="that begin with something unreadable"),
        pytest.param([Unreadable(Place("in", 1), "not JSON")] * 2, id="without a time"),
    ],
)
def test_only_so_many_inputs_are_open_at_once(items: list[Item], monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory may hold more dumps than a process may have open files."""
    monkeypatch.setattr(merge, "MAX_OPEN", 3)
    files = Files()
    inputs = [Input(str(number), partial(files.read, items)) for number in range(10)]
    assert {*map(str, merge.Merged(inputs, 10))} == {*map(str, items)} - {str(LogEnd(5))}, "only the last end counts"
    assert files.open == 0
    assert files.most <= 3 + 1  # and the one that is looked into


def test_inputs_without_items_are_passed_over() -> None:
    assert list(merge_inputs([], [])) == []
    assert list(merge_inputs([], [LogEnd(5)])) == [LogEnd(5)]


def cut_to_request(event: Document) -> Document:
    """The event as a log shows it at level Request."""
    stored = event["responseObject"]
    asked = {**stored, "metadata": {key: stored["metadata"][key] for key in ("name", "namespace")}}
    shown = {key: value for key, value in event.items() if key != "responseObject"}
    return {**shown, "level": "Request", "requestObject": asked}


def shift(event: Document, seconds: float) -> Document:
    """The event as an API server whose clock is ahead logs it."""
    keys = "requestReceivedTimestamp", "stageTimestamp"
    return {**event, **{key: format_micro_time(parse(event[key]) + int(seconds * SECOND)) for key in keys}}


def list_in_order(log: list[Document]) -> list[Observation]:
    lines = b"".join(json.dumps(one).encode() + b"\n" for one in log)
    found = merge_inputs([*read("log", [lines])])
    return [one for one in found if isinstance(one, Observation)]


def two_renewals() -> FakeServer:
    server = FakeServer()
    server.elector("a", "shop/db").lead(5)
    return server


def test_a_write_comes_after_the_state_that_it_replaced_whatever_the_clocks_say() -> None:
    """At level Request a log does not show the resourceVersion of a write, only which one it replaced."""
    created, *renewals = two_renewals().log
    found = list_in_order([shift(cut_to_request(renewals[0]), 3), created, *renewals[1:]])
    assert [one.replaces for one in found] == ["", "101", "102"]


def patched(event: Document, seconds: float) -> Document:
    """A patch as a log at level Request shows it: not which state it replaced, nor what it made."""
    asked = cut_to_request(event)
    return shift({**asked, "verb": "patch", "user": {"username": "alice"}}, seconds)


@pytest.mark.parametrize(
    ("behind", "place"),
    [
        pytest.param(-0.5, 3, id="the last renewal replaced the one before"),
        pytest.param(-3.5, 2, id="by clocks that differ by less than two seconds it came before the last renewal"),
    ],
)
def test_no_patch_comes_between_a_state_and_the_one_that_replaced_it(behind: float, place: int) -> None:
    log = two_renewals().log
    patch = {**patched(log[-1], behind), "objectRef": {**log[-1]["objectRef"], "resourceVersion": ""}}
    read = {**log[-1], "verb": "get", "responseObject": {}}
    found = list_in_order([*log[:-1], patch, shift(read, -0.2), log[-1]])
    assert [one.verb for one in found if one.verb != "get"].index("patch") == place


def test_a_patch_may_be_what_a_log_lacks_between_two_states() -> None:
    created, renewal, last = two_renewals().log
    patch = {**patched(last, -0.5), "objectRef": {**last["objectRef"], "resourceVersion": ""}}
    last = {**last, "objectRef": {**last["objectRef"], "resourceVersion": "101"}}
    unchanged = {**shift(renewal, 0.1), "verb": "patch", "objectRef": {**renewal["objectRef"], "resourceVersion": ""}}
    found = list_in_order([created, renewal, unchanged, patch, last])
    assert [one.verb for one in found] == ["create", "update", "patch", "patch", "update"]


@pytest.mark.parametrize(
    ("ahead", "how"),
    [
        pytest.param(None, Handover.STOLEN, id="there is none"),
        pytest.param(0.5, Handover.UNKNOWN, id="by another clock it came just after the taking"),
        pytest.param(3.5, Handover.STOLEN, id="no clocks differ by as much"),
    ],
)
def test_a_hidden_write_may_have_removed_the_holder_before_another_one_took_the_lease(
    ahead: float | None, how: Handover
) -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    server.wait(1)
    server.write("shop/db", {**server.leases["shop/db"]["spec"], "holderIdentity": ""}, "kubectl-patch", "alice", "")
    server.wait(0.3)
    server.elector("b", "shop/db").take()
    *before, removal, taking = server.log
    patch = {**patched(removal, ahead or 0), "objectRef": {**removal["objectRef"], "resourceVersion": ""}}
    whole = [*map(cut_to_request, before), cut_to_request(taking), *([] if ahead is None else [patch])]
    found = account(cluster_of(b"".join(json.dumps(one).encode() + b"\n" for one in whole)), server.now)
    assert found.history.tenures[-1].began is how
    assert ("lease-stolen" in {one.check for one in found.findings}) is (how is Handover.STOLEN)
    assert "lacks some requests" not in text(found)


def test_a_creation_comes_before_the_first_write_to_what_it_created() -> None:
    created, *renewals = (cut_to_request(one) for one in two_renewals().log)
    renewals = [{**one, "objectRef": {**one["objectRef"], "uid": "u"}} for one in renewals]
    found = list_in_order([shift(created, 3), *renewals])
    assert [one.verb for one in found] == ["create", "update", "update"]


def test_a_creation_comes_after_the_writes_to_an_older_object() -> None:
    """Its deletion need not be in the log: then nothing says that the clocks differ."""
    created, *renewals = (cut_to_request(one) for one in two_renewals().log)
    found = list_in_order([*renewals, shift(created, 30)])
    assert [one.verb for one in found] == ["update", "update", "create"]


def recreate(server: FakeServer) -> tuple[Document, ...]:
    """Have another user delete the lease, and its process create it again; return the whole log."""
    server.delete("shop/db", "cleaner")
    server.wait(0.3)
    server.elector("db-1", "shop/db").lead(3)
    return tuple(server.log)


@pytest.mark.parametrize(
    ("details", "verbs"),
    [
        pytest.param({"uid": "uid-101"}, ["delete", "create", "update"], id="it names the object before"),
        pytest.param({"uid": ["uid-101"]}, ["create", "delete", "update"], id="its uid is of a wrong type"),
        pytest.param({}, ["create", "delete", "update"], id="it does not say what was deleted"),
    ],
)
def test_a_deletion_by_a_clock_that_is_ahead_comes_before_what_was_created_after_it(
    details: Document, verbs: list[str]
) -> None:
    log = recreate(two_renewals())
    number = next(at for at, one in enumerate(log) if one["verb"] == "delete")
    answer = {**log[number]["responseObject"], "details": details}
    deletion = shift({**log[number], "responseObject": answer}, 1)
    found = list_in_order([*log[:number], *log[number + 1 :], deletion])
    assert [one.verb for one in found][number : number + 3] == verbs


def test_of_two_requests_with_one_answer_the_one_that_replaced_another_state_made_it() -> None:
    """A patch that changes nothing is answered with the state as it is, even by a clock that is behind."""
    created, renewal, *_ = two_renewals().log
    user = {"username": "alice"}
    patch = {**renewal, "verb": "patch", "user": user, "objectRef": {**renewal["objectRef"], "resourceVersion": ""}}
    found = list_in_order([created, shift(patch, -1), renewal])
    assert [one.writer.user for one in found if one.writer] == [
        "system:serviceaccount:shop:db",
        "system:serviceaccount:shop:db",
        "alice",
    ]


@pytest.mark.parametrize(
    ("later", "is_known"),
    [
        pytest.param(0.002, False, id="one came before the other was answered"),
        pytest.param(0.1, True, id="one came after the other was answered"),
    ],
)
def test_of_two_patches_with_one_answer_the_first_made_it_unless_they_overlap(later: float, is_known: bool) -> None:
    created, renewal, *_ = two_renewals().log
    patch = {**renewal, "verb": "patch", "objectRef": {**renewal["objectRef"], "resourceVersion": ""}}
    other = shift({**patch, "user": {"username": "alice"}}, later)
    _, maker, second = list_in_order([created, patch, other])
    assert (maker.writer is not None) is is_known
    assert second.writer is not None


def test_a_renewal_by_an_unknown_one_of_two_is_not_that_of_the_holder() -> None:
    server = two_renewals()
    server.wait(2)
    server.elector("a", "shop/db").renew()
    patch = {**server.log[-1], "verb": "patch"}
    patch["objectRef"] = {**patch["objectRef"], "resourceVersion": ""}
    other = shift({**patch, "user": {"username": "alice"}}, 0.002)
    leases = ClusterHistory()
    for item in list_in_order([*server.log[:-1], patch, other]):
        leases.take(item)
    tenure = leases.leases["shop", "db"].holder
    assert tenure is not None
    assert tenure.is_touched_last


def delete_and_create_again(*others: Elector, server: FakeServer, db: Elector) -> tuple[int, bytes]:
    """When a lease was deleted between two times of all holders, and a watch without the stamps of shop/evil."""
    together(20, db, *others)
    server.delete("shop/db")
    deleted = server.now
    server.wait(1)
    db.take()
    together(20, db, *others)
    for _, _, one in server.events:
        if one["metadata"]["name"] == "evil":
            del one["metadata"]["managedFields"]
    return deleted, server.watch()


@pytest.mark.parametrize("ahead", [-3600, 3600], ids=["behind", "ahead"])
@pytest.mark.parametrize("has_others", [True, False], ids=["beside others", "alone"])
def test_what_a_client_claims_in_its_own_lease_moves_no_deletion_of_another_one(ahead: float, has_others: bool) -> None:
    server = FakeServer()
    others = [server.elector("mail-0", "shop/mail")] if has_others else []
    evil = server.elector("evil", "shop/evil", ahead=ahead)
    deleted, watch = delete_and_create_again(evil, *others, server=server, db=server.elector("db-0", "shop/db"))
    first, _ = cluster_of(watch).leases["shop", "db"].tenures
    assert first.until is not None
    assert deleted - 2 * SECOND <= first.until <= deleted
    order = [one.name for one in merge_inputs([*read("in", [watch])]) if isinstance(one, Observation)]
    names = ["db", "evil", *(["mail"] if has_others else [])]
    assert [sorted(order[at : at + len(names)]) for at in (0, len(names))] == [names, names]
