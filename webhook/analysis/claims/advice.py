"""Advice about a lease: one or two sentences, and a command that fits the cause."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from webhook.admission.rules.change import CLEANUP_CONTROLLERS, NAMESPACE_CONTROLLER, NODE_LEASES
from webhook.admission.rules.stamps import is_constant
from webhook.analysis.audit.leases import find_named_pod, guess_named_pod
from webhook.analysis.audit.repairs import make_repair_command
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.diagnosis import Blame, Diagnosis
from webhook.analysis.claims.handovers import find_frequent_changes, is_used_as_lock
from webhook.analysis.claims.holder_pods import find_evictor, is_gone
from webhook.analysis.claims.words import describe_user, describe_writer, format_clock, format_name
from webhook.analysis.heartbeats import find_owner
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.refusal import By, Refusal
from webhook.analysis.history.rewritten import RewrittenField
from webhook.analysis.history.status import LeaseState, LeaseStatus
from webhook.analysis.history.tenure import API_SERVER, Tenure
from webhook.analysis.inputs.items import Writer
from webhook.analysis.inputs.rewriting import HOLDER_IDENTITY
from webhook.findings import ReportFinding, Severity
from webhook.kubernetes.objects import OLDEST_EMULATION_VERSION
from webhook.kubernetes.request import UserInfo
from webhook.text.commands import fill_in, make_kubectl_prefix, quote_for_shell, quote_name

if TYPE_CHECKING:
    from webhook.analysis.claims.account import Account

REPLACED: Final = "replaced"
"""The cause of a finding about a pod that took over the name and the lease of another one."""
RISKS: Final = frozenset({"timing-tight"})
"""Findings about what may cost a leader its lease one day: nothing that happened."""
LOSSES: Final = frozenset({"leader-lost", "renewal-late"})
"""Findings about a holder that lost the lease, or nearly did."""
WATCH: Final = "kubectl get leases -A -w -o json --output-watch-events --show-managed-fields > leases.json"
_WEBHOOKS: Final = "lease-webhook doctor"
_PRIORITY: Final = "kubectl get --raw /debug/api_priority_and_fairness/dump_priority_levels"
_POLICIES: Final = "kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings -o yaml"
_EXPLAINED: Final = frozenset(
    {Blame.SERVER, Blame.NETWORK, Blame.REFUSED, Blame.THROTTLED, Blame.CONFLICT, Blame.REWRITTEN, Blame.POD}
)
_FREE: Final = frozenset({LeaseState.EXPIRED, LeaseState.RELEASED, LeaseState.NEVER_HELD})
_TERMINATED: Final = "because it is being terminated"
"""Source: kubernetes/apiserver `pkg/admission/plugin/namespace/lifecycle/admission.go`."""
_VERB: Final = re.compile(r'^[^"]*(?:"[^"]*" )?is forbidden: User "[^"]*" cannot ([a-z]{3,20}) resource ')
_QUOTA: Final = re.compile(r" is forbidden: exceeded quota: ([a-z0-9.-]{1,253}),")
"""`exceeded quota` of kubernetes `staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go`."""
_FORBIDDEN: Final = 403
_NODE_USER: Final = "system:node:"
_PRIVILEGED: Final = "system:masters"
"""A group to which no authorizer refuses anything. Source: `SystemPrivilegedGroup` of kubernetes/apiserver."""
MUTATORS: Final = "kubectl get mutatingwebhookconfigurations,mutatingadmissionpolicies"
_MAX_NAMED: Final = 3


class Advice(Struct, frozen=True):
    """Advice in one or two sentences, and the command to run, which may be empty."""

    sentence: str
    command: str = ""


class _Pod(Struct, frozen=True):
    """The pod of a holder, "" if it has none; `is_logged`: a log shows that pod, and not only a text that it chose."""

    namespace: str
    name: str
    is_logged: bool = False


_NEXT_STEPS: Final = {
    Blame.SERVER: Advice(
        "Look at the API server, its etcd and its webhooks (lease-webhook doctor):",
        "kubectl get --raw '/readyz?verbose'",
    ),
    Blame.NETWORK: Advice(
        "Look at the API server and at everything between it and its clients:",
        "kubectl get --raw '/readyz?verbose'; kubectl get nodes",
    ),
    Blame.UNKNOWN: Advice("To know the cause, watch all leases the next time:", WATCH),
}


def make_command_for_pod_of_holder(namespace: str, holder: str) -> str:
    """Return the command that shows the pod of a holder."""
    return _make_command_for_holder("describe pod", namespace, holder)


def make_command_for_log_of_holder(namespace: str, holder: str) -> str:
    """Return the command that shows what a holder logged."""
    return _make_command_for_holder("logs", namespace, holder)


def _make_command_for_holder(verb: str, namespace: str, holder: str) -> str:
    if namespace == NODE_LEASES:
        return _make_command_for_node(holder)
    where, pod = make_kubectl_prefix(namespace), guess_named_pod(holder)
    return f"{where} {verb} {pod}" if pod else f"{where} get pods"


def _make_command_for_node(node: str) -> str:
    return f"kubectl describe node {quote_name(node)}"


def make_command_for_pod_of_writer(namespace: str, writer: Writer) -> str:
    """Return the command that shows the pod of a writer; `namespace` is that of the lease."""
    where, pod = make_kubectl_prefix(_find_namespace(namespace, writer)), find_named_pod(writer.pod)
    return f"{where} describe pod {pod}" if pod else f"{where} get pods"


def _find_namespace(namespace: str, writer: Writer) -> str:
    """Return where the pod of a writer is: a pod runs in the namespace of its service account."""
    account = UserInfo(writer.user).service_account
    return account[0] if account else namespace


def _find_pod(history: LeaseHistory, holder: str, tenure: Tenure | None) -> _Pod:
    """Return the pod of a holder: that of its process if a log shows it, else the one that its text may name.

    Kubelets run outside pods.
    """
    if history.namespace == NODE_LEASES:
        return _Pod(history.namespace, "")
    own = tenure.processes.own if tenure else None
    if tenure and own and own.pod and not own.impersonator and (tenure.processes.is_sure or tenure.processes.renewals):
        return _Pod(_find_namespace(history.namespace, own), find_named_pod(own.pod), is_logged=True)
    if tenure and find_user_without_pod(tenure):
        return _Pod(history.namespace, "")
    return _Pod(history.namespace, guess_named_pod(holder))


def _name_holder(holder: str, pod: _Pod) -> str:
    """Return a holder as part of a sentence, with a doubt if the command takes it for a pod that no log shows."""
    return f"{format_name(holder)}{', perhaps a pod,' if pod.name and not pod.is_logged else ''}"


def _make_command_for_pods(history: LeaseHistory, pod: _Pod) -> str:
    """Return the command that lists the replicas, and shows the pod of the holder if it has one."""
    pods = f"{make_kubectl_prefix(history.namespace)} get pods"
    return f"{pods}; {_describe(pod)}" if pod.name else pods


def _describe(pod: _Pod) -> str:
    return f"{make_kubectl_prefix(pod.namespace)} describe pod {pod.name}"


def _describe_or_list_events(pod: _Pod) -> str:
    """Return the command that shows a pod; if it is gone, its Events, which stay for an hour."""
    events = f"{make_kubectl_prefix(pod.namespace)} get events --field-selector involvedObject.name={pod.name}"
    return f"{_describe(pod)} || {events}"


def make_command_for_rights(verb: str, namespace: str, name: str, writer: Writer) -> str:
    """Return the command that asks whether a writer has the right to `verb` a lease."""
    # RBAC authorizes a creation before the name is known.
    lease = "leases.coordination.k8s.io" if verb == "create" else quote_name(f"leases.coordination.k8s.io/{name}")
    return (
        f"kubectl auth can-i {verb} {lease} -n "
        f"{quote_name(namespace)}{_make_options_to_act_as(writer.user, writer.groups)}"
    )


def _make_options_to_act_as(user: str, groups: Sequence[str]) -> str:
    """Return the options by which kubectl acts as a user."""
    options = [f" --as={quote_for_shell(user)}"] if user else []
    if not UserInfo(user).service_account:
        # The API server gives a service account its groups, and everyone the last of these.
        options += [f" --as-group={quote_for_shell(one)}" for one in groups if one != "system:authenticated"]
    return "".join(options)


def advise_on_writer(sentence: str, history: LeaseHistory, writer: Writer) -> Advice:
    """Return a sentence, and the command that shows who a writer is, or what let it write: a log shows that it could.

    Only what an API server authenticated names it: field managers, user agents and texts of holders anyone may choose.
    """
    if writer.user == API_SERVER:
        return Advice(
            f"{sentence} An API server has every right. To see the lease:", _make_command_for_managers(history)
        )
    if writer.impersonator:
        return _advise_on_impersonator(sentence, history, writer)
    if _PRIVILEGED in writer.groups:
        sentence += f" It is in {_PRIVILEGED}, which has every right. To see the lease:"
        return Advice(sentence, _make_command_for_managers(history))
    if find_named_pod(writer.pod):
        return Advice(
            f"{sentence} To see the pod that did it:", make_command_for_pod_of_writer(history.namespace, writer)
        )
    if not writer.user or _is_user_of_electors(history, writer):
        return advise_on_user_of_electors(sentence, history, writer)
    return Advice(
        f"{sentence} To see what gives {format_name(writer.name)} the right:", _make_command_for_writers(history)
    )


def _advise_on_impersonator(sentence: str, history: LeaseHistory, writer: Writer) -> Advice:
    """Return the command that asks whether one may act as another user: that one may have the right to write."""
    if _PRIVILEGED in writer.impersonator_groups:
        sentence += f" {format_name(writer.impersonator)} is in {_PRIVILEGED}, which has every right. To see the lease:"
        return Advice(sentence, _make_command_for_managers(history))
    account = UserInfo(writer.user).service_account
    whom = quote_name(f"serviceaccounts/{account[1]}" if account else f"users/{writer.user}")
    where = f" -n {quote_name(account[0])}" if account else ""
    options = _make_options_to_act_as(writer.impersonator, writer.impersonator_groups)
    sentence += f" To see whether {format_name(writer.impersonator)} may impersonate {format_name(writer.name)}:"
    return Advice(sentence, f"kubectl auth can-i impersonate {whom}{where}{options}")


def _is_user_of_electors(history: LeaseHistory, writer: Writer) -> bool:
    """Return whether another process of a writer's user held the lease: that user needs the right."""
    owns = (one.processes.own for one in history.tenures)
    return any(one and one.user == writer.user and not one.is_same(writer) for one in owns)


