"""The checks of webhooks that may be called for leases: what their outage does, what they review, and in which form."""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.admission.policy.model import Policy
from webhook.admission.policy.schema import OPERATIONS
from webhook.admission.rules.change import KUBE_SYSTEM, NODE_LEASES
from webhook.admission.rules.mode import Mode
from webhook.api_server.doctor.certificate import check_bundle, examine_certificate
from webhook.api_server.doctor.documents import (
    MUTATING,
    NAMESPACE_NAME,
    Documents,
    WebhookEntry,
    is_opt_in,
    may_select,
    report_danger,
)
from webhook.api_server.doctor.match_condition import check_condition, is_without_renewals
from webhook.api_server.doctor.service import check_service, find_called_services
from webhook.api_server.fence.objects import BINDING, POLICY
from webhook.findings import ReportFinding
from webhook.kubernetes.request import Resource
from webhook.kubernetes.review import REVIEW_PATH
from webhook.kubernetes.selectors import Selector, list_requirements
from webhook.text.commands import quote_name

MAX_TIMEOUT: Final = 3
"""Leader-election clients give up on a request after 5 s (client-go `leaderelection/resourcelock/interface.go`,
renewDeadline / 2); etcd and the network need the rest."""
MAX_TIMEOUT_WITH_RENEWALS: Final = 2
"""Measured with a webhook that never answers: no leader loses its lease with 2 s, and leaders do with 5 s."""
_ANY_VERSION: Final = "a version that is added later is sent in a form that the webhook does not decode."
_NO_VERSION: Final = "an API server that serves {} only in {} never sends them for review."
LISTED_VERSIONS: Final = {Resource.LEASES: ("v1",), Resource.LEASECANDIDATES: ("v1beta1", "v1alpha2", "v1alpha1")}
"""The versions that a configuration should list: those that are evaluated, whether a server has them or not."""
CHOICES: Final = {KUBE_SYSTEM: "control-plane", NODE_LEASES: "node-leases"}
"""Namespaces that may be reviewed if that is intended, and the annotation that declares it."""

_NOT_REVIEWED: Final = frozenset({*CHOICES, "kube-public"})
"""Namespaces that the shipped configuration leaves out, beside that of the webhook."""
_MAX_NAMED: Final = 5
"""Namespaces that one line names."""
_RISKS: Final = {
    KUBE_SYSTEM: "kube-controller-manager and kube-scheduler elect here. While the webhook does not answer they may"
    " not get their lease, and without them the webhook's pods are not restored (kubernetes/kubernetes#90217).",
    NODE_LEASES: "every kubelet renews here every 10 s. A node whose heartbeat fails for 40 s is marked NotReady, and"
    " its pods are moved; with the webhook down that can be all nodes at once.",
}
KILL_SWITCH: Final = report_danger(
    "kill-switch-on",
    "policy: mode off",
    "every write is allowed without evaluation.",
    "remove mode from the policy when the incident is over.",
)
"""What is said of a policy that allows everything."""
_POLICIES_ONLY: Final = "no webhook is registered: the rules are policies of the API server"
_NOT_COMPARED: Final = "; whether they are those of a policy file is what --policy compares"
_NOT_CALLED: Final = "lease-webhook is not called for any write of a lease, so none of its rules is in force."
_NOT_CALLED_AND_UNKNOWN: Final = (
    "lease-webhook is not called for any write of a lease; policies of the API server, which can have its rules"
    " instead, could not be read."
)
_FIX_OF_OTHERS: Final = (
    "leave the group coordination.k8s.io out of its rules, so that no write of a lease waits for it; docs/install.md"
    " says how in Kyverno and Gatekeeper."
)


class Report(Struct, frozen=True):
    """The findings about one entry; if `webhook` is empty, about `subject` as a whole, which may be a fence.

    `about` says what kind of subject that is, as `status` names it.
    """

    subject: str
    webhook: str
    findings: tuple[ReportFinding, ...]
    is_fence: bool = False
    note: str = ""
    about: str = "configuration"


