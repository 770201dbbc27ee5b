"""Since when each process reads a lease again and again: who waits for a lock that another one holds does so.

In: the answered reads of an audit log. Out: by process, the latest of its reads that follow each other closely.
"""

from typing import Final

from msgspec import Struct, field

from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.times import SECOND

MAX_APART: Final = 15 * SECOND
"""Reads that lie further apart are of different runs."""
MIN_READS: Final = 5
"""Who reads a lease less often need not ask for it."""


class ReadRun(Struct):
    """Reads in a row; `first` and `last` are when they were answered, in microseconds since 1970."""

    first: int
    last: int
    number: int = 1

    @property
    def apart(self) -> int:
        """How far apart the reads are, on average, in microseconds."""
        return (self.last - self.first) // max(self.number - 1, 1)


class ReadRuns(Struct):
    """The latest run of each process; of many processes, the first ones are kept."""

    runs: dict[Writer, ReadRun] = field(default_factory=dict)

    def note_read(self, who: Writer, at: int) -> None:
        """Take in a read that was answered at an instant."""
        run = self.runs.get(who)
        if run is not None and at - run.last <= MAX_APART:
            run.last, run.number = max(run.last, at), run.number + 1
        elif run is not None or len(self.runs) < MAX_LISTED:
            self.runs[who] = ReadRun(at, at)

    def find(self, who: Writer) -> ReadRun | None:
        """Return the latest run of a process; None if it did not read often."""
        run = next((run for one, run in self.runs.items() if one.is_same(who)), None)
        return run if run is not None and run.number >= MIN_READS else None

    def find_of_pod(self, pod: str) -> ReadRun | None:
        """Return the latest run of the processes of a pod; None if there is only one read."""
        latest = max((run for who, run in self.runs.items() if who.pod == pod), key=lambda run: run.last, default=None)
        return latest if latest is not None and latest.number > 1 else None
