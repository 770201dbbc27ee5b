"""Finds files below a directory: what is hidden, ignored or not a file is named, and never opened."""

import stat
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from msgspec import Struct

HIDDEN: Final = "hidden"
IGNORED: Final = "ignored"
NOT_A_FILE: Final = "device, pipe or socket"


class Found(Struct, frozen=True):
    """A path below a directory: a file to read, unless `skipped` or `error` says why it is not read."""

    path: Path
    skipped: str = ""
    error: str = ""


def below(directory: Path, suffixes: Sequence[str], ignore: Sequence[str] = ()) -> Iterator[Found]:
    """Every file that matches below a directory, in order of names; links to directories are not followed.

    Args:
        directory: where to begin.
        suffixes: how the names of matching files end.
        ignore: shell patterns; what matches one by its name, or by its path below the directory, is not read.

    """
    waiting = _listed(directory)
    while waiting:
        found = waiting.pop()
        path = found.path
        is_folder = is_directory(path) and not path.is_symlink()
        if found.error:
            yield found
        elif not is_folder and path.suffix not in suffixes:
            continue
        elif reason := _reason(path, directory, ignore):
            yield Found(path, skipped=reason)
        elif is_folder:
            waiting += _listed(path)
        elif (answer := _file(path)) is not None:
            yield answer


def is_directory(path: Path) -> bool:
    """Whether a path is a directory, or a link to one; not if that cannot be found out."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _listed(folder: Path) -> list[Found]:
    """What is in a folder, the last name first; a folder may vanish while others are read."""
    try:
        return [Found(path) for path in sorted(folder.iterdir(), reverse=True)]
    except OSError as error:
        return [Found(folder, error=error.strerror or str(error))]


def _reason(path: Path, directory: Path, ignore: Sequence[str]) -> str:
    if path.name.startswith("."):
        return HIDDEN
    names = (path.name, path.relative_to(directory).as_posix())
    return IGNORED if any(fnmatchcase(name, glob.rstrip("/")) for glob in ignore for name in names) else ""


def _file(path: Path) -> Found | None:
    """A file to read, or why not; None for a link to a directory."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return Found(path, error=error.strerror or str(error))
    if stat.S_ISDIR(mode):
        return None
    return Found(path, skipped="" if stat.S_ISREG(mode) else NOT_A_FILE)
