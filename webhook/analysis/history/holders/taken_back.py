"""Fields that writes set and others clear again: an elector that replaces the whole spec clears what it does not know.

In: two states that follow each other, and who wrote the second one. Out: the latest changes of this kind.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.objects import LeaseSpec
from webhook.kubernetes.times import normalize

MAX_ELECTION_FIELD_CHANGES: Final = 1000
_FIELDS: Final = {"strategy": "strategy", "preferredHolder": "preferred_holder"}
"""What API servers write of a coordinated election, by its name in JSON."""


class ElectionFieldChange(Struct, frozen=True, gc=False):
    """A write at `at` that set fields which were empty, or cleared them; `is_renewal`: it renewed the lease, too.

    `is_taking`: it named another holder. `preferred` is the preferredHolder that it set, "" if it set none.
    """

    at: int
    fields: tuple[str, ...]
    is_set: bool
    is_renewal: bool
    writer: Writer | None = None
    is_taking: bool = False
    preferred: str = ""


def find_election_field_changes(
    old: LeaseSpec, new: LeaseSpec, at: int, writer: Writer | None
) -> Iterator[ElectionFieldChange]:
    """Yield which fields a write set, and which it cleared.

    An API server that chooses another holder sets and clears them, too, but never clears strategy.
    """
    is_taking = (old.holder_identity or "") != (new.holder_identity or "")
    if is_taking and not (old.strategy and not new.strategy):
        return
    is_renewal = normalize(old.renew_time) != normalize(new.renew_time)
    states = {name: (bool(getattr(old, key)), bool(getattr(new, key))) for name, key in _FIELDS.items()}
    who = writer.process if writer is not None and writer.user else None
    for is_set in (True, False):
        fields = tuple(name for name, (before, after) in states.items() if before is not after and after is is_set)
        if fields:
            preferred = (new.preferred_holder or "") if is_set else ""
            yield ElectionFieldChange(at, fields, is_set, is_renewal, who, is_taking=is_taking, preferred=preferred)
