"""Another held lease that is named like one that is held: two applications that were to have one may have one each.

An operator that is installed twice has a lease of the same name in each namespace, which was created as the second one
came; most leases of one name were there before. A lock whose name has the number of a run is another one for each run.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.claims.words import describe_by_writer, format_clock, format_count, format_name
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.history_index import MAX_COMPARED
from webhook.analysis.history.holders.tenure import Handover
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseState
from webhook.kubernetes.times import MINUTE, parse_stamp

_RECENT: Final = 15 * MINUTE
"""Most leases of one name are those of applications that have been there for long."""

_LEAST_CHANGES: Final = 2


class AlikeLease(Struct, frozen=True):
    """A lease that is held by another holder, and was renewed at `renewed` while the one in question was held.

    `created` is when it was created, in microseconds since 1970, if that was shortly before.
    """

    name: str
    holder: str
    renewed: int
    created: int | None = None
    is_writer: bool = False
    """A log without objects shows who wrote it."""
    changes: int = 0
    """The number of times that another holder was written into it, if no holder renewed it."""
    by: str = ""
    """` by alice`: who wrote the last one in, "" if the input does not show that."""
    others: int = 0
    """How many more there are."""
    are_all_counted: bool = True

    def describe(self, now: int) -> str:
        """`operators/db, created at 12:00:02Z, is held too, by db-0, which renewed it at 12:03:00Z`."""
        created = "" if self.created is None else f", created at {format_clock(self.created, now)},"
        at = format_clock(self.renewed, now)
        more = f"; and {'' if self.are_all_counted else 'at least '}{self.others} more" if self.others else ""
        if self.changes:
            named = (
                f"{format_count(self.changes, 'time')}, the last time at {at} with {format_name(self.holder)}{self.by}"
            )
            return f"{self.name}{created} had another holder written in {named}{more}"
        if self.is_writer:
            return f"{self.name}{created} is written too, by {format_name(self.holder)}, the last time at {at}{more}"
        return f"{self.name}{created} is held too, by {format_name(self.holder)}, and was renewed at {at}{more}"


def find_alike_lease(histories: ClusterHistory, history: LeaseHistory, now: int) -> AlikeLease | None:
    """Return the alike lease that was renewed last; None if there is none, or the lease in question is not held."""
    if history.current_tenure is None or history.namespace == NODE_LEASES or history.is_heartbeat:
        return None
    namesakes, runs = histories.index.list_namesakes(history), histories.index.list_of_other_runs(history)
    of_runs = (alike for one in runs for alike in _describe_held(history, one, now, None))
    found = [*_find_of_same_name(namesakes, history, now), *of_runs]
    latest = max(found, key=lambda one: one.renewed, default=None)
    are_all_counted = max(len(namesakes), len(runs)) < MAX_COMPARED - 1  # the lease itself may be among so many
    return latest and replace(latest, others=len(found) - 1, are_all_counted=are_all_counted)


def _find_of_same_name(namesakes: Iterable[LeaseHistory], history: LeaseHistory, now: int) -> Iterator[AlikeLease]:
    """Yield the leases of the same name in other namespaces that were created shortly before."""
    for other in namesakes:
        created = _find_creation(other)
        if created is not None and now - created <= _RECENT:
            yield from _describe_held(history, other, now, created)


def _find_creation(other: LeaseHistory) -> int | None:
    """Return when a lease was created; None if the input does not show that."""
    if other.lease is not None:
        return parse_stamp(other.lease.metadata.creation_timestamp)
    first = other.tenures[0] if other.tenures else None
    return first.since if first is not None and first.began is Handover.CREATED else None


def _describe_held(history: LeaseHistory, other: LeaseHistory, now: int, created: int | None) -> Iterator[AlikeLease]:
    tenure, own, status = other.current_tenure, history.current_tenure, other.find_status(now)
    if tenure is None or own is None:
        return
    if (changes := _count_changes(other)) and now - tenure.last_renewal <= MINUTE and tenure.last_renewal > own.since:
        name = format_name(f"{other.namespace}/{other.name}")
        yield AlikeLease(
            name,
            tenure.holder,
            tenure.last_renewal,
            created,
            changes=changes,
            by=describe_by_writer(tenure.processes.taken_by),
        )
        return
    is_held = status is not None and status.state is LeaseState.LIVE
    is_held = is_held or (tenure.is_stand_in and now - tenure.last_renewal <= MINUTE)
    if is_held and tenure.processes.renewals and tenure.holder != own.holder and tenure.last_renewal > own.since:
        name = format_name(f"{other.namespace}/{other.name}")
        yield AlikeLease(name, tenure.holder, tenure.last_renewal, created, is_writer=tenure.is_stand_in)


def _count_changes(other: LeaseHistory) -> int:
    """Return how often another holder was written into a lease that none has renewed, as by hand; 0 if one did."""
    tenures = list(other.tenures)
    is_by_hand = len(tenures) > _LEAST_CHANGES and not any(one.processes.renewals for one in tenures)
    return len(tenures) - 1 if is_by_hand else 0
