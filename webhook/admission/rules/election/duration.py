"""leaseDurationSeconds: too long, and, like renewTime, cut while the lease is held."""

from collections.abc import Iterable
from typing import Annotated, Final

from msgspec import Meta, Struct

from webhook.admission.rules.change import LeaseChange
from webhook.admission.rules.finding import NO_FINDINGS, Finding, Statement
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.occasions import LEASES, SAME_HOLDER, SPEC_EVENTS, UPDATE, WRITES
from webhook.admission.rules.rule import Rule
from webhook.admission.rules.texts import ABSURD_VALUE, NO_TAKEOVER, DeniedRenewal, Stored, Texts
from webhook.kubernetes.field import forbidden, invalid
from webhook.kubernetes.times import SECOND, format_span
from webhook.text.quoting import quote


class DurationLimits(Struct, frozen=True):
    """How long a lease may last; a year is beyond every client's default, of which the longest is 3600."""

    warn_above_seconds: Annotated[int, Meta(description="warns of a duration of more than so many seconds")] = 86_400
    deny_above_seconds: Annotated[int, Meta(description="the mode applies to one of more than so many seconds")] = (
        31_536_000
    )


def duration_too_long(change: LeaseChange) -> Iterable[Finding]:
    """spec.leaseDurationSeconds must not be longer than a year."""
    new = change.new_spec.lease_duration_seconds
    if new is None or new == change.old_spec.lease_duration_seconds:
        return NO_FINDINGS
    limits = change.find_limits(DurationLimits)
    # Two overrides on one lease can put the deny limit below the warn limit.
    if new <= min(limits.warn_above_seconds, limits.deny_above_seconds):
        return NO_FINDINGS
    denied = new > limits.deny_above_seconds
    limit = limits.deny_above_seconds if denied else limits.warn_above_seconds
    detail = f"must not be greater than {limit}; a dead holder would keep the lease for as long"
    error = invalid("spec.leaseDurationSeconds", new, detail)
    happened = Statement(
        f"leaseDurationSeconds is {new}: a dead holder keeps the lease for {format_span(new * SECOND)}"
    )
    return (Finding(error, tier=Mode.DENY if denied else Mode.WARN, happened=happened),)


DURATION_TOO_LONG: Final = Rule(
    check=duration_too_long,
    resources=LEASES,
    operations=WRITES,
    events=SPEC_EVENTS,
    standard=Mode.DENY,
    strict=Mode.DENY,
    limits=DurationLimits,
    texts=Texts(
        source="ours: the longest default of a known client is 3600 s",
        why="A dead holder keeps the lease for the whole duration: 2147483647 s are 68 years.",
        who="Durations in milliseconds instead of seconds; leases used as locks without an end.",
        fix="Configure seconds. The longest default of a known client is 3600.",
        attack="set a duration after which no one else could take the lease",
    ),
    stored=Stored(
        means=NO_TAKEOVER,
        fix="{kubectl} patch lease {name} --type=merge -p "
        '\'{"spec":{"leaseDurationSeconds":15,"renewTime":"\'$(date -u +%Y-%m-%dT%H:%M:%S.000000Z)\'"}}\'',
    ),
    denied_renewal=DeniedRenewal(reason=ABSURD_VALUE),
    attack_at_any_mode=False,
    reads=("spec.leaseDurationSeconds",),
    in_cel=RuleInCel(
        broken="variables.duration != variables.oldDuration && variables.duration > $deny_above_seconds",
        message="""
        spec.leaseDurationSeconds: Invalid value: {variables.duration}: must not be greater than {$deny_above_seconds};
        a dead holder would keep the lease for as long
        """,
        warned="variables.duration != variables.oldDuration && variables.duration > $warn_above_seconds",
        warning="""
        spec.leaseDurationSeconds: Invalid value: {variables.duration}: must not be greater than {$warn_above_seconds};
        a dead holder would keep the lease for as long
        """,
    ),
)


