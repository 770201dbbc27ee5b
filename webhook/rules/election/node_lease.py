"""Node heartbeats, the leases of kube-node-lease."""

from collections.abc import Iterable
from functools import partial

from webhook.api.field import forbidden
from webhook.api.text import quote
from webhook.rules.change import LeaseChange
from webhook.rules.finding import NOTHING, Finding
from webhook.rules.mode import Mode
from webhook.rules.rule import LEASES, NOT_A_RENEWAL, UPDATE, WRITES, Rule
from webhook.rules.statement import Statement
from webhook.rules.well_known import NODE_LEASES, NODES


def node_names_itself(change: LeaseChange) -> Iterable[Finding]:
    """A node may write only its own name as the holder of its lease."""
    if change.request.namespace != NODE_LEASES or NODES not in change.user.groups:
        return NOTHING
    if change.new_holder in (change.old_holder, change.request.name):
        return NOTHING
    detail = f"a node may name only itself, {quote(change.request.name)}, as the holder of its lease"
    happened = Statement("a node made {0} the holder of the lease of {1}", (change.new_holder, change.request.name))
    return (Finding(forbidden("spec.holderIdentity", detail), happened=happened),)


def node_lease_is_written_by_its_node(change: LeaseChange) -> Iterable[Finding]:
    """A lease in kube-node-lease must be written by the node that it is named after.

    kwok, virtual-kubelet and KubeEdge write for their nodes: observe first, exempt them, then deny.
    """
    if change.request.namespace != NODE_LEASES or change.user.username == f"system:node:{change.request.name}":
        return NOTHING
    writer = quote(f"system:node:{change.request.name}")
    detail = f"this lease may be written by {writer} only; have the policy exempt this writer"
    happened = Statement(
        "{0} wrote the lease of node {1}: a dead node may look alive", (change.user.username, change.request.name)
    )
    return (Finding(forbidden("spec", detail), happened=happened),)


_rule = partial(Rule, resources=LEASES, events=NOT_A_RENEWAL, about_writer=True)
RULES = (
    _rule(
        id="node-lease-holder",
        check=node_names_itself,
        operations=UPDATE,
        source="ours: NodeRestriction looks at the name and namespace of the lease and not at its spec",
    ),
    _rule(
        id="node-lease-writer",
        check=node_lease_is_written_by_its_node,
        operations=WRITES,
        standard=Mode.OFF,
        strict=Mode.WARN,
        source="ours: NodeRestriction keeps nodes apart, but everyone else is held back by RBAC only",
    ),
)
