"""renewTime of a Lease or a LeaseCandidate: ahead of the clock, and moved back."""

from collections.abc import Iterable
from typing import Final

from webhook.admission.rules.change import NODE_LEASES, CandidateChange, Event, LeaseChange
from webhook.admission.rules.finding import NO_FINDINGS, Finding, Statement
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.limits import FutureLimits, SecondsAheadToWarn, ShiftLimits
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.occasions import CANDIDATES, LEASES, SAME_HOLDER, SPEC_EVENTS, UPDATE, WRITES
from webhook.admission.rules.rule import Rule
from webhook.admission.rules.texts import ABSURD_VALUE, NO_TAKEOVER, DeniedRenewal, Stored, Texts
from webhook.kubernetes.field import invalid
from webhook.kubernetes.times import SECOND, format_span, format_time, get_readable_instant, is_time_zone

_RENEW_TIME: Final = "spec.renewTime"

_NO_CLOCK: Final = (
    "The clock is the stamp of this write in managedFields, in whole seconds; without one, nothing is said."
)

_NO_FRACTIONS: Final = "Fractions of a second do not count; a time of the year 0000 counts as absent."


class RenewTimeFutureLimits(FutureLimits, frozen=True):
    """Limits on how far the renewTime of a lease may lie ahead."""


class CandidateFutureLimits(FutureLimits, frozen=True):
    """Limits on how far the renewTime of a candidate may lie ahead: the election works in windows of 5 s."""

    warn_above_seconds: SecondsAheadToWarn = 10


class RenewTimeShiftLimits(ShiftLimits, frozen=True):
    """Limits on how far the renewTime of a lease may move back."""


class CandidateShiftLimits(ShiftLimits, frozen=True):
    """Limits on how far the renewTime of a candidate may move back."""


def renew_time_in_future(change: LeaseChange) -> Iterable[Finding]:
    """spec.renewTime must not be set more than a day ahead of both the API server's clock and its old value.

    On UPDATE the old value counts as well: an API server resumed from an old snapshot must not stop renewals. A renewal
    is compared with `deny_above_seconds` only, and no smaller step is warned of. In kube-node-lease it only warns.
    """
    strongest = Mode.WARN if change.request.namespace == NODE_LEASES else Mode.DENY
    return _check_ahead(change, RenewTimeFutureLimits, strongest)


RENEW_TIME_IN_FUTURE: Final = Rule(
    check=renew_time_in_future,
    resources=LEASES,
    operations=WRITES,
    events=SPEC_EVENTS,
    standard=Mode.DENY,
    strict=Mode.DENY,
    limits=RenewTimeFutureLimits,
    texts=Texts(
        source="ours: kubernetes/kubernetes#108844; kubernetes_asyncio east of Greenwich writes up to 14 h ahead",
        why="Clients that compare `renewTime` with their own clock wait for it, so a dead holder keeps the lease.",
        who="kubernetes_asyncio on a machine east of Greenwich, which writes local time as UTC (up to 14 h: a "
        "warning when it creates or takes a lease); machines whose clock runs ahead.",
        fix="Correct the client's clock. If the difference is whole hours, the client writes local time as UTC: run it "
        "with `TZ=UTC`.",
        attack="dated a renewal far ahead, so that no one else could take the lease",
    ),
    stored=Stored(
        means=NO_TAKEOVER,
        fix="set the clock of the holder's node; update a client that writes local time as UTC",
    ),
    denied_renewal=DeniedRenewal(reason=ABSURD_VALUE, condition="in kube-node-lease it only warns"),
    without_effect="a deny_above_seconds below 86400",
    attack_at_any_mode=False,
    reads=("spec.renewTime", "metadata.managedFields"),
    in_cel=RuleInCel(
        broken="request.namespace != 'kube-node-lease' && variables.aheadBy > $deny_above_seconds",
        message="""
        spec.renewTime: Invalid value: {!variables.renewTime}: must not be more than {$deny_above_seconds}
        {variables.ahead}
        """,
        warned="""
        variables.event != 'renewal' && variables.aheadBy > $warn_above_seconds
        || request.namespace == 'kube-node-lease' && variables.aheadBy > $deny_above_seconds
        """,
        warning="""
        spec.renewTime: Invalid value: {!variables.renewTime}: must not be more than {$warn_above_seconds}
        {variables.ahead}
        """,
        lacks=_NO_CLOCK,
    ),
)


