"""Files of expected verdicts: the cases that `lease-webhook test` evaluates."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import yaml
from msgspec import UNSET, Struct, UnsetType

from webhook.api.field import MISSING_FIELD, UNKNOWN_FIELD, located, reworded
from webhook.api.text import quote
from webhook.inputs import yaml_reader
from webhook.inputs.documents import Value
from webhook.inputs.files import files_below, is_directory
from webhook.inputs.items import Place, Unreadable
from webhook.policy.schema import nearest

SUFFIXES: Final = (".test.yaml", ".test.yml")
"""Suffixes of such files; one that is named on the command line may have another name."""

ModeWord = Literal["deny", "warn", "audit"]


class Expectation(Struct, frozen=True, forbid_unknown_fields=True):
    """The expected verdict; what is left out is not compared.

    `rules` names every rule that denies or warns, with its mode; those of mode `audit` may be named too.
    """

    allowed: bool
    event: str | UnsetType = UNSET
    rules: dict[str, ModeWord] | UnsetType = UNSET


class Circumstances(Struct, frozen=True, forbid_unknown_fields=True):
    """Under which policy, by whom and when a write comes: of one case, or of all in a file.

    `stamped` gives manifests without managedFields the stamps of an API server: the stored object was written at its
    renewTime, the new one at `now`.
    """

    policy: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    now: str = ""
    stamped: bool | None = None

    def or_else(self, other: "Circumstances") -> "Circumstances":
        """These, completed by others. A group belongs to the user beside it."""
        groups = self.groups if self.user or self.groups else other.groups
        is_stamped = other.stamped if self.stamped is None else self.stamped
        return Circumstances(
            self.policy or other.policy, self.user or other.user, groups, self.now or other.now, is_stamped
        )


class CaseText(Circumstances, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One case as it is written: a review, or objects; each is the path of a file, or stands there itself."""

    name: str
    review: str | Value | None = None
    old: str | Value | None = None
    new: str | Value | None = None
    expect: Expectation | None = None


class FileText(Circumstances, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A file as it is written."""

    cases: tuple[CaseText, ...]


class Case(Struct, frozen=True):
    """One case, and where it stands: file, number from 1, line; the circumstances are complete."""

    place: Place
    text: CaseText
    circumstances: Circumstances


_KEYS: Final = [field.name for struct in (FileText, CaseText, Expectation) for field in msgspec.structs.fields(struct)]


def case_files(paths: Sequence[str]) -> Iterator[tuple[Case, ...] | Unreadable]:
    """Yield the files that are named, and those below directories whose names end in SUFFIXES."""
    for path in paths:
        if not is_directory(Path(path)):
            yield _read(path)
            continue
        for found in files_below(Path(path), (".yaml", ".yml")):
            if found.error:
                yield Unreadable(Place(str(found.path), line=1, is_only=True), found.error)
            elif not found.skipped and found.path.name.endswith(SUFFIXES):
                yield _read(str(found.path))


def _read(path: str) -> tuple[Case, ...] | Unreadable:
    try:
        text = Path(path).read_bytes().decode()
        file = msgspec.convert(yaml_reader.read(text), FileText)
        lines = _lines_of_cases(text)
    except OSError as error:
        return Unreadable(Place(path, line=1, is_only=True), error.strerror or str(error))
    except UnicodeDecodeError:
        return Unreadable(Place(path, line=1, is_only=True), "not UTF-8")
    except (RecursionError, yaml.YAMLError):
        return Unreadable(Place(path, line=1, is_only=True), "nested too deeply")
    except msgspec.ValidationError as error:
        return Unreadable(Place(path, line=1, is_only=True), _problem(error))
    except ValueError as error:
        return Unreadable(Place(path, line=1, is_only=True), str(error))
    alone = len(file.cases) == 1
    return tuple(
        Case(Place(path, number, line, is_only=alone), text, text.or_else(file))
        for number, (text, line) in enumerate(zip(file.cases, lines, strict=True), 1)
    )


def _lines_of_cases(text: str) -> list[int]:
    """Return the first line of each case; the text has been read before, since PyYAML's composer bounds no nesting."""
    root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    (cases,) = (value for key, value in root.value if key.value == "cases")
    return [node.start_mark.line + 1 for node in cases.value]


def _problem(error: msgspec.ValidationError) -> str:
    problem, path = located(error)
    if unknown := UNKNOWN_FIELD.fullmatch(problem):
        problem = f"unknown key {quote(unknown[1])}{nearest(unknown[1], _KEYS)}"
    elif missing := MISSING_FIELD.fullmatch(problem):
        problem = f"{missing[1]} must be set"
    else:
        problem = reworded(problem) or problem
    return f"{path}: {problem}" if path else problem
