"""Advice about a holder that did not renew, by what caused it."""

from typing import Final

from msgspec.structs import replace

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.claims.advice.after_refusal import advise_after_refusal, advise_on_replaced_account
from webhook.analysis.claims.advice.on_mutation import advise_on_mutation
from webhook.analysis.claims.advice.on_writers import advise_after_sharing, advise_on_writer
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import (
    WATCH,
    WEBHOOKS,
    Pod,
    advise_on_pods_of_node,
    find_holder_without_pod,
    find_namespace_of_writer,
    find_pod,
    find_user_without_pod,
    make_command_for_audit_log,
    make_command_for_lease,
    make_command_for_log_of_pod,
    make_command_for_managers,
    make_command_for_node,
    make_command_for_pod,
    make_command_for_pod_or_its_events,
    make_command_for_pods_of_node,
    make_command_for_previous_log,
    name_holder,
)
from webhook.analysis.claims.diagnosis import Blame, Cause, Diagnosis, RemovedWebhook
from webhook.analysis.claims.evidence.machines.api_servers import API_SERVERS, API_SERVERS_BY_HOST
from webhook.analysis.claims.words import describe_user, describe_writer, format_clock, format_name
from webhook.analysis.history.audit_log.latency import BY_WEBHOOKS
from webhook.analysis.history.audit_log.refusal import AUTHORIZATION_FAILED, Refusal
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Writer
from webhook.analysis.inputs.rewriting import HOLDER_IDENTITY, RENEW_TIME
from webhook.kubernetes.request import UserInfo
from webhook.kubernetes.times import SECOND
from webhook.text.commands import make_kubectl_prefix

_PRIORITY: Final = "kubectl get --raw /debug/api_priority_and_fairness/dump_priority_levels"
API_RESOURCES: Final = "kubectl api-resources --api-group=coordination.k8s.io"
_READY: Final = "kubectl get --raw '/readyz?verbose'"
_NODES: Final = f"kubectl get nodes -L topology.kubernetes.io/zone; {API_SERVERS}"
_NEXT_STEPS: Final = {
    Blame.SERVER: Advice(
        "Look at the API server, its etcd and its webhooks (lease-webhook doctor):",
        _READY,
    ),
    Blame.NETWORK: Advice(
        "Look at the API server and at everything between it and its clients:",
        "kubectl get --raw '/readyz?verbose'; kubectl get nodes",
    ),
}
_ON_ETCD: Final = Advice(
    "Look at etcd, for which the API server waited: its disk, and the network between them:", _READY
)
_WATCH_ALL: Final = Advice("To know the cause, watch all leases the next time:", WATCH)


def advise_after_silence(
    cause: Diagnosis, history: LeaseHistory, tenure: Tenure, *, now: int, is_lost: bool = False
) -> Advice:
    """Return where to look after a holder did not renew: if others may write in its name, first who does.

    `is_lost`: another holder has the lease since.
    """
    advice = _advise_on_other_writer(history, tenure) or _advise_on_only_holder_in_log(
        history, tenure, cause, is_lost=is_lost
    )
    if advice is not None:
        return advice
    if (step := _advise_on_api_servers(cause)) is not None:
        # One that had gone explains enough.
        is_explained = cause.is_server_restarted
        return step if is_explained else _add_pod_that_may_have_stopped(step, cause, history, tenure, now=now)
    match cause.blame:
        case Blame.CONFLICT:
            sentence = "Find out who else writes the lease, and stop it, or let it write something else:"
            return Advice(sentence, make_command_for_managers(history))
        case Blame.CLIENT | Blame.POD:
            return _advise_on_silent_client(history, tenure, cause, is_lost=is_lost)
        case Blame.THROTTLED:
            return Advice("See whether a priority level limits it:", _PRIORITY)
        case Blame.COORDINATED:
            return Advice(
                "To see the candidates:", f"{make_kubectl_prefix(history.namespace)} get leasecandidates -o yaml"
            )
        case Blame.REWRITTEN:
            found = history.requests.rewritten.found
            return advise_on_mutation(found.get(HOLDER_IDENTITY) or found[RENEW_TIME])
        case Blame.SERVER | Blame.NETWORK:
            return _advise_after_outage(cause, history, tenure, now=now)
    if cause.blame is Blame.REFUSED and cause.refusal is not None:
        return _advise_on_refused_holder(cause.refusal, history, tenure, cause, now=now)
    return _advise_without_cause(history, tenure, cause, is_lost=is_lost)


