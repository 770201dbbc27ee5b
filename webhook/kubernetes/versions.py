"""Semantic versions as Kubernetes reads them: strictly and without a `v`.

Source: github.com/blang/semver/v4, which keeps every number in 64 bits, so a larger one is refused here.
"""

import re
from typing import Final

from semver import Version

from webhook.text.quoting import cached_if_short

_MAX_NUMBER: Final = 2**64 - 1
_MAX_DIGITS: Final = len(str(_MAX_NUMBER))
_LONG_NUMBER: Final = re.compile(rf"(?:\A|\.)([0-9]{{{_MAX_DIGITS},}})(?=\.|\Z)")
"""An identifier of a pre-release that is a number and may need more than 64 bits."""

_MAX_LENGTH: Final = 64 * 1024
"""Characters. Upstream has no limit but that of a request. The package reads this many in some 10 ms, and rules read up
to eight such versions of one review."""


@cached_if_short(max_entries=8, max_length=64)  # four rules read the same two versions
def parse_version(text: str) -> Version | None:
    """Return the version that a text spells, which compares by precedence; None for any other or a longer text."""
    if len(text) > _MAX_LENGTH:
        return None
    try:
        version = Version.parse(text)
    except ValueError:
        return None
    numbers = (version.major, version.minor, version.patch)
    fits = max(numbers) <= _MAX_NUMBER and all(map(_is_in_range, _LONG_NUMBER.findall(version.prerelease or "")))
    return version if fits else None


def _is_in_range(digits: str) -> bool:
    # Python refuses to convert thousands of digits, so they are counted first.
    return len(digits) <= _MAX_DIGITS and int(digits) <= _MAX_NUMBER