def advise_on_user_of_electors(sentence: str, history: LeaseHistory, writer: Writer) -> Advice:
    """Return a sentence, and the command that shows the pods of an account, of which any may have written."""
    account = UserInfo(writer.user).service_account
    if account is None:
        return Advice(f"{sentence} To see the lease:", _make_command_for_managers(history))
    pods = (
        f"{make_kubectl_prefix(account[0])} get pods --field-selector "
        f"spec.serviceAccountName={quote_for_shell(account[1])}"
    )
    return Advice(f"{sentence} To see the pods of that account:", pods)


def _make_command_for_writers(history: LeaseHistory) -> str:
    return f"lease-webhook writers {quote_name(f'{history.namespace}/{history.name}')}"


def _make_command_for_managers(history: LeaseHistory) -> str:
    return f"{_make_command_for_lease(history)} -o yaml --show-managed-fields"


def make_command_for_audit_log(namespace: str, name: str) -> str:
    """Return the command that explains a lease from the audit log, which names its writers."""
    return f"lease-webhook why {quote_name(f'{namespace}/{name}')} --input AUDIT-LOG"


def _make_command_for_lease(history: LeaseHistory) -> str:
    return f"{make_kubectl_prefix(history.namespace)} get lease {quote_name(history.name)}"


def advise_after_silence(
    cause: Diagnosis, history: LeaseHistory, tenure: Tenure, *, now: int, is_lost: bool = False
) -> Advice:
    """Return where to look after a holder did not renew: if others may write in its name, first who does.

    `is_lost`: another holder has the lease since.
    """
    if tenure.is_ambiguous:
        sentence = f"The audit log shows who writes in the name of {format_name(tenure.holder)}:"
        return Advice(sentence, make_command_for_audit_log(history.namespace, history.name))
    if tenure.processes.is_never_renewed and tenure.processes.taken_by is not None and not tenure.is_chosen:
        return _advise_on_appointed_holder(history, tenure, tenure.processes.taken_by)
    match cause.blame:
        case Blame.CONFLICT:
            sentence = "Find out who else writes the lease, and stop it, or let it write something else:"
            return Advice(sentence, _make_command_for_managers(history))
        case Blame.CLIENT | Blame.POD:
            return _advise_on_silent_client(history, tenure, cause, is_lost=is_lost)
        case Blame.THROTTLED:
            return Advice("See which priority level limits it:", _PRIORITY)
        case Blame.COORDINATED:
            return Advice(
                "To see the candidates:", f"{make_kubectl_prefix(history.namespace)} get leasecandidates -o yaml"
            )
        case Blame.REWRITTEN:
            return advise_on_mutation(history.requests.rewritten.found[HOLDER_IDENTITY])
        case Blame.SERVER | Blame.NETWORK:
            return _advise_after_outage(cause, history, tenure)
    if cause.blame is Blame.REFUSED and cause.refusal is not None:
        return advise_after_refusal(history, cause.refusal, now)
    return _advise_without_cause(history, tenure, is_lost=is_lost)


