"""What an input shows of a time in which a lease was not renewed: what its causes are told from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

from webhook.analysis.claims.diagnosis import Cause
from webhook.analysis.claims.evidence.machines.restarted_servers import RestartedServer, find_restarted_server
from webhook.analysis.claims.evidence.pods.pod_statuses import describe_end_of_pod, find_kubelet_writes
from webhook.analysis.history.audit_log.log_spans import EndedLog, SilentLog
from webhook.analysis.history.audit_log.refusal import TOO_MANY_REQUESTS, UNAUTHENTICATED, Refusal, RefusedBy
from webhook.analysis.history.audit_log.requests import AnsweredRead
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.renewals import OtherLeases, Silence, estimate_deadline, estimate_last_work
from webhook.analysis.inputs.items import InputKind, PodActivity, PodRequest, Writer
from webhook.kubernetes.times import MINUTE, SECOND

REFUSED: Final = {
    RefusedBy.RIGHTS: Cause.REFUSED_RIGHTS,
    RefusedBy.CREDENTIALS: Cause.REFUSED_CREDENTIALS,
    RefusedBy.WEBHOOK: Cause.REFUSED_WEBHOOK,
    RefusedBy.POLICY: Cause.REFUSED_POLICY,
    RefusedBy.FIELDS: Cause.REFUSED_FIELDS,
    RefusedBy.OTHER: Cause.REFUSED_OTHER,
}
HIDDEN: Final = (*REFUSED.values(), Cause.FAILED, Cause.THROTTLED, Cause.CONFLICT)
"""Causes that only an audit log shows."""
_MIN_OTHER_REQUESTS: Final = 3
"""Requests of a pod that show it at work: a single one may be held back on its way, or be of a start."""
_MIN_PAUSE: Final = 5 * SECOND
_MAX_PAUSE: Final = 15 * SECOND
"""For how long a pod that runs may be without another request: just after one for a lease, its reads are not read."""
_MAX_APART: Final = MINUTE // 2
"""How far apart requests of a pod are that is at work until the end, and for how long it must have been, at least."""
_PARTS: Final = 4
"""A time without an answer to others is short if it is at most so small a part of a silence."""


@dataclass(frozen=True)
class SilenceEvidence:
    """What an input shows between two instants, `start` and `end`, in microseconds since 1970.

    At `start` the lease was renewed last, by `tenure`, its holder then; at `end` it was renewed again, or taken.
    """

    histories: ClusterHistory
    history: LeaseHistory
    tenure: Tenure | None
    start: int
    end: int

    @cached_property
    def hidden(self) -> tuple[Cause, ...]:
        """The causes that the input does not show: where a log may lack requests, it shows no more than a watch."""
        bounds = self.histories.bounds
        is_short = self._has_forgotten or self.histories.lacks_requests(self.history) or self.ended_log is not None
        is_whole = not (is_short or bounds.has_hole(self.start, self.end))
        return () if self.history.kind is InputKind.AUDIT_LOG and is_whole else HIDDEN

    @cached_property
    def ended_log(self) -> EndedLog | None:
        """A log of one of several API servers that ends meanwhile: later requests to that one are not shown."""
        bounds = self.histories.bounds
        # By clocks that differ, a log may seem to end early.
        return bounds.log_spans.find_ended(self.start, self.end) if bounds.skew <= SECOND else None

    @cached_property
    def silent_log(self) -> SilentLog | None:
        """The log that has the last renewal, if it has no answer about any lease for most of that time.

        What others did, who were answered by another API server, says nothing of that one.
        """
        bounds, path = self.histories.bounds, self.history.requests.written_in.find_at(self.start + SECOND)
        return bounds.log_spans.find_silent(path, self.start, self.end) if bounds.skew <= SECOND else None

    @cached_property
    def restarted_server(self) -> RestartedServer | None:
        """The API server that went meanwhile, and came again; which one the holder used need not be shown."""
        return find_restarted_server(self.histories, self.history, self.start, self.end)

    @cached_property
    def end_of_pod(self) -> str:
        """The clause about the end of the holder's pod, or of a container of it; "" if no kubelet wrote of one."""
        return describe_end_of_pod(self.kubelet_writes, self.start, self.end)

    @cached_property
    def kubelet_writes(self) -> Sequence[PodRequest]:
        """The writes of kubelets to the status of the holder's pod meanwhile."""
        return find_kubelet_writes(self.histories, self.tenure, self.start, self.end) if self.tenure else ()

    @property
    def least(self) -> str:
        """`at least ` before a number of answers, if some of that time may be remembered no longer, else ""."""
        return "at least " if self._has_forgotten else ""

    @cached_property
    def _has_forgotten(self) -> bool:
        """Whether some answers of that time may be remembered no longer: to the holder, if only one process may be."""
        requests, own = self.history.requests, self._own_pod
        if self.tenure is None or own is None or not own.pod or self.tenure.processes.others:
            return requests.has_forgotten_since(self.start, "")
        return requests.has_forgotten_of(own, self.start, self.end)

    @cached_property
    def other_leases(self) -> OtherLeases:
        """How the other leases fared meanwhile."""
        return self.histories.index.compare_with_others(self.history, self.start, self.end)

    @property
    def silence(self) -> Silence:
        """From when to when the holder was silent, and how long the lease lasts."""
        return Silence(self.start, self.end, (self.tenure.duration if self.tenure else None) or self.history.duration)

    @cached_property
    def late_answers(self) -> Sequence[Refusal]:
        """Answers to requests that arrived only at the end of that time: they were held back until then."""
        return [one for one in self._all_answers if one.received >= self._held_back]

    @cached_property
    def own_answers(self) -> Sequence[Refusal]:
        """What the holder was answered, until it must have given up."""
        own = [one for one in self._answers if self.is_own(one)]
        own = _drop_late_answers(own, self.start + estimate_last_work(self.history.duration))
        return list(self._drop_answers_after_outage(own))

    @cached_property
    def other_answers(self) -> Sequence[Refusal]:
        """Answers that came too late to explain a stop, or to a writer that may be the holder, under no other name."""
        return [one for one in self._all_answers if one not in self.own_answers and self._may_be_for_holder(one)]

    def _may_be_for_holder(self, answer: Refusal) -> bool:
        if self.tenure is None or self.is_own(answer):
            return True
        return self.tenure.processes.may_be_own(answer.writer) and not is_under_another_name(self.tenure, answer)

    @property
    def kept_trying(self) -> bool:
        """Whether the holder tried again until it gave up, after a failure or a conflict, as clients do.

        Something else stopped one that did not, or one that tried only once it was too late.
        """
        own, deadline = self.own_answers, estimate_deadline(self.history.duration)
        gives_up = min(self.start + deadline // 2, self.end - (self.end - self.start) // 3)
        return bool(own) and own[-1].at >= gives_up and own[0].received <= self.start + deadline

    @cached_property
    def asked_throughout(self) -> bool:
        """Whether what the holder asked in vain leaves no long time in which it asked for nothing, until it gave up."""
        deadline = estimate_deadline(self.history.duration)
        until = min(self.start + deadline, self.end)
        waits = pairwise(
            [(self.start, self.start), *((one.received, one.at) for one in self.own_answers), (until, until)]
        )
        return all(min(received, until) - answered <= deadline // 2 for (_, answered), (received, _) in waits)

    @cached_property
    def asked_until_end(self) -> bool:
        """Whether the holder kept asking in vain until the end, if more rarely than leaders renew.

        Who was refused as the leader may wait for longer before it tries again.
        """
        deadline = estimate_deadline(self.history.duration)
        own = sorted((one.received, one.at) for one in self._all_answers if one.code >= 400 and self.is_own(one))
        waits = pairwise([(self.start, self.start), *own, (self.end, self.end)])
        is_repeated = bool(own) and own[-1][0] - own[0][0] >= deadline // 2
        return is_repeated and all(received - answered <= deadline for (_, answered), (received, _) in waits)

    def was_refused_before(self, answer: Refusal) -> bool:
        """Return whether the holder was refused alike before, about as long ago, and renewed as usual meanwhile."""
        since, renewals = (
            max(self.start - self.silence.length, self.tenure.since if self.tenure else 0),
            self.history.renewals,
        )
        silences = (*renewals.silences, *renewals.lost)
        return any(
            since < one.at < self.start
            and (one.code, one.by, one.is_read) == (answer.code, answer.by, answer.is_read)
            and self.tenure is not None
            and self.tenure.is_by(one.writer) is True
            and not any(silence.start < one.at < silence.end for silence in silences)
            for one in self.history.requests.refusals
        )

    @property
    def request_count(self) -> int | None:
        """How many requests its pods made; None if that cannot be known.

        A network that works again delivers at once what it held back: requests at the end do not count.
        """
        until = self.silence.last_quarter_start
        return None if self.tenure is None else self.tenure.processes.count_requests(self.start, until)

    @property
    def other_name(self) -> str:
        """The latest other holder that its pod asked for in writes that were not stored; "" if it asked for none."""
        tenure = self.tenure
        if tenure is None or self._own_pod is None or not self._own_pod.pod:
            return ""
        names = [
            one.asked_holder
            for one in self._all_answers
            if one.asked_holder and tenure.is_by(one.writer) is True and is_under_another_name(tenure, one)
        ]
        return names[-1] if names else ""

    @cached_property
    def is_heard(self) -> bool | None:
        """Whether an audit log may have a request of its pods meanwhile; None if that cannot be known."""
        if self.request_count is None:
            return None
        return bool(self.request_count) or any(self._may_be_own(one) for one in self._answered_reads)

    @cached_property
    def reads_of_others(self) -> Sequence[int]:
        """When an API server answered reads of others with the help of its etcd, which a renewal needs."""
        return [one.at for one in self._answered_reads if not (one.is_from_cache or self._may_be_own(one))]

    @cached_property
    def other_requests(self) -> Sequence[PodActivity]:
        """The requests of its pod about anything else, as far as they are read."""
        start = self.start + self.histories.bounds.skew
        return self.histories.pod_activities.list_between(self._own_pod, start, self.end)

    @property
    def _own_pod(self) -> Writer | None:
        processes = self.tenure.processes if self.tenure else None
        return processes.own if processes is not None and processes.is_process_known else None

    @property
    def has_pod_gone_on(self) -> bool:
        """Whether the other requests of its pod leave no long time in which it may have been cut off, or paused."""
        silence = self.silence
        pause = max(_MIN_PAUSE, min(silence.length // _PARTS, _MAX_PAUSE))
        received = [one.received for one in self.other_requests]
        if len(received) < _MIN_OTHER_REQUESTS:
            return False
        has_forgotten = self.histories.pod_activities.has_forgotten_since(self._own_pod, silence.start)
        first = [] if has_forgotten else [silence.start]
        times = [*first, *received, max(silence.last_quarter_start, received[-1])]
        return max(after - before for before, after in pairwise(times)) <= pause

    @property
    def runs_on(self) -> bool:
        """Whether its pod has asked for other things until now, for long, and not for the lease since it renewed it."""
        found, tenure = self.other_requests, self.tenure
        is_over = tenure is None or tenure is not self.history.current_tenure or tenure.last_renewal > self.start
        if is_over or tenure is None or len(found) < _MIN_OTHER_REQUESTS:
            return False
        reads = (one for one in self.history.requests.answered if self.start < one.at)
        if tenure.processes.count_requests(self.start, self.end) or any(map(self._may_be_own, reads)):
            return False
        times = [*(one.received for one in found), self.end]
        return times[-1] - times[0] >= _MAX_APART and max(b - a for a, b in pairwise(times)) <= _MAX_APART

    @property
    def was_answered_throughout(self) -> bool:
        """Whether reads of others were answered during all of that time: one says nothing of what was after it."""
        silence = self.silence
        times = [silence.start, *self.reads_of_others, silence.last_quarter_start]
        # Where a log ends with the last renewal, nothing was answered after it.
        return bool(self.reads_of_others) and max(b - a for a, b in pairwise(times)) <= silence.length // _PARTS

    def _may_be_own(self, read: AnsweredRead) -> bool:
        return self.tenure is None or self.tenure.processes.may_be_own(read.reader)

    @cached_property
    def _answered_reads(self) -> Sequence[AnsweredRead]:
        silence = self.silence
        answered = self.history.requests.answered
        return [one for one in answered if silence.start < one.at <= silence.last_quarter_start]

    @property
    def sources(self) -> set[str]:
        """The addresses and programs of the requests of the holder's process."""
        return self.history.requests.find_sources(self.tenure)

    @cached_property
    def slowest_answer(self) -> Refusal | None:
        """The stored request of the holder that took longest to answer; None if it stopped, or none was slow."""
        stored = (one for one in self.own_answers if one.code < 300 and self.kept_trying)
        return max(stored, key=lambda one: one.took, default=None)

    @property
    def slow(self) -> int:
        """How long that took, in microseconds; 0 if there is none."""
        return self.slowest_answer.took if self.slowest_answer is not None else 0

    @property
    def unauthenticated(self) -> Sequence[Refusal]:
        """Answers to requests without accepted credentials."""
        return [one for one in self._answers if one.code == UNAUTHENTICATED and not one.writer.user]

    @cached_property
    def answers_to_sharers(self) -> Sequence[Refusal]:
        """What others were answered that may be the holder: they renewed under the same name, or are of its user."""
        tenure = self.tenure
        of_name = [one for one in self.history.tenures if tenure is not None and one.holder == tenure.holder]
        others = [who for one in of_name if one is tenure for who in one.processes.others]
        before = [one.processes.own for one in of_name if one is not tenure or self._is_user_shared]
        sharers = [one for one in (*others, *before) if one is not None]
        answers = (one for one in self._answers if one.code >= 400 and not self.is_own(one))
        answers = (one for one in answers if tenure is not None and not is_under_another_name(tenure, one))
        return [one for one in answers if any(map(one.writer.is_same, sharers))]

    @property
    def failed_reads(self) -> Sequence[Refusal]:
        """The reads of the lease, by anyone, that the API server was unable to answer."""
        return [one for one in self._all_answers if one.is_read and one.has_failed and one.code != TOO_MANY_REQUESTS]

    def is_own(self, answer: Refusal) -> bool:
        """Return whether an answer was for the holder, as far as is known.

        Where several holders are of one user, and the tokens name no pod, only who leads writes before the expiry. A
        process that begins in the same pod, once that of the holder has ended, asks for another name.
        """
        if answer.is_held_by_another and not self._had_written(answer):
            return False
        if self.tenure is None or self.tenure.is_by(answer.writer) is not True:
            return self.tenure is None or _is_refused_for(self.tenure, answer)
        if is_under_another_name(self.tenure, answer):
            return False
        expiry = self.start + (self.silence.duration or 0) * SECOND
        return not self._is_user_shared or (not answer.is_read and answer.received <= expiry)

    def _had_written(self, answer: Refusal) -> bool:
        """Return whether the process that was answered had written the lease before, as its holder has."""
        written = self.history.requests.addresses.by_writer.get(answer.writer.process)
        return written is not None and min(written.first.values()) <= answer.received

    @cached_property
    def _is_user_shared(self) -> bool:
        own = self.tenure.processes.own if self.tenure else None
        if self.tenure is None or own is None or own.uid or own.pod:
            return False
        others = (one.processes.own for one in self.history.tenures if one.holder != self.tenure.holder)
        return any(one is not None and one.is_same(own) for one in others)

    @property
    def _held_back(self) -> int:
        return self.end - (self.end - self.start) // 8

    @cached_property
    def _all_answers(self) -> Sequence[Refusal]:
        return [one for one in self.history.requests.refusals if self.start <= one.at <= self.end]

    @cached_property
    def _answers(self) -> Sequence[Refusal]:
        return [one for one in self._all_answers if one.received < self._held_back]

    def _drop_answers_after_outage(self, own: Sequence[Refusal]) -> Sequence[Refusal]:
        """Leave out answers that all came once a holder must have given up, if the other leases were late as well.

        An API server that comes back may refuse before it knows the rights.
        """
        is_early = any(one.received <= self.start + estimate_last_work(self.history.duration) for one in own)
        return own if not own or is_early or not self.other_leases.most_were_late else ()


def is_under_another_name(tenure: Tenure, answer: Refusal) -> bool:
    """Return whether a write was to name another holder, as another process of the same pod does."""
    return answer.asks_for_other_than(tenure.holder, tenure.asked_holder)


def _drop_late_answers(own: Sequence[Refusal], gives_up: int) -> list[Refusal]:
    """Leave out answers from the first one of a kind that began after a holder must have given up.

    If its writes had failed before, that is why it gave up.
    """
    early = [one for one in own if one.received <= gives_up]
    kinds = {"", *map(_classify_answer, early)}
    first = next((one for one in own if one.received > gives_up and _classify_answer(one) not in kinds), None)
    if first is None or not any(one.has_failed for one in early):
        return list(own)
    return [one for one in own if one.at < first.at]


def _classify_answer(answer: Refusal) -> Cause | None:
    """Return the cause that an answer shows, if it shows one."""
    if answer.is_denied:
        return REFUSED[answer.by]
    return next(list_answers([answer]), None)


def list_answers(own: Sequence[Refusal]) -> Iterator[Cause]:
    """Yield the causes for which a holder may have given up, by the answers to what it had tried before."""
    if any(one.has_failed and one.code != TOO_MANY_REQUESTS for one in own):
        yield Cause.FAILED
    if any(one.code == TOO_MANY_REQUESTS for one in own):
        yield Cause.THROTTLED
    if any(one.has_conflicted for one in own):
        yield Cause.CONFLICT


def list_refusals(answers: Sequence[Refusal]) -> Iterator[Cause]:
    """Yield the causes that refusals among some answers show, each once."""
    yield from dict.fromkeys(REFUSED[one.by] for one in answers if one.is_denied)


def _is_refused_for(tenure: Tenure, answer: Refusal) -> bool:
    """Return whether who acted as the holder was refused to act as it: the answer names that user."""
    own = tenure.processes.own
    if own is None or not own.impersonator:
        return False
    return (own.user, own.impersonator) == (answer.impersonated, answer.writer.user)
