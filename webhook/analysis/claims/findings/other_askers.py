"""Pods of other workloads that ask for a lease which one holds: two applications may use one lease."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.words import describe_user, describe_writer
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.request import UserInfo
from webhook.kubernetes.times import SECOND

_MIN_READS: Final = 5
"""Who reads a lease less often need not ask for it."""


class OtherAskers(Struct, frozen=True):
    """Pods of the namespace of a lease, under other accounts than that of its holder `own`, which read it until now."""

    own: Writer
    pods: Sequence[Writer]

    def describe(self) -> str:
        """`shop/backup from pod backup-0 reads it again and again; its holder is shop/db`."""
        last, more = describe_writer(self.pods[-1]), len(self.pods) - 1
        also = f", and {more} more," if more else ""
        read = "read" if more else "reads"
        return f"{last}{also} {read} it again and again; its holder is {describe_user(self.own)}"

    def advise(self) -> str:
        """Return what to do about it, as a sentence."""
        both = f"{describe_user(self.pods[-1])} and {describe_user(self.own)}"
        return (
            f"If {both} are two applications that elect, only one of them leads: "
            "give each a lease name (election ID) of its own. To see what runs there:"
        )


def find_other_askers(account: Account) -> OtherAskers | None:
    """Return who else asks for a lease; None if no other workload of its namespace is known to, or has held it."""
    history, tenure = account.history, account.tenure
    own = tenure.processes.own if tenure is not None and tenure.processes.is_process_known else None
    if tenure is None or own is None or UserInfo(own.user).service_account is None:
        return None
    held_it = {one.processes.own.user for one in history.tenures if one.processes.own is not None}
    since = account.now - (tenure.duration or 0) * SECOND
    pods = [
        Writer(user, pod=pod)
        for user, names in history.requests.accounts.items()
        for pod in sorted(names)
        if user not in held_it
        and user.startswith(f"system:serviceaccount:{history.namespace}:")
        and _has_read_after(account, pod, since)
    ]
    return OtherAskers(own, pods) if pods else None


def _has_read_after(account: Account, pod: str, since: int) -> bool:
    """Return whether a pod has read a lease again and again, and after an instant."""
    number, at = account.history.requests.readers.get(pod, (0, 0))
    return number >= _MIN_READS and at > since
