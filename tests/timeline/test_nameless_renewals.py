"""The lane of a lease that is renewed while it names no holder: whether anyone led then is not known."""

from tests.claims.test_nameless_renewals import PODS, lose_names, release_and_lose_names, renew_namelessly
from tests.history.fake_server import FakeServer
from tests.history.observing import observe_all
from tests.inputs.reading import read
from webhook.analysis.timeline.lanes import TimelineBuilder
from webhook.analysis.timeline.model import Lane, MarkKind, SpanKind


def draw(server: FakeServer, data: bytes) -> Lane:
    builder = TimelineBuilder(server.now)
    observe_all(builder, read("in", [data]))
    (lane,) = builder.timeline(server.now).lanes
    return lane


def list_kinds(lane: Lane) -> list[SpanKind]:
    return [one.kind for one in lane.spans]


def test_a_time_in_which_it_is_renewed_without_a_holder_is_none_without_a_leader() -> None:
    server = lose_names()
    lane = draw(server, server.audit_log())
    assert list_kinds(lane) == [SpanKind.HELD, SpanKind.OVERDUE, SpanKind.UNRECORDED]
    assert lane.spans[-1].reason.startswith("it was renewed without a holder")


def test_two_writes_of_a_release_leave_it_free() -> None:
    server = lose_names(times=2)
    assert list_kinds(draw(server, server.watch()))[-1] is SpanKind.LEADERLESS


def test_after_a_release_it_is_free_until_it_is_renewed_without_a_holder() -> None:
    server = release_and_lose_names(after=5)
    server.elector("db-1", "shop/db").lead(4)
    kinds = [SpanKind.HELD, SpanKind.LEADERLESS, SpanKind.UNRECORDED, SpanKind.HELD]
    assert list_kinds(draw(server, server.audit_log())) == kinds


def test_who_emptied_it_is_as_doubtful_as_in_why() -> None:
    server = FakeServer()
    holder = server.elector("db-6d5f8c9b7d-x2x4z", "shop/db")
    holder.identity = holder.pod
    holder.lead(20)
    server.wait(18)
    renew_namelessly(server, *PODS)
    (released,) = (one for one in draw(server, server.watch()).marks if one.kind is MarkKind.RELEASE)
    assert released.text == f"{holder.pod} released it, or was removed"
