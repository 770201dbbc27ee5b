"""What a write to a Node sets of its taints, as far as a log has the request.

In: the verb, and the object of the request. Out: a clause. A patch has all taints that are to be there, or none.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

_MAX_TAINTS: Final = 3
_PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,315}")
"""A key, a value or an effect, of ASCII, as people can read it."""


class _Taint(Struct, frozen=True):
    key: str = ""
    value: str | None = None
    effect: str = ""


class _Spec(Struct, frozen=True):
    taints: Sequence[_Taint] | UnsetType | None = UNSET


class _Node(Struct, frozen=True):
    spec: _Spec = _Spec()


_nodes: Final = msgspec.json.Decoder(_Node)


def describe_taints(verb: str, sent: bytes) -> str:
    """`which set the taint maintenance=kernel:NoExecute`; "" of a request that says nothing of taints.

    A JSON patch is not read, and of a whole object the taints may have been there before.
    """
    if verb != "patch" or b'"taints"' not in sent:
        return ""
    try:
        taints = _nodes.decode(sent).spec.taints
    except (ValueError, RecursionError):
        return ""
    if taints is UNSET:
        return ""
    if not taints:
        return "which removed its taints"
    named = [_name_taint(one) for one in taints[:_MAX_TAINTS]]
    if not all(named):
        return ""
    more = f" and {len(taints) - _MAX_TAINTS} more" if len(taints) > _MAX_TAINTS else ""
    return f"which set the taint{'s' if len(taints) > 1 else ''} {', '.join(named)}{more}"


def _name_taint(taint: _Taint) -> str:
    """Return a taint as kubectl writes it; "" if a part of it is none that an API server stores."""
    parts = [taint.key, taint.effect, *([taint.value] if taint.value else [])]
    if not all(_PART.fullmatch(one) for one in parts):
        return ""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
