"""Pods that could not be created, wait for a node, or had a kubelet while no one led: listed, and never the cause."""

import pytest

from tests.claims.accounts import account, shop, text
from tests.factories import Document, Tweak, put
from tests.history.fake_server import Elector, FakeServer, together
from tests.history.observing import advise, follow_log, follow_metadata
from tests.history.test_refusal import RIGHTS
from tests.inputs.test_pod_requests import pod_event, status_event
from tests.inputs.test_related_writes import write_event
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.findings.headline import make_headline
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.kubernetes.times import SECOND, format_micro_time, format_time

REFUSED = "pods could not be created"
PENDING = "system:kube-scheduler wrote the status of pod db-7d9c6b5f4-xk2pq"
KUBELET = "the kubelet of node worker-1 wrote the status of a pod named db-7d9c6b5f4-7hq2x, as the holder's is"
QUOTA = 'pods "db-7d9c6b5f4-xk2pq" is forbidden: exceeded quota: objects'
WEBHOOK = 'Internal error occurred: failed calling webhook "w.example.com": connection refused'
SECURITY = 'pods "db-7d9c6b5f4-xk2pq" is forbidden: violates PodSecurity "restricted:latest": hostNetwork'
NEW, HOLDER = "db-7d9c6b5f4-xk2pq", "db-7d9c6b5f4-7hq2x"
SCHEDULER = put("user", {"username": "system:kube-scheduler"})


def log_pod(server: FakeServer, *tweaks: Tweak) -> None:
    server.log.append(pod_event(put("stageTimestamp", format_micro_time(server.now)), *tweaks))


def log_status(server: FakeServer, pod: str, *tweaks: Tweak) -> None:
    now = put("stageTimestamp", format_micro_time(server.now))
    server.log.append(status_event(now, put("objectRef.name", pod), *tweaks))


def lead() -> tuple[FakeServer, Elector, list[Elector]]:
    """A holder in a pod of a Deployment that has just renewed its lease, and holders of other leases."""
    server, (db, *others) = shop()
    db.pod = HOLDER
    together(20, db, *others)
    return server, db, others


def lose(*events: tuple[str, tuple[Tweak, ...]], is_taken: bool = True) -> FakeServer:
    """Stop to renew a lease, log events 4 s apart, and have another one take the lease, or nobody."""
    server, db, others = lead()
    together(4, *others)
    for pod, tweaks in events:
        log_status(server, pod, *tweaks) if pod else log_pod(server, *tweaks)
        together(4, *others)
    together(20, *others)
    if is_taken:
        server.elector("db-1", "shop/db").take()
    else:
        assert db.pod
    return server


def explain(server: FakeServer) -> str:
    return text(account(follow_log(server), server.now))


def answer(code: int, message: str) -> tuple[Tweak, ...]:
    return put("responseStatus.code", code), put("responseStatus.message", message)


def test_creations_that_were_refused_while_no_one_led_are_listed() -> None:
    server = lose(("", answer(403, QUOTA)), ("", answer(403, QUOTA)))
    output = explain(server)
    assert f"{REFUSED}: 2 requests by system:kube-controller-manager in namespace shop were refused with 403" in output
    assert f"within 4 s, the last one: {QUOTA}" in output
    assert any(REFUSED in line.text for line in list_latest(account(follow_log(server), server.now)))
    assert REFUSED not in "".join(one.message for one in account(follow_log(server), server.now).findings)


@pytest.mark.parametrize(
    ("code", "message", "words"),
    [(500, WEBHOOK, f"failed with 500, the last one: {WEBHOOK}"), (403, "", "was refused with 403\n")],
)
def test_one_creation(code: int, message: str, words: str) -> None:
    assert f"{REFUSED}: 1 request by system:kube-controller-manager in namespace shop {words}" in explain(
        lose(("", answer(code, message)))
    )


def test_more_than_are_remembered_are_counted_at_least() -> None:
    server, _, others = lead()
    for _ in range(70):
        server.wait(0.01)
        log_pod(server)
    together(20, *others)
    assert f"{REFUSED}: at least 64 requests" in explain(server)


