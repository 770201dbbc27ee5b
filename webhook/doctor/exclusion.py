"""Match conditions that only exclude namespaces; they need no finding."""

import re
from typing import Final

from msgspec import Struct

from webhook.doctor import cel

_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_PART: Final = re.compile(
    r"""! request \. namespace \. startsWith \( "(?P<prefix>[a-z0-9][-a-z0-9]+)" \)"""
    rf"""|! \( request \. namespace in \[ (?P<listed>"{_LABEL}"(?: , "{_LABEL}")*) \] \)"""
    rf"""|"(?P<name>{_LABEL})" != request \. namespace"""
)
"""Normal forms of one part; request.namespace is always a string, so none of them errs.

A prefix of at most one character is not among them: it can exclude every namespace, alone or with others. Neither is an
exclusion of what cannot be the name of a namespace, because its author meant something else.
"""


class Exclusion(Struct, frozen=True):
    """The excluded namespaces: by name, and those whose names begin with one of `prefixes`."""

    names: frozenset[str]
    prefixes: tuple[str, ...]

    def excludes(self, namespace: str) -> bool:
        """Whether writes in this namespace are not reviewed."""
        return namespace in self.names or namespace.startswith(self.prefixes)


def read_exclusion(expression: str) -> Exclusion | None:
    """The exclusion that a CEL expression consists of; None for every other expression."""
    found = cel.terms(expression)
    if len(found) != 1:
        return None
    (term,) = found
    names: set[str] = set()
    prefixes: list[str] = []
    for part in term.split(" && "):
        match = _PART.fullmatch(part)
        if not match:
            return None
        if match["prefix"]:
            prefixes.append(match["prefix"])
        else:
            names.update((match["listed"] or match["name"]).replace('"', "").split(" , "))
    return Exclusion(frozenset(names), tuple(prefixes))
