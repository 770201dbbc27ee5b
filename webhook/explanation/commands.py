"""The commands that a person is advised to run. Names come from anyone, so each is quoted for a shell."""

from typing import Final

from webhook.audit.command_words import kubectl, quoted, word
from webhook.audit.holding import pod_of
from webhook.observations.observation import Writer

API_SERVER: Final = "kubectl get --raw '/readyz?verbose'"
WEBHOOKS: Final = (
    "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml | lease-webhook doctor"
)
POLICIES: Final = "kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings -o yaml"
WATCH: Final = "kubectl get leases -A -w -o json --output-watch-events --show-managed-fields > leases.json"


def pod_of_holder(namespace: str, holder: str) -> str:
    """What happened to the process of a holder."""
    where, pod = kubectl(namespace), pod_of(holder)
    if not pod:
        return f"{where} get pods"
    # --previous prints nothing unless a container was restarted.
    return f"{where} describe pod {pod}; {where} logs {pod}; {where} logs {pod} --previous"


def pod_of_writer(namespace: str, writer: Writer) -> str:
    """Who writes."""
    where, pod = kubectl(namespace), pod_of(writer.pod)
    return f"{where} describe pod {pod}" if pod else f"{where} get pods"


def rights(verb: str, namespace: str, name: str, writer: Writer) -> str:
    """Whether a user may write a lease, and who has rights there."""
    user = f" --as={quoted(writer.user)}" if writer.user else ""
    lease = word(f"leases.coordination.k8s.io/{name}")
    return f"kubectl auth can-i {verb} {lease} -n {word(namespace)}{user}"


def audit_log(namespace: str, name: str) -> str:
    """The same from the log that names who wrote."""
    return f"lease-webhook why {word(f'{namespace}/{name}')} --input AUDIT-LOG"
