"""Candidates of a coordinated election that an API server pinged, and that did not answer."""

import json

import pytest

from tests.claims.accounts import account, shop, text
from tests.claims.test_candidates import candidate, event
from tests.claims.test_coordinated import start_coordinated
from tests.factories import Document
from tests.history.fake_server import FakeServer
from tests.history.observing import advise, cluster_of, follow_log
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.presentation.urgency import advise_with_urgency
from webhook.analysis.history.holders.tenure import API_SERVER
from webhook.kubernetes.times import SECOND, format_micro_time, format_time

PINGED = "2026-11-18T11:07:00.000000Z"
ANSWERED = "2026-11-18T11:06:41.000000Z"
"""By the clock of a candidate that is behind."""


def play(*writes: tuple[str, Document, str], rest: float = 20, is_coordinated: bool = True) -> FakeServer:
    """A holder that renews on, while candidates are written."""
    server, first = start_coordinated() if is_coordinated else (shop()[0], shop()[1][0])
    if not is_coordinated:
        server = first.server
        first.lead(20)
    for verb, stored, user in writes:
        event(server, verb, stored, user=user)
    for _ in first.ticks(rest):
        first.renew(**({"strategy": "OldestEmulationVersion"} if is_coordinated else {}))
    return server


def ping(**changes: object) -> Document:
    return candidate(**{"pingTime": PINGED, **changes})


def explain(server: FakeServer) -> Account:
    return account(follow_log(server), server.now)


def watch(*changes: tuple[str, Document], ends: bool = False) -> Account:
    """Return what a watch of leases and candidates shows; `ends`: with the last change of a candidate."""
    server, first = start_coordinated()
    head = server.watch()
    at = format_micro_time(server.now)[:-8] + "Z"
    lines = b""
    for number, (change, stored) in enumerate(changes):
        entry: Document = {"manager": "kube-apiserver", "operation": "Update", "time": at}
        entry |= {"apiVersion": "coordination.k8s.io/v1beta1", "fieldsType": "FieldsV1", "fieldsV1": {}}
        stored["metadata"] |= {"managedFields": [entry], "resourceVersion": str(200 + number)}
        lines += json.dumps({"type": change, "object": stored}).encode() + b"\n"
    for _ in first.ticks(20):
        first.renew(strategy="OldestEmulationVersion")
    tail = server.watch()[len(head) :]
    return account(cluster_of(head + lines + (b"" if ends else tail)), server.now)


def test_the_ping_that_a_candidate_has_not_answered_is_said_and_its_process_is_to_be_looked_at() -> None:
    answer = explain(play(("update", ping(), API_SERVER), ("get", ping(), "mallory")))
    assert "Candidate: the API server pinged LeaseCandidate db-1 at 11:07:00Z, and the input shows no answer until" in (
        text(answer)
    )
    assert advise(answer) == (
        "It is held and renewed. See why LeaseCandidate db-1 did not answer its ping: an API server chooses only among "
        "those that do. If it is a pod: kubectl -n shop logs db-1"
    )


def test_it_is_looked_at_before_the_holder_that_fell_silent() -> None:
    server = play(("update", ping(), API_SERVER))
    server.elector("mail-0", "shop/mail").lead(50)
    command = advise(explain(server)).partition("those that do. ")[2]
    assert "kubectl -n shop logs db-1; kubectl -n shop " in command


@pytest.mark.parametrize(("candidate_name", "is_added"), [("a", False), ("a-2", True)])
def test_a_candidate_is_not_to_be_looked_at_where_the_advice_is_to_look_at_its_pod(
    candidate_name: str, *, is_added: bool
) -> None:
    server, _ = start_coordinated()
    stored = ping()
    stored["metadata"]["name"] = candidate_name
    event(server, "update", stored, user=API_SERVER)
    server.log[-1]["objectRef"]["name"] = candidate_name
    server.elector("mail-0", "shop/mail").lead(50)
    assert ("did not answer its ping" in advise(explain(server))) is is_added
    assert "kubectl -n shop describe pod a" in advise(explain(server))


def test_a_watch_shows_a_ping_and_not_by_whom() -> None:
    answer = watch(("ADDED", candidate()), ("MODIFIED", ping()))
    assert "Candidate: LeaseCandidate db-1 was pinged at 11:07:00Z, and the input shows no answer until" in text(answer)


