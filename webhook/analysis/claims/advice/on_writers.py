"""Advice about who wrote a lease: took it, deleted it, or renews it under a name that others use, too."""

from typing import Final

from webhook.admission.policy.model import is_always_exempt
from webhook.admission.rules.change import CLEANUP_CONTROLLERS, GARBAGE_COLLECTOR, NAMESPACE_CONTROLLER, NODE_LEASES
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import (
    advise_on_pods_of_node,
    find_namespace_of_writer,
    find_pod,
    find_pod_of_writer,
    find_user_without_pod,
    make_command_for_audit_log,
    make_command_for_lease,
    make_command_for_log_of_pod,
    make_command_for_managers,
    make_command_for_node,
    make_command_for_nodes_of_pods,
    make_command_for_pod,
    make_command_for_pod_of_writer,
    make_command_for_writers,
    make_options_to_act_as,
    name_pods,
)
from webhook.analysis.claims.evidence.contenders.askers import join_names
from webhook.analysis.claims.evidence.writers.foreign_writes import find_own_address
from webhook.analysis.claims.evidence.writers.owners import (
    find_owner_that_held,
    find_owners_added_to,
    is_by_holder,
    name_present_owners,
)
from webhook.analysis.claims.words import describe_user, format_name
from webhook.analysis.history.audit_log.grants import Grant
from webhook.analysis.history.holders.tenure import API_SERVER, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.request import UserInfo
from webhook.text.commands import make_kubectl_prefix, quote_for_shell, quote_name

_PRIVILEGED: Final = "system:masters"
"""A group to which no authorizer refuses anything. Source: `SystemPrivilegedGroup` of kubernetes/apiserver."""


def advise_on_writer(sentence: str, history: LeaseHistory, writer: Writer) -> Advice:
    """Return a sentence, and the command that shows who a writer is, or what let it write: a log shows that it could.

    Only what an API server authenticated names it: field managers, user agents and texts of holders anyone may choose.
    """
    if writer.user == API_SERVER:
        return Advice(
            f"{sentence} An API server has every right. To see the lease:", make_command_for_managers(history)
        )
    if writer.impersonator:
        return _advise_on_impersonator(sentence, history, writer)
    if _PRIVILEGED in writer.groups:
        sentence += f" {format_name(writer.name)} is in {_PRIVILEGED}, which has every right. To see the lease:"
        return Advice(sentence, make_command_for_managers(history))
    if find_pod_of_writer(writer):
        return Advice(
            f"{sentence} To see the pod that did it:",
            make_command_for_pod_of_writer(history.namespace, writer),
            name_pods(writer),
        )
    if not writer.user or _is_user_of_electors(history, writer):
        return advise_on_user_of_electors(sentence, history, writer)
    grant = history.requests.grants.find_to_write(writer.user)
    if grant is None:
        sentence += f" To see what gives {format_name(writer.name)} the right:"
    else:
        sentence += f" {_describe_grant(grant)} the right. To see who else has it:"
    return Advice(sentence, make_command_for_writers(history))


def _describe_grant(grant: Grant) -> str:
    """`RoleBinding shop/db gave it`, as an API server names the binding when it allows a request."""
    place = f"{format_name(grant.binding.namespace)}/" if grant.binding.namespace else ""
    whom = f"group {format_name(grant.group)}" if grant.group else "it"
    return f"{grant.binding.kind} {place}{format_name(grant.binding.name)} gave {whom}"


def describe_revocation(history: LeaseHistory, who: Writer, *, is_address_told: bool = False) -> str:
    """Say from where a service account that is no pod wrote, and what revokes its token; "" if others ask from there.

    With a ServiceAccount all its tokens end, so that is not said of the account of other holders. How users of other
    kinds are revoked, Kubernetes does not know.
    """
    address, is_account = find_own_address(history, who), UserInfo(who.user).service_account is not None
    if not address or not is_account or who.impersonator or _is_user_of_electors(history, who):
        return ""
    revokes = f"ServiceAccount {format_name(who.name)} revokes a stolen token."
    if is_address_told:
        return f" Deleting {revokes}"
    return f" It wrote from {format_name(address)}; deleting {revokes}"


