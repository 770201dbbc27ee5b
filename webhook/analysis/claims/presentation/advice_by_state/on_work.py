"""Advice on what a holder does beside its renewals, as far as a log shows it."""

from collections.abc import Sequence

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.advice.after_refusal import find_quota
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import (
    Pod,
    find_pod,
    make_command_for_log_of_pod,
    make_command_for_quota,
)
from webhook.analysis.claims.evidence.silent_holders.failing_requests import FailingRun, find_present_failures
from webhook.analysis.claims.words import (
    format_clock,
    format_name,
)


def advise_on_work(account: Account) -> Advice | None:
    """Return where to look if the holder may wait, or what it asks for fails; None if the log does not show that."""
    crossed = account.surroundings.crossed
    if crossed is not None and (advice := crossed.advise()) is not None:
        return advice
    failing = list(find_present_failures(account.pods.failing, account.tenure, account.coverage.logged_until))
    if not failing:
        return account.pods.idle.advise(account.now) if account.pods.idle is not None else None
    pod, last = find_pod(account.history, account.holder, account.tenure), max(one.last for one in failing)
    failed = f"requests of its pod failed, the last one at {format_clock(last, account.now)}"
    return _advise_on_failures(f"It is held and renewed, but {failed}.", pod, failing)


def _advise_on_failures(sentence: str, pod: Pod, failing: Sequence[FailingRun]) -> Advice:
    """Return where to look for why requests of a pod failed: at the quota, if that is why; else in its log."""
    quotas = {(one.failure.namespace, find_quota(one.message)) for one in failing}
    namespace, quota = quotas.pop()
    if quota and not quotas:
        command = make_command_for_quota(namespace, quota)
        return Advice(f"{sentence} ResourceQuota {format_name(quota)} of namespace {namespace} left no room:", command)
    return Advice(f"{sentence} Its log may say more:", make_command_for_log_of_pod(pod), pod.names)


def advise_on_work_of_writer(account: Account) -> Advice | None:
    """Return where to look if other requests of the pod fail that still writes a lease, which a log does not show."""
    tenure = account.history.latest_tenure
    failing = list(find_present_failures(account.pods.failing, tenure, account.coverage.logged_until))
    last = max((one.last for one in failing), default=0)
    if tenure is None or not failing or tenure.last_renewal < last:
        return None
    pod, at = find_pod(account.history, tenure.holder, tenure), format_clock(last, account.now)
    sentence = f"Its writes of the lease went on, but other requests of its pod failed, the last one at {at}."
    return _advise_on_failures(sentence, pod, failing)
