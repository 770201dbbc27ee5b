"""Pods that wait for a lease, by their accounts: also those of accounts that held it before its present holder's.

In: the reads that an audit log shows. Out: who still asks. Who held a lease and waits for another account's pod is as
likely another application as a replica.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.evidence.contenders.askers import join_names
from webhook.analysis.claims.words import describe_user, format_name
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.times import SECOND

_MIN_READS: Final = 3


class WaitingAccount(Struct, frozen=True):
    """Pods of one account that wait for a lease."""

    user: str
    pods: Sequence[str]

    def describe(self) -> str:
        """`pods db-0 and db-1 of shop/db, which held it before, read it again and again`."""
        pods, read = ("pod", "reads") if len(self.pods) == 1 else ("pods", "read")
        names = join_names([format_name(one) for one in self.pods])
        return f"{pods} {names} of {describe_user(Writer(self.user))}, which held it before, {read} it again and again"


def find_waiting_accounts(account: Account) -> Mapping[str, Sequence[str]]:
    """Return which other pods read the lease again and again while its holder has it, by user: its own one is last."""
    tenure, requests = account.tenure, account.history.requests
    own = tenure.processes.own if tenure is not None else None
    if tenure is None or own is None or not own.pod:
        return {}
    # Whose LeaseCandidate is refused is not in the election, whatever it reads.
    refused = {one.writer.pod for one in account.election.refused_candidates}
    held_it = dict.fromkeys(one.processes.own.user for one in account.history.tenures if one.processes.own is not None)
    users = [*(one for one in held_it if one != own.user), own.user]
    lasts = (tenure.duration or 0) * SECOND
    waiting = [
        reader
        for reader, (number, at) in requests.readers.items()
        if reader not in refused and reader not in tenure.processes.pods
        if number >= _MIN_READS and account.now - at < lasts and at >= tenure.since
    ]
    found = {user: [one for one in waiting if one in requests.accounts.get(user, ())] for user in users}
    return {user: pods for user, pods in found.items() if pods}


def find_waiting_former_accounts(account: Account) -> Iterator[WaitingAccount]:
    """Yield whose pods wait that held the lease before, under another account than the present holder's."""
    own = account.tenure.processes.own if account.tenure is not None else None
    for user, pods in find_waiting_accounts(account).items():
        runs = ((pod, account.history.requests.read_runs.find_of_pod(pod)) for pod in pods)
        still = [pod for pod, run in runs if run is not None and run.number >= _MIN_READS]
        if own is not None and user != own.user and still:
            yield WaitingAccount(user, still)
