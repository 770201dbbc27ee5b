"""Advice about a lease: one or two sentences, and a command that fits the cause."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from webhook.admission.rules.change import CLEANUP_CONTROLLERS, NODE_LEASES
from webhook.admission.rules.stamps import is_constant
from webhook.analysis.audit.repairs import make_repair_command
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.advice.after_refusal import advise_after_refusal, find_quota
from webhook.analysis.claims.advice.after_silence import API_RESOURCES, advise_after_silence, advise_on_nameless
from webhook.analysis.claims.advice.on_claimed_times import advise_on_claimed_times
from webhook.analysis.claims.advice.on_writers import (
    advise_after_deletion,
    advise_after_doubtful_deletion,
    advise_on_writer,
    describe_revocation,
)
from webhook.analysis.claims.claim import REPLACED, Advice, Claim
from webhook.analysis.claims.commands import (
    MUTATORS,
    WEBHOOKS,
    Pod,
    advise_on_log_of_writer,
    advise_on_pod_of_holder,
    find_pod,
    make_command_for_audit_log,
    make_command_for_lease,
    make_command_for_log_of_pod,
    make_command_for_managers,
    make_command_for_node,
    make_command_for_nodes_of_pods,
    make_command_for_pod,
    make_command_for_pod_of_holder,
    make_command_for_pods,
    make_command_for_previous_log,
    make_command_for_quota,
    make_pod_of_writer,
    name_holder,
)
from webhook.analysis.claims.diagnosis import Blame, Cause
from webhook.analysis.claims.evidence.api_servers import (
    API_SERVERS,
    API_SERVERS_BY_HOST,
    advise_after_end_of_api_server,
    describe_server,
)
from webhook.analysis.claims.evidence.askers import Askers, describe_process, join_names
from webhook.analysis.claims.evidence.failing_requests import FailingRun, find_present_failures
from webhook.analysis.claims.evidence.foreign_writes import is_taken_by_stranger
from webhook.analysis.claims.evidence.holder_pods import find_evictor, is_gone
from webhook.analysis.claims.evidence.loops import find_loop
from webhook.analysis.claims.evidence.moved_heartbeats import find_moved_heartbeat
from webhook.analysis.claims.evidence.nameless_renewals import advise_on_nameless_renewals, find_nameless_renewals
from webhook.analysis.claims.evidence.namesakes import find_askers_without_elector
from webhook.analysis.claims.evidence.related_writes import is_of_node
from webhook.analysis.claims.evidence.restarted_askers import RestartedAsker
from webhook.analysis.claims.evidence.rollouts import describe_templates, describe_updates
from webhook.analysis.claims.evidence.sole_writers import find_sole_manager, find_sole_writer
from webhook.analysis.claims.evidence.successors import find_failing_webhook, list_writes_of_successors
from webhook.analysis.claims.evidence.unanswered_pings import UnansweredPing
from webhook.analysis.claims.evidence.writers_in_turn import find_writers_in_turn
from webhook.analysis.claims.findings.changed_user import ChangedUser, find_changed_user
from webhook.analysis.claims.findings.conflicting_updates import find_conflicting_updates
from webhook.analysis.claims.findings.other_askers import find_other_askers
from webhook.analysis.claims.findings.refused_candidates import advise_on_refused_candidates
from webhook.analysis.claims.findings.taken_back import find_taken_back
from webhook.analysis.claims.findings.two_addresses import find_two_addresses
from webhook.analysis.claims.findings.two_servers import find_two_servers
from webhook.analysis.claims.handovers import (
    FrequentChanges,
    find_frequent_changes,
    is_used_as_lock,
    list_edited_holders,
)
from webhook.analysis.claims.words import (
    describe_user,
    describe_writer,
    format_bound,
    format_clock,
    format_count,
    format_name,
)
from webhook.analysis.heartbeats import find_owner, is_identity_of_api_server
from webhook.analysis.history.audit_log.refusal import Refusal, RefusedBy
from webhook.analysis.history.elections.unserved_candidates import UnservedCandidates
from webhook.analysis.history.holders.tenure import API_SERVER, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseState, LeaseStatus
from webhook.analysis.inputs.items import Writer
from webhook.findings import ReportFinding, Severity
from webhook.kubernetes.managed_fields import OF_API_SERVERS
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.request import UserInfo
from webhook.kubernetes.times import SECOND, format_length
from webhook.text.commands import fill_in, make_kubectl_prefix, quote_for_shell, quote_name, split_fix

_PATIENCE: Final = 30 * SECOND
"""Most candidates ask each few seconds."""
_WORK_UNKNOWN: Final = "It is held and renewed; a lease does not show whether its holder works."
RISKS: Final = frozenset({"timing-tight"})
"""Findings about what may cost a leader its lease one day: nothing that happened."""
_MIN_WRITES: Final = 3
"""Fewer writes by others than the holder are listed, and lead to no advice."""
LOSSES: Final = frozenset({"leader-lost", "renewal-late"})
"""Findings about a holder that lost the lease, or nearly did."""
_EXPLAINED: Final = frozenset(
    {Blame.SERVER, Blame.NETWORK, Blame.REFUSED, Blame.THROTTLED, Blame.CONFLICT, Blame.REWRITTEN, Blame.POD}
)


def advise(account: Account) -> Advice:
    """Return what a person on call should do about a lease: nothing that the input was already read for."""
    advice, history = _advise(account), account.history
    if history.is_mixed:
        return advice
    if account.election.vain is not None:
        return account.election.vain.add_to(advice)
    if (ping := _find_unanswered_ping(account)) is not None:
        return ping.add_to(advice)
    if advice.command == make_command_for_audit_log(history.namespace, history.name) and history.requests.is_logged:
        sentence = "The log does not show who it was: see whether parts of it are missing. To see the lease:"
        return Advice(sentence, make_command_for_managers(history))
    return advice


def _find_unanswered_ping(account: Account) -> UnansweredPing | None:
    """Return the ping whose candidate is to be looked at; None if another step comes first, which is named.

    It asks for another lease, or no API server chooses among those that answer.
    """
    election = account.election
    return None if election.other_candidates is not None or election.foreign_strategy else election.unanswered


def _advise(account: Account) -> Advice:
    history, status = account.history, account.status
    if history.is_mixed:
        return _advise_on_finding(account.findings[0])
    if status is None:
        return _advise_without_lease(account)
    stalled = [one for one in account.findings if one.check == "election-stalled"]
    if stalled:
        return Advice("Clear preferredHolder; an API server then names a holder again:", stalled[0].fix)
    if status.block:
        repair = fill_in(make_repair_command(status.block), history.namespace, history.name)
        return Advice("Repair it, or no other replica can follow the holder:", repair)
    if (error := _find_pressing_error(account)) is not None:
        return _advise_on_finding(error)
    is_beat = account.is_heartbeat or is_identity_of_api_server(history.namespace, history.name)
    if status.state is LeaseState.EXPIRED and is_beat and not account.doubt.unlogged:
        return _advise_on_heartbeat(account, status)
    if status.state is LeaseState.EXPIRED:
        advice = _advise_after_expiry(account, status)
        newer = account.surroundings.newer
        first = f"{newer.advise()} " if newer is not None else _describe_switched_off(account)
        return replace(advice, sentence=f"{first}{advice.sentence}")
    if account.written_later is not None:
        clock = "" if status.from_stamps else ", unless its clock is behind"
        sentence = f"A writer other than the holder may have written it after its last renewal{clock}. To see who:"
        return Advice(sentence, make_command_for_audit_log(history.namespace, history.name))
    if status.state in {LeaseState.RELEASED, LeaseState.NEVER_HELD}:
        return _advise_while_free(account)
    return _advise_while_held(account, status)


def _describe_switched_off(account: Account) -> str:
    """Say that leader election was switched off in a workload since its pod took the lease; "" if no log shows it.

    Whether that container runs the election, and which arguments it had before, is not known.
    """
    since = account.tenure.since if account.tenure is not None else account.now
    last = next((one for one in reversed(account.related_writes) if one.change), None)
    if last is None or last.at < since or not last.switched_off:
        return ""
    what = f"{last.switched_off} of {last.kind} {format_name(f'{last.namespace}/{last.name}')}"
    return (
        f"This lease may be left over: at {format_clock(last.at, account.now)} {what} was given "
        "an argument that switches leader election off; if it ran the election, every replica may be active. "
    )


def _advise_while_free(account: Account) -> Advice:
    history, where = account.history, make_kubectl_prefix(account.history.namespace)
    if (loop := _advise_on_loop(account, "No one holds it now.")) is not None:
        return loop
    if account.election.refused_candidates:
        return advise_on_refused_candidates(account.election.refused_candidates)
    if account.election.other_candidates is not None:
        return account.election.other_candidates.advise()
    if (foreign := _advise_on_foreign_strategy(account)) is not None:
        return foreign
    if account.election.is_coordinated:
        return Advice("An API server names the next holder, one of its candidates:", f"{where} get leasecandidates")
    if account.askers is not None and (refusal := _find_refusal_of_all(account, account.askers)) is not None:
        after = advise_after_refusal(history, refusal, account.now)
        sentence = f"The lease is free, and all who asked for it since were refused. {after.sentence}"
        return replace(after, sentence=sentence)
    is_lock = is_used_as_lock(history.tenures)
    if not is_lock and (free := _measure_vacancy(account)) is not None:
        sentence = (
            f"No one was seen to take the free lease in {format_length(free)}: candidates may be absent, refused or "
            "waiting, for example; their logs and the audit log show which. To see the pods:"
        )
        return Advice(sentence, f"{where} get pods")
    latest = history.latest_tenure
    is_unasked = account.askers is not None and not account.askers.asking
    if latest is not None and is_unasked and is_gone(account.pods.deletions, latest):
        sentence = "The pod of its last holder was deleted, and the log has no other that asks. See whether any runs:"
        return Advice(sentence, f"{where} get pods,events")
    if is_lock:
        return _advise_on_lock(history, "No one holds it now. It was")
    return Advice("A replica that runs, and may write it, can take the lease at once:", f"{where} get pods")


def _advise_on_lock(history: LeaseHistory, start: str) -> Advice:
    """Say that a lease is used as a lock, how often, and for how long each holder had it at most."""
    lengths = [one.until - one.since for one in history.tenures if one.until is not None]
    is_exact = all(one.is_exact and (one.ended is None or one.ended.is_exact) for one in history.tenures)
    longest = format_bound(max(lengths) + (0 if is_exact else SECOND))
    sentence = (
        f"{start} taken and given up again and again (at least {len(lengths)} times, each time held for {longest}), "
        "and not renewed: as a lock for single tasks, and not by a leader. If that is meant, no action is needed."
    )
    return Advice(sentence)


def _advise_on_foreign_strategy(account: Account) -> Advice | None:
    """Return the advice to look for what chooses the holder; None if an API server does, or no one."""
    if not (strategy := account.election.foreign_strategy):
        return None
    sentence = f"No API server chooses by the strategy {format_name(strategy)}; check that its implementation runs:"
    return Advice(sentence, f"{make_kubectl_prefix(account.history.namespace)} get pods,leasecandidates")


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


def _advise_without_lease(account: Account) -> Advice:
    """Return the advice if its object was never seen, or is gone."""
    history, lease = account.history, make_command_for_lease(account.history)
    tenure = history.latest_tenure
    if unreadable := [one for one in account.findings if one.check == "object-types"]:
        return _advise_on_finding(unreadable[0])
    if history.hidden_since is not None:
        return Advice("The log may lack what was written since. To see the lease:", f"{lease} -o yaml")
    writes = [one for one in history.requests.refusals if one.is_denied_write]
    refused = [one for one in writes if one.received > history.existence.deleted_at]
    lacks_rights = bool(refused) and refused[-1].by is RefusedBy.RIGHTS
    deleted_by = tenure.deletion.by if history.is_deleted and tenure else None
    if tenure and deleted_by and deleted_by.user in CLEANUP_CONTROLLERS and not lacks_rights:
        return advise_after_deletion(history, tenure, deleted_by)
    if refused and (history.is_deleted or history.requests.absent):
        return advise_after_refusal(history, refused[-1], account.now)
    reads = [one for one in history.requests.refusals if one.is_denied]
    if reads and not history.tenures:
        return advise_after_refusal(history, reads[-1], account.now)
    if history.is_deleted:
        return _advise_on_deleted_lease(account)
    if account.election.refused_candidates:
        return advise_on_refused_candidates(account.election.refused_candidates)
    if history.requests.absent:
        return _advise_on_absent_lease(account)
    return _advise_on_unseen_lease(account, refused)


def _advise_on_unseen_lease(account: Account, refused: Sequence[Refusal]) -> Advice:
    """Return the advice if a log has writes of a lease, and no state of it; `refused` are those that were denied."""
    history, tenure = account.history, account.history.latest_tenure
    last = refused[-1] if refused else None
    if tenure and last and last.received > tenure.last_renewal and tenure.is_by(last.writer):
        return advise_after_refusal(history, last, account.now)
    if (in_turn := _advise_on_writers_in_turn(account)) is not None:
        return in_turn
    if (work := _advise_on_work_of_writer(account)) is not None:
        return work
    sentence = (
        "The input shows writes of the lease, and not the lease itself. To see it:"
        if history.tenures
        else "To see the lease:"
    )
    return Advice(sentence, make_command_for_managers(history))


def _advise_on_absent_lease(account: Account) -> Advice:
    """Return where to look for a lease that was never seen: where its name is used, else for who would create it."""
    history, other = account.history, account.surroundings.namesake
    askers, pods = find_askers_without_elector(history), f"{make_kubectl_prefix(history.namespace)} get leases,pods"
    asked = f"It does not exist{f', and in the log only {join_names(askers)} asked for it' if askers else ''}"
    if other is not None:
        sentence = f"{asked}. {other.describe(account.now)}; that may be the lease that is meant:"
        return Advice(sentence, f"{make_kubectl_prefix(other.namespace)} get lease {quote_name(other.name)} -o yaml")
    if askers:
        return Advice(f"{asked}. The lease may have another name, or no candidate may be running, for example:", pods)
    return Advice(f"{asked}; most clients create it the next time they ask, if they have the right:", pods)


def _advise_on_writers_in_turn(account: Account) -> Advice | None:
    """Return where to look for why a log shows several pods that wrote a lease in turn; None if it does not."""
    history, tenure = account.history, account.history.latest_tenure
    in_turn = find_writers_in_turn(history.tenures, account.now)
    if in_turn is None or tenure is None:
        return None
    since = format_clock(in_turn.since, account.now)
    changed = f"In the log, the pod that writes it changed {format_count(in_turn.count, 'time')} since {since}"
    if (who := find_evictor(account.pods.deletions, in_turn.ended)) is not None:
        updates = describe_updates(account.related_writes, in_turn.since)
        sentence = f"{changed}, each time after {describe_writer(who)} had asked to delete the one before"
        sentence = f"{sentence}{updates and f'; {updates}'}:"
        return Advice(sentence, f"{make_kubectl_prefix(history.namespace)} get pods,events")
    pod = find_pod(history, tenure.holder, tenure)
    if not pod.is_logged or not pod.name:
        return None
    sentence = f"{changed}. The log of {format_name(pod.name)} may say why:"
    return Advice(sentence, make_command_for_log_of_pod(pod), pod.names)


def _advise_on_deleted_lease(account: Account) -> Advice:
    """Return what to do about a lease that was deleted, by nobody that a log shows as a cleanup controller."""
    history, tenure = account.history, account.history.latest_tenure
    if not history.existence.is_deletion_sure:
        return advise_after_doubtful_deletion(history)
    if is_identity_of_api_server(history.namespace, history.name):
        return advise_after_end_of_api_server(tenure)
    is_by_unknown = tenure is None or tenure.deletion.by is None
    if is_by_unknown and (owner := account.surroundings.owner_node) is not None:
        sentence = f"The lease was deleted. {owner.describe(account.now)} To see who deleted it:"
        return Advice(sentence, make_command_for_audit_log(history.namespace, history.name))
    if is_by_unknown and (node := _find_node(history.namespace, history.name, history.lease)):
        sentence = (
            "The lease was deleted, and its Node is probably gone: Kubernetes deletes the lease of a node with its "
            "Node. To see whether the Node exists:"
        )
        return Advice(sentence, make_command_for_node(node))
    if (sole := _describe_sole_writer(history)) is not None:
        return Advice(f"The lease was deleted. {sole}")
    sentence = "The lease was deleted, and does not exist. Most clients create it the next time they ask:"
    return Advice(sentence, f"{make_command_for_lease(history)} --watch")


def _describe_sole_writer(history: LeaseHistory) -> str | None:
    """Say that one client alone wrote a lease that no one renewed, as tests and tools do; None if others may have."""
    writer, manager = find_sole_writer(history), find_sole_manager(history)
    if writer is not None:
        who = f"Only {describe_writer(writer)} wrote it, and no one else asked for it"
    elif manager:
        who = f"It was written under one field manager, {format_name(manager)}"
    else:
        return None
    return f"{who}; no holder renewed it: as by a test, or as a lock, and not by a leader. If so, no action is needed."


def _find_node(namespace: str, name: str, lease: Lease | None) -> str:
    """Return the node whose lease it is, by its namespace or its owner, which a client names; "" if it is no node's."""
    if namespace == NODE_LEASES:
        return name
    kind, _, owner = (find_owner(lease) if lease else "").partition(" ")
    return owner if kind == "Node" else ""


