"""Requests of holders beside their leases that fail again and again: said beside a lease that is held and renewed."""

from collections.abc import Iterable

import pytest

from tests.claims.accounts import account, shop, text
from tests.claims.test_related_writes import RIGHTS, log_write
from tests.factories import Document, Tweak, put
from tests.history.fake_server import SECOND, START, Elector, FakeServer, together
from tests.history.observing import follow_both, follow_log, follow_metadata
from tests.inputs.test_pod_activity import work
from webhook.analysis.claims.evidence.silent_holders import failing_requests
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.analysis.history.audit_log import failing_requests as kept
from webhook.analysis.history.audit_log import pod_activities
from webhook.analysis.history.audit_log.refusal import UNKNOWN_RESOURCE
from webhook.kubernetes.times import format_micro_time, get_instant, normalize

NOT_SERVED = (put("verb", "list"), put("responseStatus.code", 404))
UNKNOWN = (put("verb", "list"), put("responseStatus", {"code": 404, "message": UNKNOWN_RESOURCE}))
FORBIDDEN = 'tenants.example.org is forbidden: User "system:serviceaccount:shop:db" cannot list resource "tenants"'
REFUSED = (put("verb", "list"), put("responseStatus", {"code": 403, "message": FORBIDDEN}))
WELL = "It is held and renewed; a lease does not show whether its holder works."
DEFINITION = put("objectRef.name", "tenants.example.org")


def serve() -> tuple[FakeServer, list[Elector]]:
    server, electors = shop()
    server.uids |= {f"db-{number}": f"uid-db-{number}" for number in range(2)}
    together(20, *electors)
    return server, electors


def fail(server: FakeServer, electors: Iterable[Elector], number: int, *tweaks: Tweak, pod: str = "db-0") -> None:
    """Have a request of a pod fail every 6 s, a second before a renewal."""
    for _ in range(number):
        together(6, *electors)
        server.log.append(work((server.now - START) / SECOND - 1, *tweaks, pod=pod))


def explain(server: FakeServer) -> str:
    return text(account(follow_log(server), server.now))


@pytest.mark.parametrize(
    ("tweaks", "answer"),
    [
        (UNKNOWN, "were answered that the API server does not serve them (404)"),
        (NOT_SERVED, "were answered with 404"),
        (REFUSED, "were refused for lack of rights (403)"),
        ((put("verb", "list"), put("responseStatus.code", 403)), "were refused with 403"),
        ((put("verb", "list"), put("responseStatus.code", 503)), "failed with 503"),
        ((put("verb", "list"), put("responseStatus.code", 429)), "failed with 429"),
    ],
    ids=["not served", "not found", "no rights", "refused by an admission", "an error", "too many requests"],
)
def test_what_the_holder_asks_for_in_vain_is_said(tweaks: tuple[Tweak, ...], answer: str) -> None:
    server, electors = serve()
    fail(server, electors, 4, *tweaks)
    output = explain(server)
    assert (
        "11:07:05Z: 4 requests of pod db-0, its holder, to list tenants.example.org in namespace shop "
        f"{answer}, the last at 11:07:23Z" in output
    )
    assert output.endswith(
        "It is held and renewed, but requests of its pod failed, the last one at 11:07:23Z. Its log may say more: "
        "kubectl -n shop logs db-0"
    )
    assert any("to list tenants" in line.text for line in list_latest(account(follow_log(server), server.now)))


RESET = put("responseStatus", {"code": 500, "message": "connection reset by peer"})
ALL = "since the first, the log shows no write by that pod, other than of leases and Events, that succeeded"
MODEST = (
    "Its writes of the lease went on, but other requests of its pod failed, the last one at 11:07:17Z. "
    "Its log may say more: kubectl -n shop logs db-0"
)


def late(seconds: float) -> Tweak:
    """Have a request answered so much later than the last one was renewed, whenever it was received."""

    def change(event: Document) -> None:
        received = get_instant(normalize(event["requestReceivedTimestamp"]))
        assert received is not None
        event["requestReceivedTimestamp"] = format_micro_time(received - int(seconds * SECOND))

    return change


