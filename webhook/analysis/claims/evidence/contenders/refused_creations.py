"""Creations of a lease that were refused because it exists: by clients that take it as a lock when they create it.

Whoever creates such a lease has the lock, and frees it by deleting it. One that its holder leaves behind refuses all
others, and nothing else in the input says that they wait.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.words import describe_user, format_clock, format_count, format_name, join_with_and
from webhook.analysis.history.holders.tenure import API_SERVER
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Writer

_MIN_TIMES: Final = 3
"""Electors race to create a lease that they renew, and read it after that."""
_MAX_NAMED: Final = 3


class RefusedCreations(Struct, frozen=True):
    """Creations that were refused under the present holder; times in microseconds since 1970."""

    writers: Sequence[Writer]
    """The writer of each creation, in order."""
    count: int
    first: int
    last: int
    is_cut: bool = False
    """More may have been refused than are remembered."""

    def describe(self, now: int) -> str:
        """`jobs-b and jobs-c tried to create it, 14 times until 12:04:46Z, and were refused (409), as it existed`."""
        names = list(dict.fromkeys(map(_name, self.writers)))
        more = [f"{len(names) - _MAX_NAMED} more"] if len(names) > _MAX_NAMED else []
        who = join_with_and([*names[:_MAX_NAMED], *more])
        least = "at least " if self.is_cut else ""
        number = f", {least}{format_count(self.count, 'time')} until {format_clock(self.last, now)},"
        times = number if self.count > 1 or self.is_cut else ""
        were = "were" if len(names) > 1 else "was"
        return f"{who} tried to create it{times} and {were} refused (409), as it existed"


def find_refused_creations(history: LeaseHistory) -> RefusedCreations | None:
    """Return the creations that were refused since the present holder began; None if there are none that tell.

    A single one tells of a lease that no one renews: of others, one that its holder sent again, or that came too late.
    """
    tenure = history.current_tenure
    if tenure is None or history.is_deleted or history.is_mixed:
        return None
    own = tenure.processes.own
    found = [
        one
        for one in history.requests.refusals
        if one.is_of_existing_lease
        and one.received > tenure.since
        and one.writer.user != API_SERVER
        and not one.writer.is_pod_of(own)
    ]
    if len(found) < (_MIN_TIMES if history.is_ever_renewed else 1):
        return None
    writers = [one.writer for one in found]
    is_cut = history.requests.has_forgotten_since(tenure.since)
    return RefusedCreations(writers, len(found), found[0].at, found[-1].at, is_cut)


def _name(writer: Writer) -> str:
    """Return the pod of a writer, or else its user."""
    return format_name(writer.pod) if writer.pod else describe_user(writer)
