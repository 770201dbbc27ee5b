"""Rules: each is one value, beside its check, with all that the engine and people need to know about it."""

import inspect
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from webhook.admission.rules.change import Condition, Event
from webhook.admission.rules.finding import Finding
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.occasions import ALL_EVENTS
from webhook.admission.rules.texts import DeniedRenewal, Stored, Texts
from webhook.cached_property import cached_property
from webhook.kubernetes.request import Operation, Resource

Check = Callable[..., Iterable[Finding]]
"""A pure function of one change."""


class Rule(Struct, frozen=True, kw_only=True, dict=True):
    """A check, when it is evaluated, and what is said about it.

    The id is the name of the check, and the docstring of the check is the text of the rule.
    """

    check: Check
    resources: frozenset[Resource]
    operations: frozenset[Operation]
    events: frozenset[Event]
    """On what it is evaluated at all; with `Event.RENEWAL` it costs each healthy leader time."""
    only_if: Condition | None = None
    """A condition without which the check finds nothing, so that it need not be called: most writes meet none."""
    about_writer: bool = False
    """The check needs the writer, and is skipped if that is not known, as of a bare manifest."""
    standard: Mode
    """The rule's mode in the preset `standard`."""
    strict: Mode
    """The rule's mode in the preset `strict`."""
    bound: Mode | None = None
    """The mode for leases that a binding names, unless the policy file sets one; None if it is that of the preset."""
    limits: type[Struct] | None = None
    """The type of the numbers that a policy may change, which the check asks for by `change.find_limits`."""
    parity: bool = False
    """The rule repeats the API server's own validation: no exemption silences it."""
    never_exempt: bool = False
    """No exemption silences the rule, though the API server does not validate this itself."""
    texts: Texts
    """What is said to people."""
    stored: Stored | None = None
    """What `audit` says of a stored object; None if one state alone cannot break the rule."""
    denied_renewal: DeniedRenewal | None = None
    """What the rule denies of renewals of a Lease; None if it denies none in any preset.

    The list of these may not be lengthened lightly.
    """
    without_effect: str = ""
    """A setting that has no effect on plain renewals: the shipped match condition keeps them from the webhook."""
    attack_at_any_mode: bool = True
    """A write that the rule only warns of looks like an attack too, if `texts` have one."""
    attack_on_create: bool = True
    """A CREATE that breaks the rule looks like an attack too, if `texts` have one.

    Unset where a restored backup may create what makes a leader step down if it is written into an existing object.
    """
    reads: tuple[str, ...]
    """The fields on which the answer depends: paths, or names of options of the request, as in `fields.py`."""
    in_cel: RuleInCel
    """The rule as a CEL expression, for ValidatingAdmissionPolicies."""

    @cached_property
    def id(self) -> str:
        """The name in policy files, verdicts and documents."""
        return self.check.__name__.replace("_", "-")

    @property
    def summary(self) -> str:
        """The text of the rule in all output: the first paragraph of the check's docstring."""
        return self._paragraphs[0]

    @property
    def details(self) -> tuple[str, ...]:
        """The other paragraphs."""
        return self._paragraphs[1:]

    @cached_property
    def _paragraphs(self) -> tuple[str, ...]:
        paragraphs = inspect.cleandoc(self.check.__doc__ or "").split("\n\n")
        return tuple(" ".join(paragraph.split()) for paragraph in paragraphs)

    @property
    def repair(self) -> str:
        """How to repair a stored object that breaks the rule, a template of `fill_in`; "" if none alone can."""
        return self.stored.fix if self.stored else ""

    @property
    def default_limits(self) -> dict[str, int]:
        """The numbers where no policy changes them, by their names."""
        return asdict(self.limits()) if self.limits else {}

    @property
    def is_exemptible(self) -> bool:
        """True if an exemption applies to it, and may name it."""
        return not self.parity and not self.never_exempt

    @property
    def observe(self) -> Mode:
        """The mode in the preset observe, below its cap: a deny if strict denies, else standard's."""
        return Mode.DENY if self.strict is Mode.DENY else self.standard


VALIDATED: Final = RuleInCel(lacks="The API server validates it before it evaluates a policy.")
_REFUSED_WHEN_STORED: Final = Stored(
    means="a current API server refuses the object",
    fix="correct it in the manifest or the client that writes it; a current API server refuses the value",
)
_STORED_UPSTREAM: Final = Stored(
    means="an API server may store it, against the API reference",
    fix="correct it in the manifest or the client that writes it",
)
_REFUSED_UPSTREAM: Final = DeniedRenewal(
    reason="a value or an option that the API server itself refuses ([field rules](../glossary.md#words))"
)


def make_parity_rule(
    *,
    check: Check,
    resources: frozenset[Resource],
    operations: frozenset[Operation],
    only_if: Condition | None = None,
    texts: Texts,
    reads: tuple[str, ...],
    in_cel: RuleInCel = VALIDATED,
) -> Rule:
    """Return a rule that repeats the API server's own validation: it denies in each preset, and says the usual of that.

    What is evaluated on a DELETE too is not about what is stored, and without CREATE not about one state alone.
    """
    is_of_state = Operation.CREATE in operations and Operation.DELETE not in operations
    is_of_renewals = Resource.LEASES in resources and Operation.UPDATE in operations
    stored = _STORED_UPSTREAM if texts.upstream else _REFUSED_WHEN_STORED
    return Rule(
        check=check,
        resources=resources,
        operations=operations,
        events=ALL_EVENTS,
        only_if=only_if,
        standard=Mode.DENY,
        strict=Mode.DENY,
        parity=True,
        texts=texts,
        stored=stored if is_of_state else None,
        denied_renewal=_REFUSED_UPSTREAM if is_of_renewals else None,
        reads=reads,
        in_cel=in_cel,
    )
