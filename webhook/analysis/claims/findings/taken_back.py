"""Fields of a lease that one writer sets again and again, and another one clears each time."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.advice.on_writers import advise_on_writer
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import make_command_for_audit_log
from webhook.analysis.claims.evidence.contenders.askers import join_names
from webhook.analysis.claims.words import describe_user, describe_writer, format_clock, format_count, format_name
from webhook.analysis.history.holders.taken_back import MAX_ELECTION_FIELD_CHANGES, ElectionFieldChange
from webhook.analysis.history.holders.tenure import API_SERVER
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Writer
from webhook.text.commands import make_kubectl_prefix

_MIN_TIMES: Final = 3
"""A field that was set and cleared less often may have been so by a change of versions."""


class TakenBack(Struct, frozen=True):
    """Fields that were set by `sets`, and cleared by `clears`; `setter` set them, None if that is not shown.

    `is_cut`: there may have been more before.
    """

    sets: Sequence[ElectionFieldChange]
    clears: Sequence[ElectionFieldChange]
    setter: Writer | None
    is_cut: bool

    @property
    def start(self) -> int:
        """When they were first set."""
        return self.sets[0].at

    @property
    def remover(self) -> Writer | None:
        """Who cleared them last, None if that is not shown."""
        return self.clears[-1].writer

    @property
    def fields(self) -> str:
        """`strategy and preferredHolder`."""
        return " and ".join(dict.fromkeys(name for one in self.sets for name in one.fields))

    @property
    def preferred(self) -> Sequence[str]:
        """The values of preferredHolder that were set, each once."""
        return list(dict.fromkeys(one.preferred for one in self.sets if one.preferred))

    def has(self, at: int) -> bool:
        """Return whether one of its writes was at an instant."""
        return any(one.at == at for one in (*self.sets, *self.clears))

    def describe(self) -> str:
        """`system:apiserver set strategy 4 times until 12:00:42Z, and 4 renewals by shop/db removed it`."""
        least, until = "at least " if self.is_cut else "", format_clock(self.sets[-1].at, self.start)
        times = f"{least}{len(self.sets)} times until {until}"
        was, it = ("were", "them") if " and " in self.fields else ("was", "it")
        set_ = f"{describe_writer(self.setter)} set {self.fields}" if self.setter else f"{self.fields} {was} set"
        are_renewals = all(one.is_renewal for one in self.clears)
        as_elector = ", as an elector does that replaces the whole spec" if are_renewals else ""
        return (
            f"{set_} {times}{self._describe_preferred()}, and {self._describe_clears(least)} removed {it}{as_elector}"
        )

    def _describe_preferred(self) -> str:
        """Say whom preferredHolder named, in parentheses; "" if it was not set."""
        if not self.preferred:
            return ""
        is_by_server = self.setter is not None and self.setter.user == API_SERVER
        why = ", as API servers do for LeaseCandidates" if is_by_server else ""
        return f" (preferredHolder {join_names(list(map(format_name, self.preferred)))}{why})"

    def _describe_clears(self, least: str) -> str:
        """`24 renewals by shop/db from pod db-0 and 29 by shop/db from pod db-1, which took it`."""
        writers = list(dict.fromkeys(one.writer for one in self.clears))
        parts = []
        for writer in writers:
            own = [one for one in self.clears if one.writer == writer]
            takings = sum(1 for one in own if one.is_taking)
            others = [one for one in own if not one.is_taking]
            word = "renewal" if all(one.is_renewal for one in others) else "write"
            counts = [format_count(takings, "takeover")] if takings else []
            counts += [least + format_count(len(others), word)] if others else []
            by = f" by {describe_writer(writer)}" if writer else ""
            parts.append(f"{' and '.join(counts)}{by}")
        return join_names(parts)

    def advise(self, history: LeaseHistory) -> Advice:
        """Return what to do: who sets a field does so again because it is gone.

        An API server sets preferredHolder of a lease because a LeaseCandidate for it is there.
        """
        if self.preferred and (self.setter is None or self.setter.user == API_SERVER):
            name = join_names(list(map(format_name, self.preferred)))
            sentence = f"See who made the LeaseCandidate {name}: an API server sets {self.fields} for candidates."
            command = f"{make_kubectl_prefix(history.namespace)} get leasecandidates -o yaml --show-managed-fields"
            return Advice(f"{sentence} To see the candidates:", command)
        if self.remover is None:
            sentence = f"Find out who removes {self.fields} again. The audit log shows it:"
            return Advice(sentence, make_command_for_audit_log(history.namespace, history.name))
        sentence = f"Find out why {describe_user(self.remover)} removes {self.fields} again"
        why = ": it may be a version without coordinated elections." if self.clears[-1].is_renewal else "."
        return advise_on_writer(f"{sentence}{why}", history, self.remover)


def find_taken_back(history: LeaseHistory) -> TakenBack | None:
    """Return the latest fields that were set again and again, and each time cleared by other writers; else None."""
    changes = list(history.election_field_changes)
    setter = next((one.writer for one in reversed(changes) if one.is_set), None)
    sets, clears = list[ElectionFieldChange](), list[ElectionFieldChange]()
    for change in changes:
        if change.is_set and change.writer == setter:
            sets.append(change)
        elif sets and not change.is_set and (setter is None or change.writer != setter):
            clears.append(change)
    # A taking alone may be that of another kind of elector, once.
    if sum(1 for one in clears if not one.is_taking) < _MIN_TIMES:
        return None
    return TakenBack(sets, clears, setter, is_cut=len(changes) == MAX_ELECTION_FIELD_CHANGES)
