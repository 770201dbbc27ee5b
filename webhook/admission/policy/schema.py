"""The policy file as types, and what its entries mean; `make docs` writes the JSON Schema of the package from them."""

import difflib
from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct, field, inspect, to_builtins
from msgspec.structs import fields

from webhook.admission.rules.mode import Mode
from webhook.admission.rules.registry import EXEMPTIBLE, RULES
from webhook.kubernetes.request import Operation
from webhook.text.quoting import escape, quote, truncate

API_VERSION: Final = "lease-webhook/v1"
PRESETS: Final = ("observe", "standard", "strict")
OPERATIONS: Final = (Operation.CREATE, Operation.UPDATE, Operation.DELETE)
"""Operations that a policy may name; CONNECT changes nothing and is not evaluated."""
ANYWHERE: Final = "*"
"""The glob of an entry that lists no namespaces, or no leases."""
FOREVER: Final = 1 << 63
"""An `until` in microseconds that no clock reaches."""
MODE: Final = "mode"
FORM: Final = "form"
"""The key under which a type keeps the words of an error about its pattern."""

Setting = tuple[str, str]
"""(rule id, "mode" or the name of a number)."""
Value = Mode | int

RULE_IDS: Final = tuple(RULES)

_CONTROL: Final = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"
"""Characters that would control a terminal on which a policy is shown, without tab and line feed."""
_CONTROLS: Final = rf"{_CONTROL}\t\n"
_LABEL: Final = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_NAMESPACED: Final = rf"^{_LABEL}/[a-z0-9]([-a-z0-9.]{{0,251}}[a-z0-9])?(?!\s)$"


def _describe(description: str, max_length: int | None = None) -> Meta:
    """Return the description of a key; an editor shows it, and docs/policy.md."""
    return Meta(description=description, max_length=max_length)


def _require_form(
    pattern: str | None, form: str, *, min_length: int | None = None, max_length: int | None = None
) -> Meta:
    """Return the pattern of a text; `form` says in words what it must be."""
    extra = {FORM: form}
    return Meta(pattern=pattern, description=form, min_length=min_length, max_length=max_length, extra=extra)


