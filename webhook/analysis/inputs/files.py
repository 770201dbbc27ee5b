"""Opens inputs: files, folders, standard input, gzip or not.

Below a folder, what is hidden, ignored or no file is not opened.
"""

import gzip
import io
import os
import re
import select
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, TypeVar, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from webhook.analysis.inputs import audit_log, documents, kinds
from webhook.analysis.inputs.documents import (
    KIND_OF_TEMPLATE,
    MAX_DOCUMENT,
    Document,
    IsWanted,
    LastLine,
    Value,
    want_all,
)
from webhook.analysis.inputs.items import (
    STANDARD_INPUT,
    Answer,
    Input,
    Item,
    Observation,
    OtherObject,
    Place,
    Unreadable,
)
from webhook.analysis.inputs.kinds import Submitted
from webhook.analysis.inputs.meter import Meter
from webhook.errors import InputError
from webhook.kubernetes.times import parse_seconds
from webhook.text.quoting import quote, truncate

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

INDEX: Final = "index.jsonl"
"""Beside recordings: one JSON object for each file, with `file` (a path from here) and `received` (RFC 3339)."""
SUFFIXES: Final = (
    *(".json", ".jsonl", ".ndjson", ".yaml", ".yml", ".log", ".gz"),
    *(f".{number}" for number in range(1, 100)),
)
"""Suffixes of the files below a directory that are read; logrotate numbers old logs."""
_DATED_LOG: Final = re.compile(r"\.(?:log|jsonl?|ndjson)[-.]\d{8}(?:-\d+)?", re.ASCII)
"""The suffix of such a log where logrotate dates old ones, by its option dateext."""

_PIECE: Final = 1024 * 1024
"""Bytes that are read at once; from a pipe, as many as are available."""
_PATIENCE: Final = 0.1
"""Seconds after which a reader that waits looks whether it is to stop."""
_MAX_ENTRY: Final = 64 * 1024
"""Bytes of a line of an index."""
_MAX_BROKEN: Final = 1000
"""Broken lines of an index, before the rest of it is not read."""
_GZIP: Final = b"\x1f\x8b"
_START: Final = 64
"""Bytes that show what an input is."""

_is_directory: Final = os.path.isdir
"""False for a path of which that cannot be found out, where `Path.is_dir` raises OSError."""


def read(
    file: BinaryIO, path: str, is_wanted: IsWanted = want_all, meter: Meter | None = None
) -> Iterator[Document | Unreadable | LastLine]:
    """Yield the documents of an open file, gzipped or not, each as soon as it is read.

    `path` is its name in what is found; of an audit log only lines that are wanted are read.
    """
    try:
        plain = _unzip(file) if meter is None else meter.wrap(_unzip(file))
        start = plain.peek(_START)
        first: list[bytes] = []
        if len(start.lstrip()) < _START:
            # A pipe may have given a part of the first line, and blank lines before it.
            while len(first) < _START and (line := plain.readline(_PIECE)):
                first.append(line)
                if line.strip():
                    break
            start = b"".join(first)
        if documents.AUDIT_EVENT.match(start):
            lines = iter(partial(plain.readline, MAX_DOCUMENT + 1), b"")
            yield from documents.split_audit_log(path, chain(first, lines), is_wanted)
        elif not first and (items := _read_list(plain, path, start)):
            yield from items
        else:
            yield from documents.split_documents(
                path, chain(first, _read_pieces(plain)), is_json=path.endswith(".jsonl")
            )
    except EOFError:
        yield Unreadable(Place(path), "the gzip file is cut off; what comes before the cut is read")
    except zlib.error as error:
        yield Unreadable(Place(path), f"the gzip file is damaged: {error}")
    except gzip.BadGzipFile as error:
        yield Unreadable(Place(path), f"not gzip: {error}")


class _MeteredFile(io.FileIO):
    """A file or pipe whose position a meter counts, and which it ends."""

    def __init__(self, file: str | int, meter: Meter) -> None:
        super().__init__(file, closefd=isinstance(file, str))
        self._meter = meter
        self._position = 0
        self._may_block = not stat.S_ISREG(os.fstat(self.fileno()).st_mode)

    def readinto(self, buffer: "Buffer", /) -> int | None:
        # A read of a pipe goes on after a signal, so there must be something to read.
        while self._may_block and not self._meter.is_stopped and not select.select([self], (), (), _PATIENCE)[0]:
            pass
        if self._meter.is_stopped:
            return 0
        number = super().readinto(buffer)
        self._position += number or 0
        self._meter.read += number or 0
        return number

    def seek(self, position: int, whence: int = os.SEEK_SET, /) -> int:
        reached = super().seek(position, whence)
        self._meter.read += reached - self._position
        self._position = reached
        return reached


