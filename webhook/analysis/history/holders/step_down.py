"""Whether a holder was asked to step down: in a coordinated election, an API server writes preferredHolder to do so.

In: the values of preferredHolder in two states, and the write between them. Out: a frozen value.
"""

from msgspec import Struct

from webhook.analysis.history.write import Write
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.managed_fields import OF_API_SERVERS


class StepDown(Struct, frozen=True):
    """The latest request to step down; it remains known after it was withdrawn."""

    asked: Write | None = None
    """The write that asked; None if none did, or if the request was withdrawn."""
    writer: Writer | None = None
    successor: str = ""
    """The value of preferredHolder."""
    manager: str = ""
    """The field manager that set it, if the input does not show who did; "" if that is not known either."""
    is_ignored: bool = False
    """True if a renewal removed one and went on, as an elector does that replaces the whole spec."""

    @property
    def is_by_other_manager(self) -> bool:
        """True if stamps alone show who asked: a field manager that is not that which API servers have by default."""
        return self.writer is None and self.manager not in {"", OF_API_SERVERS}

    def follow(
        self,
        old: str | None,
        new: str | None,
        write: Write,
        writer: Writer | None,
        manager: str = "",
        *,
        is_renewal: bool,
    ) -> "StepDown":
        """Return what holds after a write that changed preferredHolder from `old` to `new`, or left it.

        `manager` is the field manager that set it, as far as stamps show that. `is_renewal`: the write renewed the
        lease, too.

        | preferredHolder after the write | the request before | now |
        |---|---|---|
        | empty | any | withdrawn; ignored, if a renewal did that |
        | another one than before | any | this write asks |
        | as before | none, or withdrawn | this write is the first that shows it; its writer did not ask |
        | as before | open | the same |
        """
        is_ignored = self.is_ignored or (is_renewal and self.asked is not None and not new)
        if not new:
            return StepDown(None, self.writer, self.successor, self.manager, is_ignored)
        if new != old:
            return StepDown(write, writer, new, manager, is_ignored)
        return self if self.asked is not None else StepDown(write, None, new, manager, is_ignored)