def _advise_on_only_holder_in_log(
    history: LeaseHistory, tenure: Tenure, cause: Diagnosis, *, is_lost: bool
) -> Advice | None:
    """Return the advice if a log stood still in which only the holder renewed: its pod is as likely to have."""
    pod = find_pod(history, tenure.holder, tenure)
    if not cause.is_alone_in_silent_log or not pod.name:
        return None
    step = _advise_on_silent_pod(tenure, pod, cause, is_lost=is_lost)
    log = format_name(cause.silent_log)
    sentence = f"{step.sentence.removesuffix(':')}. Look at the API server that wrote log {log}, too:"
    return Advice(sentence, f"{step.command}; {API_SERVERS}", step.pods)


def _advise_on_api_servers(cause: Diagnosis) -> Advice | None:
    """Return how to see API servers of which a log ends or is silent, or that all leases paused with; else None.

    So are nodes and API servers whose heartbeats stopped while others went on.
    """
    if cause.silent_log:
        sentence = f"Look at the API server that wrote log {format_name(cause.silent_log)}, and at its machine:"
        return Advice(sentence, API_SERVERS)
    if cause.is_server_restarted:
        return Advice("See why that API server had gone, and whether all run now:", API_SERVERS_BY_HOST)
    if cause.has_late_server and not cause.has_lost_heartbeats:
        return Advice("Look at the API server whose lease was late, and at its machine:", API_SERVERS)
    if cause.has_lost_heartbeats and cause.blame is not Blame.CLIENT:
        return Advice("See which nodes and API servers are away, and what they share, such as a zone:", _NODES)
    if cause.is_heard_in_ended_log_only:
        sentence = (
            "See which API servers run now, and why its pod asked only the one whose log ends, as if "
            "KUBERNETES_SERVICE_HOST named that one:"
        )
        return Advice(sentence, API_SERVERS)
    if cause.has_ended_log:
        return Advice("See which API servers run now, and what leads clients to them:", API_SERVERS)
    return Advice("Look at the API server and its etcd:", _READY) if cause.is_shared else None


def _advise_on_refused_holder(
    refusal: Refusal, history: LeaseHistory, tenure: Tenure, cause: Diagnosis, *, now: int
) -> Advice:
    """Return what to do about a holder that was refused, maybe because its pod had been deleted."""
    if cause.deletion:
        return _advise_on_token_of_deleted_pod(history, tenure, cause)
    if cause.token_node:
        node = format_name(cause.token_node)
        sentence = (
            f"The token of {format_name(tenure.holder)} is bound to Node {node}, and to no pod. Once that Node is "
            "deleted, also if another one has its name then, it needs a new token. To see the Node:"
        )
        return Advice(sentence, make_command_for_node(cause.token_node))
    if cause.replaced_account is not None:
        return advise_on_replaced_account(history, refusal, cause.replaced_account, now)
    return advise_after_refusal(history, refusal, now)


def _advise_on_other_writer(history: LeaseHistory, tenure: Tenure) -> Advice | None:
    """Return how to find who writes in the name of a holder, or wrote it there; None if the holder itself did."""
    if tenure.is_ambiguous and tenure.holder:
        sentence = f"The audit log shows who writes in the name of {format_name(tenure.holder)}:"
        return Advice(sentence, make_command_for_audit_log(history.namespace, history.name))
    if tenure.processes.is_never_renewed and tenure.processes.taken_by is not None and not tenure.is_chosen:
        return _advise_on_appointed_holder(history, tenure, tenure.processes.taken_by)
    return None


