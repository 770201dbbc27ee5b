"""Times: one that no client can decode, a renewTime ahead of the API server's clock, and times that move back."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from webhook.admission.rules.change import NODE_LEASES, CandidateChange, Event, LeaseChange
from webhook.admission.rules.limits import Seconds
from webhook.admission.rules.rule import MAX_FINDINGS, NO_FINDINGS, Finding, Mode, Statement, texts
from webhook.kubernetes.field import invalid
from webhook.kubernetes.times import SECOND, canonical_seconds, is_readable, is_time_zone, normalized, readable, span

_RENEW_TIME: Final = "spec.renewTime"
_FRACTION: Final = ' with six fraction digits, such as "2026-01-31T12:00:00.000000Z"'
_SECONDS: Final = ', such as "2026-01-31T12:00:00Z"'
_WARN, _DENY = Mode.WARN, Mode.DENY
_USUAL: Final = len("2026-01-31T12:00:00Z")
"""Characters of nearly every time of an entry."""


@texts(
    source="ours: a live kube-scheduler exited after one such write on kube-apiserver 1.36.3",
    why="The API server accepts `9999-12-31T23:59:59.999999-01:00` and stores year 10000, and by protobuf it takes any "
    "year. No JSON client can decode such an object, and no patch can fix an entry of it. A running kube-scheduler "
    "exited after one such write.",
    who="Attackers, and tests of limits. No known client writes such a time.",
    fix="Write a time between the years 0000 and 9999 in UTC. To repair a stored one, replace the object.",
    stored="write the field again with a time up to the year 9999, with `kubectl replace`",
)
def time_unreadable(change: LeaseChange | CandidateChange) -> Iterable[Finding]:
    """A time in spec or managedFields must be one that every client can read, in the years 0000 to 9999.

    It refuses what this write set or changed, including what cannot be parsed; what was stored before may stay.
    """
    if isinstance(change, LeaseChange):
        field, new, old = "spec.acquireTime", change.new_spec.acquire_time, change.old_spec.acquire_time
    else:
        field, new, old = "spec.pingTime", change.new_spec.ping_time, change.old_spec.ping_time
    found = _check_spec_time(_RENEW_TIME, change.new_spec.renew_time, change.new_renew_time, change.old_renew_time)
    if new != old and new is not None and readable(normalized(new)) is None:
        found = (*found, *_check_spec_time(field, new, normalized(new), normalized(old)))
    for entry in change.new_entries:
        # One of the usual length that parses is readable.
        if entry.time is not None and (len(entry.time) != _USUAL or entry.stamp is None):
            return (*found, *islice(_find_unreadable_entries(change), MAX_FINDINGS))
    return found


def _check_spec_time(field: str, text: str | None, new: int | str | None, old: int | str | None) -> tuple[Finding, ...]:
    if new is None or new == old or readable(new) is not None:
        return NO_FINDINGS
    return (_report_unreadable(field, text, _FRACTION),)


def _find_unreadable_entries(change: LeaseChange | CandidateChange) -> Iterator[Finding]:
    """Entries may be renamed and merged by the API server, so times are compared, not entries."""
    known = {entry.time for entry in change.old_entries}
    for index, entry in enumerate(change.new_entries):
        if entry.time is not None and entry.time not in known and not is_readable(entry.time):
            yield _report_unreadable(f"metadata.managedFields[{index}].time", entry.time, _SECONDS)


def _report_unreadable(field: str, text: str | None, form: str) -> Finding:
    happened = Statement(f"{field} is not a time of the years 0000 to 9999: JSON clients cannot decode it")
    detail = f"must be a time of the years 0000 to 9999 in UTC{form}; JSON clients cannot decode any other"
    return Finding(invalid(field, text, detail), happened=happened)


@texts(
    source="ours: kubernetes/kubernetes#108844; kubernetes_asyncio east of Greenwich writes up to 14 h ahead",
    why="Clients that compare `renewTime` with their own clock wait for it, so a dead holder keeps the lease.",
    who="kubernetes_asyncio on a machine east of Greenwich, which writes local time as UTC (up to 14 h, a warning); "
    "machines whose clock runs ahead.",
    fix="Correct the client's clock. If the difference is whole hours, the client writes local time as UTC: run it "
    "with `TZ=UTC`.",
    attack="dated a renewal far ahead, so that no one else could take the lease",
    stored="set the clock of the holder's node; update a client that writes local time as UTC",
)
def renew_time_in_future(change: LeaseChange) -> Iterable[Finding]:
    """spec.renewTime must not be set more than a day ahead of both the API server's clock and its old value.

    On UPDATE the old value counts as well: an API server resumed from an old snapshot must not stop renewals. In
    kube-node-lease it only warns.
    """
    strongest = _WARN if change.request.namespace == NODE_LEASES else _DENY
    return _check_ahead(change, change.limits.renew_time_in_future, strongest)


@texts(
    source="ours: the election works in windows of 5 s, so 10 s already warn",
    why="Such a candidate seems to have answered every ping, and is never removed.",
    who="Machines whose clock runs ahead by more than 10 s (a warning).",
    fix="Correct the client's clock.",
    attack="dated a candidate far ahead",
    stored="set the clock of the candidate's node",
)
def candidate_renew_time_in_future(change: CandidateChange) -> Iterable[Finding]:
    """spec.renewTime of a candidate must not lie more than a day ahead of the API server's clock."""
    return _check_ahead(change, change.limits.candidate_renew_time_in_future, _DENY)


