"""Why a policy file is refused, with hints at names that are close to a mistyped one."""

import difflib
import re
from collections.abc import Sequence
from typing import Final

from webhook.api.text import escape, quote, truncate

LONGEST_NAME: Final = 64
"""Characters of a mistyped name that are compared; no valid name is longer."""


_STEP: Final = re.compile(r"[^.\[\]]+|\[\d+\]")


class PolicyError(Exception):
    """A policy file is refused as a whole; the text names the place, the problem, and the closest valid name if any.

    `path` is such as `overrides[2].rules.takeover-before-expiry.mode`, empty for the whole file; `line` counts from 1,
    0 if unknown.
    """

    def __init__(self, problem: str, path: str = "", line: int = 0) -> None:
        super().__init__(problem, path, line)
        self.problem = problem
        self.path = path
        self.line = line

    def __str__(self) -> str:
        place = [f"line {self.line}"] if self.line else []
        return ": ".join([*place, *filter(None, [escape(truncate(self.path))]), self.problem])


def steps_of(path: str) -> list[str]:
    """The steps of such a path: keys, and positions in brackets."""
    return _STEP.findall(path)


def nearest(name: str, known: Sequence[str]) -> str:
    """A hint to append to a message: the valid name closest to this one, all of them if few, or ""."""
    near = difflib.get_close_matches(name[:LONGEST_NAME], known, n=1)
    if near:
        return f"; did you mean {quote(near[0])}?"
    return f"; known are {', '.join(sorted(known))}" if len(known) <= 10 else ""
