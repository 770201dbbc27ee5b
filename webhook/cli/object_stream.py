"""Objects of any kind in a file or on standard input, read document by document: YAML, JSON, or one object per line."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from webhook.cli import documents, json_text, kubernetes_yaml
from webhook.cli.failure import Failure
from webhook.cli.progress import Progress
from webhook.doctor.documents import Document, objects
from webhook.yaml_reader import YamlError


def read(path: str) -> Iterator[Document]:
    """Every object in a file (`-`: standard input), those inside a List too; raises Failure."""
    try:
        with sys.stdin.buffer if path == "-" else Path(path).open("rb") as file:
            yield from Progress("documents").watch(objects(_values(path, file)))
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    except YamlError as error:
        raise Failure(f"{path}: not YAML: {error}") from error


def _values(path: str, file: BinaryIO) -> Iterator[object]:
    for part in documents.cut(file):
        if isinstance(part, documents.UnreadablePart):
            raise Failure(f"{path}: {part.error}")
        text = part.text.lstrip()
        if text.startswith("{"):
            try:
                yield from (value for _, value in json_text.objects(part.text, part.first_line))
            except json_text.NotJsonError as error:
                # Braces are YAML too, whose reader gives the position of the error; several lines of JSON are not.
                if "\n{" in text:
                    raise Failure(f"{path}: not JSON: {error}") from error
            else:
                continue
        yield from kubernetes_yaml.objects(part.text, part.first_line)