def examine(documents: Documents, policy: Policy | None, now: dt.datetime) -> Iterator[Report]:
    """Yield a report for each entry that leases can reach, then one about all of them.

    The findings are in the order in which they should be fixed. `policy` is the one that should be in force, None if it
    is not known; `now` decides which certificates have expired.
    """
    unreviewed = _describe_unreviewed(documents)
    dedicated: list[WebhookEntry] = []
    others: list[str] = []
    for configuration in documents.configurations:
        subject = configuration.metadata.name or "(no name)"
        about_leases = [entry for entry in configuration.entries if entry.webhook.is_about_leases]
        ours = [entry for entry in about_leases if entry.webhook.is_dedicated]
        for entry in about_leases:
            findings = [found for check in DANGERS for found in check(entry)]
            if entry.webhook.is_dedicated:
                findings += [*check_condition(entry), *check_form(entry), *check_bundle(entry, now)]
            else:
                others.append(entry.webhook.name)
                # The components of lease-webhook do not apply to another webhook.
                findings = [
                    found if found.check == "timeout-too-long" else replace(found, fix=_FIX_OF_OTHERS)
                    for found in findings
                ]
            yield Report(subject, entry.webhook.name, tuple(findings))
        if ours:
            active = [entry for entry in ours if documents.selects_any(entry.webhook.namespace_selector)]
            found = check_coverage(active) if active else (_report_no_namespace(ours),)
            yield Report(subject, "", tuple(found), note="" if dedicated else unreviewed)
        dedicated += ours
    if not dedicated:
        yield _report_no_registration(documents, others, is_compared=policy is not None)
        return
    for (place, _), entry in find_called_services(dedicated).items():
        of_service = tuple(check_service(entry, documents))
        if of_service or documents.is_of_a_cluster:
            yield Report(f"Service {place}", "", of_service, about="service")
    for entry in {
        (entry.webhook.client_config.server_name, entry.webhook.client_config.ca_bundle): entry for entry in dedicated
    }.values():
        address, served, unknown = examine_certificate(entry, documents, now)
        yield Report(f"certificate of {address}", "", tuple(served), note=unknown, about="certificate")
    if policy:
        yield Report("policy", "", tuple(check_policy(policy, dedicated, documents.namespace_labels)))


def _report_no_registration(documents: Documents, others: Sequence[str], *, is_compared: bool) -> Report:
    """Return the report where no webhook is registered for leases; `others` are reached by a wildcard."""
    if any(map(documents.selects_any, documents.rule_selectors.values())):
        note = _POLICIES_ONLY if is_compared else f"{_POLICIES_ONLY}{_NOT_COMPARED}"
        return Report("all configurations", "", (), note=note)
    caught = f"; leases reach {', '.join(others)} by a wildcard" if others else ""
    caught += "; the policies that have its rules select no namespace" if documents.rule_policies else ""
    found = report_danger(
        "not-registered",
        f"no webhook has the group coordination.k8s.io in its rules{caught}",
        _NOT_CALLED_AND_UNKNOWN if documents.unread.intersection((POLICY, BINDING)) else _NOT_CALLED,
        "apply one of deploy/overlays, or what `lease-webhook install` prints.",
    )
    return Report("all configurations", "", (found,))


def _describe_unreviewed(documents: Documents) -> str:
    """Say which of a cluster's namespaces no webhook and no policy with its rules selects, but for the shipped ones.

    That may be what somebody chose. "" if it is not so, if there is no webhook, or if the namespaces are not known.
    """
    entries = [one.webhook for one in documents.dedicated if one.webhook.reviews("leases", "CREATE")]
    selectors = [*(one.namespace_selector for one in entries), *documents.rule_selectors.values()]
    known = documents.namespace_labels if documents.is_of_a_cluster and entries else {}
    names = [
        name
        for name, labels in sorted(known.items())
        if name not in {*_NOT_REVIEWED, *documents.namespaces}
        and not any(may_select(selector, name, labels) for selector in selectors)
    ]
    return f"left out by namespaceSelector, so no rule is in force there: {list_some(names)}" if names else ""


def list_some(names: Sequence[str]) -> str:
    """Return names as a list that stays readable."""
    rest = len(names) - _MAX_NAMED
    return f"{', '.join(names[:_MAX_NAMED])}{f' and {rest} more' if rest > 0 else ''}"


def _report_no_namespace(entries: Sequence[WebhookEntry]) -> ReportFinding:
    selectors = {one.position: describe_selector(one.webhook.namespace_selector) for one in entries}
    found = [f"webhooks[{position}].namespaceSelector: {text}" for position, text in selectors.items()]
    return report_danger(
        "selects-no-namespace",
        "; ".join(found),
        "no namespace meets this, so this webhook reviews no write of a lease.",
        "copy the namespaceSelector of deploy/base/90-webhook.yaml, or label the namespaces that it is to select.",
    )


