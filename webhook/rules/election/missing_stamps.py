"""A lease that changes hands although no API server's stamp proves when it was last renewed."""

from collections.abc import Iterable
from typing import Final

from webhook.api.field import forbidden
from webhook.rules.change import LeaseChange
from webhook.rules.events import Event
from webhook.rules.finding import NOTHING, Finding
from webhook.rules.mode import Mode
from webhook.rules.rule import LEASES, UPDATE, Rule
from webhook.rules.statement import Statement

_FIELD: Final = "metadata.managedFields"
_REPAIR: Final = (
    "`kubectl apply --server-side` of apiVersion, kind, name and namespace only brings a record back "
    "(it stamps now, so a takeover waits one duration)"
)


def takeover_rests_on_stamps(change: LeaseChange) -> Iterable[Finding]:
    """A lease that changes hands must carry the API server's stamp of its last renewal.

    Without it the holder's own clock decides. `kubectl apply --server-side` of a manifest with apiVersion, kind, name
    and namespace only restores a stamp. It dates from that apply, so a takeover waits one duration.
    """
    if change.expiry.from_stamps:
        return NOTHING
    unknown = "the API server has no record of the last renewal of this lease, so its holder's own clock decides"
    happened = Statement("no API server record of the last renewal: the holder's own clock decided; repair: {page}")
    return (Finding(forbidden(_FIELD, f"{unknown}; {_REPAIR}"), happened=happened),)


RULES = (
    Rule(
        id="lease-without-stamps",
        check=takeover_rests_on_stamps,
        resources=LEASES,
        operations=UPDATE,
        events=frozenset({Event.TAKEOVER, Event.STEAL}),
        standard=Mode.AUDIT,
        strict=Mode.WARN,
        source="ours: without stamps only the holder's own clock says when a lease expired, and a denial weakens",
    ),
)