@pytest.mark.parametrize(
    "tweak",
    [
        put("responseStatus.message", 'pods "mail-7d9c6b5f4-xk2pq" is forbidden: exceeded quota: objects'),
        put("objectRef.name", "mail-0"),
        put("objectRef.namespace", "mail"),
        put("stageTimestamp", "2026-11-18T08:00:00.000000Z"),
    ],
    ids=[
        "of another workload, by the answer",
        "of another workload, by its name",
        "of another namespace",
        "long before",
    ],
)
def test_other_creations_are_left_out(tweak: Tweak) -> None:
    assert REFUSED not in explain(lose(("", (*answer(403, QUOTA), tweak))))


def test_creations_while_a_holder_leads_are_left_out() -> None:
    server, db, others = lead()
    log_pod(server)
    together(20, db, *others)
    assert REFUSED not in explain(server)


@pytest.mark.parametrize(
    ("kind", "group", "message", "is_told"),
    [
        ("validatingwebhookconfigurations", "admissionregistration.k8s.io", WEBHOOK, True),
        ("resourcequotas", "", QUOTA, True),
        ("resourcequotas", "", WEBHOOK, False),
        ("namespaces", "", SECURITY, True),
        ("namespaces", "", QUOTA, False),
        ("roles", "rbac.authorization.k8s.io", QUOTA, False),
    ],
)
def test_changes_of_what_refused_pods_are_listed(kind: str, group: str, message: str, is_told: bool) -> None:
    server, _, others = lead()
    together(4, *others)
    server.log.append(write_event(kind, group, put("stageTimestamp", format_micro_time(server.now))))
    log_pod(server, *answer(500, message))
    together(20, *others)
    assert ("was deleted by alice@example.org" in explain(server)) == is_told


def test_a_pod_of_the_workload_that_gets_no_node_may_be_pending() -> None:
    server = lose((NEW, (SCHEDULER,)), (NEW, (SCHEDULER,)), is_taken=False)
    output = explain(server)
    assert (
        f"{PENDING}, 2 times until 11:07:08Z, and the log does not show that it got a node: it may be pending" in output
    )


def test_a_pod_of_which_nothing_else_is_written_for_long_may_be_pending() -> None:
    server = lose((NEW, (SCHEDULER,)), is_taken=False)
    together(10, server.elector("mail-0", "shop/mail"))
    assert f"{PENDING}, and the log does not show that it got a node: it may be pending" in explain(server)


@pytest.mark.parametrize(
    "events",
    [
        [(NEW, (SCHEDULER,))],
        [(NEW, (SCHEDULER,)), (NEW, (SCHEDULER,)), (NEW, ())],
        [(NEW, (SCHEDULER,)), (NEW, (SCHEDULER, put("user.username", "mallory")))],
        [("mail-7d9c6b5f4-xk2pq", (SCHEDULER,))] * 2,
        [(HOLDER, (SCHEDULER,))] * 2,
        [(NEW, (SCHEDULER, put("objectRef.namespace", "mail")))] * 2,
        [
            (NEW, (SCHEDULER,)),
            (NEW, (SCHEDULER,)),
            (NEW, (put("objectRef.subresource", "binding"), put("verb", "create"))),
        ],
    ],
    ids=[
        "written once, just now",
        "its kubelet has it",
        "written by somebody",
        "of another workload",
        "the pod of the holder",
        "of another namespace",
        "it got a node",
    ],
)
def test_other_pods_are_not_taken_for_pending(events: list[tuple[str, tuple[Tweak, ...]]]) -> None:
    assert "it may be pending" not in explain(lose(*events))


def test_a_pod_that_is_pending_while_a_holder_leads_is_left_out() -> None:
    server, db, others = lead()
    for _ in range(3):
        log_status(server, NEW, SCHEDULER)
        together(4, db, *others)
    assert "it may be pending" not in explain(server)


@pytest.mark.parametrize("is_taken", [True, False])
def test_the_kubelet_of_a_silent_holder_was_alive_when_it_wrote_the_status_of_its_pod(is_taken: bool) -> None:
    output = explain(lose((HOLDER, ()), is_taken=is_taken))
    assert f"{KUBELET}: the kubelet was alive then; a container may have ended or restarted" in output


@pytest.mark.parametrize("is_taken", [True, False], ids=["and another one wrote it", "and nobody wrote it"])
def test_the_kubelet_of_a_writer_that_went_silent_is_told_of(is_taken: bool) -> None:
    server = lose((HOLDER, ()), is_taken=is_taken)
    output = text(account(follow_metadata(server), server.now))
    of_writer = KUBELET.replace("as the holder's is", "as that of its writer is")
    assert f"{of_writer}: the kubelet was alive then" in output


