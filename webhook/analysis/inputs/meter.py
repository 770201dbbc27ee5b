"""Counts how much of the inputs was read; whoever reads them may end them all."""

from typing import Any

from msgspec import Struct


class Meter(Struct):
    """`size` and `read` are bytes, of files as they are stored; `items` is what they had so far.

    Once `is_stopped`, every input ends as if there were no more.
    """

    size: int = 0
    read: int = 0
    items: int = 0
    is_stopped: bool = False

    def wrap(self, plain: Any) -> Any:  # noqa: ANN401 - a `BufferedReader`, of a module that does no I/O
        """Return what a file is read from, once it is uncompressed: a meter that limits memory counts these bytes."""
        return plain
