"""Advice about a lease: one or two sentences, and a command that fits the cause."""

import re
from typing import Final

from msgspec.structs import replace

from webhook.admission.rules.change import NODE_LEASES
from webhook.admission.rules.stamps import is_constant
from webhook.analysis.audit.repairs import make_repair_command
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.advice.after_silence import advise_on_nameless
from webhook.analysis.claims.advice.on_stored_copies import advise_on_stored_copies
from webhook.analysis.claims.claim import Advice, Claim
from webhook.analysis.claims.commands import (
    advise_on_pod_of_holder,
    find_pod,
    make_command_for_audit_log,
    make_command_for_lease,
    make_command_for_managers,
    make_command_for_node,
    make_command_for_pod,
    make_command_for_pod_of_holder,
    make_command_for_pods_of_node,
    name_holder,
)
from webhook.analysis.claims.evidence.machines.api_servers import (
    API_SERVERS_BY_HOST,
    describe_server,
)
from webhook.analysis.claims.evidence.writers.nameless_renewals import (
    advise_on_nameless_renewals,
    find_nameless_renewals,
)
from webhook.analysis.claims.evidence.writers.stored_copies import find_latest_copies
from webhook.analysis.claims.findings.two_workloads import find_two_workloads
from webhook.analysis.claims.handovers import (
    is_used_as_lock,
)
from webhook.analysis.claims.presentation.advice_by_state.after_expiry import advise_after_expiry
from webhook.analysis.claims.presentation.advice_by_state.on_elections import advise_on_lock, advise_on_loop
from webhook.analysis.claims.presentation.advice_by_state.on_findings import (
    advise_on_finding,
    advise_on_mutation,
    advise_on_warnings,
    advise_to_fix,
    find_pressing_error,
)
from webhook.analysis.claims.presentation.advice_by_state.when_renewed import advise_when_renewed, find_unanswered_ping
from webhook.analysis.claims.presentation.advice_by_state.while_free import advise_while_free
from webhook.analysis.claims.presentation.advice_by_state.without_lease import advise_without_lease
from webhook.analysis.claims.words import (
    describe_user,
    format_clock,
    format_name,
)
from webhook.analysis.heartbeats import find_owner, is_identity_of_api_server
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseState, LeaseStatus
from webhook.findings import Severity
from webhook.kubernetes.request import UserInfo
from webhook.text.commands import fill_in, make_kubectl_prefix, quote_for_shell, quote_name

_RENEWED: Final = re.compile(r"\b(It|The lease) is held and renewed\b")
"""What an advice says of most leases that have not expired; some were taken, and not renewed yet."""
RISKS: Final = frozenset({"timing-tight"})
"""Findings about what may cost a leader its lease one day: nothing that happened."""


def advise(account: Account) -> Advice:
    """Return what a person on call should do about a lease: nothing that the input was already read for."""
    advice, history = _advise(account), account.history
    if account.is_taken_only:
        advice = replace(advice, sentence=_RENEWED.sub(r"\1 is held", advice.sentence, count=1))
    if history.is_mixed:
        return advice
    if account.election.vain is not None:
        return account.election.vain.add_to(advice)
    if (ping := find_unanswered_ping(account)) is not None:
        return ping.add_to(advice)
    if advice.command == make_command_for_audit_log(history.namespace, history.name) and history.requests.is_logged:
        sentence = "The log does not show who it was: see whether parts of it are missing. To see the lease:"
        return Advice(sentence, make_command_for_managers(history))
    return advice


def _advise(account: Account) -> Advice:
    history, status = account.history, account.status
    if history.is_mixed:
        return advise_on_finding(account.findings[0])
    if status is None:
        return advise_without_lease(account)
    stalled = [one for one in account.findings if one.check == "election-stalled"]
    if stalled:
        return Advice("Clear preferredHolder; an API server then names a holder again:", stalled[0].fix)
    if status.block:
        repair = fill_in(make_repair_command(status.block), history.namespace, history.name)
        return Advice("Repair it, or no other replica can follow the holder:", repair)
    if (pressing := _advise_on_pressing(account)) is not None:
        return pressing
    is_beat = account.is_heartbeat or is_identity_of_api_server(history.namespace, history.name)
    if status.state is LeaseState.EXPIRED and is_beat and not account.doubt.unlogged:
        return _advise_on_heartbeat(account, status)
    if status.state is LeaseState.EXPIRED:
        advice = advise_after_expiry(account, status)
        newer = account.surroundings.newer
        first = f"{newer.advise()} " if newer is not None else _describe_switched_off(account)
        return replace(advice, sentence=f"{first}{advice.sentence}")
    if account.written_later is not None:
        clock = "" if status.from_stamps else ", unless its clock is behind"
        sentence = f"A writer other than the holder may have written it after its last renewal{clock}. To see who:"
        return Advice(sentence, make_command_for_audit_log(history.namespace, history.name))
    if status.state in {LeaseState.RELEASED, LeaseState.NEVER_HELD}:
        return advise_while_free(account)
    return _advise_while_held(account, status)


