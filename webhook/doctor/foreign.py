"""What to change in the configuration of another webhook whose wildcards match leases."""

from typing import Final

from msgspec.structs import replace

from webhook.doctor.configuration import Entry
from webhook.doctor.diagnosis import Diagnosis

_GENERAL: Final = "leave the group coordination.k8s.io out of its rules, so that no write of a lease waits for it."
_SETTINGS: Final = {
    "kyverno": " Kyverno: in the Helm value config.matchConditions (ConfigMap kyverno, key matchConditions) the"
    " expression request.resource.group != 'coordination.k8s.io'.",
    "gatekeeper": " Gatekeeper: the Helm values validatingWebhookCustomRules and mutatingWebhookCustomRules, with the"
    " groups that its constraints are about.",
}
"""By a word in the name of the configuration.

Sources: the charts of kyverno/kyverno and open-policy-agent/gatekeeper.
"""
_GENERAL_CURES: Final = frozenset({"timeout-too-long", "own-namespace-in-scope"})


def advised(entry: Entry, diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis with advice for another webhook, to which the components of lease-webhook do not apply."""
    if diagnosis.check in _GENERAL_CURES:
        return diagnosis
    name = entry.configuration.metadata.name.lower()
    settings = "".join(text for word, text in _SETTINGS.items() if word in name)
    return replace(diagnosis, cure=f"{_GENERAL}{settings}")
