"""Leases that looked expired: by clocks that are wrong, or because something changes renewTime of all writers."""

import pytest

from tests.claims.accounts import account, shop, text
from tests.history.fake_server import FakeServer, together
from tests.history.observing import advise, cluster_of, follow_log, follow_watch
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.analysis.history.holders.clock import find_set_back
from webhook.kubernetes.objects import LeaseSpec
from webhook.kubernetes.times import format_micro_time

MUTATORS = "kubectl get mutatingwebhookconfigurations,mutatingadmissionpolicies"


def stolen(*ahead: float) -> FakeServer:
    """A server on which replicas whose renewTimes are off by so many seconds take db from each other."""
    server, (_, *others) = shop()
    for number, seconds in enumerate((*ahead, 0.0)):
        elector = server.elector(f"db-{number}", "shop/db", ahead=seconds)
        elector.take()
        together(10, elector, *others)
    return server


def test_a_single_clock_that_is_behind_is_corrected() -> None:
    server = stolen(-300)
    answer = account(follow_log(server), server.now)
    assert "The old holder's clock is 5 min 0 s behind the API server's" in text(answer)
    assert "Correct the clock of the node of db-0_1" in advise(answer)


def test_clocks_that_are_off_by_as_much_are_no_clocks() -> None:
    server = stolen(-300, -300)
    answer = account(follow_watch(server), server.now)
    assert "The renewTimes of several holders were equally off, 5 min 0 s behind the API server's clock" in text(answer)
    assert advise(answer).endswith(MUTATORS)


def test_a_time_that_was_stored_otherwise_explains_a_theft_from_then_on() -> None:
    server = stolen(-300)
    for event in server.log:
        stored = event["responseObject"]
        if event["objectRef"]["name"] == "db" and stored["spec"]["holderIdentity"] == "db-0_1":
            spec = {**stored["spec"], "renewTime": format_micro_time(server.now)}
            event["requestObject"] = {**stored, "spec": spec}
    answer = account(follow_log(server), server.now)
    assert "Its renewTime was not stored as requested, so the lease looked expired to the new holder" in text(answer)
    assert advise(answer).endswith(MUTATORS)


def test_a_time_that_was_stored_otherwise_long_before_explains_no_theft() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    event = server.log[-3]
    stored = event["responseObject"]
    event["requestObject"] = {**stored, "spec": {**stored["spec"], "renewTime": "2026-11-18T00:00:00.000000Z"}}
    together(30, db, *others)
    server.elector("db-1", "shop/db").take()
    assert "looked expired" not in text(account(follow_log(server), server.now))


def set_back(seconds: float, *later: float, waits: float = 1) -> FakeServer:
    """A server on which the clock of db's holder was set back, and perhaps again, before another one took db."""
    server, (db, *others) = shop()
    together(20, db, *others)
    for by in (seconds, *later):
        db.ahead = -by
        together(2, db, *others)
    server.wait(waits)
    server.elector("db-1", "shop/db").lead(20)
    return server


def test_a_clock_that_was_set_back_in_the_last_renewal_explains_a_theft() -> None:
    answer = account(follow_log(set_back(45)), set_back(45).now)
    said = text(answer)
    assert (
        "A renewal in the old holder's name at 11:07:02Z had set renewTime back by 43 s, to 11:06:16Z, "
        "so the lease looked expired to the new holder, if that compares renewTime with its own clock"
    ) in said
    assert "11:07:02Z: a renewal as db-0_1 set renewTime back by 43 s, to 11:06:16Z: by a clock that was" in said
    assert advise(answer).startswith("Check the clock of the node of db-0_1; db-1_1 should wait")


