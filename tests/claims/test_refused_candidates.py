"""LeaseCandidates that an API server refuses: whoever has none cannot be chosen, however often it reads the lease."""

from typing import Any

import pytest

from tests.claims.accounts import account, text
from tests.claims.test_candidates import candidate
from tests.claims.test_coordinated import start_coordinated
from tests.claims.test_related_writes import RIGHTS, log_write
from tests.factories import put
from tests.history.fake_server import SECOND, FakeServer
from tests.history.observing import advise, cluster_of, follow_log, follow_metadata, follow_watch
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.facts import find_claims
from webhook.analysis.history.audit_log.refusal import UNKNOWN_RESOURCE
from webhook.analysis.history.elections import refused_candidates
from webhook.kubernetes.times import format_micro_time, format_time

INVALID = 'LeaseCandidate.coordination.k8s.io "b" is invalid: spec.binaryVersion: Invalid value: "1.9"'
USER = "system:serviceaccount:shop:db"
FORBIDDEN = (
    f'leasecandidates.coordination.k8s.io "b" is forbidden: User "{USER}" cannot {{}} resource "leasecandidates"'
)
NOT_THERE = 'leasecandidates.coordination.k8s.io "b" not found'


def write(server: FakeServer, pod: str, code: int, message: str = INVALID, user: str = USER, **more: Any) -> None:
    """Have the log show a write to the LeaseCandidate of a pod."""
    server.log_request("shop/db", more.pop("verb", "create"), user, pod, {"message": message}, code)
    event = server.log[-1]
    event["objectRef"] |= {"resource": "leasecandidates", "name": pod, "apiVersion": "v1beta1"}
    event["requestObject"] = candidate(**more)


def refuse(*pods: str, times: int = 4, is_asked: bool = True, **refusal: Any) -> FakeServer:
    """A lease of a coordinated election that nobody renews, and whose other replicas are refused."""
    server, _ = start_coordinated()
    for _ in range(times):
        for pod in pods:
            server.wait(6 / len(pods))
            if is_asked:
                server.elector(pod, "shop/db").ask()
            write(server, pod, **{"code": 422, **refusal})
    return server


def explain(server: FakeServer) -> Account:
    return account(follow_log(server), server.now)


def test_who_is_refused_does_not_ask_for_the_lease_and_its_answer_is_said() -> None:
    answer = explain(refuse("b", "c"))
    output = text(answer)
    assert "; the LeaseCandidates of pod b and pod c were refused\n" in output
    assert (
        "write-refused: 8 writes of LeaseCandidates for it, by shop/db from pod b and shop/db from pod c, refused "
        "with 422, the last one at 11:07:24Z: an API server chooses only among those that are stored. Its answer: "
        f"{INVALID}"
    ) in output
    assert "asks for it" not in output
    assert advise(answer) == (
        "Without a stored LeaseCandidate, pod b and pod c cannot be chosen. Correct what was refused. "
        "To compare images: kubectl -n shop get pods,replicasets -o wide"
    )


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (
            {"code": 403, "message": f'leasecandidates.coordination.k8s.io is forbidden: User "{USER}" cannot create'},
            f"now: kubectl auth can-i create leasecandidates.coordination.k8s.io -n shop --as={USER}",
        ),
        (
            {"code": 403, "message": 'admission webhook "guard.example.com" denied the request: no'},
            "See why webhook guard.example.com refuses that: lease-webhook doctor",
        ),
        (
            {
                "code": 422,
                "message": "leasecandidates.coordination.k8s.io \"b\" is forbidden: ValidatingAdmissionPolicy 'own' "
                "with binding 'own' denied request: no",
            },
            "See why the policy refuses that: kubectl get validatingadmissionpolicies",
        ),
        (
            {
                "code": 403,
                "message": 'leasecandidates.coordination.k8s.io "b" is forbidden: exceeded quota: counts, requested: '
                "count/leasecandidates.coordination.k8s.io=1, used: count/leasecandidates.coordination.k8s.io=1, "
                "limited: count/leasecandidates.coordination.k8s.io=1",
            },
            "quota, too: kubectl -n shop describe resourcequota counts; kubectl -n shop get leasecandidates",
        ),
    ],
    ids=["a missing right", "a webhook", "a policy", "a quota"],
)
def test_advice_fits_who_refused(refusal: dict[str, Any], expected: str) -> None:
    if " cannot create" in refusal["message"]:
        refusal["message"] += ' resource "leasecandidates"'
    assert expected in advise(explain(refuse("b", **refusal)))


def test_an_update_without_the_right_names_that_right() -> None:
    message = f'leasecandidates.coordination.k8s.io "b" is forbidden: User "{USER}" cannot update resource'
    answer = explain(refuse("b", code=403, message=message, verb="update"))
    assert "kubectl auth can-i update leasecandidates.coordination.k8s.io -n shop" in advise(answer)


