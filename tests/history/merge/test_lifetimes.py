"""Creations and deletions come by the writes to each object, where clocks differ."""

import pytest

from tests.factories import Document
from tests.history.fake_server import FakeServer
from tests.history.merge.logs import cut_to_request, list_in_order, shift, two_renewals
from webhook.analysis.inputs.items import Act


def test_a_creation_comes_before_the_first_write_to_what_it_created() -> None:
    created, *renewals = (cut_to_request(one) for one in two_renewals().log)
    renewals = [{**one, "objectRef": {**one["objectRef"], "uid": "u"}} for one in renewals]
    order = list_in_order([shift(created, 3), *renewals])
    assert [one.verb for one in order] == ["create", "update", "update"]


def test_a_creation_comes_after_the_writes_to_an_older_object() -> None:
    """Its deletion need not be in the log: then nothing says that the clocks differ."""
    created, *renewals = (cut_to_request(one) for one in two_renewals().log)
    order = list_in_order([*renewals, shift(created, 30)])
    assert [one.verb for one in order] == ["update", "update", "create"]


def recreate(server: FakeServer) -> tuple[Document, ...]:
    """Have another user delete the lease, and its process create it again; return the whole log."""
    server.delete("shop/db", "cleaner")
    server.wait(0.3)
    server.elector("db-1", "shop/db").lead(3)
    return tuple(server.log)


def delete_between_clocks(*, is_read: bool) -> list[Document]:
    """Return a log without objects: a deletion by a clock that is behind, and a creation, perhaps after a read."""
    server = two_renewals()
    server.delete("shop/db", "cleaner")
    deletion = shift(server.log.pop(), -1)
    server.wait(2)
    if is_read:
        server.log_request("shop/db", "get", "admin", "", {})
    server.wait(0.01)
    server.elector("a", "shop/db").lead(3)
    cut = [{**one, "level": "Metadata", "responseObject": None} for one in (*server.log, deletion)]
    updates = ({**one, "objectRef": {**one["objectRef"], "uid": "u"}} for one in cut[1:3])
    return [cut[0], *updates, *cut[3:]]


@pytest.mark.parametrize("is_read", [False, True], ids=["not read", "read before by a clock that may be behind"])
def test_a_deletion_by_a_clock_that_is_behind_comes_before_the_creation_of_what_a_log_does_not_show(
    *, is_read: bool
) -> None:
    order = [one for one in list_in_order(delete_between_clocks(is_read=is_read)) if one.act is not Act.READ]
    assert [one.verb for one in order] == ["create", "update", "update", "delete", "create", "update"]
    assert order[3].is_stored


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
    order = list_in_order([*log[:number], *log[number + 1 :], deletion])
    assert [one.verb for one in order][number : number + 3] == verbs
