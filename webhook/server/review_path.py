"""From the head of a request: how much time there is, and whether the body is JSON."""

import functools
import re
from collections.abc import Mapping
from typing import Final

DEFAULT_TIMEOUT: Final = 10
"""Seconds that an API server waits if a webhook configuration does not say."""
LONGEST_TIMEOUT: Final = 30
LEAST_BUDGET: Final = 0.2

_TIMEOUT: Final = re.compile(rb"(?:^|[?&])timeout=([0-9]{1,12})s(?:&|$)")
_JSON: Final = b"application/json"


def budget(query: bytes) -> float:
    """Seconds for an answer, from `timeout=Ns` in the query; an invalid timeout is ignored.

    The API server rounds its own time up to a whole second, so one second of it may not exist.
    """
    return _budget(query) if len(query) <= _LONGEST_KEPT else _budget.__wrapped__(query)


_LONGEST_KEPT: Final = 64


@functools.lru_cache(maxsize=64)
def _budget(query: bytes) -> float:
    found = _TIMEOUT.search(query)
    granted = int(found[1]) if found else DEFAULT_TIMEOUT
    return max(min(granted, LONGEST_TIMEOUT) - 1.0, LEAST_BUDGET)


def unsupported(headers: Mapping[bytes, bytes]) -> str:
    """Why the body cannot be read as JSON in UTF-8, or "". Header names are in lower case."""
    media = headers.get(b"content-type", b"")
    if media == _JSON and b"content-encoding" not in headers:
        return ""
    coding = headers.get(b"content-encoding", b"identity").strip().lower()
    if coding not in {b"", b"identity"}:
        return "send the review without Content-Encoding"
    kind, _, parameters = media.lower().partition(b";")
    if kind.strip() != _JSON:
        return "send the review as Content-Type: application/json"
    for parameter in filter(None, (part.strip() for part in parameters.split(b";"))):
        name, _, value = parameter.partition(b"=")
        if name.strip() == b"charset" and value.strip(b' "') not in {b"utf-8", b"utf8", b"us-ascii"}:
            return "send the review in UTF-8"
    return ""