def _advise_on_impersonator(sentence: str, history: LeaseHistory, writer: Writer) -> Advice:
    """Return the command that asks whether a writer may impersonate: that user may have the right to write."""
    if _PRIVILEGED in writer.impersonator_groups:
        sentence += f" {format_name(writer.impersonator)} is in {_PRIVILEGED}, which has every right. To see the lease:"
        return Advice(sentence, make_command_for_managers(history))
    account = UserInfo(writer.user).service_account
    whom = quote_name(f"serviceaccounts/{account[1]}" if account else f"users/{writer.user}")
    where = f" -n {quote_name(account[0])}" if account else ""
    options = make_options_to_act_as(writer.impersonator, writer.impersonator_groups)
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
        return Advice(f"{sentence} To see the lease:", make_command_for_managers(history))
    pods = (
        f"{make_kubectl_prefix(account[0])} get pods --field-selector "
        f"spec.serviceAccountName={quote_for_shell(account[1])}"
    )
    return Advice(f"{sentence} To see the pods of that account:", pods)


def advise_on_late_taker(
    history: LeaseHistory,
    after: Tenure,
    *,
    has_run: bool,
    is_only: bool = False,
    is_unheard: bool = False,
    scheduler: Writer | None = None,
    refused_until: str = "",
) -> Advice:
    """Return how to see what a process did before it took the lease; of one that came late, what others did.

    `is_only`: no other was left that could have taken it, so it matters why this one came late. `is_unheard`: its pod
    had not asked for it before, so its container need not have started, and a log has nothing of that time then.
    `scheduler`: who gave its pod a node, if that is another one than that of Kubernetes. `refused_until`: when pods
    were refused last that may have taken it.
    """
    own, pod = find_user_without_pod(after), find_pod(history, after.holder, after)
    if own is not None:
        sentence = (
            f"See what {format_name(after.holder)} did before it took the lease: "
            f"it writes as {describe_user(own)}, not with the token of a pod."
        )
        if pod.node:
            return advise_on_pods_of_node(sentence, pod)
        # What gives a part of the control plane its rights says nothing of what it did.
        return Advice(sentence) if own.user.startswith("system:") else advise_on_writer(sentence, history, own)
    if not has_run and scheduler is not None and pod.name:
        place = make_kubectl_prefix(find_namespace_of_writer(history.namespace, scheduler))
        sentence = f"See why {describe_user(scheduler)} gave the pod no node before:"
        return Advice(sentence, f"{make_command_for_pod(pod)}; {place} get pods,events", pod.names)
    if not has_run and refused_until:
        sentence = f"New pods were refused until {refused_until}, as is listed. See whether they still are:"
        return Advice(sentence, f"{make_kubectl_prefix(pod.namespace)} get events,pods")
    if not has_run and is_only and pod.name:
        sentence = (
            "No other pod was left that had asked for it. See why this one got no node before, and the taints of nodes:"
        )
        taints = "kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints"
        return Advice(sentence, f"{make_command_for_pod(pod)}; {taints}", pod.names)
    if not has_run:
        sentence = (
            "See why no other pod took the lease earlier, for example in the events of the pods that existed then:"
        )
        return Advice(sentence, f"{make_kubectl_prefix(pod.namespace)} get events,pods")
    did, logs = "did before it took the lease:", make_command_for_log_of_pod(pod)
    if is_unheard and pod.is_logged and pod.name:
        sentence = f"See when {format_name(after.holder)} started, and why not before:"
        return Advice(sentence, f"{make_command_for_pod(pod)}; {logs}", pod.names)
    if pod.is_logged or not pod.name:
        return Advice(f"See what {format_name(after.holder)} {did}", logs, pod.names)
    # A container that had not started has logged nothing of that time.
    sentence = f"If {format_name(after.holder)} is a pod, see when it started, then its log:"
    return Advice(sentence, make_command_for_pod(pod), pod.names)


def advise_on_contest(history: LeaseHistory, last: Tenure, *, is_ongoing: bool, is_known: bool) -> Advice:
    """Return what to do about two that take a lease from each other; `is_known`: they did so themselves."""
    if not is_known:
        return Advice(
            "The audit log shows who wrote it:",
            make_command_for_audit_log(history.namespace, history.name),
        )
    stop = "Both may lead: stop one of them, and find out why they" if is_ongoing else "Find out why they"
    pod = find_pod(history, last.holder, last)
    return Advice(f"{stop} do not wait until the lease expires:", make_command_for_nodes_of_pods(pod.namespace))


def advise_after_doubtful_deletion(history: LeaseHistory) -> Advice:
    """Return how to see whether a lease was deleted, if a log does not show it."""
    return Advice("The lease may have been deleted. To see whether it exists:", make_command_for_lease(history))


def advise_in_terminated_namespace(history: LeaseHistory) -> Advice:
    """Return how to see what keeps a namespace that is being deleted: often finalizers of what is left in it."""
    sentence = (
        "The lease could not be created, because its namespace was being deleted. A namespace stays until everything "
        "in it is gone, and waits for the finalizers of what is left. To see what is left, in status.conditions:"
    )
    return Advice(sentence, f"kubectl get namespace {quote_name(history.namespace)} -o yaml")


