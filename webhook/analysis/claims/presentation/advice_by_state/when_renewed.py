"""Advice on a lease that is held and renewed."""

from typing import Final

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.advice.on_claimed_times import advise_on_claimed_times
from webhook.analysis.claims.advice.on_writers import (
    advise_on_writer,
    describe_revocation,
)
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import (
    advise_on_log_of_writer,
    find_pod,
    make_command_for_audit_log,
    make_command_for_node,
    make_command_for_nodes_of_pods,
    make_command_for_pod,
    make_command_for_previous_log,
)
from webhook.analysis.claims.evidence.coordination.unanswered_pings import UnansweredPing
from webhook.analysis.claims.evidence.machines.moved_heartbeats import find_moved_heartbeat
from webhook.analysis.claims.evidence.pods.holder_pods import find_evictor, is_gone
from webhook.analysis.claims.evidence.pods.rollouts import describe_templates, describe_updates
from webhook.analysis.claims.evidence.writers.related_writes import is_of_node
from webhook.analysis.claims.findings.changed_user import ChangedUser, find_changed_user
from webhook.analysis.claims.findings.conflicting_updates import find_conflicting_updates
from webhook.analysis.claims.findings.other_askers import find_other_askers
from webhook.analysis.claims.findings.taken_back import find_taken_back
from webhook.analysis.claims.findings.two_addresses import find_two_addresses
from webhook.analysis.claims.findings.two_servers import find_two_servers
from webhook.analysis.claims.findings.two_workloads import find_two_workloads
from webhook.analysis.claims.handovers import (
    FrequentChanges,
    find_frequent_changes,
    list_edited_holders,
)
from webhook.analysis.claims.presentation.advice_by_state.on_work import advise_on_work
from webhook.analysis.claims.words import (
    describe_user,
    describe_writer,
    format_clock,
    format_name,
)
from webhook.analysis.history.holders.tenure import API_SERVER
from webhook.analysis.history.status import LeaseStatus
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.managed_fields import OF_API_SERVERS
from webhook.text.commands import make_kubectl_prefix

_WORK_UNKNOWN: Final = "It is held and renewed; a lease does not show whether its holder works."
_MIN_WRITES: Final = 3
"""Fewer writes by others than the holder are listed, and lead to no advice."""


def find_unanswered_ping(account: Account) -> UnansweredPing | None:
    """Return the ping whose candidate is to be looked at; None if another step comes first, which is named.

    It asks for another lease, or no API server chooses among those that answer.
    """
    election = account.election
    if election.other_candidates is not None or election.foreign_strategy:
        return None
    ping = election.unanswered
    return None if ping is None or ping.successor else ping


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
    if (tenure := account.tenure) is not None and tenure.is_coordinated and not account.election.foreign_strategy:
        sentence = f"{since}. API servers choose it by its LeaseCandidates: compare versions and times of creation:"
        return Advice(sentence, f"{make_kubectl_prefix(history.namespace)} get leasecandidates -o yaml")
    return advise_on_log_of_writer(f"{since}. Its log may say why:", history.namespace, None, status.holder)


def advise_when_renewed(account: Account, status: LeaseStatus) -> Advice:
    """Return what to check while a lease is held and renewed."""
    history = account.history
    changes = find_frequent_changes(history.tenures, account.now)
    ended = _advise_on_ended_container(account)
    odd = ended or _advise_on_edit(account) or (_advise_after_changes(account, status, changes) if changes else None)
    if (advice := odd or _advise_on_deleted_home(account) or advise_on_work(account)) is not None:
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
    if find_unanswered_ping(account) is not None:
        return Advice("It is held and renewed.")  # the candidate is the next step
    return Advice(_WORK_UNKNOWN)


def _advise_on_ended_container(account: Account) -> Advice | None:
    """Return how to see why a container of the holder's pod ended after its last write; None if none is known to."""
    tenure = account.tenure
    if tenure is None or not account.pods.end_of_holder:
        return None
    pod = find_pod(account.history, tenure.holder, tenure)
    sentence = "It is held, but a container of its holder's pod has ended since its last write. See why:"
    commands = f"{make_command_for_pod(pod)}; {make_command_for_previous_log(pod)}"
    return Advice(sentence, commands, pod.names) if pod.name else None


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
    two = find_two_workloads(account)
    return two.advise(history.namespace) if two is not None else None


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
