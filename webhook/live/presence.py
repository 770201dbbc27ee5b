"""Which objects a watch has shown, so that those that are gone when it begins again are known to be deleted."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

from webhook.observations.observation import Act, Observation, Origin, Source

MOST_OBJECTS: Final = 50_000

_Name = tuple[str, str, str]
"""Kind, namespace, name."""


class Presence(Struct):
    """By watch: objects that it has shown, and those that it has shown since it last began."""

    _present: dict[str, set[_Name]] = field(default_factory=dict)
    _seen: dict[str, set[_Name]] = field(default_factory=dict)

    def began(self, watch: str) -> None:
        """The watch lists all objects from here on."""
        self._seen[watch] = set()

    def seen(self, watch: str, item: Observation) -> None:
        """The watch showed an object."""
        name = (item.kind, item.namespace, item.name)
        for names in (self._present.setdefault(watch, set()), self._seen.setdefault(watch, set())):
            if item.act is Act.DELETED:
                names.discard(name)
            elif len(names) < MOST_OBJECTS:
                names.add(name)

    def gone(self, watch: str) -> Iterator[Observation]:
        """The list is over: objects that were there before and are not in it, as deletions."""
        seen, present = self._seen.get(watch, set()), self._present.get(watch, set())
        if len(seen) >= MOST_OBJECTS:
            return
        for kind, namespace, name in sorted(present - seen):
            yield Observation(
                source=Source(watch, 0),
                origin=Origin.WATCH,
                act=Act.DELETED,
                kind=kind,
                namespace=namespace,
                name=name,
            )
        self._present[watch] = set(seen)
