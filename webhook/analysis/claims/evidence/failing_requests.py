"""Requests of holders beside their leases that failed again and again: who leads then need not be able to work."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.words import format_clock, format_name
from webhook.analysis.history.audit_log.failing_requests import MAX_REQUESTS
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Failure, Writer
from webhook.kubernetes.times import MINUTE, SECOND

NEAR: Final = 2 * MINUTE
"""Failures that lie further apart are of different runs: most clients ask again within a minute, at the latest."""
_MIN_REQUESTS: Final = 3
_SHORTEST: Final = 10 * SECOND
"""What fails for less is often asked once more."""


class FailingRun(Struct, frozen=True):
    """Requests of pods that held a lease which failed one after another, the latest ones.

    `first` and `last` are when they were answered, in microseconds since 1970; `is_cut`: there may have been earlier
    ones.
    """

    failure: Failure
    pods: tuple[Writer, ...]
    first: int
    last: int
    number: int
    is_cut: bool

    @property
    def is_unserved(self) -> bool:
        """Whether the API server does not serve what was asked for."""
        return self.failure.code == 404

    def describe(self, tenure: Tenure | None, now: int) -> str:
        """`7 requests of pod db-0, its holder, to list services were refused with 403, the last at 12:00:42Z`."""
        # A log without objects shows who wrote it.
        held = "wrote" if tenure is not None and tenure.is_writer else "held"
        whose = f"{len(self.pods)} pods that {held} it"
        if len(self.pods) == 1:
            is_holder = held == "held" and tenure is not None and tenure.is_by(self.pods[0]) is True
            whose = f"pod {format_name(self.pods[0].pod)}, {'its holder' if is_holder else f'which {held} it'},"
        where = f" in namespace {format_name(self.failure.namespace)}" if self.failure.namespace else ""
        what = f"{self.failure.verb} {format_name(self.failure.resource)}{where}"
        least = "at least " if self.is_cut else ""
        last = format_clock(self.last, now)
        return f"{least}{self.number} requests of {whose} to {what} {self._describe_answer()}, the last at {last}"

    def _describe_answer(self) -> str:
        if self.is_unserved:
            return "were answered that the API server does not serve them (404)"
        if self.failure.lacks_rights:
            return "were refused for lack of rights (403)"
        return f"{'were refused' if self.failure.code == 403 else 'failed'} with {self.failure.code}"


def find_failing_requests(histories: ClusterHistory, history: LeaseHistory, now: int) -> tuple[FailingRun, ...]:
    """Return what pods that held a lease asked for in vain, unless their requests for the lease failed as well."""
    owners = (one.processes.own for one in history.tenures if one.processes.is_sure)
    known = histories.failing_requests.list_of(one for one in owners if one is not None)
    runs = (_find_run(failure, [one for one in times if one[0] <= now]) for failure, times in known.items())
    found = (one for one in runs if one.number >= _MIN_REQUESTS and one.last - one.first >= _SHORTEST)
    return tuple(sorted((one for one in found if not _is_of_all(history, one)), key=lambda one: one.first))


def _find_run(failure: Failure, times: Sequence[tuple[int, Writer]]) -> FailingRun:
    """Return the latest run of failures."""
    breaks = [number for number, (one, after) in enumerate(pairwise(times), 1) if after[0] - one[0] > NEAR]
    latest = times[breaks[-1] if breaks else 0 :]
    pods = tuple(dict.fromkeys(who for _, who in latest))
    first, last = (latest[0][0], latest[-1][0]) if latest else (0, 0)
    return FailingRun(failure, pods, first, last, len(latest), is_cut=len(times) >= MAX_REQUESTS)


def _is_of_all(history: LeaseHistory, run: FailingRun) -> bool:
    """Return whether these pods were refused the lease then, too, which is said."""
    refused = (one for one in history.requests.refusals if one.is_denied or one.has_failed)
    return any(run.first - NEAR <= one.at <= run.last and any(map(one.writer.is_same, run.pods)) for one in refused)


def find_present_failures(runs: Sequence[FailingRun], tenure: Tenure | None, until: int) -> Iterator[FailingRun]:
    """Yield those that the holder had until shortly before the end of the log."""
    for run in runs:
        is_own = tenure is not None and any(tenure.is_by(one) is True for one in run.pods)
        if is_own and tenure is not None and run.last >= tenure.since and until - run.last <= NEAR:
            yield run
