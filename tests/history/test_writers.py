"""The writer decides: foreign releases and steals, deletions that were none, renewals that only a log shows."""

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.claims.accounts import text
from tests.factories import Document
from tests.history.fake_server import SECOND, Elector, FakeServer, together
from tests.history.observing import advise, observe_all
from tests.inputs.reading import read
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.handover_clauses import describe_ending
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.claims.presentation.happened import list_events
from webhook.analysis.history.events import EventKind
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.beginning import Beginning
from webhook.analysis.history.holders.processes import MAX_WRITERS, HolderProcesses
from webhook.analysis.history.holders.tenure import API_SERVER, Handover, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.observe import observe
from webhook.analysis.history.status import LeaseState
from webhook.analysis.history.visibility.bounds import MAX_LISTED, Bounds
from webhook.analysis.inputs.items import ElectionEvent, Item, Observation, Place, Writer
from webhook.findings import Severity
from webhook.kubernetes.times import format_micro_time

LEASE = ("shop", "db")


def account(*inputs: Iterable[Item]) -> Account:
    histories = ClusterHistory()
    observe_all(histories, *inputs)
    assert histories.bounds.until is not None
    return make_account(histories, histories.leases[LEASE], histories.bounds.until)


def watch(server: FakeServer) -> Iterable[Item]:
    return read("watch", [server.watch()])


def log(server: FakeServer, *, metadata_only: bool = False) -> Iterable[Item]:
    return read("log", [server.audit_log(metadata_only=metadata_only)])


def released_by_alice() -> FakeServer:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    server.wait(1)
    server.write("shop/db", {**server.leases["shop/db"]["spec"], "holderIdentity": ""}, "kubectl-patch", "alice", "")
    return server


def test_a_release_by_another_user_is_no_handover() -> None:
    server = released_by_alice()
    server.wait(1)
    server.elector("b", "shop/db").lead(10)
    answer = account(log(server))
    (release,) = (one for one in answer.findings if one.check == "foreign-release")
    assert "alice removed a_1 as the holder" in release.message
    assert "b_1 took the lease 1 s later: two may have led at once" in release.message
    assert answer.history.leaderless == 2 * SECOND, (
        "at most: the one that was removed may have stopped at its last renewal"
    )


def test_a_removal_under_another_field_manager_accuses_nobody() -> None:
    answer = account(watch(released_by_alice()))
    checks = {one.check: one for one in answer.findings}
    assert "foreign-release" not in checks
    removed = checks["holder-removed"]
    assert (
        "a_1 was removed as the holder while the lease was live: if the holder did not do that itself"
        in removed.message
    )
    assert "The field manager was kubectl-patch, and not that of its renewals" in removed.message
    assert "--input AUDIT-LOG" in removed.fix


def test_a_removal_under_another_field_manager_is_not_noted_once_the_lease_has_expired() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    server.wait(16)
    server.write("shop/db", {**server.leases["shop/db"]["spec"], "holderIdentity": ""}, "kubectl-patch", "alice", "")
    checks = {one.check for one in account(watch(server)).findings}
    assert not checks & {"foreign-release", "holder-removed"}


def test_a_holder_that_is_removed_and_takes_it_back_led_throughout() -> None:
    server = released_by_alice()
    server.wait(1)
    server.elector("a", "shop/db").lead(10)
    (release,) = (one for one in account(log(server)).findings if one.check == "foreign-release")
    assert "two may have led" not in release.message


def test_a_steal_names_its_writer() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    server.wait(1)
    server.write("shop/db", {**server.leases["shop/db"]["spec"], "holderIdentity": "b_1"}, "kubectl-edit", "alice", "")
    (steal,) = (one for one in account(log(server)).findings if one.check == "lease-stolen")
    assert "alice wrote b_1 into the lease while a_1 still held it" in steal.message


def test_an_update_after_a_deletion_shows_that_nothing_was_deleted() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(10)
    server.wait(1)
    server.log_request("shop/db", "delete", "admin", "", {"kind": "Status", "apiVersion": "v1"})
    server.wait(1)
    a.renew()
    for metadata_only in (False, True):
        answer = account(log(server, metadata_only=metadata_only))
        assert not answer.history.is_deleted
        assert Handover.DELETED not in answer.history.handovers


