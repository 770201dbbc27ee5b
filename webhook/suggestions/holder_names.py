"""Holder templates of a binding, from the holders that were seen."""

import re
from collections.abc import Collection, Container
from itertools import takewhile
from typing import Final

from msgspec import Struct

from webhook.rules.binding import POD
from webhook.rules.glob import WILDCARDS
from webhook.rules.writer_identity import LONGEST_POD, fits_pod
from webhook.suggestions.writers import is_name

MOST_NAMES: Final = 8
"""Holders that are listed one by one; of more, what they have in common is taken."""
SHORTEST_PREFIX: Final = 3
_STEM: Final = re.compile(r"(.+_)[0-9a-f]{4,}(?:-[0-9a-f]+)*")
"""An identity that ends in an underscore and something random, as client-go and most others build one."""

EVERY: Final = "*"
"""The template that every holder matches: only the writer is then checked."""


class Templates(Struct, frozen=True):
    """Templates that cover all holders but the `unsuited`; `remarks` say what is special about them."""

    templates: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    unsuited: tuple[str, ...] = ()


def templates_of(holders: Collection[tuple[str, str | None]], pods: Collection[str]) -> Templates:
    """The narrowest templates that a policy can say.

    Args:
        holders: (holder, pod of the writer); "" if its token names none, None if the writer is not known.
        pods: all pods that are known to write the lease, or to run beside it.

    """
    templates: set[str] = set()
    remarks: list[str] = []
    others: set[str] = set()
    for holder, pod in {*holders}:
        template = _of_pod(holder, pods if pod is None else [pod])
        if template:
            templates.add(template)
        else:
            others.add(holder)
    suited = {one for one in others if is_name(one) and POD not in one}
    if any(map(_STEM.fullmatch, suited)):
        remarks.append("what follows the underscore looks random, so any text may stand there")
    names = {f"{found[1]}*" if (found := _STEM.fullmatch(one)) else one for one in suited}
    if len(names) <= MOST_NAMES:
        templates |= names
    elif prefix := _common(suited):
        templates.add(f"{prefix}*")
        remarks.append(f"{len(suited)} holders do not begin with their pods; all begin with {prefix}")
    else:
        templates.add(EVERY)
        remarks.append(
            f"{len(suited)} holders have nothing in common, so {EVERY} checks the writer only: "
            "give the elector an identity that begins with the name of its pod"
        )
    return Templates(tuple(sorted(templates)), tuple(remarks), tuple(sorted(others - suited)))


def _of_pod(holder: str, pods: Container[str]) -> str:
    """`${pod}` with what follows the pod's name, "" if the holder does not begin with a pod."""
    for length in range(min(len(holder), LONGEST_POD), 0, -1):
        pod = holder[:length]
        if pod in pods and fits_pod(holder, pod):
            rest = holder[length:]
            if not rest:
                return POD
            if rest[0] not in WILDCARDS and is_name(rest[0]):
                return f"{POD}{rest[0]}*"
    return ""


def _common(holders: Collection[str]) -> str:
    """What all begin with, up to the last separator."""
    pairs = zip(min(holders), max(holders), strict=False)
    prefix = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    while prefix and prefix[-1].isalnum():
        prefix = prefix[:-1]
    return prefix if len(prefix) >= SHORTEST_PREFIX else ""
