"""Requests of pods that fail again and again: how many of them are remembered."""

from webhook.analysis.history.audit_log.failing_requests import (
    MAX_KINDS,
    MAX_PODS,
    MAX_REQUESTS,
    FailedRequest,
    FailingRequests,
)
from webhook.analysis.inputs.items import Failure, PodActivity, Writer

DB = Writer("system:serviceaccount:shop:db", "db-0", uid="uid-db-0")
TENANTS = Failure(verb="list", resource="tenants.example.org", namespace="shop", code=404)


def failed(at: int, who: Writer = DB) -> FailedRequest:
    return FailedRequest(at, at - 1, "", who)


def request(at: int = 10, writer: Writer = DB, failure: Failure | None = TENANTS) -> PodActivity:
    return PodActivity(received=at - 1, at=at, writer=writer, is_write=False, failure=failure)


def remember(*requests: PodActivity) -> FailingRequests:
    found = FailingRequests()
    for one in requests:
        found.add(one)
    return found


def test_failures_of_pods_are_listed_in_order_of_time_by_what_failed() -> None:
    other = Writer("system:serviceaccount:shop:db", "db-1", uid="uid-db-1")
    services = Failure(verb="list", resource="services", namespace="", code=403)
    found = remember(request(12), request(11, other), request(10), request(13, failure=services), request(14, Writer()))
    assert found.list_by_failure([DB, other]) == {
        TENANTS: [failed(10), failed(11, other), failed(12)],
        services: [failed(13)],
    }
    assert found.list_by_failure([other]) == {TENANTS: [failed(11, other)]}


def test_what_did_not_fail_is_no_failure() -> None:
    assert remember(request(failure=None)).list_by_failure([DB]) == {}


def test_a_failure_counts_once() -> None:
    assert remember(request(), request()).list_by_failure([DB]) == {TENANTS: [failed(10)]}


def test_pods_without_a_uid_and_impersonated_ones_have_no_failures() -> None:
    alone, acted = Writer(DB.user, "db-0"), Writer(DB.user, "db-0", uid="uid-db-0", impersonator="alice@example.org")
    assert remember(request(writer=alone), request()).list_by_failure([alone, acted]) == {}


def test_the_latest_failures_of_a_kind_are_remembered() -> None:
    found = remember(*(request(at) for at in range(MAX_REQUESTS + 1))).list_by_failure([DB])[TENANTS]
    assert [one.at for one in found] == [*range(1, MAX_REQUESTS + 1)]


def test_the_latest_kinds_of_failures_are_remembered() -> None:
    kinds = [Failure(verb="get", resource=f"kind{number}", namespace="", code=500) for number in range(MAX_KINDS + 1)]
    requests = [request(failure=one) for one in (*kinds[:MAX_KINDS], kinds[0], kinds[MAX_KINDS])]
    found = remember(*requests)
    assert [*found.list_by_failure([DB])] == [*kinds[2:MAX_KINDS], kinds[0], kinds[MAX_KINDS]]
    assert found.has_forgotten
    assert not remember(*requests[:-1]).has_forgotten


def test_the_kinds_of_a_pod_do_not_crowd_out_those_of_others() -> None:
    evil = Writer("system:serviceaccount:evil:evil", "evil-0", uid="uid-evil-0")
    kinds = [Failure(verb="get", resource=f"kind{number}", namespace="", code=500) for number in range(MAX_KINDS * 2)]
    found = remember(request(), *(request(writer=evil, failure=one) for one in kinds))
    assert found.list_by_failure([DB]) == {TENANTS: [failed(10)]}


def test_the_pods_that_failed_last_are_remembered() -> None:
    others = [Writer("u", f"p-{number}", uid=f"u{number}") for number in range(MAX_PODS)]
    found = remember(request(), *(request(writer=one) for one in others))
    assert found.list_by_failure([DB]) == {}
    assert found.has_forgotten
    assert len(found.list_by_failure([others[0]])) == 1