def _find_pressing_error(account: Account) -> ReportFinding | None:
    """Return the error to answer: an ongoing one, else one after which no holder renewed and then lost the lease."""
    errors = [one for one in account.findings if one.severity is Severity.ERROR]
    over = [one for one in errors if isinstance(one, Claim) and one.is_over]
    going_on = [one for one in errors if one not in over]
    history, lost = account.history, _find_last_loss(account.findings)
    end = 0
    if account.state is LeaseState.EXPIRED:
        end = account.now
    elif lost is not None:
        end = lost.over_since or account.now
    # Who was written into a lease and never renewed it is lost because of that, and so is who had stolen it.
    pairs = list(pairwise(history.tenures))
    strangers = {
        id(after) for before, after in pairs if after.until is not None and is_taken_by_stranger(before, after)
    }
    led = (one for one in reversed(history.tenures) if one.since < end and id(one) not in strangers)
    renewed = next((one.last_renewal for one in led), 0)
    if going_on:
        return going_on[0]
    # The latest one is what is shown of those of a kind.
    theft = _find_theft_before(account, lost)
    ended = [one for one in over if (one.over_since or 0) >= renewed or one is theft]
    return max(ended, key=lambda one: one.over_since or 0, default=None)


def _find_theft_before(account: Account, lost: Claim | None) -> Claim | None:
    """Return the theft, or the removal of the holder before, by which the one that lost it since had come to hold it.

    None if it had not come so. If the holder is known to be a pod, what became of that comes first.
    """
    since = lost.arguments.get("from") if lost is not None and lost.is_over else None
    tenure = account.history.find_tenure_at(since) if isinstance(since, int) else None
    own = tenure.processes.own if tenure is not None else None
    if tenure is None or account.state is LeaseState.EXPIRED or (own is not None and own.pod):
        return None
    removed = _find_removed_by_same(account, tenure)
    ends = {("lease-stolen", tenure.since), ("holder-removed", removed.until if removed is not None else None)}
    claims = (one for one in account.findings if isinstance(one, Claim))
    return next((one for one in claims if (one.check, one.over_since) in ends), None)