def _advise_on_pressing(account: Account) -> Advice | None:
    """Return what to do first: about one old state that is written again and again, or an error; None of neither."""
    if (copies := find_latest_copies(account.history, account.now)) is not None:
        return advise_on_stored_copies(account.history, copies)
    error = find_pressing_error(account)
    return advise_on_finding(error) if error is not None else None


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


def _advise_while_held(account: Account, status: LeaseStatus) -> Advice:
    history = account.history
    # A risk is nothing that is wrong now: a lease that has no other finding is well.
    warnings = [one for one in account.findings if one.severity is Severity.WARNING and one.check not in RISKS]
    loop = None if warnings else advise_on_loop(account, "It is held now.")
    if (advice := _advise_without_name(account) or _advise_after_restore(account) or loop) is not None:
        return advice
    if known := [one for one in warnings if isinstance(one, Claim)]:
        return advise_on_mutation(account, known) or advise_on_warnings(account, known)
    if status.state is LeaseState.UNKNOWN:
        return _advise_when_unknown(account, status)
    if warnings:
        return advise_to_fix("The lease is held and renewed; fix the finding", warnings[0].fix)
    if history.lease and history.lease.metadata.deletion_timestamp:
        sentence = "The lease is held, but was deleted: it is gone as soon as its finalizers are. To see them:"
        return Advice(sentence, f"{make_command_for_lease(history)} -o yaml")
    if history.is_list_only:
        return Advice("It is held; a lease does not show whether its holder works.")
    if account.is_renewed_as_usual:
        return advise_when_renewed(account, status)
    if is_used_as_lock(history.tenures):
        return advise_on_lock(history, "It is")
    return _advise_when_overdue(account, status)


def _advise_without_name(account: Account) -> Advice | None:
    """Return what to check while a lease is renewed without a holder; None if it is not."""
    found = find_nameless_renewals(account.history)
    return None if found is None else advise_on_nameless_renewals(account.history, found)


def _advise_when_overdue(account: Account, status: LeaseStatus) -> Advice:
    """Return what to do if the last renewal is longer ago than most: time after the input's end says nothing."""
    history = account.history
    if account.is_renewed_until_input_ends:
        if (two := find_two_workloads(account)) is not None:
            return two.advise(history.namespace)
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


def _advise_to_check_holder(account: Account, status: LeaseStatus, why: str) -> Advice:
    history = account.history
    if not status.holder:
        return advise_on_nameless(history, account.tenure)
    pod = find_pod(history, status.holder, account.tenure)
    if history.namespace == NODE_LEASES:
        return Advice(f"{why}Check whether the node runs:", make_command_for_node(history.name))
    command = make_command_for_pod(pod) if pod.name else make_command_for_pod_of_holder(history.namespace, "")
    command = make_command_for_pods_of_node(pod) if pod.node else command
    return Advice(f"{why}Check whether {name_holder(status.holder, pod)} runs:", command, pod.names)


def _advise_when_unknown(account: Account, status: LeaseStatus) -> Advice:
    """Return what to do about a lease of which it is not known until when it is held."""
    history = account.history
    if status.duration is None or status.last_renewal is None:
        return _advise_without_expiry(history, status)
    if status.is_within_skew:
        sentence = "Compare the clocks of the API servers' nodes; see whether the lease is renewed now:"
        return Advice(sentence, f"{make_command_for_lease(history)} --watch")
    if is_constant(history.entries):
        lease = quote_for_shell(f"{history.namespace}/{history.name}")
        sentence = "With the policy file that has its namespace under `stamps`, `why` shows when it was renewed:"
        return Advice(sentence, f"lease-webhook why {lease} --policy FILE")
    return _advise_to_check_holder(account, status, "")


def _advise_without_expiry(history: LeaseHistory, status: LeaseStatus) -> Advice:
    """Return what to do about a lease that does not say when it expires; one that no one renews never does."""
    sentence, for_pod, for_other = "The lease does not say when it expires, so its own client decides", "", ""
    if status.duration is None and not history.is_ever_renewed:
        sentence = "Without a duration and a renewTime the lease stays until someone deletes or changes it"
        for_pod = ". See whether the pod of its holder still runs, and delete the lease only if it has ended"
        for_other = ". See whether its holder still works before you delete it"
    own = history.latest_tenure.processes.taken_by if history.latest_tenure else None
    if own is not None and not own.pod and not UserInfo(own.user).service_account:
        return Advice(
            f"{sentence}; {describe_user(own)} wrote it, not with the token of a pod{for_other}:",
            f"{make_command_for_lease(history)} -o yaml",
        )
    return advise_on_pod_of_holder(f"{sentence}{for_pod}:", history.namespace, status.holder)


def _advise_after_restore(account: Account) -> Advice | None:
    """Return what to do after etcd was restored; None if it was not, or if the trouble ended later."""
    held = account.tenure
    ends = [one.over_since for one in account.findings if isinstance(one, Claim) and one.over_since is not None]
    if held is None or not held.beginning.is_after_restore or any(end == 0 or end > held.since for end in ends):
        return None
    beside = f"{format_name(held.previous)} may have led beside it until it noticed; " if held.previous else ""
    lost = "writes made after the restored state are lost."
    return Advice(f"It is held and renewed. If etcd was put back, {beside}{lost}")


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
