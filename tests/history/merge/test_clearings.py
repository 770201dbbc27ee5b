"""What a request to delete many objects of a namespace deleted."""

import pytest

from webhook.analysis.history.merge.clearings import list_deletions
from webhook.analysis.inputs.items import Act, Clearing, InputKind, Observation, Place


@pytest.mark.parametrize(
    ("clearing", "deleted"),
    [
        pytest.param(Clearing((("db", "uid-1"),)), {"db": "uid-1"}, id="what its answer lists"),
        pytest.param(Clearing(is_whole=True), {"mail": "", "web": ""}, id="all that was seen, if it names none"),
        pytest.param(
            Clearing((("db", "uid-1"), ("web", "uid-2")), is_shown=False),
            {"web": "uid-2"},
            id="of what was asked for, what was seen",
        ),
        pytest.param(Clearing(is_shown=False), {}, id="nothing that is known"),
    ],
)
def test_a_request_to_delete_many_deletes(clearing: Clearing, deleted: dict[str, str]) -> None:
    request = Observation(
        place=Place("log", 1),
        input_kind=InputKind.AUDIT_LOG,
        act=Act.COLLECTION,
        kind="Lease",
        namespace="shop",
        name="",
        clearing=clearing,
    )
    deletions = list(list_deletions(request, ["mail", "web"]))
    assert {item.name: item.uid for item in deletions} == deleted
    assert all(item.act is Act.DELETED and item.clearing is None for item in deletions)
