"""What a finding leads to: nothing, a note in the audit log, a warning, or a denial."""

from enum import IntEnum
from typing import Final


class Mode(IntEnum):
    """The consequence of a finding; a lower mode does less."""

    OFF = 0
    AUDIT = 1
    WARN = 2
    DENY = 3

    @property
    def word(self) -> str:
        """The mode as policy files and annotations spell it."""
        return _WORDS[self]


_WORDS: Final = tuple(mode.name.lower() for mode in Mode)
