"""Semantic versions exactly as github.com/blang/semver/v4 `Parse` and `Compare` take them: strict and without a `v`.

The `semver` package does the work. Upstream keeps every number in 64 bits, so larger ones are no versions here either.
"""

from functools import lru_cache
from typing import Final

from semver import Version

_LARGEST: Final = 2**64 - 1
_LARGEST_DIGITS: Final = len(str(_LARGEST))
ZERO: Final = Version(0)
"""0.0.0, which the API server takes for "not given"; build metadata does not count."""


# Four rules read the same two versions; only a few are kept, because each may be as long as a request.
@lru_cache(maxsize=8)
def parse(text: str) -> Version:
    """The version that a text spells; versions compare by precedence, so build metadata does not count.

    Raises:
        ValueError: the text is no semantic version, or a number in it does not fit in 64 bits.

    """
    version = Version.parse(text)
    numbers = [str(version.major), str(version.minor), str(version.patch)]
    if version.prerelease:
        numbers += [part for part in version.prerelease.split(".") if part.isdecimal()]
    if not all(_fits(number) for number in numbers):
        raise ValueError(f"a number of {text} does not fit in 64 bits")
    return version


def _fits(digits: str) -> bool:
    # Python refuses to turn thousands of digits into a number, so their count is looked at first.
    return len(digits) <= _LARGEST_DIGITS and int(digits) <= _LARGEST
