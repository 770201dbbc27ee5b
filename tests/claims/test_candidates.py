"""What is done to the LeaseCandidates of an election is said: an API server chooses by what they say."""

import json

import pytest

from tests.claims.accounts import account, shop, text
from tests.claims.test_coordinated import STRATEGY, chooses, start_coordinated, writes
from tests.factories import Document
from tests.history.fake_server import FakeServer
from tests.history.observing import advise, cluster_of, follow_log
from tests.inputs.reading import read
from webhook.analysis.claims.facts import find_claims
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.analysis.history.follow import ClusterHistory
from webhook.kubernetes.times import format_micro_time

SPEC = {
    "leaseName": "db",
    "binaryVersion": "1.37.0",
    "emulationVersion": "1.37.0",
    "strategy": "OldestEmulationVersion",
    "renewTime": "2026-11-18T11:06:40.000000Z",
}


def candidate(**changes: object) -> Document:
    spec = {key: value for key, value in (SPEC | changes).items() if value is not None}
    metadata = {"name": "db-1", "namespace": "shop", "uid": "u", "resourceVersion": "7"}
    return {"apiVersion": "coordination.k8s.io/v1beta1", "kind": "LeaseCandidate", "metadata": metadata, "spec": spec}


def event(server: FakeServer, verb: str, stored: Document | None, code: int = 200, user: str = "mallory") -> None:
    """Have the log of a server show a write to the candidate."""
    server.log.append(
        {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Event",
            "level": "RequestResponse",
            "stage": "ResponseComplete",
            "verb": verb,
            "user": {"username": user},
            "objectRef": {
                "resource": "leasecandidates",
                "apiGroup": "coordination.k8s.io",
                "apiVersion": "v1beta1",
                "namespace": "shop",
                "name": "db-1",
            },
            "responseStatus": {"code": code},
            "responseObject": stored or {"kind": "Status", "apiVersion": "v1"},
            "requestReceivedTimestamp": format_micro_time(server.now),
            "stageTimestamp": format_micro_time(server.now),
        }
    )


def led(*writes: tuple[str, Document | None, int]) -> FakeServer:
    server, (db, *_) = shop()
    db.lead(20)
    for verb, stored, code in writes:
        event(server, verb, stored, code, db.user if verb == "create" else "mallory")
        server.wait(1)
    db.lead(20)
    return server


CREATED = ("create", candidate(), 201)


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (("update", candidate(emulationVersion="1.36.0"), 200), 'emulationVersion "1.37.0" -> "1.36.0" by mallory'),
        (("update", candidate(emulationVersion=None), 200), 'emulationVersion "1.37.0" -> absent by mallory'),
        (("update", candidate(leaseName="mail"), 200), 'leaseName "db" -> "mail" by mallory'),
        (("delete", None, 200), "LeaseCandidate db-1 was deleted by mallory"),
    ],
)
def test_an_edit_or_a_deletion_of_a_candidate_is_shown_with_its_writer(
    write: tuple[str, Document | None, int], expected: str
) -> None:
    server = led(CREATED, write)
    answer = account(cluster_of(server.audit_log()), server.now)
    (line,) = [line.text for line in list_latest(answer) if "LeaseCandidate" in line.text]
    assert expected in line
    assert line in text(answer)
    assert advise(answer).startswith("It is held and renewed. Check whether its candidates should have changed:")


@pytest.mark.parametrize(
    "write",
    [
        ("update", candidate(renewTime="2026-11-18T11:07:40.000000Z"), 200),
        ("update", candidate(pingTime="2026-11-18T11:07:40.000000Z"), 200),
        ("update", candidate(emulationVersion="1.36.0"), 403),
        ("delete", None, 403),
        ("get", candidate(emulationVersion="1.36.0"), 200),
    ],
    ids=["a renewal", "a ping", "a refused edit", "a refused deletion", "a read"],
)
def test_requests_that_change_no_candidate_are_not_shown(write: tuple[str, Document | None, int]) -> None:
    server = led(CREATED, write)
    answer = account(cluster_of(server.audit_log()), server.now)
    assert "LeaseCandidate" not in text(answer)
    assert advise(answer) == "It is held and renewed; a lease does not show whether its holder works."


def test_a_refused_deletion_leaves_the_candidate_known() -> None:
    server = led(CREATED, ("delete", None, 403), ("update", candidate(emulationVersion="1.36.0"), 200))
    output = text(account(cluster_of(server.audit_log()), server.now))
    assert 'emulationVersion "1.37.0" -> "1.36.0" by mallory' in output