NOT_EMPTY = Meta(min_length=1)
ModeWord = Literal["deny", "warn", "audit", "off"]
ExemptibleRule: Any = Literal[tuple(rule for rule in RULE_IDS if rule in EXEMPTIBLE)]
Operations = Annotated[
    list[Literal["CREATE", "UPDATE", "DELETE"]],
    NOT_EMPTY,
    _describe(
        "The operations to which the entry applies; without this list, all. A patch or an apply is UPDATE, or CREATE "
        "if it creates the object."
    ),
]
_NUMBER_RANGE: Final = Meta(ge=0, le=2**63 - 1)
Text = Annotated[
    str, _require_form(rf"^(?=[\s\S]*\S)[^{_CONTROL}]*$", "a string that is not blank, without control characters")
]
Exact = Annotated[str, _require_form(rf"^[^*?\s{_CONTROL}]+(?!\s)$", "an exact name; wildcards have no meaning here")]
User = Annotated[str, _require_form(rf"^[^*?{_CONTROLS}]+(?!\s)$", "an exact name; wildcards have no meaning here")]
Glob = Annotated[
    str,
    _require_form(rf"^[^\s{_CONTROL}]+(?!\s)$", "a name, in which `*` matches any characters and `?` one character"),
]
ServiceAccount = Annotated[
    str,
    _require_form(
        rf"^[^/:*?\s{_CONTROL}]+/[^/:*?\s{_CONTROL}]+(?!\s)$", "a service account as namespace/name, no wildcards"
    ),
]
Writer = Annotated[
    str,
    _require_form(
        rf"^([^/:*?\s{_CONTROL}]+/[^/:*?\s{_CONTROL}]+|user:[^*?{_CONTROLS}]+)(?!\s)$",
        'a service account as namespace/name, or a user as "user:NAME", no wildcards',
    ),
]
Holder = Annotated[
    str,
    _require_form(
        rf"^(?!.*\$\{{(?!pod\}}))[^{_CONTROLS}]*(?!\s)$",
        "a holder identity, in which `*` matches any characters, `?` one character, "
        "and `${pod}`, the only variable, the name of the writer's pod",
        min_length=1,
    ),
]
DocsUrl = Annotated[
    str,
    _require_form(
        r"^https://[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?(/([A-Za-z0-9._~%@+-]|\{rule\})+)*/?(?!\s)$",
        "an https address of at most 128 characters, without user, query and fragment; "
        "`{rule}` in its path stands for the rule's id",
        max_length=128,
    ),
]
FenceName = Annotated[
    str,
    _require_form(
        r"^[a-z0-9]([-a-z0-9]{0,55}[a-z0-9])?(?!\s)$",
        "a name of at most 57 lower case letters, digits and -, which begins and ends with a letter or digit",
    ),
]
LeaseReference = Annotated[str, _require_form(_NAMESPACED, "a lease as namespace/name, no wildcards")]
FencedWriter = Annotated[
    str,
    _require_form(
        _NAMESPACED, "a service account as namespace/name, no wildcards; a user has no pod and cannot be fenced"
    ),
]
Namespace = Annotated[str, _require_form(rf"^{_LABEL}(?!\s)$", "the exact name of a namespace, no wildcards")]
_TEMPLATE: Final = r"((?!\$\{)[ -)+->@-~])*"
"""Printable ASCII without wildcards and variables."""
StampSuffix = Annotated[
    str,
    _require_form(r"^[a-z0-9]{8,32}(?!\s)$", "the suffix of the annotations: 8 to 32 lower case letters and digits"),
]
FenceHolder = Annotated[
    str,
    _require_form(
        rf"^{_TEMPLATE}\$\{{(pod|node)\}}{_TEMPLATE}\*?(?!\s)$",
        "a holder identity with `${pod}` or `${node}` once, such as `${pod}_*`, of at most 256 characters of printable "
        "ASCII, with `*` only at the end",
        max_length=256,
    ),
]
FenceResource = Annotated[
    str,
    _require_form(
        None,
        "a resource such as configmaps, deployments.apps or deployments.apps/scale, of at most 400 characters",
        min_length=1,
        max_length=400,
    ),
]
FencedOperation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
FencedOperations = Annotated[list[FencedOperation], Meta(min_length=1, max_length=4)]
FenceMode = Literal["audit", "warn", "deny"]
Expired = Literal["allow", "warn", "deny"]
Choice = Literal["allow", "deny"]
FENCED_OPERATIONS: tuple[FencedOperation, ...] = ("CREATE", "UPDATE", "DELETE")
DEFAULT_HOLDER = "${pod}_*"
MAX_FENCES: Final = 256
"""Each is two objects that every API server evaluates; far more than one cluster has operators."""