@pytest.mark.parametrize(
    ("tweaks", "seconds", "answer"),
    [
        ((RESET,), (0, 0, 0), f"failed with 500, the last at 11:07:17Z; {ALL}; the last answer: connection reset"),
        ((RESET,), (5, 5, 5), f"failed with 500 after 5 s each, the last at 11:07:17Z; {ALL}; the last answer"),
        ((RESET,), (5, 3, 5), f"failed with 500 after 3 s to 5 s, the last at 11:07:17Z; {ALL}; the last answer"),
        ((RESET, put("verb", "get")), (0, 0, 0), "failed with 500, the last at 11:07:17Z; the last answer: connection"),
        (REFUSED, (0, 0, 0), "were refused for lack of rights (403), the last at 11:07:17Z"),
    ],
    ids=["at once", "after a time", "after different times", "reads", "no rights"],
)
def test_how_requests_failed(tweaks: tuple[Tweak, ...], seconds: tuple[float, ...], answer: str) -> None:
    server, electors = serve()
    for took in seconds:
        fail(server, electors, 1, *tweaks, late(took))
    output = explain(server)
    assert answer in output
    assert (f"{answer}\n" in output) == (tweaks == REFUSED)


def test_writes_of_a_log_without_objects_that_go_on_while_the_work_fails() -> None:
    server, electors = serve()
    fail(server, electors, 3, RESET)
    assert text(account(follow_metadata(server), server.now)).endswith(MODEST)
    electors[0].release()
    together(125, *electors[1:])
    assert "Its writes of the lease went on" not in text(account(follow_metadata(server), server.now))


def test_who_no_longer_writes_a_lease_may_have_ended() -> None:
    server, (db, *others) = serve()
    fail(server, (db, *others), 3, RESET)
    fail(server, others, 1, RESET)
    together(30, *others)
    assert "Its writes of the lease went on" not in text(account(follow_metadata(server), server.now))


@pytest.mark.parametrize("is_between", [False, True])
def test_a_write_that_succeeded_before_the_first_failure_does_not_count(is_between: bool) -> None:
    server, electors = serve()
    server.log.append(work((server.now - START) / SECOND))
    fail(server, electors, 3, RESET)
    if is_between:
        server.log.append(work((server.now - START) / SECOND))
        together(4, *electors)
    assert (ALL in explain(server)) != is_between


def test_a_deletion_that_may_have_been_a_dry_run_may_have_succeeded() -> None:
    server, electors = serve()
    fail(server, electors, 3, RESET)
    deletion = (put("verb", "delete"), put("objectRef", {"resource": "configmaps", "namespace": "shop", "name": "m"}))
    server.log.append(work((server.now - START) / SECOND, *deletion))
    together(4, *electors)
    output = explain(server)
    assert "failed with 500" in output
    assert ALL not in output


def test_where_a_log_has_a_hole_other_writes_may_have_succeeded() -> None:
    server, electors = serve()
    fail(server, electors, 3, RESET)
    server.wait(60)
    for one in electors:
        one.renew()
    fail(server, electors, 3, RESET)
    output = explain(server)
    assert len(follow_log(server).bounds.holes) == 1
    assert "6 requests of pod db-0" in output
    assert ALL not in output


def test_of_very_many_requests_the_writes_that_succeeded_may_be_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_activities, "MAX_REQUESTS", 2)
    server, electors = serve()
    fail(server, electors, 3, RESET)
    assert ALL not in explain(server)


def test_what_failed_for_several_pods_is_not_compared() -> None:
    server, (db, *others) = serve()
    fail(server, (db, *others), 3, RESET)
    db.release()
    other = server.elector("db-1", "shop/db")
    other.take()
    fail(server, (other, *others), 3, RESET, pod="db-1")
    output = explain(server)
    assert "6 requests of 2 pods" in output
    assert ALL not in output


def test_a_log_that_ends_early_does_not_show_what_succeeded() -> None:
    server, electors = serve()
    fail(server, electors, 3, RESET)
    late_renewal = [one for one in server.log if one["objectRef"].get("name") == "db" and one["verb"] == "update"][-4]
    assert ALL in text(account(follow_both(server), server.now))
    server.log.remove(late_renewal)
    output = text(account(follow_both(server), server.now))
    assert "failed with 500" in output
    assert ALL not in output


