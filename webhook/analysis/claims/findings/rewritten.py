"""Findings about writes that were stored differently than requested: a mutating webhook or policy changes the lease."""

from collections.abc import Iterator
from typing import Final

from webhook.analysis.claims.advice.on_mutation import advise_on_mutation, name_webhooks
from webhook.analysis.claims.claim import Claim, WriteAuthor
from webhook.analysis.claims.findings.lease_claim import make_claim
from webhook.analysis.claims.words import describe_writer, format_clock, format_name
from webhook.analysis.history.audit_log.rewritten import RewrittenField
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.rewriting import HOLDER_IDENTITY, RENEW_TIME
from webhook.findings import Severity
from webhook.kubernetes.times import SECOND

_SEVERITIES: Final = {HOLDER_IDENTITY: Severity.ERROR, "leaseTransitions": Severity.INFO}


def find_rewritten_fields(history: LeaseHistory, now: int) -> Iterator[Claim]:
    """Yield a finding for each field of which writes were stored with another value than they had."""
    for rewritten in history.requests.rewritten.found.values():
        yield _claim_rewritten_field(history, rewritten, now)


def _claim_rewritten_field(history: LeaseHistory, rewritten: RewrittenField, now: int) -> Claim:
    writes = "1 write was" if rewritten.count == 1 else f"{rewritten.count} writes were"
    when = (
        f"at {format_clock(rewritten.latest, now)}"
        if rewritten.count == 1
        else f"the last one at {format_clock(rewritten.latest, now)}"
    )
    who = f" by {describe_writer(rewritten.writer)}" if rewritten.writer.user else ""
    message = (
        f"at least {writes} stored with another {rewritten.name} than requested, {when}{who}: it asked "
        f"for {_quote(rewritten.asked)}, and {_quote(rewritten.stored)} was stored. {_describe_effect(rewritten)}"
    )
    if rewritten.webhooks:
        message += f"; the log says that {name_webhooks(rewritten)} changed it"
        message += "" if rewritten.is_named else ", and does not say what else did"
    return make_claim(
        history,
        "stored-other-than-asked",
        _SEVERITIES.get(rewritten.name, Severity.WARNING),
        message,
        advise_on_mutation(rewritten),
        "rewritten",
        over_since=_find_end(history, rewritten, now),
        arguments={
            "field": rewritten.name,
            "asked": rewritten.asked,
            "stored": rewritten.stored,
            "count": rewritten.count,
            "by": WriteAuthor(rewritten.writer),
            "from": rewritten.earliest,
            "to": rewritten.latest,
        },
    )


def _find_end(history: LeaseHistory, rewritten: RewrittenField, now: int) -> int | None:
    """Return 0 if the last write that the log shows was changed so; None if nothing later shows that it ended."""
    if history.may_lack_writes(rewritten.latest, now):
        return None
    if history.requests.rewritten.latest == rewritten.latest:
        return 0 if now - rewritten.latest < (history.duration or 0) * SECOND else None
    return rewritten.latest


def _quote(text: str) -> str:
    return format_name(text) if text else "none"


def _describe_effect(rewritten: RewrittenField) -> str:
    """Say what follows from the change of a field for those who read the lease."""
    if rewritten.name == HOLDER_IDENTITY and rewritten.beside is not None:
        other = f"{describe_writer(rewritten.beside)} wrote it as {_quote(rewritten.stored)} in that time"
        return f"{other}; writes of both were accepted, so both may have led"
    if rewritten.name == HOLDER_IDENTITY:
        return "A client that reads it does not find itself as the holder, and may give it up or never renew it"
    if rewritten.name == "leaseDurationSeconds":
        return "Others wait for as long as was stored, if the holder ends"
    if rewritten.name == "leaseTransitions":
        return "It counts changes of the holder"
    if rewritten.name == RENEW_TIME and rewritten.is_same and rewritten.count > 1:
        return "The same one was stored each time: they renewed nothing, although they were accepted"
    return "Electors that compare it with their own clock take the lease too early or too late"
