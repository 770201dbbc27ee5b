"""YAML: any text is a value or a YamlError; a value that is written as JSON or as YAML is read as the same value."""

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from webhook.admission.policy import parse as policy
from webhook.admission.policy.schema import PolicyError
from webhook.analysis.inputs.lines import Source
from webhook.text.yaml_reader import YamlError, read
from webhook.text.yaml_writer import write_stream

ROOT: Final = Path(__file__).parents[2]
_LINE: Final = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
"""Characters that end a line of YAML 1.1."""
_NOT_PRINTABLE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON may have as they are, and YAML only as escapes."""
_KEY: Final = re.compile(r'"(?:[^"\\]|\\.)*"(?=:)')
_MAX_KEY: Final = 1024
"""Characters of a key in YAML (1.1, 4.2.1), quotes and escapes included, unless `? ` precedes it as in no JSON."""


def check(data: bytes) -> None:
    """Read a text in both dialects; raises AssertionError for a law that does not hold."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    with contextlib.suppress(_PlainError):
        _read_or_refuse(policy.read, text)
    try:
        value = _read_or_refuse(read, text)
    except _PlainError:
        return
    expected = json.dumps(value, ensure_ascii=False)
    written = _NOT_PRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", expected)
    if all(len(key) <= _MAX_KEY for key in _KEY.findall(written)):
        assert json.dumps(read(written), ensure_ascii=False) == expected, "read as another value from its JSON"
    if isinstance(value, dict):
        assert json.dumps(read(write_stream([value])), ensure_ascii=False) == expected, (
            "read as another value when written"
        )
    lines = len(_LINE.findall(text)) + 1
    source = Source(text, 1)
    for path in _paths(value, 20) if value is not None else ():
        assert 1 <= source.find_line(path) <= lines, f"{path} is on no line"


def seeds() -> Iterator[bytes]:
    """Yield manifests, policies, and the scalars and structures on which dialects differ."""
    for path in sorted([*(ROOT / "docs" / "examples").glob("*.yaml"), *(ROOT / "deploy" / "base").glob("*.yaml")]):
        text = path.read_bytes()
        if len(text) < 8000:
            yield text.partition(b"\n---\n")[0]
    yield b"- [y, n, yes, no, on, off, ~, null, True, 0o17, 017, 0x1F, 0b11, 1_000, 1e3, .5, -.5, 1., 1:20]\n"
    yield (
        b"a: &one {b: 1, 'c': \"\\u0001\"}\nd: *one\ne:\n  <<: [*one, {f: 2}]\n  b: |\n    x\n     y\n"
        b"  g: >-\n    folded\n\n    text\n"
    )
    yield b"? key\n: value\n? [1]\n: 2\n"
    yield b"%YAML 1.1\n--- !!str x\n...\n"


class _PlainError(Exception):
    """A text was refused, by one printable line."""


def _read_or_refuse(read_text: Callable[[str], Any], text: str) -> Any:
    try:
        return read_text(text)
    except (PolicyError, YamlError) as error:
        if str(error).isprintable():
            raise _PlainError from error
        raise AssertionError(f"not one printable line: {error!r}") from error


def _paths(value: Any, limit: int) -> Iterator[str]:
    """Yield the paths of the first places, level by level."""
    level: list[tuple[str, Any]] = [("", value)]
    while level and limit:
        path, value = level.pop(0)
        yield path
        limit -= 1
        if isinstance(value, dict):
            level += [(f"{path}.{key}".strip("."), inner) for key, inner in value.items()][:limit]
        elif isinstance(value, list):
            level += [(f"{path}[{number}]", inner) for number, inner in enumerate(value[:limit])]