def _find_removed_by_same(account: Account, tenure: Tenure) -> Tenure | None:
    """Return the tenure that ended with a removal under the field manager of the next holder, and not its own.

    None if it did not: a field manager is a hint, by which the removal is looked at first.
    """
    before = next((one for one, after in pairwise(account.history.tenures) if after is tenure), None)
    is_same = before is not None and before.removal.is_under_other_manager and before.removal.manager == tenure.manager
    return before if is_same else None


def _find_last_loss(findings: Sequence[ReportFinding]) -> Claim | None:
    lost = [one for one in findings if isinstance(one, Claim) and one.check in LOSSES]
    return max(lost, key=lambda one: one.over_since or 2**63, default=None)


def _advise_while_held(account: Account, status: LeaseStatus) -> Advice:
    history = account.history
    # A risk is nothing that is wrong now: a lease that has no other finding is well.
    warnings = [one for one in account.findings if one.severity is Severity.WARNING and one.check not in RISKS]
    loop = None if warnings else _advise_on_loop(account, "It is held now.")
    if (advice := _advise_without_name(account) or _advise_after_restore(account) or loop) is not None:
        return advice
    if known := [one for one in warnings if isinstance(one, Claim)]:
        return _advise_on_mutation(account, known) or _advise_on_warnings(account, known)
    if status.state is LeaseState.UNKNOWN:
        return _advise_when_unknown(account, status)
    if warnings:
        return _advise_to_fix("The lease is held and renewed; fix the finding", warnings[0].fix)
    if history.lease and history.lease.metadata.deletion_timestamp:
        sentence = "The lease is held, but was deleted: it is gone as soon as its finalizers are. To see them:"
        return Advice(sentence, f"{make_command_for_lease(history)} -o yaml")
    if history.is_list_only:
        return Advice("It is held; a lease does not show whether its holder works.")
    if account.is_renewed_as_usual:
        return _advise_when_renewed(account, status)
    if is_used_as_lock(history.tenures):
        return _advise_on_lock(history, "It is")
    return _advise_when_overdue(account, status)


