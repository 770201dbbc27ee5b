"""The inputs of `check` and `replay`: reviews and manifests in files, directories and standard input.

Nothing here evaluates. After a broken document the next one is read.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Final

from msgspec import Struct

from webhook.api.request import GROUP, KIND_OF
from webhook.cli import documents, json_text, kubernetes_yaml
from webhook.cli.walk import Found, below, is_directory
from webhook.yaml_reader import YamlError

SUFFIXES: Final = (".json", ".jsonl", ".yaml", ".yml")
LARGEST_DOCUMENT: Final = 20 * 1024 * 1024
"""Bytes of one document as JSON: as many as an API server reads of one request."""
STANDARD_INPUT: Final = "-"
INDEX: Final = "index.jsonl"
"""Beside recordings: one JSON object for each file, with `file` (a path from here) and `received` (RFC 3339)."""

FOREIGN: Final = "not a Kubernetes object"
"""The kind of a skipped file that was found by searching and contains something else."""

_OURS: Final = re.compile(r"""\bkind["']?\s{0,9}:\s{0,9}["']?(?:Lease|LeaseCandidate|AdmissionReview)(?:List)?\b""")
"""How a broken document is recognized as one of a kind that is evaluated."""

Document = dict[str, Any]


class Origin(Struct, frozen=True):
    """Where a document stands: the number counts from 1 within the file; `alone` is set if it is the only one.

    `line` is that of its first line, or of the List that it is in, counted from 1.
    """

    path: str
    number: int = 1
    alone: bool = True
    line: int = 1

    def __str__(self) -> str:
        return f"{self.path}#{self.number}"

    @property
    def short(self) -> str:
        """The path, with the number only if there are several."""
        return self.path if self.alone else str(self)


class Review(Struct, frozen=True):
    """An AdmissionReview, byte for byte as it was recorded."""

    origin: Origin
    body: bytes


class Manifest(Struct, frozen=True):
    """A bare Lease or LeaseCandidate."""

    origin: Origin
    document: Document


class Unreadable(Struct, frozen=True):
    """Something that could not be read; `error` is one line."""

    origin: Origin
    error: str
    is_foreign: bool = False
    """Nothing in it looks like a Lease, a LeaseCandidate or a review."""


class Skipped(Struct, frozen=True):
    """A document of a kind that is not evaluated, or a file that is not read; `kind` says which."""

    origin: Origin
    kind: str


Item = Review | Manifest | Unreadable | Skipped


class Foreign(Enum):
    """What to do with text that is not a Kubernetes object."""

    UNREADABLE = 0
    SKIPPED_BELOW_DIRECTORIES = 1
    """What is named must be readable; what was found by searching may be anything."""
    SKIPPED = 2


def read(paths: Sequence[str], ignore: Sequence[str] = (), *, foreign: Foreign = Foreign.UNREADABLE) -> Iterator[Item]:
    """Every document under the paths, in order, each as soon as it is read.

    Args:
        paths: files, `-`, or directories, which are searched for .json, .jsonl, .yaml and .yml files.
        ignore: shell patterns of what is not read below a directory.
        foreign: what to do with text that is not a Kubernetes object.

    """
    for path in paths:
        if path == STANDARD_INPUT:
            yield from _documents(path, sys.stdin.buffer)
        elif is_directory(Path(path)):
            for found in below(Path(path), SUFFIXES, (*ignore, INDEX)):
                yield from _found(found, skip_foreign=foreign is not Foreign.UNREADABLE)
        else:
            for item in _file(path):
                yield _or_skipped(item) if foreign is Foreign.SKIPPED else item


def _found(found: Found, *, skip_foreign: bool) -> Iterator[Item]:
    origin = Origin(str(found.path))
    if found.error:
        yield Unreadable(origin, found.error)
    elif found.skipped:
        if found.path.name != INDEX:
            yield Skipped(origin, found.skipped)
    else:
        for item in _file(str(found.path)):
            yield _or_skipped(item) if skip_foreign else item


def _or_skipped(item: Item) -> Item:
    return Skipped(item.origin, FOREIGN) if isinstance(item, Unreadable) and item.is_foreign else item


def _file(path: str) -> Iterator[Item]:
    try:
        with Path(path).open("rb") as file:
            yield from _documents(path, file)
    except OSError as error:
        yield Unreadable(Origin(path), error.strerror or str(error))


def _documents(path: str, file: BinaryIO) -> Iterator[Item]:
    """The items of one file; the first is given once it is known whether there is a second."""
    values = _values(file, by_line=path.endswith(".jsonl"))
    first = next(values, None)
    if first is None:
        yield Unreadable(Origin(path), "empty", is_foreign=True)
        return
    second = next(values, None)
    line, text, value = first
    yield item_of(Origin(path, 1, second is None, line), text, value)
    if second is not None:
        for number, (line, text, value) in enumerate(chain([second], values), 2):
            yield item_of(Origin(path, number, alone=False, line=line), text, value)


def _values(file: BinaryIO, *, by_line: bool) -> Iterator[tuple[int, str, object]]:
    """(first line, text, value) of each document; the value is a `_Broken` if the text is broken."""
    for part in documents.cut(file, by_line=by_line):
        if isinstance(part, documents.UnreadablePart):
            yield 1, "", _Broken(part.error, is_foreign=True)
            continue
        try:
            for text, value in _parsed(part, by_line=by_line):
                yield part.content_line, text, value
        except (json_text.NotJsonError, YamlError) as error:
            yield part.content_line, "", _Broken(str(error), is_foreign=not _OURS.search(part.text))


def _parsed(part: documents.Part, *, by_line: bool) -> Iterator[tuple[str, object]]:
    if not by_line and not part.text.lstrip().startswith(("{", "[")):
        yield from (("", value) for value in kubernetes_yaml.objects(part.text, part.first_line))
        return
    try:
        yield from json_text.objects(part.text, part.first_line)
    except json_text.NotJsonError:
        if by_line:
            raise
        # YAML has braces too. If it fails as well, the error of the JSON parser is the better hint.
        try:
            value = kubernetes_yaml.parse(part.text)
        except YamlError:
            value = None
        if value is None:
            raise
        yield from (("", item) for item in kubernetes_yaml.flattened(value))


class _Broken(Struct, frozen=True):
    error: str
    is_foreign: bool


def item_of(origin: Origin, raw: str, value: object) -> Item:
    """A value as an item; `raw` is the text of a review, if there is one."""
    if isinstance(value, _Broken):
        return Unreadable(origin, value.error, value.is_foreign)
    if not isinstance(value, dict):
        return Unreadable(origin, "not a Kubernetes object", is_foreign=True)
    if json_text.is_review(value):
        try:
            return Review(origin, raw.encode() if raw else encoded(value))
        except ValueError as error:
            return Unreadable(origin, str(error))
    kind = value.get("kind")
    group = str(value.get("apiVersion", "")).partition("/")[0]
    if (group == GROUP) != (kind in KIND_OF.values()) and (problem := _mistyped(kind, value.get("apiVersion"))):
        return Unreadable(origin, problem)
    if group != GROUP or kind not in KIND_OF.values():
        return Skipped(origin, kind if isinstance(kind, str) and kind else "no kind")
    return Manifest(origin, value)


def _mistyped(kind: object, api_version: object) -> str:
    """What is wrong with a document of one of our kinds; "" if the kind is that of another group."""
    if kind in KIND_OF.values():
        alike = isinstance(api_version, str) and "/" in api_version
        return "" if alike else f"a {kind} needs apiVersion: {GROUP}/v1 or another version of that group"
    return f"the kinds of {GROUP} are {' and '.join(KIND_OF.values())}"


def encoded(document: Document) -> bytes:
    """The document as JSON.

    Raises:
        ValueError: it is larger than any API server accepts, which aliases can cause.

    """
    try:
        text = json.dumps(document)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if len(text) > LARGEST_DOCUMENT:
        raise ValueError("more than 20 MiB as JSON")
    return text.encode()
