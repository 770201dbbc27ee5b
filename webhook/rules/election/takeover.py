"""A lease that changes hands: taken from its holder while it is live, or without a stamp of its last renewal."""

from collections.abc import Iterable
from functools import partial
from typing import Final

from webhook.api import times
from webhook.api.field import forbidden
from webhook.api.text import quote
from webhook.api.times import SECOND
from webhook.rules.change import NODE_LEASES, NODES, Event, LeaseChange
from webhook.rules.expiry import Expiry
from webhook.rules.rule import CREATE, LEASES, NO_FINDINGS, UPDATE, Attack, Finding, Mode, Rule, Statement

_FIELD: Final = "metadata.managedFields"
_FIX: Final = (
    "`kubectl apply --server-side` of apiVersion, kind, name, namespace and a label brings a record back "
    "(it stamps now, so a takeover waits one duration)"
)


def takeover_rests_on_stamps(change: LeaseChange) -> Iterable[Finding]:
    """A lease that changes hands must carry the API server's stamps of its last renewal and of its new holder.

    Without it the holder's own clock decides. `kubectl apply --server-side` of a manifest with apiVersion, kind, name,
    namespace and a label restores a stamp. It dates from that apply, so a takeover waits one duration.
    """
    if change.event is Event.CLAIM:
        if change.new_entries or change.old_entries:
            return NO_FINDINGS
        unknown = "the API server keeps no record of this lease, so one write can take it from its new holder"
        happened = Statement("the API server keeps no record of this lease: one write can take it; fix: {page}")
    elif change.expiry.from_stamps:
        return NO_FINDINGS
    else:
        unknown = "the API server has no record of the last renewal of this lease, so its holder's own clock decides"
        happened = Statement("no API server record of the last renewal: the holder's own clock decided; repair: {page}")
    return (Finding(forbidden(_FIELD, f"{unknown}; {_FIX}"), happened=happened),)


def lease_is_not_created_empty(change: LeaseChange) -> Iterable[Finding]:
    """A lease may not be created with a name only: the API server then never keeps managedFields for it.

    However often it is renewed, no stamp says so, and one write takes it. With a label, or any field of spec, the API
    server keeps them from the beginning.
    """
    if change.was_set or change.new_entries:
        return NO_FINDINGS
    detail = (
        "the API server keeps no record of the renewals of a lease that is created empty, so one write could take it "
        "from a live holder; create it with a label"
    )
    happened = Statement("a lease was created empty: no renewal of it will have an API server's stamp; fix: {page}")
    return (Finding(forbidden(_FIELD, detail), happened=happened),)


_STAMP_RULES = (
    Rule(
        id="lease-without-stamps",
        check=takeover_rests_on_stamps,
        resources=LEASES,
        operations=UPDATE,
        events=frozenset({Event.TAKEOVER, Event.STEAL, Event.CLAIM}),
        standard=Mode.AUDIT,
        strict=Mode.WARN,
        source="ours: without stamps only the holder's own clock says when a lease expired, and a denial weakens",
        why="Without a stamp only the holder's own clock says whether the lease is live, and it may be wrong.",
        who="Leases that were created with a name only, and those whose managedFields were emptied before the "
        "webhook was installed, or removed by the API server because the lease was too large for etcd. The "
        "writer did nothing wrong.",
        fix="Restore the stamps: `kubectl apply --server-side` of apiVersion, kind, name, namespace and a label. "
        "That stamps the lease at that moment, so a takeover waits one duration.",
        attack=Attack("took a lease without a record of its renewal"),
    ),
    Rule(
        id="lease-created-empty",
        check=lease_is_not_created_empty,
        resources=LEASES,
        operations=CREATE,
        standard=Mode.WARN,
        source="ours: apimachinery's skipNonAppliedManager tracks no update of an object that has no managedFields",
        why="The API server keeps managedFields for an object only if it is created with a field, or applied "
        "server-side later. Without them nothing proves that the lease is renewed, and one write takes it from "
        "a live holder, in `strict` too.",
        who="Manifests of leases that are created beforehand, so that RBAC can name them, and contain nothing but "
        "a name. No known elector.",
        fix="Add a label to the manifest. To a lease that exists, apply it with `kubectl apply --server-side`; "
        "neither `kubectl label` nor an apply of the name alone makes the API server keep managedFields.",
    ),
)


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
        return NO_FINDINGS
    if change.request.namespace == NODE_LEASES and change.new_holder == change.request.name:
        return NO_FINDINGS
    return _finding(change, ", and {} is a node")