def _advise_after_deletion(history: LeaseHistory, tenure: Tenure) -> Advice:
    """Return where to look after the pod of a holder was deleted: in its namespace. Who deleted it is said before."""
    place = find_namespace_of_writer(history.namespace, tenure.processes.own or Writer())
    return Advice("See which pods run now, and their events:", f"{make_kubectl_prefix(place)} get pods,events")


def _advise_on_token_of_deleted_pod(history: LeaseHistory, tenure: Tenure, cause: Diagnosis) -> Advice:
    """Return where to look after a pod was deleted whose process asked on: where it ran, if that is known.

    A pod that was deleted by force, or on a node whose kubelet is down, may run on.
    """
    sentence = f"The pod of {format_name(tenure.holder)} was {cause.deletion}"
    if cause.is_end_shown:
        sentence = f"{sentence}, and has ended since, as its kubelet confirmed."
    else:
        sentence = f"{sentence}; its process may still run on its node."
    if node := tenure.processes.node:
        return Advice(f"{sentence} To see the node:", make_command_for_node(node))
    place = find_namespace_of_writer(history.namespace, tenure.processes.own or Writer())
    return Advice(f"{sentence} To see which pods run now:", f"{make_kubectl_prefix(place)} get pods,events -o wide")


def _advise_without_cause(history: LeaseHistory, tenure: Tenure, cause: Diagnosis, *, is_lost: bool) -> Advice:
    """Return what to do if the input does not show why a holder did not renew."""
    if history.namespace == NODE_LEASES:
        return _advise_on_silent_node(history, cause)
    if not tenure.holder:
        return advise_on_nameless(history, tenure)
    if (own := find_holder_without_pod(history, tenure)) is not None and not find_user_without_pod(tenure):
        return _advise_on_user(history, tenure, own, cause)
    if cause.has_other_writers and not history.requests.is_logged:
        sentence = "Find out who else writes the lease, and from the audit log whether that conflicted:"
        return Advice(sentence, make_command_for_managers(history))
    pod = find_pod(history, tenure.holder, tenure)
    if not (pod.name or pod.node):
        return _advise_on_holder(history, tenure, is_lost=is_lost) if history.requests.is_logged else _WATCH_ALL
    step = (
        _advise_on_holder(history, tenure, is_lost=is_lost)
        if pod.node
        else _advise_on_gone_pod(tenure, pod, cause, is_lost=is_lost)
        if cause.gone
        else _advise_on_pod(tenure, pod, is_lost=is_lost)
    )
    if history.requests.is_logged:
        return step
    sentence = "To know the cause the next time, watch all leases (-A) and keep the audit log."
    return replace(step, sentence=f"{sentence} {step.sentence}")


def advise_on_nameless(history: LeaseHistory, tenure: Tenure | None) -> Advice:
    """Return the advice for a silent heartbeat that names no holder."""
    own = tenure.processes.own if tenure else None
    who = f"its writer, {describe_user(own)}," if own else "its writer"
    sentence = f"Check whether {who} runs, and reaches the API server. To see whether it is renewed:"
    return Advice(sentence, f"{make_command_for_lease(history)} --watch")


def _advise_on_silent_node(history: LeaseHistory, cause: Diagnosis) -> Advice:
    """Return the advice for a silent kubelet: to look at its node, unless others were silent at the same time."""
    if cause.has_lost_heartbeats and not history.requests.is_logged:
        sentence = (
            "Heartbeats of others stopped at the same time: look for what they share. Whether the writes of kubelets "
            "were refused, the audit log shows:"
        )
        return Advice(sentence, make_command_for_audit_log(history.namespace, history.name))
    return Advice(f"See why node {format_name(history.name)} did not report:", make_command_for_node(history.name))


