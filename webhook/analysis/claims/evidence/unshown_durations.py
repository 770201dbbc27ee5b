"""A lease that may last longer than was asked for, by a log of requests: one that waited did not take it for so long.

In: the history of a lease. Out: the latest takeover that came long after the duration that the holder had asked for,
by a process that asked for the lease all the while. What was stored, such a log does not show: a mutating webhook or
policy may have changed it.
"""

from itertools import pairwise
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.words import describe_writer, format_clock, format_name, format_times_after
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Writer
from webhook.analysis.inputs.rewriting import HOLDER_IDENTITY
from webhook.kubernetes.times import SECOND

_PATIENCE: Final = 5 * SECOND
"""The most that a client waits beyond the duration: two retry periods of client-go, with jitter."""
_LEAST: Final = 3
"""Requests by which a process is known to wait."""


class UnshownDuration(Struct, frozen=True):
    """The holder `before` had asked for `asked` seconds, and `after` asked for the lease, and took it much later."""

    before: Tenure
    after: Tenure
    asked: int

    @property
    def since(self) -> int:
        """The end of the duration that was asked for, in microseconds since 1970."""
        return self.before.kept_until + self.asked * SECOND

    def describe(self, now: int) -> str:
        """Describe the doubt about the duration, as a clause."""
        who = describe_writer(self.after.processes.own or Writer())
        times = format_times_after(self.after.requests_before, self.since)
        return (
            f"{self.asked} s, which were asked for, had passed since the last renewal by "
            f"{format_name(self.before.holder)}; {who} asked for the lease {times} "
            f"from then on, and took it at {format_clock(self.after.since, now)}: the log does not show what was "
            "stored, and a mutating webhook or policy may have made the lease last longer"
        )


def find_unshown_duration(history: LeaseHistory) -> UnshownDuration | None:
    """Return the latest takeover that casts doubt on the duration that was asked for; None if there is none."""
    if not history.is_as_sent:
        return None
    pairs = reversed(list(pairwise(history.tenures)))
    found = (_doubt_duration(history, before, after) for before, after in pairs)
    return next((one for one in found if one is not None), None)


def _doubt_duration(history: LeaseHistory, before: Tenure, after: Tenure) -> UnshownDuration | None:
    own, duration = after.processes.own, before.duration
    is_own = after.processes.is_own_taking is True and before.holder != after.holder
    is_expiry_shown = after.began is Handover.EXPIRED and not before.has_unseen_renewals
    if own is None or not own.pod or not duration or not (is_own and is_expiry_shown):
        return None
    since = before.kept_until + duration * SECOND
    asked = after.requests_before.list_after(since)
    # Who begins to ask, as after a restart, waits for the whole duration first.
    is_patient = len(asked) >= _LEAST and after.since - asked[0] > duration * SECOND + _PATIENCE
    if not is_patient or _has_failed(history, own, since, after.since) or _was_edited(history, before, after):
        return None
    if history.requests.rewritten.find_span(HOLDER_IDENTITY, own, since, after.since) is not None:
        return None  # it asked to be the holder, and was not stored
    return UnshownDuration(before, after, duration)


def _has_failed(history: LeaseHistory, own: Writer, since: int, until: int) -> bool:
    """Return whether requests of a process in a time were refused or failed, or were answered late."""
    return any(since < one.at < until and own.is_same(one.writer) for one in history.requests.refusals)


def _was_edited(history: LeaseHistory, before: Tenure, after: Tenure) -> bool:
    """Return whether the spec was changed meanwhile: an elector of client-go waits again after that."""
    return any(before.kept_until < one.at <= after.since for one in history.edits)
