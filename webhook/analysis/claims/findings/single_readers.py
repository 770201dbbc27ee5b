"""Pods of the holder's account that read a lease once while it was held, and asked no more: it was not free for them.

So do the later jobs of a CronJob that leave the work to the one that holds a lock; whether that works is another
question.
"""

from typing import Final

from msgspec import Struct

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.words import describe_user, format_clock, format_name
from webhook.analysis.history.audit_log.read_runs import MAX_APART
from webhook.analysis.inputs.items import Writer

_MIN_PODS: Final = 2


class SingleReaders(Struct, frozen=True):
    """Pods under an account, in order of their reads; `first` and `last` are in microseconds since 1970."""

    own: Writer
    pods: tuple[str, ...]
    first: int
    last: int

    def describe(self, now: int) -> str:
        """`3 other pods of shop/report read it once each, the last, report-x, at 12:00:42Z: it was held`."""
        pods = f"{len(self.pods)} other pods of {describe_user(self.own)}"
        last = f"the last, {format_name(self.pods[-1])}, at {format_clock(self.last, now)}"
        return f"{pods} read it once each, {last}: it was held"


def find_single_readers(account: Account) -> SingleReaders | None:
    """Return who read the lease once under its present holder; None of a single pod, and of one that may ask again."""
    history, tenure = account.history, account.tenure
    own = tenure.processes.own if tenure is not None and tenure.processes.is_process_known else None
    if tenure is None or own is None or not own.pod or account.coverage.lacks_requests:
        return None
    known = {one.processes.own.pod for one in history.tenures if one.processes.own is not None}
    known.update(one.writer.pod for one in history.requests.refusals)
    reads = ((history.requests.readers.get(pod), pod) for pod in history.requests.accounts.get(own.user, ()))
    once = sorted((read[1], pod) for read, pod in reads if read is not None and read[0] == 1 and pod not in known)
    once = [(at, pod) for at, pod in once if tenure.since < at <= account.now]
    # Who has just begun to wait for it has read it once, too.
    if len(once) < _MIN_PODS or account.coverage.logged_until - once[0][0] <= MAX_APART:
        return None
    return SingleReaders(own, tuple(pod for _, pod in once), once[0][0], once[-1][0])
