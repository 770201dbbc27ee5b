"""Globs, with one meaning everywhere: `*` is any run of characters, `?` is one, everything else is itself.

A glob covers the whole text, upper and lower case differ, and `[` is no class. Matching is never exponential, which
matters because holder identities come from strangers and may hold a megabyte.
"""

from fnmatch import fnmatchcase
from typing import Final

from webhook.rules.binding import POD

WILDCARDS: Final = "*?"


def is_literal(pattern: str) -> bool:
    """Whether the glob can match one text only, itself."""
    return not any(wildcard in pattern for wildcard in WILDCARDS)


def matches(pattern: str, text: str) -> bool:
    """Whether the glob covers the whole text."""
    return fnmatchcase(text, _without_classes(pattern))


def holder_matches(template: str, holder: str, pod: str) -> bool:
    """Whether a holder template of a binding covers the holder.

    `${pod}` stands for exactly the pod's name; a template that has it covers nothing where the name is not known ("").
    """
    if POD in template and not pod:
        return False
    literal_pod = "".join(f"[{character}]" if character in "*?[" else character for character in pod)
    return fnmatchcase(holder, _without_classes(template).replace(POD, literal_pod))


def _without_classes(pattern: str) -> str:
    return pattern.replace("[", "[[]")