def test_a_kind_whose_definition_was_deleted_is_not_served() -> None:
    server, electors = serve()
    log_write(server, "customresourcedefinitions", "apiextensions.k8s.io", DEFINITION, put("verb", "delete"))
    fail(server, electors, 4, *NOT_SERVED)
    assert "were answered that the API server does not serve them (404)" in explain(server)


def test_what_fails_for_the_former_holder_does_not_fail_for_the_present_one() -> None:
    server, (db, *others) = serve()
    other = server.elector("db-1", "shop/db")
    other.ask()
    fail(server, (db, *others), 3, RESET)
    fail(server, (db, *others), 3, RESET, pod="db-1")
    db.release()
    other.take()
    fail(server, (other, *others), 3, RESET)
    output = explain(server)
    assert "9 requests of 2 pods" in output
    assert output.endswith(WELL)


@pytest.mark.parametrize(("seconds", "is_said"), [(20, True), (40, False)])
def test_requests_that_no_longer_fail_may_succeed(seconds: int, *, is_said: bool) -> None:
    server, electors = serve()
    fail(server, electors, 5, *REFUSED)
    together(seconds, *electors)
    assert ("requests of its pod failed" in explain(server)) == is_said


def test_a_kind_of_the_whole_cluster_has_no_namespace() -> None:
    server, electors = serve()
    fail(server, electors, 3, *NOT_SERVED, put("objectRef.namespace", ""))
    assert "to list tenants.example.org were answered" in explain(server)


@pytest.mark.parametrize("number", [2, 3])
def test_what_fails_twice_may_be_asked_once_more(number: int) -> None:
    server, electors = serve()
    fail(server, electors, number, *NOT_SERVED)
    assert ("to list tenants" in explain(server)) == (number == 3)


@pytest.mark.parametrize(("seconds", "is_said"), [(1, False), (5, True)])
def test_what_fails_for_a_moment_may_be_asked_once_more(seconds: int, is_said: bool) -> None:
    server, electors = serve()
    for _ in range(3):
        server.log.append(work((server.now - START) / SECOND, *NOT_SERVED))
        server.wait(seconds)
        together(0, *electors)
        electors[0].renew()
    assert ("to list tenants" in explain(server)) == is_said


def test_requests_of_pods_that_never_held_it_are_not_said() -> None:
    server, electors = serve()
    follower = server.elector("db-1", "shop/db")
    follower.ask()
    fail(server, electors, 4, *NOT_SERVED, pod="db-1")
    assert explain(server).endswith(WELL)


def test_of_failures_far_apart_the_latest_run_counts() -> None:
    server, electors = serve()
    fail(server, electors, 5, *NOT_SERVED)
    together(125, *electors)
    fail(server, electors, 3, *NOT_SERVED)
    assert "11:09:39Z: 3 requests of pod db-0" in explain(server)


def test_after_a_while_without_failures_there_is_nothing_to_look_for() -> None:
    server, electors = serve()
    fail(server, electors, 5, *NOT_SERVED)
    together(125, *electors)
    output = explain(server)
    assert "5 requests of pod db-0" in output
    assert output.endswith(WELL)


def test_failures_after_the_moment_of_the_question_are_not_said() -> None:
    server, electors = serve()
    now = server.now
    fail(server, electors, 5, *NOT_SERVED)
    assert "to list tenants" not in text(account(follow_log(server), now))


def test_failures_of_a_pod_whose_requests_for_the_lease_failed_as_well_are_said_with_these() -> None:
    server, electors = serve()
    for _ in range(4):
        fail(server, electors[1:], 1, put("responseStatus.code", 500))
        electors[0].fail(500, "etcdserver: request timed out")
    output = explain(server)
    assert "to patch tenants" not in output
    assert "answered with 500" in output


def test_pods_that_held_it_are_counted_together() -> None:
    server, (db, *others) = serve()
    fail(server, (db, *others), 3, *NOT_SERVED)
    db.release()
    other = server.elector("db-1", "shop/db")
    other.take()
    fail(server, (other, *others), 3, *NOT_SERVED, pod="db-1")
    assert "6 requests of 2 pods that held it to list tenants.example.org" in explain(server)