def _advise_after_deletion(history: LeaseHistory, tenure: Tenure) -> Advice:
    """Return where to look after the pod of a holder was deleted: in its namespace, for others and for the reason."""
    place = _find_namespace(history.namespace, tenure.processes.own or Writer())
    sentence = f"See which pods run now, and why the pod of {format_name(tenure.holder)} was deleted:"
    return Advice(sentence, f"{make_kubectl_prefix(place)} get pods,events")


def _advise_without_cause(history: LeaseHistory, tenure: Tenure, *, is_lost: bool) -> Advice:
    """Return what to do if the input does not show why a holder did not renew."""
    if history.namespace == NODE_LEASES:
        return _advise_on_silent_node(history)
    pod = _find_pod(history, tenure.holder, tenure)
    if not pod.name:
        return _NEXT_STEPS[Blame.UNKNOWN]
    step = _advise_on_pod(tenure, pod, is_lost=is_lost)
    if history.requests.is_logged:
        return step
    sentence = "To know the cause the next time, watch all leases (-A) and keep the audit log."
    return Advice(f"{sentence} {step.sentence}", step.command)


def _advise_on_silent_node(history: LeaseHistory) -> Advice:
    """Return the advice for a silent kubelet: to look at its node."""
    return Advice(f"See why node {format_name(history.name)} did not report:", _make_command_for_node(history.name))


def _advise_on_pod(tenure: Tenure, pod: _Pod, *, is_lost: bool) -> Advice:
    """Return how to see the pod of a holder, if it has one: a text may be chosen that names none."""
    holder, lost = format_name(tenure.holder), ", which lost the lease" if is_lost else ""
    own = tenure.processes.own
    if not pod.is_logged:
        sentence = f"If {holder}{lost and f'{lost},'} is a pod, see it:"
    elif own and tenure.processes.renewals and not tenure.processes.is_pod(own):
        sentence = f"See the pod that renewed as {holder}:"
    else:
        sentence = f"See the pod of {holder}{lost}:"
    return Advice(sentence, _describe_or_list_events(pod))


def advise_on_mutation(rewritten: RewrittenField) -> Advice:
    """Return what to do about writes that are stored differently than requested."""
    configurations = dict.fromkeys(webhook.configuration for webhook in rewritten.webhooks)
    if not configurations or not rewritten.is_named:
        sentence = (
            f"Look for a mutating webhook or policy that sets {rewritten.name} of leases, and exclude leases from it:"
        )
        return Advice(sentence, MUTATORS)
    named = " ".join(quote_name(configuration) for configuration in list(configurations)[:_MAX_NAMED])
    sentence = f"Exclude leases from {name_webhooks(rewritten)}, or have it leave {rewritten.name} alone:"
    return Advice(sentence, f"kubectl get mutatingwebhookconfigurations {named} -o yaml")


def name_webhooks(rewritten: RewrittenField) -> str:
    """Return the webhooks that a log names for what was stored differently than requested."""
    return " and ".join(f"webhook {format_name(webhook.name)}" for webhook in list(rewritten.webhooks)[:_MAX_NAMED])


