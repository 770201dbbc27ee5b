"""Semantic versions exactly as github.com/blang/semver/v4 `Parse` and `Compare` take them: strict and without a `v`.

The `semver` package compares them. Upstream keeps every number in 64 bits, so larger ones are no versions here either.
It has no limit of length, and the package's own pattern takes seconds for a version of a megabyte, which a candidate
may hold: so texts are read here, in a few passes that never look back.
"""

import re
from functools import lru_cache
from typing import Final

from semver import Version

_LARGEST: Final = 2**64 - 1
_LARGEST_DIGITS: Final = len(str(_LARGEST))
_CHARACTERS: Final = re.compile("[-.0-9A-Za-z]+")
_LEADING_ZERO: Final = re.compile(r"(?:\A|\.)0[0-9]+(?:\.|\Z)")
_LONG_NUMBER: Final = re.compile(rf"(?:\A|\.)([0-9]{{{_LARGEST_DIGITS},}})(?=\.|\Z)")

ZERO: Final = Version(0)
"""0.0.0, which the API server takes for "not given"; build metadata does not count."""


def parse(text: str) -> Version:
    """The version that a text spells; versions compare by precedence, so build metadata does not count.

    Raises:
        ValueError: the text is no semantic version, a number in it does not fit in 64 bits, or it is absurdly long.

    """
    return _short(text) if len(text) <= _LONGEST_KEPT else _parse(text)


_LONGEST_KEPT: Final = 64
_LONGEST: Final = 256 * 1024
"""Characters. Upstream has no limit but that of a request, at which a comparison of two versions takes a second."""


# Four rules read the same two versions. Only short ones are kept, because one may be as long as a request.
@lru_cache(maxsize=8)
def _short(text: str) -> Version:
    return _parse(text)


def _parse(text: str) -> Version:
    if len(text) > _LONGEST:
        raise ValueError("no semantic version")
    rest, plus, build = text.partition("+")
    core, dash, prerelease = rest.partition("-")
    numbers = core.split(".", 3)
    if (
        len(numbers) != 3
        or not all(_is_number(number) for number in numbers)
        or (dash and not _is_prerelease(prerelease))
        or (plus and not _is_dotted(build))
    ):
        raise ValueError("no semantic version")
    major, minor, patch = numbers
    return Version(int(major), int(minor), int(patch), prerelease or None, build or None)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and (text == "0" or not text.startswith("0")) and _fits(text)


def _is_prerelease(text: str) -> bool:
    return (
        _is_dotted(text)
        and not _LEADING_ZERO.search(text)
        and all(_fits(number) for number in _LONG_NUMBER.findall(text))
    )


def _is_dotted(text: str) -> bool:
    """Whether a text is a list of non-empty identifiers."""
    return _CHARACTERS.fullmatch(text) is not None and ".." not in f".{text}."


def _fits(digits: str) -> bool:
    # Python refuses to turn thousands of digits into a number, so their count is looked at first.
    return len(digits) <= _LARGEST_DIGITS and int(digits) <= _LARGEST