def describe_selector(selector: Selector | None) -> str:
    """Return the requirements of a selector as kubectl takes them."""
    return ", ".join(map(str, list_requirements(selector)))


def check_wildcards(entry: WebhookEntry) -> Iterable[ReportFinding]:
    """Rules name group and resources; a wildcard matches leases by accident."""
    for number, rule in enumerate(entry.webhook.rules or ()):
        if rule.is_wild and (rule.matches("leases") or rule.matches("leasecandidates")):
            yield entry.report(
                "wildcard",
                f"rules[{number}]: groups [{', '.join(rule.api_groups or ())}],"
                f" resources [{', '.join(rule.resources or ())}]",
                "a wildcard matches leases together with everything else: every renewal of every leader then waits for"
                " this webhook, and kinds that are added to the group later are sent to it too.",
                "name the resources: apiGroups [coordination.k8s.io], resources [leases], [leasecandidates]; in a"
                " webhook that is not about leases, leave the group out.",
            )


def check_mutation(entry: WebhookEntry) -> Iterable[ReportFinding]:
    """No webhook changes leases."""
    if entry.configuration.kind == MUTATING:
        yield report_danger(
            "mutates-leases",
            f"kind: {MUTATING}",
            "a lease that a webhook changes is not what its holder wrote: clients compare, and lose or repeat their"
            " election. Kubernetes advises never to mutate node leases.",
            "leave leases and leasecandidates out of its rules;"
            " register lease-webhook as a ValidatingWebhookConfiguration.",
        )


def check_namespaces(entry: WebhookEntry) -> Iterable[ReportFinding]:
    """The control plane and the nodes do not depend on the webhook."""
    webhook = entry.webhook
    is_careful = not webhook.fails_closed and webhook.timeout <= 2 and is_without_renewals(webhook)
    for namespace, choice in CHOICES.items():
        if may_select(webhook.namespace_selector, namespace) and not (entry.has_chosen(choice) and is_careful):
            yield entry.report(
                f"{choice}-in-scope",
                f"namespaceSelector: selects {namespace}",
                _RISKS[namespace],
                f"add {namespace} to a namespaceSelector expression with key {NAMESPACE_NAME} and"
                f" operator NotIn. If it is intended (the `{choice}` component): failurePolicy Ignore,"
                f" timeoutSeconds of at most 2, the renewal condition, and the annotation lease-webhook/{choice}:"
                " reviewed.",
            )


def check_outage(entry: WebhookEntry) -> Iterable[ReportFinding]:
    """If the webhook never answers, leaders keep their leases, and others can take those that are free."""
    webhook, drops = entry.webhook, is_without_renewals(entry.webhook)
    opted_in = is_opt_in(webhook.namespace_selector)
    if webhook.timeout > (MAX_TIMEOUT if drops else MAX_TIMEOUT_WITH_RENEWALS):
        yield entry.report(
            "timeout-too-long",
            f"timeoutSeconds: {webhook.timeout_seconds or 'absent, which means 10'}",
            f"leader-election clients give up on a write after 5 s. With the webhook unreachable a write waits"
            f" {webhook.timeout} s, even with failurePolicy Ignore, and healthy leaders lose their leases"
            " (kubernetes/kubernetes#90217).",
            "set timeoutSeconds: 2.",
        )
    if webhook.fails_closed and not opted_in:
        yield entry.report(
            "fails-closed-everywhere",
            f"failurePolicy: {webhook.failure_policy or 'absent, which means Fail'}",
            "while the webhook is down no lease in any namespace can be created, taken over or deleted: failover stops"
            " in the whole cluster, and clients that need a lease to start do not start.",
            "set failurePolicy: Ignore; for namespaces that want it, use the `strict` component, which selects them by"
            " the label lease-webhook/fail: closed.",
        )
    if webhook.fails_closed and not drops:
        yield entry.report(
            "renewals-fail-closed",
            "matchConditions: no renewal condition, and failurePolicy Fail",
            "every renewal needs this webhook. When it is down, each leader in scope loses its lease at its renew"
            " deadline (10 s for most) and no successor can take it.",
            "add the renewal condition of deploy/base/90-webhook.yaml, or set failurePolicy: Ignore.",
        )
    elif not (drops or opted_in or entry.has_chosen("renewals")):
        yield entry.report(
            "renewals-reviewed",
            "matchConditions: no renewal condition",
            "every renewal of every leader waits for this webhook: about one call every 2 s per leader, and while the"
            " webhook is unreachable half of the renewals are late.",
            "add the renewal condition of deploy/base/90-webhook.yaml. If it is intended (the `all-renewals`"
            " component), add the annotation lease-webhook/renewals: reviewed.",
        )


