"""Several processes under one identity, and who took the lease as it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.claims.accounts import account, text
from tests.claims.test_deleted_pods import log_missing
from tests.factories import Document, drop, put
from tests.history.fake_server import SECOND, START, Elector, FakeServer
from tests.history.observing import LEASE, View, follow_log, follow_watch, observe_all
from tests.inputs.reading import read
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.claims.presentation.advise import advise as find_advice
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover


def claims(histories: ClusterHistory, server: FakeServer, kind: str) -> list[dict[str, Any]]:
    return [one for one in make_account_json(account(histories, server.now))["claims"] if one["claim"] == kind]


def twins(count: int) -> tuple[FakeServer, list[Elector]]:
    """Pods of one account that call themselves alike, of which the first has renewed for 10 s."""
    server = FakeServer()
    pods = [server.elector(f"db-{number}", "shop/db") for number in range(count)]
    for pod in pods:
        pod.identity = "leader"
    pods[0].lead(10)
    return server, pods


def renew_in_turns(server: FakeServer, *pods: Elector, times: int) -> None:
    for _ in range(times):
        for pod in pods:
            server.wait(1)
            pod.renew()


def spec_of(server: FakeServer, **changes: object) -> Document:
    return {**server.leases["shop/db"]["spec"], **changes}


def test_a_process_that_took_the_lease_under_its_name_is_no_second_writer() -> None:
    server, (first, second) = twins(2)
    renew_in_turns(server, second, first, times=2)
    (other,) = claims(follow_log(server), server, "second-writer")
    assert other["by"]["pod"] == "db-1"
    assert other["text"].endswith("renewed it as leader, 2 times until 11:06:53Z: it is not the process that took it")


def test_a_pod_that_renews_beside_one_that_goes_on_has_not_replaced_it() -> None:
    server, (first, second) = twins(2)
    renew_in_turns(server, second, first, times=4)
    histories = follow_log(server)
    history = histories.leases[LEASE]
    assert [one.began for one in history.tenures] == [Handover.CREATED]
    assert history.handovers[Handover.REPLACED] == 0
    assert claims(histories, server, "holder-replaced") == []
    (held,) = claims(histories, server, "held-since")
    assert held["by"]["pod"] == "db-0"
    (shared,) = claims(histories, server, "identity-shared")
    assert "shop/db from pod db-0 (9 renewals) and shop/db from pod db-1 (4 renewals)" in shared["text"]


@pytest.mark.parametrize("behind", [0, 7200])
def test_a_renewal_that_only_its_writer_dates_does_not_say_that_the_next_pod_came_after_expiry(behind: int) -> None:
    """A log lacks the last renewal by the first pod, which a watch without managedFields shows."""
    server, (first, second) = twins(2)
    first.ahead = -behind
    renew_in_turns(server, first, times=1)
    del server.log[-1]
    renew_in_turns(server, second, times=5)
    histories = ClusterHistory()
    observe_all(histories, read("watch", [server.watch(managed_fields=False)]), read("log", [server.audit_log()]))
    before, tenure = histories.leases[LEASE].tenures
    assert tenure.began is Handover.REPLACED
    assert before.until == tenure.since == START + 12 * SECOND


Deed = Callable[[FakeServer], None]


def hand_over_after(*deeds: Deed) -> FakeServer:
    """Twins of which the second renews 8 s after the first had, and after what happened to that."""
    server, (_, second) = twins(2)
    server.wait(1)
    for deed in deeds:
        deed(server)
    server.wait(5)
    second.lead(20)
    return server


def evict(server: FakeServer) -> None:
    """Have alice evict the pod that renews, in a log that hides the options of that."""
    hidden = put("user.username", "alice"), put("level", "Metadata"), drop("responseObject")
    server.delete_pod("db-0", *hidden, is_eviction=True)


def end_pod(server: FakeServer) -> None:
    """Have the kubelet confirm that the pod has ended."""
    server.wait(1)
    server.delete_pod("db-0", put("user.username", "system:node:n1"))


UNKNOWN_END = "the input does not show whether the one before had stopped"


def test_a_pod_that_is_replaced_was_gone_if_the_log_shows_that() -> None:
    server = hand_over_after(evict, end_pod)
    said = text(account(follow_log(server), server.now))
    assert "another pod renews it as leader (shop/db from pod db-1)" in said
    assert "; pod db-0, which had renewed it, was evicted at 11:06:51Z by alice" in said
    assert UNKNOWN_END not in said


@pytest.mark.parametrize(
    ("before", "after"),
    [((), ()), ((evict,), ()), ((evict,), (end_pod,)), ((evict, log_missing()), ())],
    ids=["nothing", "an eviction alone", "it ended later", "its object alone is gone"],
)
def test_whether_a_pod_that_is_replaced_had_stopped_is_else_not_known(
    before: tuple[Deed, ...], after: tuple[Deed, ...]
) -> None:
    server = hand_over_after(*before)
    for deed in after:
        deed(server)
    assert UNKNOWN_END in text(account(follow_log(server), server.now))


def test_pods_that_replace_one_another_under_a_name_are_one_holder() -> None:
    """The headline, the lines and JSON say since when it is held, whoever renews it; the gap between them is one."""
    server = hand_over_after()
    found = account(follow_log(server), server.now)
    said = text(found)
    assert "leader holds it since 11:06:40Z, renewed" in said
    assert "leader, since 11:06:40Z (" in said
    assert "longest gap between two by the same holder: 8 s" in said
    assert make_account_json(found)["held_since"].startswith("2026-11-18T11:06:40")


def test_a_late_request_of_the_pod_before_is_no_sign_that_it_goes_on() -> None:
    server, (first, second) = twins(2)
    renew_in_turns(server, second, first, times=1)
    renew_in_turns(server, second, times=4)
    assert len(claims(follow_log(server), server, "holder-replaced")) == 1


def test_who_comes_back_after_its_lease_would_have_expired_had_stopped() -> None:
    server, (first, second) = twins(2)
    renew_in_turns(server, second, times=20)
    renew_in_turns(server, first, second, times=4)
    assert len(claims(follow_log(server), server, "holder-replaced")) == 1


def test_a_log_that_begins_later_does_not_say_who_took_it() -> None:
    server, (first, second) = twins(2)
    renew_in_turns(server, second, first, times=4)
    del server.log[:3]
    said = text(account(follow_log(server), server.now))
    assert "renewed it as leader, 4 times until 11:06:57Z: before, shop/db from pod db-0 renewed it as that" in said
    (shared,) = claims(follow_log(server), server, "identity-shared")
    assert "shop/db from pod db-0 (at least 6 renewals)" in shared["text"]


def test_another_pod_that_renews_goes_on_with_the_identity() -> None:
    server, (first, second) = twins(2)
    renew_in_turns(server, second, times=5)
    renew_in_turns(server, first, second, times=5)
    (shared,) = claims(follow_log(server), server, "identity-shared")
    assert shared["ongoing"] is True


def test_whether_an_identity_is_still_shared_is_not_known_if_unknown_writers_renew_it() -> None:
    server, (first, second) = twins(2)
    renew_in_turns(server, second, first, times=8)
    known = len(server.log)
    renew_in_turns(server, first, times=20)
    histories = ClusterHistory()
    log = b"".join(json.dumps(one).encode() + b"\n" for one in server.log[:known])
    observe_all(histories, read("watch", [server.watch()]), read("log", [log]))
    (shared,) = claims(histories, server, "identity-shared")
    assert "ongoing" not in shared


def rotate_credentials() -> tuple[FakeServer, Elector]:
    """A process without a pod that gets a certificate for another user, and renews on."""
    server = FakeServer()
    elector = server.elector("machine", "shop/db")
    elector.pod, elector.user = "", "roller-2025"
    elector.lead(20)
    elector.user = "roller-2026"
    elector.lead(20)
    return server, elector


def test_a_user_that_only_follows_another_one_may_be_the_same_process() -> None:
    server, _ = rotate_credentials()
    histories = follow_log(server)
    (shared,) = claims(histories, server, "identity-shared")
    assert shared["severity"] == "warning"
    assert shared["text"].endswith(
        "its process has had other credentials since then, or another one writes in its name"
    )
    assert "renewed it last, which is not known to be its process" in text(account(histories, server.now))


def test_users_that_renew_in_turns_are_several_processes() -> None:
    server, elector = rotate_credentials()
    elector.user = "roller-2025"
    elector.lead(4)
    (shared,) = claims(follow_log(server), server, "identity-shared")
    assert shared["severity"] == "error"
    assert "roller-2026 renewed it as machine_1 (10 renewals), while roller-2025 did not, from" in shared["text"]


def test_the_renewals_of_three_pods_in_turns_are_no_silence() -> None:
    server, pods = twins(3)
    renew_in_turns(server, *pods, times=8)
    assert claims(follow_log(server), server, "renewal-late") == []
    assert claims(follow_log(server), server, "holder-replaced") == []
    (held,) = claims(follow_log(server), server, "held-since")
    assert held["by"]["pod"] == "db-0"


def test_a_silence_in_which_another_pod_renewed_is_none_of_the_identity() -> None:
    server, (first, second) = twins(2)
    renew_in_turns(server, second, first, times=4)
    renew_in_turns(server, first, times=12)
    renew_in_turns(server, second, first, times=4)
    assert claims(follow_log(server), server, "renewal-late") == []


def test_a_holder_whose_beginning_was_dropped_is_held_since_an_unknown_time() -> None:
    server, (_, second) = twins(2)
    renew_in_turns(server, second, times=5)
    histories = follow_log(server)
    assert len(claims(histories, server, "held-since")) == 1
    histories.leases[LEASE].tenures.popleft()
    assert claims(histories, server, "held-since") == []


def test_the_pod_that_the_holder_names_is_its_process_whoever_wrote_it_in() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(10)
    stolen = spec_of(server, holderIdentity="db-1_1")
    server.write("shop/db", stolen, "kubectl", "mallory", "")
    for second in range(3):
        server.wait(1)
        renewed = f"2026-11-18T11:07:{second:02}.000000Z"
        server.write("shop/db", spec_of(server, renewTime=renewed), "kubectl", "mallory", "")
    pod = server.elector("db-1", "shop/db")
    renew_in_turns(server, pod, times=3)
    tenure = follow_log(server).leases[LEASE].latest_tenure
    assert tenure is not None
    assert tenure.processes.own is not None
    assert tenure.processes.own.pod == "db-1"
    assert [one.user for one in tenure.processes.others] == ["mallory"]


def test_who_took_the_lease_before_is_no_second_writer_after_another_wrote_it_in() -> None:
    server, (first, _) = twins(2)
    server.write("shop/db", spec_of(server, holderIdentity="other"), "kubectl", "alice", "")
    server.write("shop/db", spec_of(server, holderIdentity="leader"), "kubectl", "mallory", "")
    for second in range(3):
        server.wait(1)
        renewed = f"2026-11-18T11:07:{second:02}.000000Z"
        server.write("shop/db", spec_of(server, renewTime=renewed), "kubectl", "mallory", "")
    renew_in_turns(server, first, times=3)
    named = [one["by"]["user"] for one in claims(follow_log(server), server, "second-writer")]
    assert first.user not in named


def test_a_lease_that_was_empty_at_the_start_of_a_log_may_have_been_held_before() -> None:
    server = FakeServer()
    first, second = (server.elector(f"db-{number}", "shop/db") for number in range(2))
    first.lead(10)
    first.release()
    del server.log[:-1]
    server.wait(1)
    second.lead(5)
    (taken,) = claims(follow_log(server), server, "taken")
    assert taken["how"] == "unknown"


def test_a_lease_that_was_created_without_a_holder_was_never_held() -> None:
    server = FakeServer()
    server.write("shop/db", {"holderIdentity": "", "leaseTransitions": 0}, "kubectl", "alice", "")
    assert len(claims(follow_log(server), server, "never-held")) == 1
    server.wait(1)
    server.elector("db-0", "shop/db").lead(5)
    (taken,) = claims(follow_log(server), server, "taken")
    assert taken["how"] == "first"


def test_a_pod_whose_name_another_one_has_may_lead_on() -> None:
    """Two led for 12 s after a forced deletion of a pod that was recorded on a real API server."""
    server, (first, second) = twins(2)
    renew_in_turns(server, second, times=10)
    (claim,) = claims(follow_log(server), server, "identity-shared")
    assert claim["severity"] == "warning"
    assert "ongoing" not in claim
    assert (
        "another pod began to renew it as leader, 1 s after the last renewal by the previous pod: unless"
        in claim["text"]
    )
    assert "unless that pod had stopped, both may have led, for up to " in claim["text"]
    assert find_advice(account(follow_log(server), server.now)).command.endswith("get pods db-0 db-1 -o wide")
    first.fail_unauthenticated()
    renew_in_turns(server, second, times=10)
    (claim,) = claims(follow_log(server), server, "identity-shared")
    assert claim["ongoing"] is False
    assert "1 write without accepted credentials followed from its address and program" in claim["text"]


def test_a_pod_that_had_missed_renewals_before_it_was_replaced_had_probably_stopped() -> None:
    server, (_, second) = twins(2)
    server.wait(9)
    renew_in_turns(server, second, times=10)
    assert claims(follow_log(server), server, "identity-shared") == []
    assert len(claims(follow_log(server), server, "holder-replaced")) == 1


def test_of_a_pod_that_was_not_seen_to_renew_it_is_not_known_when_it_did() -> None:
    """As after a hole in a log."""
    server = FakeServer()
    first, second = (server.elector(name, "shop/db") for name in ("db-0", "db-1"))
    first.identity = second.identity = "db-0"
    first.take()
    renew_in_turns(server, second, times=5)
    assert claims(follow_log(server), server, "identity-shared") == []
    assert len(claims(follow_log(server), server, "holder-replaced")) == 1


def test_a_pod_that_is_heard_after_it_was_replaced_had_not_stopped() -> None:
    server, (first, second) = twins(2)
    server.wait(9)
    renew_in_turns(server, second, times=2)
    first.fail_unauthenticated()
    renew_in_turns(server, second, times=2)
    (claim,) = claims(follow_log(server), server, "identity-shared")
    assert "9 s after" in claim["text"] or "10 s after" in claim["text"]


def renew_in_its_name(**changes: object) -> FakeServer:
    """A lease that its holder has renewed for 10 s, and someone else once in its name."""
    server, (first, *_) = twins(1)
    server.wait(2)
    server.write("shop/db", spec_of(server, renewTime=first._time(), **changes), "kubectl-patch", "mallory", "")
    return server


@pytest.mark.parametrize(
    "changes", [{}, {"leaseTransitions": 7}], ids=["one field manager more", "transitions as well"]
)
def test_a_watch_may_show_renewals_in_the_name_of_a_holder(changes: dict[str, object]) -> None:
    server = renew_in_its_name(**changes)
    answer = account(follow_watch(server), server.now)
    assert "leader holds it, renewed 0 s ago by it or by someone writing in its name" in text(answer)
    server.wait(12)
    server.elector("mail-0", "shop/mail").lead(2)
    (late,) = claims(follow_watch(server), server, "renewal-late")
    assert late["text"].startswith("leader, or someone writing in its name, has not renewed since")
    advice = find_advice(account(follow_watch(server), server.now))
    assert "shows who writes in the name of leader" in advice.sentence


def test_transitions_that_are_counted_up_hint_at_another_writer() -> None:
    server, (first, *_) = twins(1)
    server.wait(2)
    first.renew(leaseTransitions=5)
    assert "by it or by someone writing in its name" in text(account(follow_watch(server), server.now))


def test_a_log_shows_who_renewed_in_the_name_of_a_holder() -> None:
    server = renew_in_its_name()
    assert "someone writing in its name" not in text(account(follow_log(server), server.now))


def test_a_holder_that_is_written_in_again_with_another_manager_may_be_somebody_else() -> None:
    """As after a restart: a watch does not show whether it took the lease again itself."""
    server = renew_in_its_name(acquireTime="2026-11-18T11:06:59.000000Z", leaseTransitions=1)
    assert "by it or by someone writing in its name" in text(account(follow_watch(server), server.now))


@pytest.mark.parametrize("kind", ["taken", "held-since", "last-renewed"])
def test_a_watch_names_the_field_manager_of_a_write_and_a_log_its_process(kind: str) -> None:
    server, _ = twins(1)
    second = server.elector("db-1", "shop/db", manager="operator-2")
    server.wait(30)
    second.take()
    server.wait(2)
    second.renew()
    watched, logged = (claims(follow(server), server, kind)[-1] for follow in (follow_watch, follow_log))
    assert watched["by"] == {"user": "", "pod": "", "uid": "", "manager": "operator-2", "known": "manager"}
    assert (logged["by"]["pod"], logged["by"]["manager"], logged["by"]["known"]) == ("db-1", "", "process")


def test_the_field_manager_of_a_holder_is_not_that_of_who_takes_back_what_it_released() -> None:
    server, (first,) = twins(1)
    now = first._time()
    first.renew(leaseDurationSeconds=1, acquireTime=now, renewTime=now)
    server.wait(20)
    first.manager = "operator-2"
    first.renew(acquireTime=first._time())
    *_, taken = claims(follow_watch(server), server, "taken")
    assert taken["by"]["known"] == "unknown"


def renewed_in_two_rhythms(pod: str = "db-0") -> FakeServer:
    """One process that renews after 0.3 s and 1.8 s in turn."""
    server = FakeServer()
    db = server.elector("db-0", "shop/db", pod=pod)
    db.take()
    for seconds in (0.3, 1.8) * 10:
        server.wait(seconds)
        db.renew()
    return server


@pytest.mark.parametrize(
    ("follow", "pod", "command"),
    [
        (follow_watch, "db-0", "lease-webhook why shop/db --input AUDIT-LOG"),
        (follow_log, "", "kubectl -n shop get lease db -o yaml --show-managed-fields"),
    ],
    ids=["a watch", "a log without the token of a pod"],
)
def test_two_rhythms_may_be_of_two_processes(follow: View, pod: str, command: str) -> None:
    server = renewed_in_two_rhythms(pod)
    (shared,) = [one for one in account(follow(server), server.now).findings if one.check == "identity-shared"]
    assert shared.fix == command


def test_two_rhythms_of_one_pod_are_its_own() -> None:
    server = renewed_in_two_rhythms()
    assert "identity-shared" not in {one.check for one in account(follow_log(server), server.now).findings}


PAST = "db-0_1 was renewed in two rhythms (after 1.8 and 0.3 s in turn), as if by two electors under one identity"


@pytest.mark.parametrize(
    ("follow", "pod", "is_said"),
    [(follow_watch, "db-0", True), (follow_log, "", True), (follow_log, "db-0", False)],
    ids=["a watch", "a log without the token of a pod", "a log of one pod"],
)
def test_two_rhythms_of_the_past_are_said(follow: View, pod: str, is_said: bool) -> None:
    server = renewed_in_two_rhythms(pod)
    server.elector("db-0", "shop/db", pod=pod).lead(40)
    found = account(follow(server), server.now)
    assert "identity-shared" not in {one.check for one in found.findings}
    assert (f"11:06:40Z: until 11:07:01Z {PAST}\n" in text(found)) is is_said


def test_two_rhythms_that_go_on_are_said_once() -> None:
    server = renewed_in_two_rhythms()
    assert "as if by two electors" not in text(account(follow_watch(server), server.now))


def test_two_processes_that_a_log_shows_are_not_said_again() -> None:
    server, pods = twins(2)
    for _ in range(8):
        for pod, seconds in zip(pods, (0.3, 1.8), strict=True):
            server.wait(seconds)
            pod.renew()
    pods[0].lead(40)
    found = account(follow_log(server), server.now)
    assert "identity-shared" in {one.check for one in found.findings}
    assert "in two rhythms" not in text(found)
