"""Pods whose kubelet writes their status again and again while they hold a lease: as of a leader that restarts.

A kubelet writes a status when it changes, and of a pod that runs and is ready it does not for hours. Whether a
container ended, a log shows only if it has the bodies of requests.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.evidence.contenders.askers import join_names
from webhook.analysis.claims.evidence.pods.pod_statuses import describe_ends, find_kubelet_writes
from webhook.analysis.claims.evidence.runs import split_runs
from webhook.analysis.claims.words import format_clock, format_name
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import PodRequest
from webhook.kubernetes.times import MINUTE

_MIN_WRITES: Final = 3
"""A pod that starts, and one that fails once, has fewer."""
_NEAR: Final = 6 * MINUTE
"""A kubelet starts what ended again after 5 minutes at the latest, and writes that."""


class StatusWrites(Struct, frozen=True):
    """Writes of kubelets to the status of pods that held a lease then, one after another."""

    writes: tuple[PodRequest, ...]
    since: int
    """When the first of these pods began to hold it: what ended before is no reason for these writes."""

    @property
    def first(self) -> int:
        """When the first of them was answered, in microseconds since 1970."""
        return self.writes[0].at

    def describe(self, now: int) -> str:
        """Return it as a sentence without its end; "" if the log shows that no container ended."""
        shown = [one for one in self.writes if one.status is not None]
        ends = describe_ends(shown, max(self.first - _NEAR, self.since), now)
        if shown and not ends:
            return ""
        why = ends or "as when containers end and start again, or readiness changes; the log does not show which"
        pods = list(dict.fromkeys(format_name(one.name) for one in self.writes))
        which = (
            f"pod {pods[0]} while the lease named it"
            if len(pods) == 1
            else f"pods {join_names(pods)} while it named each"
        )
        until = format_clock(self.writes[-1].at, now)
        return f"kubelets wrote the status of {which}, {len(self.writes)} times until {until}: {why}"


def find_status_writes(histories: ClusterHistory, history: LeaseHistory, now: int) -> StatusWrites | None:
    """Return the latest ones in a row; None if there are few."""
    found = sorted(_list_writes(histories, history, now), key=lambda one: one[0].at)
    runs = split_runs(found, apart=_NEAR, time=lambda one: one[0].at)
    latest = runs[-1] if runs else ()
    if len(latest) < _MIN_WRITES:
        return None
    return StatusWrites(tuple(one for one, _ in latest), min(since for _, since in latest))


def _list_writes(histories: ClusterHistory, history: LeaseHistory, now: int) -> Iterator[tuple[PodRequest, int]]:
    """Yield the writes to the status of each holder's pod, and since when it held it, unless somebody deleted that."""
    tenures = list(history.tenures)
    for tenure, after in pairwise([*tenures, None]) if tenures else ():
        assert tenure is not None
        if not _is_deleted(histories, tenure):
            is_lost = after is not None and after.began is Handover.EXPIRED
            until = after.since if after is not None and is_lost else tenure.until
            end = now if until is None else min(until, now)
            yield from ((one, tenure.since) for one in find_kubelet_writes(histories, tenure, tenure.since, end))


def _is_deleted(histories: ClusterHistory, tenure: Tenure) -> bool:
    own = tenure.processes.own
    return own is not None and bool(histories.deleted_pods.list_deletions_by(own))
