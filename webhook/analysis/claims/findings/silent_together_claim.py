"""The claim that all processes that asked for a lease fell silent at once."""

from collections.abc import Iterator

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.claim import Advice, Claim
from webhook.analysis.claims.findings.lease_claim import MAX_NAMED, make_claim
from webhook.analysis.claims.words import format_clock, format_name
from webhook.findings import Severity


def describe_silent_together(account: Account) -> str:
    """Say that all processes that asked for a lease fell silent together; "" if that is not known."""
    found, now = account.silent_together, account.now
    if found is None:
        return ""
    names = sorted(format_name(one.pod or one.name) for one in found.processes)
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    who = f"{'both' if len(names) == 2 else f'all {len(names)}'} processes that asked for it again and again"
    answered = "renewing its own lease" if found.is_only_own else "answering others"
    first, last = format_clock(found.first, now), format_clock(found.last, now)
    when = f"at {first}" if first == last else f"between {first} and {last}"
    why = (
        "The log does not show why: perhaps something that only they share, such as their network, credentials, image, "
        "node or workload, or another API server that they now use"
    )
    if found.node:
        why = f"All ran on node {format_name(found.node)}, by their tokens, whose lease was not renewed since either"
    return (
        f"{who} ({', '.join(names[:MAX_NAMED])}{more}) were last answered {when}, "
        f"while an API server went on {answered} until {format_clock(found.shown_at, now)}. {why}"
    )


def claim_silent_together(account: Account) -> Iterator[Claim]:
    """Yield the claim that all processes that asked for a lease fell silent together."""
    found = account.silent_together
    if found is None:
        return
    arguments = {"count": len(found.processes), "from": found.first, "to": found.last, "latest": found.until}
    message = describe_silent_together(account)
    yield make_claim(account.history, "silent-together", Severity.INFO, message, Advice(""), arguments=arguments)
