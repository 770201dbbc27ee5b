"""The lease by which an API server shows that it runs: it deletes it when it ends, and no one elects by it."""

from typing import Any

import pytest

from tests.claims.accounts import text
from tests.history.fake_server import Elector, FakeServer
from tests.history.observing import follow_log, follow_metadata, follow_watch
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.facts import find_claims
from webhook.analysis.claims.presentation.happened import list_latest

NAME = f"apiserver-{'x2' * 13}"
ENDS = "system:apiserver deleted the lease of an API server, as API servers do when they end"
NO_ELECTION = "the lease of an API server, by which no one elects,"


def delete(
    *, name: str = NAME, user: str = "system:apiserver", renewed: float = 60, silent: float = 1
) -> tuple[FakeServer, Elector]:
    """Return a server on which a user deleted a lease of kube-system, and who held it."""
    server = FakeServer()
    holder = server.elector(name, f"kube-system/{name}", user="system:apiserver", pod="")
    holder.lead(renewed)
    server.wait(silent)
    server.delete(f"kube-system/{name}", user)
    return server, holder


def explain(follow: Any = follow_log, **settings: Any) -> str:
    """Return the text about a deleted lease of kube-system, with the lines that are shown without --verbose."""
    server, _ = delete(**settings)
    return explain_after(server, follow, settings.get("name", NAME))


def explain_after(server: FakeServer, follow: Any = follow_log, name: str = NAME) -> str:
    """Return the text about a lease of kube-system half a minute later."""
    server.wait(30)
    histories = follow(server)
    answer = make_account(histories, histories.leases["kube-system", name], server.now)
    facts = "\n".join(found.message for found in find_claims(answer))
    return f"{text(answer)}\n{facts}\n" + "\n".join(line.text for line in list_latest(answer))


def test_an_api_server_that_ends_deletes_its_lease_and_nothing_is_missing() -> None:
    output = explain()
    assert output.startswith(f"{NO_ELECTION} was deleted 30 s ago by system:apiserver")
    assert output.count(ENDS) == 2
    assert "while" not in output.replace(f"while {NAME}_1 renewed it", "")
    assert "nothing is missing if one ended. To see those that run: kubectl -n kube-system get leases -l" in output
    assert "may create it" not in output


def create_again(*, after: float, uuid: str, user: str = "system:apiserver", silent: float = 37) -> str:
    """Return the text about the lease of an API server that was deleted and created again, by which process."""
    server, holder = delete(user=user, silent=silent)
    server.wait(after)
    holder.identity = f"{NAME}_{uuid}"
    holder.lead(10)
    return explain_after(server)


@pytest.mark.parametrize("silent", [1, 37])
def test_an_api_server_that_starts_deletes_the_lease_of_the_process_before_it(silent: float) -> None:
    output = create_again(after=0.01, uuid="2", silent=silent)
    assert "of an API server, as an API server that starts does with that of the process before it" in output
    assert "when they end" not in output


def test_an_api_server_that_goes_on_has_not_ended() -> None:
    output = create_again(after=0.01, uuid="1", silent=1)
    assert "system:apiserver deleted the lease of an API server\n" in output


def test_an_api_server_that_is_restarted_in_order_ends_first() -> None:
    output = create_again(after=15, uuid="2", silent=1)
    assert ENDS in output


def test_whoever_else_deletes_the_lease_before_an_api_server_starts_is_named() -> None:
    output = create_again(after=0.01, uuid="2", user="alice")
    assert "alice deleted the lease of an API server\n" in output


def test_an_api_server_that_was_silent_had_ended_before() -> None:
    output = explain(silent=37)
    assert "system:apiserver deleted the lease of an API server, 37 s after its last renewal\n" in output


def test_without_renewals_nothing_shows_why_the_lease_was_deleted() -> None:
    output = explain(renewed=0, silent=60)
    assert "system:apiserver deleted the lease of an API server\n" in output


def test_a_watch_does_not_show_that_an_api_server_deleted_its_lease() -> None:
    output = explain(follow=follow_watch)
    assert output.startswith(f"{NO_ELECTION} was deleted")
    assert "the lease of an API server was deleted, then or later" in output
    assert "when they end" not in output
    assert "nothing is missing" not in output


def test_whoever_else_deletes_the_lease_of_an_api_server_is_named() -> None:
    output = explain(user="alice")
    assert "alice deleted the lease of an API server\n" in output
    assert "when they end" not in output
    assert "which creates it again while it runs" in output


def test_a_deletion_that_may_have_been_a_dry_run_is_doubted() -> None:
    output = explain(user="alice", follow=follow_metadata)
    assert "alice may have deleted the lease of an API server\n" in output


@pytest.mark.parametrize("name", ["apiserver-proxy", "apiserver-network-proxy-controller-1", "x2" * 13])
def test_another_lease_of_kube_system_elects(name: str) -> None:
    output = explain(name=name)
    assert "of an API server" not in output
    assert "Most clients create it" in output


def renamed(
    follow: Any, *, is_created_later: bool = True, is_expired: bool = False, is_other_gone: bool = False
) -> str:
    """Return the text about the lease of an API server that is silent, beside that of another one, created later."""
    server = FakeServer()
    own, other = (
        server.elector(f"apiserver-{one * 13}", f"kube-system/apiserver-{one * 13}", user="system:apiserver", pod="")
        for one in ("x2", "y3")
    )
    own.duration = other.duration = 60 if is_expired else 3600
    if not is_created_later:
        other.take()
    own.lead(60)
    server.wait(20)
    other.lead(100)
    if is_other_gone:
        server.delete(other.lease, "system:apiserver")
    for name, host in ((own, "cp-b"), (other, "cp-b.example.com")):
        for _, _, document in server.events:
            if document["metadata"]["name"] in name.lease:
                document["metadata"]["labels"] = {"kubernetes.io/hostname": host}
    histories = follow(server)
    return text(make_account(histories, histories.leases["kube-system", NAME], server.now))


@pytest.mark.parametrize("follow", [follow_log, follow_watch], ids=["log", "watch"])
def test_of_a_silent_api_server_its_host_is_named_and_who_came_since(follow: Any) -> None:
    advice = renamed(follow).partition("ADVICE ")[2]
    assert advice.startswith("This is the lease of an API server (host cp-b), by which no one elects.")
    assert f"Another one, apiserver-{'y3' * 13} (host cp-b.example.com), was created at 11:08:00Z" in advice
    assert advice.endswith("-L kubernetes.io/hostname")
    assert "pod" not in advice


@pytest.mark.parametrize("follow", [follow_log, follow_watch], ids=["log", "watch"])
def test_an_api_server_that_ran_before_is_no_new_name(follow: Any) -> None:
    assert "was created at" not in renamed(follow, is_created_later=False).partition("ADVICE ")[2]


@pytest.mark.parametrize("follow", [follow_log, follow_watch], ids=["log", "watch"])
def test_an_api_server_that_came_and_ended_is_no_new_name(follow: Any) -> None:
    assert "was created at" not in renamed(follow, is_other_gone=True).partition("ADVICE ")[2]


@pytest.mark.parametrize("follow", [follow_log, follow_watch], ids=["log", "watch"])
def test_an_expired_lease_of_an_api_server_leads_to_no_pod(follow: Any) -> None:
    advice = renamed(follow, is_expired=True).partition("ADVICE ")[2]
    assert "describe pod" not in advice
    assert advice.endswith("-L kubernetes.io/hostname")
