"""Writes that changed neither the holder nor renewed the lease, such as of an annotation."""

from msgspec import Struct

from webhook.analysis.inputs.items import Writer


class IdleWrite(Struct, frozen=True, gc=False):
    """One of them, at `at`; `name` is that of its user, else of its field manager, which any client may choose."""

    at: int
    name: str
    foreign: Writer | None = None
    """The writer, if the input shows that it was not the holder."""
