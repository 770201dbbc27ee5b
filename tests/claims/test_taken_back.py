"""Fields that an API server sets, and an elector clears that replaces the whole spec."""

from collections.abc import Callable

import pytest

from tests.claims.accounts import account
from tests.history.fake_server import FakeServer
from tests.history.observing import advise, follow_both, follow_log, follow_watch
from webhook.analysis.claims.presentation.happened import list_events, list_latest
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.taken_back import MAX_ELECTION_FIELD_CHANGES

Follow = Callable[[FakeServer], ClusterHistory]
API_SERVER = ("kube-apiserver", "system:apiserver", "")
OTHER = ("curl", "jane", "")
HOLDER = ("operator", "system:serviceaccount:shop:db", "db-0")


def play(
    times: int = 3, *, setter: tuple[str, str, str] = API_SERVER, by_renewal: bool = True, after: float = 0
) -> FakeServer:
    """A holder whose renewals, or another writer's edits, clear what somebody sets again and again."""
    server = FakeServer()
    server.wait(after)
    holder = server.elector("db-0", "shop/db")
    holder.lead(20)
    for _ in range(times):
        server.wait(1)
        spec = server.leases["shop/db"]["spec"]
        server.write("shop/db", {**spec, "strategy": "OldestEmulationVersion"}, *setter)
        server.wait(1)
        if not by_renewal:
            server.write("shop/db", spec, *OTHER)
            holder.renew(strategy=None)
        holder.renew()
    return server


def list_texts(server: FakeServer, follow: Follow) -> list[list[str]]:
    explained = account(follow(server), server.now)
    return [
        [one.text for one in lines if "strategy" in one.text]
        for lines in (list_events(explained), list_latest(explained))
    ]


@pytest.mark.parametrize("follow", [follow_log, follow_both], ids=["log", "log and watch"])
def test_both_sides_are_named_at_every_length(follow: Follow) -> None:
    text = (
        "system:apiserver set strategy 3 times until 11:07:05Z, and 3 renewals by shop/db from pod db-0 removed it, "
        "as an elector does that replaces the whole spec"
    )
    assert list_texts(play(), follow) == [[text], [text]]


def test_a_watch_says_as_much_without_names() -> None:
    text = (
        "strategy was set 3 times until 11:07:05Z, and 3 renewals removed it, "
        "as an elector does that replaces the whole spec"
    )
    assert list_texts(play(), follow_watch) == [[text], [text]]


def test_another_one_that_is_no_elector_is_named_without_that_reason() -> None:
    (texts, _) = list_texts(play(by_renewal=False), follow_log)
    assert texts == ["system:apiserver set strategy 3 times until 11:07:05Z, and 3 writes by jane removed it"]


def test_the_advice_is_about_who_removes_it() -> None:
    server = play(9)
    assert advise(account(follow_log(server), server.now)).startswith(
        "Find out why shop/db removes strategy again: it may be a version without coordinated elections."
    )
    assert "system:apiserver" not in advise(account(follow_log(server), server.now))
    edited = play(by_renewal=False)
    assert advise(account(follow_log(edited), edited.now)).startswith("Find out why jane removes strategy again. ")


def test_of_a_watch_the_advice_is_to_read_the_log() -> None:
    server = play()
    advice = advise(account(follow_watch(server), server.now))
    assert advice.startswith("Find out who removes strategy again. The audit log shows it:")


@pytest.mark.parametrize(
    "server",
    [pytest.param(play(2), id="of two times"), pytest.param(play(setter=HOLDER), id="of the holder's own writes")],
)
def test_nothing_is_said(server: FakeServer) -> None:
    assert not any("removed it" in one for texts in list_texts(server, follow_log) for one in texts)


def test_of_more_than_are_remembered_the_numbers_are_bounds() -> None:
    (text, *_), _ = list_texts(play(MAX_ELECTION_FIELD_CHANGES // 2 + 1), follow_log)
    assert text.startswith("system:apiserver set strategy at least 500 times")


def test_an_api_server_that_writes_again_and_again_is_not_to_be_examined() -> None:
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    holder.lead(20)
    for _ in range(5):
        server.wait(1)
        server.write("shop/db", server.leases["shop/db"]["spec"], *API_SERVER)
        holder.renew()
    assert advise(account(follow_log(server), server.now)).startswith("It is held and renewed; a lease does not show")


def test_the_last_time_has_a_date_if_that_is_not_the_date_of_the_first_one() -> None:
    (text,) = list_texts(play(after=46_377), follow_watch)[0]
    assert "set 3 times until 2026-11-19T00:00:02Z" in text


def play_two_holders(named: str = "ci-0") -> FakeServer:
    """A holder whose renewals clear what names a candidate, and another one that takes the lease, and does so, too."""
    server = FakeServer()
    for number, times in enumerate((4, 3)):
        holder = server.elector(f"db-{number}", "shop/db", user="system:serviceaccount:shop:db")
        holder.take()
        for turn in range(times):
            server.wait(1)
            spec = server.leases["shop/db"]["spec"]
            fields = {"strategy": "OldestEmulationVersion", "preferredHolder": named}
            server.write("shop/db", {**spec, **fields}, *API_SERVER)
            server.wait(1)
            if number or turn < times - 1:
                holder.renew()
        server.wait(20)
    return server


@pytest.mark.parametrize("follow", [follow_log, follow_both], ids=["log", "log and watch"])
def test_all_that_remove_it_are_counted_and_the_candidate_is_named(follow: Follow) -> None:
    ((text, *_), _) = list_texts(play_two_holders(), follow)
    assert text == (
        "system:apiserver set strategy and preferredHolder 7 times until 11:07:13Z (preferredHolder ci-0, as API "
        "servers do for LeaseCandidates), and 3 renewals by shop/db from pod db-0 and 1 takeover and 3 renewals by "
        "shop/db from pod db-1 removed them, as an elector does that replaces the whole spec"
    )


def test_a_watch_counts_as_much() -> None:
    ((text, *_), _) = list_texts(play_two_holders(), follow_watch)
    assert text.startswith("strategy and preferredHolder were set 7 times until 11:07:13Z (preferredHolder ci-0), and ")
    assert "and 1 takeover and 6 renewals removed them" in text


def test_of_a_preferred_holder_the_advice_is_to_see_the_candidate() -> None:
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    holder.lead(20)
    for _ in range(4):
        server.wait(1)
        spec = server.leases["shop/db"]["spec"]
        server.write("shop/db", {**spec, "preferredHolder": "ci-0"}, *API_SERVER)
        server.wait(1)
        holder.renew()
    advice = advise(account(follow_log(server), server.now))
    assert advice.startswith("See who made the LeaseCandidate ci-0: an API server sets preferredHolder for candidates.")
    assert "get leasecandidates" in advice
