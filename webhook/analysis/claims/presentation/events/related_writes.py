"""Writes to other objects than the lease that concern its holders."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.evidence.pods.rollouts import group_updates
from webhook.analysis.claims.evidence.writers.related_writes import (
    describe_related_write,
    find_end_of_refusals,
    has_granted,
    is_after_last_failure,
    is_new,
)
from webhook.analysis.claims.presentation.events.event import PAIR, Event, get_time, group_by_tenure
from webhook.analysis.claims.words import format_clock
from webhook.analysis.inputs.items import RelatedWrite, Writer
from webhook.findings import ReportFinding, Severity

_MANY: Final = 4


def list_telling_pod_events(account: Account) -> list[Event]:
    """Return what a log shows of pods, unless it only shows a kubelet, or is said as part of a cause."""
    causes = [one.message for one in account.findings if is_loud(one)]
    causes += [account.cause.evidence] if account.cause is not None else []
    telling = [one for one in account.pods.events if not one.is_vague]
    return [(one.at, one.text) for one in telling if not (one.ending and any(one.ending in cause for cause in causes))]


def is_loud(finding: ReportFinding) -> bool:
    """Return whether a finding is more than a remark."""
    return finding.severity is not Severity.INFO


def list_pod_deletions(account: Account) -> list[Event]:
    """Return the deletions of pods of holders."""
    return [(one.deletion.at, one.text) for one in account.pods.deletions]


def list_related_writes(account: Account, *, are_latest: bool = False) -> list[Event]:
    """Return what was done to what its holders depend on.

    `are_latest`: without workloads and accounts that were created before the first holder came, as they must be.
    What is done again and again, as by an autoscaler, is one line, lest it displaces what happened to the lease.
    """
    first = account.history.tenures[0].since if account.history.tenures else account.now
    found = (
        one
        for one in account.related_writes
        if not (are_latest and one.at <= first and is_new(one, account.related_writes))
    )
    groups = group_by_tenure(account.history, found, lambda one: (one.at, describe_related_write(one)))
    if are_latest:
        groups = _join_writes_of_pods(_join_repeated(groups))
    # The first of two may be the cause, and the last one its cure.
    groups = [
        part for group in groups for part in ([[one] for one in group] if _is_change_and_return(group) else [group])
    ]
    lines = [
        (
            group[0].at,
            _describe_group(account, group) + _describe_effect(account, group),
        )
        for group in groups
    ]
    return sorted(lines, key=get_time)


def _describe_effect(account: Account, group: Sequence[RelatedWrite]) -> str:
    """Say that what a write may have been meant to help went on after it, or had failed for the last time before it."""
    if is_after_last_failure(group[0], account.history):
        return ", after the last write of the lease that failed because of a webhook"
    if has_granted(group[-1], account.history):
        return ", which had allowed what was refused after that"
    end = find_end_of_refusals(group[-1], account.history)
    return f", after which refusals went on until {format_clock(end, account.now)}" if end else ""


def _is_change_and_return(group: Sequence[RelatedWrite]) -> bool:
    """Return whether two updates may be a change and its return; who scales twice, as an autoscaler, does so again."""
    return len(group) == PAIR and group[0].verb == "updated"


def _join_repeated(groups: Sequence[list[RelatedWrite]]) -> list[list[RelatedWrite]]:
    """Return the groups, with those in one of which the same was done again and again, whoever held the lease."""
    by_text: dict[str, list[RelatedWrite]] = {}
    for write in (one for group in groups for one in group):
        by_text.setdefault(describe_related_write(write), []).append(write)
    often = [group for group in by_text.values() if len(group) >= _MANY]
    known = {describe_related_write(group[0]) for group in often}
    return [*(group for group in groups if describe_related_write(group[0]) not in known), *often]


def _join_writes_of_pods(groups: Sequence[list[RelatedWrite]]) -> list[list[RelatedWrite]]:
    """Return the groups, with those in one in which several pods of one account updated one workload."""
    by_account = group_updates(one for group in groups for one in group if one.writer.pod)
    joined = [sorted(one, key=_get_at) for one in by_account if len(one) >= _MANY and _is_of_several_pods(one)]
    known = {id(write) for group in joined for write in group}
    return [*([one for one in group if id(one) not in known] for group in groups if id(group[0]) not in known), *joined]


def _is_of_several_pods(group: Sequence[RelatedWrite]) -> bool:
    return len({one.writer.pod for one in group}) > 1


def _get_at(write: RelatedWrite) -> int:
    return write.at


def _describe_group(account: Account, group: Sequence[RelatedWrite]) -> str:
    """Describe writes that are alike, or those of several pods to one workload."""
    times = _count_times(group, account.now)
    if not _is_of_several_pods(group):
        return describe_related_write(group[0], times)
    account_alone = Writer(group[0].writer.user, impersonator=group[0].writer.impersonator)
    alone = describe_related_write(replace(group[0], writer=account_alone, change=""), times)
    tenures = [account.history.find_tenure_at(one.at) for one in group]
    are_holders = all(
        tenure is not None and (tenure.until is None or one.at <= tenure.until) and tenure.is_by(one.writer) is True
        for tenure, one in zip(tenures, group, strict=True)
    )
    pods = len({one.writer.pod for one in group})
    held = ", each of which held it then" if are_holders else ""
    return f"{alone} from {pods} pods{held}{_describe_changes([one.change for one in group])}"


def _describe_changes(changes: Sequence[str]) -> str:
    """Say what several writes set, as the end of a clause: all the same, or two things in turn; else the last."""
    known = [one.removeprefix("which ") for one in changes]
    if not all(known):
        return ""
    if len(set(known)) == 1:
        return f", which {known[0]} each time"
    if len(set(known)) == PAIR and all(before != after for before, after in pairwise(known)):
        return f": the first update {known[0]}, the second {known[1]}, and so on in turn"
    return f": the last {known[-1]}"


def _count_times(group: Sequence[RelatedWrite], now: int) -> str:
    return f" {len(group)} times until {format_clock(group[-1].at, now)}" if len(group) > 1 else ""
