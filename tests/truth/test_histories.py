"""Histories that are played are those that the clients, the API servers and the faults of a plan would make."""

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from msgspec.structs import replace

from tests.inputs.reading import read
from tests.truth.draw import draw
from tests.truth.facts import Facts
from tests.truth.inputs import LOGS, Kind, input_of
from tests.truth.plans import (
    LEASE,
    SECOND_LEASE,
    START,
    Deed,
    ElectorPlan,
    Fault,
    FaultKind,
    Habit,
    OutsiderPlan,
    Plan,
    Role,
    Step,
    from_json,
    to_json,
)
from tests.truth.play import play
from tests.truth.pods import PodDeedKind, list_pod_deeds
from tests.truth.records import History
from tests.truth.servers import POD_REQUESTS
from tests.truth.stage import SECOND
from webhook.analysis.inputs.items import Act, Observation, Unreadable
from webhook.kubernetes.objects import Lease

KEY = ("shop", "checkout")
HABITS = [one for one in Habit if one is not Habit.UNELECTED]


def two(habit: Habit, *faults: Fault, outsiders: tuple[OutsiderPlan, ...] = (), **settings: Any) -> Plan:
    electors = tuple(ElectorPlan(pod=pod, identity=pod, habit=habit, begins=at) for pod, at in (("a", 0), ("b", 500)))
    is_coordinated = habit is Habit.COORDINATED
    whole = {"seed": 1, "length": 120_000, "is_coordinated": is_coordinated, **settings}
    return Plan(electors=electors, faults=faults, outsiders=outsiders, **whole)


def mallory(*steps: Step) -> OutsiderPlan:
    return OutsiderPlan(name="mallory", role=Role.ATTACKER, user="mallory", steps=steps)


def holders(history: History) -> list[str]:
    """The holders one after another, as stored."""
    identities: list[str] = []
    for write in history.writes(KEY):
        holder = (write.after and write.after.lease and write.after.lease.spec.holder) or ""
        if not identities or identities[-1] != holder:
            identities.append(holder)
    return identities


def seconds(instant: int) -> float:
    return (instant - START) / SECOND


@cache
def draw_histories() -> tuple[History, ...]:
    return tuple(play(draw(seed)) for seed in range(200))


@cache
def few() -> tuple[History, ...]:
    return tuple(play(draw(seed)) for seed in range(8, 24))


def test_a_plan_is_played_in_the_same_way_each_time() -> None:
    assert play(draw(7)).requests == play(from_json(to_json(draw(7)))).requests


@pytest.mark.parametrize("habit", HABITS)
def test_without_faults_one_process_leads_all_the_time(habit: Habit) -> None:
    history = play(two(habit))
    (leader,) = (one for one in history.processes if one.works)
    assert seconds(leader.works[0].begin) < 10
    assert leader.works[0].end > history.end
    assert holders(history) == [leader.identity]


@pytest.mark.parametrize("habit", HABITS)
def test_two_lead_at_no_time_when_the_leader_is_killed(habit: Habit) -> None:
    """The other one takes the lease about a duration after the last renewal; so does a coordinated election."""
    history = play(two(habit, Fault(kind=FaultKind.KILL, at=30_000, target="a")))
    assert not list(history.overlaps(LEASE))
    assert holders(history) == ["a", "b"]
    begin = seconds(next(one for one in history.processes if one.name == "b/1").works[0].begin)
    assert 30 + 13 - 2 < begin < 30 + 15 + 10


def test_a_process_that_is_stopped_releases_the_lease() -> None:
    plan = two(Habit.CLIENT_GO, Fault(kind=FaultKind.STOP, at=30_000, target="a"))
    plan = replace(plan, electors=tuple(replace(one, releases=True) for one in plan.electors))
    history = play(plan)
    assert holders(history) == ["a", "", "b"]
    assert not list(history.overlaps(LEASE))


