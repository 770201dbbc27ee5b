"""Whether the configuration lets the policy do what it says."""

from collections.abc import Iterable, Mapping, Sequence

from webhook.doctor.availability import drops_renewals
from webhook.doctor.configuration import Entry
from webhook.doctor.diagnosis import Diagnosis
from webhook.doctor.namespaces import may_select, selects
from webhook.policy.model import Policy
from webhook.rules.mode import Mode


def check_kill_switch(policy: Policy) -> Iterable[Diagnosis]:
    """The rules are on."""
    if policy.mode == Mode.OFF:
        yield Diagnosis(
            "kill-switch-on",
            "policy: mode off",
            "every write is allowed, whatever the rules find.",
            "remove mode from the policy when the incident is over.",
        )


def check_bindings(
    policy: Policy, entries: Sequence[Entry], labels: Mapping[str, Mapping[str, str]]
) -> Iterable[Diagnosis]:
    """Every identity binding sees the renewals of its lease; `labels` are those of the namespaces that are known."""
    for namespace, lease in sorted(policy.bindings):
        if not any(_sees_renewals(entry, namespace, labels.get(namespace)) for entry in entries):
            yield Diagnosis(
                "binding-without-renewals",
                f"policy: binding {namespace}/{lease}",
                "plain renewals of this lease are not reviewed, so somebody who is not bound can renew it in the"
                " holder's name and shorten it step by step, which the binding is there to refuse.",
                "add the component bindings and label the namespace: kubectl label namespace"
                f" {namespace} lease-webhook/renewals=reviewed",
            )


def _sees_renewals(entry: Entry, namespace: str, labels: Mapping[str, str] | None) -> bool:
    webhook, selector = entry.webhook, entry.webhook.namespace_selector
    if not webhook.reviews("leases", "UPDATE") or drops_renewals(webhook):
        return False
    return may_select(selector, namespace) if labels is None else selects(selector, namespace, labels)