@pytest.mark.parametrize(
    ("server", "why"),
    [
        (set_back(0), "the clock goes on"),
        (set_back(10), "the lease is live by renewTime, too"),
        (set_back(45, 0), "the clock was set right again"),
        (set_back(45, 10), "it is behind by less again"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_clock_by_which_the_lease_was_live_explains_no_theft(server: FakeServer, why: str) -> None:
    assert why
    assert "looked expired" not in text(account(follow_log(server), server.now))


def test_renew_time_that_goes_back_is_said_of_a_watch_without_stamps() -> None:
    server = set_back(45)
    answer = account(cluster_of(server.watch(managed_fields=False)), server.now)
    assert "11:06:59Z: a renewal as db-0_1 set renewTime back by 43 s, to 11:06:16Z" in text(answer)
    assert "by the clocks of both" not in text(answer)
    assert advise(answer) == (
        "It is held and renewed. Check the clock of the node of db-0_1, in whose name renewTime went back: "
        "kubectl -n shop get pods -o wide"
    )
    said = [line.text for line in list_latest(answer)]
    assert said[0].startswith("a renewal as db-0_1 set renewTime back by 43 s")


def test_a_renewal_without_a_renew_time_sets_no_clock_back() -> None:
    renewed = LeaseSpec(renew_time="2026-11-18T11:07:00.000000Z")
    assert find_set_back(renewed, LeaseSpec(), 0, None) is None


def test_the_clock_of_a_node_is_that_of_its_heartbeat() -> None:
    server = FakeServer()
    node = server.elector("n1", "kube-node-lease/n1", user="system:node:n1", retry=10, duration=40, pod="")
    node.lead(60)
    node.ahead = -45
    node.lead(20)
    histories = cluster_of(server.watch(managed_fields=False))
    answer = make_account(histories, histories.leases["kube-node-lease", "n1"], server.now - 45_000_000)
    assert advise(answer).endswith("in whose name renewTime went back: kubectl describe node n1")


# ---- heartbeats, field managers, and the latest handover ------------------------------------------------------------


def beat(seconds: float) -> FakeServer:
    """A server on which a heartbeat of 40 s, each 10 s, pauses for so long."""
    server, (_, *others) = shop()
    node = server.elector("worker-7", "kube-node-lease/worker-7", duration=40, retry=10.0)
    for pause in (10, 10, 10, 10, 10, seconds, 10, 10):
        together(pause, *others)
        spec = {"holderIdentity": "worker-7", "leaseDurationSeconds": 40, "renewTime": format_micro_time(server.now)}
        server.write(node.lease, spec, "kubelet", "system:node:worker-7", "")
    return server


def of_node(server: FakeServer) -> str:
    histories = follow_log(server)
    answer = make_account(histories, histories.leases["kube-node-lease", "worker-7"], server.now)
    return "\n".join(f"{found.severity}: {found.message}" for found in answer.findings if found.check == "renewal-late")


def test_a_heartbeat_that_is_late_within_its_duration_is_well() -> None:
    assert of_node(beat(32)).startswith("info: worker-7 did not renew for 32 s")


def test_a_heartbeat_that_was_silent_for_its_duration_is_a_warning_about_no_leader() -> None:
    output = of_node(beat(60))
    assert output.startswith("warning: worker-7 did not renew for 1 min 0 s")
    assert output.endswith("The lease is a heartbeat, which lasts 40 s: no one else takes it.")


def test_an_identity_is_no_name_of_a_program() -> None:
    server, (_, *others) = shop()
    for number in range(2):
        elector = server.elector(f"db-{number}", "shop/db", manager=f"db-{number}_1")
        together(20, elector, *others)
        elector.release()
    assert "field managers, which clients choose" not in text(account(follow_watch(server), server.now))


# ---- a token that is used elsewhere ---------------------------------------------------------------------------------


def written_in(address: str = "", uid: str = "uid-of-db-1") -> str:
    """The text of `why` after db-1, which asks for the lease, wrote db-2 into it."""
    server, (db, *others) = shop()
    server.uids = {"db-1": uid, "db-2": "uid-of-db-2"}
    follower = server.elector("db-1", "shop/db")
    together(10, db, *others)
    follower.ask()
    server.write("shop/db", {**server.leases["shop/db"]["spec"], "holderIdentity": "db-2_1"}, "curl", db.user, "db-1")
    if address:
        server.log[-1]["sourceIPs"] = ["192.0.2.1", address]
    server.elector("db-2", "shop/db").lead(10)
    return text(account(follow_log(server), server.now))


def test_a_token_that_is_used_from_two_addresses_may_be_another_ones() -> None:
    doubt = "unless they pass through proxies or NAT, or it has several interfaces, another one has its token"
    assert doubt in written_in("10.9.9.9")


def test_a_pod_may_have_an_address_of_each_family() -> None:
    assert "has its token" not in written_in("fd00::12")


def test_an_address_that_a_client_says_it_has_is_none() -> None:
    output = written_in("10.9.9.9")
    assert "10.9.9.9" in output
    assert "192.0.2.1" not in output


def test_a_single_address_does_not_suggest_a_stolen_token() -> None:
    assert "has its token" not in written_in()


def test_a_pod_without_a_known_uid_may_be_several() -> None:
    assert "has its token" not in written_in("10.9.9.9", uid="")


def test_a_strategy_that_is_removed_is_no_change_of_a_time() -> None:
    server, (db, *others) = shop()
    together(10, db, *others)
    spec = server.leases["shop/db"]["spec"]
    server.write("shop/db", {**spec, "strategy": "OldestEmulationVersion"}, "kubectl", "alice", "")
    server.wait(1)
    server.write("shop/db", spec, "kubectl", "alice", "")
    together(4, db, *others)
    output = text(account(follow_log(server), server.now))
    assert 'strategy "OldestEmulationVersion" -> absent by alice' in output
    assert "acquireTime" not in output
