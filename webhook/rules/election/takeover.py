"""Taking a live lease from its holder."""

from collections.abc import Iterable
from functools import partial

from webhook.api import micro_time
from webhook.api.field import FieldError, forbidden
from webhook.api.text import quote
from webhook.rules.change import LeaseChange
from webhook.rules.events import Event
from webhook.rules.finding import NOTHING, Finding
from webhook.rules.mode import Mode
from webhook.rules.rule import LEASES, UPDATE, Rule
from webhook.rules.statement import Statement
from webhook.rules.times import SECOND
from webhook.rules.well_known import NODE_LEASES, NODES


def live_lease_is_not_taken(change: LeaseChange) -> Iterable[Finding]:
    """The holder of a live lease may not be replaced before the lease expires.

    Expiry follows from API servers' stamps: the renewal was seen, then leaseDurationSeconds passed.
    """
    return _finding(change, "")


def live_lease_is_not_taken_by_a_node(change: LeaseChange) -> Iterable[Finding]:
    """A node may not take a live lease from its holder.

    In kube-node-lease a node may put its own name back, which repairs a foreign write.
    """
    if NODES not in change.user.groups:
        return NOTHING
    if change.request.namespace == NODE_LEASES and change.new_holder == change.request.name:
        return NOTHING
    return _finding(change, f", and {quote(change.user.username)} is a node")


def live_lease_is_not_taken_across_namespaces(change: LeaseChange) -> Iterable[Finding]:
    """A service account of another namespace may not take a live lease from its holder."""
    account = change.user.service_account
    if account is None or account[0] == change.request.namespace:
        return NOTHING
    return _finding(change, f", and {quote(change.user.username)} belongs to another namespace")


def _finding(change: LeaseChange, addition: str) -> tuple[Finding, ...]:
    lease = f"{change.request.namespace}/{change.request.name}"
    early = f"{change.expiry.seconds_left} s before expiry{change.expiry.whose_clock}"
    happened = Statement(
        f"lease {{0}} was taken from {{1}} {early}: there may be two leaders", (lease, change.old_holder)
    )
    return (
        Finding(
            _steal(change, addition),
            without_stamps=not change.expiry.from_stamps,
            happened=happened,
            fact=Event.STEAL,
        ),
    )


def _steal(change: LeaseChange, addition: str) -> FieldError:
    expiry = change.expiry
    name = quote(f"{change.request.namespace}/{change.request.name}")
    duration = expiry.duration_seconds
    assert duration is not None
    assert expiry.seen_at is not None
    age = max(0, expiry.written_at - expiry.seen_at)
    clock = micro_time.canonical_seconds(expiry.seen_at)[11:]
    whose = "API server clock" if expiry.from_stamps else "the holder's clock"
    return forbidden(
        "spec.holderIdentity",
        f"lease {name} is held by {quote(change.old_holder)}, "
        f"last renewed {age // SECOND} s ago ({clock}, {whose}), "
        f"duration {duration} s{addition}; retry in {expiry.seconds_left} s, or ask the holder to release it",
    )


_rule = partial(Rule, resources=LEASES, operations=UPDATE, events=frozenset({Event.STEAL}))
RULES = (
    _rule(
        id="takeover-before-expiry",
        check=live_lease_is_not_taken,
        standard=Mode.WARN,
        source="ours: client-go, fabric8, client-java and Python retry and win after expiry, so a denial only delays",
    ),
    _rule(
        id="takeover-by-node",
        check=live_lease_is_not_taken_by_a_node,
        about_writer=True,
        source="ours: a node reaches only its own lease, and the kubelet never changes the holder",
    ),
    _rule(
        id="takeover-across-namespaces",
        check=live_lease_is_not_taken_across_namespaces,
        about_writer=True,
        source="ours: known clients steal, where they do, inside their own namespace only",
    ),
)
