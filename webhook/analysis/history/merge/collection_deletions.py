"""Deletions of many objects in a namespace, as a deletion of each."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from webhook.analysis.history.merge.dated import DatedItem
from webhook.analysis.inputs.items import Act, Observation

_Key = tuple[str, str, str]


class _Clearings:
    """Requests to delete all objects of a kind in a namespace, by their numbers."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self._dated: list[tuple[int, int]] = []

    def add(self, number: int, request: Observation) -> None:
        """Add a request; the last one has the highest number."""
        self.numbers.append(number)
        self._dated.append((request.at or 0, number))

    def sort(self) -> None:
        """Prepare for a selection by time."""
        self._dated.sort()

    def select(self, seen: Sequence[DatedItem]) -> list[int]:
        """Return the requests that may have deleted an object, of which this was seen.

        An object that is gone is deleted no further. So of more requests than could each have deleted it, those next to
        each observation are enough, before and after it, beside the first and the last of all.
        """
        if len(self.numbers) <= 2 * (len(seen) + 1):
            return self.numbers
        places = {0, len(self._dated) - 1}
        for one in seen:
            if one.item.at is not None:
                place = bisect_left(self._dated, (one.item.at, 0))
                places |= {max(0, place - 1), min(place, len(self._dated) - 1)}
        return [self._dated[place][1] for place in places]


def list_deletions(
    requests: Sequence[Observation], pending: Mapping[_Key, Sequence[DatedItem]], passed: Iterable[_Key]
) -> Iterator[tuple[_Key, Observation]]:
    """Yield a deletion of each object that such requests deleted; `pending` and `passed` are what was seen there."""
    known = {*pending, *passed}
    named: dict[_Key, list[tuple[int, str]]] = {}
    clearings: dict[tuple[str, str], _Clearings] = {}
    for number, request in enumerate(requests):
        assert request.collection_deletion is not None
        kind, namespace = request.kind, request.namespace
        if request.collection_deletion.is_whole:
            clearings.setdefault((kind, namespace), _Clearings()).add(number, request)
            continue
        for name, uid in dict(request.collection_deletion.names).items():
            key = (kind, namespace, name)
            if request.collection_deletion.is_shown or key in known or key in named:
                named.setdefault(key, []).append((number, uid))
    for clearing in clearings.values():
        clearing.sort()
    for key in {*known, *named}:
        own, found = named.get(key, []), clearings.get(key[:2])
        # What nothing but an answer names was not known to be there before.
        since = -1 if key in known else own[0][0]
        whole = [number for number in found.select(pending.get(key, ())) if number > since] if found else []
        for number, uid in sorted([*own, *((number, "") for number in whole)]):
            yield (
                key,
                replace(requests[number], act=Act.DELETED, name=key[2], uid=uid, size=0, collection_deletion=None),
            )
