"""Rules: each is data around a pure function that returns findings, with all that a person needs to know about it."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import IntEnum
from itertools import islice
from types import MappingProxyType
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from webhook.admission.rules.change import Condition, Event
from webhook.admission.rules.limits import find_type
from webhook.kubernetes.field import FieldError
from webhook.kubernetes.request import Operation, Resource, cached
from webhook.text.quoting import LazyText, quote, quote_within, render


class Mode(IntEnum):
    """The consequence of a finding; a lower mode does less."""

    OFF = 0
    AUDIT = 1
    WARN = 2
    DENY = 3

    @property
    def word(self) -> str:
        """The mode as policy files and annotations spell it."""
        return _WORDS[self]


_WORDS: Final = tuple(mode.name.lower() for mode in Mode)


ELLIPSIS: Final = "..."


class Statement(Struct, frozen=True, gc=False):
    """A sentence about a write that has been admitted.

    `text` is a template of `str.format`: `{0}`, `{1}` stand for `names`, which clients choose and which are quoted, and
    `{page}` for the place that explains the rule.
    """

    text: LazyText
    names: tuple[str, ...] = ()

    def shorten(self, longest: int, page: str = "") -> str:
        """Return the sentence in at most `longest` characters: the longest names are cut first, and alike."""
        text = render(self.text)
        names = [quote(name) for name in self.names]
        whole = text.format(*names, page=page)
        if len(whole) <= longest:
            return whole
        lengths = [len(name) for name in names]
        space = longest - len(whole) + sum(lengths)
        level = next((level for level in range(space, 0, -1) if sum(min(one, level) for one in lengths) <= space), 0)
        shorter = text.format(*(quote_within(name, level) for name in self.names), page=page)
        return shorter if len(shorter) <= longest else shorter[: longest - len(ELLIPSIS)] + ELLIPSIS


def escape_braces(text: str) -> str:
    """Return text that stands in a template as it is, braces included."""
    return text.replace("{", "{{").replace("}", "}}")


class Finding(Struct, frozen=True, gc=False):
    """One finding of a rule.

    `error` is the text of a denial, `happened` that of a warning on an admitted write
    (without it, the error is shown). `tier` is the strongest mode that the finding may have. `without_stamps` marks one
    that rests on the caller's clock because no API server's stamp is there. Findings with the same `fact` share one
    sentence, which lists all their rules; the last of them supplies its text.
    """

    error: FieldError
    tier: Mode = Mode.DENY
    without_stamps: bool = False
    happened: Statement | None = None
    fact: str = ""


NO_FINDINGS: Final[tuple[Finding, ...]] = ()

MAX_FINDINGS: Final = 50
"""Findings that a verdict carries, and that one rule makes: an object may have hundreds of thousands of wrong items."""


def first_findings(errors: Iterable[FieldError]) -> tuple[Finding, ...]:
    """The first errors as findings; an iterator is not asked for more."""
    return tuple(Finding(error) for error in islice(errors, MAX_FINDINGS))


ALL_EVENTS: Final = frozenset(Event)
NOT_A_RENEWAL: Final = ALL_EVENTS - {Event.RENEWAL, Event.UNTOUCHED}

Check = Callable[..., Iterable[Finding]]
_AnyCheck = TypeVar("_AnyCheck", bound=Check)


_NO_CLIENT: Final = "Manifests written by hand, and templates with an empty value. No known elector."


class Stored(Struct, frozen=True):
    """What `audit` says of a stored object that breaks a rule.

    `means` is what that means for the lease, as `docs/audit.md` has it, `fix` how to repair the object, a template of
    `fill_in`.
    """

    means: str
    fix: str


NO_TAKEOVER: Final = "no other replica can take the lease, or not for a long time"
"""What several kinds of stored values mean; rules with the same text share a row."""


class Texts(Struct, frozen=True):
    """The texts about a rule for people, in sentences of Markdown.

    `summary` and `details` are the paragraphs of the check's docstring, `stored` and `stored_means` what `Stored` has,
    the others what `texts` takes.
    """

    summary: str
    details: tuple[str, ...]
    source: str
    why: str
    who: str
    fix: str
    attack: str
    stored: str
    stored_means: str
    upstream: str


_TEXTS: Final[dict[str, Texts]] = {}


def texts(
    *,
    source: str,
    why: str,
    fix: str,
    who: str = _NO_CLIENT,
    attack: str = "",
    stored: Stored | None = None,
    upstream: str = "",
) -> Callable[[_AnyCheck], _AnyCheck]:
    """Return a decorator of a check, with what people read of its rule beside the docstring.

    `source` is where the rule comes from, or `ours: ` and the reason. `why` says what happens without the rule, `who`
    which honest writers meet it, `fix` what they change. `attack` is what a denied write did, as a phrase, if it looks
    like an attack. `stored` is what `audit` says of a stored object; None if one state alone cannot break the rule.
    `upstream` says whether an API server refuses the same, if that is more than recordings show.
    Raises ValueError if another check has the same name: the id of a rule is the name of its check.
    """

    def decorate(check: _AnyCheck) -> _AnyCheck:
        name = check.__name__
        if name in _TEXTS:
            raise ValueError(f"two checks are named {name}")
        paragraphs = inspect.cleandoc(check.__doc__ or "").split("\n\n")
        summary, *details = (" ".join(paragraph.split()) for paragraph in paragraphs)
        _TEXTS[name] = Texts(
            summary=summary,
            details=tuple(details),
            source=source,
            why=why,
            who=who,
            fix=fix,
            attack=attack,
            stored=stored.fix if stored else "",
            stored_means=stored.means if stored else "",
            upstream=upstream,
        )
        return check

    return decorate


_READS: Final[dict[str, frozenset[str]]] = {}


def reads(*paths: str) -> Callable[[_AnyCheck], _AnyCheck]:
    """Return a decorator of a check, with the fields on which its answer depends, as `fields.py` describes them.

    A path is a place in the object, or the name of an option of the request.
    """

    def decorate(check: _AnyCheck) -> _AnyCheck:
        _READS[check.__name__] = frozenset(paths)
        return check

    return decorate


class DeniedRenewal(Struct, frozen=True):
    """What a rule denies of renewals, see `denies_renewals`."""

    reason: str
    condition: str = ""


ABSURD_VALUE: Final = "an absurd or unreadable value"
ANOTHER_CHANGE: Final = "another change in the same write"
"""Reasons of several rules, which share a row."""

_DENIED_RENEWALS: Final[dict[str, DeniedRenewal]] = {}
_REFUSED_UPSTREAM: Final = DeniedRenewal(
    "a value or an option that the API server itself refuses ([field rules](../glossary.md#words))"
)


def denies_renewals(reason: str, *, condition: str = "") -> Callable[[_AnyCheck], _AnyCheck]:
    """Return a decorator of a check that may deny a write by which a holder stays, for the list in `docs/promises.md`.

    `reason` is what such a write is denied for; rules with the same share a row. `condition` is what else must be so.
    Both are Markdown, with links as from `docs/rules`. In which presets it denies follows from the modes.
    """

    def decorate(check: _AnyCheck) -> _AnyCheck:
        _DENIED_RENEWALS[check.__name__] = DeniedRenewal(reason, condition)
        return check

    return decorate


NO_VARIABLES: Final[Mapping[str, str]] = MappingProxyType({})


class RuleInCel(Struct, frozen=True):
    """How a policy of the API server says a rule, or why it cannot (`webhook/api_server/rule_policies.py`).

    `broken` is true of a write that the rule denies, `warned` of one that it only warns of, over the variables of
    `webhook/api_server/variables.yaml`. In `message`, and `warning` if it differs, `{expression}` is inserted,
    `{!expression}` in quotes; `$name` is a number of the rule. A rule that never denies has
    no `broken`, one that never warns no `warned`. `lacks` says what of the rule a policy does not say, or
    why nothing. `variables` are of this rule alone: a policy has each after those that it uses. `phrases` are variables
    that are texts like `message`.
    """

    broken: str = ""
    message: str = ""
    warned: str = ""
    warning: str = ""
    lacks: str = ""
    variables: Mapping[str, str] = NO_VARIABLES
    phrases: Mapping[str, str] = NO_VARIABLES

    @property
    def is_said(self) -> bool:
        """Whether a policy says anything of the rule."""
        return bool(self.broken or self.warned)


_IN_CEL: Final[dict[str, RuleInCel]] = {}
_VALIDATED: Final = RuleInCel(lacks="The API server validates it before it evaluates a policy.")


def in_cel(
    *,
    broken: str = "",
    message: str = "",
    warned: str = "",
    warning: str = "",
    lacks: str = "",
    variables: Mapping[str, str] = NO_VARIABLES,
    phrases: Mapping[str, str] = NO_VARIABLES,
) -> Callable[[_AnyCheck], _AnyCheck]:
    """Return a decorator of a check, with its rule in CEL, see `RuleInCel`; line breaks of the texts do not count.

    The functions are those of Kubernetes 1.30, the oldest API server with policies: https://kubernetes.io/docs/reference/using-api/cel/.
    They may differ from Python's of a similar name: `trim()` leaves U+001C to U+001F, which `strip()` removes.
    """
    rule_in_cel = RuleInCel(
        broken=_join_lines(broken),
        message=_join_lines(message),
        warned=_join_lines(warned),
        warning=_join_lines(warning),
        lacks=_join_lines(lacks),
        variables={name: _join_lines(text) for name, text in variables.items()},
        phrases={name: _join_lines(text) for name, text in phrases.items()},
    )

    def decorate(check: _AnyCheck) -> _AnyCheck:
        _IN_CEL[check.__name__] = rule_in_cel
        return check

    return decorate


def _join_lines(text: str) -> str:
    return " ".join(text.split())


_REFUSED_WHEN_STORED: Final = Stored(
    means="a current API server refuses the object",
    fix="correct it in the manifest or the client that writes it; a current API server refuses the value",
)


class Rule(Struct, frozen=True, dict=True):
    """A check and when it is evaluated; the id of the rule is the name of the check.

    `events` are those on which the check is evaluated at all, `only_if` a condition without which it finds nothing, so
    that it need not be called: most writes meet no condition. `parity` rules repeat the API server's own validation: no
    exemption silences them. `about_writer` rules are skipped if the writer is not known (a bare manifest).
    `standard` and `strict` are the rule's modes in the presets of these names, `bound` that for leases that a binding
    names, unless the policy file sets one: None if it is that of the preset. `without_effect` is a setting that has no
    effect on plain renewals, because the shipped match condition keeps them from the webhook.
    A denied write looks like an attack if the rule has such a text; a warned one too if `attack_at_any_mode`, and a
    CREATE if `attack_on_create`: a restored backup may create what makes a leader step down if it is written into an
    object that exists.
    """

    check: Check
    resources: AbstractSet[Resource]
    operations: AbstractSet[Operation]
    events: AbstractSet[Event] = ALL_EVENTS
    only_if: Condition | None = None
    parity: bool = False
    about_writer: bool = False
    never_exempt: bool = False
    standard: Mode = Mode.DENY
    strict: Mode = Mode.DENY
    bound: Mode | None = None
    without_effect: str = ""
    attack_at_any_mode: bool = True
    attack_on_create: bool = True

    @cached
    def id(self) -> str:
        """The name in policy files, verdicts and documents."""
        return self.check.__name__.replace("_", "-")

    @cached
    def texts(self) -> Texts:
        """The texts about the rule for people."""
        written = _TEXTS[self.check.__name__]
        # What is evaluated on a DELETE too is not about what is stored, and without CREATE not about one state alone.
        is_of_state = Operation.CREATE in self.operations and Operation.DELETE not in self.operations
        if written.stored or not self.parity or not is_of_state:
            return written
        return replace(written, stored=_REFUSED_WHEN_STORED.fix, stored_means=_REFUSED_WHEN_STORED.means)

    @property
    def denied_renewal(self) -> DeniedRenewal | None:
        """What it denies of renewals of a Lease; None if it denies none in any preset."""
        if self.parity and Resource.LEASES in self.resources and Operation.UPDATE in self.operations:
            return _REFUSED_UPSTREAM
        return _DENIED_RENEWALS.get(self.check.__name__)

    @property
    def limits(self) -> type[Struct] | None:
        """The type of the numbers that a policy may change; None if there are none."""
        return find_type(self.check)

    @property
    def default_limits(self) -> dict[str, int]:
        """The numbers where no policy changes them, by their names."""
        return asdict(self.limits()) if self.limits else {}

    @property
    def reads(self) -> frozenset[str]:
        """The paths of the fields on which its answer depends."""
        return _READS.get(self.check.__name__, frozenset())

    @property
    def in_cel(self) -> RuleInCel:
        """How a policy of the API server says the rule, or why it cannot."""
        return _IN_CEL.get(self.check.__name__, _VALIDATED)

    @property
    def observe(self) -> Mode:
        """The mode in the preset observe, below its cap: a deny if strict denies, else standard's."""
        return Mode.DENY if self.strict is Mode.DENY else self.standard