def live_lease_is_not_taken_across_namespaces(change: LeaseChange) -> Iterable[Finding]:
    """A service account of another namespace may not take a live lease from its holder."""
    account = change.user.service_account
    if account is None or account[0] == change.request.namespace:
        return NO_FINDINGS
    return _finding(change, ", and {} belongs to another namespace")


def _finding(change: LeaseChange, addition: str) -> tuple[Finding, ...]:
    """`addition` is the end of a clause about the writer, `{}`."""
    lease = f"{change.request.namespace}/{change.request.name}"
    return (
        Finding(
            forbidden("spec.holderIdentity", partial(_detail, change, lease, addition)),
            without_stamps=not change.expiry.from_stamps,
            happened=Statement(partial(_happened, change.expiry), (lease, change.old_holder)),
            fact=Event.STEAL,
        ),
    )


def _happened(expiry: Expiry) -> str:
    early = f"{expiry.seconds_left} s before expiry{expiry.whose_clock}"
    return f"lease {{0}} was taken from {{1}} {early}: there may be two leaders"


def _detail(change: LeaseChange, lease: str, addition: str) -> str:
    expiry = change.expiry
    assert expiry.duration_seconds is not None
    assert expiry.seen_at is not None
    age = max(0, expiry.written_at - expiry.seen_at) // SECOND
    clock = times.canonical_seconds(expiry.seen_at)[11:]
    whose = "API server clock" if expiry.from_stamps else "the holder's clock"
    writer = addition.format(quote(change.user.username)) if addition else ""
    return (
        f"lease {quote(lease)} is held by {quote(change.old_holder)}, last renewed {age} s ago ({clock}, {whose}), "
        f"duration {expiry.duration_seconds} s{writer}; "
        f"retry in {expiry.seconds_left} s, or ask the holder to release it"
    )


_rule = partial(Rule, resources=LEASES, operations=UPDATE, events=frozenset({Event.STEAL}))
RULES = (
    *_STAMP_RULES,
    _rule(
        id="takeover-before-expiry",
        check=live_lease_is_not_taken,
        standard=Mode.WARN,
        source="ours: client-go, fabric8, client-java and Python retry and win after expiry, so a denial only delays",
        why="Two processes believe that they lead until the old leader notices, twelve seconds with the defaults "
        "of client-go.",
        who="Electors that compare `renewTime` with their own clock while it runs ahead; Apache Camel, which takes "
        "over as soon as the leader's pod is gone; Istio's default revision; two programs that share one lease.",
        fix="Wait until the lease has expired and retry, as client-go does, or ask the holder to release it. Keep "
        "clocks synchronized. Give each program a lease of its own.",
        attack=Attack("took a lease that its holder still had"),
    ),
    _rule(
        id="takeover-by-node",
        check=live_lease_is_not_taken_by_a_node,
        about_writer=True,
        source="ours: a node reaches only its own lease, and the kubelet never changes the holder",
        why="A kubelet's credentials reach leases only to report that the node is alive. One compromised node must "
        "not take a controller's lease.",
        who="No known client. In kube-node-lease a node may put its own name back.",
        fix="Run the elector under a service account instead of the node's credentials.",
        attack=Attack("took a lease that its holder still had"),
    ),
    _rule(
        id="takeover-across-namespaces",
        check=live_lease_is_not_taken_across_namespaces,
        about_writer=True,
        source="ours: known clients steal, where they do, inside their own namespace only",
        why="A service account with a broad role can take the lease of any controller in the cluster.",
        who="Operators that elect in a namespace other than their own (cert-manager in kube-system), but only if "
        "they take a live lease; this rule never denies a takeover after expiry.",
        fix="Wait until the lease has expired. If two installations share the lease, give each its own.",
        attack=Attack("took a lease that its holder still had"),
    ),
)
