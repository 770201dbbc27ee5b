"""Limits the writers of a node's lease, and the holders that a node may name."""

from collections.abc import Iterable

from webhook.admission.rules.change import (
    NODE_LEASES,
    NODES,
    LeaseChange,
)
from webhook.admission.rules.rule import NO_FINDINGS, Finding, Statement, in_cel, reads, texts
from webhook.kubernetes.field import forbidden
from webhook.text.quoting import quote


@texts(
    source="ours: NodeRestriction looks at the name and namespace of the lease and not at its spec",
    why="NodeRestriction checks the name and the namespace of the lease and not its spec, so a node could write any "
    "holder into it.",
    who="No known kubelet.",
    fix="Write the node's own name.",
    attack="wrote the lease of a node",
)
@reads("spec.holderIdentity", "metadata.name")
@in_cel(
    broken="""
    request.namespace == 'kube-node-lease' && 'system:nodes' in variables.groups && variables.holder !=
    variables.oldHolder && variables.holder != request.name
    """,
    message="""
    spec.holderIdentity: Forbidden: a node may name only itself, {!request.name}, as the holder of its lease
    """,
)
def node_lease_holder(change: LeaseChange) -> Iterable[Finding]:
    """A node may write only its own name as the holder of its lease."""
    if change.request.namespace != NODE_LEASES or NODES not in change.user.groups:
        return NO_FINDINGS
    if change.new_holder in (change.old_holder, change.request.name):
        return NO_FINDINGS
    detail = f"a node may name only itself, {quote(change.request.name)}, as the holder of its lease"
    happened = Statement("a node made {0} the holder of the lease of {1}", (change.new_holder, change.request.name))
    return (Finding(forbidden("spec.holderIdentity", detail), happened=happened),)


@texts(
    source="ours: NodeRestriction keeps nodes apart, but everyone else is held back by RBAC only",
    why="Whoever can write a node's lease can make a failed node look healthy.",
    who="kwok, virtual-kubelet and KubeEdge, which write for their nodes.",
    fix="Exempt that component for this rule before you let it deny.",
    attack="wrote the lease of a node",
)
@reads("metadata.name")
@in_cel(
    broken="request.namespace == 'kube-node-lease' && variables.user != 'system:node:' + request.name",
    message="""
    spec: Forbidden: this lease may be written by {!'system:node:' + request.name} only; have the policy exempt this
    writer
    """,
)
def node_lease_writer(change: LeaseChange) -> Iterable[Finding]:
    """A lease in kube-node-lease must be written by the node that it is named after."""
    if change.request.namespace != NODE_LEASES or change.user.username == f"system:node:{change.request.name}":
        return NO_FINDINGS
    writer = quote(f"system:node:{change.request.name}")
    detail = f"this lease may be written by {writer} only; have the policy exempt this writer"
    happened = Statement(
        "{0} wrote the lease of node {1}: a dead node may look alive", (change.user.username, change.request.name)
    )
    return (Finding(forbidden("spec", detail), happened=happened),)