def test_renewals_after_a_watch_has_ended_are_known_from_the_log() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(20)
    seen = list(watch(server))
    a.lead(60)
    answer = account(seen, log(server, metadata_only=True))
    assert answer.state is LeaseState.LIVE
    assert answer.last_renewal == server.now


def test_a_lease_of_which_nothing_is_known_but_its_writers_follows_the_one_that_goes_on() -> None:
    server = FakeServer()
    a, b = server.elector("a", "shop/db"), server.elector("b", "shop/db")
    a.lead(20)
    server.elector("alice", "shop/db", user="alice").renew()
    a.lead(20)
    b.take()
    a.renew()
    b.lead(20)
    history = account(log(server, metadata_only=True)).history
    assert [one.holder for one in history.tenures] == ["a", "b"]


def test_a_holder_that_stops_is_late_however_long_its_lease_lasts() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db", duration=3600)
    a.lead(20)
    for _ in server.elector("other", "shop/mail").ticks(60):
        server.elector("other", "shop/mail").take()
    (late,) = (one for one in account(watch(server)).findings if one.check == "renewal-late")
    assert "for 1 min 0 s, although the lease was renewed every 2 s before; it does not expire before" in late.message


@pytest.mark.parametrize(("manager", "is_holder"), [("operator", True), ("kubectl", None), ("", None)])
def test_a_writer_is_known_by_its_own_field_manager_if_the_input_shows_no_user(
    manager: str, is_holder: bool | None
) -> None:
    tenure = Tenure(HolderProcesses("a_1", renewals=1), 0, Handover.SEEN, 0)
    assert tenure.is_by(None, manager, "operator") is is_holder
    assert tenure.is_by(Writer("jane", ""), manager, "operator") is None


def test_who_put_a_holder_there_is_not_compared_with_who_removes_it() -> None:
    assert Tenure(HolderProcesses("a_1"), 0, Handover.CREATED, 0).is_by(None, "kubectl", "operator") is None
    seen = Tenure(HolderProcesses("a_1"), 0, Handover.SEEN, 0, beginning=Beginning(is_since_own=True))
    assert seen.is_by(None, "kubectl", "operator") is None
    assert seen.is_by(None, "operator", "operator") is True


def test_the_holder_of_a_released_lease_is_removed() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(10)
    server.wait(1)
    now = a._time()
    a.renew(leaseDurationSeconds=1, acquireTime=now, renewTime=now)
    server.wait(1)
    server.write("shop/db", {**server.leases["shop/db"]["spec"], "holderIdentity": ""}, "kubectl-patch", "alice", "")
    answer = account(log(server))
    assert [(one.holder, one.removal.writer) for one in answer.history.tenures] == [("a_1", None)]
    assert answer.state is LeaseState.RELEASED


def test_of_two_rivals_in_a_log_without_objects_the_one_that_goes_on_leads() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    server.wait(20)
    server.elector("b", "shop/db").take()
    server.wait(2)
    since = server.now
    server.elector("c", "shop/db").lead(60)
    tenures = account(log(server, metadata_only=True)).history.tenures
    assert [(one.holder, one.since) for one in tenures][1:] == [("c", since)]


def test_pods_that_wrote_in_turns_in_a_log_without_objects_may_have_one_name() -> None:
    server = FakeServer()
    a, b, c = (server.elector(name, "shop/db") for name in "abc")
    together(10, a, b, c)
    together(30, b, c)
    together(30, c)
    server.delete("shop/db")
    b.lead(10)
    history = account(log(server, metadata_only=True)).history
    assert [one.holder for one in history.tenures] == ["a", "c", "b"]
    assert (history.changes, history.handovers) == (0, {Handover.CREATED: 1, Handover.DELETED: 1})
    server.elector("d", "shop/db").lead(60)
    assert account(log(server, metadata_only=True)).history.changes == 1