class RuleSetting(Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of one rule; rules with numbers have them beside the mode."""

    mode: ModeWord | UnsetType = UNSET


def _make_rule_setting(rule: str) -> type[Struct]:
    numbers = RULES[rule].limits
    if numbers is None:
        return RuleSetting
    return defstruct(
        "".join(word.capitalize() for word in rule.split("-")),
        [(number.name, Annotated[number.type, _NUMBER_RANGE] | UnsetType, UNSET) for number in fields(numbers)],
        bases=(RuleSetting,),
        frozen=True,
        forbid_unknown_fields=True,
    )


Rules: Any = defstruct(
    "Rules",
    [(rule.replace("-", "_"), _make_rule_setting(rule) | UnsetType, UNSET) for rule in RULE_IDS],
    frozen=True,
    forbid_unknown_fields=True,
    rename="kebab",
)
"""One optional key for each rule id."""


class Exemption(Struct, frozen=True, forbid_unknown_fields=True):
    """Writers to whom policy rules do not apply.

    Any of the requesters (users, groups, service accounts; without a list: anyone), on any of the namespaces and any
    of the leases (without a list: all), through the last second of `until` (UTC). A LeaseCandidate counts under the
    lease that it names. `rules` and `operations` narrow it: other rules and other operations are evaluated as for
    anyone.
    """

    owner: Text
    reason: Text
    users: list[User] = []
    groups: list[User] = []
    service_accounts: list[ServiceAccount] = []
    namespaces: list[Glob] = []
    leases: list[Glob] = []
    rules: (
        Annotated[
            list[ExemptibleRule],
            NOT_EMPTY,
            _describe("The rules that do not apply; without this list, none of the policy rules does."),
        ]
        | UnsetType
    ) = UNSET
    operations: Operations | UnsetType = UNSET
    until: date | UnsetType = UNSET


class Override(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings for some leases and operations (without a list: all); of several, the last one in the file counts.

    A LeaseCandidate counts under the lease that it names.
    """

    rules: Rules
    namespaces: list[Glob] = []
    leases: list[Glob] = []
    operations: Operations | UnsetType = UNSET


class LeaseBinding(Struct, frozen=True, forbid_unknown_fields=True):
    """The only writers of one lease, and the holder identities they may use; namespace and lease are exact names."""

    namespace: Exact
    lease: Exact
    writers: Annotated[list[Writer], NOT_EMPTY]
    holder: Annotated[list[Holder], NOT_EMPTY]
    require_pod: bool = False


class FenceSetting(Struct, frozen=True, forbid_unknown_fields=True):
    """Which writes only the holder of a lease may make; `lease-webhook export fence` renders it for the API server.

    Only the writers are fenced. `namespaces` are those of the objects that are written (without a list: all).
    """

    name: FenceName
    lease: LeaseReference
    writers: Annotated[list[FencedWriter], Meta(min_length=1, max_length=32)]
    resources: Annotated[list[FenceResource], Meta(min_length=1, max_length=128)]
    holder: (
        Annotated[
            list[FenceHolder],
            Meta(min_length=1, max_length=8),
            _describe(
                "Templates of the holder identity. Without them the writer that `stamps` records is compared; where "
                'there are no stamps, they are `["${pod}_*"]`.'
            ),
        ]
        | UnsetType
    ) = UNSET
    operations: FencedOperations = field(default_factory=lambda: [*FENCED_OPERATIONS])
    namespaces: Annotated[list[Namespace], Meta(max_length=128)] = []
    mode: FenceMode = "warn"
    when_unheld: Choice = "allow"
    missing_lease: Choice | UnsetType = UNSET
    token: Annotated[
        bool,
        _describe(
            "Whether each write carries the term of the lease, and one by an API server that knows an older term "
            "is refused; needs `stamps`."
        ),
    ] = False
    expired: Annotated[
        Expired,
        _describe(
            "What happens to a write of a holder whose lease has expired, by the API server's clock; needs `stamps`."
        ),
    ] = "allow"


class StampSetting(Struct, frozen=True, forbid_unknown_fields=True):
    """Namespaces in which the API server stamps the writers of leases, by the policies of `deploy/stamp`."""

    suffix: StampSuffix
    namespaces: Annotated[list[Namespace], NOT_EMPTY]
    writer: Annotated[
        Literal["pod", "user"],
        _describe("Whether one writer is a pod, or all pods of a user, as the namespace is labeled."),
    ] = "pod"


class PolicyDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """A policy file."""

    # A new key is UNSET by default: the hash of a policy is of what its file says, and no existing one gets another.
    api_version: Literal["lease-webhook/v1"] = field(name="apiVersion")
    preset: Annotated[
        Literal["observe", "standard", "strict"], _describe("What `rules` and `overrides` start from.")
    ] = "standard"
    mode: Annotated[
        ModeWord,
        _describe("The cap for everything, field rules included; `off` is the kill switch: every write is allowed."),
    ] = "deny"
    without_stamps: Annotated[
        Literal["weaken", "enforce"],
        _describe(
            "For a lease without API server stamps: "
            "whether a denial that relies on a client's clock becomes a warning, or is enforced."
        ),
    ] = "weaken"
    docs_url: (
        Annotated[
            DocsUrl,
            _describe(
                "The address of pages about the rules; denials end with it. `{rule}` in it stands for the rule's id; "
                "without it, a slash and the id follow."
            ),
        ]
        | UnsetType
    ) = UNSET
    rules: Annotated[Rules, _describe("Modes and numbers for all leases.")] = Rules()
    exempt: Annotated[
        list[Exemption], _describe("Exemptions from the policy rules; the field rules always apply.")
    ] = []
    overrides: Annotated[
        list[Override], _describe("Modes and numbers for some leases; of several, the last one counts.")
    ] = []
    bindings: Annotated[
        list[LeaseBinding], _describe("The only writers of a lease, and the holder identities they may use.")
    ] = []
    fences: (
        Annotated[
            list[FenceSetting],
            _describe(
                "Which writes only the holder of a lease may make; enforced by the API server once they are applied.",
                max_length=MAX_FENCES,
            ),
        ]
        | UnsetType
    ) = UNSET
    stamps: (
        Annotated[
            list[StampSetting],
            _describe("Where the API server stamps the writers of leases; believed only in the namespaces named here."),
        ]
        | UnsetType
    ) = UNSET


def _is_plain(kind: inspect.Type) -> bool:
    plain = kind.type if isinstance(kind, inspect.Metadata) else kind
    return isinstance(plain, inspect.LiteralType | inspect.StrType | inspect.IntType)


def _list_plain_settings() -> tuple[str, ...]:
    document = inspect.type_info(PolicyDocument)
    assert isinstance(document, inspect.StructType)
    return tuple(one.name for one in document.fields if one.name != "api_version" and _is_plain(one.type))


PLAIN_SETTINGS: Final = _list_plain_settings()
"""The keys that are a word, a text or a number: commands, the contract of their JSON and the tests have each."""


def parse_mode(word: str) -> Mode:
    """Return the mode that a policy file writes in lower case."""
    return Mode[word.upper()]


def list_settings(rules: Rules) -> dict[Setting, Value]:
    """Return the settings of a `rules` mapping."""
    stated: dict[str, dict[str, Any]] = to_builtins(rules)
    return {
        (rule, name): parse_mode(value) if name == MODE else value
        for rule, setting in stated.items()
        for name, value in setting.items()
    }


def find_end(exemption: Exemption) -> int:
    """Return the first microsecond since 1970 at which an exemption is over."""
    if isinstance(exemption.until, UnsetType):
        return FOREVER
    return (exemption.until - date(1970, 1, 1)).days * 86_400_000_000 + 86_400_000_000


def list_operations(entry: Exemption | Override) -> tuple[Operation, ...]:
    """Return the operations to which an exemption or an override applies."""
    return tuple(map(Operation, entry.operations)) if entry.operations else OPERATIONS


def list_users(exemption: Exemption) -> list[str]:
    """Return the user names of an exemption; a service account is the user that its token authenticates as."""
    accounts = (account.replace("/", ":") for account in exemption.service_accounts)
    return [*exemption.users, *(f"system:serviceaccount:{account}" for account in accounts)]


_MAX_NAME: Final = 64
"""Characters of a mistyped name that are compared; no valid name is longer."""


class PolicyError(Exception):
    """A policy file is refused as a whole; the text names the place, the problem, and the closest valid name if any.

    `path` is such as `overrides[2].rules.identity-binding.mode`, "" for the whole file; `line` counts from 1, 0 if
    unknown.
    """

    def __init__(self, problem: str, path: str = "", line: int = 0) -> None:
        super().__init__(problem, path, line)
        self.problem = problem
        self.path = path
        self.line = line

    def __str__(self) -> str:
        place = [f"line {self.line}"] if self.line else []
        return ": ".join([*place, *filter(None, [escape(truncate(self.path))]), self.problem])


def suggest_nearest(name: str, known: Sequence[str]) -> str:
    """Return a hint to append to a message: the valid name closest to this one, all of them if few, or ""."""
    near = difflib.get_close_matches(name[:_MAX_NAME], known, n=1)
    if near:
        return f"; did you mean {quote(near[0])}?"
    return f"; known are {', '.join(sorted(known))}" if len(known) <= 12 else ""
