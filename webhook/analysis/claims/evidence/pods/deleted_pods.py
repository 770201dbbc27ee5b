"""Whether a holder stopped because its pod was deleted, by the requests that a log shows."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.evidence.silent_holders.silence_evidence import SilenceEvidence
from webhook.analysis.claims.words import (
    UNLESS_DRY_RUN,
    describe_by_writer,
    describe_grace,
    format_clock,
    name_deletion,
)
from webhook.analysis.history.audit_log.deleted_pods import is_by_force, is_by_kubelet
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import PodDeletion, Writer
from webhook.kubernetes.times import SECOND, format_length

GRACE: Final = 60 * SECOND
"""For how long a process may go on after its pod was deleted: by default it is killed after 30 s."""
TOKEN_GRACE: Final = 10 * GRACE
"""For how long the token of a pod that was deleted, and that does not end, may be accepted: pods may have long to end.
"""
_INTERVAL: Final = 2 * SECOND
"""How often a holder renews by the default of client-go, where the input does not show it."""
_AT_ONCE: Final = SECOND
"""How long after the last renewal a deletion may come that surely ended the process: later, it may have stopped before.
"""


class DeletedPod(Struct, frozen=True):
    """How the pod of a holder was deleted: by the requests that asked for it, and that of its kubelet.

    A kubelet only confirms that the containers of a pod which somebody had deleted have ended. `is_first`: it was
    deleted before its process can have stopped by itself, and not after; `is_why`: that was surely no dry run, either.
    `silent_for`: for how long it had not renewed by then, in microseconds; None if clocks differ. `ended_at`: when its
    kubelet first confirmed that.
    """

    asked: Sequence[PodDeletion]
    confirmed: PodDeletion | None
    is_first: bool
    is_why: bool
    silent_for: int | None
    ended_at: int | None


def find_pod_deletion(evidence: SilenceEvidence, within: int = GRACE) -> DeletedPod | None:
    """Return the deletion of a holder's pod after which it renewed no more; None if it is not known to be why.

    Who did not renew for longer than usual had stopped before: its pod may have been deleted because of that. `within`:
    for how long it may have gone on after the deletion, in microseconds.
    """
    tenure = evidence.tenure
    own = _find_own(tenure) if tenure is not None else None
    if tenure is None or own is None:
        return None
    # The next holder may have another rhythm.
    usual = max(evidence.history.renewals.usual or _INTERVAL, tenure.processes.find_longest_pause(evidence.start))
    start, interval = evidence.start, min(usual, GRACE)
    skew = evidence.histories.bounds.skew
    known = evidence.histories.deleted_pods.list_deletions_by(own)
    its = [one for one in known if _is_of_this_pod(one, own, evidence.history, tenure, start, skew=skew)]
    near = [one for one in its if start - within - skew <= one.at <= start + interval + skew]
    heard_until = max([start, *(one.at for one in near)]) + skew + 2 * interval
    if not near or _is_heard_after(evidence.history, tenure, own, heard_until):
        return None
    asked, confirmed = [one for one in near if not is_by_kubelet(one)], None
    if not asked:
        confirmed = near[0]
        asked = [one for one in its if one.at <= confirmed.at and not is_by_kubelet(one)][-1:]
    early = [one for one in asked if one.at + skew <= start + _AT_ONCE]
    is_why = any(one.is_surely_not_dry_run for one in early)
    silent_for = None if skew or not asked else max(0, asked[0].at - start)
    shown = [*asked[:1], *asked[1:][-1:]]
    ended_at = next((one.at for one in its if is_by_kubelet(one) and one.at >= near[0].at), None)
    is_first = bool(early)
    return DeletedPod(shown, confirmed, is_first=is_first, is_why=is_why, silent_for=silent_for, ended_at=ended_at)


def describe_first_request(pod: DeletedPod, now: int) -> str:
    """`deleted at 12:00:02Z by alice`: of several requests that asked for it, the first one."""
    return _describe_request(pod.asked[0], now)


def explain_refused_token(pod: DeletedPod) -> str:
    """Say from when on the token of a deleted pod is not accepted; one that was not deleted by force ends first.

    Source: kubernetes `pkg/serviceaccount/claims.go`, `invalidIfDeletedBefore`.
    """
    if any(is_by_force(one) and one.is_surely_not_dry_run for one in pod.asked):
        return "the token of a pod that is gone is not accepted"
    return "the token of a pod is not accepted once it is gone, or from 60 s after its deletionTimestamp on"


def describe_deletion(pod: DeletedPod, now: int) -> str:
    """`deleted at 12:00:02Z by kube-system/replicaset-controller`, with what is not known of it."""
    confirmed = f"as its kubelet confirmed at {format_clock(pod.confirmed.at, now)}" if pod.confirmed else ""
    if not pod.asked:
        return f"deleted, {confirmed}; who asked for that is not shown, and its process may have stopped before"
    text = " and ".join(_describe_request(one, now) for one in pod.asked)
    after = "" if pod.is_first else "; its process may have stopped before"
    if after and pod.silent_for is not None:
        which = ", the first time" if len(pod.asked) > 1 else ","
        after = f"{which} {format_length(pod.silent_for)} after its last renewal"
    return f"{text}{after}" if not confirmed else f"{text}{after}, {confirmed}"


def _describe_request(deletion: PodDeletion, now: int) -> str:
    doubt = "" if deletion.is_surely_not_dry_run else f" ({UNLESS_DRY_RUN})"
    by = describe_by_writer(deletion.writer)
    return f"{name_deletion(deletion)} at {format_clock(deletion.at, now)}{by}{describe_grace(deletion)}{doubt}"


def _find_own(tenure: Tenure) -> Writer | None:
    """Return the process of a holder if it is known, also as the one that renewed last, and no other one renewed."""
    processes = tenure.processes
    is_known = processes.is_process_known and processes.is_last_known and not processes.others
    return processes.own if is_known and not tenure.is_ambiguous else None


def _is_of_this_pod(
    deletion: PodDeletion, own: Writer, history: LeaseHistory, tenure: Tenure, start: int, *, skew: int
) -> bool:
    """Return whether the pod of a holder was deleted, and not one before it that had its name.

    Without a uid in the deletion, its pod is the one that was heard by then. Without one in its requests, pods of a
    name look alike, and the next one may hold the lease as a text that is that name alone: then the deleted one is the
    holder's if none renewed after it. Who adds something to that name, as client-go's electors do, has another text.
    """
    if deletion.uid and own.uid:
        return True
    is_one_pod = bool(own.uid) or tenure.holder != own.pod
    first = find_first_request(tenure, own, start) if is_one_pod else start
    return deletion.at - skew >= first and not has_heard_namesake(history, own, first, deletion.at)


def has_heard_namesake(history: LeaseHistory, own: Writer, since: int, until: int) -> bool:
    """Return whether another pod of the name of a process first asked for the lease in a time: it replaced that pod.

    An API server has one pod of a name at a time, so what was deleted under it after that is most likely the other one.
    """
    if not (own.uid and own.pod):
        return False
    heard = history.requests.heard.first.items()
    return any(since < at <= until for who, at in heard if _is_namesake(who, own))


def _is_namesake(who: Writer, own: Writer) -> bool:
    is_named_so = (who.user, who.pod, who.impersonator) == (own.user, own.pod, own.impersonator)
    return is_named_so and who.uid not in {"", own.uid}


def find_first_request(tenure: Tenure, own: Writer, start: int) -> int:
    """Return when a process is known to have run: who held the lease before the input begins may be another one."""
    if tenure.began is not Handover.SEEN and own.is_same(tenure.processes.taken_by):
        return tenure.since
    return next(iter(tenure.processes.requests), start)


def _is_heard_after(history: LeaseHistory, tenure: Tenure, own: Writer, at: int) -> bool:
    """Return whether a log shows a request of its pod for the lease after an instant, under any name."""
    processes = tenure.processes
    renewed = (one.last_renewal for one in history.tenures if own.is_same(one.processes.own))
    return any(one > at for one in (*processes.requests, *processes.requests_after_loss, *renewed))
