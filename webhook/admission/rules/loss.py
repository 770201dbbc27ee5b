"""The finding about a holder that loses its lease, or may lose it, before the lease expires."""

from functools import partial

from webhook.admission.rules.change import LeaseChange
from webhook.admission.rules.expiry import Expiry
from webhook.admission.rules.finding import Finding, Statement
from webhook.admission.rules.mode import Mode
from webhook.kubernetes.field import forbidden
from webhook.text.quoting import LazyText


def report_loss(
    change: LeaseChange, field: str, detail: LazyText, what: str, fact: str = "", *, tier: Mode = Mode.DENY
) -> tuple[Finding, ...]:
    """Return the one finding; `what` is a clause about the lease, `{0}`, and its holder, `{1}`."""
    lease = f"{change.request.namespace}/{change.request.name}"
    happened = Statement(partial(_describe_loss, change.expiry, what), (lease, change.old_holder))
    return (
        Finding(
            forbidden(field, detail),
            tier=tier,
            without_stamps=not change.expiry.from_stamps,
            happened=happened,
            fact=fact,
        ),
    )


def _describe_loss(expiry: Expiry, what: str) -> str:
    return f"lease {what} {expiry.seconds_left} s before expiry{expiry.whose_clock}: there may be two leaders"
