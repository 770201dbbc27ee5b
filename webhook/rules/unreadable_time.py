"""Times that an API server stores and then no client can decode: one such write kills a live leader."""

from collections.abc import Iterable, Iterator

from webhook.api import micro_time
from webhook.api.field import invalid
from webhook.rules.change import CandidateChange, Change, LeaseChange
from webhook.rules.instants import fold, readable
from webhook.rules.rule import BOTH, NOTHING, WRITES, Finding, Rule

_YEARS = "must be within the years 0000 to 9999: JSON clients cannot decode any other"
_FORM = 'must be a time with six fraction digits and a zone, such as "2026-01-31T12:00:00.000000Z"'


def times_are_readable(change: Change) -> Iterable[Finding]:
    """A time in spec or managedFields must be one that every client can read, in the years 0000 to 9999.

    The API server accepts `9999-12-31T23:59:59.999999-01:00` and stores year 10000; from then on JSON clients cannot
    decode the object, and no patch applies. Only what this write set or changed counts, so that repair stays possible.
    """
    spec = list(_spec_times(change))
    entries = list(_entry_times(change)) if any(_is_odd(entry.time) for entry in change.new_entries) else ()
    return (*spec, *entries) if spec or entries else NOTHING


def _spec_times(change: Change) -> Iterator[Finding]:
    if isinstance(change, LeaseChange):
        pairs = (
            ("spec.acquireTime", change.new.acquire_time, change.old.acquire_time),
            ("spec.renewTime", change.new.renew_time, change.old.renew_time),
        )
    else:
        assert isinstance(change, CandidateChange)
        pairs = (
            ("spec.pingTime", change.new.ping_time, change.old.ping_time),
            ("spec.renewTime", change.new.renew_time, change.old.renew_time),
        )
    for field, new, old in pairs:
        if new is None or new == old:
            continue
        folded = fold(new)
        if folded is None or readable(folded) is not None or folded == fold(old):
            continue
        yield Finding(invalid(field, new, _FORM if isinstance(folded, str) else _YEARS))


def _is_odd(time: str | None) -> bool:
    return time is not None and len(time) != len("2026-01-31T12:00:00Z")


def _entry_times(change: Change) -> Iterator[Finding]:
    """Entries may be renamed and merged by the API server, so times are compared, not entries."""
    known = {entry.time for entry in change.old_entries}
    for index, entry in enumerate(change.new_entries):
        time = entry.time
        if time is None or time in known or micro_time.parse_unreadable(time) is None:
            continue
        yield Finding(invalid(f"metadata.managedFields[{index}].time", time, _YEARS))


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
