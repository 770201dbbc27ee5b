"""What a command found: the subjects that it examined, each with its findings. Every format is written from this."""

from enum import StrEnum

from msgspec import Struct


class Severity(StrEnum):
    """How bad a finding is: an error is refused or broken, a warning should be looked at, an info can wait."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Location(Struct, frozen=True):
    """A place in a file: its path as it was given, and a line counted from 1, or 0 if the line is not known."""

    path: str
    line: int = 0


class Finding(Struct, frozen=True):
    """Something that is wrong with a subject: the id of the check that found it, and what to do about it."""

    check: str
    severity: Severity
    message: str
    repair: str = ""


class Subject(Struct, frozen=True):
    """Something that was examined: an object, a review, a test case. `error` says why it could not be examined."""

    name: str
    location: Location
    findings: tuple[Finding, ...] = ()
    error: str = ""


class Check(Struct, frozen=True):
    """What a check is about: its summary in one sentence, and the rest of its text."""

    id: str
    summary: str
    text: str = ""


class Report(Struct, frozen=True):
    """All that a command examined, good subjects too, and a description of the checks that it made."""

    command: str
    subjects: tuple[Subject, ...]
    checks: tuple[Check, ...] = ()
