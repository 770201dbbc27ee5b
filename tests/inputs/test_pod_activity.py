"""Requests of pods about anything but leases: which are read, and which are left out."""

import json
from typing import Any

import pytest

from tests.factories import Document, Tweak, changed, drop, put
from tests.history.fake_server import START
from tests.inputs.reading import read
from webhook.analysis.inputs.items import Failure, LogEnd, Observation, PodActivity, Writer
from webhook.analysis.inputs.pod_activity import MAX_PODS, PodsWithLeases
from webhook.kubernetes.times import DAY, SECOND, format_micro_time

USER = "system:serviceaccount:shop:db"
TENANTS = "tenants.example.org"
AS_ALICE = put("impersonatedUser", {"username": "alice@example.org"})
QUOTED = 'admission webhook "x" denied the request: jobs is forbidden: User "db" cannot list resource "jobs"'


REVIEW = put("objectRef.resource", "subjectaccessreviews")


def event(after: float, resource: str, group: str, *tweaks: Tweak, pod: str = "db-0") -> Document:
    """A request of a pod that was received so many seconds after the start, and answered 2 ms later."""
    received = START + int(after * SECOND)
    whole: Document = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "requestURI": f"/apis/{group}/v1/namespaces/shop/{resource}/db",
        "verb": "patch",
        "user": {
            "username": USER,
            "extra": {
                "authentication.kubernetes.io/pod-name": [pod],
                "authentication.kubernetes.io/pod-uid": [f"uid-{pod}"],
            },
        },
        "objectRef": {"resource": resource, "namespace": "shop", "name": "db", "apiGroup": group, "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 200},
        "requestReceivedTimestamp": format_micro_time(received),
        "stageTimestamp": format_micro_time(received + 2000),
    }
    return changed(whole, *tweaks)


def renewal(after: float = 0, pod: str = "db-0") -> Document:
    return event(after, "leases", "coordination.k8s.io", pod=pod)


def work(after: float = 10, *tweaks: Tweak, pod: str = "db-0") -> Document:
    return event(after, "tenants", "example.org", *tweaks, pod=pod)


def read_activities(*events: Document, separators: tuple[str, str] = (",", ":")) -> list[Any]:
    lines = b"".join(json.dumps(one, separators=separators).encode() + b"\n" for one in events)
    return [item for item in read("audit.log", [lines]) if not isinstance(item, LogEnd | Observation)]


def test_a_write_of_a_pod_that_asked_for_a_lease_before() -> None:
    expected = PodActivity(
        received=START + 10 * SECOND,
        at=START + 10 * SECOND + 2000,
        writer=Writer(USER, "db-0", uid="uid-db-0"),
        is_write=True,
    )
    assert read_activities(renewal(), work()) == [expected]


@pytest.mark.parametrize(
    "events",
    [
        [work(), renewal(20)],
        [renewal(pod="mail-0"), work()],
        [renewal(), work(3.9, put("verb", "get"))],
        [renewal(), work(10, drop("user.extra"))],
        [renewal(), work(10, put("verb", "watch"))],
        [renewal(), work(10, put("objectRef.subresource", "proxy"))],
        [renewal(), work(10, put("requestURI", "/apis/example.org/v1/namespaces/shop/tenants/db?dryRun=All"))],
        [renewal(), work(10, put("stage", "ResponseStarted"))],
        [renewal(), work(10, drop("responseStatus"))],
        [renewal(), work(10, put("stageTimestamp", "soon"))],
        [renewal(), work(10, put("requestReceivedTimestamp", "soon"))],
        [renewal(), work(10, put("verb", "get"), AS_ALICE)],
        [renewal(), event(10, "leases", "coordination.k8s.io", put("objectRef.subresource", "status"))],
    ],
    ids=[
        "a pod that asks for a lease only later",
        "a pod that asks for none",
        "it has just asked for the lease",
        "a client certificate",
        "a watch",
        "a request that goes on for long",
        "a dry run",
        "not yet answered",
        "without an answer",
        "without the time of its answer",
        "without the time at which it was received",
        "a read as another user",
        "a part of a lease",
    ],
)
def test_requests_that_are_left_out(events: list[Document]) -> None:
    assert read_activities(*events) == []


@pytest.mark.parametrize(
    ("tweaks", "is_write"),
    [
        ((), True),
        ((put("verb", "create"),), True),
        ((put("verb", "list"),), False),
        ((put("responseStatus.code", 409),), False),
        ((put("objectRef.resource", "events"), put("objectRef.apiGroup", "events.k8s.io")), False),
        ((put("objectRef.resource", "events"), put("objectRef.apiGroup", "")), False),
        ((put("objectRef.resource", "events"),), True),
        ((REVIEW, put("objectRef.apiGroup", "authorization.k8s.io"), put("verb", "create")), False),
        ((put("objectRef.resource", "bookreviews"), put("verb", "create")), True),
        ((put("objectRef.resource", "serviceaccounts"), put("objectRef.subresource", "token")), False),
        ((put("objectRef.subresource", "token"),), True),
        ((drop("objectRef"), put("verb", "get")), False),
        ((drop("objectRef"), put("verb", "create")), False),
    ],
    ids=[
        "a patch",
        "a creation",
        "a list",
        "a write that conflicted",
        "an Event",
        "an Event of the core group",
        "events of another kind",
        "a review",
        "reviews of another kind",
        "a token",
        "a token of another kind",
        "of no object",
        "a write of no object",
    ],
)
def test_which_requests_are_work(tweaks: tuple[Tweak, ...], is_write: bool) -> None:
    (found,) = read_activities(renewal(), work(10, *tweaks))
    assert found.is_write is is_write


