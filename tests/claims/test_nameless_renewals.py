"""A lease that names no holder and is renewed all the same, as by pods that do not know their own name."""

from typing import Any

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer
from tests.history.observing import LEASE, View, cluster_of, follow_both, follow_log, follow_watch
from webhook.analysis.claims.findings.headline import make_headline
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.claims.presentation.advise import advise
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.nameless_renewals import MAX_WRITERS
from webhook.analysis.history.status import LeaseState
from webhook.kubernetes.times import SECOND

PODS = ("w-0", "w-1", "w-2")


def renew_namelessly(
    server: FakeServer, *pods: str, times: int = 4, every: float = 1, takes: bool = True, **settings: Any
) -> None:
    """Have pods in turn, none of which knows its name, renew the lease, the first one after it took it."""
    nameless = [server.elector(pod, "shop/db", **settings) for pod in pods]
    for one in nameless:
        one.identity = ""
    for number in range(times):
        one = nameless[number % len(nameless)]
        (one.take if takes and not number else one.renew)()
        server.wait(every)


def release_and_lose_names(*, after: float) -> FakeServer:
    """A server on which db-0 led and released the lease, and so many seconds later pods without a name renew it."""
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    holder.lead(20)
    server.wait(1)
    holder.release()
    server.wait(after)
    renew_namelessly(server, *PODS, takes=False)
    return server


def lose_names(*pods: str, **settings: Any) -> FakeServer:
    """A server on which db-0 led until it ended, and pods without a name have followed."""
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(20)
    server.wait(18)
    renew_namelessly(server, *(pods or PODS), **settings)
    return server


def headline(histories: ClusterHistory, server: FakeServer) -> str:
    return make_headline(account(histories, server.now))


@pytest.mark.parametrize(
    ("follow", "by", "event"),
    [
        (follow_log, "3 processes have renewed it", ", by pod w-0, pod w-1 and pod w-2"),
        (follow_both, "3 processes have renewed it", ", by pod w-0, pod w-1 and pod w-2"),
        (
            follow_watch,
            "it has been renewed",
            ", under field manager operator; the input does not show by which processes",
        ),
    ],
    ids=["audit log", "both", "watch"],
)
def test_a_lease_that_is_renewed_without_a_holder_is_not_free(follow: View, by: str, event: str) -> None:
    server = lose_names()
    found = account(follow(server), server.now)
    since = "since 11:07:18Z without naming one, the last time 1 s ago"
    assert (found.state, found.takeable_at) == (LeaseState.UNKNOWN, None)
    assert make_headline(found) == f"it names no holder, and {by} {since}"
    renewed = f"from then on it was renewed without a holder, 4 times until 11:07:21Z{event}"
    assert renewed in [one.text for one in list_latest(found)]
    said = text(found)
    assert f"11:07:18Z: {renewed}" in said
    assert "A process whose own name is empty may take that for its own" in said
    assert "Can be taken" not in said
    assert "free" not in {one["claim"] for one in make_account_json(found)["claims"]}


def test_a_log_shows_a_pod_whose_identity_can_be_looked_at() -> None:
    server = lose_names(times=5)
    advice = advise(account(follow_log(server), server.now))
    assert (advice.command, advice.pods) == ("kubectl -n shop describe pod w-2", ("w-2",))


def test_a_watch_shows_no_pod() -> None:
    server = lose_names()
    assert advise(account(follow_watch(server), server.now)).command == "kubectl -n shop get pods -o yaml"


@pytest.mark.parametrize(
    ("times", "said"), [(2, "released it (as far as field managers show)"), (4, "released it, or was removed")]
)
def test_a_field_manager_does_not_show_who_emptied_a_lease_that_is_renewed_so(times: int, said: str) -> None:
    server = FakeServer()
    holder = server.elector("db-6d5f8c9b7d-x2x4z", "shop/db")
    holder.identity = holder.pod
    holder.lead(20)
    server.wait(18)
    renew_namelessly(server, *PODS, times=times)
    assert f"{holder.pod} {said}" in text(account(follow_watch(server), server.now))


def test_who_removed_the_holder_by_a_log_needs_no_doubt() -> None:
    server = lose_names()
    found = text(account(follow_log(server), server.now))
    assert "shop/db from pod w-0 removed db-0_1 as the holder" in found


@pytest.mark.parametrize(("times", "is_run"), [(2, False), (3, True)])
@pytest.mark.parametrize("follow", [follow_log, follow_watch], ids=["audit log", "watch"])
def test_a_release_may_be_written_twice(follow: View, times: int, is_run: bool) -> None:
    server = lose_names(times=times)
    found = account(follow(server), server.now)
    assert found.state is (LeaseState.UNKNOWN if is_run else LeaseState.RELEASED)
    assert ("without naming one" in make_headline(found)) is is_run
    assert ("from then on it was renewed" in text(found)) is is_run


@pytest.mark.parametrize("follow", [follow_log, follow_watch], ids=["audit log", "watch"])
def test_what_looks_like_a_release_is_none_of_the_renewals(follow: View) -> None:
    server = release_and_lose_names(after=1)
    found = account(follow(server), server.now)
    assert "since 11:07:02Z without naming one" in make_headline(found)


