"""A claim: one statement about a lease that is true or false, of a kind that says when it may be made.

Commands print claims in words and as JSON.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, Final

from msgspec import Struct

from webhook.analysis.inputs.items import Writer
from webhook.findings import Kind, ReportFinding
from webhook.kubernetes.times import SECOND, format_micro_time

IDENTITY: Final = "identity"
BY: Final = "by"
EARLIEST: Final = "earliest"
LATEST: Final = "latest"
FROM: Final = "from"
TO: Final = "to"
REPLACED: Final = "replaced"
"""The cause of a finding about a pod that took over the name and the lease of another one."""


class ArgumentType(Enum):
    """The type of an argument, in the code and in JSON."""

    TEXT = auto()
    TEXTS = auto()
    COUNT = auto()
    INSTANT = auto()
    """Microseconds since 1970 in the code, RFC 3339 in JSON."""
    LENGTH = auto()
    """A `Length` in the code, seconds in JSON."""
    AUTHOR = auto()
    """A `WriteAuthor`."""


class Length(Struct, frozen=True):
    """A length of time."""

    microseconds: int


class Argument(Struct, frozen=True):
    """An argument of claims: what it is, and what it means, as the documents and the JSON Schema say."""

    type: ArgumentType
    means: str = ""


ARGUMENTS: Final[Mapping[str, Argument]] = {
    IDENTITY: Argument(ArgumentType.TEXT, "The text in holderIdentity that the claim is about."),
    "previous": Argument(ArgumentType.TEXT, "The text before it."),
    BY: Argument(ArgumentType.AUTHOR),
    "how": Argument(ArgumentType.TEXT, "How it happened, or what dates it: see the kind of claim."),
    EARLIEST: Argument(
        ArgumentType.INSTANT,
        "The write was stored at this moment or later; RFC 3339, UTC, by the API servers' clocks.",
    ),
    LATEST: Argument(
        ArgumentType.INSTANT,
        "The write was stored at this moment or earlier; RFC 3339, UTC, by the API servers' clocks.",
    ),
    FROM: Argument(ArgumentType.INSTANT, "The beginning of a span of time; RFC 3339, UTC."),
    TO: Argument(ArgumentType.INSTANT, "The end of it; RFC 3339, UTC."),
    "seconds": Argument(ArgumentType.LENGTH, "A length of time: see the kind of claim."),
    "longest_seconds": Argument(ArgumentType.LENGTH, "The longest of several."),
    "count": Argument(ArgumentType.COUNT, "How often."),
    "cause": Argument(ArgumentType.TEXT, "The one cause that the input leaves."),
    "causes": Argument(ArgumentType.TEXTS, "All causes that the input leaves."),
    "code": Argument(ArgumentType.COUNT, "The HTTP status of a refusal."),
    "identities": Argument(ArgumentType.TEXTS, "The programs that share a lease."),
    "field": Argument(ArgumentType.TEXT, "The field that was stored otherwise."),
    "object": Argument(ArgumentType.TEXT, "The kind, the namespace and the name of another object, as text."),
    "asked": Argument(ArgumentType.TEXT, "What its request had there, as text."),
    "stored": Argument(ArgumentType.TEXT, "What was stored there, as text."),
}
"""Every argument that a kind of claim may have: `make docs` writes them into docs/claims.md and the JSON Schema."""


class Advice(Struct, frozen=True):
    """Advice in one or two sentences, and the command to run, which may be empty.

    `pods` are the names of those that the command describes, or whose log it shows.
    """

    sentence: str
    command: str = ""
    pods: tuple[str, ...] = ()


class WriteAuthor(Struct, frozen=True):
    """Who made a write, as far as the input shows it; the field manager is what a client calls itself: a hint."""

    writer: Writer | None = None
    manager: str = ""

    @property
    def known(self) -> str:
        """`process` if the API server says which pod or which user without a pod wrote, else what is known instead."""
        writer = self.writer
        if writer is None or not writer.user:
            return "manager" if self.manager else "unknown"
        return "process" if writer.uid or writer.pod else "user"


class Claim(ReportFinding, frozen=True, gc=False, kw_only=True):
    """One claim: `check` is the id of its kind, `message` the sentence, `fix` a command after the sentence `advice`.

    `arguments` are what the sentence says, for programs. `over_since` is in microseconds since 1970: 0 if it goes on,
    None if that is not known, or does not apply. `at` places it among what happened; None if it is of no moment.
    `why` is the part of `message` that says why a holder is silent, or was until it lost the lease, as a sentence; ""
    if it has none; `when` is the part that says when something happened, where that is not when it was over. `pods`
    are those that the command shows, see `Advice`.
    """

    advice: str = ""
    pods: tuple[str, ...] = ()
    cause: str = ""
    why: str = ""
    when: str = ""
    over_since: int | None = None
    at: int | None = None
    arguments: Mapping[str, object] = {}

    @property
    def is_over(self) -> bool | None:
        """True if it is over; None if that is not known."""
        return None if self.over_since is None else self.over_since > 0


def make_claim_json(claim: Claim) -> dict[str, Any]:
    """Return a claim as a JSON object; instants are RFC 3339, lengths of time are seconds."""
    ongoing = {} if claim.over_since is None else {"ongoing": claim.over_since == 0}
    text = claim.message
    fields = {key: _convert_value(key, value) for key, value in claim.arguments.items() if value is not None}
    return {"claim": claim.check, "severity": claim.severity.value, **ongoing, **fields, "text": text}


def _convert_value(key: str, value: object) -> object:
    if isinstance(value, WriteAuthor):
        return convert_writer(value)
    if isinstance(value, int) and ARGUMENTS[key].type is ArgumentType.INSTANT:
        return format_micro_time(value)
    if isinstance(value, Length):
        return value.microseconds / SECOND
    return value


def convert_writer(by: WriteAuthor) -> dict[str, str]:
    """Return a writer as a JSON object; what is not known is ""."""
    writer = by.writer or Writer()
    return {
        "user": writer.user,
        "pod": writer.pod,
        "uid": writer.uid,
        "manager": by.manager,
        "known": by.known,
        **({"impersonated_by": writer.impersonator} if writer.impersonator else {}),
    }


def make_kind_json(kind: Kind) -> dict[str, Any]:
    """Return a kind as a JSON object."""
    return {"id": kind.id, "means": kind.means, "evidence": kind.evidence, "arguments": list(kind.arguments)}
