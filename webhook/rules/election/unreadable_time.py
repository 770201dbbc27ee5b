"""Times that an API server stores but no client can decode: one such write ends a live leader."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from webhook.api.field import invalid
from webhook.api.times import is_readable, normalized, readable
from webhook.rules.change import CandidateChange, LeaseChange
from webhook.rules.rule import BOTH, MAX_FINDINGS, NO_FINDINGS, WRITES, Finding, Rule, Statement

_YEARS: Final = "must be a time of the years 0000 to 9999 in UTC"
_FRACTION: Final = ' with six fraction digits, such as "2026-01-31T12:00:00.000000Z"'
_SECONDS: Final = ', such as "2026-01-31T12:00:00Z"'
_OTHERS: Final = "; JSON clients cannot decode any other"


def times_are_readable(change: LeaseChange | CandidateChange) -> Iterable[Finding]:
    """A time in spec or managedFields must be one that every client can read, in the years 0000 to 9999.

    The API server accepts `9999-12-31T23:59:59.999999-01:00` and stores year 10000, and by protobuf it takes any year;
    from then on JSON clients cannot decode the object. Whatever does not parse is refused, where this write set or
    changed it: a stored one can be fixed.
    """
    if isinstance(change, LeaseChange):
        field, new, old = "spec.acquireTime", change.new_spec.acquire_time, change.old_spec.acquire_time
    else:
        field, new, old = "spec.pingTime", change.new_spec.ping_time, change.old_spec.ping_time
    found = _spec_time("spec.renewTime", change.new_spec.renew_time, change.new_renew_time, change.old_renew_time)
    if new != old and new is not None:
        found = (*found, *_spec_time(field, new, normalized(new), normalized(old)))
    for entry in change.new_entries:
        # Nearly every time is one of the usual length that parses: it is readable.
        if entry.time is not None and (len(entry.time) != _USUAL or entry.stamp is None):
            return (*found, *islice(_entry_times(change), MAX_FINDINGS))
    return found


def _spec_time(field: str, text: str | None, new: int | str | None, old: int | str | None) -> tuple[Finding, ...]:
    return (
        NO_FINDINGS if new is None or new == old or readable(new) is not None else (_finding(field, text, _FRACTION),)
    )


def _entry_times(change: LeaseChange | CandidateChange) -> Iterator[Finding]:
    """Entries may be renamed and merged by the API server, so times are compared, not entries."""
    known = {entry.time for entry in change.old_entries}
    for index, entry in enumerate(change.new_entries):
        if entry.time is not None and entry.time not in known and not is_readable(entry.time):
            yield _finding(f"metadata.managedFields[{index}].time", entry.time, _SECONDS)


_USUAL: Final = len("2026-01-31T12:00:00Z")


def _finding(field: str, text: str | None, form: str) -> Finding:
    happened = Statement(f"{field} is not a time of the years 0000 to 9999: JSON clients cannot decode it")
    return Finding(invalid(field, text, f"{_YEARS}{form}{_OTHERS}"), happened=happened)


RULES = (
    Rule(
        id="time-unreadable",
        check=times_are_readable,
        resources=BOTH,
        operations=WRITES,
        never_exempt=True,
        source="ours: a live kube-scheduler exited after one such write on kube-apiserver 1.36.3",
        why="The API server accepts `9999-12-31T23:59:59.999999-01:00` and stores year 10000, and by protobuf it "
        "takes any year. No JSON client can decode such an object, and no patch can fix an entry of it. A "
        "running kube-scheduler exited after one such write.",
        who="Attackers, and tests of limits. No known client writes such a time.",
        fix="Write a time between the years 0000 and 9999 in UTC. A stored one is repaired by replacing the object.",
        stored="write the field again with a time up to the year 9999, with `kubectl replace`",
    ),
)
