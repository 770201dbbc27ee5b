"""Advice after a lease has expired, and no one has taken it."""

from typing import Final

from msgspec.structs import replace

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.advice.after_refusal import advise_after_refusal
from webhook.analysis.claims.advice.after_silence import API_RESOURCES, advise_after_silence
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import (
    WEBHOOKS,
    Pod,
    advise_on_log_of_writer,
    find_pod,
    make_command_for_lease,
    make_command_for_log_of_pod,
    make_command_for_node,
    make_command_for_pod,
    make_command_for_pods,
    make_command_for_previous_log,
    make_pod_of_writer,
    name_holder,
)
from webhook.analysis.claims.diagnosis import Blame, Cause
from webhook.analysis.claims.evidence.contenders.askers import describe_process
from webhook.analysis.claims.evidence.contenders.successors import find_failing_webhook, list_writes_of_successors
from webhook.analysis.claims.evidence.pods.restarted_askers import RestartedAsker
from webhook.analysis.claims.findings.refused_candidates import advise_on_refused_candidates
from webhook.analysis.claims.presentation.advice_by_state.on_elections import advise_on_foreign_strategy
from webhook.analysis.claims.words import (
    format_clock,
    format_name,
)
from webhook.analysis.history.audit_log.refusal import Refusal
from webhook.analysis.history.elections.unserved_candidates import UnservedCandidates
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseStatus
from webhook.analysis.inputs.items import Writer
from webhook.text.commands import make_kubectl_prefix

_EXPLAINED: Final = frozenset(
    {Blame.SERVER, Blame.NETWORK, Blame.REFUSED, Blame.THROTTLED, Blame.CONFLICT, Blame.REWRITTEN, Blame.POD}
)


def advise_after_expiry(account: Account, status: LeaseStatus) -> Advice:
    """Return what to do once a lease has expired and no one has taken it."""
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
    if (foreign := advise_on_foreign_strategy(account)) is not None:
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
    if (denied := _find_denied(account.history, who)) is not None and asking.code == denied.code:
        return advise_after_refusal(account.history, denied, account.now)
    if not who.pod or asking.code >= 400 or account.election.is_coordinated:
        return None
    if found.restarted is not None:
        return _advise_on_restarts(found.restarted, make_pod_of_writer(account.history.namespace, who))
    asks = "reads it" if found.mere_readers else "asks for it"
    sentence = f"See why pod {format_name(who.pod)}, which {asks}, does not take it:"
    return advise_on_log_of_writer(sentence, account.history.namespace, who, "")


def _find_denied(history: LeaseHistory, who: Writer) -> Refusal | None:
    """Return the latest request of a pod for a lease that an API server did not want; None if there is none."""
    holders = {one.processes.own.user for one in history.tenures if one.processes.own is not None}
    if not who.pod or who.user not in holders:
        return None  # what a stranger may not do keeps the lease from no replica
    own = (one for one in reversed(history.requests.refusals) if who.is_same(one.writer))
    return next((one for one in own if one.is_denied), None)


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
