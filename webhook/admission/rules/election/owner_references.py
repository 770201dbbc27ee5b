"""Owners of a lease, with which the garbage collector deletes it: added, or removed, by another writer."""

from collections.abc import Iterable
from typing import Final

from webhook.admission.rules.change import CLEANUP_CONTROLLERS, NODE_LEASES, Condition, LeaseChange
from webhook.admission.rules.finding import NO_FINDINGS, Finding, Statement
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.occasions import ALL_EVENTS, LEASES, UPDATE
from webhook.admission.rules.rule import Rule
from webhook.admission.rules.texts import ANOTHER_CHANGE, DeniedRenewal, Texts
from webhook.kubernetes.field import forbidden
from webhook.kubernetes.objects import OwnerReference
from webhook.text.quoting import quote

_Owner = tuple[str, str, str, str]
"""Group, kind, name and uid; the version of an owner may change."""

_COUNTED_TO_100: Final = "On a lease with more than 100 owners each change counts."


def owner_reference_added(change: LeaseChange) -> Iterable[Finding]:
    """An ownerReference may not be added to a lease that has a holder or a renewTime, or that the policy binds.

    It only warns of a write that sets another `renewTime`, `acquireTime` or holder, unless the policy binds the lease:
    an elector that sets its owner with each write puts it back, whoever removed it. Exempt are the garbage collector
    and the namespace controller, the writers that a binding lists, the [stamped writer](../stamp.md) of a held lease,
    and a node that adds itself to its own lease in kube-node-lease.
    """
    references = change.new_metadata.owner_references
    if not references or references == change.old_metadata.owner_references:
        return NO_FINDINGS
    if not change.old_holder and change.old_renew_time is None and change.binding is None:
        return NO_FINDINGS
    known = {_owner(reference) for reference in change.old_metadata.owner_references or () if reference is not None}
    added = [reference for reference in references if reference is not None and _owner(reference) not in known]
    if not added or _is_free(change, added):
        return NO_FINDINGS
    first = added[0]
    detail = (
        f"the garbage collector deletes this lease if {quote(first.kind or '')} {quote(first.name or '')} "
        "does not exist; add owners when the lease is created"
    )
    happened = Statement(
        "the garbage collector deletes this lease if {0} {1} does not exist, held or not",
        (first.kind or "", first.name or ""),
    )
    tier = Mode.WARN if change.binding is None and change.is_of_an_elector else Mode.DENY
    return (Finding(forbidden("metadata.ownerReferences", detail), tier=tier, happened=happened),)


OWNER_REFERENCE_ADDED: Final = Rule(
    check=owner_reference_added,
    resources=LEASES,
    operations=UPDATE,
    events=ALL_EVENTS,
    only_if=Condition.OWNED,
    about_writer=True,
    standard=Mode.WARN,
    strict=Mode.DENY,
    # An owner that does not exist would have the bound lease deleted.
    bound=Mode.DENY,
    texts=Texts(
        source="ours: seen with the real garbage collector; the plugin OwnerReferencesPermissionEnforcement helps too",
        why="The garbage collector deletes an object whose owner does not exist. With `update` alone, this deletes a "
        "live lease.",
        who="Operators that adopt a lease after its elector created it, such as "
        "[CloudNativePG's](../protect-postgresql.md); of a bound lease also before.",
        fix="Set the owner when the lease is created, or let a writer that a binding lists add it.",
        attack="gave a held lease an owner with which it is deleted",
    ),
    denied_renewal=DeniedRenewal(
        reason=ANOTHER_CHANGE,
        condition="if `renewTime` stays; in a lease that a binding names, also in `standard`, and in any renewal",
    ),
    reads=("spec.holderIdentity", "spec.renewTime", "metadata.ownerReferences"),
    in_cel=RuleInCel(
        broken="""
        (variables.isBound || !variables.isOfElector) && (variables.oldHolder != '' || variables.oldRenewTime != '' ||
        variables.isBound) && size(variables.added) > 0 && !variables.isCleanup && !variables.isListed &&
        !variables.isStampedWriter && !(request.namespace == 'kube-node-lease' && variables.user == 'system:node:' +
        variables.name && variables.added.all(o, o.kind == 'Node' && o.name == variables.name))
        """,
        message="metadata.ownerReferences: Forbidden: {variables.ownerless}",
        warned="""
        !variables.isBound && variables.isOfElector && (variables.oldHolder != '' || variables.oldRenewTime != '') &&
        size(variables.added) > 0 && !variables.isCleanup && !variables.isStampedWriter && !(request.namespace ==
        'kube-node-lease' && variables.user == 'system:node:' + variables.name && variables.added.all(o, o.kind ==
        'Node' && o.name == variables.name))
        """,
        lacks=_COUNTED_TO_100,
        phrases={
            "ownerless": """
            the garbage collector deletes this lease if {!variables.added[0].kind} {!variables.added[0].name} does not
            exist; add owners when the lease is created
            """,
        },
    ),
)