@pytest.mark.parametrize("is_known", [True, False])
def test_a_watch_shows_a_deletion_without_its_writer(is_known: bool) -> None:
    server, (db, *_) = shop()
    db.lead(20)
    before = [{"type": "ADDED", "object": candidate()}] if is_known else []
    changes = [*before, {"type": "DELETED", "object": candidate()}]
    histories = ClusterHistory()
    for item in read("in", [server.watch() + b"".join(json.dumps(one).encode() + b"\n" for one in changes)]):
        histories.add(item)
    output = text(account(histories, server.now))
    assert ("LeaseCandidate db-1 was deleted, then or later" in output) == is_known


def test_a_candidate_that_was_deleted_and_not_created_again_cannot_be_chosen() -> None:
    gone = "the input does not show that it was created again"
    deletion = ("delete", None, 200)
    for requests, is_gone in (((CREATED, deletion), True), ((CREATED, deletion, CREATED), False)):
        server = led(*requests)
        lines = [line.text for line in list_latest(account(cluster_of(server.audit_log()), server.now))]
        assert any(gone in line for line in lines) is is_gone


UNKNOWN = "the server could not find the requested resource"


def list_candidates(server: FakeServer, code: int, message: str, version: str = "v1beta1", verb: str = "list") -> None:
    """Have the log show a request for LeaseCandidates of a version."""
    event(server, verb, {"kind": "Status", "message": message}, code)
    server.log[-1]["responseStatus"]["message"] = message
    server.log[-1]["objectRef"]["apiVersion"] = version
    del server.log[-1]["objectRef"]["name"]


def is_said_unserved(server: FakeServer) -> bool:
    """Return whether it is said that the API server serves no candidates; all that says so agrees."""
    explained = account(cluster_of(server.audit_log()), server.now)
    advice = {
        "if it serves none at all, it chooses no holder" in text(explained),
        advise(explained).startswith("See whether the API server serves another version of LeaseCandidates"),
        any(found.check == "candidates-not-served" for found in find_claims(explained)),
    }
    (answer,) = advice
    return answer


@pytest.mark.parametrize(
    ("code", "message", "is_served"),
    [
        (404, UNKNOWN, False),
        (404, 'leasecandidates.coordination.k8s.io "db-1" not found', True),
        (200, "", True),
        (403, UNKNOWN, True),
    ],
    ids=["an unknown resource", "a candidate that does not exist", "a list", "no right to list"],
)
def test_an_api_server_that_serves_no_candidates_of_a_version_may_choose_no_holder(
    *, code: int, message: str, is_served: bool
) -> None:
    server, _ = start_coordinated()
    server.wait(40)
    list_candidates(server, code, message)
    assert is_said_unserved(server) is not is_served


@pytest.mark.parametrize("other", ["v1alpha1", "v1alpha2"])
def test_a_request_by_a_version_that_is_not_served_says_nothing_of_a_version_that_is(other: str) -> None:
    server, _ = start_coordinated()
    list_candidates(server, 200, "")
    server.wait(40)
    list_candidates(server, 404, UNKNOWN, other)
    assert not is_said_unserved(server)
    list_candidates(server, 404, UNKNOWN)
    assert is_said_unserved(server)


def test_the_versions_that_are_not_served_are_named_and_no_other_is_concluded_from_them() -> None:
    server, _ = start_coordinated()
    server.wait(40)
    list_candidates(server, 404, UNKNOWN, "v1alpha1")
    explained = account(cluster_of(server.audit_log()), server.now)
    assert "that it does not serve LeaseCandidates of v1alpha1; if it serves none" in text(explained)
    assert "LeaseCandidates than v1alpha1. If so, upgrade the replicas to it" in advise(explained)
    server.wait(20)
    list_candidates(server, 404, UNKNOWN, "v1alpha2")
    assert "the API server answered from 11:07:40Z until 11:08:00Z that" in text(
        account(cluster_of(server.audit_log()), server.now)
    )
    assert "LeaseCandidates of v1alpha1 and v1alpha2;" in text(account(cluster_of(server.audit_log()), server.now))


def test_a_version_that_no_release_needs_says_nothing() -> None:
    server, _ = start_coordinated()
    server.wait(40)
    list_candidates(server, 404, UNKNOWN, "v9")
    assert not is_said_unserved(server)