def read_path(
    path: str, is_wanted: IsWanted = want_all, meter: Meter | None = None
) -> Iterator[Document | Unreadable | LastLine]:
    """Yield the documents of a file or of standard input, as in `read`; one that cannot be opened is unreadable."""
    meter = Meter() if meter is None else meter
    if path == STANDARD_INPUT:
        yield from read(_open_standard_input(meter), path, is_wanted, meter)
        return
    try:
        with io.BufferedReader(_MeteredFile(path, meter), _PIECE) as file:
            yield from read(file, path, is_wanted, meter)
    except OSError as error:
        yield Unreadable(Place(path, is_only=True), error.strerror or str(error))


def _open_standard_input(meter: Meter) -> BinaryIO:
    try:
        return io.BufferedReader(_MeteredFile(sys.stdin.fileno(), meter), _PIECE)
    except (OSError, ValueError):
        return sys.stdin.buffer  # it is not a file of this process


def require_readable(found: Iterable[Document | Unreadable | LastLine]) -> Iterator[Document]:
    """Yield the documents; raises InputError for one that is broken."""
    for item in found:
        if isinstance(item, Unreadable):
            raise InputError(f"{item.place.short}: {item.error}")
        if isinstance(item, Document):
            yield item


def read_objects(path: str) -> Iterator[Value]:
    """Yield the value of every document of a file or of standard input.

    Raises InputError for one that is broken, or has a key twice.
    """
    yield from map(decode, require_readable(read_path(path)))


def read_documents(path: str) -> Iterator[Document]:
    """Yield the documents of a file, of the files below a directory, or of standard input.

    Raises InputError for one that is broken, and for what cannot be opened.
    """
    for found in list_files(path):
        if not isinstance(found, OtherObject):
            yield from require_readable(read_path(found) if isinstance(found, str) else (found,))


def decode(document: Document) -> Value:
    """Return the value of a document; raises InputError for a key that appears twice."""
    try:
        return document.value
    except (ValueError, RecursionError) as error:
        raise InputError(f"{document.place}: {documents.describe_problem(error)}") from None


def read_for_check(
    paths: Sequence[str],
    ignore: Sequence[str] = (),
    *,
    skip_found: bool = False,
    skip_named: bool = False,
    meter: Meter | None = None,
) -> Iterator[Submitted | Input]:
    """Yield every document under the paths as what can be evaluated, in order, each as soon as it is read.

    An audit log or a watch is given as an input, which is not read further. In directories, files with SUFFIXES are
    read, except what matches the shell patterns of `ignore`. Text that is not a Kubernetes object counts as foreign,
    not as unreadable, below a directory if `skip_found`, in a named file if `skip_named`.
    """
    meter = Meter() if meter is None else meter
    named: list[tuple[str, bool] | Unreadable | OtherObject] = []
    for path in paths:
        if path == STANDARD_INPUT or not _is_directory(Path(path)):
            named.append((path, skip_named))
        else:
            below = find_files(Path(path), ignore)
            named += [(found, skip_found) if isinstance(found, str) else found for found in below]
    meter.size += sum(_get_size(one[0]) for one in named if isinstance(one, tuple))
    for item in named:
        if not isinstance(item, tuple):
            yield item
        elif not meter.is_stopped:
            yield from _take_until_stopped(_read_file_for_check(item[0], meter, skip=item[1]), meter)


_T = TypeVar("_T")


def _take_until_stopped(items: Iterable[_T], meter: Meter) -> Iterator[_T]:
    """Yield items until their input is stopped: what comes then may be half of one."""
    for item in items:
        if meter.is_stopped:
            return
        meter.items += 1
        yield item


def _get_size(path: str) -> int:
    """Return the bytes of a file, 0 if that is not known."""
    try:
        return 0 if path == STANDARD_INPUT else Path(path).stat().st_size
    except (OSError, ValueError):
        return 0


