"""How a holder was removed from a lease that still exists: by itself, which is a release, or by another writer.

Who is removed by another writer may go on as the leader, so what a reader is told depends on which of the two it was.
"""

from msgspec import Struct

from webhook.analysis.history.audit_log.addresses import Elsewhere
from webhook.analysis.inputs.items import Writer


class Removal(Struct, frozen=True):
    """The write that removed a holder; without one, nothing is known. Field managers are hints: clients choose them."""

    writer: Writer | None = None
    manager: str = ""
    """The field manager of the write."""
    is_own: bool | None = None
    """False if another writer removed the holder; None if it was not removed, or if that cannot be known."""
    is_field_gone: bool = False
    """The field of the holder is gone: most clients empty it when they release a lease."""
    is_renewal: bool = False
    """It set another renewTime, as most clients do when they release a lease."""
    is_under_own_manager: bool = False
    """The field manager is that of the holder's renewals, and the input does not show the writer."""
    is_doubted: bool = False
    """What followed it hints that the holder did not make it."""
    is_blind: bool = False
    """It was a patch without a precondition, which removes whoever holds the lease."""
    is_under_other_manager: bool = False
    """The field manager is not that of the holder's renewals, and the writer may be the holder."""
    elsewhere: Elsewhere | None = None
    """It came from another address than the renewals of the pod whose token it had: that pod need not have made it."""

    @property
    def may_be_by_another(self) -> bool:
        """Whether the holder did not release the lease itself, or not as most clients do."""
        is_odd = self.is_field_gone or self.is_under_other_manager
        return self.is_own is False or (is_odd and self.is_own is None)

    @property
    def is_likely_foreign(self) -> bool:
        """Whether another writer removed the holder, or the field manager hints so: it most likely still leads."""
        return self.is_own is False or self.is_under_other_manager
