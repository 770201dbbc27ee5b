"""Refused writes of a lease, and writes of other objects that a fence refused, as findings."""

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.explanation import commands
from webhook.explanation.explained import Explained, explained
from webhook.explanation.next_step import Advice, after_refusal
from webhook.explanation.words import clock, count, name, writer
from webhook.history.lease_history import LeaseHistory
from webhook.history.refusal import By, Refusal
from webhook.observations.observation import Fenced, Writer
from webhook.reports.model import Severity

MOST: Final = 10
_REFUSED_BY: Final = {By.RIGHTS: " for lack of permission", By.OTHER: ""}


def refused(history: LeaseHistory, known: Sequence[tuple[int, int]], now: int) -> Iterator[Explained]:
    """Refused writes by writer, without those that already explain another finding."""
    groups: dict[tuple[str, By, str], list[Refusal]] = {}
    for one in history.refusals:
        if one.is_denied and not any(start <= one.at <= end for start, end in known):
            groups.setdefault((writer(one.writer), one.by, one.name), []).append(one)
    for key in list(groups)[-MOST:]:
        yield _refused(history, groups[key], now)


def _refused(history: LeaseHistory, group: Sequence[Refusal], now: int) -> Explained:
    last = group[-1]
    by = _REFUSED_BY.get(last.by) or (f" by {last.by.value} {last.name}" if last.name else "")
    message = (
        f"{count(len(group), 'write')} by {writer(last.writer) or 'an unknown user'} refused with {last.code}{by}, the "
        f"last one at {clock(last.at, now)}"
    )
    if last.message:
        message += f": {last.message}"
    holder = history.tenure
    if last.by is By.WEBHOOK and last.writer.pod and holder and last.writer.pod not in holder.pods:
        sentence = f"The webhook kept the lease for {name(holder.holder)}. To see what the other writer is:"
        advice = Advice(sentence, commands.pod_of_writer(history.namespace, last.writer))
        return explained(history, "write-refused", Severity.WARNING, message, advice, "denied")
    return explained(history, "write-refused", Severity.WARNING, message, after_refusal(history, last), "refused")


def fenced(history: LeaseHistory, now: int) -> Iterator[Explained]:
    """Writes without the lease that a fence refused, by writer."""
    groups: dict[Writer, list[Fenced]] = {}
    for one in history.fenced:
        groups.setdefault(Writer(one.writer.user, one.writer.pod), []).append(one)
    for who, group in list(groups.items())[-MOST:]:
        last = group[-1]
        message = (
            f"fence {name(last.fence)} refused {count(len(group), 'write')} by {writer(who)} that did not hold the "
            f"lease, from {clock(group[0].at, now)} to {clock(last.at, now)}, the last one: {last.target}"
        )
        sentence = "The fence refused what was written without the lease. To see why the writer did not stop:"
        advice = Advice(sentence, commands.pod_of_writer(history.namespace, who))
        yield explained(history, "write-fenced", Severity.WARNING, message, advice, "fenced")
