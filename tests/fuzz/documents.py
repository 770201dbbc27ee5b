"""Files: any bytes are documents or unreadable, in one line each, and the same ones however the bytes are cut."""

import contextlib
import gzip
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tests.incidents import incident
from tests.recordings import recordings
from webhook.analysis.inputs import kinds
from webhook.analysis.inputs.documents import Document, LastLine, split_documents
from webhook.analysis.inputs.files import read
from webhook.analysis.inputs.items import Unreadable
from webhook.analysis.inputs.lines import NOWHERE

ROOT: Final = Path(__file__).parents[2]
_FEW: Final = 2000
"""Bytes that are also read one at a time."""


def check(data: bytes) -> None:
    """Read bytes as a file and in pieces; raises AssertionError for a law that does not hold."""
    for item in read(io.BufferedReader(io.BytesIO(data)), "file"):
        _assert_understood(item)
    for is_json in (False, True):
        whole = list(split_documents("file", [data], is_json=is_json))
        for item in whole:
            _assert_understood(item)
        for size in (7, 1) if len(data) <= _FEW else (997,):
            cut = [data[start : start + size] for start in range(0, len(data), size)]
            documents = split_documents("file", cut, is_json=is_json)
            assert [*map(_comparable, documents)] == [*map(_comparable, whole)], f"others in pieces of {size} bytes"


def seeds() -> Iterator[bytes]:
    """Yield manifests, a List, a watch, an audit log, and streams of several forms."""
    manifests = [path.read_bytes() for path in sorted((ROOT / "docs" / "examples").glob("*-lease.yaml"))]
    yield from manifests
    yield b"---\n".join(manifests)
    watch = beginning_of(incident("lease-stolen").file("leases.json.gz"), 3)
    log = beginning_of(incident("lease-stolen").file("audit.log.gz"), 2)
    yield watch
    yield log
    yield b'{"apiVersion": "v1", "kind": "List", "items": [' + watch.splitlines()[0] + b", {}, 1]}"
    yield recordings()[0].body + b"\n" + manifests[0]
    yield b'\xef\xbb\xbf{"kind": "Lease"}\n{"kind": "\\ud800"}\n{"a": 1e5, "b": [truu]}\n{{ .Values.name }}: {}\n'


def beginning_of(path: Path, count: int) -> bytes:
    """Return the first lines of a gzipped file."""
    with gzip.open(path) as file:
        return b"".join(line for line, _ in zip(file, range(count), strict=False))


def _comparable(item: Document | Unreadable | LastLine) -> object:
    """Return an item without the white space that may follow its text."""
    if isinstance(item, LastLine):
        return item.text.strip()
    if isinstance(item, Unreadable):
        return item
    return replace(item, text=item.text.strip(), source=NOWHERE), item.source.line, item.source.find_line("metadata")


def _assert_understood(item: Document | Unreadable | LastLine) -> None:
    if isinstance(item, Document):
        with contextlib.suppress(ValueError, RecursionError):
            _ = item.value
    results: Sequence[object] = [kinds.interpret_for_history(item)]
    if not isinstance(item, LastLine):
        results = [*results, kinds.interpret_for_check(item)]
    for result in (item, *results):
        if isinstance(result, Unreadable):
            assert result.error, "an error without words"
            assert "\n" not in result.error, f"an error of several lines: {result.error!r}"
            assert result.line >= 0
