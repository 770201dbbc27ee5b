"""Whether the configuration allows the policy to take effect."""

from collections.abc import Iterable, Mapping, Sequence

from webhook.audit.command_words import word
from webhook.doctor.availability import drops_renewals
from webhook.doctor.configuration import Entry
from webhook.doctor.diagnosis import Diagnosis
from webhook.doctor.namespaces import may_select, selects
from webhook.policy.model import Policy
from webhook.rules.mode import Mode


def check_kill_switch(policy: Policy) -> Iterable[Diagnosis]:
    """The kill switch is off."""
    if policy.mode == Mode.OFF:
        yield Diagnosis(
            "kill-switch-on",
            "policy: mode off",
            "every write is allowed without evaluation.",
            "remove mode from the policy when the incident is over.",
        )


def check_bindings(
    policy: Policy, entries: Sequence[Entry], labels: Mapping[str, Mapping[str, str]]
) -> Iterable[Diagnosis]:
    """The renewals of every bound lease are reviewed; `labels` are those of the known namespaces."""
    for namespace, lease in sorted(policy.bindings):
        if not any(_sees_renewals(entry, namespace, labels.get(namespace)) for entry in entries):
            yield Diagnosis(
                "binding-without-renewals",
                f"policy: binding {namespace}/{lease}",
                "plain renewals of this lease are not reviewed, so a writer that is not bound can renew it in the"
                " holder's name and shorten it step by step, which the binding is meant to prevent.",
                "add the component bindings and label the namespace: kubectl label namespace"
                f" {word(namespace)} lease-webhook/renewals=reviewed",
            )


def _sees_renewals(entry: Entry, namespace: str, labels: Mapping[str, str] | None) -> bool:
    webhook, selector = entry.webhook, entry.webhook.namespace_selector
    if not webhook.reviews("leases", "UPDATE") or drops_renewals(webhook):
        return False
    return may_select(selector, namespace) if labels is None else selects(selector, namespace, labels)
