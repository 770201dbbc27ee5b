"""Advice about a lease that is well now, and of which only the clocks of its writers date what happened before."""

from typing import Final

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import (
    advise_on_pod_of_holder,
    make_command_for_node,
    make_command_for_nodes_of_pods,
)
from webhook.analysis.claims.words import format_name
from webhook.analysis.history.holders.claimed_gap import ClaimedGap, find_claimed_gap
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.renewals import DEFAULT_DURATION
from webhook.analysis.named_pods import guess_named_pod
from webhook.kubernetes.times import SECOND, format_length

_WELL: Final = "It is held and renewed."


def advise_on_claimed_times(history: LeaseHistory) -> Advice | None:
    """Return where to look if renewTime went back, or if no one renewed the lease for long before it was taken last.

    None if neither is so. Clocks of two holders may differ, so what they say is said to be theirs.
    """
    latest = [*history.tenures][-2:]
    if (odd := next((one for one in reversed(latest) if _is_clock_off(one)), None)) is not None:
        return _advise_on_clock(history, odd)
    before, after = [None, *latest][-2:]
    gap = None if after is None else find_claimed_gap(before, after)
    if gap is None or before is None or after is None:
        return None
    if gap.is_free:
        return _advise_on_free_time(history, after, gap)
    return _advise_on_silence(history, before, after, gap) if gap.outlasts_lease else None


def _is_clock_off(tenure: Tenure) -> bool:
    return tenure.set_back is not None and not tenure.set_back.is_over


def _advise_on_clock(history: LeaseHistory, tenure: Tenure) -> Advice:
    sentence = (
        f"{_WELL} Check the clock of the node of {format_name(tenure.holder)}, in whose name renewTime went back:"
    )
    if history.namespace == NODE_LEASES:
        return Advice(sentence, make_command_for_node(history.name))
    return Advice(sentence, make_command_for_nodes_of_pods(history.namespace))


def _advise_on_free_time(history: LeaseHistory, after: Tenure, gap: ClaimedGap) -> Advice | None:
    """Return where to look for why a free lease was not taken for longer than it lasts; None if it was taken sooner."""
    if gap.length < (after.duration or DEFAULT_DURATION) * SECOND:
        return None
    free = f"By the clocks of its writers no one held it for {format_length(gap.length)} before"
    sentence = f"{_WELL} {free}, and anyone could have taken it. The pod of {format_name(after.holder)} may show why:"
    return advise_on_pod_of_holder(sentence, history.namespace, after.holder)


def _advise_on_silence(history: LeaseHistory, before: Tenure, after: Tenure, gap: ClaimedGap) -> Advice:
    silent = format_length(gap.length)
    pod = guess_named_pod(before.holder)
    sentence = (
        f"{_WELL} By the clocks of both holders, the one before had not renewed it for {silent} when it was taken. "
        "See whether its pod ran, or restarted:"
    )
    if pod and pod == guess_named_pod(after.holder) and before.holder != after.holder:
        sentence = (
            f"{_WELL} By the clocks of its holders, it was not renewed for {silent} before it was taken last. "
            f"Both names begin with {format_name(pod)}, as when a container starts again. See its last state:"
        )
    return advise_on_pod_of_holder(sentence, history.namespace, before.holder)
