"""Advice about writes that are stored differently than requested."""

from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import MUTATORS
from webhook.analysis.claims.evidence.contenders.askers import join_names
from webhook.analysis.claims.words import format_name
from webhook.analysis.history.audit_log.rewritten import RewrittenField
from webhook.text.commands import quote_name


def advise_on_mutation(rewritten: RewrittenField) -> Advice:
    """Return what to do about writes that are stored differently than requested."""
    configurations = dict.fromkeys(webhook.configuration for webhook in rewritten.webhooks)
    if not configurations or not rewritten.is_named:
        sentence = (
            f"Look for a mutating webhook or policy that sets {rewritten.name} of leases, and exclude leases from it:"
        )
        return Advice(sentence, MUTATORS)
    them = "it" if len(_list_names(rewritten)) == 1 else "them"
    sentence = f"Exclude leases from {name_webhooks(rewritten)}, or have {them} leave {rewritten.name} alone:"
    # All of them: one that is left out would go on.
    named = " ".join(map(quote_name, configurations))
    return Advice(sentence, f"kubectl get mutatingwebhookconfigurations {named} -o yaml")


def name_webhooks(rewritten: RewrittenField) -> str:
    """Return the webhooks that a log names for what was stored differently than requested."""
    names = _list_names(rewritten)
    return f"{'webhook' if len(names) == 1 else 'webhooks'} {join_names(names)}"


def _list_names(rewritten: RewrittenField) -> list[str]:
    """Return the names of the webhooks, each once: several configurations may have a webhook of one name."""
    return list(dict.fromkeys(format_name(webhook.name) for webhook in rewritten.webhooks))
