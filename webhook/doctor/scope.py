"""Which leases an entry reviews: wildcards, namespaces, labels by which a write evades review."""

from collections.abc import Iterable
from typing import Final

from webhook.doctor.availability import drops_renewals
from webhook.doctor.configuration import MUTATING, Entry
from webhook.doctor.diagnosis import Diagnosis
from webhook.doctor.namespaces import NAMESPACE_NAME, may_select
from webhook.rules.well_known import KUBE_SYSTEM, NODE_LEASES

CHOICES: Final = {KUBE_SYSTEM: "control-plane", NODE_LEASES: "node-leases"}
"""Namespaces that may be reviewed if that is intended, and the annotation that declares it."""

_RISKS: Final = {
    KUBE_SYSTEM: "kube-controller-manager and kube-scheduler elect here. While the webhook does not answer they may"
    " not get their lease, and without them the webhook's pods are not restored (kubernetes/kubernetes#90217).",
    NODE_LEASES: "every kubelet renews here every 10 s. A node whose heartbeat fails for 40 s is marked NotReady, and"
    " its pods are moved; with the webhook down that can be all nodes at once.",
}


def check_wildcards(entry: Entry) -> Iterable[Diagnosis]:
    """Rules name group and resources; a wildcard matches leases by accident."""
    for number, rule in enumerate(entry.webhook.rules or ()):
        if rule.is_wild and (rule.matches("leases") or rule.matches("leasecandidates")):
            yield Diagnosis(
                "wildcard",
                entry.place(f"rules[{number}]", f"groups {_list(rule.api_groups)}, resources {_list(rule.resources)}"),
                "a wildcard matches leases together with everything else: every renewal of every leader then waits for"
                " this webhook, and kinds that are added to the group later are sent to it too.",
                "name the resources: apiGroups [coordination.k8s.io], resources [leases], [leasecandidates]; in a"
                " webhook that is not about leases, leave the group out.",
            )


def check_mutation(entry: Entry) -> Iterable[Diagnosis]:
    """No webhook changes leases."""
    if entry.configuration.kind == MUTATING:
        yield Diagnosis(
            "mutates-leases",
            f"kind: {MUTATING}",
            "a lease that a webhook changes is not what its holder wrote: clients compare, and lose or repeat their"
            " election. Kubernetes advises never to mutate node leases.",
            "leave leases and leasecandidates out of its rules; register lease-webhook as a"
            " ValidatingWebhookConfiguration.",
        )


def check_namespaces(entry: Entry) -> Iterable[Diagnosis]:
    """The control plane, the nodes and the webhook itself do not depend on the webhook."""
    selector = entry.webhook.namespace_selector
    for namespace, choice in CHOICES.items():
        if may_select(selector, namespace) and not (entry.has_chosen(choice) and _is_careful(entry)):
            yield Diagnosis(
                f"{choice}-in-scope",
                entry.place("namespaceSelector", f"selects {namespace}"),
                _RISKS[namespace],
                f"{_exclude(namespace)} If it is intended (component {choice}): failurePolicy Ignore, timeoutSeconds of"
                f" at most 2, the renewal condition, and the annotation lease-webhook/{choice}: reviewed.",
            )
    service = entry.webhook.client_config.service
    if service and service.namespace not in CHOICES and may_select(selector, service.namespace):
        yield Diagnosis(
            "own-namespace-in-scope",
            entry.place("namespaceSelector", f"selects {service.namespace}"),
            "writes of leases in the webhook's own namespace wait for the webhook, so an operator or a sidecar that"
            " elects a leader there, and is needed to restore the webhook, can wait for itself.",
            _exclude(service.namespace),
        )


def check_labels(entry: Entry) -> Iterable[Diagnosis]:
    """Whether a lease is reviewed does not depend on its labels."""
    selector = entry.webhook.object_selector
    if selector and selector.requirements:
        yield Diagnosis(
            "object-selector",
            entry.place("objectSelector", ", ".join(sorted({one.key for one in selector.requirements}))),
            "the writer of a lease also sets its labels, and so decides whether the write is reviewed.",
            "remove objectSelector; choose by namespace, or exempt leases by name in the policy.",
        )


def _is_careful(entry: Entry) -> bool:
    return not entry.webhook.fails_closed and entry.webhook.timeout <= 2 and drops_renewals(entry.webhook)


def _exclude(namespace: str) -> str:
    return f"add {namespace} to a namespaceSelector expression with key {NAMESPACE_NAME} and operator NotIn."


def _list(values: tuple[str, ...] | None) -> str:
    return f"[{', '.join(values or ())}]"