@pytest.mark.parametrize("verb", ["patch", "update"])
def test_who_changed_a_lease_just_after_its_renewal_has_not_renewed_it(verb: str) -> None:
    server = FakeServer()
    held = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": format_micro_time(server.now)}
    server.write("shop/db", held, "operator", "system:serviceaccount:shop:db", "a")
    renewal = server.log[-1]
    server.wait(0.3)
    server.write("shop/db", {**held, "preferredHolder": "b"}, "editor", "mallory", "")
    server.log[:] = [server.log[-1] | {"verb": verb}]
    assert account(log(server)).renewer is None
    server.log[:] = [renewal | {"verb": "update"}]
    renewer = account(log(server)).renewer
    assert renewer is not None
    assert renewer.pod == "a"


def test_whom_an_api_server_chose_in_a_log_without_objects_follows_no_other_holder() -> None:
    server = FakeServer()
    chosen = {"holderIdentity": "a", "strategy": "OldestEmulationVersion", "leaseTransitions": 0}
    server.write("shop/db", chosen, "kube-apiserver", API_SERVER, "")
    server.wait(1)
    server.elector("a", "shop/db").lead(20)
    history = account(log(server, metadata_only=True)).history
    assert [one.holder for one in history.tenures] == [API_SERVER, "a"]
    assert (history.changes, history.handovers) == (0, {Handover.CREATED: 1})
    server.wait(20)
    server.elector("b", "shop/db").lead(60)
    handovers = account(log(server, metadata_only=True)).history.handovers
    assert handovers == {Handover.CREATED: 1, Handover.UNKNOWN: 1}


def test_writes_before_a_deletion_do_not_make_a_chosen_holder_follow_at_once() -> None:
    server = FakeServer()
    chooser, chosen = server.elector("api", "shop/db", user=API_SERVER, pod=""), server.elector("a", "shop/db")
    chosen.identity = chooser.identity
    for _ in range(2):
        chooser.take()
        for _ in range(2):
            server.wait(2)
            chosen.renew()
        server.wait(1)
        server.delete("shop/db")
        server.wait(2)
    chooser.take()
    server.wait(2)
    chosen.renew()
    history = account(log(server, metadata_only=True)).history
    assert history.current_tenure is not None
    assert history.current_tenure.holder == API_SERVER


def test_no_more_writers_beside_a_holder_are_remembered_than_a_lease_can_have() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(10)
    for number in range(MAX_LISTED + 1):
        server.wait(0.1)
        server.elector(f"other-{number}", "shop/db").renew()
    server.wait(0.1)
    a.renew()
    assert len(account(log(server, metadata_only=True)).history.tenures[0].processes.beside) == MAX_WRITERS


def test_a_write_of_another_user_that_only_a_log_shows_is_no_renewal() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    renewed = account(watch(server), log(server)).history.tenures[-1].last_renewal
    server.wait(60)
    server.log_request("shop/db", "update", "alice", "", {})
    history = account(watch(server), log(server, metadata_only=True)).history
    assert (history.tenures[-1].last_renewal, history.at) == (renewed, server.now)


@pytest.mark.parametrize("is_retaken", [True, False])
def test_a_holder_without_a_time_may_go_on_after_a_write_that_a_log_does_not_show(is_retaken: bool) -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.take(acquireTime=None)
    server.wait(1)
    server.write("shop/db", server.leases["shop/db"]["spec"], "kubectl-label", "alice", "")
    server.log[-1] |= {"verb": "patch", "responseObject": {}}
    server.wait(1)
    a.renew(**({"acquireTime": format_micro_time(server.now)} if is_retaken else {}))
    history = account(log(server)).history
    assert len(history.tenures) == 2
    assert history.handovers == {Handover.CREATED: 1, **({Handover.UNKNOWN: 1} if is_retaken else {})}


def test_a_deletion_that_is_shown_twice_is_one() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    server.delete("shop/db")
    server.events.append(server.events[-1])
    history = LeaseHistory(*LEASE)
    kinds = [
        event.kind for one in watch(server) if isinstance(one, Observation) for event in observe(history, one, Bounds())
    ]
    assert kinds.count(EventKind.DELETED) == 1


