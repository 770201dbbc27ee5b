"""The finding about a holder that loses its lease, or may lose it, before the lease expires."""

from functools import partial

from webhook.admission.rules.change import LeaseChange
from webhook.admission.rules.expiry import Expiry
from webhook.admission.rules.finding import Finding, Statement
from webhook.admission.rules.mode import Mode
from webhook.kubernetes.field import forbidden
from webhook.text.quoting import LazyText


def report_loss(
    change: LeaseChange,
    field: str,
    *,
    detail: LazyText,
    happened: str,
    fact: str = "",
    tier: Mode = Mode.DENY,
) -> tuple[Finding, ...]:
    """Return the one finding: `detail` denies the write.

    `happened` says of an admitted one what became of the lease, `{0}`, and its holder, `{1}`.
    """
    lease = f"{change.request.namespace}/{change.request.name}"
    statement = Statement(partial(_describe_loss, change.expiry, happened), (lease, change.old_holder))
    return (
        Finding(
            forbidden(field, detail),
            tier=tier,
            without_stamps=not change.expiry.from_stamps,
            happened=statement,
            fact=fact,
        ),
    )


def _describe_loss(expiry: Expiry, happened: str) -> str:
    # What is reported of a lease that had expired by our clock is a write that no stamp dates.
    left = expiry.seconds_left
    when = f"{left} s before expiry{expiry.whose_clock}" if left else "at an unknown time"
    return f"lease {happened} {when}: there may be two leaders"