def test_a_former_holder_is_named_as_one() -> None:
    server, (db, *others) = serve()
    fail(server, (db, *others), 3, *NOT_SERVED)
    db.release()
    other = server.elector("db-1", "shop/db")
    other.take()
    together(20, other, *others)
    output = explain(server)
    assert "3 requests of pod db-0, which held it, to list" in output
    assert "its pod failed" not in output


def test_a_log_without_objects_shows_who_wrote_the_lease() -> None:
    server, electors = serve()
    fail(server, electors, 3, *NOT_SERVED)
    output = text(account(follow_metadata(server), server.now))
    assert "3 requests of pod db-0, which wrote it, to list" in output


def test_of_very_many_failures_the_latest_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MAX_REQUESTS", 5)
    monkeypatch.setattr(failing_requests, "MAX_REQUESTS", 5)
    server, electors = serve()
    log_write(server, "customresourcedefinitions", "apiextensions.k8s.io", DEFINITION)
    fail(server, electors, 8, *NOT_SERVED)
    output = explain(server)
    assert "at least 5 requests of pod db-0" in output
    assert "CustomResourceDefinition" not in output


@pytest.mark.parametrize(
    ("kind", "group", "tweaks", "answer", "words"),
    [
        (
            "customresourcedefinitions",
            "apiextensions.k8s.io",
            (DEFINITION, put("objectRef.namespace", "")),
            NOT_SERVED,
            "CustomResourceDefinition tenants.example.org was deleted by alice@example.org",
        ),
        ("rolebindings", RIGHTS, (), REFUSED, "RoleBinding shop/db was deleted by alice@example.org"),
    ],
)
def test_what_they_depend_on_is_said_if_it_was_written_when_that_began(
    kind: str, group: str, tweaks: tuple[Tweak, ...], answer: tuple[Tweak, ...], words: str
) -> None:
    server, electors = serve()
    log_write(server, kind, group, *tweaks)
    fail(server, electors, 4, *answer)
    assert words in explain(server)


@pytest.mark.parametrize(
    ("kind", "group", "tweaks", "answer"),
    [
        ("customresourcedefinitions", "apiextensions.k8s.io", put("objectRef.name", "carts.example.org"), NOT_SERVED),
        ("customresourcedefinitions", "apiextensions.k8s.io", DEFINITION, REFUSED),
        ("customresourcedefinitions", "apiextensions.k8s.io", (DEFINITION, put("verb", "create")), NOT_SERVED),
        ("rolebindings", RIGHTS, (), NOT_SERVED),
    ],
    ids=["another kind", "a kind that is served", "a creation before it began", "rights"],
)
def test_what_cannot_have_had_them_fail_is_not_said(
    kind: str, group: str, tweaks: Tweak | tuple[Tweak, ...], answer: tuple[Tweak, ...]
) -> None:
    server, electors = serve()
    log_write(server, kind, group, *(tweaks if isinstance(tweaks, tuple) else (tweaks,)))
    fail(server, electors, 4, *answer)
    output = explain(server)
    assert "by alice@example.org" not in output
    assert "4 requests of pod db-0" in output


FULL = 'tenants.example.org "a" is forbidden: exceeded quota: few, requested: count/tenants=1, used: 9, limited: 9'
OVER_QUOTA = (put("verb", "create"), put("responseStatus", {"code": 403, "message": FULL}))


def test_where_a_quota_leaves_no_room_that_quota_is_to_be_looked_at() -> None:
    server, electors = serve()
    fail(server, electors, 4, *OVER_QUOTA)
    output = explain(server)
    assert FULL in output
    assert "ResourceQuota few of namespace shop left no room: kubectl -n shop describe resourcequota few" in output


def test_where_other_requests_fail_as_well_the_log_may_say_more_than_a_quota() -> None:
    server, electors = serve()
    fail(server, electors, 4, *OVER_QUOTA)
    fail(server, electors, 4, *REFUSED)
    output = explain(server)
    assert "Its log may say more: kubectl -n shop logs db-0" in output
    assert "describe resourcequota" not in output
