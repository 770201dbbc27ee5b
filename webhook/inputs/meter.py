"""How much of the inputs was read; whoever reads them may end them all."""

from msgspec import Struct


class Meter(Struct):
    """`size` and `read` are bytes, of files as they are stored; `items` is what they had so far.

    Once `is_stopped`, every input ends as if there were no more.
    """

    size: int = 0
    read: int = 0
    items: int = 0
    is_stopped: bool = False