def test_a_renewal_by_hand_makes_no_second_process() -> None:
    server = FakeServer()
    a, alice = server.elector("a", "shop/db"), server.elector("a", "shop/db", user="alice")
    alice.pod = ""
    a.lead(20)
    alice.renew()
    a.lead(20)
    answer = account(log(server))
    assert {one.check for one in answer.findings} & {"identity-shared", "lease-shared"} == set()
    for _ in range(4):
        server.wait(1)
        alice.renew()
        server.wait(1)
        a.renew()
    assert "identity-shared" in {one.check for one in account(log(server)).findings}


def test_a_process_that_follows_under_the_same_name_may_release_at_once() -> None:
    server = FakeServer()
    server.elector("worker", "shop/db").lead(20)
    after = server.elector("worker", "shop/db")
    after.pod = "worker-9"
    server.wait(3)
    after.renew()
    after.release()
    assert "foreign-release" not in {one.check for one in account(log(server)).findings}


def test_a_pod_that_renewed_under_the_name_of_another_one_need_not_be_who_it_releases() -> None:
    server = FakeServer()
    worker, twin = (server.elector(pod, "shop/db") for pod in ("worker", "twin"))
    twin.identity = worker.identity
    worker.lead(20)
    server.wait(3)
    twin.renew()
    twin.release()
    tenure = account(log(server)).history.tenures[-1]
    assert tenure.removal.is_own is None
    assert describe_ending(tenure) == f"{worker.identity} released it, or was removed"


@pytest.mark.parametrize("seconds", [1, 20], ids=["that took the lease", "that renewed the lease ten times"])
def test_a_pod_that_renewed_once_after_one_of_a_common_name_need_not_be_who_it_releases(seconds: int) -> None:
    server = FakeServer()
    worker, twin = (server.elector(pod, "shop/db") for pod in ("worker", "twin"))
    worker.identity = twin.identity = "cluster-leader"
    worker.lead(seconds)
    server.wait(3)
    twin.renew()
    server.wait(1)
    twin.release()
    assert describe_ending(account(log(server)).history.tenures[-1]) == "cluster-leader released it, or was removed"


def test_no_more_strangers_are_remembered_than_can_hold_a_lease() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(10)
    for number in range(20):
        stranger = server.elector("a", "shop/db", user=f"user-{number}")
        stranger.pod = ""
        server.wait(2)
        stranger.renew()
    tenure = account(log(server)).tenure
    assert tenure is not None
    assert len(tenure.processes.others) == MAX_WRITERS


@pytest.mark.parametrize("source", [log, watch])
def test_a_free_lease_that_is_deleted_was_held_by_no_one(source: Callable[[FakeServer], Iterable[Item]]) -> None:
    server = FakeServer()
    a, b = server.elector("a", "shop/db"), server.elector("b", "shop/db")
    a.lead(20)
    a.release()
    server.wait(5)
    server.delete("shop/db", "alice")
    server.wait(1)
    gone = account(source(server))
    assert gone.history.is_deleted
    assert [one for one in gone.findings if one.severity is not Severity.INFO] == []
    server.wait(3)
    b.lead(10)
    answer = account(source(server))
    assert [one for one in answer.findings if one.severity is not Severity.INFO] == []
    assert [one.began for one in answer.history.tenures][1:] == [Handover.CREATED]


def test_deleting_what_had_expired_makes_no_two_leaders() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    server.wait(600)
    server.delete("shop/db", "alice")
    server.wait(1)
    server.elector("b", "shop/db").lead(10)
    (finding,) = (one for one in account(log(server)).findings if one.check == "lease-deleted")
    assert "alice deleted the lease" in finding.message
    assert "which had not renewed it for 10 min" in finding.message
    assert "two may have led" not in finding.message


def test_what_a_log_without_objects_may_have_shown_released_was_not_held_when_it_was_deleted() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(20)
    server.wait(5)
    server.delete("shop/db", "alice")
    assert "lease-deleted" not in {one.check for one in account(log(server, metadata_only=True)).findings}


