"""The times between the requests of a process: how often it usually asks for a lease."""

from collections.abc import Iterable
from itertools import pairwise

from webhook.kubernetes.times import SECOND


def list_intervals(times: Iterable[int]) -> list[int]:
    """Return the times between requests, all in microseconds; a write that begins with a read is two at once."""
    return [after - before for before, after in pairwise(sorted(times)) if after - before >= SECOND]
