"""Pods that wait for a lease of a coordinated election, and are candidates for another one."""

from typing import Any

import pytest

from tests.claims.accounts import account, text
from tests.claims.test_candidates import candidate
from tests.claims.test_coordinated import chooses, start_coordinated
from tests.history.fake_server import FakeServer
from tests.history.observing import advise, follow_log
from webhook.analysis.claims.account import Account
from webhook.analysis.history.elections import candidate_writers
from webhook.analysis.history.elections.candidate_writers import CandidateWriters
from webhook.analysis.history.holders.tenure import API_SERVER
from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Writer

USER = "system:serviceaccount:shop:db"


def write(server: FakeServer, pod: str, lease: str, verb: str = "create", name: str = "") -> None:
    """Have the log show that a pod wrote its LeaseCandidate, or that somebody deleted it."""
    user = USER if verb != "delete" else "admin"
    server.log_request("shop/db", verb, user, pod if verb != "delete" else "", {}, 201 if verb == "create" else 200)
    event, stored = server.log[-1], candidate(leaseName=lease)
    stored["metadata"]["name"] = name or pod
    event["objectRef"] |= {"resource": "leasecandidates", "name": name or pod, "apiVersion": "v1beta1"}
    event["responseObject"] = stored if verb != "delete" else {"kind": "Status", "apiVersion": "v1"}


def wait_in_vain(
    *candidates: tuple[str, str], pods: tuple[str, ...] = ("b", "c"), is_released: bool = True, chosen: str = ""
) -> FakeServer:
    """A lease that is released, or expires, and for which pods ask; by pod, the leases that their candidates name."""
    server, first = start_coordinated()
    server.uids |= {pod: f"uid-{pod}" for pod in pods}
    if is_released:
        first.release()
        server.leases["shop/db"]["spec"]["strategy"] = "OldestEmulationVersion"
    for pod, lease in candidates:
        server.wait(1)
        write(server, pod, lease)
    if chosen:
        spec = {"holderIdentity": chosen, "leaseDurationSeconds": 5, "strategy": "OldestEmulationVersion"}
        server.write("shop/other", spec, "kube-apiserver", API_SERVER, "")
    for _ in range(20):
        for pod in pods:
            server.wait(1)
            server.elector(pod, "shop/db").ask()
    return server


def explain(server: FakeServer) -> Account:
    return account(follow_log(server), server.now)


@pytest.mark.parametrize("is_released", [True, False], ids=["released", "expired"])
def test_pods_whose_candidates_name_another_lease_wait_in_vain(is_released: bool) -> None:
    answer = explain(wait_in_vain(("b", "other"), ("c", "other"), is_released=is_released, chosen="b"))
    output = text(answer)
    assert (
        "Candidates: pod b and pod c ask for this lease, but their LeaseCandidates are for lease other, and none in "
        "the log is for this one; an API server chose b for other at "
    ) in output
    assert (
        "set leaseName in those of pod b and pod c to the lease that they wait for. To see which lease each is for: "
        "kubectl -n shop get leasecandidates -o custom-columns=NAME:.metadata.name,LEASE:.spec.leaseName"
    ) in advise(answer)


def test_one_pod_has_one_candidate_and_no_choice_need_be_shown() -> None:
    output = text(explain(wait_in_vain(("b", "other"), pods=("b",))))
    assert (
        "Candidates: pod b asks for this lease, but its LeaseCandidates are for lease other, and none in the log is "
        "for this one\n"
    ) in output


@pytest.mark.parametrize(
    "candidates",
    [
        [("b", "other")],
        [("b", "other"), ("c", "db")],
        [("b", "other"), ("c", "third")],
        [],
    ],
    ids=["one has none", "one is for this lease", "they name different leases", "there are none"],
)
def test_nothing_is_said_unless_all_are_for_one_other_lease(candidates: list[tuple[str, str]]) -> None:
    assert "Candidates:" not in text(explain(wait_in_vain(*candidates)))


def test_a_lease_that_no_api_server_gives_away_needs_no_candidates() -> None:
    server = wait_in_vain(("b", "other"), ("c", "other"))
    for event in server.log:
        if event["objectRef"]["resource"] == "leases" and "spec" in event["responseObject"]:
            event["responseObject"]["spec"].pop("strategy", None)
    assert "Candidates:" not in text(explain(server))


def test_a_candidate_that_was_deleted_or_renamed_to_this_lease_does_not_count() -> None:
    server = wait_in_vain(("b", "other"), pods=("b",))
    write(server, "b", "other", "delete")
    assert "Candidates:" not in text(explain(server))
    server = wait_in_vain(("b", "other"), pods=("b",))
    write(server, "b", "db", "update")
    assert "Candidates:" not in text(explain(server))


def follow_writers(server: FakeServer) -> CandidateWriters:
    return follow_log(server).candidate_writers


def test_what_no_pod_wrote_has_no_writer() -> None:
    server, _ = start_coordinated()
    write(server, "b", "other")
    server.log[-1]["user"]["extra"] = {}
    assert follow_writers(server).find_pod("shop", "b") is None
    server.uids["b"] = "uid-b"
    write(server, "b", "other")
    server.log[-1] |= {"impersonatedUser": server.log[-1]["user"], "user": {"username": "alice"}}
    write(server, "b", "other", "get")
    assert follow_writers(server).find_pod("shop", "b") is None


def test_of_many_candidates_and_pods_the_latest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_writers, "MAX_PODS", 1)
    server, _ = start_coordinated()
    server.uids |= {"b": "uid-b", "c": "uid-c"}
    for number in range(MAX_LISTED + 1):
        write(server, "b", "other", name=f"b-{number}")
    kept = follow_writers(server)
    assert kept.find_pod("shop", "b-0") is None
    who: Any = kept.find_pod("shop", "b-1")
    assert who.pod == "b"
    assert len(kept.list_leases("shop", who)) == MAX_LISTED
    write(server, "c", "other")
    kept = follow_writers(server)
    assert kept.find_pod("shop", "b-1") is None
    assert kept.list_leases("shop", Writer(USER, "b", "", "uid-b")) == {}


def test_the_candidates_are_said_instead_of_a_ping_that_an_earlier_one_did_not_answer() -> None:
    server = wait_in_vain(("b", "other"), pods=("b",))
    assert "Candidate:" not in text(explain(server))
    chooses(server, "z_1")
    assert "Candidates:" not in text(explain(server))