def on_a_node(*, is_node_silent: bool, returns: bool = False) -> Account:
    server = FakeServer(nodes={"a": "worker-1", "kubelet": ""})
    a, other = server.elector("a", "shop/db"), server.elector("c", "shop/other")
    node = server.elector("worker-1", "kube-node-lease/worker-1", user="system:node:worker-1")
    for second in range(160):
        server.wait(1)
        if second % 2 == 0:
            if second < 80:
                a.lead(0) if second == 0 else a.renew()
            other.lead(0) if second == 0 else other.renew()
        if second % 10 == 5 and not (is_node_silent and 80 < second < 130):
            node.lead(0) if second == 5 else node.renew()
        if second == 98:
            server.elector("b", "shop/db").take()
        if returns and second > 140:
            a.ask()
    return account(log(server))


def test_a_node_that_was_silent_too_was_cut_off() -> None:
    (lost,) = (one for one in on_a_node(is_node_silent=True).findings if one.check == "leader-lost")
    assert "for most of it the lease of its node, worker-1, was not renewed" in lost.message
    assert isinstance(lost, Claim)
    assert lost.advice == "See the node of a_1, which lost the lease, first: if it is only cut off, the pod may run on:"
    assert lost.fix == "kubectl describe node worker-1"


def test_a_node_that_was_silent_is_looked_at_also_once_the_pod_asks_again() -> None:
    found = on_a_node(is_node_silent=True, returns=True).findings
    (lost,) = (one for one in found if isinstance(one, Claim) and one.check == "leader-lost")
    lead = "The node of a_1, which lost the lease, was silent, too, and its pod has asked for the lease again"
    assert lost.advice == f"{lead}; see that node first:"
    assert lost.fix == "kubectl describe node worker-1"


@pytest.mark.parametrize("seconds", [20, 60], ids=["just expired", "expired"])
def test_an_expired_lease_of_a_pod_whose_node_is_silent_leads_to_that_node(seconds: float) -> None:
    server = FakeServer(nodes={"a": "worker-1", "kubelet": ""})
    a, other = server.elector("a", "shop/db"), server.elector("c", "shop/other")
    node = server.elector("worker-1", "kube-node-lease/worker-1", user="system:node:worker-1")
    together(80, a, other, node)
    together(seconds, other)
    assert "kubectl describe node worker-1" in advise(account(log(server)))


def test_a_node_that_is_not_heard_again_was_cut_off() -> None:
    server = FakeServer(nodes={"a": "worker-1", "kubelet": ""})
    a, other = server.elector("a", "shop/db"), server.elector("c", "shop/other")
    node = server.elector("worker-1", "kube-node-lease/worker-1", user="system:node:worker-1")
    together(80, a, other, node)
    together(60, other)
    server.elector("b", "shop/db").take()
    together(4, other)
    (lost,) = (one for one in account(log(server)).findings if one.check == "leader-lost")
    assert "the lease of its node, worker-1, was not renewed" in lost.message


def test_a_node_that_was_heard_was_not() -> None:
    (lost,) = (one for one in on_a_node(is_node_silent=False).findings if one.check == "leader-lost")
    assert "For most of that time the log has no answered request for the lease from its pod" in lost.message
    assert "2 other leases were renewed on time, among them that of its node" in lost.message


def test_a_node_whose_lease_was_due_once_is_told_beside_the_leases_that_were_on_time() -> None:
    server = FakeServer(nodes={"a": "worker-1", "kubelet": ""})
    a, other = server.elector("a", "shop/db"), server.elector("c", "shop/other")
    node = server.elector("worker-1", "kube-node-lease/worker-1", user="system:node:worker-1", duration=40)
    node.take()
    for _ in range(8):
        together(10, a, other)
        node.renew()
    together(8, other)
    node.renew()
    together(10, other)
    node.renew()
    server.elector("b", "shop/db").take()
    together(4, other)
    (lost,) = (one for one in account(log(server)).findings if one.check == "leader-lost")
    assert "the other lease was renewed on time, and so was that of its node" in lost.message


def test_users_are_not_called_service_accounts() -> None:
    server = FakeServer()
    for name in ("machine-1", "machine-2"):
        elector = server.elector(name, "shop/db", user=name)
        elector.pod = ""
        elector.lead(20)
        server.wait(20)
    (shared,) = (one for one in account(log(server)).findings if one.check == "lease-shared")
    assert "at least 2 users have held this lease: machine-1, machine-2" in shared.message