@pytest.mark.parametrize(
    "answer",
    [
        explain(play(("update", ping(), API_SERVER), ("update", ping(renewTime=ANSWERED), "db"))),
        explain(play(("update", ping(), API_SERVER), ("delete", ping(), "db"))),
        explain(play(("update", ping(), "mallory"))),
        explain(play(("update", ping(), API_SERVER), rest=4)),
        explain(play(("update", ping(), API_SERVER), is_coordinated=False)),
        explain(play(("update", ping(leaseName="mail"), API_SERVER))),
        explain(play(("get", ping(), "db"))),
        watch(("ADDED", ping())),
        watch(("MODIFIED", ping())),
        watch(("ADDED", ping()), ("MODIFIED", ping(binaryVersion="1.38.0"))),
        watch(("ADDED", candidate()), ("MODIFIED", candidate(binaryVersion="1.38.0"))),
        watch(("ADDED", candidate()), ("MODIFIED", ping()), ends=True),
    ],
    ids=[
        "one that answered, by a clock that is behind",
        "one that was deleted",
        "one that a person wrote",
        "one that was just pinged",
        "one of an election without a strategy",
        "one of another lease",
        "one that was only read",
        "one that was pinged before a watch began",
        "one of which the state before is not known",
        "one that was changed otherwise",
        "one that was never pinged",
        "one after whose ping the watch ends",
    ],
)
def test_a_candidate_that_need_not_be_deaf_is_not_said(answer: Account) -> None:
    assert "shows no answer until" not in text(answer)


def test_an_api_server_and_no_replica_takes_a_coordinated_lease_that_expired() -> None:
    server, first = start_coordinated()
    server.elector("mail-0", "shop/mail").lead(40)
    first.renew(strategy="OldestEmulationVersion")
    output = text(explain(server))
    assert output.count("the lease expired, and no API server chose another holder") == 2
    assert "no one took it" not in output


def test_who_reads_an_expired_coordinated_lease_is_not_told_to_take_it() -> None:
    server, _ = start_coordinated()
    mail, reader = server.elector("mail-0", "shop/mail"), server.elector("b", "shop/db")
    mail.take()
    for _ in mail.ticks(40):
        mail.renew()
        reader.ask()
    assert "does not take it" not in advise(explain(server))


def watch_silence(second: int, *, ends: bool = False) -> Account:
    """Return what a watch shows of a silence in which a candidate is written, in a second of it.

    `ends`: it goes on until the end, which another lease shows.
    """
    server, first = start_coordinated()
    head, stored = server.watch(), candidate()
    server.now += second * SECOND
    stored["metadata"] |= {"resourceVersion": "200"}
    entry: Document = {"manager": "kube-apiserver", "operation": "Update", "time": format_time(server.now)}
    entry |= {"apiVersion": "coordination.k8s.io/v1beta1", "fieldsType": "FieldsV1", "fieldsV1": {}}
    stored["metadata"]["managedFields"] = [entry]
    lines = json.dumps({"type": "MODIFIED", "object": stored}).encode() + b"\n"
    server.now += (30 - second) * SECOND
    if ends:
        server.elector("x", "x/x").lead(8)
    else:
        first.renew(strategy="OldestEmulationVersion")
    tail = server.watch()[len(head) :]
    return account(cluster_of(head + lines + tail), server.now)


@pytest.mark.parametrize(("second", "is_said"), [(1, False), (12, True), (30, False)])
def test_a_candidate_that_was_written_meanwhile_shows_that_an_api_server_was_there(second: int, is_said: bool) -> None:
    output = text(watch_silence(second))
    said = "Why is not known: an API server stored LeaseCandidates meanwhile, the last at 11:07:12Z; no other lease in"
    assert (said in output) == is_said
    assert ("no other lease in the input shows whether the API server was unavailable" in output) != is_said


def test_of_a_lease_that_is_not_renewed_until_the_end_the_last_renewals_of_others_say_more() -> None:
    cause = watch_silence(12, ends=True).cause
    assert cause is not None
    assert cause.evidence.startswith("1 other lease went on being renewed")


UUID = "2d8f1c9e-0b1a-4c3d-9e8f-7a6b5c4d3e2f"


def ping_named(name: str, *, deleted: str = "", maker: str = "", user: str = "") -> str:
    """Return what is said of a ping of a candidate of a name, whose pod wrote it, or was deleted."""
    server, first = start_coordinated()
    server.uids = {"w-0": "uid-w-0", f"w-{UUID}": "uid-w"}
    if maker:
        event(server, "create", ping(pingTime=None))
        server.log[-1]["user"] = {"username": user or first.user, "extra": server._extra(maker)}
        server.log[-1]["responseObject"]["metadata"]["name"] = name
        server.log[-1]["objectRef"]["name"] = name
    event(server, "update", ping(), user=API_SERVER)
    server.log[-1]["responseObject"]["metadata"]["name"] = name
    server.log[-1]["objectRef"]["name"] = name
    if deleted:
        server.delete_pod(deleted)
    for _ in first.ticks(20):
        first.renew(strategy="OldestEmulationVersion")
    answer = explain(server)
    return f"{text(answer)} {advise(answer)}"


@pytest.mark.parametrize(
    ("name", "maker", "pod"),
    [
        (f"db-1-{UUID}", "", "db-1"),
        (f"db-1-{UUID}", "w-0", "w-0"),
        (f"db-1-{UUID}", f"w-{UUID}", f"w-{UUID}"),
        ("db-1", "", "db-1"),
    ],
    ids=["by its name without a UUID", "that a log shows", "that a log shows, with a UUID", "by its name"],
)
def test_the_log_of_the_pod_of_a_candidate_is_looked_at(name: str, maker: str, pod: str) -> None:
    assert f"kubectl -n shop logs {pod}" in ping_named(name, maker=maker).splitlines()[-1]
    assert f"logs {name};" not in ping_named(f"db-1-{UUID}", maker=maker)