def _advise_after_outage(cause: Diagnosis, history: LeaseHistory, tenure: Tenure) -> Advice:
    """Return where to look if it was not the holder; at its pod as well, if that may have stopped by itself."""
    if cause.refusal and cause.refusal.failed_webhook:
        webhook = format_name(cause.refusal.failed_webhook)
        return Advice(f"See why webhook {webhook}, which the API server calls for each write, fails:", _WEBHOOKS)
    if cause.is_of_its_writes and cause.refusal and cause.refusal.is_read:
        sentence = (
            "Look at the API server that answered it, and its connection to etcd, in its log and at its own address:"
        )
        return Advice(sentence, "kubectl get --raw '/readyz?verbose'")
    if cause.is_of_its_writes:
        return Advice("Look for a webhook that the API server calls for this lease:", _WEBHOOKS)
    step = _NEXT_STEPS[cause.blame]
    if "stopped" not in cause.possible_causes or tenure.until is None or tenure.processes.heard_again:
        return step
    pod = _find_pod(history, tenure.holder, tenure)
    sentence = f"{step.sentence.removesuffix(':')}; {_name_holder(tenure.holder, pod)} may have stopped by itself:"
    return Advice(sentence, f"{step.command}; {_describe_or_list_events(pod)}" if pod.name else step.command)


def _advise_on_silent_client(history: LeaseHistory, tenure: Tenure, cause: Diagnosis, *, is_lost: bool) -> Advice:
    if cause.blame is Blame.POD:
        return _advise_after_deletion(history, tenure)
    if history.namespace == NODE_LEASES:
        return _advise_on_silent_node(history)
    if cause.possible_causes == ("interval",):
        return _advise_on_rare_renewals(history, tenure)
    if _is_kept_by_another(tenure):
        return advise_after_sharing(history, tenure)
    own = find_user_without_pod(tenure)
    if own is not None and "refused-credentials" in cause.possible_causes:
        sentence = (
            f"Check whether the credentials of {describe_user(own)}, such as a "
            "certificate, have expired. To see the lease:"
        )
        return Advice(sentence, f"{_make_command_for_lease(history)} -o yaml")
    if own is not None:
        sentence = (
            f"Look where {format_name(tenure.holder)} runs: it writes as "
            f"{describe_user(own)}, and not with the token of a pod."
        )
        return advise_on_writer(sentence, history, own)
    pod = _find_pod(history, tenure.holder, tenure)
    if tenure.processes.heard_again and pod.name:
        return _advise_on_heard_pod(tenure, pod, cause, is_lost=is_lost)
    if not pod.name:
        holder = f"{format_name(tenure.holder)}{', which lost the lease,' if is_lost else ''}"
        return Advice(
            f"Check whether {holder} is one of the pods:", f"{make_kubectl_prefix(history.namespace)} get pods"
        )
    return _advise_on_pod(tenure, pod, is_lost=is_lost)


def _advise_on_heard_pod(tenure: Tenure, pod: _Pod, cause: Diagnosis, *, is_lost: bool) -> Advice:
    """Return how to see what a pod did meanwhile: in a container that has ended since, if it restarted."""
    lost, again = ", which lost the lease," if is_lost else "", "" if cause.requests else " again"
    sentence = f"The pod of {format_name(tenure.holder)}{lost} was heard{again}; see what it did meanwhile:"
    logs = f"{make_kubectl_prefix(pod.namespace)} logs {pod.name}"
    return Advice(sentence, f"{logs}; {logs} --previous")


def _is_kept_by_another(tenure: Tenure) -> bool:
    """Return whether another process went on to renew it again and again after the holder's own no longer did."""
    processes = tenure.processes
    return any(processes.others[one].last > tenure.last_renewal for one in processes.sharers[-1:])


def find_user_without_pod(tenure: Tenure) -> Writer | None:
    """Return the user that a log shows as the holder, unless it is a service account, whose token names a pod."""
    own = tenure.processes.own
    is_pod = own is None or own.pod or own.uid or UserInfo(own.user).service_account
    return None if is_pod or not tenure.processes.renewals else own


def _advise_on_appointed_holder(history: LeaseHistory, tenure: Tenure, taker: Writer) -> Advice:
    """Return what to do about a holder that no process is known to renew as."""
    sentence = f"Check whether {format_name(tenure.holder)}, which {describe_writer(taker)} wrote in, exists:"
    return Advice(sentence, f"{make_kubectl_prefix(history.namespace)} get pods")


def advise_on_late_taker(history: LeaseHistory, after: Tenure) -> Advice:
    """Return how to see what a process did before it took the lease."""
    own, pod = find_user_without_pod(after), _find_pod(history, after.holder, after)
    if own is not None:
        sentence = (
            f"See what {format_name(after.holder)} did before it took the lease: it "
            f"writes as {describe_user(own)}, not from a pod."
        )
        return advise_on_writer(sentence, history, own)
    did, logs = (
        "did before it took the lease:",
        f"{make_kubectl_prefix(pod.namespace)} {f'logs {pod.name}' if pod.name else 'get pods'}",
    )
    if pod.is_logged or not pod.name:
        return Advice(f"See what {format_name(after.holder)} {did}", logs)
    return Advice(f"If {format_name(after.holder)} is a pod, see what it {did}", logs)


def advise_on_contest(history: LeaseHistory, last: Tenure, *, is_ongoing: bool, is_known: bool) -> Advice:
    """Return what to do about two that take a lease from each other; `is_known`: they did so themselves."""
    if not is_known:
        return Advice(
            "The audit log shows who wrote it:",
            make_command_for_audit_log(history.namespace, history.name),
        )
    stop = "Both may lead: stop one of them, and find out why they" if is_ongoing else "Find out why they"
    pod = _find_pod(history, last.holder, last)
    return Advice(
        f"{stop} do not wait until the lease expires:", f"{make_kubectl_prefix(pod.namespace)} get pods -o wide"
    )


