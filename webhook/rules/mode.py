"""What a finding leads to: off, audit, warn or deny."""

from enum import IntEnum


class Mode(IntEnum):
    """What a finding leads to; a lower mode does less."""

    OFF = 0
    AUDIT = 1
    WARN = 2
    DENY = 3

    @property
    def word(self) -> str:
        """The mode as policy files and annotations spell it."""
        return self.name.lower()
