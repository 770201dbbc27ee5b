"""Updates that would have made another one the holder, and conflicted: who edits a lease that its holder renews.

In: the answers that a log shows. Out: whose updates they were, and what they asked for. Electors that lose a race are
left out: they ask for themselves, when the lease is free or was taken just before.
"""

from typing import Final

from msgspec import Struct

from webhook.admission.rules.holders import names_pod
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.words import describe_writer, format_clock, format_count, format_name
from webhook.analysis.history.audit_log.refusal import Refusal
from webhook.analysis.history.holders.tenure import API_SERVER, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.times import SECOND

_RACE: Final = 5 * SECOND
"""Electors that lost the race may be answered for so long after a takeover."""


class ConflictingUpdates(Struct, frozen=True):
    """Updates by one writer that asked for other holders while `held` was the holder, and conflicted.

    If `is_cut`, there may have been more, and earlier ones.
    """

    writer: Writer
    held: str
    refused: tuple[Refusal, ...]
    is_cut: bool = False

    @property
    def first(self) -> int:
        """The time of the first answer, in microseconds since 1970."""
        return self.refused[0].at

    def describe(self, now: int) -> str:
        """Say what was asked for, as a clause."""
        number = f"{'at least ' if self.is_cut else ''}{format_count(len(self.refused), 'update')}"
        since = " from then or earlier" if self.is_cut else ""
        until = f"{since} until {format_clock(self.refused[-1].at, now)}" if len(self.refused) > 1 else ""
        # Who may update a lease may ask for any number of names.
        asked = list(dict.fromkeys(one.asked_holder for one in self.refused))
        others = f" or {format_count(len(asked) - 1, 'other name')}" if len(asked) > 1 else ""
        return (
            f"{number} by {describe_writer(self.writer)} to make {format_name(asked[-1])}{others} the holder "
            f"conflicted (409){until}; the lease had the holder {format_name(self.held)} then"
        )

    def advise(self) -> Advice:
        """Return what to do instead."""
        sentence = (
            f"It is held and renewed, and these updates by {describe_writer(self.writer)} changed nothing. Whoever "
            "wants another holder should stop the present one, and leave the lease alone."
        )
        return Advice(sentence)


def find_conflicting_updates(history: LeaseHistory) -> list[ConflictingUpdates]:
    """Return the updates that would have made another one the holder, by writer and by who was the holder then."""
    groups: dict[tuple[Writer, str, bool], list[Refusal]] = {}
    for refusal in history.requests.refusals:
        tenure = history.find_tenure_at(refusal.received)
        if tenure is not None and _asks_for_another(history, tenure, refusal):
            is_cut = history.requests.has_forgotten_since(tenure.since)
            groups.setdefault((refusal.writer.process, tenure.holder, is_cut), []).append(refusal)
    return [
        ConflictingUpdates(writer, held, tuple(refused), is_cut) for (writer, held, is_cut), refused in groups.items()
    ]


def _asks_for_another(history: LeaseHistory, tenure: Tenure, refusal: Refusal) -> bool:
    """Return whether an update was none of an elector, and would have replaced a holder that renewed the lease."""
    who = refusal.writer
    is_other = refusal.has_conflicted and bool(who.user) and refusal.asks_for_other_than(tenure.holder)
    if not is_other or who.user == API_SERVER or tenure.is_by(who) is not False or tenure.is_stand_in:
        return False
    if who.pod and names_pod(refusal.asked_holder, who.pod):
        return False
    # A holder that lost the lease renews it once more, before it knows.
    if any(one.holder == refusal.asked_holder and one.is_by(who) for one in history.tenures):
        return False
    is_live = tenure.since + _RACE < refusal.received and refusal.at <= tenure.last_renewal
    return is_live and not any(one.start <= refusal.at <= one.end + _RACE for one in history.late_silences)
