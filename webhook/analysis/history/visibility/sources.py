"""Which files are parts of one watch: each file of a recorder continues the one before."""

import re
from typing import Final

_RECORDED: Final = re.compile(r"(?:leases-\d{15}|latest)\.jsonl(?:\.gz)?")
"""The files that a recorder writes."""


def is_same_source(path: str, other: str) -> bool:
    """Return whether one file continues the other, or both are one."""
    return path == other or _find_source(path) == _find_source(other)


def _find_source(path: str) -> str:
    """Return the folder of a recorder's file; any other file is a source of its own."""
    folder, _, name = path.rpartition("/")
    return folder if _RECORDED.fullmatch(name) else path
