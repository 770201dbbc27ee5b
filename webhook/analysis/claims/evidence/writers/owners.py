"""What is said of owners that a write added to a lease."""

import re
from collections.abc import Sequence
from typing import Final

from webhook.analysis.claims.commands import find_pod
from webhook.analysis.claims.handover_clauses import describe_dating
from webhook.analysis.claims.words import describe_by_writer, format_name
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.owners import AddedOwners, list_owners
from webhook.kubernetes.generated_names import GENERATED
from webhook.kubernetes.objects import OwnerReference

_MAX_NAMED: Final = 2
_GENERATED: Final = re.compile(rf"[a-z0-9.-]+-{GENERATED}{{5}}")
"""The name of a pod that Kubernetes made up, and gives to no other pod."""


def find_owners_added_to(history: LeaseHistory, tenure: Tenure) -> AddedOwners | None:
    """Return the latest owners that were added while a holder had the lease; None if none are known."""
    return next((one for one in reversed(history.added_owners) if one.tenure is tenure), None)


def is_by_holder(added: AddedOwners) -> bool:
    """Return whether the holder's own process added owners, or one field manager did that and renews the lease."""
    own = added.tenure.processes.own if added.tenure else None
    if added.writer is None:
        return not added.manager
    return own is not None and own.is_same(added.writer)


def find_owner_that_held(history: LeaseHistory, before: Tenure) -> OwnerReference | None:
    """Return the pod that held a lease and was its owner when that was deleted; None if that is not known.

    Kubernetes tells pods of one name apart by their uids, and an owner of a uid that no pod has is gone: so another
    pod of its name may hold the lease, unless the name is given once. What others add may name any uid.
    """
    added, pod, own = (
        find_owners_added_to(history, before),
        find_pod(history, before.holder, before),
        before.processes.own,
    )
    if (added is not None and not is_by_holder(added)) or pod.namespace != history.namespace:
        return None
    for owner in before.deletion.owners:
        is_pod = owner.kind == "Pod" and owner.api_version == "v1" and bool(pod.name) and owner.name == pod.name
        is_same_uid = own is not None and bool(own.uid) and own.uid == owner.uid
        if is_pod and (is_same_uid or _GENERATED.fullmatch(pod.name)):
            return owner
    return None


def name_owners(owners: Sequence[OwnerReference]) -> str:
    """`ReplicaSet db-7f9c and Pod db-0`; "" if there are none, or too many to be named."""
    named = (f"{format_name(one.kind or '')} {format_name(one.name or '')}" for one in owners)
    return " and ".join(named) if len(owners) <= _MAX_NAMED else ""


def name_present_owners(history: LeaseHistory) -> str:
    """Return the owners that a lease names now, which it will go with; "" if it names none, or does not exist."""
    if history.lease is None or history.is_deleted:
        return ""
    return name_owners(list_owners(history.lease.metadata.owner_references))


def describe_added_owners(added: AddedOwners, at: str = "") -> str:
    """`the owner ConfigMap settings was added by shop/ui`, or under which field manager; ` at 12:00:02Z` before that.

    Anyone may choose a field manager, so it is named only where the input does not show the writer.
    """
    named = ", ".join(f"{format_name(kind)} {format_name(name)}" for kind, name in added.owners[:_MAX_NAMED])
    more = f" and {len(added.owners) - _MAX_NAMED} more" if len(added.owners) > _MAX_NAMED else ""
    what = "the owner {} was" if len(added.owners) == 1 else "the owners {} were"
    by = describe_by_writer(added.writer)
    by = f" under field manager {format_name(added.manager)}" if added.manager and not by else by
    dating = describe_dating(is_dated=added.is_dated, is_claimed=added.is_claimed)
    return f"{what.replace('{}', named + more)} added{at}{by}{dating}"
