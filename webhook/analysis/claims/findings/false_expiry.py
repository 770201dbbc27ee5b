"""Why a live lease looked expired to the holder that took it: a wrong clock, or a renewTime that was changed."""

from typing import Final

from msgspec import Struct

from webhook.analysis.claims.advice.on_mutation import advise_on_mutation
from webhook.analysis.claims.advice.on_writers import advise_on_writer
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import MUTATORS, make_command_for_nodes_of_pods
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
        return _explain_own_time_set_back(history, before, after, now)
    behind = f"{format_length(-ahead)} behind the API server's"
    if _are_equally_off(history, ahead):
        text = (
            f"The renewTimes of several holders were equally off, {behind} clock, which points to a webhook or policy "
            f"that changes renewTime, or to a time zone, rather than to wrong clocks; so {_CONCLUSION}"
        )
        return FalseExpiry(text, "clock", Advice("See what changes renewTime, such as a mutating webhook:", MUTATORS))
    advice = _advise_on_clock(history, before, after, "Correct")
    return FalseExpiry(f"The old holder's clock is {behind}, so {_CONCLUSION}", "clock", advice)


def _advise_on_clock(history: LeaseHistory, before: Tenure, after: Tenure, what: str) -> Advice:
    return Advice(
        f"{what} the clock of the node of {format_name(before.holder)}; "
        f"{format_name(after.holder)} should wait until the lease has not changed for its whole duration. "
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
    return FalseExpiry(text, "clock", _advise_on_clock(history, before, after, "Check"))


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
