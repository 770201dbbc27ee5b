"""The fate of every write of a trial, in the order in which the API server stored them. No I/O."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, convert

SECOND: Final = 1_000_000_000
SETTLED: Final = 1 * SECOND
"""An honest write that is refused later than this after its pod acquired the lease breaks the bar."""
POLICY: Final = "ValidatingAdmissionPolicy"
"""Stands in what a fence says: 403 by its expression, 422 where there is no lease. A 403 of RBAC does not have it."""


class Event(Struct, frozen=True):
    """A line that the program `fence` printed; times are nanoseconds since 1970."""

    event: str
    at: int
    pod: str = ""
    entry: str = ""
    holder: str = ""
    sent: int = 0
    status: int = 0
    revision: int = 0
    message: str = ""

    @property
    def is_refused(self) -> bool:
        """True if a fence refused this write."""
        return self.event == "write" and self.status in (403, 422) and POLICY in self.message


class Tenure(Struct, frozen=True):
    """A period in which a pod held the lease.

    It begins with a revision and the answer to its write, and ends with a revision and the sending of a request.
    """

    pod: str
    revision: int
    since: int
    end_revision: int
    until: int


class Figures(Struct, frozen=True):
    """Counts and times (milliseconds) of one trial.

    `foreign`: stored writes of a pod while another one held the lease; `interleaved`: those of them that were stored
    after the first write of the new holder; `sent_late`: those of them that were sent after that write was answered.
    `early`, `late`: refused writes of the holder, within a second of its acquisition, and later.
    """

    stored: int = 0
    takeovers: int = 0
    foreign: int = 0
    interleaved: int = 0
    sent_late: int = 0
    refused: int = 0
    early: int = 0
    late: int = 0
    to_first_refused: tuple[float, ...] = ()
    to_first_accepted: tuple[float, ...] = ()

    def __add__(self, other: "Figures") -> "Figures":
        """Return the figures of two trials together."""
        return Figures(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))


NEVER: Final = 1 << 62


def parse_events(lines: Iterable[str], decode: Any) -> list[Event]:
    """Return the events in a log; other lines, and a last one that is cut off, are skipped."""
    return [convert(decode(line), Event) for line in lines if line.startswith("{") and line.rstrip().endswith("}")]


def find_tenures(events: Sequence[Event], deletions: Mapping[str, int] | None = None) -> list[Tenure]:
    """Return who held the lease from when to when; `deletions` are those by somebody else, by when they were sent."""
    writes = {one.revision: one for one in events if one.event == "lease" and 200 <= one.status < 300}
    states = sorted((one for one in events if one.event == "held"), key=lambda one: one.revision)
    changes = [
        one for one, before in zip(states, [None, *states], strict=False) if not before or before.holder != one.holder
    ]
    result = []
    for change, following in itertools.zip_longest(changes, changes[1:]):
        if not change.holder:
            continue
        write = writes.get(change.revision)
        end = writes.get(following.revision) if following else None
        if end:
            until = end.sent
        else:
            until = (deletions or {}).get("sent", following.at) if following else NEVER
        result.append(
            Tenure(
                pod=change.holder.partition("_")[0],
                revision=change.revision,
                since=write.at if write else change.at,
                end_revision=following.revision if following else NEVER,
                until=until,
            )
        )
    return result


def compute_figures(events: Sequence[Event], deletions: Mapping[str, int] | None = None) -> Figures:
    """Return the figures of one trial."""
    tenures = find_tenures(events, deletions)
    stored = sorted((one for one in events if one.event == "stored"), key=lambda one: one.revision)
    writes = {one.entry: one for one in events if one.event == "write"}
    total = Figures(stored=len(stored), takeovers=max(0, len(tenures) - 1))
    total += Figures(refused=sum(1 for one in writes.values() if one.is_refused))
    for number, tenure in enumerate(tenures):
        total += _count_foreign(tenure, stored, writes)
        total += _count_refused(tenure, list(writes.values()))
        if number:
            total += _measure_delays(tenure, list(writes.values()))
    return total


def _count_foreign(tenure: Tenure, stored: Sequence[Event], writes: Mapping[str, Event]) -> Figures:
    inside = [one for one in stored if tenure.revision < one.revision < tenure.end_revision]
    own = [one for one in inside if _find_pod(one) == tenure.pod]
    others = [one for one in inside if _find_pod(one) != tenure.pod]
    if not own:
        return Figures(foreign=len(others))
    first = own[0]
    answered = writes[first.entry].at if first.entry in writes else first.at
    after = [one for one in others if one.revision > first.revision]
    late = [one for one in after if one.entry in writes and writes[one.entry].sent > answered]
    return Figures(foreign=len(others), interleaved=len(after), sent_late=len(late))


def _count_refused(tenure: Tenure, writes: Sequence[Event]) -> Figures:
    times = [
        one.sent
        for one in writes
        if one.pod == tenure.pod and one.is_refused and tenure.since <= one.sent and one.at < tenure.until
    ]
    late = sum(1 for sent in times if sent > tenure.since + SETTLED)
    return Figures(early=len(times) - late, late=late)


def _measure_delays(tenure: Tenure, writes: Sequence[Event]) -> Figures:
    accepted = [one.at for one in writes if one.pod == tenure.pod and one.status == 200 and one.at >= tenure.since]
    times = [
        one.at for one in writes if one.pod != tenure.pod and one.is_refused and tenure.since <= one.at < tenure.until
    ]
    return Figures(
        to_first_refused=tuple((at - tenure.since) / 1e6 for at in sorted(times)[:1]),
        to_first_accepted=tuple((at - tenure.since) / 1e6 for at in sorted(accepted)[:1]),
    )


def _find_pod(entry: Event) -> str:
    return entry.entry.partition("/")[0]
