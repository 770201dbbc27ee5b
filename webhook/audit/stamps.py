"""Stamps that are missing or cannot be an API server's."""

from collections.abc import Iterator
from typing import Final

from webhook.api.managed_fields import Entry, nest_too_deeply
from webhook.api.text import quote, truncate
from webhook.api.times import SECOND, canonical_seconds, span
from webhook.audit.subject import Subject
from webhook.reports.model import Finding, Severity
from webhook.rules.election.times import is_time_zone
from webhook.rules.expiry import BOUND

FIX: Final = (
    '{kubectl} get lease {name} -o go-template=\'{"apiVersion":"{{.apiVersion}}","kind":"{{.kind}}","metadata":{"name":'
    '"{{.metadata.name}}","namespace":"{{.metadata.namespace}}","labels":{"stamped":"yes"}}}\''
    " | {kubectl} apply --server-side -f -   # if it is held, another can take it one duration later"
)
"""Makes the API server keep managedFields; an apply without a field does not, if the lease has none either."""
_EMPTY: Final = '{kubectl} patch lease {name} --type=merge -p \'{"metadata":{"managedFields":[{}]}}\' && '


def forged_stamps(subject: Subject) -> Iterator[Finding]:
    """Entries of managedFields that no API server writes: dated ahead, below a scalar, or nested too deeply."""
    for entry in subject.entries:
        problem = _problem(entry, subject.now)
        if problem:
            who = quote(truncate(entry.manager or "", 40))
            message = f"managedFields were written by hand: the entry of manager {who} {problem}"
            yield subject.finding("renewal-stamp-tampered", Severity.ERROR, message, _EMPTY + FIX)
            return
    if nest_too_deeply(subject.entries):
        message = "managedFields were written by hand: they nest deeper than any API server makes them"
        yield subject.finding("renewal-stamp-tampered", Severity.ERROR, message, _EMPTY + FIX)


def _problem(entry: Entry, now: int) -> str:
    if entry.stamp is not None and entry.stamp > now + BOUND:
        return f"is dated {canonical_seconds(entry.stamp)}, {span(entry.stamp - now)} ahead"
    planted = next(iter(entry.owned.below), None)
    return f"owns something below {quote(truncate(planted, 40))} of spec, where nothing can be" if planted else ""


def missing_stamp(subject: Subject) -> Finding | None:
    """Return the finding about a lease without managedFields, or about a held one without a stamp of its last renewal.

    The first also before it is held: an API server keeps none for a lease that was created empty.
    """
    if any(entry.owns_renew_time and entry.stamp is not None for entry in subject.entries):
        return None
    if subject.lease.holder_identity and subject.lease.renew_time:
        message = (
            "the API server has no record of the last renewal, so only the holder's own clock says whether it leads"
        )
    elif not subject.entries:
        message = "the API server keeps no managedFields of it, so one write will be able to take it from a live holder"
    else:
        return None
    return subject.finding("lease-without-stamps", Severity.WARNING, message, FIX)


def wrong_clock(subject: Subject) -> Iterator[Finding]:
    """A holder whose clock is not the API server's."""
    standing = subject.status
    off = standing.ahead
    if off is None or abs(off) <= 2 * SECOND or standing.block:
        return
    # Whoever compares renewTime with another clock errs by the difference.
    limit = min(60, standing.duration or 60) * SECOND
    severity = Severity.WARNING if abs(off) > limit else Severity.INFO
    direction = "ahead of" if off > 0 else "behind"
    zone = is_time_zone(abs(off))
    message = f"the holder's clock is {span(abs(off))} {direction} the API server's"
    if zone:
        message += "; whole hours: its client writes local time as UTC"
    fix = "update the client, which writes local time" if zone else "set the clock of the holder's node (NTP)"
    yield subject.finding("holder-clock", severity, message, fix)
