"""Whether anyone asks for a free lease: the end of its headline, and the claim that no one does."""

from collections.abc import Iterator

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.claim import Advice, Claim
from webhook.analysis.claims.evidence.contenders.askers import describe_process, join_names, name_refused
from webhook.analysis.claims.findings.lease_claim import make_claim
from webhook.analysis.claims.words import format_clock, format_name
from webhook.analysis.history.audit_log.refusal import UNKNOWN_RESOURCE
from webhook.findings import Severity


def describe_askers(account: Account) -> str:
    """Return the end of a headline: whether anyone asks for a lease that is free, "" if that is not known."""
    found = account.askers
    if account.election.refused_candidates:
        return f"; the LeaseCandidates of {name_refused(account.election.refused_candidates)} were refused"
    if found is None:
        return ""
    if not found.asking:
        asked = "asked for it" if found.shows_reads else "tried to write it"
        none = f"no other process has {asked} since it expired" if account.holder else f"no process has {asked} since"
        return f", and {none}{', as far as the log shows' if found.is_log_sparse else ''}"
    if readers := found.mere_readers:
        pods = join_names(sorted(format_name(one.pod) for one in readers))
        read = (
            f"pods {pods} read it again and again, and have"
            if len(readers) > 1
            else f"pod {pods} reads it again and again, and has"
        )
        return f"; {read} not tried to take it"
    who, asking = found.asking[0]
    refused = f", and is answered with {asking.code}" if asking.code >= 400 else ""
    answers = (one for one in reversed(account.history.requests.refusals) if one.writer.is_same(who))
    if asking.code >= 400 and (last := next(answers, None)) and last.is_apply_conflict:
        refused += ", as another field manager owns fields that it applies"
    elif asking.message == UNKNOWN_RESOURCE:
        refused += ", as the API server does not serve the version that it asks for"
    return f"; {describe_process(who)} asks for it{refused}"


def claim_no_candidate(account: Account) -> Iterator[Claim]:
    """Yield the claim that no process asks for a lease that is free."""
    found = account.askers
    if found is None or found.asking or account.is_nameless:
        return
    who = "another process" if account.holder else "any process"
    what = "request" if found.shows_reads else "write"
    since, until = format_clock(found.since, account.now), format_clock(found.until, account.now)
    message = f"the log has no answered {what} for it by {who} from {since} to {until}"
    how = None if found.shows_reads else "writes"
    arguments = {"identity": account.holder, "how": how, "from": found.since, "to": found.until}
    yield make_claim(account.history, "no-candidate", Severity.INFO, message, Advice(""), arguments=arguments)
