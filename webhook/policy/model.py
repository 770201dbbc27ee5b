"""A policy as the core sees it: resolved, frozen and quick to ask."""

from collections.abc import Mapping

from msgspec import Struct

from webhook.api.verdict import Mode
from webhook.rules.binding import Binding
from webhook.rules.limits import DEFAULT_LIMITS, Limits


class LeasePolicy(Struct, frozen=True):
    """What holds for one lease: a mode for each rule id, the numbers, and the identity binding if there is one."""

    modes: Mapping[str, Mode]
    limits: Limits = DEFAULT_LIMITS
    binding: Binding | None = None