@given(
    texts=st.lists(
        st.tuples(
            st.integers(-400, 400),
            st.sampled_from(["a_1", "b_1", "evil", "x" * 250]),
            st.sampled_from(["became leader", "stopped leading"]),
            st.sampled_from(["shop", "other"]),
        ),
        max_size=40,
    )
)
def test_texts_of_events_change_nothing_else_in_an_account(texts: list[tuple[int, str, str, str]]) -> None:
    server = FakeServer()
    a, b = server.elector("a", "shop/db"), server.elector("b", "shop/db")
    a.lead(20)
    server.wait(20)
    b.lead(20)
    events = [
        ElectionEvent(
            Place("events"), "Event", namespace, lease="db", at=server.now + seconds * 1_000_000, text=f"{who} {what}"
        )
        for seconds, who, what, namespace in texts
    ]
    known = make_account_json(account(log(server)))
    document = make_account_json(account([*events[::2], *log(server)], events[1::2]))
    listed = document.pop("events")
    assert {**document, "events": []} == known
    assert all(one["time"] <= document["now"] for one in listed)


def test_only_the_latest_events_of_a_lease_are_kept() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    events = [
        ElectionEvent(Place("events"), "Event", "shop", lease="db", at=server.now - at, text=f"a_{at} became leader")
        for at in range(MAX_LISTED + 4)
    ]
    assert len(make_account_json(account(log(server), events))["events"]) == MAX_LISTED


@pytest.mark.parametrize("is_followed_first", [True, False], ids=["a watch, then a list", "a list, then a watch"])
def test_a_list_and_a_watch_of_one_lease_are_one_history(is_followed_first: bool) -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    inputs = [*watch(server)], [*read("dump", [server.dump()])]
    histories = ClusterHistory()
    for items in inputs if is_followed_first else reversed(inputs):
        for item in items:
            histories.add(item)
    holder = histories.leases[LEASE].current_tenure
    assert holder is not None
    assert holder.holder == "a_1"


EVIL = "system:serviceaccount:evil:evil"


def test_a_release_by_a_pod_of_another_namespace_with_the_same_name_is_no_handover() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    server.wait(1)
    server.elector("a", "shop/db", user=EVIL).release()
    (release,) = (one for one in account(log(server)).findings if one.check == "foreign-release")
    assert "evil/evil from pod a removed a_1 as the holder" in release.message


STRANGERS = [
    pytest.param("db-0", "evil", id="a pod of its name in another namespace"),
    pytest.param("db", "shop", id="a pod with a name that begins its own"),
]


def begin_with_stranger(pod: str, namespace: str, *, writes: int) -> tuple[FakeServer, Elector]:
    """Begin a log with a stranger that renews in the name of an elector, which then goes on alone."""
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.lead(20)
    server.log.clear()
    stranger = server.elector("db-0", "shop/db", pod=pod, user=f"system:serviceaccount:{namespace}:evil")
    for _ in range(writes):
        server.wait(1)
        stranger.renew()
    server.wait(1)
    return server, db


@pytest.mark.parametrize(("pod", "namespace"), STRANGERS)
@pytest.mark.parametrize("renewals", [0, 2])
def test_a_holder_may_release_what_a_stranger_wrote_when_the_log_begins(
    pod: str, namespace: str, renewals: int
) -> None:
    server, db = begin_with_stranger(pod, namespace, writes=1)
    db.lead(2 * renewals)
    db.release()
    answer = account(log(server))
    assert not any(one.check == "foreign-release" for one in answer.findings)
    assert "db-0_1 released it" in text(answer)


@pytest.mark.parametrize(("pod", "namespace"), STRANGERS)
@pytest.mark.parametrize("writes", [1, 5])
def test_who_a_text_names_follows_a_stranger_that_wrote_it_when_the_log_begins(
    pod: str, namespace: str, writes: int
) -> None:
    server, db = begin_with_stranger(pod, namespace, writes=writes)
    db.lead(20)
    output = text(account(log(server)))
    assert "db-0_1 holds it, renewed 0 s ago" in output
    assert "shop/db from pod db-0 renewed it as db-0_1" not in output
    shared = "renewed it as db-0_1, and since then shop/db from pod db-0: its process has had other credentials"
    assert (f"{namespace}/evil from pod {pod} {shared}" in output) == (writes > 1)
    assert "in turn" not in output


