"""Observations of bytes, as a command reads them from a file."""

import io
from collections.abc import Iterable, Iterator

from webhook.analysis.inputs import audit_log, files, kinds
from webhook.analysis.inputs.items import Item


def read(path: str, chunks: Iterable[bytes], received: int | None = None) -> Iterator[Item]:
    """Every observation in the bytes of one input; `received` is when a review was received."""
    file = io.BytesIO(b"".join(chunks))
    return kinds.interpret_all(files.read(file, path, audit_log.LineFilter().may_say_something), received)