def _advise_on_rare_renewals(history: LeaseHistory, tenure: Tenure) -> Advice:
    pod, sentence = _find_pod(history, tenure.holder, tenure), "Let it renew several times within the lease's duration."
    if find_user_without_pod(tenure):
        return Advice(f"{sentence} To see the lease:", f"{_make_command_for_lease(history)} -o yaml")
    which = f"pod {pod.name}" if pod.name else "pods"
    command = f"{make_kubectl_prefix(pod.namespace)} get {which} -o jsonpath='{{..args}}'"
    return Advice(f"{sentence} To see its arguments:", command)


def advise_after_refusal(history: LeaseHistory, refusal: Refusal, now: int) -> Advice:
    """Return what to do about writes that are refused, in microseconds since 1970."""
    who = _name_refused(history, refusal)
    held = history.find_tenure_at(refusal.at)
    # An API server that chose the holder took the lease from no one.
    taker = held.processes.doubtful_taker if held and not held.is_chosen else None
    if held and taker and not taker.is_same(refusal.writer) and refusal.by is By.POLICY:
        return advise_on_writer(
            f"{describe_writer(taker)} wrote {format_name(held.holder)} into the lease.", history, taker
        )
    if refusal.by is By.WEBHOOK:
        return Advice(f"See why webhook {format_name(refusal.name)} refuses the writes of {who}:", _WEBHOOKS)
    if refusal.by is By.CREDENTIALS:
        sentence = "The API server did not accept the credentials, such as a token that had expired. To see the pods:"
        return Advice(sentence, f"{make_kubectl_prefix(history.namespace)} get pods")
    if refusal.by is By.POLICY:
        what = "a release, which leaves no holder," if refusal.is_release else "the writes"
        return Advice(f"See why the policy refuses {what} of {who}:", _POLICIES)
    if refusal.by is By.FIELDS:
        return _advise_on_owned_fields(history, refusal, who, now=now)
    if _TERMINATED in refusal.message:
        is_over = not history.is_deleted and history.find_tenure_at(refusal.at) is not history.tenure
        ended = "was being deleted then, and nothing could be created in it. To see whether it is there again:"
        sentence = f"The namespace {ended if is_over else 'is being deleted, and nothing is created in it any more:'}"
        return Advice(sentence, f"kubectl get namespace {quote_name(history.namespace)}")
    if quota := _QUOTA.search(refusal.message):
        sentence = f"A ResourceQuota of the namespace left no room for the write of {who}:"
        return Advice(
            sentence, f"{make_kubectl_prefix(history.namespace)} describe resourcequota {quote_name(quota[1])}"
        )
    if refusal.by is By.OTHER and refusal.code != _FORBIDDEN:
        return _advise_on_malformed_writes(history, refusal, who)
    return _advise_on_missing_rights(history, refusal)


def _advise_on_owned_fields(history: LeaseHistory, refusal: Refusal, who: str, *, now: int) -> Advice:
    """Return what to do about a server-side apply of fields that another manager owns.

    While a holder is live, that refusal is what keeps the lease from others. With force, only a process of the
    holder's account is to apply: to any other one the lease does not belong.
    """
    status, tenure = history.status(now), history.tenure
    own = tenure.processes.own if tenure else None
    if own is None or status is None:
        sentence = f"Another field manager owns what {who} applies."
    elif own.user != refusal.writer.user or refusal.writer.impersonator:
        sentence = f"Let {who} leave out the spec, which the electors write."
    elif status.state in _FREE:
        sentence = (
            f"Once no one leads, let {who} apply with force, or delete the lease; any replica will create it again."
        )
    elif own.is_same(refusal.writer):
        sentence = f"Another field manager owns what {who}, the holder, applies."
    else:
        sentence = (
            f"Do not let {who} apply with force while {format_name(status.holder)} may lead: two leaders would "
            "result. Once no one leads, delete the lease; any replica will create it again."
        )
    return Advice(f"{sentence} To see who owns its fields:", _make_command_for_managers(history))


def _advise_on_malformed_writes(history: LeaseHistory, refusal: Refusal, who: str) -> Advice:
    """Return what to do about writes that are refused whoever makes them: the client decides what it writes."""
    if _find_refused_pods(history, refusal):
        pods = f"{make_kubectl_prefix(_find_namespace(history.namespace, refusal.writer))} get pods,replicasets -o wide"
        return Advice(f"The API server refused what {who} wrote; compare images with the holder's:", pods)
    return Advice(
        f"The API server refused what {who} wrote. To see the lease:", f"{_make_command_for_lease(history)} -o yaml"
    )


def _name_refused(history: LeaseHistory, refusal: Refusal) -> str:
    """Return whose writes were refused: pods, if the holder's, which renews with the same account, is none of them."""
    pods = _find_refused_pods(history, refusal)
    if not pods:
        return format_name(refusal.writer.name) or "the writer"
    return f"{'pod' if len(pods) == 1 else 'pods'} {' and '.join(pods)}"


def _find_refused_pods(history: LeaseHistory, refusal: Refusal) -> list[str]:
    """Return the latest pods that were refused alike, if a pod of the same account has renewed the lease since."""
    tenure = history.holder
    own = tenure.processes.own if tenure and tenure.last_renewal > refusal.at else None
    if own is None or not own.pod or own.user != refusal.writer.user:
        return []
    alike = (one for one in history.requests.refusals if _is_alike(one, refusal))
    pods = list(dict.fromkeys(find_named_pod(one.writer.pod) for one in alike))
    return [] if "" in pods or own.pod in pods else pods[-_MAX_NAMED:]


def _is_alike(refusal: Refusal, other: Refusal) -> bool:
    return refusal.is_denied_write and (refusal.by, refusal.code, refusal.writer.user) == (
        other.by,
        other.code,
        other.writer.user,
    )


