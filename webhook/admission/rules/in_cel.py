"""A rule in CEL, for an API server that evaluates it without a webhook."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import force_setattr

NO_VARIABLES: Final[Mapping[str, str]] = MappingProxyType({})


class RuleInCel(Struct, frozen=True, kw_only=True):
    """How a policy of the API server says a rule, or why it cannot (`webhook/api_server/rule_policies.py`).

    `broken` is true of a write of which the rule has a finding of the tier DENY, which a policy may have denied
    whatever the presets do (`TRANSITIONS_DECREASE`), and `warned` of one that it only ever warns of, over the
    variables of `webhook/api_server/variables.yaml`. In `message`, and `warning` if it differs, `{expression}` is
    inserted, `{!expression}` in quotes; `$name` is a number of the rule. A rule without findings of a tier has no
    such text. `lacks` says what of the rule a policy does not say, or why nothing. `variables` are of this rule
    alone: a policy has each after those that it uses. `phrases` are variables that are texts like `message`. A line
    break in any of these texts is a space.

    The functions are those of Kubernetes 1.30, the oldest API server with policies: https://kubernetes.io/docs/reference/using-api/cel/.
    They may differ from Python's of a similar name: `trim()` leaves U+001C to U+001F, which `strip()` removes.
    """

    broken: str = ""
    message: str = ""
    warned: str = ""
    warning: str = ""
    lacks: str = ""
    variables: Mapping[str, str] = NO_VARIABLES
    phrases: Mapping[str, str] = NO_VARIABLES

    def __post_init__(self) -> None:
        for name in ("broken", "message", "warned", "warning", "lacks"):
            force_setattr(self, name, _join_lines(getattr(self, name)))
        for name in ("variables", "phrases"):
            texts: Mapping[str, str] = getattr(self, name)
            force_setattr(self, name, MappingProxyType({each: _join_lines(text) for each, text in texts.items()}))

    @property
    def is_said(self) -> bool:
        """Whether a policy says anything of the rule."""
        return bool(self.broken or self.warned)


def _join_lines(text: str) -> str:
    return " ".join(text.split())
