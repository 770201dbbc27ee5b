"""Times that a client cannot decode."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from webhook.admission.rules.answer_limits import MAX_FINDINGS
from webhook.admission.rules.change import CandidateChange, LeaseChange
from webhook.admission.rules.finding import NO_FINDINGS, Finding, Statement
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.occasions import ALL_EVENTS, BOTH, WRITES
from webhook.admission.rules.rule import Rule
from webhook.admission.rules.texts import ABSURD_VALUE, NO_TAKEOVER, DeniedRenewal, Stored, Texts
from webhook.kubernetes.field import invalid
from webhook.kubernetes.times import get_readable_instant, is_readable, normalize

_RENEW_TIME: Final = "spec.renewTime"
_FRACTION: Final = ' with six fraction digits, such as "2026-01-31T12:00:00.000000Z"'
_SECONDS: Final = ', such as "2026-01-31T12:00:00Z"'
_USUAL: Final = len("2026-01-31T12:00:00Z")
"""Characters of nearly every time of an entry."""


def time_unreadable(change: LeaseChange | CandidateChange) -> Iterable[Finding]:
    """A time in spec or managedFields must be one that every client can read, in the years 0000 to 9999.

    It refuses what this write set or changed, including what cannot be parsed; what was stored before may stay.
    """
    if isinstance(change, LeaseChange):
        field, new, old = "spec.acquireTime", change.new_spec.acquire_time, change.old_spec.acquire_time
    else:
        field, new, old = "spec.pingTime", change.new_spec.ping_time, change.old_spec.ping_time
    found = _check_spec_time(_RENEW_TIME, change.new_spec.renew_time, change.new_renew_time, change.old_renew_time)
    if new != old and new is not None and get_readable_instant(normalize(new)) is None:
        found = (*found, *_check_spec_time(field, new, normalize(new), normalize(old)))
    for entry in change.new_entries:
        # One of the usual length that parses is readable.
        if entry.time is not None and (len(entry.time) != _USUAL or entry.stamp is None):
            return (*found, *islice(_find_unreadable_entries(change), MAX_FINDINGS))
    return found


TIME_UNREADABLE: Final = Rule(
    check=time_unreadable,
    resources=BOTH,
    operations=WRITES,
    events=ALL_EVENTS,
    standard=Mode.DENY,
    strict=Mode.DENY,
    never_exempt=True,
    texts=Texts(
        source="ours: a live kube-scheduler exited after one such write on kube-apiserver 1.36.3",
        why="The API server accepts `9999-12-31T23:59:59.999999-01:00` and stores year 10000, and by protobuf it "
        "takes any year. No JSON client can decode such an object, and no patch can fix an entry of it. A running "
        "kube-scheduler exited after one such write.",
        who="Attackers, and tests of limits. No known client writes such a time.",
        fix="Write a time between the years 0000 and 9999 in UTC. To repair a stored one, replace the object.",
        upstream="in part: it refuses text that is not a time but stores a time in year 10000 (1.36.3, 1.31.14)",
    ),
    stored=Stored(
        means=NO_TAKEOVER,
        fix="write the field again with a time up to the year 9999, with `kubectl replace`",
    ),
    denied_renewal=DeniedRenewal(reason=ABSURD_VALUE),
    reads=("spec.acquireTime", "spec.renewTime", "spec.pingTime", "spec.renewTime", "metadata.managedFields"),
    in_cel=RuleInCel(
        broken="size(variables.unreadable) > 0",
        message="""
        spec.{variables.unreadable[0][0]}: Invalid value: {!variables.unreadable[0][1]}: must be a time of the years
        0000 to 9999 in UTC with six fraction digits, such as "2026-01-31T12:00:00.000000Z"; JSON clients cannot decode
        any other
        """,
        lacks="Times in managedFields: a list may have more of them than an expression may compare.",
    ),
)


def _check_spec_time(field: str, text: str | None, new: int | str | None, old: int | str | None) -> tuple[Finding, ...]:
    if new is None or new == old or get_readable_instant(new) is not None:
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
