"""Limits the writers of a node's lease, and the holders that a node may name."""

from collections.abc import Iterable
from typing import Final

from webhook.admission.rules.change import (
    NODE_LEASES,
    NODES,
    Condition,
    LeaseChange,
)
from webhook.admission.rules.finding import NO_FINDINGS, Finding, Statement
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.occasions import LEASES, NOT_A_RENEWAL, UPDATE, WRITES
from webhook.admission.rules.rule import Rule
from webhook.admission.rules.texts import Texts
from webhook.kubernetes.field import forbidden
from webhook.text.quoting import quote


def node_lease_holder(change: LeaseChange) -> Iterable[Finding]:
    """A node may write only its own name as the holder of its lease."""
    if change.request.namespace != NODE_LEASES or NODES not in change.user.groups:
        return NO_FINDINGS
    if change.new_holder in (change.old_holder, change.request.name):
        return NO_FINDINGS
    detail = f"a node may name only itself, {quote(change.request.name)}, as the holder of its lease"
    happened = Statement("a node made {0} the holder of the lease of {1}", (change.new_holder, change.request.name))
    return (Finding(forbidden("spec.holderIdentity", detail), happened=happened),)


NODE_LEASE_HOLDER: Final = Rule(
    check=node_lease_holder,
    resources=LEASES,
    operations=UPDATE,
    events=NOT_A_RENEWAL,
    only_if=Condition.NODE_LEASE,
    about_writer=True,
    standard=Mode.DENY,
    strict=Mode.DENY,
    texts=Texts(
        source="ours: NodeRestriction looks at the name and namespace of the lease and not at its spec",
        why="NodeRestriction checks the name and the namespace of the lease and not its spec, so a node could write "
        "any holder into it.",
        who="No known kubelet.",
        fix="Write the node's own name.",
        attack="wrote the lease of a node",
    ),
    reads=("spec.holderIdentity", "metadata.name"),
    in_cel=RuleInCel(
        broken="""
        request.namespace == 'kube-node-lease' && 'system:nodes' in variables.groups && variables.holder !=
        variables.oldHolder && variables.holder != variables.name
        """,
        message="""
        spec.holderIdentity: Forbidden: a node may name only itself, {!variables.name}, as the holder of its lease
        """,
    ),
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


NODE_LEASE_WRITER: Final = Rule(
    check=node_lease_writer,
    resources=LEASES,
    operations=WRITES,
    events=NOT_A_RENEWAL,
    only_if=Condition.NODE_LEASE,
    about_writer=True,
    standard=Mode.OFF,
    strict=Mode.WARN,
    texts=Texts(
        source="ours: NodeRestriction keeps nodes apart, but everyone else is held back by RBAC only",
        why="Whoever can write a node's lease can make a failed node look healthy.",
        who="kwok, virtual-kubelet and KubeEdge, which write for their nodes.",
        fix="Exempt that component for this rule before you let it deny.",
        attack="wrote the lease of a node",
    ),
    reads=("metadata.name",),
    in_cel=RuleInCel(
        broken="request.namespace == 'kube-node-lease' && variables.user != 'system:node:' + variables.name",
        message="""
        spec: Forbidden: this lease may be written by {!'system:node:' + variables.name} only; have the policy exempt
        this writer
        """,
    ),
)