def _advise_on_pod(tenure: Tenure, pod: Pod, *, is_lost: bool) -> Advice:
    """Return how to see the pod of a holder, if it has one: a text may be chosen that names none."""
    holder, lost = format_name(tenure.holder), ", which lost the lease" if is_lost else ""
    own = tenure.processes.own
    if not pod.is_logged:
        sentence = f"If {holder}{lost and f'{lost},'} is a pod, see it:"
    elif own and tenure.processes.renewals and not tenure.processes.is_pod(own):
        sentence = f"See the pod that renewed as {holder}:"
    else:
        sentence = f"See the pod of {holder}{lost}:"
    return Advice(sentence, make_command_for_pod_or_its_events(pod), pod.names)


def _advise_after_outage(cause: Diagnosis, history: LeaseHistory, tenure: Tenure, *, now: int) -> Advice:
    """Return where to look if it was not the holder; at its pod as well, if that may have stopped by itself."""
    if cause.refusal and cause.refusal.failed_webhook:
        return _advise_on_failed_webhook(cause.refusal, cause.removed_webhook, history, now=now)
    if cause.waits_for_etcd:
        return _add_pod_that_may_have_stopped(_ON_ETCD, cause, history, tenure, now=now)
    if cause.is_of_its_writes and cause.refusal and cause.refusal.slow_part in BY_WEBHOOKS:
        return Advice("See which webhooks the API server calls for each write, and why they are slow:", WEBHOOKS)
    if cause.is_of_its_writes and cause.refusal and cause.refusal.reason == AUTHORIZATION_FAILED:
        return Advice("Look at the authorizers of the API server, such as a webhook, in its log:", _READY)
    if cause.is_of_its_writes and cause.refusal and cause.refusal.is_unserved:
        return Advice("See what each API server serves, at its own address:", API_RESOURCES)
    if cause.is_of_its_writes and cause.refusal and (cause.refusal.is_read or cause.has_failed_reads):
        sentence = (
            "Look at the API server that answered it, its connection to etcd and the authorizers that it asks, "
            "in its log and at its own address:"
        )
        return Advice(sentence, _READY)
    if cause.is_of_its_writes:
        sentence = (
            "Look at the API server that answered it, and at what that asks for a write, such as etcd and webhooks:"
        )
        return Advice(sentence, f"{_READY}; {WEBHOOKS}")
    return _add_pod_that_may_have_stopped(_NEXT_STEPS[cause.blame], cause, history, tenure, now=now)


def _advise_on_failed_webhook(
    refusal: Refusal, removed: RemovedWebhook | None, history: LeaseHistory, *, now: int
) -> Advice:
    """Return where to look for why the API server could not call a webhook, or what to do once it was `removed`."""
    webhook = format_name(refusal.failed_webhook)
    failed = (one.at for one in history.requests.refusals if one.failed_webhook == refusal.failed_webhook)
    last = max(failed, default=refusal.at)
    if max((one.last_renewal for one in history.tenures), default=0) > last:
        if removed is not None:
            return Advice(
                f"Before {removed.who_installs} again, let {removed.text} leave out leases (coordination.k8s.io): "
                f"webhook {webhook} failed for writes of the lease until {format_clock(last, now)}, and they have "
                "succeeded since that was deleted."
            )
        until = f"until {format_clock(last, now)}, and they have succeeded since"
        return Advice(f"Webhook {webhook} failed for writes of the lease {until}. See why it failed:", WEBHOOKS)
    return Advice(f"See why webhook {webhook}, which the API server calls for writes of the lease, fails:", WEBHOOKS)


def _add_pod_that_may_have_stopped(
    step: Advice, cause: Diagnosis, history: LeaseHistory, tenure: Tenure, *, now: int
) -> Advice:
    """Return advice that looks at the pod of a holder as well, if that may have stopped by itself."""
    is_silent = tenure.until is not None or now - tenure.last_renewal > (tenure.duration or 0) * SECOND
    is_over = bool(tenure.processes.requests_after_loss or cause.gone)
    if Cause.STOPPED not in cause.possible_causes or not (is_silent and tenure.holder) or is_over:
        return step
    pod = find_pod(history, tenure.holder, tenure)
    sentence = f"{step.sentence.removesuffix(':')}; {name_holder(tenure.holder, pod)} may have stopped by itself:"
    command = f"{step.command}; {make_command_for_pod_or_its_events(pod)}" if pod.name else step.command
    command = f"{step.command}; {make_command_for_pods_of_node(pod)}" if pod.node else command
    return Advice(sentence, command, (*step.pods, *pod.names))


