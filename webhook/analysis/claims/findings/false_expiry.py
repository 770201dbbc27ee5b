"""Why a live lease looked expired to the holder that took it: a wrong clock, or a renewTime that was changed."""

from typing import Final

from msgspec import Struct

from webhook.analysis.claims.advice.on_mutation import advise_on_mutation
from webhook.analysis.claims.advice.on_writers import advise_on_writer
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import MUTATORS, make_command_for_nodes_of_pods
from webhook.analysis.claims.evidence.writers.foreign_writes import find_stranger
from webhook.analysis.claims.words import describe_user, describe_writer, format_clock, format_name
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.rewriting import RENEW_TIME
from webhook.kubernetes.times import SECOND, format_length

_MIN_CLOCK_ERROR: Final = 2 * SECOND
"""How far a clock must be off to be reported."""
SET_BACK: Final = "set-back"
"""The cause of a theft after another writer set renewTime back."""
_CONCLUSION: Final = "the lease looked expired to the new holder, if that compares renewTime with its own clock"


class FalseExpiry(Struct, frozen=True):
    """Why a lease that was live looked expired to the one that took it, if that compares renewTime with its clock."""

    text: str
    cause: str
    advice: Advice


def explain_false_expiry(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> FalseExpiry | None:
    """Return why a lease that `before` still had looked expired to `after`; None if nothing explains that."""
    if (set_back := _explain_time_set_back(history, before, after, now)) is not None:
        return set_back
    rewritten = history.requests.rewritten.found.get(RENEW_TIME)
    if rewritten:
        if not rewritten.earliest <= after.since <= rewritten.latest + (before.duration or 0) * SECOND:
            return None
        text = f"Its renewTime was not stored as requested, so {_CONCLUSION}"
        return FalseExpiry(text, "rewritten", advise_on_mutation(rewritten))
    ahead = before.own_clock_ahead
    if ahead is None or ahead >= -_MIN_CLOCK_ERROR:
        own = _explain_own_time_set_back(history, before, after, now)
        return own or explain_clock_of_taker(history, before, after)
    behind = f"{format_length(-ahead)} behind the API server's"
    if _are_equally_off(history, ahead):
        text = (
            f"The renewTimes of several holders were equally off, {behind} clock, which points to a webhook or policy "
            f"that changes renewTime, or to a time zone, rather than to wrong clocks; so {_CONCLUSION}"
        )
        return FalseExpiry(text, "clock", Advice("See what changes renewTime, such as a mutating webhook:", MUTATORS))
    advice = _advise_on_clock(history, after, f"Correct the clock of the node of {format_name(before.holder)}")
    return FalseExpiry(f"The old holder's clock is {behind}, so {_CONCLUSION}", "clock", advice)


def explain_clock_of_taker(history: LeaseHistory, before: Tenure, after: Tenure) -> FalseExpiry | None:
    """Explain by the clock of the new holder, by which the lease had expired; None if it had not, or is not known.

    A thief may write any times: whoever is not known to be of the holder's account is no elector with a wrong clock.
    """
    ahead, duration = after.own_clock_ahead, before.duration
    if ahead is None or ahead <= _MIN_CLOCK_ERROR or not duration:
        return None
    if after.processes.doubtful_taker is not None or find_stranger(before, after) is not None:
        return None
    claimed = before.kept_until + (before.clock.ahead_at_last or 0)
    if after.since + ahead < claimed + duration * SECOND:
        return None
    text = (
        f"Its renewTimes are {format_length(ahead)} ahead of the API server's clock: "
        "if it compares renewTime with its own clock, the lease looked expired to it"
    )
    if after.processes.taken_by is None:
        text += ". The input does not show who wrote it"
    what = f"First check the clock of the node of {format_name(after.holder)}"
    return FalseExpiry(text, "clock", _advise_on_clock(history, after, what))


def _advise_on_clock(history: LeaseHistory, after: Tenure, what: str) -> Advice:
    return Advice(
        f"{what}; {format_name(after.holder)} should wait until the lease has not changed for its whole duration. "
        "To see which nodes they run on:",
        make_command_for_nodes_of_pods(history.namespace),
    )


def _explain_own_time_set_back(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> FalseExpiry | None:
    """Explain by renewals of the holder itself that moved renewTime back, so that it had passed by its duration."""
    back = before.set_back
    if back is None or back.is_over or before.is_last_by_other or not before.duration:
        return None
    if back.latest + before.duration * SECOND > after.since:
        return None
    when = format_clock(back.at, now)
    moved = f"back by {format_length(back.length)}, to {format_clock(back.after, now)}"
    text = f"A renewal in the old holder's name at {when} had set renewTime {moved}, so {_CONCLUSION}"
    what = f"Check the clock of the node of {format_name(before.holder)}"
    return FalseExpiry(text, "clock", _advise_on_clock(history, after, what))


def _explain_time_set_back(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> FalseExpiry | None:
    """Explain by another writer that set renewTime back after the holder's last renewal, so that the lease expired."""
    other, taker = before.renewed_by_other, after.processes.taken_by
    if not before.is_last_by_other or other is None or other.renew_time is None or not before.duration:
        return None
    at, changer, claimed = other.at, other.writer, other.renew_time
    is_own = after.processes.doubtful_taker is None and taker is not None and not taker.is_same(changer)
    has_looked_expired = claimed + before.duration * SECOND <= after.since + _MIN_CLOCK_ERROR
    if not (is_own and changer.user and has_looked_expired) or at - claimed <= _MIN_CLOCK_ERROR:
        return None
    text = (
        f"{describe_writer(changer)} had set its renewTime to {format_clock(claimed, now)} "
        f"at {format_clock(at, now)}, so {_CONCLUSION}"
    )
    advice = advise_on_writer(f"Find out why {describe_user(changer)} set its renewTime back.", history, changer)
    return FalseExpiry(text, SET_BACK, advice)


def _are_equally_off(history: LeaseHistory, ahead: int) -> bool:
    """Return whether the clocks of several holders seem to be off by the same, which clocks that are wrong are not."""
    alike = {
        one.holder
        for one in history.tenures
        if one.own_clock_ahead is not None and abs(one.own_clock_ahead - ahead) < _MIN_CLOCK_ERROR
    }
    return len(alike) > 1


def is_server_clock_right(history: LeaseHistory) -> bool:
    """Return whether the clock of another holder agrees with that of the API server that the present one uses.

    Only a log shows which API server dated a write: one of several may be wrong.
    """
    tenure = history.current_tenure
    last = tenure.last_renewal_write if tenure is not None else None
    if tenure is None or last is None or not last.is_logged or len(history.requests.logs) != 1:
        return False
    others = (one for one in history.tenures if one.holder != tenure.holder and one.beginning.write.is_logged)
    clocks = (one.own_clock_ahead for one in others)
    return any(one is not None and abs(one) <= _MIN_CLOCK_ERROR for one in clocks)