def test_a_candidate_that_was_stored_later_is_refused_no_longer() -> None:
    server = refuse("b")
    server.wait(1)
    write(server, "b", 201)
    server.log[-1]["responseObject"] = candidate()
    output = text(explain(server))
    assert "4 requests of pod b for LeaseCandidates answered with 422, the last one at 11:07:24Z, and none" in output
    assert "write-refused" not in output


def refuse_reads(*, pods: tuple[str, ...] = ("b",), until: dict[str, Any] | None = None) -> FakeServer:
    """Pods that may not read their LeaseCandidates; `until` is the answer to the last read of each."""
    message = FORBIDDEN.format("get")
    server = refuse(*pods, code=403, message=message, verb="get")
    if until is not None:
        for pod in pods:
            server.wait(1)
            write(server, pod, verb="get", **until)
    return server


def test_who_may_not_read_its_candidate_does_not_try_to_store_one() -> None:
    answer = explain(refuse_reads(pods=("b", "c")))
    (claim,) = (one for one in answer.findings if one.check == "read-refused")
    assert "8 reads of LeaseCandidates for it, by shop/db from pod b and shop/db from pod c, refused" in claim.message
    assert "kubectl auth can-i get leasecandidates.coordination.k8s.io -n shop" in advise(answer)


def test_of_a_process_that_also_writes_only_the_refused_writes_count() -> None:
    server = refuse_reads()
    write(server, "b", 403, FORBIDDEN.format("create"))
    checks = [one.check for one in explain(server).findings]
    assert ("write-refused" in checks, "read-refused" in checks) == (True, False)


@pytest.mark.parametrize("code", [200, 404])
def test_reads_that_are_allowed_again_end_the_refusals(code: int) -> None:
    server = refuse_reads(until={"code": code, "message": "" if code == 200 else NOT_THERE})
    output = text(explain(server))
    assert "4 requests of pod b for LeaseCandidates answered with 403, the last one at 11:07:24Z, and none" in output
    assert "read-refused" not in output


def test_an_api_server_that_does_not_serve_candidates_shows_no_right_to_read_them() -> None:
    server = refuse_reads(until={"code": 404, "message": UNKNOWN_RESOURCE})
    assert "read-refused" in {one.check for one in explain(server).findings}


def test_a_role_that_ended_the_refusals_of_candidates_is_told() -> None:
    server = refuse_reads()
    server.wait(1)
    log_write(server, "roles", RIGHTS, put("verb", "patch"))
    write(server, "b", 404, NOT_THERE, verb="get")
    assert "Role shop/db was updated by alice@example.org" in text(explain(server))


def test_of_many_candidates_that_are_accepted_the_latest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_candidates, "MAX_REFUSED", 2)
    server = refuse()
    for pod in ("b", "c", "d"):
        server.elector(pod, "shop/db").ask()
        for _ in range(2):
            server.wait(4)
            write(server, pod, 403, FORBIDDEN.format("get"), verb="get")
        write(server, pod, 404, NOT_THERE, verb="get")
    assert "4 requests of pod c and pod d for LeaseCandidates answered" in text(explain(server))


def test_what_an_api_server_did_not_serve_for_a_while_kept_candidates_out() -> None:
    server = refuse("b", code=404, message=UNKNOWN_RESOURCE, verb="get")
    server.wait(1)
    write(server, "b", 404, NOT_THERE, verb="get")
    output = text(explain(server))
    assert "4 requests of pod b for LeaseCandidates answered with 404" in output
    assert "read-refused" not in output


def test_what_an_api_server_that_starts_refuses_for_a_moment_is_not_told() -> None:
    server = refuse("b", times=1, code=403, message=FORBIDDEN.format("get"), verb="get")
    server.wait(1)
    write(server, "b", 404, NOT_THERE, verb="get")
    assert "LeaseCandidates" not in text(explain(server))


@pytest.mark.parametrize(
    "refusal",
    [{"user": "mallory"}, {"code": 409}, {"code": 404}, {"leaseName": "mail"}, {"verb": "get"}, {"verb": "delete"}],
    ids=["a stranger's", "one that exists", "one that does not", "that of another lease", "a read", "a deletion"],
)
def test_other_answers_do_not_say_that_a_replica_cannot_be_chosen(refusal: dict[str, Any]) -> None:
    server = refuse("b", times=0)
    server.wait(30)
    server.elector("b", "shop/db").ask()
    write(server, "b" if "user" not in refusal else "", **{"code": 422, **refusal})
    assert "LeaseCandidate" not in text(explain(server))


def test_a_dry_run_is_no_refusal() -> None:
    server = refuse("b", times=1)
    server.log[-1]["requestURI"] += "?dryRun=All"
    assert "LeaseCandidate" not in text(explain(server))