def _advise_without_name(account: Account) -> Advice | None:
    """Return what to check while a lease is renewed without a holder; None if it is not."""
    found = find_nameless_renewals(account.history)
    return None if found is None else advise_on_nameless_renewals(account.history, found)


def _advise_when_overdue(account: Account, status: LeaseStatus) -> Advice:
    """Return what to do if the last renewal is longer ago than most: time after the input's end says nothing."""
    history = account.history
    if account.is_renewed_until_input_ends:
        ended = format_clock(account.coverage.ended, account.now)
        sentence = (
            f"The input ends at {ended}: until then it was renewed as usual, and what followed is not shown. "
            "To see whether it still is:"
        )
        return Advice(sentence, f"{make_command_for_lease(history)} --watch")
    why = "More time has passed since its last renewal than between most renewals. "
    if history.renewals.count < 2:
        why = "The input does not show two renewals by the same process. "
    return _advise_to_check_holder(account, status, why)


def _advise_on_warnings(account: Account, known: Sequence[Claim]) -> Advice:
    """Return what to do about warnings of a lease that is held: first about a loss, unless a thief lost the lease."""
    replaced = (one for one in reversed(known) if one.cause == REPLACED)
    # That no one took it for long is often explained by another finding.
    last = next((one for one in reversed(known) if one.check != "taken-late"), known[-1])
    lost = _find_last_loss(known)
    advice = _advise_on_finding(_find_theft_before(account, lost) or lost or next(replaced, last))
    chooser = account.election.change_of_chooser
    if lost is None or chooser is None:
        return advice
    server = f"Look at the API server {format_name(chooser.before)}, which chose before, too:"
    commands = [one for one in (advice.command, API_SERVERS) if one]
    return replace(advice, sentence=f"{advice.sentence.rstrip(':.')}. {server}", command="; ".join(commands))


