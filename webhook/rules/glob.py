"""Globs, with one meaning everywhere: `*` is any run of characters, `?` is one, everything else is itself.

A glob covers the whole text, upper and lower case differ, and `[` is not a class. Matching is never exponential, which
matters because clients choose holder identities, and one may have a megabyte.
"""

import re
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from typing import Final

from webhook.api.bulk import LARGEST_REQUEST
from webhook.api.formats import LONGEST_NAME
from webhook.rules.binding import POD
from webhook.rules.writer_identity import host_name

WILDCARDS: Final = "*?"


def is_literal(pattern: str) -> bool:
    """Whether the glob can match one text only, itself."""
    return not any(wildcard in pattern for wildcard in WILDCARDS)


def matches(pattern: str, text: str) -> bool:
    """Whether the glob covers the whole text."""
    return fnmatchcase(text, _without_classes(pattern))


def holder_matches(template: str, holder: str, pod: str) -> bool:
    """Whether a holder template of a binding covers the holder.

    `${pod}` stands for exactly the pod's name, or its host name; a template that has it covers nothing if the name is
    not known ("") or longer than a pod's can be, and no holder that is longer than a write.
    Only the template, which a person wrote, becomes a pattern: the name is matched as text.
    """
    if POD not in template:
        return matches(template, holder)
    if not pod or len(pod) > LONGEST_NAME or _END in pod or len(holder) > LARGEST_REQUEST:
        return False
    pattern = _pattern(template)
    return any(pattern.match(f"{name}{_END}{holder}") for name in {pod, host_name(pod)})


_END: Final = "\0"
"""Between the pod's name and the holder; no name has it, and a policy file cannot."""


@lru_cache(maxsize=256)
def _pattern(template: str) -> re.Pattern[str]:
    glob = translate(_without_classes(template).replace(POD, _END))
    return re.compile(f"(?P<pod>[^{_END}]*+){_END}{glob.replace(re.escape(_END), '(?P=pod)')}")


def _without_classes(pattern: str) -> str:
    return pattern.replace("[", "[[]")
