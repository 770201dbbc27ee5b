"""Expected outcomes of documents: a file of JSON lines says them, and what differs is named.

A line is `{"review": "steal.json", "verdict": "denied", "code": 403, "rules": ["takeover-before-expiry=deny"]}`. The
path is relative to the file of expectations, with `#2` for the second document of a file that has several. `why` is for
people.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct, field

from webhook.admission.rules.mode import Mode
from webhook.admission.verdict import Outcome, Verdict
from webhook.analysis.inputs.items import Place
from webhook.cli.checking.evaluation import Evaluation
from webhook.cli.terminal import Failure
from webhook.text.quoting import quote, truncate

MAX_FILE: Final = 64 * 1024 * 1024
"""Bytes of a file of expectations."""


class Expectation(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The expected outcome of one document; `rules` are `RULE=MODE`, those in mode audit too, in any order."""

    review: Annotated[str, Meta(min_length=1)]
    verdict: Outcome
    code: int
    rules: tuple[str, ...]
    why: str = ""


def make_expectation(review: str, verdict: Verdict, word: Outcome) -> Expectation:
    """Return what an evaluation shows, as it would be expected the next time; `word` is the one for its outcome."""
    rules = {f"{one.rule}={one.mode.word}" for one in verdict.findings if one.mode is not Mode.OFF}
    return Expectation(review, word, verdict.code, tuple(sorted(rules)))


def find_differences(expected: Expectation, found: Expectation) -> Iterator[str]:
    """Yield what of an outcome is not as expected, in one line each."""
    if expected.verdict != found.verdict:
        yield f"verdict: expected {expected.verdict}, is {found.verdict}"
    if expected.code != found.code:
        yield f"code: expected {expected.code}, is {found.code}"
    for rule in sorted({*expected.rules} - {*found.rules}):
        yield f"rules: expected {rule}, which is missing"
    for rule in sorted({*found.rules} - {*expected.rules}):
        yield f"rules: {rule} is not expected"


def read_expectations(path: str) -> dict[str, Expectation]:
    """Return the expectations of a file by review. Raises Failure with the line that is wrong."""
    found: dict[str, Expectation] = {}
    for number, line in enumerate(_read_content(path).split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            expectation = _decoder.decode(line)
        except RecursionError:
            raise Failure(f"{path}: line {number}: nested too deeply") from None
        except ValueError as error:
            raise Failure(f"{path}: line {number}: {error}") from None
        if expectation.review in found:
            raise Failure(f"{path}: line {number}: {quote(truncate(expectation.review))} has a line already")
        found[expectation.review] = expectation
    return found


def _read_content(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_FILE + 1)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    if len(content) > MAX_FILE:
        raise Failure(f"{path}: more than {MAX_FILE // 1024**2} MiB")
    return content


def write_expectations(path: str, found: Iterable[Expectation]) -> int:
    """Write a file that does not exist yet, a line for each, and return their number. Raises Failure."""
    lines = [msgspec.json.encode(one) + b"\n" for one in found]
    try:
        with Path(path).open("xb") as file:
            file.writelines(lines)
    except FileExistsError:
        raise Failure(f"{path} exists: edit the lines that differ, or remove it first") from None
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    return len(lines)


def name_review(place: Place, expectations: str) -> str:
    """Return how a file of expectations names a document."""
    path = Path(os.path.relpath(place.path, Path(expectations).parent)).as_posix()
    return path if place.is_only else f"{path}#{place.document}"


class Comparison(Struct):
    """Compares one evaluation after another with what the file at a path expects of it.

    `seen` are the outcomes by review, `unexpected` the number of those that differ.
    """

    path: str
    expected: Mapping[str, Expectation]
    seen: dict[str, Expectation] = field(default_factory=dict)
    unexpected: int = 0

    def compare(self, evaluation: Evaluation) -> list[str]:
        """Return what differs, including each document without a line."""
        review = name_review(evaluation.place, self.path)
        found = make_expectation(review, evaluation.verdict, evaluation.word)
        self.seen[review] = found
        expected = self.expected.get(review)
        different = (
            [f"no line expects it: {found.verdict}"] if expected is None else [*find_differences(expected, found)]
        )
        if different:
            self.unexpected += 1
        return different

    @property
    def missing(self) -> list[str]:
        """The reviews that have a line and were not evaluated."""
        return [review for review in self.expected if review not in self.seen]


_decoder: Final = msgspec.json.Decoder(Expectation)
