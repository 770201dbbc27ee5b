"""Semantic versions exactly as github.com/blang/semver/v4 `Parse` and `Compare` take them: strict and without a `v`.

The `semver` package reads and compares them. Upstream keeps every number in 64 bits, so a larger one is refused here.
"""

import re
from functools import lru_cache
from typing import Final

from semver import Version

_LARGEST: Final = 2**64 - 1
_LARGEST_DIGITS: Final = len(str(_LARGEST))
_LONG_NUMBER: Final = re.compile(rf"(?:\A|\.)([0-9]{{{_LARGEST_DIGITS},}})(?=\.|\Z)")
"""An identifier of a pre-release that is a number and may need more than 64 bits."""

ZERO: Final = Version(0)
"""0.0.0, which the API server takes for "not set"; build metadata does not count."""

_LONGEST_CACHED: Final = 64
_LONGEST: Final = 64 * 1024
"""Characters. Upstream has no limit but that of a request. The package reads this many in some 10 ms, and rules read up
to eight such versions of one review."""


def parse(text: str) -> Version:
    """The version that a text spells; versions compare by precedence, so build metadata does not count.

    Raises:
        ValueError: the text is not a semantic version, has a number of more than 64 bits, or is too long.

    """
    # Only short ones are kept, because one may be as long as a request.
    return _parse(text) if len(text) <= _LONGEST_CACHED else _parse.__wrapped__(text)


@lru_cache(maxsize=8)  # four rules read the same two versions
def _parse(text: str) -> Version:
    if len(text) > _LONGEST:
        raise ValueError("not a semantic version")
    version = Version.parse(text)
    largest = max(version.major, version.minor, version.patch)
    if largest > _LARGEST or not all(map(_fits, _LONG_NUMBER.findall(version.prerelease or ""))):
        raise ValueError("not a semantic version")
    return version


def _fits(digits: str) -> bool:
    # Python refuses to convert thousands of digits, so they are counted first.
    return len(digits) <= _LARGEST_DIGITS and int(digits) <= _LARGEST