DANGERS: Final = (check_wildcards, check_namespaces, check_mutation, check_outage)
"""For every webhook that may be called for leases, also those of others."""


def check_form(entry: WebhookEntry) -> Iterable[ReportFinding]:
    """All leases are reviewed, in every version that is served, and the call goes to a path that answers."""
    webhook, config = entry.webhook, entry.webhook.client_config
    if labels := sorted({one.key for one in list_requirements(webhook.object_selector)}):
        yield entry.report(
            "object-selector",
            f"objectSelector: {', '.join(labels)}",
            "the writer of a lease also sets its labels, and so decides whether the write is reviewed.",
            "remove objectSelector; choose by namespace, or exempt leases by name in the policy.",
        )
    for resource, versions in LISTED_VERSIONS.items():
        listed = entry.webhook.list_versions(resource)
        missing = [one for one in versions if one not in listed]
        if "*" in listed or (listed and missing):
            yield entry.report(
                "versions",
                f"rules: {resource} in {', '.join(sorted(listed))}",
                _ANY_VERSION if "*" in listed else _NO_VERSION.format(resource, " or ".join(missing)),
                f"list the versions: {', '.join(versions)}. One that is not served does no harm.",
            )
    if webhook.match_policy == "Exact":
        yield entry.report(
            "match-policy-exact",
            "matchPolicy: Exact",
            "a write in a version that is served but not listed is not reviewed: using another version evades every"
            " rule.",
            "set matchPolicy: Equivalent.",
        )
    if config.has_broken_url:
        yield entry.report(
            "url-invalid",
            f"clientConfig.url: {config.url}",
            "it has no valid host or port: the API server rejects the configuration, or cannot call the webhook.",
            "write https://HOST:PORT/validate.",
        )
    elif not REVIEW_PATH.fullmatch(config.path):
        yield entry.report(
            "path-unknown",
            f"clientConfig.{'service.path' if config.service else 'url'}: {config.path}",
            "lease-webhook responds with 404 there, which counts as a failed call: every write is admitted without"
            " review under Ignore and rejected under Fail.",
            "use the path /validate.",
        )


def check_coverage(entries: Sequence[WebhookEntry]) -> Iterable[ReportFinding]:
    """All entries of a configuration together match both kinds and every operation."""
    for resource in Resource:
        missing = [one for one in OPERATIONS if not any(entry.webhook.reviews(resource, one) for entry in entries)]
        if missing:
            yield report_danger(
                "operation-missing",
                f"webhooks: {resource} without {', '.join(missing)}",
                f"the rules for {' and '.join(missing)} of {resource} are never in force.",
                f"operations: [{', '.join(OPERATIONS)}] for both resources.",
            )


def check_policy(
    policy: Policy, entries: Sequence[WebhookEntry], labels: Mapping[str, Mapping[str, str]]
) -> Iterator[ReportFinding]:
    """Check that the kill switch is off, and that the renewals of every bound lease are reviewed.

    `labels` are those of the known namespaces, by name.
    """
    if policy.mode == Mode.OFF:
        yield KILL_SWITCH
    reviewed = [entry.webhook.namespace_selector for entry in entries if not is_without_renewals(entry.webhook)]
    for namespace, lease in sorted(policy.bindings):
        if not any(may_select(selector, namespace, labels.get(namespace)) for selector in reviewed):
            yield report_danger(
                "binding-without-renewals",
                f"policy: binding {namespace}/{lease}",
                "plain renewals of this lease are not reviewed, so a writer that is not bound can renew it in the"
                " holder's name and shorten it step by step, which the binding is meant to prevent.",
                "add the `bindings` component and label the namespace:"
                f" kubectl label namespace {quote_name(namespace)} lease-webhook/renewals=reviewed",
            )