def test_the_kubelet_of_a_writer_that_another_one_followed_at_once_is_not_told_of() -> None:
    server, *_ = lead()
    server.wait(1)
    log_status(server, HOLDER)
    server.wait(1)
    server.elector("db-1", "shop/db").lead(60)
    assert "wrote the status of a pod" not in text(account(follow_metadata(server), server.now))


def test_several_writes_of_a_kubelet_are_counted() -> None:
    assert f"{KUBELET}, 2 times until 11:07:08Z: the kubelet was alive" in explain(lose((HOLDER, ()), (HOLDER, ())))


@pytest.mark.parametrize(
    "event",
    [
        (NEW, ()),
        (HOLDER, (put("objectRef.namespace", "mail"),)),
        (HOLDER, (put("user.username", "mallory"),)),
        (HOLDER, (put("impersonatedUser", {"username": "system:node:worker-1"}), put("user.username", "mallory"))),
        (HOLDER, (put("stageTimestamp", "2026-11-18T11:06:50.000000Z"),)),
        (HOLDER, (put("objectRef.subresource", "binding"), put("verb", "create"))),
    ],
    ids=[
        "of another pod",
        "of another namespace",
        "by somebody",
        "by somebody who acts as a kubelet",
        "before its last renewal",
        "it got a node",
    ],
)
def test_other_writes_show_no_kubelet(event: tuple[str, tuple[Tweak, ...]]) -> None:
    assert "the kubelet of node" not in explain(lose(event))


def say(status: Document, uid: str = "") -> tuple[Tweak, ...]:
    """Build the status that a kubelet writes, as a log at level Request has it."""
    metadata = {"metadata": {"uid": uid}} if uid else {}
    return put("level", "Request"), put("requestObject", {**metadata, "status": status})


def end(terminated: Document, state: str = "lastState") -> Document:
    return {"containerStatuses": [{"name": "db", state: {"terminated": terminated}}]}


PREVIOUS = f"kubectl -n shop logs {HOLDER} --previous --all-containers --ignore-errors"
KILLED = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-11-18T11:07:03Z"}
EVICTED = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: ephemeral-storage."}


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (EVICTED, 'phase Failed, reason Evicted, "The node was low on resource: ephemeral-storage."'),
        ({"phase": "Failed"}, "phase Failed"),
        (end(KILLED), "container db ended (OOMKilled, exit code 137) at 11:07:03Z"),
        (end({}, "state"), "container db ended"),
        (EVICTED | end({"exitCode": 1}), 'ephemeral-storage.", and container db ended (exit code 1)'),
    ],
    ids=["evicted", "failed", "killed and restarted", "ended, of unknown cause", "evicted, and a container"],
)
@pytest.mark.parametrize("is_taken", [True, False], ids=["and another took the lease", "and nobody took the lease"])
def test_what_a_kubelet_wrote_of_the_end_of_a_holders_pod_is_said(status: Document, said: str, is_taken: bool) -> None:
    output = explain(lose((HOLDER, say(status)), is_taken=is_taken))
    assert said in next(line for line in output.splitlines() if KUBELET in line)
    assert "kubelet was alive then" not in output
    cause = next(line for line in output.splitlines() if line.startswith(("Why", "leader-lost")))
    assert "the kubelet of node worker-1 wrote at 11:07:04Z of the pod of its name: " in cause
    assert said in cause
    assert "may have ended" not in cause


def test_a_holder_whose_container_has_ended_since_its_last_write_is_to_be_looked_at() -> None:
    server, _, others = lead()
    together(4, *others)
    log_status(server, HOLDER, *say(end(KILLED)))
    found = account(follow_log(server), server.now)
    assert "container db ended (OOMKilled, exit code 137) at 11:07:03Z" in make_headline(found)
    sentence = "It is held, but a container of its holder's pod has ended since its last write. See why:"
    assert advise(found) == f"{sentence} kubectl -n shop describe pod {HOLDER}; {PREVIOUS}"