def _advise_on_silent_client(history: LeaseHistory, tenure: Tenure, cause: Diagnosis, *, is_lost: bool) -> Advice:
    if cause.blame is Blame.POD:
        return _advise_after_deletion(history, tenure)
    if history.namespace == NODE_LEASES:
        return _advise_on_silent_node(history, cause)
    if not tenure.holder:
        return advise_on_nameless(history, tenure)
    if cause.named_node:
        sentence = f"See node {format_name(cause.named_node)}, which the lease named as its holder, first:"
        return Advice(sentence, make_command_for_node(cause.named_node))
    if cause.possible_causes == (Cause.INTERVAL,):
        return _advise_on_rare_renewals(history, tenure)
    if cause.possible_causes == (Cause.INTERVAL, Cause.STOPPED) and not cause.has_gone_on:
        step = _advise_on_rare_renewals(history, tenure)
        sentence = "Compare how often its holders renew with leaseDurationSeconds. To see their arguments:"
        return replace(step, sentence=sentence)
    if _is_kept_by_another(tenure):
        return advise_after_sharing(history, tenure)
    if (own := find_holder_without_pod(history, tenure)) is not None:
        return _advise_on_user(history, tenure, own, cause)
    pod = find_pod(history, tenure.holder, tenure)
    if not pod.name:
        return _advise_on_holder(history, tenure, is_lost=is_lost)
    return _advise_on_silent_pod(tenure, pod, cause, is_lost=is_lost)


def _advise_on_silent_pod(tenure: Tenure, pod: Pod, cause: Diagnosis, *, is_lost: bool) -> Advice:
    """Return where to see what the pod of a silent holder did: it may be gone, have gone on, or have come back."""
    if cause.gone:
        return _advise_on_gone_pod(tenure, pod, cause, is_lost=is_lost)
    if cause.silent_node:
        return _advise_on_node_of_pod(tenure, cause.silent_node, is_lost=is_lost)
    if cause.has_gone_on:
        lost = ", which lost the lease," if is_lost else ""
        return _advise_on_logs(
            pod, f"The pod of {format_name(tenure.holder)}{lost} went on; see what it did meanwhile:"
        )
    if tenure.processes.requests_after_loss:
        return _advise_on_heard_pod(tenure, pod, cause, is_lost=is_lost)
    return _advise_on_pod(tenure, pod, is_lost=is_lost)


def _advise_on_node_of_pod(tenure: Tenure, node: str, *, is_lost: bool) -> Advice:
    """Return how to see the node of a silent holder that fell silent, too: one that is only cut off runs its pods."""
    lost = ", which lost the lease," if is_lost else ""
    sentence = f"See the node of {format_name(tenure.holder)}{lost} first: if it is only cut off, the pod may run on:"
    if tenure.processes.requests_after_loss:
        again = "was silent, too, and its pod has asked for the lease again"
        sentence = f"The node of {format_name(tenure.holder)}{lost} {again}; see that node first:"
    return Advice(sentence, make_command_for_node(node))


def _advise_on_holder(history: LeaseHistory, tenure: Tenure, *, is_lost: bool) -> Advice:
    """Return how to see whether a holder that names no pod runs: one that is named for a node runs there, perhaps."""
    holder = f"{format_name(tenure.holder)}{', which lost the lease,' if is_lost else ''}"
    if (pod := find_pod(history, tenure.holder, tenure)).node:
        sentence = f"Check whether {holder} is one of the pods on node {pod.node}, for which it is named:"
        return Advice(sentence, make_command_for_pods_of_node(pod))
    return Advice(f"Check whether {holder} is one of the pods:", f"{make_kubectl_prefix(history.namespace)} get pods")


