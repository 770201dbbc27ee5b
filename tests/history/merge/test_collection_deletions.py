"""One request that deletes many objects of a namespace becomes a deletion of each."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from webhook.analysis.history.merge import merged
from webhook.analysis.history.merge.collection_deletions import list_deletions
from webhook.analysis.history.merge.dated import DatedItem
from webhook.analysis.history.merge.merged import Merged
from webhook.analysis.inputs.items import Act, CollectionDeletion, Input, InputKind, Item, Observation, Place

WHOLE = CollectionDeletion(is_whole=True)


def make_key(name: str) -> tuple[str, str, str]:
    return ("Lease", "shop", name)


def observe(name: str, at: int | None, act: Act = Act.UPDATED) -> DatedItem:
    place, kind = Place("log", 1), InputKind.AUDIT_LOG
    return DatedItem(
        Observation(place=place, input_kind=kind, act=act, kind="Lease", namespace="shop", name=name, at=at)
    )


def make_request(at: int, deleted: CollectionDeletion) -> Observation:
    return replace(observe("", at, Act.COLLECTION).observation, collection_deletion=deleted)


@pytest.mark.parametrize(
    ("collection_deletion", "deleted"),
    [
        pytest.param(CollectionDeletion((("db", "uid-1"),)), {"db": "uid-1"}, id="what its answer lists"),
        pytest.param(
            CollectionDeletion(is_whole=True), {"mail": "", "web": ""}, id="all that was seen, if it names none"
        ),
        pytest.param(
            CollectionDeletion((("db", "uid-1"), ("web", "uid-2")), is_shown=False),
            {"web": "uid-2"},
            id="of what was asked for, what was seen",
        ),
        pytest.param(CollectionDeletion(is_shown=False), {}, id="nothing that is known"),
    ],
)
def test_a_request_to_delete_many_deletes(collection_deletion: CollectionDeletion, deleted: dict[str, str]) -> None:
    pending = {make_key(name): [observe(name, 1)] for name in ("mail", "web")}
    found = dict(list_deletions([make_request(2, collection_deletion)], pending, []))
    assert {item.name: item.uid for item in found.values()} == deleted
    assert all(item.act is Act.DELETED and item.collection_deletion is None for item in found.values())
    assert all(key == (item.kind, item.namespace, item.name) for key, item in found.items())


def list_times(requests: Sequence[Observation], *times: int | None) -> list[int | None]:
    """Return when one object was deleted, of which something was seen at some times."""
    seen = [observe("web", at) for at in times]
    return [one.at for _, one in list_deletions(requests, {make_key("web"): seen}, [])]


def test_few_requests_delete_each_object_each_time() -> None:
    requests = [make_request(at, WHOLE) for at in (5, 3, 4)]
    assert list_times(requests, None) == [5, 3, 4]


def test_of_many_requests_those_next_to_what_was_seen_delete_it() -> None:
    requests = [make_request(at, WHOLE) for at in range(100)]
    assert sorted(filter(None, list_times(requests, 50, 20, None))) == [19, 20, 49, 50, 99]
    assert list_times(requests, 1000) == [0, 99]


def test_what_only_an_answer_names_was_not_deleted_before_it() -> None:
    answer = CollectionDeletion((("new", "uid-1"),))
    requests = [make_request(1, WHOLE), make_request(2, answer), make_request(3, WHOLE), make_request(4, answer)]
    found = [(one.at, one.uid) for _, one in list_deletions(requests, {}, [])]
    assert found == [(2, "uid-1"), (3, ""), (4, "uid-1")]


def test_many_requests_that_delete_many_objects_give_no_more_than_was_read() -> None:
    keys = [make_key(str(number)) for number in range(200)]
    pending = {key: [observe(key[2], number)] for number, key in enumerate(keys)}
    requests = [make_request(at, WHOLE) for at in range(300)]
    assert len([*list_deletions(requests, pending, keys)]) <= 4 * len(keys)


def test_requests_that_delete_many_do_not_wait_without_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merged, "MAX_PENDING", 10)
    items: list[Item] = [make_request(at, WHOLE) for at in range(100)]
    waiting = Merged([Input("log", lambda: iter(items))], latest=10**9)
    most = 0
    for _ in waiting:
        most = max(most, len(waiting._collection_deletions))
    assert most <= 10
