"""What the kubelet of a holder wrote as the status of its pod: that it failed, or that a container of it ended.

A log that has the bodies of requests shows it. It stands beside the cause: a container that ended may be another one
than that of the holder.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from webhook.analysis.claims.words import format_clock, format_name
from webhook.analysis.history.audit_log.deleted_pods import is_kubelet
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.inputs.items import ContainerEnd, PodAct, PodRequest
from webhook.kubernetes.request import NODE_USER, UserInfo
from webhook.kubernetes.times import SECOND
from webhook.text.quoting import quote

_FAILED: Final = "Failed"
"""The phase of a pod of which all containers have ended, such as one that its kubelet evicted."""
_ROUNDING: Final = 2 * SECOND
"""The time of an end is in whole seconds, and of another clock than that of the last renewal."""
_MAX_ENDS: Final = 3
_NEAR: Final = 5 * SECOND
"""How far from a last renewal, and from the next request, the status of a container that restarts is written."""


def find_kubelet_writes(histories: ClusterHistory, tenure: Tenure, start: int, end: int) -> Sequence[PodRequest]:
    """Return the writes of kubelets to the status of a holder's pod after an instant, until another one.

    Where neither says its uid, it may be another pod of that name.
    """
    own = tenure.processes.own if tenure.processes.is_process_known else None
    account = UserInfo(own.user).service_account if own is not None else None
    if own is None or account is None or not own.pod or own.impersonator:
        return []
    about = histories.pod_requests.list_about(account[0], own.pod)
    return [
        one
        for one in about
        if one.act is PodAct.STATUS
        and is_kubelet(one.writer)
        and start < one.at <= end
        and not (one.status is not None and one.status.uid and own.uid and one.status.uid != own.uid)
    ]


def find_status_writes_of_restart(histories: ClusterHistory, tenure: Tenure) -> tuple[int, ...]:
    """Return when a kubelet wrote the status of a pod just after it had last renewed, and as it asked again.

    A kubelet writes it when a container ends, and when it runs again, among other changes; () unless both are shown.
    """
    last, heard = tenure.last_of_identity, tenure.processes.list_requests_after(tenure.last_of_identity)
    if not heard:
        return ()
    times = [one.at for one in find_kubelet_writes(histories, tenure, last - _ROUNDING, heard[0] + _ROUNDING)]
    first = (one for one in times if one <= last + _NEAR)
    again = (one for one in reversed(times) if one >= heard[0] - _NEAR)
    found = next(first, None), next(again, None)
    return () if found[0] is None or found[1] is None or found[0] == found[1] else (found[0], found[1])


def describe_kubelet_writes(found: Sequence[PodRequest], start: int, now: int) -> str:
    """Say what kubelets wrote of a holder's pod since `start`, its last renewal, or what is not known of it."""
    if ending := _join(_list_ended(found, start, now)):
        return ending
    if all(one.status is not None for one in found):
        return "the kubelet was alive then, and wrote of no container that had ended since the last renewal"
    return "the kubelet was alive then; a container may have ended or restarted, which the log does not show"


def describe_end_of_pod(found: Sequence[PodRequest], start: int, now: int) -> str:
    """Say, as a clause, which kubelet wrote that a holder's pod failed or a container ended; "" if none did."""
    first = next((one for one in found if any(_list_ended([one], start, now))), None)
    if first is None:
        return ""
    ending = _join(_list_ended(found, start, now))
    pod = "its pod" if first.status is not None and first.status.uid else "the pod of its name"
    return f"the kubelet of node {name_node(first)} wrote at {format_clock(first.at, now)} of {pod}: {ending}"


def describe_end_of_holder(histories: ClusterHistory, tenure: Tenure, now: int) -> str:
    """Say, as a clause, what a kubelet wrote of the end of a holder's pod after its last write; "" if nothing."""
    start = tenure.last_of_identity
    found = find_kubelet_writes(histories, tenure, start, now)
    # A time of the second of that write may be before it.
    return describe_end_of_pod(found, start + _ROUNDING, now)


def describe_ends(found: Sequence[PodRequest], start: int, now: int) -> str:
    """Say which containers ended since an instant, the latest, as kubelets wrote; "" if none did.

    An end within the second of the instant counts, since its time is in whole seconds.
    """
    return _join(_list_ended(found, start + _ROUNDING - SECOND, now))


def name_node(request: PodRequest) -> str:
    """Return the node of the kubelet that made a request."""
    return format_name(request.writer.user.removeprefix(NODE_USER))


def _list_ended(found: Sequence[PodRequest], start: int, now: int) -> Iterator[str]:
    """Yield that a pod failed, and which containers of it ended since its last renewal, each once."""
    statuses = [one.status for one in found if one.status is not None]
    if failed := next((one for one in statuses if one.phase == _FAILED), None):
        reason = f", reason {format_name(failed.reason)}" if failed.reason else ""
        yield f"phase {_FAILED}{reason}{f', {quote(failed.message)}' if failed.message else ''}"
    ends = (one for status in statuses for one in status.ended)
    since = dict.fromkeys(one for one in ends if one.at is None or one.at >= start - _ROUNDING)
    yield from (_describe_end(one, now) for one in list(since)[-_MAX_ENDS:])


def _join(parts: Iterable[str]) -> str:
    return ", and ".join(parts)


def _describe_end(end: ContainerEnd, now: int) -> str:
    code = "" if end.exit_code is None else f"exit code {end.exit_code}"
    why = ", ".join(one for one in (format_name(end.reason) if end.reason else "", code) if one)
    at = "" if end.at is None else f" at {format_clock(end.at, now)}"
    return f"container {format_name(end.container)} ended{f' ({why})' if why else ''}{at}"
