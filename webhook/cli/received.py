"""When recorded reviews were received, as the indexes beside them say."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from webhook.cli.failure import Failure
from webhook.cli.moment import moment
from webhook.cli.sources import INDEX, Origin, Unreadable


class Received:
    """The moments of all indexes that concern some directories; `unreadable` are the lines that could not be read."""

    def __init__(self, directories: Sequence[str]) -> None:
        self.unreadable: list[Unreadable] = []
        self._moments: dict[Path, int] = {}
        self._denied: set[Path] = set()
        self._last: tuple[str, int | None] = ("", None)
        for index in _indexes(directories):
            self._read(index)

    def of(self, path: str) -> int | None:
        """When a file was received, in microseconds since 1970; None without an entry."""
        if self._last[0] != path:
            # Files come one after the other, each with all its documents.
            self._last = path, self._moments.get(Path(path).resolve())
        return self._last[1]

    def was_denied(self, path: str) -> bool:
        """Whether the review of a file was answered with a denial."""
        return bool(self._denied) and Path(path).resolve() in self._denied

    def _read(self, index: Path) -> None:
        try:
            with index.open("rb") as file:
                for number, line in enumerate(file, 1):
                    self._take(index, line, Origin(str(index), number, alone=False))
        except OSError as error:
            self.unreadable.append(Unreadable(Origin(str(index)), error.strerror or str(error)))

    def _take(self, index: Path, line: bytes, origin: Origin) -> None:
        try:
            entry = _entry(line)
            file, received = entry.get("file"), entry.get("received")
            if isinstance(file, str) and isinstance(received, str):
                place = (index.parent / file).resolve()
                self._moments[place] = moment(received)
                if entry.get("verdict") == "denied":
                    self._denied.add(place)
        except (ValueError, OSError, Failure) as error:
            self.unreadable.append(Unreadable(origin, str(error)))


def _entry(line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    return entry if isinstance(entry, dict) else {}


def _indexes(directories: Sequence[str]) -> Iterator[Path]:
    """The nearest index above each directory, and every one below it."""
    for directory in map(Path, directories):
        above = (parent / INDEX for parent in directory.resolve().parents)
        nearest = next((index for index in above if index.is_file()), None)
        if nearest:
            yield nearest
        if directory.is_dir():
            yield from sorted(index for index in directory.rglob(INDEX) if index.is_file())
