"""A renewal of a held lease by another writer than its holder."""

from msgspec import Struct

from webhook.analysis.inputs.items import Writer


class RenewalByOther(Struct, frozen=True):
    """The last renewal that another writer made in the holder's place."""

    at: int
    """Microseconds since 1970."""
    writer: Writer
    """Writer() if the input does not show who it was."""
    renew_time: int | None = None
    """The renewTime that it wrote; None if the input does not show it."""
    is_claimed: bool = False
    """Only the clock of the writer dates it."""
