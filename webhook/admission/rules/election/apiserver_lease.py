"""Limits the writers of an API server's identity lease."""

from collections.abc import Iterable
from typing import Final

from webhook.admission.rules.change import (
    IDENTITY_LABEL,
    KUBE_SYSTEM,
    Condition,
    LeaseChange,
)
from webhook.admission.rules.finding import NO_FINDINGS, Finding, Statement
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.occasions import ALL_EVENTS, LEASES, NOT_A_RENEWAL, UPDATE
from webhook.admission.rules.rule import Rule
from webhook.admission.rules.texts import ANOTHER_CHANGE, DeniedRenewal, Texts
from webhook.kubernetes.field import forbidden


def apiserver_lease_writer(change: LeaseChange) -> Iterable[Finding]:
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


APISERVER_LEASE_WRITER: Final = Rule(
    check=apiserver_lease_writer,
    resources=LEASES,
    operations=UPDATE,
    events=ALL_EVENTS,
    only_if=Condition.SYSTEM_LEASE,
    about_writer=True,
    standard=Mode.DENY,
    strict=Mode.DENY,
    texts=Texts(
        source="ours: only the API server's own loopback client writes these leases",
        why="These leases say which API servers are running, and controllers of the control plane rely on them.",
        who="No known client.",
        fix="Leave the lease to its API server; it repairs or recreates it.",
        attack="wrote the identity of an API server",
    ),
    denied_renewal=DeniedRenewal(
        reason=ANOTHER_CHANGE, condition="if the identity label is removed from an API server's lease"
    ),
    reads=("metadata.name", "metadata.labels"),
    in_cel=RuleInCel(
        broken="""
        request.namespace == 'kube-system' && variables.name.startsWith('apiserver-') && variables.user !=
        'system:apiserver' && variables.old.metadata.?labels[?'apiserver.kubernetes.io/identity'].hasValue() &&
        (!variables.new.metadata.?labels[?'apiserver.kubernetes.io/identity'].hasValue() || !(variables.event in
        ['renewal', 'untouched']))
        """,
        message=r"""
        {variables.new.metadata.?labels[?'apiserver.kubernetes.io/identity'].hasValue() ? 'spec: Forbidden: an API
        server\'s identity lease may be written' : 'metadata.labels: Forbidden: apiserver.kubernetes.io/identity may be
        removed from an API server\'s identity lease'} by system:apiserver only
        """,
    ),
)