def advise_after_deletion(history: LeaseHistory, before: Tenure, who: Writer) -> Advice:
    """Return what to do after someone deleted a lease that `before` held."""
    if who.user == NAMESPACE_CONTROLLER and _is_being_terminated(history):
        return advise_in_terminated_namespace(history)
    if who.user == NAMESPACE_CONTROLLER:
        sentence = "The namespace of the lease was deleted with everything in it. To see whether it exists again:"
        return Advice(sentence, f"kubectl get namespace {quote_name(history.namespace)}")
    if who.user in CLEANUP_CONTROLLERS and history.namespace == NODE_LEASES:
        sentence = "Kubernetes deletes the lease of a node with its Node. To see whether the Node exists again:"
        return Advice(sentence, make_command_for_node(history.name))
    if who.user == GARBAGE_COLLECTOR and (owner := find_owner_that_held(history, before)):
        sentence = f"See why pod {owner.name} was gone; if its node is cut off, it may run on there:"
        selector = f"--field-selector involvedObject.name={quote_name(owner.name or '')}"
        return Advice(sentence, f"{make_kubectl_prefix(history.namespace)} get events {selector}")
    if who.user in CLEANUP_CONTROLLERS:
        sentence = "Kubernetes deletes an object if none of the owners that it names exists."
        added = find_owners_added_to(history, before)
        if added and added.writer and added.writer.name and not is_by_holder(added):
            sentence += f" Find out why {format_name(added.writer.name)} added an owner to the lease."
            return advise_on_writer(sentence, history, added.writer)
        if owners := name_present_owners(history):
            sentence += f" The lease now names {owners}. To see the field manager that set its owners:"
            return Advice(sentence, make_command_for_managers(history))
        # Neither a deleted lease nor the next one of its name shows what owners it had.
        return Advice(f"{sentence} To see who may add an owner:", make_command_for_writers(history))
    again = before.deletion.created_again_by
    if again is not None and again.process == who.process:
        # As Helm does with a hook of the policy before-hook-creation.
        sentence = (
            f"{format_name(who.name)} deletes the lease and creates it again, while whoever held it may lead on: leave "
            "the Lease out of what it deploys, such as a chart."
        )
        return advise_on_writer(sentence, history, who)
    names = join_names(_list_deleters(history, before, who))
    return advise_on_writer(f"Decide whether {names} should delete leases.", history, who)


def _list_deleters(history: LeaseHistory, before: Tenure, who: Writer) -> list[str]:
    """Return who deleted a lease that another one held, in order, up to `who`, who deleted that of `before`.

    Two who did not know of each other are both to be asked; what Kubernetes deletes is no one's decision.
    """
    ended = [one for one in history.tenures if one.since < before.since and one.deletion.is_sure]
    earlier = [one.deletion.by for one in ended if one.is_deleted_by_itself is False and not one.had_expired]
    people = [one for one in earlier if one and one.name and one.user not in CLEANUP_CONTROLLERS]
    others = dict.fromkeys(format_name(one.name) for one in people if one.name != who.name)
    return [*others, format_name(who.name)]


def _is_being_terminated(history: LeaseHistory) -> bool:
    """Return whether the last write after a lease was deleted was refused because its namespace was not gone yet."""
    writes = [one for one in history.requests.refusals if not one.is_read]
    later = [one for one in writes if one.received > history.existence.deleted_at]
    return history.is_deleted and bool(later) and later[-1].is_in_terminated_namespace


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
    if len(set(tenure.processes.pods)) == 1:
        # A pod that is deleted by force, or whose node is cut off, may run on while the next one has its name.
        sentence = "Check whether an earlier pod of that name still runs, on an unreachable node:"
        return Advice(sentence, f"{where} get pods,nodes -o wide")
    sentence = "Give each replica an identity of its own, such as its pod's name:"
    if tenure.processes.is_shared_without_names:
        sentence = "Let what renews the lease see first who holds it, and stop its work if another one does:"
    return Advice(sentence, f"{where} describe pods {pods}" if pods else f"{where} get pods")


def describe_strict(who: Writer) -> str:
    """Say what preset strict does with a steal or a release by another; without stamps a denial weakens to a warning.

    It denies neither to a user whom every policy exempts.
    """
    if is_always_exempt(UserInfo(who.user, who.groups)):
        return ""
    return " (this webhook, with preset strict, denies that where it stamps leases)"