@pytest.mark.parametrize("is_asked", [True, False], ids=["that it asked for", "that it never asked for"])
def test_without_the_requests_a_candidate_is_of_the_lease(*, is_asked: bool) -> None:
    server = refuse("b", is_asked=is_asked)
    for one in server.log:
        one.pop("requestObject", None)
    answer = account(cluster_of(server.audit_log(metadata_only=True)), server.now)
    assert ("4 writes of LeaseCandidates for it" in text(answer)) is is_asked


def test_that_no_lease_exists_where_candidates_are_refused_is_no_wait_for_clients() -> None:
    server = FakeServer()
    for _ in range(4):
        server.wait(6)
        server.log_request("shop/db", "get", USER, "b", {"message": "not found"}, 404)
        write(server, "b", 422)
    assert advise(explain(server)).startswith("Without a stored LeaseCandidate, pod b cannot be chosen.")


def test_after_a_release_those_that_are_refused_are_named() -> None:
    server, first = start_coordinated()
    first.release()
    stored = server.leases["shop/db"]
    server.write("shop/db", stored["spec"] | {"strategy": "OldestEmulationVersion"}, "operator", first.user, "a")
    for _ in range(4):
        server.wait(6)
        server.elector("b", "shop/db").ask()
        write(server, "b", 422)
    answer = explain(server)
    assert "; the LeaseCandidates of pod b were refused" in text(answer)
    assert advise(answer).startswith("Without a stored LeaseCandidate, pod b cannot be chosen.")


def test_refusals_of_long_ago_are_over() -> None:
    server = refuse("b")
    last = server.now
    server.wait(90)
    server.elector("c", "shop/db").ask()
    (claim,) = [one for one in explain(server).findings if one.check == "write-refused"]
    assert getattr(claim, "over_since", None) == last


def test_who_is_refused_while_another_one_leads_does_not_wait_for_the_lease() -> None:
    server, first = start_coordinated()
    follower = server.elector("b", "shop/db")
    for _ in range(10):
        server.wait(2)
        first.renew(strategy="OldestEmulationVersion")
        follower.ask()
    assert "Readers: b " in text(explain(server))
    write(server, "b", 422)
    server.wait(0.5)
    first.renew(strategy="OldestEmulationVersion")
    assert "Readers" not in text(explain(server))


def test_only_the_latest_of_many_processes_are_kept() -> None:
    server = refuse(*(f"b-{number}" for number in range(70)), times=1)
    output = text(explain(server))
    assert "64 writes of LeaseCandidates for it" in output
    assert "pod b-69 and 60 others cannot be chosen" in output


# ---- the end of a watch ----------------------------------------------------------------------------------------------


def ping(server: FakeServer, *names: str, first: str = "MODIFIED") -> None:
    """Have a watch show that an API server asked candidates whether they are there."""
    for name in names:
        shown = candidate(pingTime=format_micro_time(server.now))
        stamp = {"manager": "kube-apiserver", "operation": "Update", "time": format_time(server.now)}
        entry = stamp | {"apiVersion": "coordination.k8s.io/v1beta1", "fieldsType": "FieldsV1"}
        metadata = shown["metadata"] | {"name": name, "managedFields": [entry | {"fieldsV1": {"f:spec": {}}}]}
        server.events.append((server.now, first, shown | {"metadata": metadata}))


@pytest.mark.parametrize(
    ("names", "is_shown"), [(("a", "b"), True), (("a",), False)], ids=["of two", "of one, which may have invented it"]
)
def test_a_watch_goes_on_for_as_long_as_it_shows_candidates(names: tuple[str, ...], *, is_shown: bool) -> None:
    server, _ = start_coordinated()
    end = server.now
    server.wait(16.5)
    ping(server, *names)
    until = follow_watch(server).bounds.until
    assert until is not None
    assert abs(until - (server.now if is_shown else end)) < SECOND


def test_candidates_with_which_a_watch_begins_do_not_say_how_long_it_goes_on() -> None:
    server, _ = start_coordinated()
    end = server.now
    server.wait(16.5)
    ping(server, "a", "b", first="ADDED")
    del server.events[:-2]
    until = follow_watch(server).bounds.until
    assert until is None or until <= end


@pytest.mark.parametrize(("lease", "is_for_it"), [("db", True), ("cache", False)])
def test_of_two_leases_that_a_pod_asks_for_a_candidate_is_for_the_one_that_api_servers_write(
    lease: str, *, is_for_it: bool
) -> None:
    server = refuse("b")
    other = server.elector("b", "shop/cache", user=USER)
    other.lead(20)
    other.ask()
    for event in server.log:
        event.pop("requestObject", None)
    histories = follow_metadata(server)
    claims = find_claims(make_account(histories, histories.leases["shop", lease], server.now))
    assert any("of LeaseCandidates for it" in one.message for one in claims) is is_for_it
