"""Labels and annotations that others than its holder put on a lease before it is deleted."""

import pytest

from tests.claims.accounts import account
from tests.factories import Document
from tests.history.fake_server import FakeServer
from tests.history.observing import View, follow_both, follow_log, follow_watch
from webhook.analysis.inputs.patches import Mark, list_marks

JANE = ("kubectl-label", "jane", "")
HOLDER = ("operator", "system:serviceaccount:shop:db", "db-0")
PUT = "(jane put the label app=shop on it at 11:07:01Z)"


def play(
    *, wait: float = 20.0, is_patch: bool = False, who: tuple[str, str, str] = JANE, part: str = "labels"
) -> FakeServer:
    """Somebody marks a held lease, which is deleted then, and created again by another pod."""
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    holder.lead(20)
    server.wait(1)
    stored = server.leases["shop/db"]
    mark: Document = {part: {"app": "shop"}}
    if is_patch:
        server.log_request("shop/db", "patch", who[1], who[2], {})
        del server.log[-1]["responseObject"]
        server.log[-1] |= {"level": "Request", "requestObject": {"metadata": mark}}
    else:
        server.write("shop/db", stored["spec"], *who)
        server.leases["shop/db"]["metadata"] |= mark
    for _ in range(int(wait // 2)):
        server.wait(2)
        labels = server.leases["shop/db"]["metadata"].get("labels")
        holder.renew()
        if labels:
            server.leases["shop/db"]["metadata"]["labels"] = labels
    server.delete("shop/db", user="pruner")
    server.wait(1)
    server.elector("db-1", "shop/db").lead(20)
    return server


def find_deletion(server: FakeServer, follow: View) -> str:
    found = account(follow(server), server.now)
    return next(one.message for one in found.findings if one.check == "lease-deleted")


@pytest.mark.parametrize("follow", [follow_log, follow_both], ids=["log", "log and watch"])
def test_a_label_beside_a_deletion_is_said_with_who_put_it_there(follow: View) -> None:
    assert PUT in find_deletion(play(), follow)


def test_an_annotation_is_said_too() -> None:
    assert "(jane put the annotation app=shop on it at 11:07:01Z)" in find_deletion(
        play(part="annotations"), follow_log
    )


def test_a_patch_of_which_the_log_has_only_what_was_asked_is_enough() -> None:
    assert PUT in find_deletion(play(is_patch=True), follow_log)


def test_a_watch_shows_the_label_and_not_whose_it_is() -> None:
    assert "(the label app=shop was put on it at 11:07:00Z or later)" in find_deletion(play(), follow_watch)


@pytest.mark.parametrize(
    ("server", "follow"),
    [
        pytest.param(play(who=HOLDER), follow_log, id="of the holder itself"),
        pytest.param(play(who=HOLDER, is_patch=True), follow_log, id="of a patch by the holder itself"),
        pytest.param(play(part="annotations"), follow_watch, id="of an annotation in a watch, as holders write them"),
        pytest.param(play(wait=620), follow_log, id="of one that was put there long before"),
    ],
)
def test_nothing_is_said(server: FakeServer, follow: View) -> None:
    assert " on it at " not in find_deletion(server, follow)


@pytest.mark.parametrize(
    ("patch", "marks"),
    [
        pytest.param(
            b'{"metadata":{"labels":{"a":"1","b":null}}}',
            (Mark("label", "a", "1"), Mark("label", "b", None)),
            id="a label",
        ),
        pytest.param(
            b'{"metadata":{"labels":null,"annotations":{"a":"1"}}}', (Mark("annotation", "a", "1"),), id="one"
        ),
        pytest.param(
            b'[{"op":"add","path":"/metadata/labels/x.io~1a","value":"1"}]', (Mark("label", "x.io/a", "1"),), id="added"
        ),
        pytest.param(
            b'[{"op":"test","path":"/spec"},{"op":"remove","path":"/metadata/labels/a"},'
            b'{"op":"add","path":"/metadata/labels","value":{}}]',
            (Mark("label", "a", None),),
            id="removed",
        ),
    ],
)
def test_the_marks_of_a_patch_are_those_that_it_sets_or_removes(patch: bytes, marks: tuple[Mark, ...]) -> None:
    assert list_marks(patch) == marks