def _check_ahead(change: LeaseChange | CandidateChange, limits: Seconds, strongest: Mode) -> Iterable[Finding]:
    """The finding about a renewTime ahead of the API server's clock and of its old value; a renewal is never warned."""
    new = change.new_renew_time
    # Only what is far ahead of our own clock is compared with the stamps; what is not ahead of it is not at all.
    if not isinstance(new, int) or new <= change.now or new == change.old_renew_time or readable(new) is None:
        return NO_FINDINGS
    if new - change.now <= min(limits.warn_above_seconds, limits.deny_above_seconds) * SECOND:
        return NO_FINDINGS
    clock, old = max(change.renewed_at, change.now), readable(change.old_renew_time)
    step = new - (clock if old is None else max(clock, old))
    if step > limits.deny_above_seconds * SECOND:
        return (_report_too_far(change, new, clock, limits.deny_above_seconds, strongest),)
    if step > limits.warn_above_seconds * SECOND and change.event is not Event.RENEWAL:
        return (_report_too_far(change, new, clock, limits.warn_above_seconds, Mode.WARN),)
    return NO_FINDINGS


def _report_too_far(change: LeaseChange | CandidateChange, new: int, clock: int, limit: int, tier: Mode) -> Finding:
    """The text says how far ahead it is, because a writer believes that it wrote the current time."""
    ahead_by = new - clock
    server = f"the API server ({canonical_seconds(clock)[11:]})"
    is_zone = is_time_zone(ahead_by)
    fix = "the client writes local time as UTC" if is_zone else "set the client's clock"
    detail = (
        f"must not be more than {limit} s ahead of {server}, is {span(ahead_by)} ahead; "
        f"{'whole hours: ' if is_zone else 'write the current time, or '}{fix}"
    )
    happened = Statement(f"renewTime is {span(ahead_by)} ahead of {server}: {fix}")
    return Finding(invalid(_RENEW_TIME, change.new_spec.renew_time, detail), tier=tier, happened=happened)


@texts(
    source="ours: kubernetes/kubernetes#113081; setting a clock right may not become an outage",
    why="A renewTime that falls makes a live lease look expired to clients that trust it.",
    who="Machines whose clock is set back. Correcting a clock must not cause an outage, so no preset denies it.",
    fix="Keep clocks synchronized.",
)
def renew_time_backwards(change: LeaseChange) -> Iterable[Finding]:
    """spec.renewTime must not move back by more than an hour while the holder stays."""
    if change.new_holder != change.old_holder:
        return NO_FINDINGS
    risk = "the lease may be taken too early; check the holder's clock"
    return _check_backwards(change, change.limits.renew_time_backwards.above_seconds, "holder", risk)


@texts(
    source="ours: clocks step back, so only audited",
    why="A candidate whose renewTime falls may be removed although it still runs.",
    who="Machines whose clock is set back.",
    fix="Keep clocks synchronized.",
)
def candidate_renew_time_backwards(change: CandidateChange) -> Iterable[Finding]:
    """spec.renewTime of a candidate must not move back by more than an hour."""
    risk = "the election may leave this candidate out"
    return _check_backwards(change, change.limits.candidate_renew_time_backwards.above_seconds, "candidate", risk)


def _check_backwards(change: LeaseChange | CandidateChange, limit: int, whose: str, risk: str) -> Iterable[Finding]:
    new, old = change.new_renew_time, change.old_renew_time
    if not isinstance(new, int) or not isinstance(old, int) or old - new <= limit * SECOND:
        return NO_FINDINGS
    if readable(new) is None or readable(old) is None:
        return NO_FINDINGS
    detail = f"must not be more than {limit} s before the old value; check the {whose}'s clock"
    happened = Statement(f"renewTime moved back by {span(old - new)}: {risk}")
    return (Finding(invalid(_RENEW_TIME, change.new_spec.renew_time, detail), happened=happened),)


@texts(
    source="ours: Pekko writes it at each heartbeat and Java clients cut it to milliseconds, so only audited",
    why="`acquireTime` says since when the holder has led.",
    who="Pekko, which writes it at each heartbeat; Java clients, which cut it to milliseconds.",
    fix="Nothing to fix in most cases: the rule is for audits.",
)
def acquire_time_changed(change: LeaseChange) -> Iterable[Finding]:
    """spec.acquireTime must not change while the holder stays."""
    if change.new_holder != change.old_holder or change.new_spec.acquire_time == change.old_spec.acquire_time:
        return NO_FINDINGS
    new, old = readable(normalized(change.new_spec.acquire_time)), readable(normalized(change.old_spec.acquire_time))
    limit = change.limits.acquire_time_changed.above_seconds
    if new is None or old is None or abs(new - old) <= limit * SECOND:
        return NO_FINDINGS
    detail = f"must stay within {limit} s of the old value while the holder stays"
    moved = f"acquireTime moved by {span(abs(new - old))} while {{0}} stays the holder"
    happened = Statement(moved, (change.new_holder,))
    return (Finding(invalid("spec.acquireTime", change.new_spec.acquire_time, detail), happened=happened),)