def owner_reference_removed(change: LeaseChange) -> Iterable[Finding]:
    """An ownerReference may not be removed from a lease that is held, except in a write that renews or takes it.

    Exempt are those whom `owner-reference-added` exempts.
    """
    references = change.old_metadata.owner_references
    if not references or references == change.new_metadata.owner_references:
        return NO_FINDINGS
    if not change.old_holder or change.is_of_an_elector:
        return NO_FINDINGS
    kept = {_owner(reference) for reference in change.new_metadata.owner_references or () if reference is not None}
    known = {_owner(reference) for reference in references if reference is not None}
    removed = [reference for reference in references if reference is not None and _owner(reference) not in kept]
    # `owner-reference-added` is about a write that does both.
    if not removed or kept - known or _is_free(change, removed):
        return NO_FINDINGS
    first = removed[0]
    detail = (
        f"the lease is held by {quote(change.old_holder)}, and only its holder may remove its owner "
        f"{quote(first.kind or '')} {quote(first.name or '')}, in a renewal; remove it after the release"
    )
    happened = Statement(
        "the lease of {2} lost its owner {0} {1}", (first.kind or "", first.name or "", change.old_holder)
    )
    return (Finding(forbidden("metadata.ownerReferences", detail), happened=happened),)


OWNER_REFERENCE_REMOVED: Final = Rule(
    check=owner_reference_removed,
    resources=LEASES,
    operations=UPDATE,
    events=ALL_EVENTS,
    only_if=Condition.OWNED,
    about_writer=True,
    standard=Mode.WARN,
    strict=Mode.DENY,
    texts=Texts(
        source="ours: one removal by a stranger made a strict webhook refuse each renewal of an elector that restores "
        "it",
        why="Whoever removes the owner of a live lease keeps it from being cleaned up with its program, and waits for "
        "its holder to set it again.",
        who="People and operators that disown a lease while it is held. No known elector removes an owner without "
        "renewing.",
        fix="Remove the owner after the release, or let the holder do so with its next renewal.",
        attack="removed the owner of a held lease",
    ),
    denied_renewal=DeniedRenewal(reason=ANOTHER_CHANGE, condition="if `renewTime` stays"),
    reads=("spec.holderIdentity", "spec.renewTime", "metadata.ownerReferences"),
    in_cel=RuleInCel(
        broken="""
        !variables.isOfElector && variables.oldHolder != '' && size(variables.removed) > 0 && size(variables.added) == 0
        && !variables.isCleanup && !variables.isListed && !variables.isStampedWriter && !(request.namespace ==
        'kube-node-lease' && variables.user == 'system:node:' + variables.name && variables.removed.all(o, o.kind ==
        'Node' && o.name == variables.name))
        """,
        message="metadata.ownerReferences: Forbidden: {variables.disowned}",
        lacks=_COUNTED_TO_100,
        variables={
            # The version of an owner may change.
            "removed": """
            variables.owners == variables.oldOwners ? []
            : size(variables.owners) + size(variables.oldOwners) > 100 ? variables.oldOwners
            : variables.oldOwners.filter(o, !variables.owners.exists(p, p.uid == o.uid && p.name == o.name
            && p.kind == o.kind && (p.apiVersion.contains("/") ? p.apiVersion.split("/")[0] : "")
            == (o.apiVersion.contains("/") ? o.apiVersion.split("/")[0] : "")))
            """,
        },
        phrases={
            "disowned": """
            the lease is held by {!variables.oldHolder}, and only its holder may remove its owner
            {!variables.removed[0].kind} {!variables.removed[0].name}, in a renewal; remove it after the release
            """,
        },
    ),
)


def _owner(reference: OwnerReference) -> _Owner:
    group, slash, _ = (reference.api_version or "").partition("/")
    return (group if slash else "", reference.kind or "", reference.name or "", reference.uid or "")


def _is_free(change: LeaseChange, owners: Iterable[OwnerReference]) -> bool:
    user = change.user
    if user.username in CLEANUP_CONTROLLERS or change.is_by_listed_writer or change.is_by_stamped_writer:
        return True
    name = change.request.name
    return (
        change.request.namespace == NODE_LEASES
        and user.username == f"system:node:{name}"
        and all(reference.kind == "Node" and reference.name == name for reference in owners)
    )