def _read_file_for_check(path: str, meter: Meter, *, skip: bool) -> Iterator[Submitted | Input]:
    """Yield the items of one file, the first once it is known whether there is a second."""
    found = read_path(path, audit_log.may_say_something, meter)
    read = list(islice(found, 2)) or [Unreadable(Place(path), "empty", is_foreign=True)]
    if len(read) == 1 and not isinstance(read[0], LastLine):
        read[0] = replace(read[0], place=replace(read[0].place, is_only=True))
    rest = chain(read, found)
    for document in rest:
        if isinstance(document, LastLine) or kinds.is_of_history(document):
            # Standard input cannot be read twice.
            again = partial(_read_file_for_history, path, CaptureIndex(()), meter, audit_log.LineFilter())
            whole = partial(kinds.interpret_all, chain([document], rest))
            yield Input(path, whole if path == STANDARD_INPUT else again)
            return
        item = kinds.interpret_for_check(document)
        if skip and isinstance(item, Unreadable) and item.is_foreign:
            yield OtherObject(item.place, KIND_OF_TEMPLATE if item.is_template else "not a Kubernetes object")
        elif isinstance(item, kinds.Manifest) and _is_named_by_a_template(item.document):
            line = item.source.find_line()
            template = Unreadable(item.place, documents.RENDER, is_foreign=True, line=line, is_template=True)
            yield OtherObject(item.place, KIND_OF_TEMPLATE) if skip else template
        else:
            yield item


def _is_named_by_a_template(document: Value) -> bool:
    """Return whether a name is an action of a template, in quotes: no API server stores an object under it."""
    metadata = document.get("metadata")
    names = [metadata.get("name"), metadata.get("namespace")] if isinstance(metadata, dict) else []
    return any(isinstance(name, str) and documents.TEMPLATE.search(name) for name in names)


def find_inputs(paths: Sequence[str], meter: Meter | None = None) -> Iterator[Input]:
    """Yield every file in files and directories, and standard input, in the order of names."""
    meter = Meter() if meter is None else meter
    received = CaptureIndex([path for path in paths if path != STANDARD_INPUT])
    found: list[str | Unreadable | OtherObject] = [*received.unreadable]
    for path in paths:
        found += list_files(path)
    meter.size += sum(_get_size(one) for one in found if isinstance(one, str))
    lines = audit_log.LineFilter()  # a pod may ask for a lease in one log, and for the rest in the next one
    for item in found:
        if isinstance(item, str):
            yield Input(item, partial(_read_file_for_history, item, received, meter, lines))
        elif isinstance(item, Unreadable):
            yield Input(item.place.path, partial(iter, (item,)))


def _read_file_for_history(
    path: str, received: "CaptureIndex", meter: Meter, lines: audit_log.LineFilter
) -> Iterator[Item]:
    was_denied = received.was_denied(path)
    observations = kinds.interpret_all(read_path(path, lines.may_say_something, meter), received.find_moment(path))
    for item in _take_until_stopped(observations, meter):
        yield replace(item, answer=Answer(403)) if was_denied and isinstance(item, Observation) else item


class _GzipFile(gzip.GzipFile):
    """Also gives what comes before a fault, in pieces as small as they are decompressed."""

    def readinto(self, buffer: "Buffer", /) -> int:
        view = memoryview(buffer)
        piece = self.read1(len(view))
        view[: len(piece)] = piece
        return len(piece)


