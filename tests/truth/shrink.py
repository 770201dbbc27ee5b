"""Drops parts of a plan as long as a claim stays false, so that a person can read what is left."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from msgspec.structs import replace

from tests.truth.plans import LEASE, OutsiderPlan, Plan

_Part = TypeVar("_Part")


def shrink(plan: Plan, is_false: Callable[[Plan], bool]) -> Plan:
    """Return the smallest plan that dropping one part after another leads to."""
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for smaller in _smaller(plan):
            if is_false(smaller):
                plan, is_smaller = smaller, True
                break
    return plan


def _smaller(plan: Plan) -> Iterator[Plan]:
    """Yield plans with one part less, the largest steps first."""
    yield from (replace(plan, outsiders=_drop_part(plan.outsiders, at)) for at in range(len(plan.outsiders)))
    yield from (replace(plan, faults=_drop_part(plan.faults, at)) for at in range(len(plan.faults)))
    for at, elector in enumerate(plan.electors):
        # Where no other lease is renewed, nothing in an input shows what it lacks.
        if elector.lease == LEASE or sum(1 for one in plan.electors if one.lease != LEASE) > 1:
            yield replace(plan, electors=_drop_part(plan.electors, at))
    for at, outsider in enumerate(plan.outsiders):
        yield from (replace(plan, outsiders=_replace_part(plan.outsiders, at, one)) for one in _drop_steps(outsider))
    yield from _plainer(plan)
    for length in (plan.length // 2, plan.length * 3 // 4, plan.length - 10_000, plan.length - 2000):
        if 10_000 < length < plan.length:
            yield replace(plan, length=length)


def _plainer(plan: Plan) -> Iterator[Plan]:
    if len(plan.offsets) > 1:
        yield replace(plan, offsets=plan.offsets[:1])
    if any(plan.offsets):
        yield replace(plan, offsets=(0,) * len(plan.offsets))
    if plan.is_stamped:
        yield replace(plan, is_stamped=False)
    for at, elector in enumerate(plan.electors):
        if elector.skew:
            yield replace(plan, electors=_replace_part(plan.electors, at, replace(elector, skew=0)))


def _drop_steps(outsider: OutsiderPlan) -> Iterator[OutsiderPlan]:
    for number, step in enumerate(outsider.steps):
        if len(outsider.steps) > 1:
            yield replace(outsider, steps=_drop_part(outsider.steps, number))
        if step.times > 1:
            once = replace(step, times=step.times // 2)
            yield replace(outsider, steps=_replace_part(outsider.steps, number, once))


def _drop_part(parts: tuple[_Part, ...], number: int) -> tuple[_Part, ...]:
    return (*parts[:number], *parts[number + 1 :])


def _replace_part(parts: tuple[_Part, ...], number: int, part: _Part) -> tuple[_Part, ...]:
    return (*parts[:number], part, *parts[number + 1 :])
