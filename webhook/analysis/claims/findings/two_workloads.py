"""A hint that two programs use one lease, where no log shows whose it is: the names of its holders, and their rhythms.

Clients choose these names, and a new version of a program may have another name and other settings, so it proves
nothing.
"""

from msgspec import Struct

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import make_command_for_nodes_of_pods
from webhook.analysis.claims.evidence.pods.workload_names import find_deployment
from webhook.analysis.claims.words import format_name
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.renewals import FormerRhythm
from webhook.analysis.named_pods import find_named_pod
from webhook.kubernetes.times import SECOND, format_length


class TwoWorkloads(Struct, frozen=True):
    """The Deployments as whose pods the previous holder and the present one are named, and how often they renewed."""

    names: tuple[str, str]
    intervals: tuple[int, int]

    def advise(self, namespace: str) -> Advice:
        """Return what seems to be so, what to do if it is, and how to see what runs."""
        before, after = map(format_name, self.names)
        slow, fast = map(format_length, self.intervals)
        sentence = (
            f"The holders are named as pods of two Deployments, {before} and {after}, and renew every {slow} and "
            f"{fast}: two programs may share this lease. If both run, give each a lease name (election ID) of its own. "
            "To see what runs there:"
        )
        return Advice(sentence, make_command_for_nodes_of_pods(namespace))


def find_changed_rhythm(history: LeaseHistory) -> FormerRhythm | None:
    """Return the rhythm of the holder before the present one, if that renews in a clearly different one; else None."""
    renewals, tenures = history.renewals, history.tenures
    own = renewals.usual_of_holder
    if own is None or len(tenures) < 2:
        return None
    found = next((one for one in reversed(renewals.former) if history.find_tenure_of_silence(one) is tenures[-2]), None)
    return found if found is not None and _differ(own, found.usual) else None


def _differ(one: int, other: int) -> bool:
    """Return whether two rhythms clearly differ: by stamps of whole seconds, one rhythm may seem to be two."""
    are_whole = one % SECOND == other % SECOND == 0
    return 2 * max(one, other) >= 3 * min(one, other) and not (are_whole and abs(one - other) <= SECOND)


def find_two_workloads(account: Account) -> TwoWorkloads | None:
    """Return which Deployments seem to use a lease in turn; None if they do not, or if a log shows who does."""
    history = account.history
    former, own = find_changed_rhythm(history), history.renewals.usual_of_holder
    if former is None or own is None or history.requests.is_logged or account.is_heartbeat:
        return None
    before, after = (find_deployment(find_named_pod(one.holder)) for one in list(history.tenures)[-2:])
    is_known = bool(before and after) and account.tenure is history.tenures[-1]
    return TwoWorkloads((before, after), (former.usual, own)) if is_known and before != after else None
