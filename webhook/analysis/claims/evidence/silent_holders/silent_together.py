"""Whether all processes that asked for a lease fell silent at once, while an API server went on answering others.

What stopped them is then something that only they share. An audit log does not show what: no request arrives. So it is
an observation, with what is possible, and never a cause.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from msgspec import Struct

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.heartbeats import is_of_api_server
from webhook.analysis.history.audit_log.heard import KEPT
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseState, LeaseStatus
from webhook.analysis.inputs.items import InputKind, Writer
from webhook.kubernetes.times import SECOND

_PATIENCE: Final = 1.5
"""For how many times its longest interval a process may have been about to ask again."""
_MISSED: Final = 3
"""A process is silent once it has missed so many requests."""


class SilentTogether(Struct, frozen=True):
    """All processes that asked for a lease, by their last requests, from the first to the last of these.

    From then `until` the log has no request for it, and `shown_at` a lease of others was renewed.
    """

    processes: tuple[Writer, ...]
    first: int
    last: int
    until: int
    shown_at: int
    is_only_own: bool
    """Nothing but the leases of API servers was renewed, which these write themselves."""
    node: str = ""
    """The node of all of them, as their tokens say, if its own lease was not renewed then either."""


def find_silent_together(
    histories: ClusterHistory, history: LeaseHistory, status: LeaseStatus | None
) -> SilentTogether | None:
    """Return which processes fell silent together; None if they did not, or the input does not show it."""
    if status is None or status.state is not LeaseState.EXPIRED or not _is_whole(histories, history):
        return None
    asking = _find_asking(history)
    own = history.latest_tenure.processes.own if history.latest_tenure else None
    if len(asking) < 2 or own is None or not any(one.is_same(own) for one in asking):
        return None
    lasts = [times[-1] for times in asking.values()]
    first, last, until = min(lasts), max(lasts), histories.bounds.logged_until
    # Someone else may have asked later, even if not again and again.
    is_over = any(times[-1] > last for times in map(sorted, history.requests.heard.times.values()))
    is_whole = not histories.bounds.has_hole(first, until)
    is_known = is_whole and not any(histories.deleted_pods.list_deletions_by(one) for one in asking)
    if is_over or not is_known or not all(_has_fallen_silent(times, last, until) for times in asking.values()):
        return None
    shown = _find_shown(histories, history, tuple(asking), last)
    if not shown:
        return None
    others = [at for key, at in shown.items() if not is_of_api_server(*key)]
    return SilentTogether(
        tuple(asking),
        first,
        last,
        until,
        max(others or shown.values()),
        is_only_own=not others,
        node=_find_silent_node(histories, history, asking, last),
    )


def _find_silent_node(histories: ClusterHistory, history: LeaseHistory, processes: Iterable[Writer], last: int) -> str:
    """Return the node of all of these processes, if its kubelet fell silent by then, too; "" if it did not."""
    nodes = {history.requests.heard.nodes.get(one, "") for one in processes}
    node = nodes.pop() if len(nodes) == 1 else ""
    lease = histories.leases.get((NODE_LEASES, node)) if node else None
    longest, renewed = (lease.renewals.longest_known, lease.renewals.last) if lease else (None, None)
    if longest is None or renewed is None:
        return ""
    return node if histories.bounds.logged_until - renewed > longest and renewed < last + SECOND else ""


def _is_whole(histories: ClusterHistory, history: LeaseHistory) -> bool:
    """Return whether the log has every request for a lease, of one whose holders others follow."""
    requests, is_log = history.requests, history.kind is InputKind.AUDIT_LOG
    is_shown = is_log and history.has_reads_of_holders and not requests.is_watched
    return is_shown and not (history.is_heartbeat or history.is_partial or histories.lacks_requests(history))


def _find_asking(history: LeaseHistory) -> dict[Writer, list[int]]:
    """Return who asked again and again until shortly before the last request of all of them, and when.

    Who was heard last more than two durations before that had ended before.
    """
    kept = {who: sorted(times) for who, times in history.requests.heard.times.items()}
    asking = {who: times for who, times in kept.items() if len(times) == KEPT}
    last = max((times[-1] for times in asking.values()), default=0)
    recent = last - 2 * (history.duration or 0) * SECOND
    if history.requests.heard.forgotten_until >= recent:
        return {}
    return {who: times for who, times in asking.items() if times[-1] >= recent}


def _has_fallen_silent(times: list[int], last: int, until: int) -> bool:
    """Return whether a process fell silent at about the time of the `last` request of all, and stayed so."""
    longest = max(after - one for one, after in pairwise(times))
    return last - times[-1] <= _PATIENCE * longest and until - times[-1] > _MISSED * longest


def _find_shown(
    histories: ClusterHistory, history: LeaseHistory, processes: Iterable[Writer], last: int
) -> dict[tuple[str, str], int]:
    """Return when the leases of others were renewed last that were renewed later than this one has lasted."""
    since, found = last + (history.duration or 0) * SECOND, {}
    for key, other in histories.leases.items():
        at, own = other.renewals.last or 0, other.latest_tenure.processes.own if other.latest_tenure else None
        is_logged = other.kind is InputKind.AUDIT_LOG and own is not None
        if other is not history and is_logged and at > since and not any(one.is_same(own) for one in processes):
            found[key] = at
    return found
