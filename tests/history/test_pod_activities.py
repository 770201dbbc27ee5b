"""Tests of which other requests of pods are remembered."""

import pytest

from webhook.analysis.history.audit_log.pod_activities import MAX_PODS, MAX_REQUESTS, PodActivities
from webhook.analysis.inputs.items import PodActivity, RelatedWrite, Writer

DB = Writer("system:serviceaccount:shop:db", "db-0", uid="1")
MANY = 10**9


def request(at: int = 10, writer: Writer = DB, *, is_write: bool = True) -> PodActivity:
    return PodActivity(received=at - 1, at=at, writer=writer, is_write=is_write)


def remember(*requests: PodActivity | RelatedWrite) -> PodActivities:
    found = PodActivities()
    for one in requests:
        (found.add if isinstance(one, PodActivity) else found.add_related_write)(one)  # type: ignore[arg-type]
    return found


def write(writer: Writer = DB, *, received: int | None = 9, is_surely_not_dry_run: bool = True) -> RelatedWrite:
    return RelatedWrite(
        at=10,
        kind="Secret",
        namespace="shop",
        name="s",
        verb="deleted",
        writer=writer,
        is_surely_not_dry_run=is_surely_not_dry_run,
        received=received,
    )


def test_requests_are_in_order_of_time() -> None:
    assert [one.at for one in remember(request(20), request(10)).list_between(DB, 0, MANY)] == [10, 20]


@pytest.mark.parametrize(("start", "end", "number"), [(8, 10, 1), (9, 10, 0), (8, 9, 0)])
def test_a_request_counts_that_is_received_and_answered_meanwhile(start: int, end: int, number: int) -> None:
    assert len(remember(request()).list_between(DB, start, end)) == number


@pytest.mark.parametrize(
    "copies",
    [[request(), request()], [request(), request(is_write=False)], [request(is_write=False), request()]],
    ids=["two copies of a log", "the first one shows more", "the second one shows more"],
)
def test_a_request_counts_once(copies: list[PodActivity]) -> None:
    assert [one.is_write for one in remember(*copies).list_between(DB, 0, MANY)] == [True]


@pytest.mark.parametrize(
    "who",
    [None, Writer("system:serviceaccount:shop:db", "db-0"), Writer(DB.user, "db-0", uid="1", impersonator="alice")],
    ids=["nobody", "without a uid", "as another user"],
)
def test_whose_requests_are_not_known(who: Writer | None) -> None:
    assert remember(request()).list_between(who, 0, MANY) == []


@pytest.mark.parametrize(
    ("is_surely_not_dry_run", "expected"), [(True, [True]), (False, [False])], ids=["sure", "perhaps a dry run"]
)
def test_a_write_to_what_leaders_depend_on_counts(is_surely_not_dry_run: bool, expected: list[bool]) -> None:
    assert [
        one.is_write for one in remember(write(is_surely_not_dry_run=is_surely_not_dry_run)).list_between(DB, 0, MANY)
    ] == expected


@pytest.mark.parametrize(("start", "is_known"), [(9, True), (10, False)])
def test_what_a_user_wrote_as_another_one_is_known_by_its_time(start: int, *, is_known: bool) -> None:
    alice = Writer("alice", impersonator=DB.user)
    for one in (request(writer=alice), write(alice)):
        assert remember(one).has_written_as_other_since(DB, start) is is_known
    assert not remember(request(writer=alice, is_write=False)).has_written_as_other_since(DB, start)


def test_the_users_that_wrote_last_as_other_ones_are_remembered() -> None:
    many = [request(writer=Writer("alice", impersonator=f"u{number}")) for number in range(MAX_PODS)]
    found = remember(request(writer=Writer("alice", impersonator=DB.user)), *many)
    assert not found.has_written_as_other_since(DB, 0)
    assert found.has_written_as_other_since(Writer("u0"), 0)


@pytest.mark.parametrize(
    "one",
    [
        write(Writer("alice")),
        write(Writer(DB.user, uid="1")),
        write(Writer(DB.user, "db-0", uid="1", impersonator="alice")),
        write(received=None),
    ],
    ids=["of no pod", "of a pod without a name", "as another user", "of an unknown time"],
)
def test_a_write_of_no_known_pod_or_time_does_not_count(one: RelatedWrite) -> None:
    assert not remember(one).list_between(DB, 0, MANY)


def test_the_latest_requests_of_a_pod_are_remembered() -> None:
    found = remember(*map(request, range(1, MAX_REQUESTS + 2))).list_between(DB, -1, MANY)
    assert [found[0].at, len(found)] == [2, MAX_REQUESTS]


def test_the_pods_that_were_heard_last_are_remembered() -> None:
    others = [Writer("u", f"p-{number}", uid=f"u{number}") for number in range(MAX_PODS)]
    found = remember(request(), request(writer=others[0]), request(20), *(request(writer=one) for one in others[1:]))
    assert len(found.list_between(DB, 0, MANY)) == 2
    assert not found.list_between(others[0], 0, MANY)


@pytest.mark.parametrize(
    ("number", "start", "has_forgotten"), [(MAX_REQUESTS, -1, True), (MAX_REQUESTS, 0, False), (9, -1, False)]
)
def test_of_a_pod_that_asks_often_the_first_requests_are_forgotten(
    number: int, start: int, *, has_forgotten: bool
) -> None:
    found = remember(*map(request, range(1, number + 1)))
    assert found.has_forgotten_since(DB, start) is has_forgotten
