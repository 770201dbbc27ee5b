"""Which process has an identity over several tenures: a pod may follow another one of the same account and name.

In: the tenures of a lease, oldest first, and a writer. Out: whether the writer follows its holder, and who is known to
have an identity.
"""

from collections.abc import Sequence
from itertools import islice, takewhile

from webhook.analysis.history.holders.processes import MIN_RENEWALS
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.times import SECOND


def is_replacement(tenures: Sequence[Tenure], writer: Writer | None, at: int) -> bool:
    """Return whether a writer, another pod that renews under the same identity at `at`, follows the latest holder.

    If two renewed under one name, the previous pod alone counts, until the present one has let the lease expire.
    """
    tenure = tenures[-1]
    if not tenure.holder or not tenure.processes.is_replaced_by(writer):
        return False
    is_back = at - tenure.last_renewal >= (tenure.duration or 0) * SECOND
    is_beside = writer is not None and writer.process in tenure.processes.others
    return is_back or not (is_beside or _was_holder(tenures, writer))


def is_going_on_beside(tenures: Sequence[Tenure], writer: Writer | None) -> bool:
    """Return whether the pod that the latest holder seemed to have replaced still renews, as it did before.

    A single renewal may be one that was sent before, and held back on its way. Who comes back when its lease would have
    expired had stopped.
    """
    before, after = [None, None, *tenures][-2:]
    if before is None or after is None or writer is None or after.began is not Handover.REPLACED:
        return False
    again = after.processes.others.get(writer.process)
    is_same = before.processes.own is not None and before.processes.own.is_same(writer)
    if again is None or not is_same:
        return False
    return again.first - before.last_renewal < (before.duration or 0) * SECOND


def find_lost_tenure(tenures: Sequence[Tenure], tenure: Tenure, writer: Writer | None) -> Tenure | None:
    """Return the latest tenure before another one in which a writer surely held the lease under another name."""
    before = takewhile(lambda one: one is not tenure, tenures)
    others = (one for one in before if one.holder != tenure.holder and one.processes.is_process_known)
    held = [one for one in others if one.processes.own is not None and one.processes.own.is_same(writer)]
    return held[-1] if held else None


def _was_holder(tenures: Sequence[Tenure], writer: Writer | None) -> bool:
    """Return whether a writer is the process of one of the tenures of the latest identity, before the latest one."""
    identity, before = tenures[-1].holder, islice(reversed(tenures), 1, MAX_LISTED)
    same = takewhile(lambda tenure: tenure.holder == identity, before)
    processes = (tenure.processes.own for tenure in same)
    return any(own is not None and own.is_same(writer) for own in processes)


def find_process(tenures: Sequence[Tenure], identity: str, writer: Writer | None) -> Writer | None:
    """Return the process that is known to have an identity; None if none is, or if the writer's pod replaced it."""
    same = [tenure.processes for tenure in reversed(tenures) if tenure.holder == identity]
    known = next(
        (processes for processes in same if processes.is_process_known or processes.renewals >= MIN_RENEWALS), None
    )
    if known is None or known.is_replaced_by(writer):
        return None
    # Without a pod in its text, it may have written a text that is another's.
    is_another = known.own is not None and writer is not None and bool(writer.user) and not known.own.is_same(writer)
    is_doubtful = is_another or any(processes.others for processes in same)
    return None if is_doubtful and not known.names_own_pod else known.own