@pytest.mark.parametrize(
    ("tweaks", "failure"),
    [
        ((put("responseStatus.code", 500),), Failure(verb="patch", resource=TENANTS, namespace="shop", code=500)),
        ((put("responseStatus.code", 403),), Failure(verb="patch", resource=TENANTS, namespace="shop", code=403)),
        (
            (put("responseStatus", {"code": 403, "message": 'tenants is forbidden: User "db" cannot patch it'}),),
            Failure(verb="patch", resource=TENANTS, namespace="shop", code=403, lacks_rights=True),
        ),
        (
            (put("responseStatus.code", 404), put("verb", "list"), drop("objectRef.namespace")),
            Failure(verb="list", resource=TENANTS, namespace="", code=404),
        ),
        (
            (put("responseStatus.code", 500), put("objectRef.subresource", "status")),
            Failure(verb="patch", resource=f"{TENANTS}/status", namespace="shop", code=500),
        ),
        (
            (put("responseStatus.code", 500), put("objectRef", {"resource": "services"}), put("verb", "list")),
            Failure(verb="list", resource="services", namespace="", code=500),
        ),
        ((put("responseStatus.code", 404), put("verb", "get")), None),
        ((put("responseStatus.code", 409),), None),
        ((), None),
        ((put("responseStatus.code", 500), put("objectRef", {"resource": "events"})), None),
        (
            (put("responseStatus", {"code": 403, "message": QUOTED}),),
            Failure(verb="patch", resource=TENANTS, namespace="shop", code=403),
        ),
    ],
    ids=[
        "an error",
        "a refusal",
        "a lack of rights",
        "a kind that is not served",
        "a part of an object",
        "a kind of the core group",
        "an object that is not there",
        "a conflict",
        "an answer as wanted",
        "an Event",
        "a webhook that quotes a lack of rights",
    ],
)
def test_which_requests_failed(tweaks: tuple[Tweak, ...], failure: Failure | None) -> None:
    """Writes and failed requests are read even if their pod has just renewed its lease."""
    (found,) = read_activities(renewal(9), work(10, *tweaks)) or read_activities(renewal(), work(10, *tweaks))
    assert found.failure == failure


LONG = "m" * 200 + "x" * 80 + "n" * 160
SHOWN = "m" * 200 + "..." + "n" * 160


@pytest.mark.parametrize(
    ("tweaks", "message"),
    [
        ((put("responseStatus", {"code": 500, "message": "connection reset by peer"}),), "connection reset by peer"),
        ((put("responseStatus", {"code": 500, "message": LONG}),), SHOWN),
        ((put("responseStatus", {"code": 409, "message": "the object has been modified"}),), ""),
    ],
    ids=["an error", "a long one", "a conflict"],
)
def test_what_was_answered_to_what_failed(tweaks: tuple[Tweak, ...], message: str) -> None:
    (found,) = read_activities(renewal(), work(10, *tweaks))
    assert found.message == message


def test_a_write_as_another_user_is_known_by_who_acted() -> None:
    (found,) = read_activities(renewal(), work(10, AS_ALICE))
    assert (found.writer.impersonator, found.is_write) == (USER, True)


def test_a_read_that_failed_just_after_a_renewal_is_read() -> None:
    codes = (200, 400, 403, 404, 503)
    events = [work(10, put("verb", "get"), put("responseStatus.code", code)) for code in codes]
    found = [len(read_activities(renewal(9), one)) for one in events]
    assert found == [0, 0, 1, 1, 1]


def test_the_last_request_for_a_lease_counts() -> None:
    reads = [work(second, put("verb", "get")) for second in (10, 13)]
    assert [one.received - START for one in read_activities(renewal(), renewal(8), *reads)] == [13 * SECOND]


@pytest.mark.parametrize(
    ("renewed", "asked", "number"), [(0, DAY // SECOND, 1), (0, -10, 1), (0, -3, 0)], ids=["a day", "before", "near"]
)
def test_how_long_ago_a_pod_asked_is_by_day_and_second(renewed: float, asked: float, number: int) -> None:
    assert len(read_activities(renewal(renewed), work(asked, put("verb", "get")))) == number


def test_a_time_that_cannot_be_read_is_no_reason_to_leave_a_request_out() -> None:
    odd = changed(renewal(), put("requestReceivedTimestamp", "2026-07-14T11:aa:00.000000Z"))
    assert len(read_activities(odd, work(1))) == 1


def test_the_number_of_pods_is_limited() -> None:
    pods = PodsWithLeases()
    lines = [json.dumps(renewal(pod=f"db-{number}"), separators=(",", ":")).encode() for number in range(MAX_PODS + 1)]
    for line in lines:
        pods.note_line(line)
    later = [json.dumps(work(pod=f"db-{number}"), separators=(",", ":")).encode() for number in (0, MAX_PODS)]
    assert [pods.may_tell_of(one) for one in later] == [True, False]


def test_a_line_of_a_lease_without_a_pod_says_nothing_of_pods() -> None:
    alone = changed(renewal(), drop("user.extra"))
    assert read_activities(alone, work()) == []


@pytest.mark.parametrize("end", [b'"', b""], ids=["long", "without an end"])
def test_what_is_too_long_for_a_uid_is_not_kept(end: bytes) -> None:
    pods = PodsWithLeases()
    line = b'{"authentication.kubernetes.io/pod-uid":["' + b"u" * 100 + end + b"}"
    pods.note_line(line)
    assert not pods._asked
    assert not pods.may_tell_of(line)