def candidate_renew_time_in_future(change: CandidateChange) -> Iterable[Finding]:
    """spec.renewTime of a candidate must not be over a day ahead of both the API server's clock and its old value.

    On UPDATE the old value counts as well: an API server resumed from an old snapshot must not stop answers to pings,
    because an election leaves out a candidate that does not answer. So a writer can move it on in steps of a day.
    """
    return _check_ahead(change, CandidateFutureLimits, Mode.DENY)


CANDIDATE_RENEW_TIME_IN_FUTURE: Final = Rule(
    check=candidate_renew_time_in_future,
    resources=CANDIDATES,
    operations=WRITES,
    events=SPEC_EVENTS,
    standard=Mode.DENY,
    strict=Mode.DENY,
    limits=CandidateFutureLimits,
    texts=Texts(
        source="ours: the election works in windows of 5 s, so 10 s already warn",
        why="Such a candidate seems to have answered every ping, and is never removed.",
        who="Machines whose clock runs ahead by more than 10 s (a warning).",
        fix="Correct the client's clock.",
        attack="dated a candidate far ahead",
    ),
    stored=Stored(
        means=NO_TAKEOVER,
        fix="set the clock of the candidate's node",
    ),
    attack_at_any_mode=False,
    reads=("spec.renewTime", "metadata.managedFields"),
    in_cel=RuleInCel(
        broken="variables.aheadBy > $deny_above_seconds",
        message="""
        spec.renewTime: Invalid value: {!variables.renewTime}: must not be more than {$deny_above_seconds}
        {variables.ahead}
        """,
        warned="variables.aheadBy > $warn_above_seconds",
        warning="""
        spec.renewTime: Invalid value: {!variables.renewTime}: must not be more than {$warn_above_seconds}
        {variables.ahead}
        """,
        lacks=_NO_CLOCK,
    ),
)


def _check_ahead(
    change: LeaseChange | CandidateChange, numbers: type[FutureLimits], strongest: Mode
) -> Iterable[Finding]:
    """The finding about a renewTime ahead of the API server's clock and of its old value; a renewal is never warned."""
    new = change.new_renew_time
    # Only what is far ahead of our own clock is compared with the stamps; what is not ahead of it is not at all.
    if (
        not isinstance(new, int)
        or new <= change.now
        or new == change.old_renew_time
        or get_readable_instant(new) is None
    ):
        return NO_FINDINGS
    limits = change.find_limits(numbers)
    if new - change.now <= min(limits.warn_above_seconds, limits.deny_above_seconds) * SECOND:
        return NO_FINDINGS
    clock, old = max(change.renew_time_written_at, change.now), get_readable_instant(change.old_renew_time)
    step = new - (clock if old is None else max(clock, old))
    if step > limits.deny_above_seconds * SECOND:
        return (_report_too_far(change, new, clock, limits.deny_above_seconds, strongest),)
    if step > limits.warn_above_seconds * SECOND and change.event is not Event.RENEWAL:
        return (_report_too_far(change, new, clock, limits.warn_above_seconds, Mode.WARN),)
    return NO_FINDINGS


def _report_too_far(change: LeaseChange | CandidateChange, new: int, clock: int, limit: int, tier: Mode) -> Finding:
    """The text says how far ahead it is, because a writer believes that it wrote the current time."""
    ahead_by = new - clock
    server = f"the API server ({format_time(clock)[11:]})"
    is_zone = is_time_zone(ahead_by)
    fix = "the client writes local time as UTC" if is_zone else "set the client's clock"
    detail = (
        f"must not be more than {limit} s ahead of {server}, is {format_span(ahead_by)} ahead; "
        f"{'whole hours: ' if is_zone else 'write the current time, or '}{fix}"
    )
    happened = Statement(f"renewTime is {format_span(ahead_by)} ahead of {server}: {fix}")
    return Finding(invalid(_RENEW_TIME, change.new_spec.renew_time, detail), tier=tier, happened=happened)


