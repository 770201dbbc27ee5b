"""Holders in static pods, which have no token of a pod: what their kubelets delete is named for them."""

from typing import Any, Final

import pytest

from tests.claims.accounts import account, text
from tests.factories import put
from tests.history.fake_server import FakeServer, together
from tests.history.observing import follow_log
from webhook.analysis.claims.presentation.happened import list_latest

USER: Final = "system:kube-scheduler"
UUID: Final = "ce7e116f-cd3c-4cc7-a433-2e53486f0240"
DELETED: Final = (
    "pod db-cp-{}, named for this lease and the node of its holder, was deleted by the kubelet there, "
    "as when the manifest of a static pod is removed"
)


def lose_manifests(
    *, name: str = "db", kubelet: str = "system:node:cp-{}", pod: str = "", asks: bool = False
) -> FakeServer:
    """Two schedulers, of which each releases the lease as its static pod is deleted."""
    server = FakeServer()
    mail, third = server.elector("mail-0", "shop/mail"), server.elector("db-9", "shop/db", user=USER, pod="")
    for number in (1, 2):
        elector = server.elector(f"cp-{number}", "shop/db", user=USER, pod=pod)
        elector.identity = f"cp-{number}_{UUID}"
        together(20, elector, mail)
        server.delete_pod(f"{name}-cp-{number}", put("user.username", kubelet.format(number)))
        elector.release()
        server.wait(2)
    for _ in range(12):
        together(2, mail)
        if asks:
            third.ask()
    return server


def list_lines(server: FakeServer) -> list[str]:
    return [line.text for line in list_latest(account(follow_log(server), server.now))]


def test_the_static_pods_of_both_last_holders_are_told_of() -> None:
    server = lose_manifests()
    assert [line for line in list_lines(server) if "static pod" in line] == [DELETED.format(1), DELETED.format(2)]
    output = text(account(follow_log(server), server.now))
    assert "The pod of its last holder was deleted, and the log has no other that asks. See whether any runs" in output
    assert "kubectl -n shop get pods,events" in output


def test_a_mirror_pod_that_a_person_deleted_says_nothing_of_a_manifest() -> None:
    server = FakeServer()
    holder, mail = server.elector("cp-1", "shop/db", user=USER, pod=""), server.elector("mail-0", "shop/mail")
    holder.identity = f"cp-1_{UUID}"
    together(20, holder, mail)
    for user in ("dmitri", "system:node:cp-1"):
        server.delete_pod("db-cp-1", put("user.username", user))
        together(2, holder, mail)
    (line,) = (line for line in list_lines(server) if "static pod" in line)
    who = "pod db-cp-1, named for this lease and the node of its holder, was deleted by dmitri"
    assert line.startswith(who)
    assert line.endswith("if it is a static pod, its process runs on, and its kubelet shows it again")


def test_while_another_asks_for_the_lease_that_one_may_take_it() -> None:
    server = lose_manifests(asks=True)
    assert "The pod of its last holder was deleted" not in text(account(follow_log(server), server.now))


@pytest.mark.parametrize(
    "settings",
    [
        {"name": "mail"},
        {"kubelet": "system:node:cp-9"},
        {"kubelet": "alice"},
        {"pod": "db-0"},
    ],
    ids=["of another name", "by another kubelet", "by a person", "with a token of a pod"],
)
def test_what_need_not_be_the_static_pod_of_a_holder_is_left_out(settings: dict[str, Any]) -> None:
    assert not any("static pod" in line for line in list_lines(lose_manifests(**settings)))


def test_a_holder_that_names_no_node_has_no_static_pod() -> None:
    server = lose_manifests()
    for event in server.log:
        spec = (event.get("responseObject") or {}).get("spec") or {}
        if spec.get("holderIdentity"):
            spec["holderIdentity"] = UUID
    assert not any("static pod" in line for line in list_lines(server))
