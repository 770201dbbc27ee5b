"""How a tenure ended if its lease was deleted while it was held."""

from msgspec import Struct

from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.objects import OwnerReference


class DeletionOfHeld(Struct, frozen=True):
    """The deletion of a lease that was held; without one, nothing of it is known."""

    is_deleted: bool = False
    """The tenure ended because the lease was deleted."""
    by: Writer | None = None
    """Who asked for it; None if the input does not show that."""
    is_sure: bool = True
    """False if it may have been a dry run."""
    marked_at: int = 0
    """When the deletion of a lease with finalizers was asked for, in microseconds since 1970; 0 if it had none."""
    last_finalizer_by: Writer | None = None
    """Who removed the last finalizer; None if it had none."""
    created_again_by: Writer | None = None
    """Who created the lease again without a holder; None if nobody did, or if the input does not show it."""
    owners: tuple[OwnerReference, ...] = ()
    """The owners that the lease named, unless another field manager than the holder's wrote them."""