def _advise_on_mutation(account: Account, known: Sequence[Claim]) -> Advice | None:
    """Return what to do about writes that are not stored as requested, if that may go on while no loss does."""
    lost = _find_last_loss(known)
    if lost is not None and not lost.is_over:
        return None
    if account.unshown_duration is not None:
        sentence = "The lease may last longer than is asked for. To see what may change it on its way:"
        return Advice(sentence, MUTATORS)
    ongoing = (one for one in known if one.check == "stored-other-than-asked" and one.over_since == 0)
    return next(map(_advise_on_finding, ongoing), None)


def _advise_on_loop(account: Account, start: str) -> Advice | None:
    """Return where to look for why a pod releases the lease again and again; None if none does."""
    loop = find_loop(account.history.tenures, account.now)
    if loop is None:
        return None
    if (who := find_evictor(account.pods.deletions, loop.tenures)) is not None:
        sentence = f"{start} Each release followed a request by {describe_writer(who)} to delete its pod:"
        return Advice(sentence, f"{make_kubectl_prefix(account.history.namespace)} get pods,events")
    sentence = f"{start} See why {loop.who} takes it and releases it again and again:"
    return loop.advise(sentence, account.history.namespace)


def _advise_to_check_holder(account: Account, status: LeaseStatus, why: str) -> Advice:
    history = account.history
    if not status.holder:
        return advise_on_nameless(history, account.tenure)
    pod = find_pod(history, status.holder, account.tenure)
    if history.namespace == NODE_LEASES:
        return Advice(f"{why}Check whether the node runs:", make_command_for_node(history.name))
    command = make_command_for_pod(pod) if pod.name else make_command_for_pod_of_holder(history.namespace, "")
    return Advice(f"{why}Check whether {name_holder(status.holder, pod)} runs:", command, pod.names)


def _advise_when_unknown(account: Account, status: LeaseStatus) -> Advice:
    """Return what to do about a lease of which it is not known until when it is held."""
    history = account.history
    if status.duration is None or status.last_renewal is None:
        sentence = "The lease does not say when it expires, so its own client decides"
        own = history.latest_tenure.processes.taken_by if history.latest_tenure else None
        if own is not None and not own.pod and not UserInfo(own.user).service_account:
            return Advice(
                f"{sentence}; {describe_user(own)} wrote it, not with the token of a pod:",
                f"{make_command_for_lease(history)} -o yaml",
            )
        return advise_on_pod_of_holder(f"{sentence}:", history.namespace, status.holder)
    if status.is_within_skew:
        sentence = "Compare the clocks of the API servers' nodes; see whether the lease is renewed now:"
        return Advice(sentence, f"{make_command_for_lease(history)} --watch")
    if is_constant(history.entries):
        lease = quote_for_shell(f"{history.namespace}/{history.name}")
        sentence = "With the policy file that has its namespace under `stamps`, `why` shows when it was renewed:"
        return Advice(sentence, f"lease-webhook why {lease} --policy FILE")
    return _advise_to_check_holder(account, status, "")


def _advise_after_restore(account: Account) -> Advice | None:
    """Return what to do after etcd was restored; None if it was not, or if the trouble ended later."""
    held = account.tenure
    ends = [one.over_since for one in account.findings if isinstance(one, Claim) and one.over_since is not None]
    if held is None or not held.beginning.is_after_restore or any(end == 0 or end > held.since for end in ends):
        return None
    beside = f"{format_name(held.previous)} may have led beside it until it noticed; " if held.previous else ""
    lost = "writes made after the restored state are lost."
    return Advice(f"It is held and renewed. If etcd was put back, {beside}{lost}")