def test_a_paused_leader_leads_beside_its_successor_until_its_deadline() -> None:
    history = play(two(Habit.CLIENT_GO, Fault(kind=FaultKind.PAUSE, at=30_000, length=30_000, target="a")))
    ((span, *both),) = history.overlaps(LEASE)
    assert seconds(span.begin) == 60
    assert span.end - span.begin <= 10 * SECOND + 1
    assert {one.pod for one in both} == {"a", "b"}


def test_a_follower_whose_clock_is_ahead_takes_a_live_lease_if_it_trusts_its_clock() -> None:
    plan = two(Habit.FABRIC8)
    plan = replace(plan, electors=(plan.electors[0], replace(plan.electors[1], skew=90_000)))
    assert list(play(plan).overlaps(LEASE))


@pytest.mark.parametrize(
    ("kind", "by"),
    [
        (FaultKind.RIGHTS, "RBAC"),
        (FaultKind.WEBHOOK_REFUSES, "webhook"),
        (FaultKind.WEBHOOK_FAILS, "webhook failure"),
        (FaultKind.POLICY_REFUSES, "policy"),
        (FaultKind.FAIRNESS, "priority and fairness"),
        (FaultKind.SERVER_ERROR, "API server"),
    ],
)
def test_an_account_whose_writes_are_refused_loses_the_lease_and_gets_it_again(kind: FaultKind, by: str) -> None:
    fault = Fault(kind=kind, at=30_000, length=40_000, target="shop:checkout")
    plan = two(Habit.CLIENT_GO, fault)
    history = play(replace(plan, electors=tuple(replace(one, is_rerun=True) for one in plan.electors)))
    assert {one.refused.by for one in history.requests if one.refused and one.code not in (404, 409)} == {by}
    assert not history.leaders(LEASE, START + 50 * SECOND)
    assert history.leaders(LEASE, START + 80 * SECOND)


def test_while_all_api_servers_are_down_nothing_is_stored_or_logged() -> None:
    history = play(two(Habit.CLIENT_GO, Fault(kind=FaultKind.SERVERS_DOWN, at=30_000, length=40_000)))
    assert not [one for one in history.requests if 30.1 < seconds(one.received) < 70]


def test_a_replaced_pod_has_another_uid_and_the_same_identity() -> None:
    history = play(two(Habit.CLIENT_GO, Fault(kind=FaultKind.REPLACE, at=30_000, length=3000, target="a")))
    old, new = (one for one in history.processes if one.pod == "a")
    assert old.uid != new.uid
    assert old.identity == new.identity
    assert not old.alive[0].meets(START + 33 * SECOND, START + 120 * SECOND)


def test_a_pod_is_deleted_before_its_process_ends_with_it() -> None:
    history = play(two(Habit.CLIENT_GO, Fault(kind=FaultKind.REPLACE, at=40_000, length=3000, target="a")))
    old, _ = (one for one in history.processes if one.pod == "a")
    (deletion,) = history.pod_deletions
    assert deletion.pod_uid == old.uid
    assert deletion.received <= old.alive[0].end
    assert "pod-deleted" in Facts(history, *KEY, history.end).causes("a", deletion.answered, history.end)
    assert "pod-deleted" not in Facts(history, *KEY, history.end).causes("b", deletion.answered, history.end)


def test_no_process_ends_with_what_only_looks_like_its_deletion() -> None:
    deeds = {one.kind: (seed, number) for seed in range(500) for number, one in enumerate(list_pod_deeds(draw(seed)))}
    assert set(deeds) == set(PodDeedKind)
    for kind in set(PodDeedKind) - {PodDeedKind.DELETE, PodDeedKind.EVICT}:
        seed, number = deeds[kind]
        history = play(draw(seed))
        deletions = [one for one in history.pod_deletions if one.number == POD_REQUESTS + number]
        ended = [one for request in deletions for one in history.processes if one.uid == request.pod_uid]
        assert bool(deletions) is (kind not in (PodDeedKind.FORBIDDEN, PodDeedKind.BUDGET, PodDeedKind.DRY_RUN))
        assert bool(ended) is (kind is PodDeedKind.TIDY)
        assert all(one.alive[-1].end < deletions[0].received for one in ended)


