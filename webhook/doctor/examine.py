"""The whole examination: every check, in the order in which its findings should be fixed; and who is called at all."""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from webhook.audit import stamps
from webhook.audit.command_words import filled
from webhook.doctor import certificate, checks, condition, configuration, policy_fit
from webhook.doctor.certificate import ServingCertificate
from webhook.doctor.configuration import MUTATING, Configuration, Entry, Webhook, danger, may_select
from webhook.doctor.documents import ClusterObject, Document, webhook_configurations
from webhook.policy.model import Policy
from webhook.reports.model import Finding

_Check = Callable[[Entry], Iterable[Finding]]

_DANGERS: Final[tuple[_Check, ...]] = (
    checks.check_wildcards,
    checks.check_namespaces,
    checks.check_mutation,
    checks.check_timeout,
    checks.check_failure_policy,
    checks.check_renewals,
)
"""For every webhook that may be called for leases, also those of others."""

_DEDICATED: Final[tuple[_Check, ...]] = (
    condition.check_condition,
    checks.check_labels,
    checks.check_api_version,
    checks.check_resources,
    checks.check_conversion,
    checks.check_side_effects,
    checks.check_review_versions,
    checks.check_target,
)
"""For entries that are about leases."""

_GENERAL_FIX: Final = "leave the group coordination.k8s.io out of its rules, so that no write of a lease waits for it."
_FIXES: Final = {
    "kyverno": " Kyverno: in the Helm value config.matchConditions (ConfigMap kyverno, key matchConditions) the"
    " expression request.resource.group != 'coordination.k8s.io'.",
    "gatekeeper": " Gatekeeper: the Helm values validatingWebhookCustomRules and mutatingWebhookCustomRules, with the"
    " groups that its constraints are about.",
}
"""For webhooks of others, by a word in the name of the configuration.

Sources: the charts of kyverno/kyverno and open-policy-agent/gatekeeper.
"""
_FIXED_IN_THE_SAME_WAY: Final = frozenset({"timeout-too-long", "own-namespace-in-scope"})

ServedAt = Callable[[Webhook], ServingCertificate | None]
"""The certificate that is served to an entry, None if it is not known."""


class Report(Struct, frozen=True):
    """The findings about one entry; if `webhook` is empty, about `subject` as a whole, which may be a fence."""

    subject: str
    webhook: str
    findings: tuple[Finding, ...]
    is_fence: bool = False


class CalledWebhook(Struct, frozen=True):
    """A webhook that may be called for writes to a lease; `timeout` in seconds, `kind` `validating` or `mutating`."""

    name: str
    kind: str
    failure_policy: str
    timeout: int
    sees_renewals: bool


def called_webhooks(documents: Iterable[Document], namespace: str) -> Iterator[CalledWebhook]:
    """Yield the webhooks whose rules match updates of leases in a namespace, whatever other labels that has."""
    for document in webhook_configurations(documents):
        try:
            found = configuration.read(document)
        except msgspec.ValidationError:
            continue  # the API server would refuse it, and `doctor` says so
        kind = "mutating" if found.kind == MUTATING else "validating"
        for one in found.webhooks or ():
            if one.reviews("leases", "UPDATE") and may_select(one.namespace_selector, namespace):
                policy = "Fail" if one.fails_closed else "Ignore"
                yield CalledWebhook(one.name, kind, policy, one.timeout, not checks.drops_renewals(one))


def examine(
    configurations: Sequence[Configuration],
    served_at: ServedAt,
    policy: Policy | None,
    now: dt.datetime,
    labels: Mapping[str, Mapping[str, str]] | None = None,
) -> Iterator[Report]:
    """Yield a report for each entry that leases can reach, then one about all of them.

    Args:
        configurations: all webhook configurations.
        served_at: what is served to an entry.
        policy: the policy that should be in force, None if it is not known.
        now: decides which certificates have expired.
        labels: those of the known namespaces, by name.

    """
    dedicated: list[Entry] = []
    others: list[str] = []
    for one in configurations:
        ours: list[Entry] = []
        for position, webhook in enumerate(one.webhooks or ()):
            entry = Entry(one, position, webhook)
            if not webhook.is_about_leases:
                continue
            findings = [found for check in _DANGERS for found in check(entry)]
            if webhook.is_dedicated:
                ours.append(entry)
                findings += _dedicated(entry, served_at, now)
            else:
                others.append(webhook.name)
                findings = [_of_others(entry, found) for found in findings]
            yield Report(one.metadata.name, webhook.name, tuple(findings))
        if ours:
            yield Report(one.metadata.name, "", tuple(checks.check_coverage(ours)))
        dedicated += ours
    if not dedicated:
        yield Report("all configurations", "", (_not_registered(others),))
    elif policy:
        yield Report("policy", "", tuple(policy_fit.check_policy(policy, dedicated, labels or {})))


def examine_leases(leases: Iterable[ClusterObject]) -> Iterator[Report]:
    """Yield a report for each lease without managedFields; none if no lease has any, since kubectl leaves them out."""
    listed = list(leases)
    for one in listed if any(lease.metadata.managed_fields for lease in listed) else ():
        if not one.metadata.managed_fields:
            namespace, name = one.place
            risk = (
                "Nothing proves that it is renewed: one write takes it from a live holder, in the `strict` preset too."
            )
            fix = filled(stamps.FIX, namespace, name)
            finding = danger("lease-without-stamps", "metadata.managedFields: empty", risk, fix)
            yield Report(f"Lease {namespace}/{name}", "", (finding,))


def _dedicated(entry: Entry, served_at: ServedAt, now: dt.datetime) -> Iterator[Finding]:
    for check in _DEDICATED:
        yield from check(entry)
    yield from certificate.check_bundle(entry, now)
    served = served_at(entry.webhook)
    if served:
        yield from certificate.check_served(entry, served, now)


def _of_others(entry: Entry, finding: Finding) -> Finding:
    """Return the finding with a fix for another webhook, to which the components of lease-webhook do not apply."""
    if finding.check in _FIXED_IN_THE_SAME_WAY:
        return finding
    name = entry.configuration.metadata.name.lower()
    settings = "".join(text for word, text in _FIXES.items() if word in name)
    return replace(finding, fix=f"{_GENERAL_FIX}{settings}")


def _not_registered(others: Sequence[str]) -> Finding:
    """`others` are the webhooks that leases reach by a wildcard."""
    caught = f"; leases reach {', '.join(others)} by a wildcard" if others else ""
    return danger(
        "not-registered",
        f"no webhook has the group coordination.k8s.io in its rules{caught}",
        "lease-webhook is not called for any write of a lease, so none of its rules is in force.",
        "apply one of deploy/overlays.",
    )