def renew_time_backwards(change: LeaseChange) -> Iterable[Finding]:
    """spec.renewTime must not move back by more than an hour while the holder stays."""
    if change.new_holder != change.old_holder:
        return NO_FINDINGS
    risk = "the lease may be taken too early; check the holder's clock"
    return _check_backwards(change, change.find_limits(RenewTimeShiftLimits).above_seconds, "holder", risk)


RENEW_TIME_BACKWARDS: Final = Rule(
    check=renew_time_backwards,
    resources=LEASES,
    operations=UPDATE,
    events=SAME_HOLDER,
    standard=Mode.AUDIT,
    strict=Mode.WARN,
    limits=RenewTimeShiftLimits,
    texts=Texts(
        source="ours: kubernetes/kubernetes#113081; setting a clock right may not become an outage",
        why="A renewTime that falls makes a live lease look expired to clients that trust it.",
        who="Machines whose clock is set back. Correcting a clock must not cause an outage, so no preset denies it.",
        fix="Keep clocks synchronized.",
    ),
    without_effect="mode deny",
    reads=("spec.holderIdentity", "spec.renewTime"),
    in_cel=RuleInCel(
        broken="""
        variables.holder == variables.oldHolder && variables.renewedTo != 0 && variables.renewedFrom != 0 &&
        variables.renewedFrom - variables.renewedTo > $above_seconds
        """,
        message="""
        spec.renewTime: Invalid value: {!variables.renewTime}: must not be more than {$above_seconds} s before the old
        value; check the holder's clock
        """,
        lacks=_NO_FRACTIONS,
    ),
)


def candidate_renew_time_backwards(change: CandidateChange) -> Iterable[Finding]:
    """spec.renewTime of a candidate must not move back by more than an hour."""
    risk = "the election may leave this candidate out"
    return _check_backwards(change, change.find_limits(CandidateShiftLimits).above_seconds, "candidate", risk)


CANDIDATE_RENEW_TIME_BACKWARDS: Final = Rule(
    check=candidate_renew_time_backwards,
    resources=CANDIDATES,
    operations=UPDATE,
    events=SPEC_EVENTS,
    standard=Mode.OFF,
    strict=Mode.AUDIT,
    limits=CandidateShiftLimits,
    texts=Texts(
        source="ours: clocks step back, so only audited",
        why="A candidate whose renewTime falls may be removed although it still runs.",
        who="Machines whose clock is set back.",
        fix="Keep clocks synchronized.",
    ),
    reads=("spec.renewTime",),
    in_cel=RuleInCel(
        broken="""
        variables.renewedTo != 0 && variables.renewedFrom != 0 && variables.renewedFrom - variables.renewedTo >
        $above_seconds
        """,
        message="""
        spec.renewTime: Invalid value: {!variables.renewTime}: must not be more than {$above_seconds} s before the old
        value; check the candidate's clock
        """,
        lacks=_NO_FRACTIONS,
    ),
)


def _check_backwards(change: LeaseChange | CandidateChange, limit: int, whose: str, risk: str) -> Iterable[Finding]:
    new, old = change.new_renew_time, change.old_renew_time
    if not isinstance(new, int) or not isinstance(old, int) or old - new <= limit * SECOND:
        return NO_FINDINGS
    if get_readable_instant(new) is None or get_readable_instant(old) is None:
        return NO_FINDINGS
    detail = f"must not be more than {limit} s before the old value; check the {whose}'s clock"
    happened = Statement(f"renewTime moved back by {format_span(old - new)}: {risk}")
    return (Finding(invalid(_RENEW_TIME, change.new_spec.renew_time, detail), happened=happened),)
