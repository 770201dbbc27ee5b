"""Findings about writes that were stored differently than requested: a mutating webhook or policy changes the lease."""

from collections.abc import Iterator
from typing import Final

from webhook.analysis.claims.advice import advise_on_mutation, name_webhooks
from webhook.analysis.claims.claim import By, Claim
from webhook.analysis.claims.lease_claim import make_claim
from webhook.analysis.claims.words import describe_writer, format_clock, format_name
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.rewritten import RewrittenField
from webhook.analysis.inputs.rewriting import HOLDER_IDENTITY
from webhook.findings import Severity
from webhook.kubernetes.times import SECOND

_SEVERITIES: Final = {HOLDER_IDENTITY: Severity.ERROR, "leaseTransitions": Severity.INFO}


def find_rewritten_fields(history: LeaseHistory, now: int) -> Iterator[Claim]:
    """Yield a finding for each field of which writes were stored with another value than they had."""
    for one in history.requests.rewritten.found.values():
        yield _claim_rewritten_field(history, one, now)


def _claim_rewritten_field(history: LeaseHistory, one: RewrittenField, now: int) -> Claim:
    writes = "1 write was" if one.count == 1 else f"{one.count} writes were"
    when = (
        f"at {format_clock(one.latest, now)}" if one.count == 1 else f"the last one at {format_clock(one.latest, now)}"
    )
    who = f" by {describe_writer(one.writer)}" if one.writer.user else ""
    message = (
        f"at least {writes} stored with another {one.name} than requested, {when}{who}: it asked for "
        f"{_quote(one.asked)}, and {_quote(one.stored)} was stored. {_describe_effect(one)}"
    )
    if one.webhooks:
        message += f"; the log says that {name_webhooks(one)} changed it"
        message += "" if one.is_named else ", and does not say what else did"
    return make_claim(
        *(
            history,
            "stored-other-than-asked",
            _SEVERITIES.get(one.name, Severity.WARNING),
            message,
            advise_on_mutation(one),
        ),
        "rewritten",
        over_since=_find_end(history, one, now),
        arguments={
            "field": one.name,
            "asked": one.asked,
            "stored": one.stored,
            "count": one.count,
            "by": By(one.writer),
            "from": one.earliest,
            "to": one.latest,
        },
    )


def _find_end(history: LeaseHistory, one: RewrittenField, now: int) -> int | None:
    """Return 0 if the last write that the log shows was changed so; None if nothing later shows that it ended."""
    if history.may_lack_writes(one.latest, now):
        return None
    if history.requests.rewritten.latest == one.latest:
        return 0 if now - one.latest < (history.duration or 0) * SECOND else None
    return one.latest


def _quote(text: str) -> str:
    return format_name(text) if text else "none"


def _describe_effect(one: RewrittenField) -> str:
    """Say what follows from the change of a field for those who read the lease."""
    if one.name == HOLDER_IDENTITY:
        return "A client that reads it does not find itself as the holder, and may give it up or never renew it"
    if one.name == "leaseDurationSeconds":
        return "Others wait for as long as was stored, if the holder ends"
    if one.name == "leaseTransitions":
        return "It counts changes of the holder"
    return "Electors that compare it with their own clock take the lease too early or too late"
