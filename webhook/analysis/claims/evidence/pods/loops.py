"""A pod that takes a lease and releases it again and again, as one that starts, fails, and is started again."""

from collections.abc import Sequence
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import PREVIOUS, advise_on_log_of_writer
from webhook.analysis.claims.handovers import FREQUENT_WITHIN
from webhook.analysis.claims.words import format_clock, format_name
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.named_pods import guess_named_pod
from webhook.kubernetes.times import SECOND, format_length

_MIN_TIMES: Final = 3
"""How often in a row, and never for long: a rolling restart does that once or twice."""


class Loop(Struct, frozen=True):
    """Tenures in a row, each of which the same process or pod began, and ended soon with a release.

    `is_logged`: an audit log shows that process; else it is the one that the names hint at. `is_release_known`: it
    shows that all were released, and not removed by another one.
    """

    who: str
    tenures: tuple[Tenure, ...]
    is_logged: bool
    is_release_known: bool

    def describe(self, now: int) -> str:
        """`pod db-0 took it and released it 5 times until 12:00:42Z, each time after 6 s to 8 s`."""
        lasted = sorted((one.until or one.since) - one.since for one in self.tenures)
        shortest, longest = (format_length(one // SECOND * SECOND) for one in (lasted[0], lasted[-1]))
        after = shortest if shortest == longest else f"{shortest} to {longest}"
        released = "released it" if self.is_release_known else "released it, or was removed,"
        until = format_clock(self.tenures[-1].until or now, now)
        who = self.who if self.is_logged else f"{self.who} (by what its holders are called)"
        return f"{who} took it and {released} {len(self.tenures)} times until {until}, each time after {after}"

    def advise(self, sentence: str, namespace: str) -> Advice:
        """Return a sentence, and the command that shows what the pod logged, in containers that have ended, too."""
        own, holder = self.tenures[-1].processes.own, self.tenures[-1].holder
        advice = advise_on_log_of_writer(sentence, namespace, own, holder)
        logs = advice.command
        return replace(advice, command=f"{logs}; {logs} {PREVIOUS}") if advice.pods else advice


def find_loop(tenures: Sequence[Tenure], now: int) -> Loop | None:
    """Return the latest tenures of one process or pod that took a lease and released it again and again; else None."""
    afters = [*islice(tenures, 1, None), None]
    followed = [(one, after) for one, after in zip(tenures, afters, strict=False) if one.until is not None]
    if not followed:
        return None
    who, run, free_until = name_taker(followed[-1][0]), list[Tenure](), now
    for tenure, after in reversed(followed):
        is_alike = who != "" and name_taker(tenure) == who and _is_short(tenure)
        is_soon = tenure.until is not None and free_until - tenure.until <= FREQUENT_WITHIN
        if not (is_alike and is_soon and _is_released(tenure, after)):
            break
        run.insert(0, tenure)
        free_until = tenure.since
    current = tenures[-1] if tenures[-1].until is None else None
    is_current = current is None or name_taker(current) == who
    # A lock that is never renewed is taken for each task.
    is_lock = not any(one.processes.renewals for one in run)
    if len(run) < _MIN_TIMES or is_lock or not is_current:
        return None
    is_logged = all(one.processes.own is not None for one in run)
    return Loop(who, tuple(run), is_logged, is_release_known=all(one.removal.is_own is True for one in run))


def name_taker(tenure: Tenure) -> str:
    """Return the pod that took a lease for itself, where none is known the one that its name hints at, or its name.

    "" if another one wrote it in.
    """
    own, other = tenure.processes.own, tenure.processes.doubtful_taker
    if other is not None:
        return ""
    if own is not None and own.pod:
        return f"pod {format_name(own.pod)}"
    pod = guess_named_pod(tenure.holder)
    return format_name(pod if pod else tenure.holder)


def _is_short(tenure: Tenure) -> bool:
    """Return whether it is known from when to when a holder had a lease, and that was not long."""
    is_known = tenure.began is not Handover.SEEN and tenure.beginning.is_dated and tenure.is_end_dated
    return is_known and (tenure.until or tenure.since) - tenure.since <= FREQUENT_WITHIN


def _is_released(tenure: Tenure, after: Tenure | None) -> bool:
    """Return whether a holder ended with a release, as far as nothing hints that another one removed it."""
    is_free = after is None or after.began is Handover.RELEASED
    return is_free and not (tenure.is_deleted or tenure.removal.may_be_by_another)
