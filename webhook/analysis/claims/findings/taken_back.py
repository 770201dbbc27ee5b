"""Fields of a lease that one writer sets again and again, and another one clears each time."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.advice.on_writers import advise_on_writer
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import make_command_for_audit_log
from webhook.analysis.claims.words import describe_user, describe_writer, format_clock
from webhook.analysis.history.holders.taken_back import MAX_ELECTION_FIELD_CHANGES, ElectionFieldChange
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Writer

_MIN_TIMES: Final = 3
"""A field that was set and cleared less often may have been so by a change of versions."""


class TakenBack(Struct, frozen=True):
    """Fields that were set by `sets`, each followed by one of `clears`, or none yet; who did it, None if not shown.

    `is_cut`: there may have been more before.
    """

    sets: Sequence[ElectionFieldChange]
    clears: Sequence[ElectionFieldChange]
    setter: Writer | None
    remover: Writer | None
    is_cut: bool

    @property
    def start(self) -> int:
        """When they were first set."""
        return self.sets[0].at

    @property
    def fields(self) -> str:
        """`strategy and preferredHolder`."""
        return " and ".join(dict.fromkeys(name for one in self.sets for name in one.fields))

    def has(self, at: int) -> bool:
        """Return whether one of its writes was at an instant."""
        return any(one.at == at for one in (*self.sets, *self.clears))

    def describe(self) -> str:
        """`system:apiserver set strategy 4 times until 12:00:42Z, and 4 renewals by shop/db removed it`."""
        least, until = "at least " if self.is_cut else "", format_clock(self.sets[-1].at, self.start)
        times = f"{least}{len(self.sets)} times until {until}"
        was, it = ("were", "them") if " and " in self.fields else ("was", "it")
        are_renewals = all(one.is_renewal for one in self.clears)
        writes = f"{least}{len(self.clears)} {'renewals' if are_renewals else 'writes'}"
        by = f" by {describe_writer(self.remover)}" if self.remover else ""
        set_ = f"{describe_writer(self.setter)} set {self.fields}" if self.setter else f"{self.fields} {was} set"
        as_elector = ", as an elector does that replaces the whole spec" if are_renewals else ""
        return f"{set_} {times}, and {writes}{by} removed {it}{as_elector}"

    def advise(self, history: LeaseHistory) -> Advice:
        """Return what to do: who sets a field does so again because it is gone."""
        if self.remover is None:
            sentence = f"Find out who removes {self.fields} again. The audit log shows it:"
            return Advice(sentence, make_command_for_audit_log(history.namespace, history.name))
        sentence = f"Find out why {describe_user(self.remover)} removes {self.fields} again"
        why = ": it may be a version without coordinated elections." if self.clears[-1].is_renewal else "."
        return advise_on_writer(f"{sentence}{why}", history, self.remover)


def find_taken_back(history: LeaseHistory) -> TakenBack | None:
    """Return the latest fields that were set again and again, and each time cleared by another writer; else None."""
    changes = list(history.election_field_changes)
    last = next((one for one in reversed(changes) if not one.is_set), None)
    if last is None:
        return None
    sets, clears = list[ElectionFieldChange](), list[ElectionFieldChange]()
    setter = next((one.writer for one in reversed(changes) if one.is_set), None)
    for change in changes:
        if change.is_set and change.writer == setter:
            sets.append(change)
        elif sets and not change.is_set and change.writer == last.writer:
            clears.append(change)
    is_by_one = setter is not None and setter == last.writer
    if len(clears) < _MIN_TIMES or is_by_one:
        return None
    return TakenBack(sets, clears, setter, last.writer, is_cut=len(changes) == MAX_ELECTION_FIELD_CHANGES)