def test_an_election_stalls_when_the_preferred_candidate_dies() -> None:
    """The holder steps down for it, and the API server only tries to create the lease."""
    plan = two(Habit.COORDINATED, Fault(kind=FaultKind.KILL, at=20_900, target="b"))
    late = replace(plan.electors[1], emulated=32, begins=20_000)
    history = play(replace(plan, electors=(plan.electors[0], late)))
    last = history.writes(KEY)[-1].after
    assert last is not None
    assert last.lease is not None
    assert (last.lease.spec.holder, last.lease.spec.preferred) == ("a", "b")
    assert not history.leaders(LEASE, START + 60 * SECOND)
    assert {one.code for one in history.requests if one.verb == "create" and seconds(one.received) > 60} == {409}


def test_an_older_candidate_leads_after_the_holder_has_stepped_down() -> None:
    plan = two(Habit.COORDINATED)
    late = replace(plan.electors[1], emulated=32, begins=20_000)
    history = play(replace(plan, electors=(plan.electors[0], late)))
    assert holders(history) == ["a", "b"]
    assert not list(history.overlaps(LEASE))


def test_a_follower_that_waits_takes_the_lease_late() -> None:
    plan = two(Habit.CLIENT_GO, Fault(kind=FaultKind.KILL, at=30_000, target="a"))
    first, second = plan.electors
    history = play(replace(plan, electors=(first, replace(second, waits=40_000))))
    assert holders(history) == ["a", "b"]
    assert seconds(next(one for one in history.processes if one.pod == "b").works[0].begin) > 30 + 20


def test_a_process_with_two_leases_loses_both_when_it_is_killed() -> None:
    plan = two(Habit.CLIENT_GO, Fault(kind=FaultKind.KILL, at=30_000, target="a"))
    history = play(replace(plan, electors=tuple(replace(one, beside=SECOND_LEASE) for one in plan.electors)))
    assert holders(history) == ["a", "b"]
    for lease in (LEASE, SECOND_LEASE):
        assert {one.pod for one in history.leaders(lease, START + 20 * SECOND)} == {"a"}
        assert not history.leaders(lease, START + 35 * SECOND)
        assert {one.pod for one in history.leaders(lease, START + 80 * SECOND)} == {"b"}


def test_a_process_with_two_leases_that_loses_one_ends() -> None:
    plan = two(Habit.CLIENT_GO, outsiders=(mallory(Step(deed=Deed.STEAL, at=30_000, times=10)),))
    history = play(replace(plan, electors=tuple(replace(one, beside=SECOND_LEASE) for one in plan.electors[:1])))
    assert not history.leaders(SECOND_LEASE, START + 60 * SECOND)


def test_a_webhook_labels_each_write() -> None:
    history = play(two(Habit.CLIENT_GO, Fault(kind=FaultKind.MUTATE_LABELS, at=30_000, length=20_000)))
    labels = {one.after.lease.labels for one in history.writes(KEY) if one.after and one.after.lease}
    assert len(labels) > 8
    assert holders(history) == ["a"]


def test_a_webhook_cuts_fractions_of_times() -> None:
    history = play(two(Habit.CLIENT_GO, Fault(kind=FaultKind.MUTATE_TIMES, at=30_000, length=20_000)))
    specs = [one.after.lease.spec for one in history.writes(KEY) if one.after and one.after.lease]
    whole = [one for one in specs if one.renewed is not None and one.renewed % SECOND == 0]
    assert 8 < len(whole) < len(specs)


def test_an_attacker_renews_a_dead_holder_and_counts_transitions_up() -> None:
    plan = two(
        Habit.CLIENT_GO,
        Fault(kind=FaultKind.KILL, at=30_000, target="a"),
        outsiders=(mallory(Step(deed=Deed.RENAME, at=30_500, every=3000, times=8)),),
    )
    history = play(plan)
    specs = [one.after.lease.spec for one in history.writes(KEY) if one.after and one.after.lease]
    assert 8 in {one.transitions for one in specs if one.holder == "a"}


