"""Advice where there is no lease: it was deleted, never created, or is not shown."""

from collections.abc import Sequence

from webhook.admission.rules.change import CLEANUP_CONTROLLERS, NODE_LEASES
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.advice.after_refusal import advise_after_refusal
from webhook.analysis.claims.advice.on_writers import (
    advise_after_deletion,
    advise_after_doubtful_deletion,
)
from webhook.analysis.claims.claim import Advice, Claim
from webhook.analysis.claims.commands import (
    find_pod,
    make_command_for_audit_log,
    make_command_for_lease,
    make_command_for_log_of_pod,
    make_command_for_managers,
    make_command_for_node,
)
from webhook.analysis.claims.evidence.contenders.askers import join_names
from webhook.analysis.claims.evidence.contenders.namesakes import find_askers_without_elector
from webhook.analysis.claims.evidence.machines.api_servers import (
    advise_after_end_of_api_server,
)
from webhook.analysis.claims.evidence.pods.holder_pods import find_evictor
from webhook.analysis.claims.evidence.pods.rollouts import describe_updates
from webhook.analysis.claims.evidence.writers.sole_writers import find_sole_manager, find_sole_writer
from webhook.analysis.claims.evidence.writers.writers_in_turn import find_writers_in_turn
from webhook.analysis.claims.findings.refused_candidates import advise_on_refused_candidates
from webhook.analysis.claims.presentation.advice_by_state.on_findings import advise_on_finding
from webhook.analysis.claims.presentation.advice_by_state.on_work import advise_on_work_of_writer
from webhook.analysis.claims.words import (
    describe_writer,
    format_clock,
    format_count,
    format_name,
)
from webhook.analysis.heartbeats import find_owner, is_identity_of_api_server
from webhook.analysis.history.audit_log.refusal import Refusal, RefusedBy
from webhook.analysis.history.lease import LeaseHistory
from webhook.kubernetes.objects import Lease
from webhook.text.commands import make_kubectl_prefix, quote_name


def advise_without_lease(account: Account) -> Advice:
    """Return the advice if its object was never seen, or is gone."""
    history, lease = account.history, make_command_for_lease(account.history)
    tenure = history.latest_tenure
    if unreadable := [one for one in account.findings if one.check == "object-types"]:
        return advise_on_finding(unreadable[0])
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
    turns = history.rival.turns[-1] if history.rival.turns else None
    if turns is not None and turns.is_in_turn and turns.is_ongoing(account.now):
        sentence = "Both may lead: see whether its holder changes again and again, and stop one of them then:"
        return Advice(sentence, f"{make_command_for_lease(history)} --watch")
    if (in_turn := _advise_on_writers_in_turn(account)) is not None:
        return in_turn
    if (work := advise_on_work_of_writer(account) or _advise_on_job(account)) is not None:
        return work
    shared = next((one for one in account.findings if isinstance(one, Claim) and one.check == "lease-shared"), None)
    identities = shared.arguments.get("identities") if shared is not None else None
    if shared is not None and isinstance(identities, list) and all("/" in one for one in identities):
        return advise_on_finding(shared)  # service accounts, as those of two applications
    cut = ", as the API server cut its events off (audit.k8s.io/truncated)" if history.requests.is_cut_off else ""
    sentence = (
        f"The input shows who wrote the lease, and not what{cut}. To see it:"
        if history.tenures
        else "To see the lease:"
    )
    return Advice(sentence, make_command_for_managers(history))


def _advise_on_job(account: Account) -> Advice | None:
    """Return how to see whether the Job has ended of which a pod wrote the lease last; None if no log shows that."""
    return account.pods.job.advise(account.now) if account.pods.job is not None else None


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
    # Of a single lease that does not exist, kubectl watches nothing.
    wanted = f"--field-selector metadata.name={quote_name(history.name)}"
    return Advice(sentence, f"{make_kubectl_prefix(history.namespace)} get leases {wanted} --watch")


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