def test_an_init_container_that_failed_and_ran_again_under_one_holder_is_told() -> None:
    server, db, others = lead()
    killed = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-11-18T11:07:01Z"}
    states: list[Document] = [{"terminated": killed}, {"waiting": {"reason": "CrashLoopBackOff"}}, {"running": {}}]
    for state in states:
        together(2, *others)
        log_status(server, HOLDER, *say({"initContainerStatuses": [{"name": "migrate", "state": state}]}))
    together(10, db, *others)
    until = "3 times until 11:07:06Z: container migrate ended (OOMKilled, exit code 137) at 11:07:01Z"
    assert f"kubelets wrote the status of pod {HOLDER} while the lease named it, {until}" in explain(server)


def test_a_kubelet_that_wrote_of_no_end_was_alive() -> None:
    output = explain(lose((HOLDER, say({"conditions": []}))))
    assert f"{KUBELET}: the kubelet was alive then, and wrote of no container that had ended since" in output
    assert "of the pod of its name" not in output


@pytest.mark.parametrize(
    ("status", "is_cause_of_others", "is_listed"),
    [({"conditions": []}, False, False), (EVICTED, False, False), (EVICTED, True, True)],
    ids=["which says of no end", "which the cause says", "which the cause does not say"],
)
def test_the_latest_lines_have_what_a_kubelet_wrote_unless_it_says_nothing_new(
    status: Document, *, is_cause_of_others: bool, is_listed: bool
) -> None:
    server, db, others = lead()
    for _ in range(4):
        together(4, *others)
        if is_cause_of_others:
            db.fail(403, RIGHTS)
        log_status(server, HOLDER, *say(status))
    server.elector("db-1", "shop/db").take()
    answer = account(follow_log(server), server.now)
    assert KUBELET in text(answer)
    assert any(KUBELET in line.text for line in list_latest(answer)) is is_listed


def test_a_container_that_had_ended_before_the_last_renewal_is_left_out() -> None:
    output = explain(lose((HOLDER, say(end(KILLED | {"finishedAt": "2026-11-18T11:06:50Z"})))))
    assert "OOMKilled" not in output
    assert "wrote of no container that had ended since the last renewal" in output


def test_a_status_that_names_another_pod_of_that_name_is_left_out() -> None:
    server, db, others = lead()
    server.uids[HOLDER] = "uid-1"
    together(4, db, *others)
    together(4, *others)
    log_status(server, HOLDER, *say(end(KILLED), uid="uid-2"))
    together(20, *others)
    assert "OOMKilled" not in explain(server)


def test_a_status_that_names_the_uid_of_the_pod_is_of_its_pod() -> None:
    server, db, others = lead()
    server.uids[HOLDER] = "uid-1"
    together(4, db, *others)
    together(4, *others)
    log_status(server, HOLDER, *say(end({"reason": "Error"}), uid="uid-1"))
    together(20, *others)
    server.elector("db-1", "shop/db").take()
    assert "wrote at 11:07:08Z of its pod: container db ended (Error)" in explain(server)


def test_a_deleted_pod_shows_nothing_about_its_kubelet() -> None:
    server, _, others = lead()
    server.delete_pod(HOLDER)
    log_status(server, HOLDER)
    together(20, *others)
    assert "the kubelet of node" not in explain(server)


def test_a_holder_without_a_pod_has_no_kubelet() -> None:
    server, (db, *others) = shop()
    db.pod = ""
    together(20, db, *others)
    log_status(server, HOLDER)
    together(20, *others)
    assert "the kubelet of node" not in explain(server)


def test_a_lease_that_nobody_has_held_yet_says_nothing_of_pods() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").take(holderIdentity="", renewTime=None)
    log_pod(server)
    assert REFUSED not in explain(server)


def play_writes(*tweaks: Tweak, seconds: float, retry: float = 2) -> str:
    """Return the text about a log without objects in which a pod is refused after the last writer was silent."""
    server, (db, *_) = shop()
    db.pod, db.retry = HOLDER, retry
    db.lead(60 * retry)
    log_pod(server, *answer(403, QUOTA), *tweaks)
    server.wait(seconds)
    return text(account(follow_metadata(server), server.now))


@pytest.mark.parametrize(("seconds", "retry"), [(20, 2), (70, 30)], ids=["as most write", "that writes rarely"])
def test_pods_that_were_refused_are_listed_beside_a_silent_writer(seconds: float, retry: float) -> None:
    assert REFUSED in play_writes(seconds=seconds, retry=retry)


