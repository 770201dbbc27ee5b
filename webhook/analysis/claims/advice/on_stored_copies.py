"""Advice about a lease into which one old state is written again and again."""

from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import make_command_for_audit_log, make_command_for_managers
from webhook.analysis.claims.evidence.writers.stored_copies import StoredCopies, describe_instance
from webhook.analysis.claims.words import describe_user
from webhook.analysis.history.lease import LeaseHistory


def advise_on_stored_copies(history: LeaseHistory, copies: StoredCopies) -> Advice:
    """Return what ends that: whatever runs meanwhile, the next write takes the lease from it again."""
    times = f"{len(copies.tenures)} times, as of a stored copy{describe_instance(history)}"
    leave = "leave this Lease alone, and take it out of what it applies"
    if copies.writer is None:
        sentence = f"One old state was written into it {times}: let what applies that {leave}. To see who it is:"
        return Advice(sentence, make_command_for_audit_log(history.namespace, history.name))
    sentence = f"{describe_user(copies.writer)} wrote one old state into it {times}: have it {leave}. To see the lease:"
    return Advice(sentence, make_command_for_managers(history))