def _advise_on_missing_rights(history: LeaseHistory, refusal: Refusal) -> Advice:
    """Return what to do about writes that an authorizer refused."""
    who = format_name(refusal.writer.name) or "the writer"
    if history.namespace == NODE_LEASES and refusal.writer.user.startswith(_NODE_USER):
        return Advice(
            f"The API server refused the writes of {who}. To see the node:", _make_command_for_node(history.name)
        )
    found = _VERB.search(refusal.message)
    verb = found[1] if found else "update"
    known = {one.processes.own.user for one in history.tenures if one.processes.own}
    if refusal.by is By.RIGHTS and _has_written_since(history, refusal):
        sentence = f"{who} may write it now. To see what gives it the right, and who changed that:"
        return Advice(
            sentence, f"{make_kubectl_prefix(history.namespace)} get roles,rolebindings -o yaml --show-managed-fields"
        )
    if refusal.by is not By.RIGHTS:
        what = f"The API server refused what {who} wrote."
    elif known and refusal.writer.user not in known:
        what = f"{who} lacks the right, and did not hold the lease in this input."
    else:
        what = f"{who} needs a Role and RoleBinding that allow {verb} on the lease."
    sentence = f"{what} To see whether it may {verb} it now:"
    return Advice(sentence, make_command_for_rights(verb, history.namespace, history.name, refusal.writer))


def _has_written_since(history: LeaseHistory, refusal: Refusal) -> bool:
    """Return whether a user whose write was refused has renewed the lease since: it has the right again."""
    user, refusals = refusal.writer.user, history.requests.refusals
    denied = (one.at for one in refusals if one.is_denied_write and one.writer.user == user)
    return history.find_last_renewal_by(user) > max(denied, default=refusal.at)


def advise_after_doubtful_deletion(history: LeaseHistory) -> Advice:
    """Return how to see whether a lease was deleted, if a log does not show it."""
    return Advice("The lease may have been deleted. To see whether it exists:", _make_command_for_lease(history))


def advise_after_deletion(history: LeaseHistory, who: Writer) -> Advice:
    """Return what to do after someone deleted a lease that was held."""
    if who.user == NAMESPACE_CONTROLLER:
        sentence = "Its namespace was deleted, and all that was in it. To see whether it exists again:"
        return Advice(sentence, f"kubectl get namespace {quote_name(history.namespace)}")
    if who.user in CLEANUP_CONTROLLERS:
        sentence = "Kubernetes deletes what belongs to an owner that is gone. To see the lease's owner:"
        return Advice(sentence, f"{_make_command_for_lease(history)} -o jsonpath='{{.metadata.ownerReferences}}'")
    return advise_on_writer(f"Decide whether {format_name(who.name)} should delete leases.", history, who)


def advise_after_sharing(history: LeaseHistory, tenure: Tenure) -> Advice:
    """Return what to do about several processes that renew under one identity: of another user, or replicas."""
    last, own = tenure.processes.sharers[-1], tenure.processes.own
    if own is not None and (last.user, last.impersonator) != (own.user, own.impersonator):
        # A user that impersonates an account is not one of its replicas.
        who = own if own.impersonator and not last.impersonator else last
        sentence = f"Find out why {describe_user(who)} renewed it as {format_name(tenure.holder)}."
        return advise_on_writer(sentence, history, who)
    where, pods = (
        make_kubectl_prefix(history.namespace),
        " ".join(quote_name(one) for one in tenure.processes.pods[-3:]),
    )
    sentence = "Give each replica an identity of its own, such as its pod's name:"
    return Advice(sentence, f"{where} describe pods {pods}" if pods else f"{where} get pods")


def advise(account: "Account") -> Advice:
    """Return what a person on call should do about a lease: nothing that the input was already read for."""
    advice, history = _advise(account), account.history
    if advice.command == make_command_for_audit_log(history.namespace, history.name) and history.requests.is_logged:
        sentence = "The log does not show who it was: see whether parts of it are missing. To see the lease:"
        return Advice(sentence, _make_command_for_managers(history))
    return advice


def _advise(account: "Account") -> Advice:
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
    if status.state is LeaseState.EXPIRED and account.is_heartbeat:
        return _advise_on_heartbeat(account, status)
    if status.state is LeaseState.EXPIRED:
        return _advise_after_expiry(account, status)
    if account.written_later is not None:
        clock = "" if status.from_stamps else ", unless its clock is behind"
        sentence = f"A writer other than the holder may have written it after its last renewal{clock}. To see who:"
        return Advice(sentence, make_command_for_audit_log(history.namespace, history.name))
    if status.state in {LeaseState.RELEASED, LeaseState.NEVER_HELD}:
        return _advise_while_free(account)
    return _advise_while_held(account, status)


def _advise_while_free(account: "Account") -> Advice:
    history, where = account.history, make_kubectl_prefix(account.history.namespace)
    strategy = history.lease.spec.strategy if history.lease is not None else None
    if strategy == OLDEST_EMULATION_VERSION:
        return Advice("An API server names the next holder, one of its candidates:", f"{where} get leasecandidates")
    if strategy:
        sentence = f"No API server chooses by the strategy {format_name(strategy)}; check that its implementation runs:"
        return Advice(sentence, f"{where} get leasecandidates")
    asks = "" if history.has_reads_of_holders else "; if none runs, the lease stays free"
    return Advice(f"Any replica may take the lease at once{asks}:", f"{where} get pods")