STOLEN = (Step(deed=Deed.STEAL, at=30_000, times=3),)


def test_a_steal_is_stored_where_writers_are_not_stamped() -> None:
    history = play(two(Habit.CLIENT_GO, outsiders=(mallory(*STOLEN),)))
    assert holders(history)[:2] == ["a", "mallory"]


def test_a_steal_is_refused_where_writers_are_stamped() -> None:
    history = play(two(Habit.CLIENT_GO, outsiders=(mallory(*STOLEN),), is_stamped=True))
    assert holders(history) == ["a"]
    assert Counter(one.refused.by for one in history.requests if one.process == "mallory" and one.refused) == {
        "stamp guard": 3
    }


@pytest.mark.deep
def test_every_fault_deed_and_refusal_is_drawn() -> None:
    """And two lead, the lease is empty, and deleted."""
    plans = [draw(seed) for seed in range(500)]
    faults = {one.kind for plan in plans for one in plan.faults}
    deeds = {step.deed for plan in plans for one in plan.outsiders for step in one.steps}
    assert set(FaultKind) - faults == set()
    assert set(Deed) - deeds == set()
    refused = Counter(one.refused.by for history in draw_histories() for one in history.requests if one.refused)
    assert min(refused.values()) > 1
    assert set(refused) == {
        *("API server", "RBAC", "authentication", "conflict", "not found", "policy", "priority and fairness"),
        *("stamp guard", "timeout", "validation", "webhook", "webhook failure"),
    }
    assert sum(any(history.overlaps(LEASE)) for history in draw_histories()) > 15
    assert sum(1 for history in draw_histories() if "" in holders(history)) > 15
    assert sum(any(one.after is None for one in history.writes(KEY)) for history in draw_histories()) > 3


# ---- inputs ---------------------------------------------------------------------------------------------------------


def inputs(kind: Kind) -> Iterator[tuple[History, dict[str, bytes]]]:
    for history in few():
        given = input_of(history, kind)
        if given:
            yield history, given.files


@pytest.mark.parametrize("kind", Kind)
def test_every_input_is_read_without_an_error(kind: Kind) -> None:
    items = [item for _, files in inputs(kind) for name, data in files.items() for item in read(name, [data])]
    assert items
    assert not [item for item in items if isinstance(item, Unreadable)]


PARTIAL = {Kind.METADATA, Kind.MIXED, Kind.ASKED, Kind.HOLE, Kind.LATE_LOG, Kind.BOTH}


@pytest.mark.parametrize("kind", [Kind.WATCH, *sorted(LOGS - PARTIAL)])
def test_an_input_of_the_whole_history_shows_every_stored_state(kind: Kind) -> None:
    for history, files in inputs(kind):
        items = [item for name, data in files.items() for item in read(name, [data])]
        seen = {
            item.resource_version
            for item in items
            if isinstance(item, Observation)
            and item.kind == "Lease"
            and item.act in (Act.CREATED, Act.UPDATED, Act.STORED)
            if isinstance(item.object, Lease)
        }
        stored = {str(one.after.revision) for one in history.stores if one.kind == "Lease" and one.after}
        assert stored <= seen


def test_a_hole_hides_its_time_alone() -> None:
    for history, files in inputs(Kind.HOLE):
        begin, end = (at / 1000 for at in history.plan.hole)
        numbers = {json.loads(line)["auditID"][-12:] for line in files["audit.log"].splitlines()}
        hidden = [one for one in history.requests if f"{one.number:012}" not in numbers]
        assert all(begin <= seconds(one.answered) < end for one in hidden)
        assert len(numbers) + len(hidden) == len(history.requests)


def test_a_list_shows_the_state_at_the_end() -> None:
    for history, files in inputs(Kind.LIST):
        leases = {one["metadata"]["name"]: one for one in json.loads(files["list.json"])["items"]}
        state = history.state(("Lease", *KEY), history.end)
        assert ("checkout" in leases) == (state is not None)
        if state is not None:
            assert leases["checkout"] == json.loads(state.text)