def test_a_holder_that_empties_its_name_and_goes_on_is_one_process() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(20)
    renew_namelessly(server, "db-0", times=5, takes=False)
    found = headline(follow_log(server), server)
    assert found == (
        "it names no holder, and 1 process has renewed it since 11:07:01Z without naming one, the last time 1 s ago"
    )


def test_a_user_without_a_pod_may_be_several_processes() -> None:
    server = lose_names(pod="", user="ci")
    assert "and at least 1 process have renewed it" in headline(follow_log(server), server)


def test_of_many_processes_so_many_are_kept() -> None:
    pods = [f"w-{number}" for number in range(MAX_WRITERS + 1)]
    server = lose_names(*pods, times=len(pods))
    assert f"and at least {MAX_WRITERS} processes have renewed it" in headline(follow_log(server), server)
    found = text(account(follow_log(server), server.now))
    assert "by at least 10 processes, such as pod w-7, pod w-8 and pod w-9" in found


@pytest.mark.parametrize("follow", [follow_log, follow_watch], ids=["audit log", "watch"])
def test_once_it_is_no_longer_renewed_it_is_free(follow: View) -> None:
    server = lose_names()
    server.wait(20)
    found = account(follow(server), server.now)
    by = " by 3 processes" if follow is follow_log else ""
    assert found.state is LeaseState.RELEASED
    expected = f"no one holds it: it was renewed without a holder{by} from 11:07:18Z to 11:07:21Z"
    assert make_headline(found) == expected
    assert "A process whose own name is empty" not in text(found)


def test_a_clock_that_is_ahead_does_not_say_that_it_goes_on() -> None:
    server = lose_names(ahead=3600)
    histories = cluster_of(server.watch(managed_fields=False))
    assert account(histories, server.now).state is LeaseState.RELEASED


def test_a_watch_without_managed_fields_shows_no_field_manager() -> None:
    server = lose_names()
    found = text(account(cluster_of(server.watch(managed_fields=False)), server.now))
    assert "4 times until 11:07:20Z; the input does not show by which processes" in found


def test_a_holder_ends_it() -> None:
    server = lose_names()
    server.elector("db-1", "shop/db").lead(4)
    assert headline(follow_log(server), server).startswith("db-1_1 holds it since 11:07:22Z")
    assert follow_log(server).leases[LEASE].nameless is None


@pytest.mark.parametrize("follow", [follow_log, follow_watch], ids=["audit log", "watch"])
def test_what_came_before_the_next_holder_is_kept(follow: View) -> None:
    server = lose_names()
    server.elector("db-1", "shop/db").lead(4)
    found = account(follow(server), server.now)
    said = "from then on it was renewed without a holder, 4 times until 11:07:21Z"
    assert f"11:07:18Z: {said}" in text(found)
    assert any(said in one.text for one in list_latest(found))
    assert "A process whose own name is empty" not in text(found)
    server.wait(20)
    server.elector("db-2", "shop/db").lead(4)
    found = account(follow(server), server.now)
    assert said in text(found)
    assert not any(said in one.text for one in list_latest(found))


def test_two_runs_are_told_one_after_the_other() -> None:
    server = lose_names()
    server.delete("shop/db")
    found = text(account(follow_log(server), server.now))
    assert found.count("renewed without a holder") == 1
    renew_namelessly(server, *PODS, times=5)
    found = text(account(follow_log(server), server.now))
    assert "11:07:18Z: from then on it was renewed without a holder, 4 times until 11:07:21Z" in found
    assert "11:07:23Z: from then on it was renewed without a holder, 4 times until 11:07:26Z" in found


def test_who_held_it_in_what_was_not_seen_is_not_known() -> None:
    server = lose_names(times=6)
    del server.log[-3]
    found = account(follow_log(server), server.now)
    assert "without naming one" not in make_headline(found)


def test_a_watch_may_begin_without_a_holder() -> None:
    server = lose_names(times=6)
    del server.events[:-5]
    found = account(follow_watch(server), server.now)
    assert "it has been renewed since 11:07:20Z without naming one" in make_headline(found)


def test_a_lease_that_never_named_a_holder_is_not_one_that_was_never_held() -> None:
    server = FakeServer()
    for _ in range(5):
        spec = {"holderIdentity": "", "leaseDurationSeconds": 15, "renewTime": server.elector("w", "shop/db")._time()}
        server.write("shop/db", spec, "operator", "system:serviceaccount:shop:db", "w-0")
        server.wait(1)
    found = account(follow_log(server), server.now)
    assert found.state is LeaseState.UNKNOWN
    assert "and 1 process has renewed it since 11:06:41Z without naming one" in make_headline(found)


def test_a_write_that_leaves_renew_time_is_no_renewal() -> None:
    server = lose_names(times=3)
    server.write("shop/db", server.leases["shop/db"]["spec"] | {"leaseTransitions": 7}, "kubectl", "alice", "")
    server.wait(1)
    found = account(follow_log(server), server.now)
    assert "3 processes have renewed it since 11:07:18Z without naming one, the last time 2 s ago" in make_headline(
        found
    )
    assert found.last_renewal == server.now - 2 * SECOND