@pytest.mark.parametrize(("seconds", "retry"), [(10, 2), (50, 30)], ids=["as most write", "that writes rarely"])
def test_pods_that_were_refused_are_left_out_beside_a_writer_that_may_write_on(seconds: float, retry: float) -> None:
    assert REFUSED not in play_writes(seconds=seconds, retry=retry)


def test_refused_pods_of_another_workload_are_left_out_beside_a_silent_writer() -> None:
    assert REFUSED not in play_writes(put("responseStatus.message", QUOTA.replace("db-7d9c", "mail-7d9c")), seconds=20)


OPERATOR = put("user", {"username": "nina@example.org"})
RAN = (
    OPERATOR,
    put("objectRef.name", HOLDER),
    put("objectRef.subresource", "exec"),
    put("requestURI", f"/api/v1/namespaces/shop/pods/{HOLDER}/exec?command=/sbin/fsfreeze&command=--freeze"),
    put("responseStatus", {"metadata": {}, "code": 101}),
)
KEPT = (
    OPERATOR,
    put("objectRef.name", HOLDER),
    put("objectRef.subresource", "eviction"),
    put("responseStatus.code", 429),
)


def log_run(server: FakeServer, *tweaks: Tweak) -> None:
    log_pod(server, *RAN, put("requestReceivedTimestamp", format_micro_time(server.now)), *tweaks)


def list_lines(server: FakeServer) -> list[str]:
    return [line.text for line in list_latest(account(follow_log(server), server.now))]


@pytest.mark.parametrize("is_taken", [True, False], ids=["and another took the lease", "and nobody took the lease"])
@pytest.mark.parametrize(
    ("times", "again"), [(1, ""), (2, ", 2 times until 11:07:00Z")], ids=["a program", "two programs"]
)
def test_who_ran_a_program_in_the_pod_of_a_holder_that_fell_silent_is_listed(
    times: int, again: str, *, is_taken: bool
) -> None:
    server, _, others = lead()
    for _ in range(times):
        log_run(server)
        server.wait(0.2)
    together(30, *others)
    if is_taken:
        server.elector("db-1", "shop/db").take()
    said = f"nina@example.org ran /sbin/fsfreeze in pod {HOLDER}, which held it{again}"
    assert said in list_lines(server)


def test_who_ran_a_program_in_the_pod_of_a_holder_that_was_late_is_listed() -> None:
    server, db, others = lead()
    together(60, db, *others)
    log_run(server, put("requestURI", "/exec"))
    together(14, *others)
    together(20, db, *others)
    assert f"nina@example.org ran a program in pod {HOLDER}, which held it" in list_lines(server)


def test_who_ran_a_program_in_the_pod_of_a_holder_that_released_the_lease_is_listed() -> None:
    server, db, others = lead()
    log_run(server)
    server.wait(1)
    db.release()
    together(20, *others)
    assert f"nina@example.org ran /sbin/fsfreeze in pod {HOLDER}, which held it" in list_lines(server)


def resize(server: FakeServer, limits: dict[str, str]) -> None:
    about = put("verb", "patch"), put("objectRef.name", HOLDER), put("objectRef.subresource", "resize")
    sent = put("requestObject", {"spec": {"containers": [{"resources": {"limits": limits}}]}})
    log_pod(server, OPERATOR, *about, sent, put("responseStatus", {"metadata": {}, "code": 200}))


@pytest.mark.parametrize(
    ("limits", "words"), [({"cpu": "5m"}, " (limits: cpu 5m)"), ({}, "")], ids=["with limits", "without"]
)
@pytest.mark.parametrize(("seconds", "is_listed"), [(20, True), (70, False)], ids=["just before", "long before"])
def test_who_resized_the_pod_of_a_holder_before_that_fell_silent_is_listed(
    seconds: int, limits: dict[str, str], words: str, *, is_listed: bool
) -> None:
    server, db, others = lead()
    resize(server, limits)
    together(seconds, db, *others)
    together(30, *others)
    said = f"nina@example.org resized pod {HOLDER}, which held it{words}"
    assert (said in list_lines(server)) is is_listed


def test_a_holder_that_was_resized_and_led_on_is_left_alone() -> None:
    server, db, others = lead()
    resize(server, {"cpu": "5m"})
    together(30, db, *others)
    assert not any("resized" in line for line in list_lines(server))


def log_signal(server: FakeServer, signal: str) -> None:
    log_run(server, put("requestURI", f"/exec?command=kill&command={signal}&command=1"))


