"""The whole examination: every check, in the order in which its findings should be fixed; and who is called at all."""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.doctor import checks, configuration
from webhook.doctor.documents import Documents
from webhook.findings import Finding, word
from webhook.policy.model import Policy
from webhook.rules.rule import Mode

_FIX_OF_OTHERS: Final = (
    "leave the group coordination.k8s.io out of its rules, so that no write of a lease waits for it; docs/install.md"
    " says how in Kyverno and Gatekeeper."
)


class Report(Struct, frozen=True):
    """The findings about one entry; if `webhook` is empty, about `subject` as a whole, which may be a fence."""

    subject: str
    webhook: str
    findings: tuple[Finding, ...]
    is_fence: bool = False
    note: str = ""


def examine(documents: Documents, policy: Policy | None, now: dt.datetime) -> Iterator[Report]:
    """Yield a report for each entry that leases can reach, then one about all of them.

    `policy` is the one that should be in force, None if it is not known; `now` decides which certificates have expired.
    """
    dedicated: list[configuration.Entry] = []
    others: list[str] = []
    for one in documents.configurations:
        ours: list[configuration.Entry] = []
        for position, webhook in enumerate(one.webhooks or ()):
            entry = configuration.Entry(one, position, webhook)
            if not webhook.is_about_leases:
                continue
            findings = [found for check in checks.DANGERS for found in check(entry)]
            if webhook.is_dedicated:
                ours.append(entry)
                findings += [found for check in checks.FORM for found in check(entry)]
                findings += checks.check_bundle(entry, now)
            else:
                others.append(webhook.name)
                findings = [_of_others(found) for found in findings]
            yield Report(one.metadata.name, webhook.name, tuple(findings))
        if ours:
            yield Report(one.metadata.name, "", tuple(checks.check_coverage(ours)))
        dedicated += ours
    if not dedicated:
        yield Report("all configurations", "", (_not_registered(others),))
    elif policy:
        labels = {name: one.metadata.labels or {} for name, one in documents.named("Namespace").items()}
        yield Report("policy", "", tuple(_policy(policy, dedicated, labels)))


def _of_others(finding: Finding) -> Finding:
    """Return the finding with a fix for another webhook, to which the components of lease-webhook do not apply."""
    return finding if finding.check == "timeout-too-long" else replace(finding, fix=_FIX_OF_OTHERS)


def _not_registered(others: Sequence[str]) -> Finding:
    """`others` are the webhooks that leases reach by a wildcard."""
    caught = f"; leases reach {', '.join(others)} by a wildcard" if others else ""
    return configuration.danger(
        "not-registered",
        f"no webhook has the group coordination.k8s.io in its rules{caught}",
        "lease-webhook is not called for any write of a lease, so none of its rules is in force.",
        "apply one of deploy/overlays.",
    )


def _policy(
    policy: Policy, entries: Sequence[configuration.Entry], labels: Mapping[str, Mapping[str, str]]
) -> Iterator[Finding]:
    """Check that the kill switch is off, and that the renewals of every bound lease are reviewed.

    `labels` are those of the known namespaces, by name.
    """
    if policy.mode == Mode.OFF:
        yield configuration.danger(
            "kill-switch-on",
            "policy: mode off",
            "every write is allowed without evaluation.",
            "remove mode from the policy when the incident is over.",
        )
    for namespace, lease in sorted(policy.bindings):
        if not _sees_renewals(entries, namespace, labels.get(namespace)):
            yield configuration.danger(
                "binding-without-renewals",
                f"policy: binding {namespace}/{lease}",
                "plain renewals of this lease are not reviewed, so a writer that is not bound can renew it in the"
                " holder's name and shorten it step by step, which the binding is meant to prevent.",
                "add the `bindings` component and label the namespace: kubectl label namespace"
                f" {word(namespace)} lease-webhook/renewals=reviewed",
            )


def _sees_renewals(entries: Sequence[configuration.Entry], namespace: str, labels: Mapping[str, str] | None) -> bool:
    """True if plain renewals may be reviewed in a namespace, whose `labels` are None if they are not known."""
    return any(
        webhook.reviews("leases", "UPDATE")
        and not checks.drops_renewals(webhook)
        and configuration.may_select(webhook.namespace_selector, namespace, labels)
        for webhook in (entry.webhook for entry in entries)
    )
