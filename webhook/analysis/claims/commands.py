"""The commands that an advice names, and the pod that such a command shows."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.words import format_name
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Writer
from webhook.analysis.named_pods import find_named_pod, guess_named_pod, is_pod_name
from webhook.kubernetes.request import UserInfo
from webhook.text.commands import make_kubectl_prefix, quote_for_shell, quote_name

WATCH: Final = "kubectl get leases -A -w -o json --output-watch-events --show-managed-fields > leases.json"
WEBHOOKS: Final = "lease-webhook doctor"
MUTATORS: Final = "kubectl get mutatingwebhookconfigurations,mutatingadmissionpolicies"


PREVIOUS: Final = "--previous --all-containers --ignore-errors"
"""Options of `kubectl logs`: a container that has not restarted has no previous log, which is an error."""


class Pod(Struct, frozen=True):
    """The pod of a holder, "" if it has none; `is_logged`: a log shows that pod, and not only a text that it chose."""

    namespace: str
    name: str
    is_logged: bool = False
    node: str = ""
    """The node that a holder without a known pod is named for, as processes of its host network are."""

    @property
    def names(self) -> tuple[str, ...]:
        """Its name, if it has one, for the `pods` of an Advice."""
        return (self.name,) if self.name else ()


def advise_on_pod_of_holder(sentence: str, namespace: str, holder: str) -> Advice:
    """Return a sentence, and the command that shows the pod that a holder may name."""
    command = make_command_for_pod_of_holder(namespace, holder)
    return Advice(sentence, command, guess_pod(namespace, holder).names)


def advise_on_log_of_writer(sentence: str, namespace: str, writer: Writer | None, holder: str) -> Advice:
    """Return a sentence, and the command that shows the log of a writer's pod; without one, of what a holder names."""
    pod = find_pod_with_log(namespace, writer, holder)
    logs = make_command_for_log_of_pod(pod) if pod.is_logged else _make_command_for_holder("logs", namespace, holder)
    return Advice(sentence, logs, pod.names)


def make_command_for_pod_of_holder(namespace: str, holder: str) -> str:
    """Return the command that shows the pod of a holder."""
    return _make_command_for_holder("describe pod", namespace, holder)


def find_pod_with_log(namespace: str, writer: Writer | None, holder: str) -> Pod:
    """Return the pod of a writer; if it has none, the one that a holder may name."""
    pod = make_pod_of_writer(namespace, writer) if writer is not None else None
    return pod if pod is not None and pod.name else guess_pod(namespace, holder)


def make_pod_of_writer(namespace: str, writer: Writer) -> Pod:
    """Return the pod of a writer, as a log shows it; `namespace` is that of the lease."""
    return Pod(find_namespace_of_writer(namespace, writer), find_pod_of_writer(writer), is_logged=True)


def guess_pod(namespace: str, holder: str) -> Pod:
    """Return the pod that a holder most likely names; kubelets run outside pods."""
    return Pod(namespace, "" if namespace == NODE_LEASES else guess_named_pod(holder))


def _make_command_for_holder(verb: str, namespace: str, holder: str) -> str:
    if namespace == NODE_LEASES:
        return make_command_for_node(holder)
    where, pod = make_kubectl_prefix(namespace), guess_named_pod(holder)
    return f"{where} {verb} {pod}" if pod else f"{where} get pods"


def make_command_for_node(node: str) -> str:
    """Return the command that shows a node."""
    return f"kubectl describe node {quote_name(node)}"


def make_command_for_quota(namespace: str, name: str) -> str:
    """Return the command that shows a ResourceQuota, what it allows and what is used of it."""
    return f"{make_kubectl_prefix(namespace)} describe resourcequota {quote_name(name)}"


def make_command_for_pod_of_writer(namespace: str, writer: Writer) -> str:
    """Return the command that shows the pod of a writer; `namespace` is that of the lease."""
    where, pod = make_kubectl_prefix(find_namespace_of_writer(namespace, writer)), find_pod_of_writer(writer)
    return f"{where} describe pod {pod}" if pod else f"{where} get pods"


def find_pod_of_writer(writer: Writer) -> str:
    """Return the name of the pod of a writer, for commands; "" if no pod can have it: a log may be forged."""
    return writer.pod if is_pod_name(writer.pod) else ""


def name_pods(writer: Writer) -> tuple[str, ...]:
    """Return the name of the pod of a writer, if it has one, for the `pods` of an Advice."""
    pod = find_pod_of_writer(writer)
    return (pod,) if pod else ()


def find_namespace_of_writer(namespace: str, writer: Writer) -> str:
    """Return where the pod of a writer is: a pod runs in the namespace of its service account."""
    account = UserInfo(writer.user).service_account
    return account[0] if account else namespace


def find_pod(history: LeaseHistory, holder: str, tenure: Tenure | None) -> Pod:
    """Return the pod of a holder: that of its process if a log shows it, else the one that its text may name.

    Kubelets run outside pods.
    """
    if history.namespace == NODE_LEASES:
        return Pod(history.namespace, "")
    own = tenure.processes.own if tenure else None
    if (
        tenure
        and own
        and own.pod
        and not own.impersonator
        and (tenure.processes.is_process_known or tenure.processes.renewals)
    ):
        return make_pod_of_writer(history.namespace, own)
    node = find_node_of_name(history, holder)
    if node or (tenure and find_holder_without_pod(history, tenure)):
        return Pod(history.namespace, "", node=node)
    return guess_pod(history.namespace, holder)