def send_signals(while_held: str, afterwards: str) -> list[str]:
    """Send a signal to a holder, which then loses the lease, and another one after that; return what happened."""
    server, _, others = lead()
    log_signal(server, while_held)
    together(30, *others)
    server.elector("db-1", "shop/db").take()
    together(10, *others)
    log_signal(server, afterwards)
    together(4, *others)
    return list_lines(server)


@pytest.mark.parametrize(
    ("stop", "go_on"), [("-STOP", "-CONT"), ("-19", "-18")], ids=["by their names", "by their numbers"]
)
def test_who_paused_a_holder_and_let_it_go_on_after_it_lost_the_lease_is_listed(stop: str, go_on: str) -> None:
    lines = send_signals(stop, go_on)
    assert f"nina@example.org ran kill {stop} (which pauses a process) in pod {HOLDER}, which held it" in lines
    went_on = f"ran kill {go_on} (which lets a paused process go on) in pod {HOLDER}, which had held it"
    assert f"nina@example.org {went_on}" in lines


@pytest.mark.parametrize(
    ("before", "after"), [("-TERM", "-CONT"), ("-STOP", "-TERM")], ids=["not paused", "another signal"]
)
def test_signals_to_a_former_holder_that_was_not_paused_are_left_out(before: str, after: str) -> None:
    lines = send_signals(before, after)
    assert any(f"ran kill {before}" in line for line in lines)
    assert not any("which had held it" in line for line in lines)


def set_image(server: FakeServer, image: str) -> None:
    sent = put("requestObject", {"spec": {"containers": [{"name": "manager", "image": image}]}})
    about = put("verb", "patch"), put("objectRef.name", HOLDER)
    log_pod(server, OPERATOR, *about, sent, put("responseStatus", {"metadata": {}, "code": 200}))


@pytest.mark.parametrize(("seconds", "is_listed"), [(2, True), (70, False)], ids=["just before", "long before"])
def test_who_set_the_image_of_the_pod_of_a_holder_that_fell_silent_is_listed(seconds: int, *, is_listed: bool) -> None:
    server, db, others = lead()
    set_image(server, "app:1-debug")
    together(seconds, db, *others)
    together(30, *others)
    said = f"nina@example.org set the image of pod {HOLDER}, which held it, to manager=app:1-debug"
    assert (said in list_lines(server)) is is_listed


def test_the_image_of_a_holder_that_led_on_is_left_alone() -> None:
    server, db, others = lead()
    set_image(server, "app:1-debug")
    together(30, db, *others)
    assert not any("image" in line for line in list_lines(server))


def test_a_program_in_the_pod_of_a_holder_that_led_on_is_left_out() -> None:
    server, db, others = lead()
    log_run(server)
    together(30, db, *others)
    assert not any("ran /sbin" in line for line in list_lines(server))


def test_a_holder_without_a_pod_has_none_to_run_a_program_in() -> None:
    server, (db, *others) = shop()
    db.user, db.pod = "nina", ""
    together(20, db, *others)
    log_run(server)
    together(30, *others)
    assert not any("ran /sbin" in line for line in list_lines(server))


@pytest.mark.parametrize("code", [429, 404], ids=["a budget", "a pod that is gone"])
def test_evictions_of_the_pod_of_a_holder_that_were_refused_are_listed(code: int) -> None:
    server, db, others = lead()
    for _ in range(3):
        log_pod(server, *KEPT, put("responseStatus.code", code))
        together(4, db, *others)
    said = (
        f"nina@example.org was refused the eviction of pod {HOLDER}, which held it, with 429, 3 times until 11:07:08Z"
    )
    assert (said in list_lines(server)) is (code == 429)


IDLE = "of its workload got a node, and the log has no request for the lease from {}: it may not run, or elect by"
THAT, THOSE = IDLE.format("that pod"), IDLE.format("those pods")
OLD = "db-6b8f7c9d55-qq2vw"


def switch_off(*pods: str, asks: str = "", waits: float = 60, reads: bool = True, is_deleted: bool = False) -> str:
    """A holder that ends after other pods of its Deployment got nodes; one of them may ask for the lease at once."""
    server, db, others = lead()
    if reads:
        db.ask()
    for pod in pods:
        server.wait(0.1)
        log_pod(
            server, put("objectRef.name", pod), put("objectRef.subresource", "binding"), put("responseStatus.code", 201)
        )
    if asks:
        server.elector(asks, "shop/db").ask()
    if is_deleted:
        server.delete_pod(pods[0])
    together(waits, *others)
    return explain(server)


