"""Whether a holder was asked to step down: in a coordinated election, an API server writes preferredHolder to do so.

In: the values of preferredHolder in two states, and the write between them. Out: a frozen value.
"""

from msgspec import Struct

from webhook.analysis.history.write import Write
from webhook.analysis.inputs.items import Writer


class StepDown(Struct, frozen=True):
    """The latest request to step down; it remains known after it was withdrawn."""

    asked: Write | None = None
    """The write that asked; None if none did, or if the request was withdrawn."""
    writer: Writer | None = None
    successor: str = ""
    """The value of preferredHolder."""

    def follow(self, old: str | None, new: str | None, write: Write, writer: Writer | None) -> "StepDown":
        """Return what holds after a write that changed preferredHolder from `old` to `new`, or left it.

        | preferredHolder after the write | the request before | now |
        |---|---|---|
        | empty | any | withdrawn |
        | another one than before | any | this write asks |
        | as before | none, or withdrawn | this write is the first that shows it |
        | as before | open | the same |
        """
        if not new:
            return StepDown(None, self.writer, self.successor)
        if new != old or self.asked is None:
            return StepDown(write, writer, new)
        return self
