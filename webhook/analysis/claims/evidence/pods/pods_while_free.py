"""What a log shows of pods while no one held a lease: which could not be created, wait for a node, or had a kubelet.

Each is listed along with what happened to the lease, and is never given as its cause.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.commands import find_namespace_of_writer
from webhook.analysis.claims.evidence.contenders.newer_leases import find_newer_lease, is_asked_for_no_more
from webhook.analysis.claims.evidence.pods.pod_statuses import (
    describe_end_of_pod,
    describe_kubelet_writes,
    find_kubelet_writes,
    name_node,
)
from webhook.analysis.claims.evidence.pods.restarted_holders import find_status_writes
from webhook.analysis.claims.evidence.pods.unasking_pods import find_bound, find_unasking_pods
from webhook.analysis.claims.evidence.pods.workload_names import name_workload
from webhook.analysis.claims.evidence.writers.owners import find_owner_that_held
from webhook.analysis.claims.words import describe_writer, format_clock, format_count, format_name
from webhook.analysis.history.audit_log.pod_requests import MAX_REQUESTS
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.renewals import DEFAULT_DURATION
from webhook.analysis.history.status import LeaseState
from webhook.analysis.inputs.items import PodAct, PodRequest, Writer
from webhook.kubernetes.times import MINUTE, SECOND, format_length

_BEFORE: Final = MINUTE
"""How long before a lease was free the creation of a pod may have been refused that would ask for it."""
_SHORTEST: Final = 2 * SECOND
"""A lease that was free for less was waited for."""
_MIN_WRITES: Final = 2
"""The scheduler writes the status of a pod that it preempts, too, and of one that it cannot place again and again."""
_UNTIL_ASKING: Final = MINUTE // 2
"""How long a pod may take from getting a node until it asks for its lease."""
_MAX_NAMED: Final = 3
_FAILED: Final = 500
_UNTIL_SILENT: Final = 5 * SECOND
"""How long before its last renewal a program may have been started that stopped a holder, or its pod."""
_UNTIL_STARVED: Final = MINUTE
"""How long before its last renewal in time the pod of a holder may have been resized that starved since."""
_PAUSING: Final = frozenset({"STOP", "TSTP", "19", "20"})
"""Signals, and their numbers on most machines."""
_RESUMING: Final = frozenset({"CONT", "18"})
_UNTIL_EVICTED: Final = 2 * SECOND
_SCHEDULER: Final = "system:kube-scheduler"
_NAMED: Final = re.compile(r'pods "([a-z0-9.-]{1,253})" is forbidden: ')


class PodEvent(Struct, frozen=True, order=True):
    """What a log shows of a pod, and when: `is_vague` if only that its kubelet was there, `ending` is how it ended."""

    at: int
    text: str
    is_vague: bool = False
    ending: str = ""


def list_pod_events(
    histories: ClusterHistory, history: LeaseHistory, refused: Sequence[PodRequest], now: int
) -> tuple[PodEvent, ...]:
    """Return what a log shows of pods of the workload of a lease while no one held it, with times.

    `refused` are those that could not be created then.
    """
    free = list(_list_free_times(history, now))
    found = [*_list_refused(refused), *_list_waiting(histories, history, free, now)]
    found += [*_list_kubelets(histories, history, now), *_list_acts_on_holders(histories, history, now)]
    again = find_status_writes(histories, history, now)
    found += [PodEvent(again.first, text)] if again is not None and (text := again.describe(now)) else []
    found += _list_idle(histories, history, now)
    found += _list_unasking(histories, history, free, now)
    return tuple(sorted(found))


def find_refused_pods(histories: ClusterHistory, history: LeaseHistory, now: int) -> Sequence[PodRequest]:
    """Return the creations of pods that were refused when no one held a lease, unless of other workloads."""
    free = list(_list_free_times(history, now))
    workloads = _list_workloads(history) if free else ()
    namespaces = {one for one, _ in workloads} or {history.namespace}
    refused = histories.pod_requests.list_refused(namespaces) if free else ()
    near = (one for one in refused if any(start - _BEFORE <= one.at <= end for start, end in free))
    return [one for one in near if _may_be_of(one, workloads)]


def _list_free_times(history: LeaseHistory, now: int) -> Iterator[tuple[int, int]]:
    """Yield from when to when no one held the lease, in microseconds since 1970: from the last renewal of a holder."""
    tenures = list(history.tenures)
    if tenures and tenures[0].began is Handover.CREATED and history.requests.refusals:
        yield history.requests.refusals[0].at, tenures[0].since
    for before, after in _pair(tenures):
        start = before.last_renewal if before.until is None else min(before.until, before.last_renewal)
        if after is not None and after.since - start > _SHORTEST and after.began is not Handover.PREFERRED:
            yield start, after.since
        elif after is None and (before.until is not None or _is_silent(history, before, now)):
            yield start, now


def _pair(tenures: Sequence[Tenure]) -> Iterator[tuple[Tenure, Tenure | None]]:
    """Yield each holder with the one that followed it, None for the latest."""
    yield from pairwise([*tenures, None]) if tenures else ()


def _is_silent(history: LeaseHistory, tenure: Tenure, now: int) -> bool:
    """Return whether a lease has expired, or may have: where only writes are seen, that its last writer went silent."""
    if not tenure.is_stand_in:
        return _has_expired(history, now)
    return now - tenure.last_renewal > max(DEFAULT_DURATION * SECOND, 2 * (history.renewals.usual or 0))


def _was_followed_late(tenure: Tenure, after: Tenure) -> bool:
    """Return whether another writer came after a while, of a log without objects: that does not show how."""
    return tenure.is_stand_in and after.is_stand_in and after.since - tenure.last_renewal >= DEFAULT_DURATION * SECOND


def _has_expired(history: LeaseHistory, now: int) -> bool:
    status = history.find_status(now)
    return status is not None and status.state is LeaseState.EXPIRED


def _list_processes(history: LeaseHistory) -> Sequence[Writer]:
    """Return the pods that held the lease or asked to write it, by their tokens."""
    own = (one for tenure in history.tenures for one in (tenure.processes.own, *tenure.processes.others) if one)
    known = dict.fromkeys((*own, *(one.writer.process for one in history.requests.refusals)))
    return [one for one in known if one.pod and not one.impersonator and find_namespace_of_writer("", one)]


def _list_workloads(history: LeaseHistory) -> Collection[tuple[str, str]]:
    """Return the namespaces and the workloads of the pods of a lease."""
    return {(find_namespace_of_writer("", one), name_workload(one.pod)) for one in _list_processes(history)}


def _list_pods(histories: ClusterHistory, history: LeaseHistory) -> Iterator[tuple[str, str]]:
    """Yield the namespace and the name of each pod of these workloads that a log shows."""
    for namespace, workload in sorted(_list_workloads(history)):
        names = histories.pod_requests.list_names(namespace)
        yield from ((namespace, name) for name in names if name_workload(name) == workload)


def _list_askers(history: LeaseHistory) -> Collection[str]:
    """Return the names of the pods that asked for a lease."""
    readers = (pod for pods in history.requests.accounts.values() for pod in pods)
    return {*readers, *(one.pod for one in _list_processes(history))}


def _list_refused(refused: Sequence[PodRequest]) -> Iterator[PodEvent]:
    """Yield that pods could not be created, once for each who asked for them."""
    groups: dict[tuple[str, Writer, int], list[PodRequest]] = {}
    for request in refused:
        groups.setdefault((request.namespace, request.writer.process, request.code), []).append(request)
    for (namespace, process, code), group in groups.items():
        first, last = group[0], group[-1]
        within = f" within {format_length(last.at - first.at)}" if last.at - first.at >= SECOND else ""
        least = "at least " if len(group) == MAX_REQUESTS else ""
        were = "failed" if code >= _FAILED else "was refused" if len(group) == 1 else "were refused"
        message = f", the last one: {last.message}" if last.message else ""
        requests = (
            f"{least}{format_count(len(group), 'request')} by {describe_writer(process)} "
            f"in namespace {format_name(namespace)}"
        )
        yield PodEvent(first.at, f"pods could not be created: {requests} {were} with {code}{within}{message}")


def _may_be_of(request: PodRequest, workloads: Collection[tuple[str, str]]) -> bool:
    """Return whether a pod that was refused may be of a workload: where a log shows its name, by that."""
    named = _NAMED.match(request.message)
    pod = request.name or (named[1] if named else "")
    return not pod or not workloads or (request.namespace, name_workload(pod)) in workloads


def _list_waiting(
    histories: ClusterHistory, history: LeaseHistory, free: Sequence[tuple[int, int]], now: int
) -> Iterator[PodEvent]:
    """Yield that the scheduler wrote the status of a pod that got no node, as far as the log shows.

    It did so again and again, or once, and nothing else was written of that pod for long.
    """
    known = {(find_namespace_of_writer("", one), one.pod) for one in _list_processes(history)}
    for namespace, pod in _list_pods(histories, history):
        if (namespace, pod) in known:
            continue
        about = [one for one in histories.pod_requests.list_about(namespace, pod) if one.at <= now]
        written = [one for one in about if one.act is PodAct.STATUS and _is_by_scheduler(one)]
        if not written or len(written) < len(about) or not any(start <= written[-1].at <= end for start, end in free):
            continue
        if len(written) >= _MIN_WRITES or now - written[-1].at >= _UNTIL_ASKING:
            times = f", {len(written)} times until {format_clock(written[-1].at, now)}" if len(written) > 1 else ""
            text = f"{_SCHEDULER} wrote the status of pod {format_name(pod)}{times}, and the log does not show that it"
            yield PodEvent(written[0].at, f"{text} got a node: it may be pending")


def _list_idle(histories: ClusterHistory, history: LeaseHistory, now: int) -> Iterator[PodEvent]:
    """Yield that pods of the workload of an expired lease got nodes, and never asked for it: they may elect otherwise.

    No one else asks for it, either, as far as the log shows.
    """
    status = history.find_status(now)
    expired = status.takeable_at if status is not None and status.state is LeaseState.EXPIRED else None
    if expired is None or not is_asked_for_no_more(histories, history, expired):
        return
    # Who asks for a lease that has expired writes it, so a log without reads shows that, too.
    if not history.has_reads_of_holders and now - expired < _UNTIL_ASKING:
        return
    if find_newer_lease(histories, history, status, now) is not None:
        return  # which says more
    asked, bound = _list_askers(history), []
    for namespace, name in _list_pods(histories, history):
        at = find_bound(histories, namespace, name)
        is_there = not histories.deleted_pods.list_deletions_of(namespace, name, "")
        if at is not None and at <= now - _UNTIL_ASKING and name not in asked and is_there:
            bound.append((at, name))
    if bound:
        named = ", ".join(format_name(name) for _, name in sorted(bound)[:_MAX_NAMED])
        more = f" and {len(bound) - _MAX_NAMED} more" if len(bound) > _MAX_NAMED else ""
        which, whose = ("pod", "that pod") if len(bound) == 1 else ("pods", "those pods")
        text = (
            f"{which} {named}{more} of its workload got a node, and the log has no request for the lease from {whose}: "
            "it may not run, or elect by another lease, or no longer, for example"
        )
        yield PodEvent(min(bound)[0], text)


def _list_unasking(
    histories: ClusterHistory, history: LeaseHistory, free: Sequence[tuple[int, int]], now: int
) -> Iterator[PodEvent]:
    """Yield which pods could have taken a lease while it was free, and never asked for it, once it was taken."""
    if not history.has_reads_of_holders:
        return
    asked, over = _list_askers(history), [(start, end) for start, end in free if end < now]
    silent = [(namespace, name) for namespace, name in _list_pods(histories, history) if name not in asked]
    for found in find_unasking_pods(histories, silent, over):
        yield PodEvent(found.bound, found.describe(now))


def _is_by_scheduler(request: PodRequest) -> bool:
    return request.writer.user == _SCHEDULER and not request.writer.impersonator


def _list_kubelets(histories: ClusterHistory, history: LeaseHistory, now: int) -> Iterator[PodEvent]:
    """Yield that a kubelet wrote the status of the pod of a holder that no longer renewed the lease."""
    for tenure, after in _pair(list(history.tenures)):
        is_lost = _is_silent(history, tenure, now)
        if after is not None:
            is_lost = after.began is Handover.EXPIRED or _was_followed_late(tenure, after)
        own = tenure.processes.own if is_lost and tenure.processes.is_process_known else None
        if own is None or histories.deleted_pods.list_deletions_by(own):
            continue
        until = now if after is None else after.since
        if found := find_kubelet_writes(histories, tenure, tenure.last_renewal, until):
            ending = describe_end_of_pod(found, tenure.last_renewal, now)
            text = _describe_kubelet(found, tenure, now)
            yield PodEvent(found[0].at, text, is_vague=not ending, ending=ending)


def _list_acts_on_holders(histories: ClusterHistory, history: LeaseHistory, now: int) -> Iterator[PodEvent]:
    """Yield who ran a program in the pod of a holder when that lost the lease, resized it, or failed to evict it."""
    late = [(one.start, one.end) for one in history.late_silences]
    for tenure, after in _pair(list(history.tenures)):
        place = _find_pod_that_held(history, tenure)
        if place is None:
            continue
        until = now if after is None else after.since
        is_lost = _is_silent(history, tenure, now) if after is None else after.began is Handover.EXPIRED
        silent = [*late, *([(tenure.last_renewal, until)] if is_lost else [])]
        silent += [(tenure.until, tenure.until)] if tenure.until is not None else []
        about = histories.pod_requests.list_about(*place)
        held = [one for one in about if tenure.since <= one.at <= min(until, now)]
        ran = [one for one in held if any(start - _UNTIL_SILENT <= one.at <= end for start, end in silent)]
        yield from _list_of_act(PodAct.RAN, ran, now)
        if any(_is_of_signal(one, _PAUSING) for one in ran):
            resumed = [one for one in about if until < one.at <= now and _is_of_signal(one, _RESUMING)]
            yield from _list_of_act(PodAct.RAN, resumed, now, held="had held")
        changed = [one for one in held if any(start - _UNTIL_STARVED <= one.at <= end for start, end in silent)]
        yield from _list_of_act(PodAct.RESIZED, changed, now)
        yield from _list_of_act(PodAct.IMAGE_SET, changed, now)
        yield from _list_of_node_controller(histories, place, held)
        yield from _list_of_act(PodAct.KEPT, held, now)


def _find_pod_that_held(history: LeaseHistory, tenure: Tenure) -> tuple[str, str] | None:
    """Return the namespace and the name of the pod of a holder: of its process, or the owner of its lease."""
    own = tenure.processes.own if tenure.processes.is_process_known else None
    if own is None:
        owner = find_owner_that_held(history, tenure)
        return (history.namespace, owner.name) if owner is not None and owner.name else None
    namespace = find_namespace_of_writer("", own)
    return (namespace, own.pod) if namespace and own.pod and not own.impersonator else None


def _list_of_node_controller(
    histories: ClusterHistory, place: tuple[str, str], held: Sequence[PodRequest]
) -> Iterator[PodEvent]:
    """Yield that the node controller wrote the status of a holder's pod, unless to evict it, which it does just after.

    Source: `MarkPodsNotReady` of kubernetes/kubernetes `pkg/controller/util/node`, and `AddPodDisruptionConditions`.
    """
    evicted = [one.at for one in histories.deleted_pods.list_deletions_of(*place, "") if one.writer.is_node_controller]
    for request in held:
        is_status = request.act is PodAct.STATUS and request.writer.is_node_controller
        if is_status and not any(0 <= at - request.at <= _UNTIL_EVICTED for at in evicted):
            pod = f"pod {format_name(request.name)}, which held it"
            text = f"{describe_writer(request.writer)} wrote the status of {pod}, as it does when a node is not ready"
            yield PodEvent(request.at, text)


def _is_of_signal(request: PodRequest, signals: Collection[str]) -> bool:
    return request.act is PodAct.RAN and _split_signal(request.message)[1] in signals


def _split_signal(message: str) -> tuple[str, str]:
    """Return the program and the signal of `kill -STOP`; "" for the latter if there is none."""
    program, separator, signal = message.rpartition(" -")
    return (program, signal) if separator else (message, "")


def _describe_program(request: PodRequest) -> str:
    """`kill -STOP (which pauses a process)`."""
    name, signal = _split_signal(request.message)
    program = format_name(name) if name else "a program"
    if not signal:
        return program
    if signal in _PAUSING:
        return f"{program} -{signal} (which pauses a process)"
    return f"{program} -{signal}{' (which lets a paused process go on)' if signal in _RESUMING else ''}"


def _list_of_act(act: PodAct, requests: Sequence[PodRequest], now: int, *, held: str = "held") -> Iterator[PodEvent]:
    """Yield what each did in the pod of a holder, or was to do to it, once for each, and for each program."""
    groups: dict[tuple[Writer, str], list[PodRequest]] = {}
    for request in requests:
        if request.act is act:
            what = request.message if act is PodAct.RAN else ""
            groups.setdefault((request.writer.process, what), []).append(request)
    for (process, _), group in groups.items():
        first, last = group[0], group[-1]
        again = f", {len(group)} times until {format_clock(last.at, now)}" if len(group) > 1 else ""
        pod = f"pod {format_name(first.name)}, which {held} it"
        text = f"{describe_writer(process)} ran {_describe_program(first)} in {pod}{again}"
        if act is PodAct.RESIZED:
            limits = f" (limits: {last.message})" if last.message else ""
            text = f"{describe_writer(process)} resized {pod}{again}{limits}"
        if act is PodAct.IMAGE_SET:
            text = f"{describe_writer(process)} set the image of {pod}{again}, to {format_name(last.message)}"
        if act is PodAct.KEPT:
            text = f"{describe_writer(process)} was refused the eviction of {pod}, with {last.code}{again}"
        yield PodEvent(first.at, text)


def _describe_kubelet(found: Sequence[PodRequest], tenure: Tenure, now: int) -> str:
    first, last = found[0], found[-1]
    again = f", {len(found)} times until {format_clock(last.at, now)}" if len(found) > 1 else ""
    whose = "as that of its writer is" if tenure.is_stand_in else "as the holder's is"
    return (
        f"the kubelet of node {name_node(first)} wrote the status of a pod named {format_name(first.name)}, "
        f"{whose}{again}: {describe_kubelet_writes(found, tenure.last_renewal, now)}"
    )
