"""The API server that chooses the holders of coordinated leases: it changes while no one may be chosen.

API servers hold an election of their own for that, of a lease with this name. Source: kubernetes
`pkg/controlplane/controller/leaderelection`.
"""

from itertools import pairwise
from typing import Final

from msgspec import Struct

from webhook.admission.rules.change import KUBE_SYSTEM
from webhook.analysis.claims.words import format_clock, format_name
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover, find_latest_pair
from webhook.analysis.history.lease import LeaseHistory
from webhook.kubernetes.times import SECOND

_NAME: Final = "leader-election-controller"


class ChangeOfChooser(Struct, frozen=True):
    """An API server that was to choose, fell silent at `last`, and was followed at `at`, in microseconds since 1970."""

    before: str
    after: str
    last: int
    at: int

    def describe(self, now: int) -> str:
        """Say who followed whom."""
        return (
            f"another API server was to choose from then on: {format_name(self.after)} took {KUBE_SYSTEM}/{_NAME}, "
            f"which {format_name(self.before)} had last renewed at {format_clock(self.last, now)}"
        )


def find_change_of_chooser(histories: ClusterHistory, history: LeaseHistory) -> ChangeOfChooser | None:
    """Return how the API server that chooses changed while a lease had no holder that renewed it; None if it did not.

    By clocks that differ, the order is not known.
    """
    chooser = histories.leases.get((KUBE_SYSTEM, _NAME))
    latest = find_latest_pair(history.tenures)
    if chooser is None or chooser is history or latest is None:
        return None
    previous, after = latest
    if not after.is_chosen:
        return None
    for one, other in pairwise(chooser.tenures):
        is_meanwhile = previous.last_renewal < other.since <= after.since and other.began is Handover.EXPIRED
        if is_meanwhile and histories.bounds.skew <= SECOND:
            return ChangeOfChooser(one.holder, other.holder, one.last_renewal, other.since)
    return None