def _unzip(file: BinaryIO) -> io.BufferedReader:
    # Files, pipes and standard input are this already; from a pipe it returns what is available, without waiting.
    plain = file if isinstance(file, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", file))
    if plain.peek(2)[:2] != _GZIP:
        return plain
    return io.BufferedReader(cast("io.RawIOBase", _GzipFile(fileobj=plain)), _PIECE)


def _read_list(file: io.BufferedReader, path: str, start: bytes) -> Iterator[Document | Unreadable] | None:
    """Return the items of a List, which is held as a whole only if it cannot be read twice, or is broken."""
    if documents.LIST.match(start) is None or not file.seekable():
        return None
    position = file.tell()

    def read_again() -> Iterator[bytes]:
        file.seek(position)
        return _read_pieces(file)

    items = documents.split_list(path, read_again)
    if items is None:
        file.seek(position)
    return items


def _read_pieces(file: io.BufferedReader) -> Iterator[bytes]:
    while piece := file.read1(_PIECE):
        yield piece


class CaptureIndex:
    """The `moments` at which files were received, by all indexes that concern some directories.

    `unreadable` are the lines that could not be read.
    """

    def __init__(self, directories: Sequence[str]) -> None:
        self.unreadable: list[Unreadable] = []
        self.moments: dict[Path, int] = {}
        self._denied: set[Path] = set()
        for index in _find_indexes(directories):
            self._read(index)

    def find_moment(self, path: str) -> int | None:
        """Return when a file was received, in microseconds since 1970; None without an entry."""
        return self.moments.get(Path(path).resolve()) if self.moments else None

    def was_denied(self, path: str) -> bool:
        """True if the review of a file was answered with a denial."""
        return bool(self._denied) and Path(path).resolve() in self._denied

    def _read(self, index: Path) -> None:
        try:
            with index.open("rb") as file:
                known = len(self.unreadable)
                for number, line in enumerate(iter(partial(file.readline, _MAX_ENTRY), b""), 1):
                    place = Place(str(index), number)
                    is_long = len(line) == _MAX_ENTRY and not line.endswith(b"\n")
                    if is_long or len(self.unreadable) - known >= _MAX_BROKEN:
                        problem = "a line of more than 64 KiB" if is_long else "too much is broken"
                        self.unreadable.append(Unreadable(place, f"{problem}; the rest is not read"))
                        return
                    self._take(index, line, place)
        except OSError as error:
            self.unreadable.append(Unreadable(Place(str(index), is_only=True), error.strerror or str(error)))

    def _take(self, index: Path, line: bytes, place: Place) -> None:
        try:
            entry = _entry.decode(line)
            if isinstance(entry.file, str) and isinstance(entry.received, str):
                path = (index.parent / entry.file).resolve()
                self.moments[path] = _parse_moment(entry.received)
                if entry.verdict == "denied":
                    self._denied.add(path)
        except msgspec.ValidationError:
            self.unreadable.append(Unreadable(place, "not an object"))
        except OSError as error:
            self.unreadable.append(Unreadable(place, str(error)))
        except (ValueError, RecursionError) as error:
            self.unreadable.append(Unreadable(place, documents.describe_problem(error)))


def _parse_moment(text: str) -> int:
    try:
        return parse_seconds(text.upper())
    except ValueError:
        raise ValueError(f"{quote(truncate(text))} is not an RFC 3339 time") from None


class _Entry(Struct, frozen=True):
    file: object = None
    received: object = None
    verdict: object = None


_entry: Final = msgspec.json.Decoder(_Entry)


def _find_indexes(directories: Sequence[str]) -> Iterator[Path]:
    """Yield the nearest index above each directory, and every one below it, except in hidden folders."""
    for directory in map(Path, directories):
        above = (parent / INDEX for parent in directory.resolve().parents)
        # A path that is too long cannot be asked for.
        nearest = next((index for index in above if _is_directory(index.parent) and index.is_file()), None)
        if nearest:
            yield nearest
        if _is_directory(directory):
            below = (index for index in directory.rglob(INDEX) if not _is_hidden(index.relative_to(directory)))
            yield from sorted(index for index in below if index.is_file())


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def list_files(path: str) -> Iterator[str | Unreadable | OtherObject]:
    """Yield a file or standard input, or what `find_files` finds below a directory."""
    if path == STANDARD_INPUT or not _is_directory(Path(path)):
        yield path
    else:
        yield from find_files(Path(path))


def find_files(directory: Path, ignore: Sequence[str] = ()) -> Iterator[str | Unreadable | OtherObject]:
    """Yield the path of every file below a directory that has one of SUFFIXES, in order of names.

    Links to directories are not followed, and indexes are left out. What is hidden, matches a shell pattern of `ignore`
    by its name or by its path below the directory, or that is not a file, is foreign.
    """
    waiting = [directory]
    while waiting:
        path = waiting.pop()
        is_folder = path == directory or (_is_directory(path) and not path.is_symlink())
        if path != directory and (path.name == INDEX or not (is_folder or _has_suffix(path))):
            continue
        place = Place(str(path), is_only=True)
        try:
            if path != directory and (reason := _find_reason_to_skip(path, directory, ignore)):
                yield OtherObject(place, reason)
            elif is_folder:
                # A folder may vanish while others are read.
                waiting += sorted(path.iterdir(), reverse=True)
            elif stat.S_ISREG(mode := path.stat().st_mode):
                yield str(path)
            elif not stat.S_ISDIR(mode):
                yield OtherObject(place, "device, pipe or socket")
        except OSError as error:
            yield Unreadable(place, error.strerror or str(error))


def _has_suffix(path: Path) -> bool:
    """Return whether a file has one of SUFFIXES, or the day of a log in place of one."""
    dated = ("".join(path.suffixes[-number:]) for number in (1, 2))
    return path.suffix in SUFFIXES or any(map(_DATED_LOG.fullmatch, dated))


def _find_reason_to_skip(path: Path, directory: Path, ignore: Sequence[str]) -> str:
    if path.name.startswith("."):
        return "hidden"
    names = (path.name, path.relative_to(directory).as_posix())
    return "ignored" if any(fnmatchcase(name, glob.rstrip("/")) for glob in ignore for name in names) else ""