def test_a_stranger_that_renews_again_renews_in_turns_with_who_the_text_names() -> None:
    server, db = begin_with_stranger("db-0", "evil", writes=5)
    stranger = server.elector("db-0", "shop/db", user=EVIL)
    for _ in range(3):
        db.lead(2)
        server.wait(1)
        stranger.renew()
    db.lead(2)
    assert "used by several processes that renew in turn" in text(account(log(server)))


@pytest.mark.parametrize(("pod", "namespace"), STRANGERS)
@pytest.mark.parametrize("silence", [1, 20], ids=["a live lease", "an expired lease"])
@pytest.mark.parametrize("renewals", [0, 2])
def test_a_stranger_that_writes_a_pod_in_and_renews_for_it_is_not_that_pod(
    pod: str, namespace: str, silence: int, renewals: int
) -> None:
    server = FakeServer()
    server.elector("db-1", "shop/db").lead(20)
    server.wait(silence)
    stranger = server.elector("db-0", "shop/db", pod=pod, user=f"system:serviceaccount:{namespace}:evil")
    stranger.lead(2 * renewals)
    server.elector("db-0", "shop/db").lead(40)
    answer = account(log(server))
    output = text(answer)
    assert f"{namespace}/evil from pod {pod} wrote db-0_1 into it" in output
    assert "shop/db from pod db-0 renewed it as db-0_1" not in output
    assert not any(one.check == "renewal-late" for one in answer.findings)


@pytest.mark.parametrize("is_seen_taken", [True, False])
def test_an_elector_whose_account_is_of_another_namespace_is_followed(is_seen_taken: bool) -> None:
    server = FakeServer()
    elector = server.elector("db-0", "shop/db", user="system:serviceaccount:infra:db")
    elector.lead(20)
    if not is_seen_taken:
        server.log.clear()
    elector.lead(20)
    server.wait(1)
    server.elector("db-0", "shop/db", pod="toolbox", user="system:serviceaccount:shop:toolbox").renew()
    elector.lead(20)
    elector.release()
    answer = account(log(server))
    tenure = answer.history.tenures[-1]
    assert tenure.processes.own == Writer("system:serviceaccount:infra:db", "db-0")
    assert tenure.processes.is_process_known == is_seen_taken
    assert "db-0_1 released it" in text(answer)
    assert not answer.findings or {one.check for one in answer.findings} <= {"timing-tight"}


def test_requests_of_a_pod_of_another_namespace_with_the_same_name_are_not_the_holder_s() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    server.wait(16)
    server.elector("b", "shop/db").lead(10)
    server.elector("a", "shop/db", user=EVIL).ask()
    before, after = account(log(server)).history.tenures
    assert (before.processes.requests_after_loss, len(after.processes.requests)) == ([], 5)


def test_in_a_log_without_objects_it_is_another_writer() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    last = server.now
    server.wait(1)
    server.elector("a", "shop/db", user=EVIL).renew()
    (tenure,) = account(log(server, metadata_only=True)).history.tenures
    assert tenure.last_renewal == last


def released_and_taken() -> FakeServer:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    server.wait(1)
    server.elector("a", "shop/db").release()
    server.wait(1)
    server.elector("b", "shop/db").lead(10)
    return server


def print_account(answer: Account) -> str:
    return "\n".join(line.text for line in list_events(answer))


def test_a_release_that_only_a_field_manager_shows_is_marked_so() -> None:
    output = print_account(account(watch(released_and_taken())))
    assert "a_1 released it (as far as field managers show)\n" in output
    assert "b_1 took it after a_1 released it (as far as field managers show)" in output
    assert "field managers" not in print_account(account(log(released_and_taken())))


