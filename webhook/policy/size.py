"""How many combinations a policy file may have, counted before any of them is indexed."""

from typing import Final

from webhook.policy.entries import operations_of, rules_of
from webhook.policy.error import PolicyError
from webhook.policy.schema_types import Exemption, Override, PolicyDocument

MOST_COMBINATIONS: Final = 200_000
"""Far more than people write by hand, and few enough to index in a second."""


def check_size(document: PolicyDocument) -> None:
    """Raise PolicyError for the entry with which the combinations become too many."""
    combinations = 0
    for position, exemption in enumerate(document.exempt):
        requesters = len(exemption.users) + len(exemption.groups) + len(exemption.service_accounts)
        rules = max(1, len(rules_of(exemption)))
        combinations += max(1, requesters) * _places(exemption) * rules * max(1, len(exemption.operations or ()))
        _check(combinations, f"exempt[{position}]")
    by_operation = differ_by_operation(document.overrides)
    for position, override in enumerate(document.overrides):
        combinations += _places(override) * (len(operations_of(override)) if by_operation else 1)
        _check(combinations, f"overrides[{position}]")


def differ_by_operation(overrides: list[Override]) -> bool:
    """Whether overrides are indexed for each operation by itself."""
    return any(override.operations for override in overrides)


def _places(entry: Exemption | Override) -> int:
    return max(1, len(entry.namespaces)) * max(1, len(entry.leases))


def _check(combinations: int, path: str) -> None:
    if combinations > MOST_COMBINATIONS:
        problem = (
            f"more than {MOST_COMBINATIONS} combinations of requester, namespace, lease, rule and operation so far; "
            "use globs"
        )
        raise PolicyError(problem, path)
