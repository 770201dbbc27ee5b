"""What a YAML scalar is as a JSON value, as `kubectl` reads it.

Source: kubernetes-sigs/yaml (yaml.go, goyaml.v2/resolve.go), which turns YAML 1.1 into JSON: `yes` and `on` are
booleans, a time stays text, a whole float is an integer, base 60 does not exist.
"""

import re
from collections.abc import Callable
from typing import Final

from webhook.api.text import quote
from webhook.yaml_reader import TAG, Scalar

LONGEST_NUMBER: Final = 4300
"""Characters of a number: Python converts no more digits than these, and no API field holds as many."""

_BOOLEANS: Final = {
    "y": True,
    "yes": True,
    "true": True,
    "on": True,
    "n": False,
    "no": False,
    "false": False,
    "off": False,
}
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_WORDS: Final = frozenset(
    word for lower in _BOOLEANS for word in (lower, lower.capitalize(), lower.upper())
)  # `yEs` is text
_INTEGER: Final = re.compile(r"[-+]?(?:0b[01_]+|0o?[0-7_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*)")
_FLOAT: Final = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_NUMBERS_BEGIN_WITH: Final = frozenset("-+.0123456789")
_LARGEST_PLAIN_FLOAT: Final = 1e21
"""Go prints a float below this without an exponent, so a whole one reads back as an integer."""


def plain(text: str) -> Scalar:
    """A scalar without quotes and without a tag.

    Raises:
        ValueError: JSON does not have the value.

    """
    if text[:1] in _NUMBERS_BEGIN_WITH:
        if _INTEGER.fullmatch(text):
            return _integer(text)
        return _float(text) if _FLOAT.fullmatch(text) else text
    if text in _NULLS:
        return None
    return _BOOLEANS[text.lower()] if text in _WORDS else text


def tagged(tag: str, text: str) -> Scalar:
    """A scalar with an explicit tag.

    Raises:
        ValueError: the tag is unknown, or the text is not of its type.

    """
    if tag not in _READ:
        raise ValueError(f"tag {quote(tag)} is not allowed")
    return _READ[tag](text)


def _boolean(text: str) -> bool:
    if text.lower() not in _BOOLEANS:
        raise ValueError(f"{quote(text)} is not a boolean")
    return _BOOLEANS[text.lower()]


def _integer(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise ValueError(f"a number of more than {LONGEST_NUMBER} characters")
    digits = text.replace("_", "")
    octal = re.fullmatch(r"([-+]?)0([0-7]+)", digits)
    return int(f"{octal[1]}0o{octal[2]}" if octal else digits, 0)


def _float(text: str) -> int | float:
    digits = text.replace("_", "")
    if digits.lower().strip("+-") in {".inf", ".nan"}:
        raise ValueError(f"JSON has no {digits}")
    number = float(digits)
    return int(number) if number.is_integer() and abs(number) < _LARGEST_PLAIN_FLOAT else number


_READ: Final[dict[str, Callable[[str], Scalar]]] = {
    f"{TAG}null": lambda _: None,
    f"{TAG}bool": _boolean,
    f"{TAG}int": _integer,
    f"{TAG}float": _float,
    f"{TAG}str": str,
    f"{TAG}timestamp": str,
}