@pytest.mark.parametrize(
    ("source", "user", "strategy", "expected"),
    [
        (log, API_SERVER, {"strategy": "OldestEmulationVersion"}, "the API server chose b_1 in place of a_1"),
        (watch, "", {"strategy": "OldestEmulationVersion"}, "the API server (as far as field managers show) chose b_1"),
        (log, "mallory", {"strategy": "OldestEmulationVersion"}, "mallory wrote b_1 into it in place of a_1"),
        (watch, "", {}, "b_1 was written into it in place of a_1"),
    ],
    ids=["its user", "its manager in a coordinated election", "its manager and another user", "its manager alone"],
)
def test_only_the_api_server_chooses_a_holder(
    source: Callable[[FakeServer], Iterable[Item]], user: str, strategy: Document, expected: str
) -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    chosen = {**server.leases["shop/db"]["spec"], "holderIdentity": "b_1", **strategy}
    server.write("shop/db", chosen, "kube-apiserver", user, "")
    assert expected in print_account(account(source(server)))


@pytest.mark.parametrize(
    ("holder", "pod", "user", "may_be"),
    [
        pytest.param("a_1", "a", "mallory", False, id="a stranger renews the lease of a pod that the text names"),
        pytest.param("a_1", "a", "shop", True, id="another process of the account does"),
        pytest.param("leader", "a", "mallory", True, id="the text names no pod"),
    ],
)
def test_who_renews_may_be_the_holder_unless_its_text_names_another_pod(
    holder: str, pod: str, user: str, may_be: bool
) -> None:
    own = Writer("shop", pod, uid="1")
    processes = HolderProcesses(holder, own=own, taken_by=own, is_process_known=True, renewals=1)
    assert processes.may_renew(Writer(user, "b", uid="2")) is may_be


def test_who_acts_as_the_account_of_a_pod_that_a_text_names_is_not_the_holder() -> None:
    own = Writer("shop", "a", uid="1")
    processes = HolderProcesses("a_1", own=own, taken_by=own, is_process_known=True, renewals=1)
    assert not processes.may_renew(Writer("shop", "a", impersonator="alice"))
    assert not processes.may_renew(None)


@pytest.mark.parametrize(("verb", "holders"), [("patch", ["api", "a", "b"]), ("update", ["api", "a", "tool", "b"])])
def test_who_patches_a_lease_without_objects_does_not_follow_one_that_updates_it(verb: str, holders: list[str]) -> None:
    server = FakeServer()
    server.elector("api", "shop/db").take()
    server.wait(2)
    a, tool = server.elector("a", "shop/db"), server.elector("tool", "shop/db")
    a.take()
    server.wait(12)
    a.renew()  # with this second write it has followed the one that created the lease
    for _ in range(2):
        server.wait(12)
        tool.renew()
        server.log[-1]["verb"] = verb
    server.wait(5)
    server.elector("b", "shop/db").lead(30)
    tenures = account(log(server, metadata_only=True)).history.tenures
    assert [one.holder for one in tenures] == holders


@pytest.mark.parametrize(("verb", "holders"), [("patch", [API_SERVER]), ("update", [API_SERVER, "tool"])])
def test_who_patches_a_lease_without_objects_is_none_that_an_api_server_chose(verb: str, holders: list[str]) -> None:
    server = FakeServer()
    server.elector("api", "shop/db", user=API_SERVER, pod="").take()
    tool = server.elector("tool", "shop/db")
    for _ in range(2):
        server.wait(12)
        tool.renew()
        server.log[-1]["verb"] = verb
    tenures = account(log(server, metadata_only=True)).history.tenures
    assert [one.holder for one in tenures] == holders


def test_who_renews_after_the_writer_of_the_first_state_need_not_be_the_holder() -> None:
    server = FakeServer()
    a = server.elector("db", "shop/db", pod="x2x8p")
    a.lead(20)
    server.log.clear()
    a.renew()
    stranger = server.elector("db", "shop/db", pod="q9hkz", user="system:serviceaccount:shop:mallory")
    stranger.lead(20)
    stranger.release()
    assert describe_ending(account(log(server)).history.tenures[0]) == "db_1 released it, or was removed"


def test_who_alone_renews_from_the_first_state_on_releases_the_lease_itself() -> None:
    server = FakeServer()
    a = server.elector("db", "shop/db", pod="x2x8p")
    a.lead(20)
    server.log.clear()
    a.lead(20)
    a.release()
    assert describe_ending(account(log(server)).history.tenures[0]) == "db_1 released it"
