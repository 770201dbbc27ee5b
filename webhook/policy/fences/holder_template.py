"""Holder templates of fences: which holder identities belong to the pod, or the node, of a token."""

import re
from typing import Final

from msgspec import Struct

from webhook.api.text import quote
from webhook.policy.error import PolicyError, nearest
from webhook.rules.writer_identity import host_name

CLAIMS: Final = ("pod", "node")
"""What the token of a pod contains the name of, and so what a template may refer to."""

_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
_OF_NAMES: Final = re.compile(r"[a-z0-9.-]")
"""Characters of the names of pods and nodes: one of them next to a name may belong to a longer name."""


class HolderTemplate(Struct, frozen=True):
    """`before`, the name of the `claim` ("pod" or "node"), `after`, and any further characters if it is `open`."""

    before: str
    claim: str
    after: str
    open: bool

    def fits(self, name: str, holder: str) -> bool:
        """Whether a holder identity is that of a pod, or node, of this name; never if the name is not known ("")."""
        identities = [f"{self.before}{one}{self.after}" for one in {name, host_name(name)} if one]
        return any(holder.startswith(one) if self.open else holder == one for one in identities)

    @property
    def is_separated(self) -> bool:
        """Whether the characters next to the name cannot belong to a name."""
        return not (_OF_NAMES.fullmatch(self.before[-1:]) or _OF_NAMES.fullmatch(self.after[:1]))


def read(texts: list[str], path: str) -> tuple[HolderTemplate, ...]:
    """The templates of one fence; raises PolicyError if two pods could not be distinguished."""
    templates = tuple(_read(text, f"{path}[{number}]") for number, text in enumerate(texts))
    if len(templates) > 1:
        for number, template in enumerate(templates):
            if not template.is_separated:
                problem = (
                    "next to other templates, the name must be separated by a character that no name has, such as _: "
                    "otherwise two pods match one holder"
                )
                raise PolicyError(problem, f"{path}[{number}]")
    return templates


def _read(text: str, path: str) -> HolderTemplate:
    names = _VARIABLE.findall(text)
    for name in names:
        if name not in CLAIMS:
            raise PolicyError(f"{quote(f'${{{name}}}')} is not known{nearest(name, CLAIMS)}", path)
    if len(names) != 1:
        problem = (
            "must have `${pod}` or `${node}` once: the token of a write contains these names, and only they say "
            "which writer is the holder"
        )
        raise PolicyError(problem, path)
    if not (text.isascii() and text.isprintable()):
        raise PolicyError("must be printable ASCII", path)
    before, _, after = text.partition(f"${{{names[0]}}}")
    template = HolderTemplate(before, names[0], after.removesuffix("*"), open=after.endswith("*"))
    if any(wildcard in before + template.after for wildcard in "*?"):
        raise PolicyError("`*` is allowed only at the end, and `?` is not allowed", path)
    if template.open and (not template.after or _OF_NAMES.fullmatch(template.after[0])):
        problem = (
            "`*` also matches longer names: that of op-1 matches op-10; put a character that no name has between "
            f"them, as in {quote(f'{before}${{{names[0]}}}_*')}"
        )
        raise PolicyError(problem, path)
    return template
