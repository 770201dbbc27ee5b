"""Advice about writes that are stored differently than requested."""

from typing import Final

from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import MUTATORS
from webhook.analysis.claims.words import format_name
from webhook.analysis.history.audit_log.rewritten import RewrittenField
from webhook.text.commands import quote_name

_MAX_NAMED: Final = 3


def advise_on_mutation(rewritten: RewrittenField) -> Advice:
    """Return what to do about writes that are stored differently than requested."""
    configurations = dict.fromkeys(webhook.configuration for webhook in rewritten.webhooks)
    if not configurations or not rewritten.is_named:
        sentence = (
            f"Look for a mutating webhook or policy that sets {rewritten.name} of leases, and exclude leases from it:"
        )
        return Advice(sentence, MUTATORS)
    named = " ".join(quote_name(configuration) for configuration in list(configurations)[:_MAX_NAMED])
    sentence = f"Exclude leases from {name_webhooks(rewritten)}, or have it leave {rewritten.name} alone:"
    return Advice(sentence, f"kubectl get mutatingwebhookconfigurations {named} -o yaml")


def name_webhooks(rewritten: RewrittenField) -> str:
    """Return the webhooks that a log names for what was stored differently than requested."""
    return " and ".join(f"webhook {format_name(webhook.name)}" for webhook in list(rewritten.webhooks)[:_MAX_NAMED])
