"""Objects of any kind in files and on standard input: YAML, JSON, or one JSON object per line."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from webhook.cli import kubernetes_yaml
from webhook.cli.failure import Failure
from webhook.doctor.surroundings import Document, objects

LARGEST: Final = 256 * 1024 * 1024
"""Bytes of one file that are read; a larger audit log is cut into pieces first."""


def read(path: str) -> Iterator[Document]:
    """Every object in a file (`-`: standard input), those inside a List too; raises Failure."""
    text = _text(path)
    lines = text.split("\n")
    if sum(line.startswith("{") for line in lines[:2]) == 2 or (text.startswith("{") and text.count("\n") <= 1):
        yield from objects(_by_line(path, lines))
        return
    try:
        if text.lstrip().startswith("{"):
            yield from objects([json.loads(text)])
        else:
            yield from objects(kubernetes_yaml.parse(one) for one in kubernetes_yaml.documents(text))
    except kubernetes_yaml.NotYamlError as error:
        raise Failure(f"{path}: not YAML: {error}") from error
    except (ValueError, RecursionError) as error:
        raise Failure(f"{path}: not JSON: {error}") from error


def _by_line(path: str, lines: list[str]) -> Iterator[object]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Failure(f"{path}: line {number}: not JSON: {error}") from error


def _text(path: str) -> str:
    try:
        if path == "-":
            data = sys.stdin.buffer.read(LARGEST + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(LARGEST + 1)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    if len(data) > LARGEST:
        raise Failure(f"{path}: larger than {LARGEST // 1024 // 1024} MiB; cut it into pieces")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Failure(f"{path}: not UTF-8") from error
