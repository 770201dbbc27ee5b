"""Deleting a live lease, at once or by an owner that does not exist: another process can become the leader."""

from collections.abc import Iterable
from typing import Final

from webhook.api.field import forbidden
from webhook.api.objects import OwnerReference
from webhook.api.text import quote
from webhook.rules.change import CLEANUP_CONTROLLERS, NODE_LEASES, Event, LeaseChange
from webhook.rules.rule import DELETE, LEASES, NO_FINDINGS, UPDATE, Attack, Finding, Mode, Rule, Statement


def live_lease_is_not_deleted(change: LeaseChange) -> Iterable[Finding]:
    """A live lease may not be deleted, except by the garbage collector and the namespace controller.

    An UPDATE that removes the last finalizer of a lease which was deleted before deletes it as well.
    """
    if change.expiry.expired or change.user.username in CLEANUP_CONTROLLERS:
        return NO_FINDINGS
    expiry = change.expiry
    clock = change.expiry.whose_clock
    detail = (
        f"the lease is held by {quote(change.old_holder)} for another {expiry.seconds_left} s{clock}; "
        "stop its holder first, or delete the lease after that"
    )
    lease = f"{change.request.namespace}/{change.request.name}"
    happened = Statement(
        f"lease {{0}} of {{1}} was deleted {expiry.seconds_left} s before expiry{clock}: there may be two leaders",
        (lease, change.old_holder),
    )
    return (Finding(forbidden("metadata", detail), without_stamps=not expiry.from_stamps, happened=happened),)


_DELETION_RULES = (
    Rule(
        id="live-lease-deleted",
        check=live_lease_is_not_deleted,
        resources=LEASES,
        operations=DELETE | UPDATE,
        events=frozenset({Event.DELETE}),
        about_writer=True,
        standard=Mode.AUDIT,
        source="ours: kube-apiserver, konnectivity and medik8s delete their own leases, so only audited by default",
        why="After a live lease is deleted, another process can create it and lead at the same time as the old leader.",
        who="`helm uninstall` and `kubectl delete` while the program runs; konnectivity and medik8s, which delete "
        "their own leases; a controller that removes its finalizer from a deleted lease that is held again.",
        fix="Stop the holder first, and delete when its lease has expired or was released.",
        attack=Attack("deleted a lease that was held"),
    ),
)


_FIELD: Final = "metadata.ownerReferences"

Owner = tuple[str, str, str, str]
"""Group, kind, name and uid; the version of an owner may change."""


def owner_is_not_added_to_a_lease_in_use(change: LeaseChange) -> Iterable[Finding]:
    """An ownerReference may not be added to a lease that has a holder or a renewTime, or that the policy binds.

    The garbage collector deletes the lease if the owner does not exist, live or not, and a writer that may update a
    lease need not be allowed to delete it. Exempt are the garbage collector and the namespace controller, the writers
    that a binding lists, and a node that adds itself to its own lease in kube-node-lease.
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
    return (Finding(forbidden(_FIELD, detail), happened=happened),)


def _owner(reference: OwnerReference) -> Owner:
    group, slash, _ = (reference.api_version or "").partition("/")
    return (group if slash else "", reference.kind or "", reference.name or "", reference.uid or "")


def _is_free(change: LeaseChange, added: Iterable[OwnerReference]) -> bool:
    user = change.user
    if user.username in CLEANUP_CONTROLLERS or (change.binding is not None and change.binding.lists(user)):
        return True
    name = change.request.name
    return (
        change.request.namespace == NODE_LEASES
        and user.username == f"system:node:{name}"
        and all(reference.kind == "Node" and reference.name == name for reference in added)
    )


RULES = (
    *_DELETION_RULES,
    Rule(
        id="owner-reference-added",
        check=owner_is_not_added_to_a_lease_in_use,
        resources=LEASES,
        operations=UPDATE,
        about_writer=True,
        standard=Mode.WARN,
        source="ours: seen with the real garbage collector; the plugin OwnerReferencesPermissionEnforcement helps too",
        why="The garbage collector deletes an object whose owner does not exist. With `update` alone, this deletes "
        "a live lease.",
        who="Operators that adopt a lease after its elector created it; of a bound lease also before.",
        fix="Set the owner when the lease is created, or let a writer that a binding lists add it.",
        attack=Attack("gave a held lease an owner with which it is deleted"),
    ),
)
