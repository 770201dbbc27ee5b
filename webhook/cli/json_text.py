"""JSON text as values, one document after another and no key twice in what is not a review; and values as a line."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from webhook.api.text import cut
from webhook.cli.kubernetes_yaml import flattened

_BLANKS: Final = re.compile(r"[ \t\r\n]*")

Object = dict[str, Any]


class NotJsonError(ValueError):
    """The text is not JSON that Kubernetes reads; the message is one line."""


def objects(text: str, first_line: int = 1) -> Iterator[tuple[str, object]]:
    """(text, value) of each document; only a review keeps its text, and a List gives its items.

    Raises:
        NotJsonError: broken JSON, or a key that appears twice; before anything was given.

    """
    try:
        found = list(_documents(text))
    except json.JSONDecodeError as error:
        line = error.lineno + first_line - 1
        raise NotJsonError(f"line {line}, column {error.colno}: {error.msg}") from None
    except ValueError as error:
        raise NotJsonError(str(error)) from None
    except RecursionError:
        raise NotJsonError("nested too deeply") from None
    return ((raw, item) for raw, value in found for item in flattened(value))


def line(document: Object | Struct) -> str:
    """One line of ASCII: what a holder calls itself may hold line separators, and reaches terminals too."""
    return json.dumps(msgspec.to_builtins(document), separators=(",", ":"))


def is_review(value: object) -> bool:
    """Whether a value is an AdmissionReview."""
    return isinstance(value, dict) and value.get("kind") == "AdmissionReview"


def _documents(text: str) -> Iterator[tuple[str, object]]:
    place = _after_blanks(text, 0)
    while place < len(text):
        try:
            value, end = _STRICT.raw_decode(text, place)
        except _RepeatedKeyError:
            value, end = _LENIENT.raw_decode(text, place)
            if not is_review(value):
                raise
        yield text[place:end] if is_review(value) else "", value
        place = _after_blanks(text, end)


def _after_blanks(text: str, place: int) -> int:
    found = _BLANKS.match(text, place)
    assert found is not None
    return found.end()


class _RepeatedKeyError(ValueError):
    pass


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> Object:
    found = dict(pairs)
    if len(found) < len(pairs):
        (key, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise _RepeatedKeyError(f"key {cut(key)!r} appears twice")
    return found


_STRICT: Final = json.JSONDecoder(object_pairs_hook=_without_repeated_keys)
_LENIENT: Final = json.JSONDecoder()