def find_node_of_name(history: LeaseHistory, name: str) -> str:
    """Return the node that a holder, or a candidate, is named for; "" if the input shows none of that name.

    A process in the host network has the name of its machine, and so has no pod: a static pod has another one.
    """
    named = find_named_pod(name)
    return named if named in history.nodes and history.namespace != NODE_LEASES else ""


def make_command_for_pods_of_node(pod: Pod) -> str:
    """Return the command that lists the pods of a namespace on the node that a holder is named for."""
    return f"{make_kubectl_prefix(pod.namespace)} get pods -o wide --field-selector spec.nodeName={pod.node}"


def advise_on_pods_of_node(sentence: str, pod: Pod) -> Advice:
    """Return a sentence, and the command that lists the pods of the node that a holder is named for."""
    where = f"The pods on node {pod.node}, for which it is named:"
    return Advice(f"{sentence} {where}", make_command_for_pods_of_node(pod))


def find_user_without_pod(tenure: Tenure) -> Writer | None:
    """Return the user that a log shows as the holder, unless it is a service account, whose token names a pod."""
    own = tenure.processes.own
    is_pod = own is None or own.pod or own.uid or UserInfo(own.user).service_account
    return None if is_pod or not tenure.processes.renewals else own


def find_holder_without_pod(history: LeaseHistory, tenure: Tenure) -> Writer | None:
    """Return the user that a log shows as the holder, if its token names no pod: of a service account, unlike others'.

    Where no token names a pod, each may be of one.
    """
    own = tenure.processes.own
    if own is None or own.pod or own.uid or not tenure.processes.renewals:
        return None
    owns = (one.processes.own for one in history.tenures)
    are_named = any(one is not None and one.pod for one in owns)
    return own if are_named else find_user_without_pod(tenure)


def name_holder(holder: str, pod: Pod) -> str:
    """Return a holder as part of a sentence: perhaps a pod, if its command shows a pod that no log shows."""
    return f"{format_name(holder)}{', perhaps a pod,' if pod.name and not pod.is_logged else ''}"


def make_command_for_pods(history: LeaseHistory, pod: Pod) -> str:
    """Return the command that lists the replicas, and shows the pod of the holder if it has one."""
    pods = f"{make_kubectl_prefix(history.namespace)} get pods"
    return f"{pods}; {make_command_for_pod(pod)}" if pod.name else pods


def make_command_for_nodes_of_pods(namespace: str) -> str:
    """Return the command that lists pods with their nodes."""
    return f"{make_kubectl_prefix(namespace)} get pods -o wide"


def make_command_for_pod(pod: Pod) -> str:
    """Return the command that shows a pod."""
    return f"{make_kubectl_prefix(pod.namespace)} describe pod {pod.name}"


def make_command_for_log_of_pod(pod: Pod) -> str:
    """Return the command that shows what a pod logged; the pods of the namespace if there is none."""
    return f"{make_kubectl_prefix(pod.namespace)} {f'logs {pod.name}' if pod.name else 'get pods'}"


def make_command_for_previous_log(pod: Pod) -> str:
    """Return the command that shows what containers of a pod logged that have ended: which of several is not known."""
    return f"{make_command_for_log_of_pod(pod)} {PREVIOUS}" if pod.name else make_command_for_log_of_pod(pod)


def make_command_for_pod_or_its_events(pod: Pod) -> str:
    """Return the command that shows a pod; if it is gone, its Events, which stay for an hour."""
    events = f"{make_kubectl_prefix(pod.namespace)} get events --field-selector involvedObject.name={pod.name}"
    return f"{make_command_for_pod(pod)} || {events}"


def make_command_for_rights(verb: str, namespace: str, name: str, writer: Writer) -> str:
    """Return the command that asks whether a writer has the right to `verb` a lease."""
    # RBAC authorizes a creation before the name is known.
    lease = "leases.coordination.k8s.io" if verb == "create" else quote_name(f"leases.coordination.k8s.io/{name}")
    return (
        f"kubectl auth can-i {verb} {lease} -n "
        f"{quote_name(namespace)}{make_options_to_act_as(writer.user, writer.groups)}"
    )


def make_options_to_act_as(user: str, groups: Sequence[str]) -> str:
    """Return the options by which kubectl acts as a user."""
    options = [f" --as={quote_for_shell(user)}"] if user else []
    if not UserInfo(user).service_account:
        # The API server gives a service account its groups, and everyone the last of these.
        options += [f" --as-group={quote_for_shell(one)}" for one in groups if one != "system:authenticated"]
    return "".join(options)


def make_command_for_writers(history: LeaseHistory) -> str:
    """Return the command that lists who may write a lease."""
    return f"lease-webhook writers {quote_name(f'{history.namespace}/{history.name}')}"


def make_command_for_managers(history: LeaseHistory) -> str:
    """Return the command that shows a lease with its field managers."""
    return f"{make_command_for_lease(history)} -o yaml --show-managed-fields"


def make_command_for_audit_log(namespace: str, name: str) -> str:
    """Return the command that explains a lease from the audit log, which names its writers."""
    return f"lease-webhook why {quote_name(f'{namespace}/{name}')} --input AUDIT-LOG"


def make_command_for_lease(history: LeaseHistory) -> str:
    """Return the command that gets a lease, to which options may be added."""
    return f"{make_kubectl_prefix(history.namespace)} get lease {quote_name(history.name)}"