def _advise_on_user(history: LeaseHistory, tenure: Tenure, own: Writer, cause: Diagnosis) -> Advice:
    """Return where to look for a holder that writes without the token of a pod."""
    if Cause.REFUSED_CREDENTIALS in cause.possible_causes and not UserInfo(own.user).service_account:
        sentence = (
            f"Check whether the credentials of {describe_user(own)}, such as a certificate, have expired. "
            "To see the lease:"
        )
        return Advice(sentence, f"{make_command_for_lease(history)} -o yaml")
    sentence = (
        f"Look where {format_name(tenure.holder)} runs: "
        f"it writes as {describe_user(own)}, and not with the token of a pod."
    )
    if (pod := find_pod(history, tenure.holder, tenure)).node:
        return advise_on_pods_of_node(sentence, pod)
    return advise_on_writer(sentence, history, own)


def _advise_on_heard_pod(tenure: Tenure, pod: Pod, cause: Diagnosis, *, is_lost: bool) -> Advice:
    """Return how to see what a pod did meanwhile: in a container that has ended since, if it restarted."""
    lost, again = ", which lost the lease," if is_lost else "", "" if cause.requests else " again"
    what = "it" if is_lost else "the lease"
    sentence = f"The pod of {format_name(tenure.holder)}{lost} asked for {what}{again}; see what it did meanwhile:"
    if cause.status_written:
        sentence = (
            f"The pod of {format_name(tenure.holder)}{lost} asked for {what}{again}, and may have restarted; see why:"
        )
        command = f"{make_command_for_pod(pod)}; {make_command_for_previous_log(pod)}"
        return Advice(sentence, command, pod.names)
    if len(tenure.processes.requests_after_loss) == 1 and not cause.requests:
        whose = f"the pod of {format_name(tenure.holder)}{lost}"
        sentence = f"A request for the lease by {whose} came later; see whether it runs:"
    return _advise_on_logs(pod, sentence)


def _advise_on_gone_pod(tenure: Tenure, pod: Pod, cause: Diagnosis, *, is_lost: bool) -> Advice:
    """Return what to do about a holder whose pod is gone: neither its status nor its log can be asked for."""
    lost = ", which lost the lease," if is_lost else ""
    went_on = "went on, and " if cause.has_gone_on else ""
    sentence = (
        f"The pod of {format_name(tenure.holder)}{lost} {went_on}was {cause.gone}; "
        "its log is gone with it, unless logs are collected. See which pods run now, and their events:"
    )
    return Advice(sentence, f"{make_kubectl_prefix(pod.namespace)} get pods,events")


def _advise_on_logs(pod: Pod, sentence: str) -> Advice:
    logs, previous = make_command_for_log_of_pod(pod), make_command_for_previous_log(pod)
    return Advice(sentence, f"{logs}; {previous}", pod.names)


def _is_kept_by_another(tenure: Tenure) -> bool:
    """Return whether another process went on to renew it again and again after the holder's own no longer did."""
    processes = tenure.processes
    return any(processes.others[one].last > tenure.last_renewal for one in processes.sharers[-1:])


def _advise_on_appointed_holder(history: LeaseHistory, tenure: Tenure, taker: Writer) -> Advice:
    """Return what to do about a holder that no process is known to renew as."""
    sentence = f"Check whether {format_name(tenure.holder)}, which {describe_writer(taker)} wrote in, exists:"
    return Advice(sentence, f"{make_kubectl_prefix(history.namespace)} get pods")


def _advise_on_rare_renewals(history: LeaseHistory, tenure: Tenure) -> Advice:
    pod, sentence = find_pod(history, tenure.holder, tenure), "Let it renew several times within the lease's duration."
    if find_user_without_pod(tenure):
        return Advice(f"{sentence} To see the lease:", f"{make_command_for_lease(history)} -o yaml")
    which = f"pod {pod.name}" if pod.name else "pods"
    command = f"{make_kubectl_prefix(pod.namespace)} get {which} -o jsonpath='{{..args}}'"
    return Advice(f"{sentence} To see its arguments:", command, pod.names)
