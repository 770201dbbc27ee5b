"""One event: when, in microseconds since 1970, and what happened."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from operator import attrgetter, itemgetter
from typing import Final, TypeVar

from webhook.analysis.history.lease import LeaseHistory

PAIR: Final = 2
get_time: Final = itemgetter(0)
Event = tuple[int, str]
_T = TypeVar("_T")


def group_by_tenure(
    history: LeaseHistory, found: Iterable[_T], kind: Callable[[_T], tuple[int, object]]
) -> list[list[_T]]:
    """Group what is of one kind while one holder had the lease; `kind` returns the time of one, and what it is."""
    groups: dict[tuple[int, object], list[_T]] = {}
    for item in found:
        at, what = kind(item)
        groups.setdefault((bisect_right(history.tenures, at, key=attrgetter("since")), what), []).append(item)
    return list(groups.values())
