"""What is said of owners that a write added to a lease."""

from typing import Final

from webhook.analysis.claims.handovers import describe_dating
from webhook.analysis.claims.words import describe_by_writer, format_name
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.owners import AddedOwners
from webhook.analysis.history.tenure import Tenure

_MAX_NAMED: Final = 2


def find_owners_added_to(history: LeaseHistory, tenure: Tenure) -> AddedOwners | None:
    """Return the latest owners that were added while a holder had the lease; None if none are known."""
    return next((one for one in reversed(history.added_owners) if one.tenure is tenure), None)


def is_by_holder(added: AddedOwners) -> bool:
    """Return whether the holder's own process added owners, or one field manager did that and renews the lease."""
    own = added.tenure.processes.own if added.tenure else None
    if added.writer is None:
        return not added.manager
    return own is not None and own.is_same(added.writer)


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