def _advise_without_lease(account: "Account") -> Advice:
    """Return the advice if its object was never seen, or is gone."""
    history, lease = account.history, _make_command_for_lease(account.history)
    tenure = history.tenure
    if history.hidden_since is not None:
        return Advice("The log may lack what was written since. To see the lease:", f"{lease} -o yaml")
    writes = [one for one in history.requests.refusals if one.is_denied_write]
    refused = [one for one in writes if one.received > history.existence.deleted_at]
    lacks_rights = bool(refused) and refused[-1].by is By.RIGHTS
    deleted_by = tenure.deleted_by if history.is_deleted and tenure else None
    if deleted_by and deleted_by.user in CLEANUP_CONTROLLERS and not lacks_rights:
        return advise_after_deletion(history, deleted_by)
    if refused and (history.is_deleted or history.requests.absent):
        return advise_after_refusal(history, refused[-1], account.now)
    reads = [one for one in history.requests.refusals if one.is_denied]
    if reads and not history.tenures:
        return advise_after_refusal(history, reads[-1], account.now)
    if history.is_deleted and not history.existence.is_deletion_sure:
        return advise_after_doubtful_deletion(history)
    if history.is_deleted:
        return Advice("The lease was deleted; a client that runs and may create it does so:", f"{lease} --watch")
    if history.requests.absent:
        pods = f"{make_kubectl_prefix(history.namespace)} get leases,pods"
        return Advice("It does not exist; its clients create it when they may:", pods)
    sentence = "Only its writes were seen, not the lease:" if history.tenures else "To see the lease:"
    return Advice(sentence, _make_command_for_managers(history))


def _find_pressing_error(account: "Account") -> ReportFinding | None:
    """Return the error to answer: one that goes on, else one after which no holder renewed and then lost the lease."""
    errors = [one for one in account.findings if one.severity is Severity.ERROR]
    over = [one for one in errors if isinstance(one, Claim) and one.is_over]
    going_on = [one for one in errors if one not in over]
    history, lost = account.history, _find_last_loss(account.findings)
    end = 0
    if account.state is LeaseState.EXPIRED:
        end = account.now
    elif lost is not None:
        end = lost.over_since or account.now
    # Who was written into a lease and never renewed it is lost because of that.
    renewed = next((one.last_renewal for one in reversed(history.tenures) if one.since < end), 0)
    return next(iter(going_on or [one for one in over if (one.over_since or account.now) >= renewed]), None)


def _find_last_loss(findings: Sequence[ReportFinding]) -> Claim | None:
    lost = [one for one in findings if isinstance(one, Claim) and one.check in LOSSES]
    return max(lost, key=lambda one: one.over_since or 2**63, default=None)


def _advise_while_held(account: "Account", status: LeaseStatus) -> Advice:
    history = account.history
    # A risk is nothing that is wrong now: a lease that has no other finding is well.
    warnings = [one for one in account.findings if one.severity is Severity.WARNING and one.check not in RISKS]
    if (restored := _advise_after_restore(account)) is not None:
        return restored
    if known := [one for one in warnings if isinstance(one, Claim)]:
        replaced = (one for one in reversed(known) if one.cause == REPLACED)
        # That no one took it for long is often explained by another finding.
        last = next((one for one in reversed(known) if one.check != "taken-late"), known[-1])
        return _advise_on_finding(_find_last_loss(account.findings) or next(replaced, last))
    if status.state is LeaseState.UNKNOWN:
        return _advise_when_unknown(account, status)
    if warnings:
        return Advice("The lease is held and renewed; fix the finding:", warnings[0].fix)
    if history.lease and history.lease.metadata.deletion_timestamp:
        sentence = "The lease is held, but was deleted: it is gone as soon as its finalizers are. To see them:"
        return Advice(sentence, f"{_make_command_for_lease(history)} -o yaml")
    if history.is_moment:
        return Advice("Nothing to do now: it is held.")
    if account.is_renewed_as_usual:
        return _advise_when_renewed(account, status)
    if is_used_as_lock(history.tenures):
        sentence = (
            "It is taken and given up again and again, and not renewed: as a lock for single tasks, and not by a "
            "leader. If that is meant, no action is needed."
        )
        return Advice(sentence)
    return _advise_to_check_holder(account, status, "The input does not show two renewals by the same process. ")


def _advise_to_check_holder(account: "Account", status: LeaseStatus, why: str) -> Advice:
    history = account.history
    pod = _find_pod(history, status.holder, account.tenure)
    if history.namespace == NODE_LEASES:
        return Advice(f"{why}Check whether the node runs:", _make_command_for_node(history.name))
    command = _describe(pod) if pod.name else make_command_for_pod_of_holder(history.namespace, "")
    return Advice(f"{why}Check whether {_name_holder(status.holder, pod)} runs:", command)


def _advise_when_unknown(account: "Account", status: LeaseStatus) -> Advice:
    """Return what to do about a lease of which it is not known until when it is held."""
    history = account.history
    if status.duration is None or status.last_renewal is None:
        sentence = "The lease does not say when it expires, so its own client decides"
        own = history.tenure.processes.taken_by if history.tenure else None
        if own is not None and not own.pod and not UserInfo(own.user).service_account:
            return Advice(
                f"{sentence}; {describe_user(own)} wrote it, not from a pod:",
                f"{_make_command_for_lease(history)} -o yaml",
            )
        return Advice(f"{sentence}:", make_command_for_pod_of_holder(history.namespace, status.holder))
    if is_constant(history.entries):
        lease = quote_for_shell(f"{history.namespace}/{history.name}")
        sentence = "With the policy file that names its namespace in `stamps`, it says when it was renewed:"
        return Advice(sentence, f"lease-webhook why {lease} --policy FILE")
    return _advise_to_check_holder(account, status, "")


def _advise_after_restore(account: "Account") -> Advice | None:
    """Return what a lease means that is as its store was put back; None if it is not, or if something followed that."""
    held = account.tenure
    ends = [one.over_since for one in account.findings if isinstance(one, Claim) and one.over_since is not None]
    if held is None or not held.is_put_back or any(end == 0 or end > held.since for end in ends):
        return None
    beside = f"{format_name(held.previous)} may have led beside it until it noticed; " if held.previous else ""
    lost = "writes made after the restored state are lost."
    return Advice(f"It is held and renewed now. If etcd was put back, {beside}{lost}")


