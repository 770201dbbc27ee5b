"""Whether anyone asks for a free lease, as the end of its headline."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from webhook.admission.rules.expiry import MAX_TOLERANCE
from webhook.analysis.claims.words import describe_writer, format_count, format_name
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.refusal import ANONYMOUS, UNKNOWN_RESOURCE
from webhook.analysis.history.refused_candidates import RefusedCandidate
from webhook.analysis.history.status import LeaseState, LeaseStatus
from webhook.analysis.history.waiting import Asking
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.times import SECOND, get_readable_instant, normalize
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.candidates import describe_process, name_refused


def describe_candidates(account: Account) -> str:
    """Return the end of a headline: whether anyone asks for a lease that is free, "" if that is not known."""
    found = account.candidates
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
