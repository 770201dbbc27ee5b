"""Owners added to a lease: the garbage collector deletes a lease for an owner that does not exist."""

from collections.abc import Iterable
from typing import Final

from webhook.api.field import forbidden
from webhook.api.objects import OwnerReference
from webhook.api.text import quote
from webhook.rules.change import LeaseChange
from webhook.rules.finding import NOTHING, Finding
from webhook.rules.mode import Mode
from webhook.rules.rule import LEASES, UPDATE, Rule
from webhook.rules.statement import Statement
from webhook.rules.well_known import CLEANUP_CONTROLLERS, NODE_LEASES

_FIELD: Final = "metadata.ownerReferences"

Owner = tuple[str, str, str, str]
"""Group, kind, name and uid; the version of an owner may change."""


def owner_is_not_added_to_a_lease_in_use(change: LeaseChange) -> Iterable[Finding]:
    """An ownerReference may not be added to a lease that has a holder or a renewTime.

    The garbage collector deletes the lease if the owner does not exist, live or not, and a writer that may update a
    lease need not be allowed to delete it. Exempt are the garbage collector and the namespace controller, the writers
    that a binding lists, and a node that adds itself to its own lease in kube-node-lease.
    """
    references = change.new_metadata.owner_references
    if not references or not (change.old_holder or change.old_renew_time is not None):
        return NOTHING
    known = {_owner(reference) for reference in change.old_metadata.owner_references or () if reference is not None}
    added = [reference for reference in references if reference is not None and _owner(reference) not in known]
    if not added or _is_free(change, added):
        return NOTHING
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
    Rule(
        id="owner-reference-added",
        check=owner_is_not_added_to_a_lease_in_use,
        resources=LEASES,
        operations=UPDATE,
        about_writer=True,
        standard=Mode.WARN,
        source="ours: seen with the real garbage collector; the plugin OwnerReferencesPermissionEnforcement helps too",
    ),
)