@pytest.mark.parametrize(("code", "is_served"), [(201, True), (409, False)])
def test_candidates_are_served_again_once_one_is_created(*, code: int, is_served: bool) -> None:
    server, _ = start_coordinated()
    server.wait(40)
    list_candidates(server, 404, UNKNOWN)
    list_candidates(server, code, "", verb="create")
    assert is_said_unserved(server) is not is_served


def test_who_created_a_candidate_is_said_if_that_is_no_holder_of_the_lease() -> None:
    server = led()
    event(server, *CREATED)
    said = 'LeaseCandidate db-1 was created with emulationVersion "1.37.0" by mallory'
    answer = account(cluster_of(server.audit_log()), server.now)
    assert said in text(answer)
    assert any(said in line.text for line in list_latest(answer))


def test_who_created_a_candidate_that_is_gone_is_said_beside_its_deletion() -> None:
    server = led()
    event(server, *CREATED)
    event(server, "delete", None)
    answer = account(cluster_of(server.audit_log()), server.now)
    latest = [line.text for line in list_latest(answer)]
    assert [one.partition(" with")[0].partition(" by")[0] for one in latest] == [
        "LeaseCandidate db-1 was created",
        "LeaseCandidate db-1 was deleted",
    ]
    assert "created again" not in latest[0]


@pytest.mark.parametrize("has_holder", [True, False], ids=["of the holder's account", "of a lease without a holder"])
def test_that_a_replica_created_its_candidate_is_no_news(*, has_holder: bool) -> None:
    server, (db, *_) = shop()
    if has_holder:
        db.lead(20)
    else:
        db.fail(403)
    event(server, *CREATED, user=db.user)
    assert "LeaseCandidate" not in text(account(cluster_of(server.audit_log()), server.now))


def test_an_update_of_a_candidate_that_was_not_seen_before_says_nothing_of_what_it_changed() -> None:
    server = led(("update", candidate(emulationVersion="1.36.0"), 200))
    assert "LeaseCandidate" not in text(account(cluster_of(server.audit_log()), server.now))


def choose_by_version(own: str, other: str, *, is_asked: bool = True, edit: str = "") -> str:
    """Return what is said of b_1, which follows a_1, by the versions that their candidates emulate."""
    server, first = start_coordinated()
    edits = (("update", "b_1", edit),) if edit else ()
    for verb, holder, version in (("create", "a_1", other), ("create", "b_1", own), *edits):
        stored = candidate(emulationVersion=version)
        stored["metadata"]["name"] = holder
        event(server, verb, stored, user=first.user)
        server.log[-1]["objectRef"]["name"] = holder
    if is_asked:
        writes(server, preferredHolder="b_1")
    server.wait(17)
    chooses(server, "b_1")
    server.wait(1)
    server.elector("b", "shop/db").renew(strategy=STRATEGY)
    return text(account(follow_log(server), server.now))


def test_who_was_preferred_for_its_older_version_is_said_to_be() -> None:
    said = choose_by_version("1.36.0", "1.37.0")
    assert "; chosen for its older emulationVersion, 1.36.0: that of a_1 is 1.37.0" in said


@pytest.mark.parametrize(
    "said",
    [
        choose_by_version("1.37.0", "1.37.0"),
        choose_by_version("1.36.0", "1.37.0", is_asked=False),
        choose_by_version("1.36.0", "whatever"),
        choose_by_version("1.36.0", "1.37.0", edit="1.35.0"),
    ],
    ids=["it is as old", "the other one had stopped", "one is no version", "it was edited"],
)
def test_why_another_was_chosen_may_not_be_shown(said: str) -> None:
    assert "the API server chose b_1" in said
    assert "older emulationVersion" not in said


def test_who_may_have_been_removed_is_not_said_to_have_released_the_lease() -> None:
    server = FakeServer()
    first, second = (server.elector(one, "shop/db", user="system:scheduler", pod="") for one in "ab")
    first.take(strategy=STRATEGY)
    for _ in first.ticks(20):
        first.renew(strategy=STRATEGY)
    first.release()
    server.leases["shop/db"]["spec"]["strategy"] = STRATEGY
    server.wait(1)
    chooses(server, "b_1")
    for _ in second.ticks(10):
        second.renew(strategy=STRATEGY)
    assert "the API server chose b_1 after a_1 released it, or was removed" in text(
        account(follow_log(server), server.now)
    )