def _advise_after_changes(account: Account, status: LeaseStatus, changes: FrequentChanges) -> Advice:
    """Return where to look for why a lease that is renewed was taken again and again."""
    history = account.history
    since = f"The lease is held and renewed, but {changes.text} since {format_clock(changes.since, account.now)}"
    ended = [one for one in history.tenures if one.until is not None][-changes.count :]
    if (who := find_evictor(account.pods.deletions, ended)) is not None:
        sentence = f"{since}, each time after {describe_writer(who)} had asked to delete its pod"
        updates = describe_updates(account.related_writes, changes.since)
        pods = f"{make_kubectl_prefix(history.namespace)} get pods,events"
        return Advice(f"{sentence}{updates and f'; {updates}'}:", pods)
    if rolled := describe_templates(list(history.tenures), changes.since, changes.count):
        sets = f"{make_kubectl_prefix(history.namespace)} get replicasets,events"
        return Advice(f"{since}, {rolled}:", sets)
    return advise_on_log_of_writer(f"{since}. Its log may say why:", history.namespace, None, status.holder)


def _advise_when_renewed(account: Account, status: LeaseStatus) -> Advice:
    history = account.history
    changes = find_frequent_changes(history.tenures, account.now)
    odd = _advise_on_edit(account) or (_advise_after_changes(account, status, changes) if changes else None)
    if (advice := odd or _advise_on_deleted_home(account) or _advise_on_work(account)) is not None:
        return advice
    if account.election.candidate_events:
        candidates = f"{make_kubectl_prefix(history.namespace)} get leasecandidates -o yaml"
        return Advice("It is held and renewed. Check whether its candidates should have changed:", candidates)
    if (unlogged := _describe_unlogged(account)) is not None:
        return Advice(unlogged)
    if (advice := _advise_on_users(account)) is not None:
        return advice
    if account.is_partial:
        return Advice("It is held and renewed; what the input does not show may have gone wrong.")
    frequent = _advise_on_frequent_writer(account) or _advise_on_frequent_manager(account)
    if (advice := frequent or advise_on_claimed_times(history)) is not None:
        return advice
    if not status.holder:
        return Advice("It is renewed; a lease does not show whether the process behind it works.")
    if account.pods.worked_at is not None:
        work = f"but its pod wrote other objects, the last time at {format_clock(account.pods.worked_at, account.now)}"
        return Advice(f"{_WORK_UNKNOWN.removesuffix('.')}, {work}.")
    if _find_unanswered_ping(account) is not None:
        return Advice("It is held and renewed.")  # the candidate is the next step
    return Advice(_WORK_UNKNOWN)


def _advise_on_edit(account: Account) -> Advice | None:
    """Return how to see who edited a holder in, as no elector does; None if no one did, or a finding says so."""
    edited, history = list_edited_holders(account.history.tenures), account.history
    if not edited:
        return None
    at = format_clock(edited[-1].since, account.now)
    sentence = f"It is held and renewed, but at {at} a text was written into it that no renewal followed."
    command = make_command_for_audit_log(history.namespace, history.name)
    return Advice(f"{sentence} The audit log shows by whom:", command)


def _advise_on_deleted_home(account: Account) -> Advice | None:
    """Return where to look if the pod of the holder, or the Node of the lease, was deleted; None if none was."""
    history = account.history
    if account.tenure is not None and is_gone(account.pods.deletions, account.tenure):
        sentence = "It is held and was renewed, but its pod has been deleted. See which pods run now:"
        return Advice(sentence, f"{make_kubectl_prefix(history.namespace)} get pods,events")
    if gone := [one for one in account.related_writes if is_of_node(one, history) and one.verb == "deleted"]:
        sentence = (
            f"It is held and renewed, but a request at {format_clock(gone[-1].at, account.now)} asked for the deletion "
            "of its Node. See whether the Node still has its labels, taints and pods:"
        )
        return Advice(sentence, make_command_for_node(history.name))
    return None


def _advise_on_work(account: Account) -> Advice | None:
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


def _advise_on_work_of_writer(account: Account) -> Advice | None:
    """Return where to look if other requests of the pod fail that still writes a lease, which a log does not show."""
    tenure = account.history.latest_tenure
    failing = list(find_present_failures(account.pods.failing, tenure, account.coverage.logged_until))
    last = max((one.last for one in failing), default=0)
    if tenure is None or not failing or tenure.last_renewal < last:
        return None
    pod, at = find_pod(account.history, tenure.holder, tenure), format_clock(last, account.now)
    sentence = f"Its writes of the lease went on, but other requests of its pod failed, the last one at {at}."
    return _advise_on_failures(sentence, pod, failing)


def _advise_on_users(account: Account) -> Advice | None:
    """Return what to do about others that use the lease as it seems not to be meant; None if none is known to."""
    history = account.history
    servers = find_two_servers(history)
    odd = find_taken_back(history) or servers or find_two_addresses(history) or _find_changed_user(account)
    if odd is not None:
        return odd.advise(history)
    if (moved := find_moved_heartbeat(history)) is not None:
        return moved.advise(history)
    if updates := find_conflicting_updates(history):
        return updates[-1].advise()
    if (others := find_other_askers(account)) is not None:
        pods = make_command_for_nodes_of_pods(history.namespace)
        return Advice(f"It is held and renewed. {others.advise()}", pods)
    return None


def _find_changed_user(account: Account) -> ChangedUser | None:
    """Return how the user of the holder changed, unless a finding says that several have held it."""
    is_told = any(one.check == "lease-shared" for one in account.findings)
    return None if is_told else find_changed_user(account.history)


def _describe_unlogged(account: Account) -> str | None:
    """Return what to collect where the log lacks renewals, or what was stored before them; None if it has both."""
    collect = (
        "Collect the logs of all API servers, and compare their audit policies; if a buffer overflowed, "
        "apiserver_audit_error_total counts what was dropped."
    )
    if account.history.read is not None:
        return f"It is held and renewed, as the answer to a read shows, and the log lacks its renewals. {collect}"
    if account.coverage.lacks_requests:
        return f"It is held and renewed, and the log lacks requests for it. {collect}"
    if account.tenure is not None and account.tenure.beginning.is_over_unshown:
        return "It is held and renewed. At level RequestResponse, a log shows what was stored before it took it."
    return None


