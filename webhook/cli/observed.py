"""The inputs of `why` and `audit` as observations: dumps, watch streams, audit logs and recorded reviews.

Files are read in pieces, so a stream may be of any length. After a broken document the next one is read.
"""

import gzip
import io
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from webhook.cli import documents, kubernetes_yaml
from webhook.cli.received import Received
from webhook.cli.sources import INDEX, STANDARD_INPUT
from webhook.cli.walk import Found, below, is_directory
from webhook.observations.observation import Answer, Item, Observation, Source, Unreadable
from webhook.observations.reader import is_json, read
from webhook.observations.values_of import observe
from webhook.yaml_reader import YamlError

PIECE: Final = 1024 * 1024
"""Bytes that are read at once; from a pipe, as many as are available."""
SUFFIXES: Final = (
    ".json",
    ".jsonl",
    ".ndjson",
    ".yaml",
    ".yml",
    ".log",
    ".gz",
    *(f".{number}" for number in range(1, 100)),
)
"""Suffixes of the files that are read below a directory; logrotate numbers old logs."""

_GZIP: Final = b"\x1f\x8b"
_FIRST_EVENT: Final = re.compile(
    rb'\A\s*\{"kind":"Event","apiVersion":"audit\.k8s\.io/.*?"requestReceivedTimestamp":"([^"]+)"'
)


def observe_all(paths: Sequence[str]) -> Iterator[Item]:
    """Every observation in files, directories and standard input (`-`), each as soon as it is read.

    The audit logs of one directory come in the order of their events, whatever their names are.
    """
    return chain.from_iterable(one.read() for one in inputs(paths))


class Input(NamedTuple):
    """A file or standard input; `read` gives its observations, for a file all of them at each call."""

    path: str
    read: Callable[[], Iterator[Item]]


def inputs(paths: Sequence[str]) -> Iterator[Input]:
    """Every file in files and directories, and standard input, in the order of `observe_all`."""
    received = Received([path for path in paths if path != STANDARD_INPUT])
    for one in received.unreadable:
        problem = Unreadable(Source(one.origin.path, one.origin.number), one.error)
        yield Input(one.origin.path, partial(iter, (problem,)))
    for path in paths:
        if path == STANDARD_INPUT:
            yield Input(path, partial(stream, path, sys.stdin.buffer))
        elif is_directory(Path(path)):
            for found in in_order_of_events(below(Path(path), SUFFIXES, (INDEX,))):
                yield Input(str(found.path), partial(_found, found, received))
        else:
            yield Input(path, partial(_file, path, received))


def in_order_of_events(files: Iterator[Found]) -> list[Found]:
    """Files with the audit logs among them last and sorted by their first event; the others stay as they are."""
    times = [(_first_event(found), number, found) for number, found in enumerate(files)]
    return [found for _, _, found in sorted(times, key=lambda one: one[:2])]


def _first_event(found: Found) -> bytes:
    """When the first event of an audit log was received; "" for anything else."""
    if found.skipped or found.error:
        return b""
    try:
        with found.path.open("rb") as file:
            first = _FIRST_EVENT.match(next(_pieces(_unzipped(file)), b""))
    except (OSError, EOFError, zlib.error):
        return b""
    return first[1] if first else b""


def _found(found: Found, received: Received) -> Iterator[Item]:
    if found.error:
        yield Unreadable(Source(str(found.path), 1), found.error)
    elif not found.skipped:
        yield from _file(str(found.path), received)


def _file(path: str, received: Received) -> Iterator[Item]:
    try:
        with Path(path).open("rb") as file:
            for item in stream(path, file, received.of(path)):
                was_denied = isinstance(item, Observation) and received.was_denied(path)
                yield replace(item, answer=Answer(403)) if was_denied else item
    except OSError as error:
        yield Unreadable(Source(path, 1), error.strerror or str(error))


def stream(path: str, file: BinaryIO, received: int | None = None) -> Iterator[Item]:
    """Every observation in an open file, gzipped or not."""
    try:
        plain = _unzipped(file)
        if is_json(plain.peek(64)):
            yield from read(path, _pieces(plain), received)
        else:
            yield from _yaml(path, plain)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        yield Unreadable(Source(path, 1), f"not gzip: {error}")


def _unzipped(file: BinaryIO) -> io.BufferedReader:
    # Files, pipes and standard input are this already; from a pipe it returns what is available, without waiting.
    plain = file if isinstance(file, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", file))
    if plain.peek(2)[:2] != _GZIP:
        return plain
    return io.BufferedReader(cast("io.RawIOBase", gzip.GzipFile(fileobj=plain)), PIECE)


def _pieces(file: io.BufferedReader) -> Iterator[bytes]:
    while piece := file.read1(PIECE):
        yield piece


def _yaml(path: str, file: BinaryIO) -> Iterator[Item]:
    number = 0
    for part in documents.cut(file):
        if isinstance(part, documents.UnreadablePart):
            number += 1
            yield Unreadable(Source(path, number), part.error)
            continue
        try:
            for value in kubernetes_yaml.objects(part.text, part.first_line):
                number += 1
                yield from _value(value, Source(path, number))
        except YamlError as error:
            number += 1
            yield Unreadable(Source(path, number), str(error))


def _value(value: object, source: Source) -> Iterator[Item]:
    if not isinstance(value, dict):
        yield Unreadable(source, "not a Kubernetes object")
        return
    try:
        item = observe(msgspec.json.encode(value), b"", source)
    except (RecursionError, ValueError) as error:
        yield Unreadable(source, str(error))
    else:
        if item is not None:
            yield item