def test_pods_that_never_ask_for_the_lease_of_their_workload_are_listed_once_it_has_expired() -> None:
    assert f"pod {NEW} {THAT}" in switch_off(NEW)
    assert f"pods {NEW}, {OLD} {THOSE}" in switch_off(NEW, OLD)
    assert f"pod {NEW} {THAT}" in switch_off(NEW, reads=False)
    pods = [f"db-7d9c6b5f4-b{one}b2b" for one in "bcdfg"]
    assert f"pods {', '.join(pods[:3])} and 2 more {THOSE}" in switch_off(*pods)


@pytest.mark.parametrize(
    "output",
    [
        switch_off(),
        switch_off(NEW, asks=NEW),
        switch_off(NEW, waits=10),
        switch_off(NEW, waits=40, reads=False),
        switch_off(NEW, is_deleted=True),
        switch_off("mail-7d9c6b5f4-xk2pq"),
        switch_off(HOLDER),
        switch_off(NEW, waits=24),
    ],
    ids=[
        "none",
        "it asked",
        "the lease is live",
        "the log has no reads, and it may be about to write",
        "it was deleted",
        "of another workload",
        "the holder's own",
        "it may be about to ask",
    ],
)
def test_pods_that_may_want_the_lease_are_not_said_to_do_without(output: str) -> None:
    assert "of its workload got a node" not in output


def test_a_holder_whose_pod_asked_only_after_its_container_had_ended_may_have_restarted() -> None:
    server, db, others = lead()
    server.wait(1)
    ended = {"name": "manager", "state": {"terminated": {"exitCode": 137, "reason": "Error"}}}
    log_status(server, HOLDER, put("requestObject", {"status": {"containerStatuses": [ended]}}))
    together(4, *others)
    log_status(server, HOLDER)
    for _ in range(3):
        together(2, *others)
        db.ask()
    together(10, *others)
    server.elector("db-1", "shop/db").take()
    server.wait(2)
    db.ask()
    output = explain(server)
    assert "Its pod made at least 3 requests for the lease only after a container of it had ended; 2 other" in output
    assert "asked for it, and may have restarted; see why:" in output


def test_a_holder_whose_pod_asked_before_a_container_ended_did_not_renew() -> None:
    server, db, others = lead()
    together(2, *others)
    db.ask()
    ended = {"name": "manager", "state": {"terminated": {"exitCode": 137, "reason": "Error"}}}
    together(2, *others)
    log_status(server, HOLDER, put("requestObject", {"status": {"containerStatuses": [ended]}}))
    together(2, *others)
    db.ask()
    together(10, *others)
    server.elector("db-1", "shop/db").take()
    assert "Its pod made at least 2 requests for the lease, none of which renewed it; " in explain(server)


def take_and_end(*, after: float, is_renewed: bool = False) -> Account:
    """Have a pod take an expired lease, and its kubelet write that a container ended so many seconds after that."""
    server, (db, mail, cart) = shop()
    together(20, db, mail, cart)
    together(18, mail, cart)
    follower = server.elector("db-1", "shop/db")
    follower.take()
    finished = format_time(int(server.now + after * SECOND))
    together(2, mail, cart)
    log_status(server, "db-1", *say(end({"exitCode": 2, "finishedAt": finished})))
    if is_renewed:
        together(4, follower, mail, cart)
    return account(follow_log(server), server.now)


def test_the_end_of_a_container_after_the_holder_took_the_lease_is_in_the_headline() -> None:
    found = take_and_end(after=1)
    headline = make_headline(found)
    assert "taken" in headline
    assert " ago and not renewed since; the kubelet of node worker-1 wrote at" in headline
    assert "container db ended (exit code 2)" in headline
    assert "held and renewed" not in advise(found).casefold()


def test_a_container_that_ended_before_the_holder_took_the_lease_says_nothing_of_it() -> None:
    headline = make_headline(take_and_end(after=-4))
    assert headline.endswith("and not renewed since")


def test_a_holder_that_renewed_after_a_container_had_ended_goes_on() -> None:
    headline = make_headline(take_and_end(after=1, is_renewed=True))
    assert "ended" not in headline
    assert ", renewed" in headline
