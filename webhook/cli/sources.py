"""What `check` and `replay` are pointed at: reviews and manifests in files, directories and standard input.

Nothing here judges. One broken document costs only itself.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from webhook.api.request import GROUP, KIND_OF
from webhook.cli import kubernetes_yaml

SUFFIXES: Final = (".json", ".jsonl", ".yaml", ".yml")
LARGEST_DOCUMENT: Final = 20 * 1024 * 1024
"""Bytes of one document as JSON; aliases can make a short YAML file explode."""
STANDARD_INPUT: Final = "-"
INDEX: Final = "index.jsonl"
"""Beside recordings: one JSON object for each file, with `file` (a path from here) and `received` (RFC 3339)."""

_BLANKS: Final = re.compile(r"[ \t\r\n]*")

Document = dict[str, Any]


class Origin(Struct, frozen=True):
    """Where a document stands: the number counts from 1 within the file; `alone` is set where it is the only one."""

    path: str
    number: int = 1
    alone: bool = True

    def __str__(self) -> str:
        return f"{self.path}#{self.number}"

    @property
    def short(self) -> str:
        """The path, with the number only where there are several."""
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


class Skipped(Struct, frozen=True):
    """A readable document of a kind that is not judged."""

    origin: Origin
    kind: str


Item = Review | Manifest | Unreadable | Skipped


def read(paths: Sequence[str]) -> Iterator[Item]:
    """Every document under the paths, in order; directories are searched for .json, .jsonl, .yaml and .yml files."""
    for path in paths:
        if path == STANDARD_INPUT:
            yield from _documents(path, sys.stdin.buffer.read())
            continue
        for file in _files(Path(path)):
            try:
                data = file.read_bytes()
            except OSError as error:
                yield Unreadable(Origin(str(file)), error.strerror or str(error))
            else:
                yield from _documents(str(file), data)


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for file in sorted(path.rglob("*")):
        if file.suffix in SUFFIXES and file.name != INDEX and not file.is_dir():
            yield file


def _documents(path: str, data: bytes) -> Iterator[Item]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        yield Unreadable(Origin(path), "not UTF-8")
        return
    found = list(_values(text, by_line=path.endswith(".jsonl")))
    if not found:
        yield Unreadable(Origin(path), "empty")
    for number, (raw, value) in enumerate(found, 1):
        yield _item(Origin(path, number, len(found) == 1), raw, value)


def _values(text: str, *, by_line: bool) -> Iterator[tuple[str, object]]:
    """(text, value) of each document; the value is an exception where the text is broken."""
    parts = filter(str.strip, text.split("\n")) if by_line else kubernetes_yaml.documents(text)
    for part in parts:
        looks_like_json = by_line or part.lstrip().startswith(("{", "["))
        values = _json_documents(part) if looks_like_json else _yaml_document(part)
        if looks_like_json and isinstance(values, Exception) and not by_line:
            # YAML knows braces too. Where it fails as well, what JSON says is the better hint.
            as_yaml = _yaml_document(part)
            values = as_yaml if isinstance(as_yaml, list) else values
        yield from [(part, values)] if isinstance(values, Exception) else values


def _json_documents(text: str) -> list[tuple[str, object]] | Exception:
    """One JSON document after another."""
    decoder = json.JSONDecoder()
    found: list[tuple[str, object]] = []
    place = _BLANKS.match(text).end()  # type: ignore[union-attr]  # it matches nothing too
    try:
        while place < len(text):
            value, end = decoder.raw_decode(text, place)
            raw = text[place:end]
            found += _flattened(raw, value if _is_review(value) else json.loads(raw, object_pairs_hook=_without_twins))
            place = _BLANKS.match(text, end).end()  # type: ignore[union-attr]  # it matches nothing too
    except json.JSONDecodeError as error:
        return ValueError(f"line {error.lineno}, column {error.colno}: {error.msg}")
    except ValueError as error:
        return error
    except RecursionError:
        return ValueError("nested too deeply")
    return found


def _yaml_document(text: str) -> list[tuple[str, object]] | Exception:
    try:
        return _flattened("", kubernetes_yaml.parse(text))
    except kubernetes_yaml.NotYamlError as error:
        return error


def _is_review(value: object) -> bool:
    return isinstance(value, dict) and value.get("kind") == "AdmissionReview"


def _without_twins(pairs: list[tuple[str, Any]]) -> Document:
    document: Document = {}
    for key, value in pairs:
        if key in document:
            raise ValueError(f"the key {key!r} stands twice")
        document[key] = value
    return document


def _flattened(raw: str, value: object) -> list[tuple[str, object]]:
    """The items of a List, else the document itself."""
    if isinstance(value, dict) and str(value.get("kind", "")).endswith("List") and isinstance(value.get("items"), list):
        kind = str(value["kind"]).removesuffix("List")
        return [("", _typed(item, kind, value.get("apiVersion"))) for item in value["items"]]
    return [(raw, value)]


def _typed(item: object, kind: str, api_version: object) -> object:
    # The API server leaves kind and apiVersion out of the items of a typed list.
    if isinstance(item, dict) and kind and "kind" not in item:
        return {"apiVersion": api_version, "kind": kind, **item}
    return item


def _item(origin: Origin, raw: str, value: object) -> Item:
    if isinstance(value, Exception):
        return Unreadable(origin, str(value))
    if not isinstance(value, dict):
        return Unreadable(origin, "not a Kubernetes object")
    if _is_review(value):
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
    """What is wrong with a document that is half one of ours; "" where it belongs to another group with a like kind."""
    if kind in KIND_OF.values():
        alike = isinstance(api_version, str) and "/" in api_version
        return "" if alike else f"a {kind} needs apiVersion: {GROUP}/v1 or another version of that group"
    return f"the kinds of {GROUP} are {' and '.join(KIND_OF.values())}"


def encoded(document: Document) -> bytes:
    """The document as JSON.

    Raises:
        ValueError: it is larger than any API server would take, as aliases can make it.

    """
    chunks: list[str] = []
    size = 0
    try:
        for chunk in json.JSONEncoder().iterencode(document):
            chunks.append(chunk)
            size += len(chunk)
            if size > LARGEST_DOCUMENT:
                raise ValueError("more than 20 MiB as JSON")
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return "".join(chunks).encode()
