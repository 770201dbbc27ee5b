"""The policy file as types: what it may contain. The JSON Schema and the strict parser are both made from them."""

from datetime import date
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct, field
from msgspec.structs import fields

from webhook.policy.fences.schema_types import FenceSetting
from webhook.rules.limits import Limits
from webhook.rules.registry import OFFLINE_RULES, RULES

API_VERSION: Final = "lease-webhook/v1"
PRESETS: Final = ("observe", "standard", "strict")

OFFLINE: Final = tuple(OFFLINE_RULES)
"""Rules that only reports over stored objects evaluate, never a single write."""
RULE_IDS: Final = (*RULES, *OFFLINE)
EXEMPTIBLE: Final = tuple(rule.id for rule in RULES.values() if not rule.parity and not rule.never_exempt)
"""The rules that an exemption applies to, and may name."""

ModeWord = Literal["deny", "warn", "audit", "off"]
ExemptibleRule: Any = Literal[EXEMPTIBLE]
Operations = Annotated[list[Literal["CREATE", "UPDATE", "DELETE"]], Meta(min_length=1)]
Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_CONTROL: Final = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"
"""Characters that would control a terminal on which a policy is shown, without tab and line feed."""
_CONTROLS: Final = rf"{_CONTROL}\t\n"
Text = Annotated[
    str,
    Meta(
        pattern=rf"^(?=[\s\S]*\S)[^{_CONTROL}]*$",
        description="a string that is not blank, without control characters",
    ),
]
Exact = Annotated[
    str, Meta(pattern=rf"^[^*?\s{_CONTROL}]+(?!\s)$", description="an exact name; wildcards have no meaning here")
]
User = Annotated[
    str, Meta(pattern=rf"^[^*?{_CONTROLS}]+(?!\s)$", description="an exact name; wildcards have no meaning here")
]
Glob = Annotated[
    str,
    Meta(
        pattern=rf"^[^\s{_CONTROL}]+(?!\s)$",
        description="a name, in which `*` matches any characters and `?` one character",
    ),
]
ServiceAccount = Annotated[
    str,
    Meta(
        pattern=rf"^[^/:*?\s{_CONTROL}]+/[^/:*?\s{_CONTROL}]+(?!\s)$",
        description="a service account as namespace/name, no wildcards",
    ),
]
Writer = Annotated[
    str,
    Meta(
        pattern=rf"^([^/:*?\s{_CONTROL}]+/[^/:*?\s{_CONTROL}]+|user:[^*?{_CONTROLS}]+)(?!\s)$",
        description='a service account as namespace/name, or a user as "user:NAME", no wildcards',
    ),
]
Holder = Annotated[
    str,
    Meta(
        min_length=1,
        pattern=rf"^[^{_CONTROLS}]*(?!\s)$",
        description="a holder identity, in which `*` matches any characters, `?` one character, "
        "and `${pod}` the name of the writer's pod",
    ),
]
DocsUrl = Annotated[
    str,
    Meta(
        max_length=128,
        pattern=r"^https://[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?(/[A-Za-z0-9._~%@+-]+)*/?(?!\s)$",
        description="an https address of at most 128 characters, without user, query and fragment",
    ),
]


class RuleSetting(Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of one rule; rules with numbers have them beside the mode."""

    mode: ModeWord | UnsetType = UNSET


def _rule_setting(rule: str) -> type[Struct]:
    numbers = {limit.name: limit.default for limit in fields(Limits)}.get(rule.replace("-", "_"))
    if numbers is None:
        return RuleSetting
    return defstruct(
        "".join(word.capitalize() for word in rule.split("-")),
        [(number.name, Number | UnsetType, UNSET) for number in fields(numbers)],
        bases=(RuleSetting,),
        frozen=True,
        forbid_unknown_fields=True,
    )


Rules: Any = defstruct(
    "Rules",
    [(rule.replace("-", "_"), _rule_setting(rule) | UnsetType, UNSET) for rule in RULE_IDS],
    frozen=True,
    forbid_unknown_fields=True,
    rename="kebab",
)
"""One optional key for each rule id."""


class Exemption(Struct, frozen=True, forbid_unknown_fields=True):
    """Writers to whom policy rules do not apply.

    Any of the requesters (users, groups, service accounts; without a list: anyone), on any of the namespaces and any
    of the leases (without a list: all), through the last second of `until` (UTC). `rules` and `operations` narrow it:
    other rules and other operations are evaluated as for anyone.
    """

    owner: Text
    reason: Text
    users: list[User] = []
    groups: list[User] = []
    service_accounts: list[ServiceAccount] = []
    namespaces: list[Glob] = []
    leases: list[Glob] = []
    rules: Annotated[list[ExemptibleRule], Meta(min_length=1)] | UnsetType = UNSET
    operations: Operations | UnsetType = UNSET
    until: date | UnsetType = UNSET


class Override(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings for some leases and operations (without a list: all); of several, the last one in the file counts."""

    rules: Rules
    namespaces: list[Glob] = []
    leases: list[Glob] = []
    operations: Operations | UnsetType = UNSET


class LeaseBinding(Struct, frozen=True, forbid_unknown_fields=True):
    """The only writers of one lease, and the holder identities they may use; namespace and lease are exact names."""

    namespace: Exact
    lease: Exact
    writers: Annotated[list[Writer], Meta(min_length=1)]
    holder: Annotated[list[Holder], Meta(min_length=1)]
    require_pod: bool = False


class PolicyDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """A policy file."""

    api_version: Literal["lease-webhook/v1"] = field(name="apiVersion")
    preset: Literal["observe", "standard", "strict"] = "standard"
    mode: ModeWord = "deny"
    without_stamps: Literal["weaken", "enforce"] = "weaken"
    docs_url: DocsUrl | UnsetType = UNSET
    rules: Rules = Rules()
    exempt: list[Exemption] = []
    overrides: list[Override] = []
    bindings: list[LeaseBinding] = []
    fences: list[FenceSetting] | UnsetType = UNSET
