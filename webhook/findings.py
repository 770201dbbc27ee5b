"""Findings of commands, as plain data from which every format is written."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct


class Severity(StrEnum):
    """The severity of a finding: an error is refused or broken, a warning should be looked at, an info can wait."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    def is_at_least(self, threshold: "Severity") -> bool:
        """True if it is this severe or worse."""
        return ORDER[self] <= ORDER[threshold]


ORDER: Final = {one: number for number, one in enumerate(Severity)}  # the worst first


class ObjectName(Struct, frozen=True, gc=False):
    """The kind, namespace and name of an object; "" for what is not known or does not apply."""

    kind: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class Problem(Struct, frozen=True):
    """What is wrong where a finding is reported.

    `means` is that in Markdown, with links as from `docs`. `severities` has each that the finding may have, and when:
    the first is the usual one. `fix` is the usual repair, a template of `fill_in`; "" if each finding has its own.
    """

    means: str
    severities: Mapping[Severity, str]
    fix: str = ""

    @property
    def severity(self) -> Severity:
        """The usual one."""
        return next(iter(self.severities))


class Kind(Struct, frozen=True):
    """A kind of claim: its `id`, on which programs may match, and what it means.

    `means` is true or false of what happened, no matter what the input shows. `evidence` is what an input must show
    before such a claim is made. `arguments` are those that a claim may have; it has those that are known. `problem` is
    what is wrong if such a claim is a finding.
    """

    id: str
    means: str
    evidence: str
    arguments: tuple[str, ...] = ()
    problem: Problem | None = None


class ReportFinding(Struct, frozen=True, gc=False):
    """Something that is wrong, as every command but the webhook itself reports it.

    `check` is a kebab-case id, on which other programs may match. `message` says what is wrong, `fix` what to change or
    to run. `place` is where it is: a field path with its value, or the input that the subject was read from.
    `identity` is the holder of a lease. `how` says what dates it, if that is not an API server.
    """

    check: str
    severity: Severity
    message: str
    fix: str = ""
    place: str = ""
    subject: ObjectName = ObjectName()
    identity: str = ""
    how: str = ""
