"""renewTime of a Lease: how far ahead it may lie, and how far it may fall."""

from collections.abc import Iterable
from typing import Final, TypeGuard

from webhook.api import micro_time
from webhook.api.field import invalid
from webhook.rules.change import LeaseChange
from webhook.rules.election.takeover import NODE_LEASES
from webhook.rules.events import Event
from webhook.rules.finding import NOTHING, Finding
from webhook.rules.limits import SecondsAhead
from webhook.rules.mode import Mode
from webhook.rules.rule import LEASES, TOUCHED, UPDATE, WRITES, Rule
from webhook.rules.statement import Statement
from webhook.rules.times import HOUR, MINUTE, SECOND, readable, span

_FIELD: Final = "spec.renewTime"
MOST_HOURS_EAST: Final = 14
"""The zone that is furthest ahead of UTC is that of Kiritimati."""


def renew_time_is_not_in_the_future(change: LeaseChange) -> Iterable[Finding]:
    """spec.renewTime must not lie more than a day ahead of the API server's clock, and not in one step.

    Clients that compare renewTime with their own clock would wait for it. On UPDATE the old value counts as well: an
    API server resumed from an old snapshot must not stop renewals. In kube-node-lease it only warns.
    """
    new = change.new_renew_time
    if new == change.old_renew_time or not is_ahead(new, change.now, change.limits.renew_time_in_future):
        return NOTHING
    return ahead(
        new,
        readable(change.old_renew_time),
        max(change.renewed_at, change.now),
        change.limits.renew_time_in_future,
        value=change.new.renew_time,
        silent_warnings=change.event is Event.RENEWAL,
        strongest=Mode.WARN if change.request.namespace == NODE_LEASES else Mode.DENY,
    )


def falls(new: int | str | None, old: int | str | None) -> bool:
    """Whether a renewTime is set to an earlier one; nearly every write answers no."""
    return isinstance(new, int) and isinstance(old, int) and new < old


def is_ahead(new: int | str | None, now: int, limits: SecondsAhead) -> TypeGuard[int]:
    """Whether a renewTime is readable and so far ahead of our own clock that the stamps are worth a look."""
    if not isinstance(new, int) or new - now <= min(limits.warn_above_seconds, limits.deny_above_seconds) * SECOND:
        return False
    return readable(new) is not None


def ahead(
    new: int,
    old: int | None,
    clock: int,
    limits: SecondsAhead,
    *,
    value: object,
    silent_warnings: bool = False,
    strongest: Mode = Mode.DENY,
) -> Iterable[Finding]:
    """The finding about a renewTime that lies ahead of `clock` and of its old value, if there is one."""
    reference = clock if old is None else max(clock, old)
    step = new - reference
    if step > limits.deny_above_seconds * SECOND:
        return (_too_far(value, new, clock, limits.deny_above_seconds, strongest),)
    if step > limits.warn_above_seconds * SECOND and not silent_warnings:
        return (_too_far(value, new, clock, limits.warn_above_seconds, Mode.WARN),)
    return NOTHING


def _too_far(value: object, new: int, clock: int, limit: int, tier: Mode) -> Finding:
    """How far ahead is named: a writer believes that it wrote the current time."""
    ahead_by = new - clock
    server = f"the API server ({micro_time.canonical_seconds(clock)[11:]})"
    is_zone = _is_time_zone(ahead_by)
    repair = "the client writes local time as UTC" if is_zone else "set the client's clock"
    detail = (
        f"must not be more than {limit} s ahead of {server}, is {span(ahead_by)} ahead; "
        f"{'whole hours: ' if is_zone else 'write the current time, or '}{repair}"
    )
    happened = Statement(f"renewTime is {span(ahead_by)} ahead of {server}: {repair}")
    return Finding(invalid(_FIELD, value, detail), tier=tier, happened=happened)


def _is_time_zone(ahead_by: int) -> bool:
    """Whether the distance is one of whole hours that a zone east of Greenwich can have, give or take a minute."""
    hours, beside = divmod(ahead_by + MINUTE, HOUR)
    return 1 <= hours <= MOST_HOURS_EAST and beside <= 2 * MINUTE


def renew_time_does_not_fall(change: LeaseChange) -> Iterable[Finding]:
    """spec.renewTime must not fall by more than an hour while the holder stays."""
    if not falls(change.new_renew_time, change.old_renew_time):
        return NOTHING
    new, old = readable(change.new_renew_time), readable(change.old_renew_time)
    if new is None or old is None or change.new_holder != change.old_holder:
        return NOTHING
    limit = change.limits.renew_time_backwards.above_seconds
    if old - new <= limit * SECOND:
        return NOTHING
    detail = f"must not be more than {limit} s before the old value; check the holder's clock"
    happened = Statement(
        f"renewTime fell by {span(old - new)}: others may take the lease too early; check the holder's clock"
    )
    return (Finding(invalid(_FIELD, change.new.renew_time, detail), happened=happened),)


RULES = (
    Rule(
        id="renew-time-in-future",
        check=renew_time_is_not_in_the_future,
        resources=LEASES,
        operations=WRITES,
        events=TOUCHED,
        source="ours: kubernetes/kubernetes#108844; kubernetes_asyncio east of Greenwich writes up to 14 h ahead",
    ),
    Rule(
        id="renew-time-backwards",
        check=renew_time_does_not_fall,
        resources=LEASES,
        operations=UPDATE,
        events=TOUCHED,
        standard=Mode.AUDIT,
        strict=Mode.WARN,
        source="ours: kubernetes/kubernetes#113081; setting a clock right may not become an outage",
    ),
)
