"""acquireTime moves although the holder stays."""

from collections.abc import Iterable
from typing import Final

from webhook.admission.rules.change import Event, LeaseChange
from webhook.admission.rules.finding import NO_FINDINGS, Finding, Statement
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.limits import SecondsOfShift, ShiftLimits
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.occasions import LEASES, SAME_HOLDER, UPDATE
from webhook.admission.rules.rule import Rule
from webhook.admission.rules.texts import Texts
from webhook.kubernetes.field import invalid
from webhook.kubernetes.times import SECOND, format_span, get_readable_instant, normalize


class AcquireTimeShiftLimits(ShiftLimits, frozen=True):
    """`ShiftLimits` with another default."""

    above_seconds: SecondsOfShift = 1


def acquire_time_changed(change: LeaseChange) -> Iterable[Finding]:
    """spec.acquireTime must not change while the holder stays."""
    if change.new_holder != change.old_holder or change.new_spec.acquire_time == change.old_spec.acquire_time:
        return NO_FINDINGS
    new, old = (
        get_readable_instant(normalize(change.new_spec.acquire_time)),
        get_readable_instant(normalize(change.old_spec.acquire_time)),
    )
    limit = change.find_limits(AcquireTimeShiftLimits).above_seconds
    if new is None or old is None or abs(new - old) <= limit * SECOND:
        return NO_FINDINGS
    detail = f"must stay within {limit} s of the old value while the holder stays"
    moved = f"acquireTime moved by {format_span(abs(new - old))} while {{0}} stays the holder"
    happened = Statement(moved, (change.new_holder,))
    return (Finding(invalid("spec.acquireTime", change.new_spec.acquire_time, detail), happened=happened),)


ACQUIRE_TIME_CHANGED: Final = Rule(
    check=acquire_time_changed,
    resources=LEASES,
    operations=UPDATE,
    events=SAME_HOLDER - {Event.RENEWAL},
    standard=Mode.OFF,
    strict=Mode.AUDIT,
    limits=AcquireTimeShiftLimits,
    texts=Texts(
        source="ours: Pekko writes it at each heartbeat, so only audited",
        why="`acquireTime` says since when the holder has led.",
        who="Pekko, where its heartbeat also removes a `renewTime` or a duration that others set.",
        fix="Nothing to fix in most cases: the rule is for audits.",
    ),
    reads=("spec.holderIdentity", "spec.acquireTime"),
    in_cel=RuleInCel(
        broken="variables.holder == variables.oldHolder && variables.acquireMoved > $above_seconds",
        message="""
        spec.acquireTime: Invalid value: {!variables.acquireTime}: must stay within {$above_seconds} s of the old value
        while the holder stays
        """,
        lacks="Fractions of a second do not count; a time of the year 0000 counts as absent.",
        variables={
            # Seconds, in either direction.
            "acquireMoved": """
            [variables.acquireTime, variables.oldAcquireTime].all(t, size(t) == 27 && t >= "0001") ?
            [int(timestamp(variables.acquireTime)) - int(timestamp(variables.oldAcquireTime))].map(s, s < 0 ? -s : s)[0]
            : 0
            """,
        },
    ),
)