def _advise_on_frequent_writer(account: Account) -> Advice | None:
    if (stranger := _find_frequent_writer(account)) is None:
        return None
    sentence = f"Find out why {describe_user(stranger)} wrote it again and again."
    # Who only keeps notes on a lease does not attack it.
    edits = (one.writer for one in account.history.edits if one.writer is not None)
    sentence += describe_revocation(account.history, stranger) if any(map(stranger.is_same, edits)) else ""
    return advise_on_writer(sentence, account.history, stranger)


def _advise_on_frequent_manager(account: Account) -> Advice | None:
    """Return how to see who edited a lease again and again, if stamps alone show a field manager; None if none did."""
    history, tenure = account.history, account.tenure
    managers = [one.manager for one in history.edits if one.tenure is tenure and one.manager]
    own = {OF_API_SERVERS, "" if tenure is None else tenure.manager}
    found = next((one for one in reversed(managers) if one not in own and managers.count(one) >= _MIN_WRITES), "")
    if not found:
        return None
    sentence = (
        f"It is held and renewed, but was edited again and again under field manager {format_name(found)}, which its "
        "writer chose. The audit log shows who that is:"
    )
    return Advice(sentence, make_command_for_audit_log(history.namespace, history.name))


def _find_frequent_writer(account: Account) -> Writer | None:
    """Return who besides the holder last wrote a lease again and again, and left holder and renewals as they were."""
    found = [one.foreign.process for one in account.history.idle_writes if one.foreign is not None]
    found = [one for one in found if one.user != API_SERVER]
    return next((one for one in reversed(found) if found.count(one) >= _MIN_WRITES), None)


def _advise_after_expiry(account: Account, status: LeaseStatus) -> Advice:
    history, cause, tenure = account.history, account.cause, account.history.latest_tenure
    if account.doubt.is_log_leaky:
        sentence = "The log lacks requests, and a renewal may be one of them. To see the lease:"
        return Advice(sentence, f"{make_command_for_lease(history)} -o yaml")
    if unlogged := account.doubt.unlogged:
        return Advice(f"{unlogged.advice}. To see the lease:", f"{make_command_for_lease(history)} -o yaml")
    if account.recent_renew_time is not None:
        sentence = "See whether it is renewed now; if so, compare the clocks of its holder and of the API servers:"
        return Advice(sentence, f"{make_command_for_lease(history)} --watch")
    if account.doubt.patient_reader is not None:
        sentence = (
            "See whether it is renewed now. If so, collect the logs of all API servers; if not, see why "
            f"{describe_process(account.doubt.patient_reader)} does not take it:"
        )
        return Advice(sentence, f"{make_command_for_lease(history)} --watch")
    if (rejection := _advise_on_rejected_successors(account, status)) is not None:
        return rejection
    if (foreign := _advise_on_foreign_strategy(account)) is not None:
        return foreign
    if (unserved := account.election.unserved) is not None:
        return _advise_on_unserved_candidates(unserved)
    is_explained = cause is not None and (cause.blame in _EXPLAINED or cause.possible_causes == (Cause.INTERVAL,))
    is_odd = tenure is not None and (
        tenure.is_ambiguous or (tenure.processes.is_never_renewed and not tenure.is_chosen)
    )
    if cause is not None and tenure and (is_explained or is_odd):
        return advise_after_silence(cause, history, tenure, now=account.now)
    if (advice := _advise_on_running_pod(account) or _advise_on_askers(account)) is not None:
        return advice
    return _advise_on_silent_holder(account, status)


def _advise_on_unserved_candidates(unserved: UnservedCandidates) -> Advice:
    """Return what makes an API server choose a holder again, which depends on whether it serves another version."""
    sentence = (
        f"See whether the API server serves another version of LeaseCandidates than {unserved.names}. "
        "If so, upgrade the replicas to it, and see in the log of the API server whether it fails to read one that is "
        "stored in an old version: it chooses no holder then. If not, enable CoordinatedLeaderElection and their API "
        "again, or let the replicas elect without them:"
    )
    return Advice(sentence, API_RESOURCES)


def _advise_on_silent_holder(account: Account, status: LeaseStatus) -> Advice:
    """Return how to see whether a holder runs of which nothing is known since its last renewal, or its node."""
    history, cause, tenure = account.history, account.cause, account.history.latest_tenure
    if account.pods.gone:
        sentence = f"Its pod was {account.pods.gone}. Check whether another replica runs that can take over:"
        return Advice(sentence, f"{make_kubectl_prefix(history.namespace)} get pods,events")
    if cause is not None and (cause.silent_node or cause.named_node) and tenure is not None:
        return advise_after_silence(cause, history, tenure, now=account.now)
    pod = find_pod(history, status.holder, account.tenure)
    holder = name_holder(status.holder, pod)
    sentence = f"Check whether {holder} still runs, and whether another replica runs that can take over:"
    return Advice(sentence, make_command_for_pods(history, pod), pod.names)


def _advise_on_running_pod(account: Account) -> Advice | None:
    """Return what to do about a holder whose pod runs and asks no more; None if it does not, or if others ask."""
    is_asked = account.askers is not None and bool(account.askers.asking)
    if account.cause is None or not account.cause.runs_on or is_asked or account.pods.gone:
        return None
    pod = find_pod(account.history, account.holder, account.tenure)
    sentence = (
        f"The pod of {format_name(account.holder)} ran on, and did not ask for the lease any more. "
        "See its log, and restart the pod if no other replica takes the lease; a new process asks for it, as a rule:"
    )
    return Advice(sentence, make_command_for_log_of_pod(pod), pod.names)


