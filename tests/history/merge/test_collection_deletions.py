"""One request that deletes many objects of a namespace becomes a deletion of each."""

import pytest

from webhook.analysis.history.merge.collection_deletions import list_deletions
from webhook.analysis.inputs.items import Act, CollectionDeletion, InputKind, Observation, Place


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
    request = Observation(
        place=Place("log", 1),
        input_kind=InputKind.AUDIT_LOG,
        act=Act.COLLECTION,
        kind="Lease",
        namespace="shop",
        name="",
        collection_deletion=collection_deletion,
    )
    deletions = list(list_deletions(request, ["mail", "web"]))
    assert {item.name: item.uid for item in deletions} == deleted
    assert all(item.act is Act.DELETED and item.collection_deletion is None for item in deletions)
