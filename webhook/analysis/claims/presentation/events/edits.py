"""Writes that changed a lease, and neither its holder nor its renewal."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.evidence.silent_holders.other_leases import MIN_OTHER_WRITES
from webhook.analysis.claims.evidence.writers.owners import describe_added_owners, is_by_holder
from webhook.analysis.claims.findings.taken_back import find_taken_back
from webhook.analysis.claims.handover_clauses import (
    describe_dating,
    describe_edit,
    is_request_to_step_down,
)
from webhook.analysis.claims.presentation.events.event import Event, get_time
from webhook.analysis.claims.words import describe_by_writer, format_clock, format_count, format_name
from webhook.analysis.history.audit_log.kept_refusals import MAX_REFUSALS
from webhook.analysis.history.events import LeaseEvent
from webhook.analysis.history.holders.tenure import API_SERVER, Handover
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.marks import LabelChange
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.times import SECOND

_MAX_LABELS: Final = 6
_DURATION: Final = "leaseDurationSeconds"
_PREFERRED: Final = "preferredHolder"
_STRATEGY: Final = "strategy "
_TAKEN_UP: Final = re.compile(r"leaseDurationSeconds 5 -> \d+(?:, leaseTransitions absent -> 0)?")
"""What a holder writes when it takes up a lease that an API server created for it, with 5 s: `defaultLeaseDuration`."""
_IS_OF_ELECTION: Final = re.compile(r"(?:(?:strategy|preferredHolder) \S+ -> \S+(?:, )?)+")


def list_edits(history: LeaseHistory, *, by_others: bool = False, is_handover_shown: bool = False) -> list[Event]:
    """Return edits, or those that need not be its holder's own doing, or that change how long it lasts.

    A watch does not show whose an edit is: what it has is listed of a log as well, where that names the writer.
    `is_handover_shown`: omit the request to step down, which the clause of the last handover has.
    """
    taken_back = find_taken_back(history)
    found = [one for one in history.edits if not (by_others and _is_unremarkable(one))]
    if is_handover_shown and history.latest_tenure is not None and history.latest_tenure.began is Handover.PREFERRED:
        before = history.succession.before
        found = [one for one in found if not (one.tenure is before and is_request_to_step_down(one))]
    if taken_back is None:
        return _list_repeated_last(found, history.managers_of_servers)
    others = [one for one in found if not (taken_back.has(one.at) and _IS_OF_ELECTION.fullmatch(one.text))]
    # What is done again and again is one line, which others do not displace.
    return [*_list_repeated_last(others, history.managers_of_servers), (taken_back.start, taken_back.describe())]


def _list_repeated_last(edits: Sequence[LeaseEvent], of_servers: Collection[str]) -> list[Event]:
    """Return edits in order, and after them those that one writer made again and again, each of these as one."""
    groups: dict[tuple[str, Writer | None, str, str], list[LeaseEvent]] = {}
    for edit in edits:
        who = edit.writer.process if edit.writer is not None and edit.writer.user else None
        groups.setdefault((edit.text, who, edit.manager, edit.candidate), []).append(edit)
    repeated = [several for several in groups.values() if len(several) >= MIN_OTHER_WRITES]
    in_groups = {id(one) for several in repeated for one in several}
    least = "at least " if len(edits) == MAX_REFUSALS else ""
    found = [*_keep_order((one for one in edits if id(one) not in in_groups), of_servers)]
    for several in repeated:
        until = format_clock(several[-1].at, several[0].at)
        found.append(
            (several[0].at, f"{describe_edit(several[0], of_servers)}, {least}{len(several)} times until {until}")
        )
    return found


def _keep_order(edits: Iterable[LeaseEvent], of_servers: Collection[str]) -> Iterator[Event]:
    """Yield edits, given as they were stored, with times that keep this order: a stamp has no fraction of a second."""
    latest = 0
    for edit in edits:
        latest = max(latest, edit.at) if latest // SECOND == edit.at // SECOND else edit.at
        yield latest, describe_edit(edit, of_servers)


def list_label_changes(account: Account, *, is_short: bool = False) -> list[Event]:
    """Return which labels others than the holder set, changed or removed: what selects leases goes by them.

    What one did again and again is one event. `is_short`: omit those that a finding says.
    """
    groups: dict[object, list[LabelChange]] = {}
    for one in account.history.label_changes:
        if not (is_short and any(f"{one.key}={one.after}" in found.message for found in account.findings)):
            who = one.writer.process if one.writer is not None else one.manager
            groups.setdefault((one.key, one.before, one.after, who), []).append(one)
    found = []
    for several in groups.values():
        first, last = several[0], format_clock(several[-1].at, account.now)
        times = f", {format_count(len(several), 'time')} until {last}" if len(several) > 1 else ""
        found.append((first.at, f"{_describe_label_change(first)}{times}"))
    return sorted(found, key=get_time)[-_MAX_LABELS:]


def _describe_label_change(change: LabelChange) -> str:
    """`label ring=a was set by jane`, `label ring was changed from a to b`, `label ring=a was removed`."""
    key, before, after = (format_name(one) for one in (change.key, change.before or "", change.after or ""))
    under = f", under field manager {format_name(change.manager)}" if change.manager else ""
    by = f"{describe_by_writer(change.writer) or under}{describe_dating(is_dated=change.is_dated, is_claimed=False)}"
    if change.after is None:
        was = "" if change.before is None else f"={before}"
        return f"label {key}{was} was removed{by}"
    if change.before is None:
        return f"label {key}={after} was set{by}"
    return f"label {key} was changed from {before} to {after}{by}"


def list_added_owners(history: LeaseHistory, *, by_others: bool = False) -> list[Event]:
    """Return the additions of owners, or those that need not be its holder's own doing."""
    return [
        (one.at, describe_added_owners(one)) for one in history.added_owners if not (by_others and is_by_holder(one))
    ]


def _is_unremarkable(edit: LeaseEvent) -> bool:
    tenure, who = edit.tenure, edit.writer
    if tenure is not None and tenure.is_coordinated and _TAKEN_UP.fullmatch(edit.text):
        return True
    if any(field in edit.text for field in (_DURATION, _PREFERRED, _STRATEGY)):
        return False
    is_server = who is not None and who.user == API_SERVER
    own = tenure.processes.own if tenure is not None else None
    return is_server or (own is not None and own.is_same(who))
