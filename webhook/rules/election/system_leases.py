"""Leases of the cluster itself: node heartbeats in kube-node-lease, and kube-system/apiserver-*."""

from collections.abc import Iterable
from functools import partial

from webhook.api.field import forbidden
from webhook.api.text import quote
from webhook.rules.change import IDENTITY_LABEL, KUBE_SYSTEM, NODE_LEASES, NODES, LeaseChange
from webhook.rules.rule import (
    LEASES,
    NO_FINDINGS,
    NOT_A_RENEWAL,
    UPDATE,
    WRITES,
    Attack,
    Finding,
    Mode,
    Rule,
    Statement,
)


def node_names_itself(change: LeaseChange) -> Iterable[Finding]:
    """A node may write only its own name as the holder of its lease."""
    if change.request.namespace != NODE_LEASES or NODES not in change.user.groups:
        return NO_FINDINGS
    if change.new_holder in (change.old_holder, change.request.name):
        return NO_FINDINGS
    detail = f"a node may name only itself, {quote(change.request.name)}, as the holder of its lease"
    happened = Statement("a node made {0} the holder of the lease of {1}", (change.new_holder, change.request.name))
    return (Finding(forbidden("spec.holderIdentity", detail), happened=happened),)


def node_lease_is_written_by_its_node(change: LeaseChange) -> Iterable[Finding]:
    """A lease in kube-node-lease must be written by the node that it is named after.

    kwok, virtual-kubelet and KubeEdge write for their nodes: observe first, exempt them, then deny.
    """
    if change.request.namespace != NODE_LEASES or change.user.username == f"system:node:{change.request.name}":
        return NO_FINDINGS
    writer = quote(f"system:node:{change.request.name}")
    detail = f"this lease may be written by {writer} only; have the policy exempt this writer"
    happened = Statement(
        "{0} wrote the lease of node {1}: a dead node may look alive", (change.user.username, change.request.name)
    )
    return (Finding(forbidden("spec", detail), happened=happened),)


_rule = partial(Rule, resources=LEASES, events=NOT_A_RENEWAL, about_writer=True)
_NODE_RULES = (
    _rule(
        id="node-lease-holder",
        check=node_names_itself,
        operations=UPDATE,
        source="ours: NodeRestriction looks at the name and namespace of the lease and not at its spec",
        why="NodeRestriction checks the name and the namespace of the lease and not its spec, so a node could "
        "write any holder into it.",
        who="No known kubelet.",
        fix="Write the node's own name.",
        attack=Attack("wrote the lease of a node"),
    ),
    _rule(
        id="node-lease-writer",
        check=node_lease_is_written_by_its_node,
        operations=WRITES,
        standard=Mode.OFF,
        strict=Mode.WARN,
        source="ours: NodeRestriction keeps nodes apart, but everyone else is held back by RBAC only",
        why="Whoever can write a node's lease can make a failed node look healthy.",
        who="kwok, virtual-kubelet and KubeEdge, which write for their nodes.",
        fix="Exempt that component for this rule.",
        attack=Attack("wrote the lease of a node"),
    ),
)


def apiserver_lease_is_written_by_the_api_server(change: LeaseChange) -> Iterable[Finding]:
    """The identity lease of an API server may be written by system:apiserver only.

    Name, namespace and the stored label must all match: the label alone does not apply the rule to other leases. The
    label may not be removed either, because without it the rule would not apply to the next write.
    """
    request = change.request
    if request.namespace != KUBE_SYSTEM or not request.name.startswith("apiserver-"):
        return NO_FINDINGS
    if IDENTITY_LABEL not in (change.old_metadata.labels or {}) or change.user.username == "system:apiserver":
        return NO_FINDINGS
    if IDENTITY_LABEL not in (change.new_metadata.labels or {}):
        detail = f"{IDENTITY_LABEL} may be removed from an API server's identity lease by system:apiserver only"
        happened = Statement("{0} removed the identity label of an API server's lease", (change.user.username,))
        return (Finding(forbidden("metadata.labels", detail), happened=happened),)
    if change.event not in NOT_A_RENEWAL:
        return NO_FINDINGS
    detail = "an API server's identity lease may be written by system:apiserver only"
    happened = Statement("{0} wrote the identity lease of an API server", (change.user.username,))
    return (Finding(forbidden("spec", detail), happened=happened),)


RULES = (
    *_NODE_RULES,
    Rule(
        id="apiserver-lease-writer",
        check=apiserver_lease_is_written_by_the_api_server,
        resources=LEASES,
        operations=UPDATE,
        about_writer=True,
        source="ours: only the API server's own loopback client writes these leases",
        why="These leases say which API servers are running, and controllers of the control plane rely on them.",
        who="No known client.",
        fix="Leave the lease to its API server; it repairs or recreates it.",
        attack=Attack("wrote the identity of an API server"),
    ),
)