def _advise_when_renewed(account: "Account", status: LeaseStatus) -> Advice:
    history = account.history
    if changes := find_frequent_changes(history.tenures, account.now):
        ended = [one for one in history.tenures if one.until is not None][-changes.count :]
        if (who := find_evictor(account.pod_deletions, ended)) is not None:
            sentence = (
                f"The lease is held and renewed, but its holder changed {changes.count} times since "
                f"{format_clock(changes.since, account.now)}, each time after "
                f"{describe_writer(who)} had asked to delete its pod:"
            )
            return Advice(sentence, f"{make_kubectl_prefix(history.namespace)} get pods,events")
        sentence = (
            f"The lease is held and renewed, but its holder changed {changes.count} times since "
            f"{format_clock(changes.since, account.now)}. Its log may say why:"
        )
        return Advice(sentence, make_command_for_log_of_holder(history.namespace, status.holder))
    if account.tenure is not None and is_gone(account.pod_deletions, account.tenure):
        sentence = "It is held and was renewed, but its pod was deleted then. See which pods run now:"
        return Advice(sentence, f"{make_kubectl_prefix(history.namespace)} get pods,events")
    if account.candidate_events:
        candidates = f"{make_kubectl_prefix(history.namespace)} get leasecandidates -o yaml"
        return Advice("It is held and renewed now. Check whether its candidates should have changed:", candidates)
    if account.is_partial:
        return Advice("It is held and renewed now; what the input does not show may have gone wrong.")
    return Advice("Nothing to do now: it is held and renewed.")


def _advise_after_expiry(account: "Account", status: LeaseStatus) -> Advice:
    history, cause, tenure = account.history, account.cause, account.history.tenure
    if account.is_log_leaky:
        sentence = "The log lacks requests, and a renewal may be one of them. To see the lease:"
        return Advice(sentence, f"{_make_command_for_lease(history)} -o yaml")
    if (refusal := _find_refused_successor(account, status)) is not None:
        after = advise_after_refusal(history, refusal, account.now)
        return Advice(f"No other can take the lease while its writes are refused. {after.sentence}", after.command)
    if account.unserved_at is not None:
        sentence = (
            "The API server holds no coordinated elections: enable CoordinatedLeaderElection and the API of "
            "LeaseCandidates again, or let the replicas elect without them. To see what it serves:"
        )
        return Advice(sentence, "kubectl api-resources --api-group=coordination.k8s.io")
    is_explained = cause is not None and (cause.blame in _EXPLAINED or cause.possible_causes == ("interval",))
    is_odd = tenure is not None and (
        tenure.is_ambiguous or (tenure.processes.is_never_renewed and not tenure.is_chosen)
    )
    if cause is not None and tenure and (is_explained or is_odd):
        return advise_after_silence(cause, history, tenure, now=account.now)
    if (candidates := _advise_on_candidates(account)) is not None:
        return candidates
    pod = _find_pod(history, status.holder, account.tenure)
    holder = _name_holder(status.holder, pod)
    sentence = f"Check whether {holder} still runs, and whether another replica runs that can take over:"
    return Advice(sentence, _make_command_for_pods(history, pod))


def _advise_on_candidates(account: "Account") -> Advice | None:
    """Return what to do about an expired lease that no one asks for, or that one asks for and does not take."""
    found = account.candidates
    if found is None or not account.holder:
        return None
    if not found.asking:
        asks = "asks for it" if found.shows_reads else "tries to take it"
        pod = _find_pod(account.history, account.holder, account.tenure)
        holder = _name_holder(account.holder, pod)
        sentence = f"No other replica {asks}: see whether any runs, and whether {holder} still does:"
        return Advice(sentence, _make_command_for_pods(account.history, pod))
    who, asking = found.asking[0]
    if not who.pod or asking.code >= 400:
        return None
    sentence = f"See why pod {format_name(who.pod)}, which asks for it, does not take it:"
    return Advice(sentence, make_command_for_log_of_holder(account.history.namespace, who.pod))


def _find_refused_successor(account: "Account", status: LeaseStatus) -> Refusal | None:
    """Return the latest write by another process of the holder's user that was refused since the lease has expired.

    A stranger's writes say nothing of what keeps the lease from its own replicas.
    """
    tenure, since = account.history.tenure, status.takeable_at
    own = tenure.processes.own if tenure and tenure.processes.is_sure else None
    if own is None or since is None:
        return None
    refused = (one for one in account.history.requests.refusals if one.is_denied_write and one.at >= since)
    return max(
        (one for one in refused if one.writer.user == own.user and not own.is_same(one.writer)),
        key=lambda one: one.at,
        default=None,
    )


def _advise_on_heartbeat(account: "Account", status: LeaseStatus) -> Advice:
    """Return what to do about a silent heartbeat: no one else would ever take the lease."""
    namespace, lease = account.history.namespace, account.history.lease
    if namespace == NODE_LEASES:
        return Advice("See why the node does not report:", _make_command_for_node(account.history.name))
    kind, _, owner = (find_owner(lease) if lease else "").partition(" ")
    if owner and kind.isalnum():
        command = f"{make_kubectl_prefix(namespace)} describe {quote_name(kind.lower())} {quote_name(owner)}"
        return Advice("Check whether its owner, which clients name, still runs:", command)
    return _advise_to_check_holder(account, status, "")


def _advise_on_finding(finding: ReportFinding) -> Advice:
    if isinstance(finding, Claim):
        return Advice(finding.advice, finding.fix)
    return Advice("Fix it:", finding.fix)
