"""When objects were known to be gone, as an audit log shows: so a deletion before that was no dry run."""

from collections import deque
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

from webhook.analysis.inputs.items import ObjectAbsence

MAX_OBJECTS: Final = 5000
_MAX_TIMES: Final = 16
"""Times at which one object was not there: who waits for its end asks again and again."""
_Key = tuple[str, str, str]


class Absences(Struct):
    """The latest times at which objects were not there, by kind, namespace and name; the latest name comes last."""

    _found: dict[_Key, deque[int]] = field(default_factory=dict)

    def add(self, absence: ObjectAbsence) -> None:
        """Remember a time, and forget the object of which none was noted for longest if there are too many."""
        key = absence.kind, absence.namespace, absence.name
        times = self._found.pop(key, None) or deque(maxlen=_MAX_TIMES)
        if absence.at not in times:  # logs overlap where they were rotated or copied
            times.append(absence.at)
        self._found[key] = times
        if len(self._found) > MAX_OBJECTS:
            del self._found[next(iter(self._found))]

    def list_times(self, kind: str, namespace: str, name: str) -> Sequence[int]:
        """Return when an object was not there, in order of time."""
        return sorted(self._found.get((kind, namespace, name), ()))