def duration_shortened(change: LeaseChange) -> Iterable[Finding]:
    """The duration or renewTime of a held lease may not be cut without renewing it.

    It only warns of a write that sets another `renewTime` or `acquireTime` and removes the duration or the `renewTime`:
    an elector that sets none does so whenever others set one. Not evaluated for the [stamped writer](../stamp.md) of
    the lease.
    """
    if not change.old_holder or change.new_holder != change.old_holder or change.is_by_stamped_writer:
        return NO_FINDINGS
    new, old = change.new_spec.lease_duration_seconds, change.old_spec.lease_duration_seconds
    tier = Mode.WARN if change.is_of_an_elector else Mode.DENY
    if old is not None and new is None:
        return _report_shortening(change, "leaseDurationSeconds", tier=tier)
    if change.new_renew_time is None and change.old_renew_time is not None:
        return _report_shortening(change, "renewTime", tier=tier)
    if old is not None and new is not None and new < old and change.new_renew_time == change.old_renew_time:
        may_not = f"may not be decreased from {old} to {new} without a new renewTime"
        return _report_shortening(change, "leaseDurationSeconds", may_not, f"decreased from {old} to {new}")
    return NO_FINDINGS


DURATION_SHORTENED: Final = Rule(
    check=duration_shortened,
    resources=LEASES,
    operations=UPDATE,
    events=SAME_HOLDER,
    standard=Mode.WARN,
    strict=Mode.DENY,
    texts=Texts(
        source="ours: no known client does it, and it makes a live lease count as expired",
        why="Cutting the duration, or removing `renewTime`, makes a live lease count as expired, the first step of a "
        "steal.",
        who="People who repair a lease by hand. No known client.",
        fix="Renew in the same write (a renewal that lowers the duration is allowed), or release the lease instead.",
        attack="cut a lease that another held",
    ),
    denied_renewal=DeniedRenewal(reason="a shorter duration while `renewTime` stays"),
    reads=("spec.holderIdentity", "spec.leaseDurationSeconds", "spec.renewTime"),
    in_cel=RuleInCel(
        broken="""
        variables.oldHolder != '' && variables.holder == variables.oldHolder && (variables.isCut ?
        !variables.isOfElector : variables.isLowered) && !variables.isStampedWriter
        """,
        warned="""
        variables.oldHolder != '' && variables.holder == variables.oldHolder && variables.isCut &&
        !variables.isStampedWriter
        """,
        message="""
        spec.{variables.cut}: Forbidden: may not be {variables.isLowered ? variables.lowered : 'removed'} while
        {!variables.oldHolder} holds the lease; renew or release instead
        """,
        lacks="The text does not say how many seconds are left.",
        variables={
            "isCut": """
            variables.oldDuration != 0 && variables.duration == 0
            || variables.oldRenewTime != "" && variables.renewTime == ""
            """,
            "cut": """
            variables.oldDuration != 0 && variables.duration == 0 || !variables.isCut ? "leaseDurationSeconds" :
            "renewTime"
            """,
            "isLowered": "!variables.isCut && variables.duration < variables.oldDuration && !variables.renewed",
        },
        phrases={
            "lowered": "decreased from {variables.oldDuration} to {variables.duration} without a new renewTime",
        },
    ),
)


def _report_shortening(
    change: LeaseChange,
    name: str,
    may_not: str = "may not be removed",
    was: str = "was removed",
    *,
    tier: Mode = Mode.DENY,
) -> tuple[Finding, ...]:
    left = change.expiry.seconds_left
    remaining = f" ({left} s left)" if left else ""
    detail = f"{may_not} while {quote(change.old_holder)} holds the lease{remaining}; renew or release instead"
    lost = f"{name} {was} while {{0}} holds the lease: there may be two leaders"
    happened = Statement(lost, (change.old_holder,))
    return (Finding(forbidden(f"spec.{name}", detail), tier=tier, happened=happened),)
