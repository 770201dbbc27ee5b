"""Whether anyone asks for a free lease, as the end of its headline."""

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.evidence.askers import describe_process, name_refused
from webhook.analysis.history.audit_log.refusal import UNKNOWN_RESOURCE


def describe_askers(account: Account) -> str:
    """Return the end of a headline: whether anyone asks for a lease that is free, "" if that is not known."""
    found = account.askers
    if account.refused_candidates:
        return f"; the LeaseCandidates of {name_refused(account.refused_candidates)} were refused"
    if found is None:
        return ""
    if not found.asking:
        asked = "asked for it" if found.shows_reads else "tried to write it"
        none = f"no other process has {asked} since it expired" if account.holder else f"no process has {asked} since"
        return f", and {none}{', as far as the log shows' if found.is_log_sparse else ''}"
    who, asking = found.asking[0]
    refused = f", and is answered with {asking.code}" if asking.code >= 400 else ""
    answers = (one for one in reversed(account.history.requests.refusals) if one.writer.is_same(who))
    if asking.code >= 400 and (last := next(answers, None)) and last.is_apply_conflict:
        refused += ", as another field manager owns fields that it applies"
    elif asking.message == UNKNOWN_RESOURCE:
        refused += ", as the API server does not serve the version that it asks for"
    return f"; {describe_process(who)} asks for it{refused}"
