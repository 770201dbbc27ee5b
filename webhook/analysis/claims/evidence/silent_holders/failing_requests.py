"""Requests of holders, besides those for their leases, that failed again and again: such a leader may not work."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.analysis.claims.evidence.runs import split_runs
from webhook.analysis.claims.words import format_clock, format_name
from webhook.analysis.history.audit_log.failing_requests import MAX_REQUESTS, FailedRequest
from webhook.analysis.history.audit_log.refusal import UNKNOWN_RESOURCE
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Failure, Writer
from webhook.analysis.inputs.pod_activity import WRITES
from webhook.kubernetes.times import MINUTE, SECOND, format_length

NEAR: Final = 2 * MINUTE
"""Failures that lie further apart are of different runs: most clients ask again within a minute, at the latest."""
_MIN_REQUESTS: Final = 3
_SHORTEST: Final = 10 * SECOND
"""What fails for less is often asked once more."""
DEFINITION: Final = "CustomResourceDefinition"
_LONG: Final = SECOND
_SOON: Final = 30 * SECOND
_TIMES: Final = 2
"""Who fails for long waits twice as long each time; who has not failed again in that time succeeds, perhaps."""


class FailingRun(Struct, frozen=True):
    """Requests of pods that held a lease which failed one after another, the latest ones.

    `first` and `last` are when they were answered, in microseconds since 1970; `is_cut`: there may have been earlier
    ones. `shortest` and `longest` are how long they took, `message` is the last answer; `answers` are all that are
    known. `are_all`: nothing else that the pod wrote since the first was received succeeded. `is_unserved`: the API
    server does not serve what was asked for, as the answers say, or as a deletion of its definition shows; else
    another server may have answered.
    """

    failure: Failure
    pods: tuple[Writer, ...]
    first: int
    last: int
    number: int
    is_cut: bool
    shortest: int = 0
    longest: int = 0
    message: str = ""
    are_all: bool = False
    is_unserved: bool = False
    answers: tuple[FailedRequest, ...] = ()

    def describe(self, tenure: Tenure | None, now: int) -> str:
        """`7 requests of pod db-0, its holder, to list services were refused with 403, the last at 12:00:42Z`."""
        # A log without objects shows who wrote it.
        held = "wrote" if tenure is not None and tenure.is_stand_in else "held"
        whose = f"{len(self.pods)} pods that {held} it"
        if len(self.pods) == 1:
            is_holder = held == "held" and tenure is not None and tenure.is_by(self.pods[0]) is True
            whose = f"pod {format_name(self.pods[0].pod)}, {'its holder' if is_holder else f'which {held} it'},"
        where = f" in namespace {format_name(self.failure.namespace)}" if self.failure.namespace else ""
        what = f"{self.failure.verb} {format_name(self.failure.resource)}{where}"
        least = "at least " if self.is_cut else ""
        last = format_clock(self.last, now)
        answer = f"{self._describe_answer()}{self._describe_time()}, the last at {last}"
        return f"{least}{self.number} requests of {whose} to {what} {answer}{self._describe_others()}{self._quote()}"

    def _describe_answer(self) -> str:
        if self.is_unserved:
            return "were answered that the API server does not serve them (404)"
        if self.failure.lacks_rights:
            return "were refused for lack of rights (403)"
        if self.failure.code == 404:
            return "were answered with 404"
        return f"{'were refused' if self.failure.code == 403 else 'failed'} with {self.failure.code}"

    def _describe_time(self) -> str:
        """Say how long they took, if that was long: an API server refuses at once."""
        shortest, longest = format_length(self.shortest), format_length(self.longest)
        if self.shortest < _LONG:
            return ""
        return f" after {shortest} each" if shortest == longest else f" after {shortest} to {longest}"

    def _describe_others(self) -> str:
        if not self.are_all:
            return ""
        return "; since the first, the log shows no write by that pod, other than of leases and Events, that succeeded"

    def _quote(self) -> str:
        """Return the last answer, unless it says no more than is said."""
        is_said = self.is_unserved or self.failure.lacks_rights or not self.message
        return "" if is_said else f"; the last answer: {self.message}"


def find_failing_requests(histories: ClusterHistory, history: LeaseHistory, now: int) -> tuple[FailingRun, ...]:
    """Return what pods that held a lease asked for in vain, unless their requests for the lease failed as well."""
    owners = (one.processes.own for one in history.tenures if one.processes.is_process_known)
    known = histories.failing_requests.list_by_failure(one for one in owners if one is not None)
    has_forgotten = histories.failing_requests.has_forgotten
    runs: Iterator[FailingRun] = (
        _find_run(failure, [one for one in answers if one.at <= now], has_forgotten=has_forgotten)
        for failure, answers in known.items()
    )
    runs = (replace(one, is_unserved=_is_unserved(histories, one)) for one in runs)
    runs = (replace(one, are_all=_are_all_writes(histories, history, one, now)) for one in runs)
    found = (one for one in runs if one.number >= _MIN_REQUESTS and one.last - one.first >= _SHORTEST)
    return tuple(sorted((one for one in found if not _is_of_all(history, one)), key=lambda one: one.first))


def _find_run(failure: Failure, answers: Sequence[FailedRequest], *, has_forgotten: bool) -> FailingRun:
    """Return the latest run of failures."""
    runs = split_runs(answers, apart=NEAR, time=attrgetter("at"))
    if not runs:
        return FailingRun(failure, (), 0, 0, 0, is_cut=False)
    latest = runs[-1]
    took = [one.at - one.received for one in latest]
    return FailingRun(
        failure,
        tuple(dict.fromkeys(one.who for one in latest)),
        latest[0].at,
        latest[-1].at,
        len(latest),
        is_cut=has_forgotten or len(answers) >= MAX_REQUESTS,
        shortest=min(took),
        longest=max(took),
        message=latest[-1].message,
        answers=tuple(latest),
    )


def _is_unserved(histories: ClusterHistory, run: FailingRun) -> bool:
    if run.failure.code != 404:
        return False
    if all(one.message == UNKNOWN_RESOURCE for one in run.answers):
        return True
    written = histories.index.related_writes
    return any((one.kind, one.name, one.verb) == (DEFINITION, run.failure.resource, "deleted") for one in written)


def _are_all_writes(histories: ClusterHistory, history: LeaseHistory, run: FailingRun, now: int) -> bool:
    """Return whether a log that seems whole has no other write of the only pod that succeeded since the first failed.

    What it wrote meanwhile that was received before does not show that it would succeed now.
    """
    start, until = run.first - run.longest, min(now, histories.bounds.logged_until)
    if len(run.pods) != 1 or run.failure.verb not in WRITES or run.number < _MIN_REQUESTS:
        return False
    if not histories.shows_all_requests(history, start, until):
        return False
    activities, pod = histories.pod_activities, run.pods[0]
    if activities.has_forgotten_since(pod, start) or activities.has_written_as_other_since(pod, start):
        return False
    found = activities.list_between(pod, start - MINUTE, until)
    return not any(one.at > start and (one.is_write or one.may_be_write) for one in found)


def _is_of_all(history: LeaseHistory, run: FailingRun) -> bool:
    """Return whether these pods were refused the lease then, too, which is said."""
    refused = (one for one in history.requests.refusals if one.is_denied or one.has_failed)
    return any(run.first - NEAR <= one.at <= run.last and any(map(one.writer.is_same, run.pods)) for one in refused)


def find_present_failures(runs: Sequence[FailingRun], tenure: Tenure | None, until: int) -> Iterator[FailingRun]:
    """Yield those that the holder had as such until shortly before the end of the log, with its last one."""
    for run in runs if tenure is not None else ():
        assert tenure is not None
        own = [one.at for one in run.answers if one.at >= tenure.since and tenure.is_by(one.who) is True]
        if len(own) < _MIN_REQUESTS:
            continue
        waits = [after - one for one, after in pairwise(own)]
        if until - own[-1] <= min(NEAR, max(_SOON, _TIMES * max(waits))):
            yield replace(run, last=own[-1])
