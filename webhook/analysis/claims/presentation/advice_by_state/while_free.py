"""Advice while no one holds a lease."""

from typing import Final

from msgspec.structs import replace

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.advice.after_refusal import advise_after_refusal
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.evidence.contenders.askers import Askers
from webhook.analysis.claims.evidence.pods.holder_pods import is_gone
from webhook.analysis.claims.evidence.pods.rollouts import describe_templates, describe_updates
from webhook.analysis.claims.findings.free_times import find_earlier_free_time
from webhook.analysis.claims.findings.refused_candidates import advise_on_refused_candidates
from webhook.analysis.claims.handovers import (
    find_frequent_changes,
    is_used_as_lock,
)
from webhook.analysis.claims.presentation.advice_by_state.on_elections import (
    advise_on_foreign_strategy,
    advise_on_lock,
    advise_on_loop,
)
from webhook.analysis.claims.words import format_clock
from webhook.analysis.history.audit_log.refusal import Refusal
from webhook.analysis.inputs.items import InputKind
from webhook.kubernetes.times import SECOND, format_length
from webhook.text.commands import make_kubectl_prefix

_PATIENCE: Final = 30 * SECOND
"""Most candidates ask each few seconds."""


def advise_while_free(account: Account) -> Advice:
    """Return what to do while no one holds a lease."""
    history, where = account.history, make_kubectl_prefix(account.history.namespace)
    if (loop := advise_on_loop(account, "No one holds it now.")) is not None:
        return loop
    if account.election.refused_candidates:
        return advise_on_refused_candidates(account.election.refused_candidates)
    if account.election.other_candidates is not None:
        return account.election.other_candidates.advise()
    if (foreign := advise_on_foreign_strategy(account)) is not None:
        return foreign
    if account.election.is_coordinated:
        return Advice("An API server names the next holder, one of its candidates:", f"{where} get leasecandidates")
    if account.askers is not None and (refusal := _find_refusal_of_all(account, account.askers)) is not None:
        after = advise_after_refusal(history, refusal, account.now)
        sentence = f"The lease is free, and all who asked for it since were refused. {after.sentence}"
        return replace(after, sentence=sentence)
    is_lock = is_used_as_lock(history.tenures)
    if not is_lock and (vacant := _advise_on_vacancy(account)) is not None:
        return vacant
    latest = history.latest_tenure
    is_unasked = account.askers is not None and not account.askers.asking
    if latest is not None and is_unasked and is_gone(account.pods.deletions, latest):
        sentence = "The pod of its last holder was deleted, and the log has no other that asks. See whether any runs:"
        return Advice(sentence, f"{where} get pods,events")
    if is_lock:
        return advise_on_lock(history, "No one holds it now. It was")
    return _advise_on_rollouts(account) or Advice(
        "A replica that runs, and may write it, can take the lease at once:", f"{where} get pods"
    )


def _advise_on_vacancy(account: Account) -> Advice | None:
    """Return the advice about a lease that no one has taken for long, or that was as free before; None if neither."""
    history, where = account.history, make_kubectl_prefix(account.history.namespace)
    if account.pods.job is not None:
        return account.pods.job.advise(account.now)
    if (earlier := find_earlier_free_time(account)) is not None:
        sentence = f"{earlier.describe(account.now)}, as one is that is used only at times. To see what uses it:"
        return Advice(sentence, f"{where} get pods,jobs")
    if (free := _measure_vacancy(account)) is None:
        return None
    which = "their logs" if history.kind is InputKind.AUDIT_LOG else "their logs and the audit log"
    sentence = (
        f"No one was seen to take the free lease in {format_length(free)}: candidates may be absent, refused or "
        f"waiting, for example; {which} show which. To see the pods:"
    )
    return Advice(sentence, f"{where} get pods")


def _advise_on_rollouts(account: Account) -> Advice | None:
    """Return where to look if its holders were replaced again and again as in rollouts; None if not."""
    history = account.history
    changes = find_frequent_changes(history.tenures, account.now)
    if changes is None:
        return None
    updates = describe_updates(account.related_writes, changes.since)
    why = updates or describe_templates(list(history.tenures), changes.since, changes.count)
    if not why:
        return None
    sentence = f"No one holds it now, and {changes.text} since {format_clock(changes.since, account.now)}; {why}."
    command = f"{make_kubectl_prefix(history.namespace)} get replicasets,events"
    return Advice(f"{sentence} See what rolls its holders out again and again:", command)


def _measure_vacancy(account: Account) -> int | None:
    """Return for how long a lease was free, if no candidate waits so long, and the input has no requests of them."""
    history, tenure = account.history, account.history.latest_tenure
    if history.has_reads_of_holders or tenure is None or tenure.until is None or not history.is_end_seen:
        return None
    free = min(account.now, account.coverage.shown_until) - tenure.until
    return free if free > max(_PATIENCE, 3 * (history.renewals.usual or 0)) else None


def _find_refusal_of_all(account: Account, found: Askers) -> Refusal | None:
    """Return the latest refusal if each process that asked for a free lease since was refused at last; None if not."""
    asking = found.asking
    denied = [one for one in account.history.requests.refusals if one.received > found.since and one.is_denied]
    refused = [one for one in denied if any(who.is_same(one.writer) for who, _ in asking)]
    are_all = all(one.code >= 400 and any(who.is_same(last.writer) for last in refused) for who, one in asking)
    return refused[-1] if refused and are_all else None
