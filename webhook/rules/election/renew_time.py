"""renewTime of a Lease: how far ahead it may be, and how far it may move back."""

from collections.abc import Iterable
from typing import Final

from webhook.api.field import invalid
from webhook.api.times import SECOND, readable, span
from webhook.rules.change import NODE_LEASES, Event, LeaseChange
from webhook.rules.rule import LEASES, NO_FINDINGS, TOUCHED, UPDATE, WRITES, Attack, Finding, Mode, Rule, Statement
from webhook.rules.time_ahead import ahead, is_ahead

_FIELD: Final = "spec.renewTime"


def renew_time_is_not_in_the_future(change: LeaseChange) -> Iterable[Finding]:
    """spec.renewTime must not be set more than a day ahead of both the API server's clock and its old value.

    Clients that compare renewTime with their own clock would wait for it. On UPDATE the old value counts as well: an
    API server resumed from an old snapshot must not stop renewals. In kube-node-lease it only warns.
    """
    new = change.new_renew_time
    if new == change.old_renew_time or not is_ahead(new, change.now, change.limits.renew_time_in_future):
        return NO_FINDINGS
    return ahead(
        new,
        readable(change.old_renew_time),
        max(change.renewed_at, change.now),
        change.limits.renew_time_in_future,
        value=change.new_spec.renew_time,
        without_warnings=change.event is Event.RENEWAL,
        strongest=Mode.WARN if change.request.namespace == NODE_LEASES else Mode.DENY,
    )


def moves_back(new: int | str | None, old: int | str | None) -> bool:
    """True if renewTime is set to an earlier time; in nearly every write it is not."""
    return isinstance(new, int) and isinstance(old, int) and new < old


def renew_time_does_not_move_back(change: LeaseChange) -> Iterable[Finding]:
    """spec.renewTime must not move back by more than an hour while the holder stays."""
    if not moves_back(change.new_renew_time, change.old_renew_time):
        return NO_FINDINGS
    new, old = readable(change.new_renew_time), readable(change.old_renew_time)
    if new is None or old is None or change.new_holder != change.old_holder:
        return NO_FINDINGS
    limit = change.limits.renew_time_backwards.above_seconds
    if old - new <= limit * SECOND:
        return NO_FINDINGS
    detail = f"must not be more than {limit} s before the old value; check the holder's clock"
    happened = Statement(
        f"renewTime moved back by {span(old - new)}: the lease may be taken too early; check the holder's clock"
    )
    return (Finding(invalid(_FIELD, change.new_spec.renew_time, detail), happened=happened),)


RULES = (
    Rule(
        id="renew-time-in-future",
        check=renew_time_is_not_in_the_future,
        resources=LEASES,
        operations=WRITES,
        events=TOUCHED,
        source="ours: kubernetes/kubernetes#108844; kubernetes_asyncio east of Greenwich writes up to 14 h ahead",
        why="Clients that compare `renewTime` with their own clock wait for it, so a dead holder keeps the lease.",
        who="kubernetes_asyncio on a machine east of Greenwich, which writes local time as UTC (up to 14 h, a "
        "warning); machines whose clock runs ahead.",
        fix="Correct the client's clock. If the difference is whole hours, the client writes local time as UTC: "
        "run it with `TZ=UTC`.",
        attack=Attack("dated a renewal far ahead, so that no one else could take the lease", at_any_mode=False),
        stored="set the clock of the holder's node; update a client that writes local time as UTC",
    ),
    Rule(
        id="renew-time-backwards",
        check=renew_time_does_not_move_back,
        resources=LEASES,
        operations=UPDATE,
        events=TOUCHED,
        standard=Mode.AUDIT,
        strict=Mode.WARN,
        source="ours: kubernetes/kubernetes#113081; setting a clock right may not become an outage",
        why="A renewTime that falls makes a live lease look expired to clients that trust it.",
        who="Machines whose clock is set back. Correcting a clock must not cause an outage, so no preset denies it.",
        fix="Keep clocks synchronized.",
    ),
)
