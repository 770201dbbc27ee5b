"""Stamps that are missing or cannot be an API server's."""

from collections.abc import Iterator
from typing import Final

from webhook.api.managed_fields import Entry, nest_too_deeply
from webhook.api.micro_time import canonical_seconds
from webhook.api.text import cut, quote
from webhook.audit.finding import Finding
from webhook.audit.subject import Subject
from webhook.reports.model import Severity
from webhook.rules.expiry import BOUND
from webhook.rules.time_ahead import is_time_zone
from webhook.rules.times import SECOND, span

CURE: Final = (
    "`kubectl apply --server-side` of a manifest with apiVersion, kind, name and namespace only makes the API server "
    "stamp it again (another can take it one duration later)"
)
_EMPTY: Final = '{kubectl} patch lease {name} --type=merge -p \'{"metadata":{"managedFields":[{}]}}\', then '


def forged_stamps(subject: Subject) -> Iterator[Finding]:
    """Entries of managedFields that no API server writes: dated ahead, below a scalar, or nested too deeply."""
    for entry in subject.entries:
        problem = _problem(entry, subject.now)
        if problem:
            who = quote(cut(entry.manager or "", 40))
            message = f"managedFields were written by hand: the entry of manager {who} {problem}"
            yield subject.finding("renewal-stamp-tampered", Severity.ERROR, message, _EMPTY + CURE)
            return
    if nest_too_deeply(subject.entries):
        message = "managedFields were written by hand: they nest deeper than any API server makes them"
        yield subject.finding("renewal-stamp-tampered", Severity.ERROR, message, _EMPTY + CURE)


def _problem(entry: Entry, now: int) -> str:
    if entry.stamp is not None and entry.stamp > now + BOUND:
        return f"is dated {canonical_seconds(entry.stamp)}, {span(entry.stamp - now)} ahead"
    planted = next(entry.fields_with_owners_below(), None) if entry.fields else None
    return f"owns something below {quote(cut(planted, 40))} of spec, where nothing can be" if planted else ""


def has_no_stamp(subject: Subject) -> bool:
    """Whether a held lease has no record of its last renewal that an API server made."""
    return bool(subject.lease.holder_identity and subject.lease.renew_time) and not any(
        entry.owns_renew_time and entry.stamp is not None for entry in subject.entries
    )


def missing_stamp(subject: Subject) -> Finding:
    """The finding about such a lease."""
    message = "the API server has no record of the last renewal, so only the holder's own clock says whether it leads"
    return subject.finding("lease-without-stamps", Severity.WARNING, message, CURE)


def wrong_clock(subject: Subject) -> Iterator[Finding]:
    """A holder whose clock is not the API server's."""
    standing = subject.stands
    off = standing.ahead
    if off is None or abs(off) <= 2 * SECOND or standing.frozen:
        return
    # Whoever compares renewTime with another clock errs by the difference.
    limit = min(60, standing.duration or 60) * SECOND
    severity = Severity.WARNING if abs(off) > limit else Severity.INFO
    direction = "ahead of" if off > 0 else "behind"
    zone = is_time_zone(abs(off))
    message = f"the holder's clock is {span(abs(off))} {direction} the API server's"
    if zone:
        message += "; whole hours: its client writes local time as UTC"
    repair = "update the client, which writes local time" if zone else "set the clock of the holder's node (NTP)"
    yield subject.finding("holder-clock", severity, message, repair)