def _advise_on_rejected_successors(account: Account, status: LeaseStatus) -> Advice | None:
    """Return what to do about others than the holder that an API server keeps from taking an expired lease."""
    history = account.history
    if (refusal := _find_refused_successor(account, status)) is not None:
        after = advise_after_refusal(history, refusal, account.now)
        return replace(after, sentence=f"No other can take the lease while its writes are refused. {after.sentence}")
    if webhook := find_failing_webhook(history, status):
        sentence = f"No other can take the lease while webhook {format_name(webhook)}, called for each write, fails"
        return Advice(f"{sentence}. To see it:", WEBHOOKS)
    refused = account.election.refused_candidates
    return advise_on_refused_candidates(refused) if refused else None


def _advise_on_next_of_its_name(account: Account, tenure: Tenure, bound: int) -> Advice:
    """Return where to look for why a pod that has the name of the holder's, and a node, does not ask for the lease."""
    pod = find_pod(account.history, tenure.holder, tenure)
    again = f"the next pod of its name got a node at {format_clock(bound, account.now)}, and has not asked for it"
    sentence = f"Its pod was {account.pods.gone}; {again}, nor has any other. See whether it has started:"
    return Advice(sentence, f"{make_command_for_pod(pod)}; {make_kubectl_prefix(pod.namespace)} get pods,events")


def _advise_on_askers(account: Account) -> Advice | None:
    """Return what to do about an expired lease that no one asks for, or that one asks for and does not take."""
    found = account.askers
    if account.election.other_candidates is not None:
        return account.election.other_candidates.advise()
    if found is None or not account.holder:
        return None
    if not found.asking:
        asks = "asks for it" if found.shows_reads else "tries to take it"
        if account.pods.gone:
            if account.pods.bound_again is not None and account.tenure is not None:
                return _advise_on_next_of_its_name(account, account.tenure, account.pods.bound_again)
            sentence = f"Its pod was {account.pods.gone}, and no other replica {asks}: see whether any runs:"
            return Advice(sentence, f"{make_kubectl_prefix(account.history.namespace)} get pods,events")
        if account.cause is not None and (node := account.cause.silent_node):
            sentence = f"No other replica {asks}, and the node of the holder is silent, too: see whether any runs:"
            pods = f"{make_kubectl_prefix(account.history.namespace)} get pods"
            return Advice(sentence, f"{pods}; {make_command_for_node(node)}")
        pod = find_pod(account.history, account.holder, account.tenure)
        holder = name_holder(account.holder, pod)
        sentence = f"No other replica {asks}: see whether any runs, and whether {holder} still does:"
        return Advice(sentence, make_command_for_pods(account.history, pod), pod.names)
    who, asking = found.asking[0]
    if not who.pod or asking.code >= 400 or account.election.is_coordinated:
        return None
    if found.restarted is not None:
        return _advise_on_restarts(found.restarted, make_pod_of_writer(account.history.namespace, who))
    sentence = f"See why pod {format_name(who.pod)}, which asks for it, does not take it:"
    return advise_on_log_of_writer(sentence, account.history.namespace, who, "")


def _advise_on_restarts(found: RestartedAsker, pod: Pod) -> Advice:
    """Return how to see why a pod restarts that would take the lease: what runs now has logged little."""
    sentence = (
        f"Pod {format_name(found.pod)} asks for it, and may be restarted before it has waited for {found.duration} s; "
        "see its restarts, and why:"
    )
    return Advice(sentence, f"{make_command_for_pod(pod)}; {make_command_for_previous_log(pod)}", pod.names)


def _find_refused_successor(account: Account, status: LeaseStatus) -> Refusal | None:
    """Return the latest write by another process of the holder's user that was refused since the lease has expired.

    A stranger's writes say nothing of what keeps the lease from its own replicas.
    """
    refused = (one for one in list_writes_of_successors(account.history, status) if one.is_denied)
    return max(refused, key=lambda one: one.at, default=None)


def _advise_on_heartbeat(account: Account, status: LeaseStatus) -> Advice:
    """Return what to do about a silent heartbeat: no one else would ever take the lease."""
    namespace, lease = account.history.namespace, account.history.lease
    if account.surroundings.renamed_node is not None:
        return account.surroundings.renamed_node.advise()
    if is_identity_of_api_server(namespace, account.history.name):
        return Advice(f"{describe_server(account.history)} To see all:", API_SERVERS_BY_HOST)
    if namespace == NODE_LEASES:
        return Advice("See why the node does not report:", make_command_for_node(account.history.name))
    kind, _, owner = (find_owner(lease) if lease else "").partition(" ")
    if owner and kind.isalnum():
        command = f"{make_kubectl_prefix(namespace)} describe {quote_name(kind.lower())} {quote_name(owner)}"
        return Advice("Check whether its owner, which clients name, still runs:", command)
    return _advise_to_check_holder(account, status, "")


def _advise_on_finding(finding: ReportFinding) -> Advice:
    if isinstance(finding, Claim):
        return Advice(finding.advice, finding.fix, finding.pods)
    return _advise_to_fix("Fix it", finding.fix)


def _advise_to_fix(start: str, fix: str) -> Advice:
    """Return the fix of a finding, which is a command, words, or both, as a sentence that begins so and a command."""
    words, command = split_fix(fix)
    said = f"{start}: {words}" if words else start
    return Advice(f"{said}{':' if command else '.'}", command)
