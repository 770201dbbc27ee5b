"""The taints that a write to a Node sets, as far as a log has the request, or the answer.

In: the verb, and the objects of both. Out: the taints that are there then, and clauses. A patch has all taints that are
to be there, or none: also those that others had set before.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

_MAX_TAINTS: Final = 3
_MAX_KNOWN: Final = 50
"""Taints of one node that are compared."""
_PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,315}")
"""A key, a value or an effect, of ASCII, as people can read it."""


class _Taint(Struct, frozen=True):
    key: str = ""
    value: str | None = None
    effect: str = ""


class _Spec(Struct, frozen=True):
    taints: Sequence[_Taint] | UnsetType | None = UNSET


class _Node(Struct, frozen=True):
    kind: str = ""
    spec: _Spec = _Spec()


_nodes: Final = msgspec.json.Decoder(_Node)


def describe_taints(verb: str, sent: bytes) -> str:
    """`which left it with the taint maintenance=kernel:NoExecute`; "" of a request that says nothing of taints.

    A JSON patch is not read, and a whole object need not be about taints. Which of them were there before, a request
    does not show: `describe_change` says that where it is known.
    """
    taints = _read_patch(verb, sent)
    if taints is None:
        return ""
    return f"which left it with {_name_taints(taints)}" if taints else "which removed its taints"


def find_taints(verb: str, sent: bytes, answer: bytes) -> tuple[str, ...] | None:
    """Return the taints of a Node after a write, None if the log does not show them."""
    if b'"Node"' not in answer:
        return _read_patch(verb, sent)
    try:
        node = _nodes.decode(answer)
    except (ValueError, RecursionError):
        return None
    return _name_all(node.spec.taints or ()) if node.kind == "Node" else None


def describe_change(before: Sequence[str], after: Sequence[str]) -> str:
    """`which set the taint maintenance=kernel:NoExecute`, of what was not there before; "" if nothing changed."""
    added, removed = [one for one in after if one not in before], [one for one in before if one not in after]
    parts = [f"set {_name_taints(added)}"] if added else []
    parts += [f"removed {_name_taints(removed)}"] if removed else []
    return f"which {' and '.join(parts)}" if parts else ""


def _read_patch(verb: str, sent: bytes) -> tuple[str, ...] | None:
    """Return the taints that a patch sets; None if it sets none, or has a part that no API server stores."""
    if verb != "patch" or b'"taints"' not in sent:
        return None
    try:
        taints = _nodes.decode(sent).spec.taints
    except (ValueError, RecursionError):
        return None
    return None if taints is UNSET else _name_all(taints or ())


def _name_all(taints: Sequence[_Taint]) -> tuple[str, ...] | None:
    named = tuple(map(_name_taint, taints))
    return named if all(named) and len(named) <= _MAX_KNOWN else None


def _name_taints(taints: Sequence[str]) -> str:
    """`the taints a:NoExecute, b:NoExecute`."""
    more = f" and {len(taints) - _MAX_TAINTS} more" if len(taints) > _MAX_TAINTS else ""
    return f"the taint{'s' if len(taints) > 1 else ''} {', '.join(taints[:_MAX_TAINTS])}{more}"


def _name_taint(taint: _Taint) -> str:
    """Return a taint as kubectl writes it; "" if a part of it is none that an API server stores."""
    parts = [taint.key, taint.effect, *([taint.value] if taint.value else [])]
    if not all(_PART.fullmatch(one) for one in parts):
        return ""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
