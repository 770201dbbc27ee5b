"""What the entries of a policy file's document mean, each by itself: settings, operations, users, end."""

from datetime import date
from typing import Final

from msgspec import UNSET, UnsetType
from msgspec.structs import asdict, fields

from webhook.api.request import Operation
from webhook.policy.model import FOREVER, MODE, OPERATIONS, Setting, Value
from webhook.policy.schema_types import Exemption, Override, Rules
from webhook.rules.mode import Mode

ANYWHERE: Final = "*"
"""The glob of an entry that lists no namespaces, or no leases."""

_RULES: Final = {rule.name: rule.encode_name for rule in fields(Rules)}
_DAY: Final = 86_400 * 1_000_000
_EPOCH: Final = date(1970, 1, 1).toordinal()


def mode_of(word: str) -> Mode:
    """The mode that a policy file writes in lower case."""
    return Mode[word.upper()]


def settings_of(rules: Rules) -> dict[Setting, Value]:
    """The settings of a `rules` mapping."""
    settings: dict[Setting, Value] = {}
    for field, rule in _RULES.items():
        setting = getattr(rules, field)
        if setting is not UNSET:
            for name, value in asdict(setting).items():
                if value is not UNSET:
                    settings[rule, name] = mode_of(value) if name == MODE else value
    return settings


def until_of(exemption: Exemption) -> int:
    """The first microsecond since 1970 at which an exemption is over."""
    if isinstance(exemption.until, UnsetType):
        return FOREVER
    return (exemption.until.toordinal() - _EPOCH + 1) * _DAY


def operations_of(entry: Exemption | Override) -> tuple[Operation, ...]:
    """The operations to which an exemption or an override applies."""
    if isinstance(entry.operations, UnsetType):
        return OPERATIONS
    return tuple(Operation(word) for word in entry.operations)


def rules_of(exemption: Exemption) -> list[str]:
    """The rules that an exemption names; empty if it applies to all."""
    return [] if isinstance(exemption.rules, UnsetType) else exemption.rules


def users_of(exemption: Exemption) -> list[str]:
    """The user names of an exemption; a service account is the user that its token authenticates as."""
    accounts = (account.replace("/", ":") for account in exemption.service_accounts)
    return [*exemption.users, *(f"system:serviceaccount:{account}" for account in accounts)]
