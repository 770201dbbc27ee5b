"""The name of a strategy of coordinated leader election, on a Lease or a LeaseCandidate."""

from collections.abc import Iterator
from typing import Final

from webhook.api import formats
from webhook.api.field import FieldError, invalid, not_supported

OLDEST_EMULATION_VERSION: Final = "OldestEmulationVersion"


def wrong_strategy(field: str, strategy: str) -> Iterator[FieldError]:
    """What is wrong with a strategy: it is a known one, or a qualified name with a slash.

    Source: kubernetes `pkg/apis/coordination/validation/validation.go`, ValidateCoordinatedLeaseStrategy, which appends
    `.strategy` to a path that ends so already; here the path is that of the field.
    """
    if strategy == OLDEST_EMULATION_VERSION:
        return
    if "/" not in strategy:
        yield not_supported(field, strategy, (OLDEST_EMULATION_VERSION,))
    for message in formats.qualified_name(strategy) if "/" in strategy else ():
        yield invalid(field, strategy, message)
