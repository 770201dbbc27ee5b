"""acquireTime while the holder stays."""

from collections.abc import Iterable

from webhook.api.field import invalid
from webhook.api.times import SECOND, normalized, readable, span
from webhook.rules.change import LeaseChange
from webhook.rules.rule import LEASES, NO_FINDINGS, NOT_A_RENEWAL, UPDATE, Finding, Mode, Rule, Statement


def acquire_time_stays(change: LeaseChange) -> Iterable[Finding]:
    """spec.acquireTime must not change while the holder stays."""
    if change.new_holder != change.old_holder or change.new_spec.acquire_time == change.old_spec.acquire_time:
        return NO_FINDINGS
    new, old = readable(normalized(change.new_spec.acquire_time)), readable(normalized(change.old_spec.acquire_time))
    limit = change.limits.acquire_time_changed.above_seconds
    if new is None or old is None or abs(new - old) <= limit * SECOND:
        return NO_FINDINGS
    detail = f"must stay within {limit} s of the old value while the holder stays"
    happened = Statement(
        f"acquireTime moved by {span(abs(new - old))} while {{0}} stays the holder",
        (change.new_holder,),
    )
    return (Finding(invalid("spec.acquireTime", change.new_spec.acquire_time, detail), happened=happened),)


RULES = (
    Rule(
        id="acquire-time-changed",
        check=acquire_time_stays,
        resources=LEASES,
        operations=UPDATE,
        events=NOT_A_RENEWAL,
        standard=Mode.OFF,
        strict=Mode.AUDIT,
        source="ours: Pekko writes it at each heartbeat and Java clients cut it to milliseconds, so only audited",
        why="`acquireTime` says since when the holder has led.",
        who="Pekko, which writes it at each heartbeat; Java clients, which cut it to milliseconds.",
        fix="Nothing to fix in most cases: the rule is for audits.",
    ),
)