def test_the_pod_of_a_candidate_is_looked_for_where_its_account_is() -> None:
    said = ping_named("db-1", maker="w-0", user="system:serviceaccount:operators:db")
    assert "kubectl -n operators logs w-0" in said.splitlines()[-1]


@pytest.mark.parametrize(
    ("name", "maker", "deleted", "is_said"),
    [
        (f"db-1-{UUID}", "", "db-1", False),
        (f"db-1-{UUID}", "", "db-2", True),
        (f"db-1-{UUID}", "w-0", "w-0", False),
        ("a_1", "", "a", False),
        ("b_1", "", "a", True),
    ],
    ids=["named so", "another", "that wrote it", "that held the lease by its name", "that is not its own"],
)
def test_a_candidate_whose_pod_was_deleted_is_not_said_to_be_deaf(
    name: str, maker: str, deleted: str, is_said: bool
) -> None:
    assert ("Candidate: " in ping_named(name, maker=maker, deleted=deleted)) is is_said


def test_that_it_is_held_is_said_once() -> None:
    server = play(("create", candidate(), "mallory"), ("update", ping(), API_SERVER))
    assert advise_with_urgency(explain(server)).sentence == (
        "See why LeaseCandidate db-1 did not answer its ping: an API server chooses only among those that do. It is "
        "held and renewed. Check whether its candidates should have changed:"
    )


OLD, NEW = "cp-2_74d1da1d-1591-415c-9981-414c1f009b54", "cp-2_20f80bcc-a200-463d-ac99-5ece0939e0b9"


def name(stored: Document, other: str, created: str) -> Document:
    stored["metadata"] |= {"name": other, "creationTimestamp": created, "uid": other}
    return stored


@pytest.mark.parametrize(
    ("other", "created", "answers", "is_replaced"),
    [
        (NEW, "2026-11-18T11:07:00Z", True, True),
        (NEW, "2026-11-18T11:00:00Z", True, False),
        (NEW, "2026-11-18T11:07:00Z", False, False),
        (NEW.replace("cp-2", "cp-3"), "2026-11-18T11:07:00Z", True, False),
        ("cp-2", "2026-11-18T11:07:00Z", True, False),
    ],
    ids=["it is newer", "it is older", "it does not answer either", "it is of another host", "it has no UUID"],
)
def test_a_candidate_whose_process_started_again_is_not_looked_at(
    other: str, created: str, *, answers: bool, is_replaced: bool
) -> None:
    server, first = start_coordinated()
    for one, at in ((OLD, "2026-11-18T11:06:00Z"), (other, created)):
        event(server, "create", name(candidate(), one, at), user="system:kube-scheduler")
        server.log[-1]["objectRef"]["name"] = one
    for one, at in ((OLD, "2026-11-18T11:06:00Z"), *(() if answers else ((other, created),))):
        event(server, "update", name(ping(), one, at), user=API_SERVER)
        server.log[-1]["objectRef"]["name"] = one
    for _ in first.ticks(20):
        first.renew(strategy="OldestEmulationVersion")
    answer = explain(server)
    words = f"the input shows no answer: {NEW}, created at 11:07:00Z, may have replaced it"
    assert (words in text(answer)) is is_replaced
    assert ("did not answer its ping" in advise(answer)) is not is_replaced


def test_a_candidate_named_for_a_node_is_looked_for_among_the_pods_there() -> None:
    server, first = start_coordinated()
    server.elector("cp-2", "kube-node-lease/cp-2", user="system:node:cp-2", pod="").lead(20)
    event(server, "update", name(ping(), OLD, "2026-11-18T11:06:00Z"), user=API_SERVER)
    server.log[-1]["objectRef"]["name"] = OLD
    for _ in first.ticks(20):
        first.renew(strategy="OldestEmulationVersion")
    output = advise(explain(server))
    pods = "kubectl -n shop get pods -o wide --field-selector spec.nodeName=cp-2"
    where = "an API server chooses only among those that do. See the pod of a_1"
    assert f"{where}: {pods}; kubectl -n shop describe pod a" in output
    assert "logs cp-2" not in output


def test_beside_a_holder_that_renews_it_is_said_where_the_pods_of_a_candidate_are() -> None:
    server, first = start_coordinated()
    kubelet = server.elector("cp-2", "kube-node-lease/cp-2", user="system:node:cp-2", pod="")
    kubelet.take()
    event(server, "update", name(ping(), OLD, "2026-11-18T11:06:00Z"), user=API_SERVER)
    server.log[-1]["objectRef"]["name"] = OLD
    for _ in first.ticks(20):
        first.renew(strategy="OldestEmulationVersion")
        kubelet.renew()
    output = advise(explain(server))
    assert "The pods on node cp-2, for which it is named: kubectl -n shop get pods -o wide --field-sel" in output
