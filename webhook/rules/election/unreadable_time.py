"""Times that an API server stores but no client can decode: one such write ends a live leader."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from webhook.api import micro_time
from webhook.api.field import invalid
from webhook.rules.change import CandidateChange, LeaseChange
from webhook.rules.finding import MOST_FINDINGS, NOTHING, Finding
from webhook.rules.rule import BOTH, WRITES, Rule
from webhook.rules.statement import Statement
from webhook.rules.times import normalized, readable

_LAST: Final = "9999-12-31T23:59:59"
_FIRST: Final = "0000-01-01T00:00:00"
_FORM: Final = 'must be a time with six fraction digits and a zone, such as "2026-01-31T12:00:00.000000Z"'


def times_are_readable(change: LeaseChange | CandidateChange) -> Iterable[Finding]:
    """A time in spec or managedFields must be one that every client can read, in the years 0000 to 9999.

    The API server accepts `9999-12-31T23:59:59.999999-01:00` and stores year 10000; from then on JSON clients cannot
    decode the object, and no patch applies. Only what this write set or changed counts, so that repair stays possible.
    """
    if isinstance(change, LeaseChange):
        field, new, old = "spec.acquireTime", change.new_spec.acquire_time, change.old_spec.acquire_time
    else:
        field, new, old = "spec.pingTime", change.new_spec.ping_time, change.old_spec.ping_time
    found = _spec_time("spec.renewTime", change.new_spec.renew_time, change.new_renew_time, change.old_renew_time)
    if new != old:
        found = (*found, *_spec_time(field, new, normalized(new), normalized(old)))
    if any(entry.time is not None and len(entry.time) != _USUAL for entry in change.new_entries):
        found = (*found, *islice(_entry_times(change), MOST_FINDINGS))
    return found


_USUAL: Final = len("2026-01-31T12:00:00Z")


def _spec_time(field: str, text: str | None, new: int | str | None, old: int | str | None) -> tuple[Finding, ...]:
    if new is None or new == old or readable(new) is not None:
        return NOTHING
    if isinstance(new, str):
        happened = Statement(f"{field} is not a time that clients can decode")
        return (Finding(invalid(field, text, _FORM), happened=happened),)
    return (_outside(field, text, late=new > 0, fraction=True),)


def _outside(field: str, text: str | None, *, late: bool, fraction: bool) -> Finding:
    """The year is that of UTC, which an offset hides: `9999-12-31T23:59:59.999999-01:00` is in year 10000."""
    year = "10000" if late else "-0001"
    limit = (
        f"up to {_LAST}{'.999999' if fraction else ''}Z" if late else f"from {_FIRST}{'.000000' if fraction else ''}Z"
    )
    detail = f"is year {year} in UTC, which JSON clients cannot decode; write a time {limit}"
    happened = Statement(f"{field} is year {year} in UTC: JSON clients can no longer decode the object")
    return Finding(invalid(field, text, detail), happened=happened)


def _entry_times(change: LeaseChange | CandidateChange) -> Iterator[Finding]:
    """Entries may be renamed and merged by the API server, so times are compared, not entries."""
    known = {entry.time for entry in change.old_entries}
    for index, entry in enumerate(change.new_entries):
        time = entry.time
        if time is None or time in known or (unreadable := micro_time.parse_unreadable(time)) is None:
            continue
        yield _outside(f"metadata.managedFields[{index}].time", time, late=unreadable > 0, fraction=False)


RULES = (
    Rule(
        id="time-unreadable",
        check=times_are_readable,
        resources=BOTH,
        operations=WRITES,
        never_exempt=True,
        source="ours: a live kube-scheduler exited after one such write on kube-apiserver 1.36.3",
    ),
)
