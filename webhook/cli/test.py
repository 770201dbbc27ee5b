"""`lease-webhook test`: compares verdicts with the expected ones in test files."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import click
import msgspec
import yaml
from msgspec import UNSET, Struct, UnsetType, to_builtins

from webhook.api.field import MISSING_FIELD, UNKNOWN_FIELD, located, reworded
from webhook.api.review import ReviewError
from webhook.api.text import escape, quote, truncate
from webhook.cli.evaluation import Evaluation, evaluate_review
from webhook.cli.manifests import Writer, review_of, stamped
from webhook.cli.options import Command, files, format_option, moment, policy_option
from webhook.cli.report import FORMATS, Printer, as_json
from webhook.cli.terminal import Failure, indent, style
from webhook.explanation.words import count
from webhook.findings import Check, Examination, Finding, Severity
from webhook.inputs import InputError, kinds, yaml_reader
from webhook.inputs.documents import Value, parsed, problem_of
from webhook.inputs.files import files_below, is_directory, submitted
from webhook.inputs.items import Foreign, Place, Unreadable
from webhook.inputs.kinds import Manifest, Review, Submitted
from webhook.policy.schema import PRESETS, nearest
from webhook.policy_file import load
from webhook.rules.rule import Mode

SUFFIXES: Final = (".test.yaml", ".test.yml")
"""Suffixes of such files; one that is named on the command line may have another name."""

_EXPECTATION: Final = Check("expectation", "A verdict must be the one that the test file expects.")

_DESCRIPTION: Final = f"""\
Evaluates the cases of test files and compares each verdict with the expected one. A PATH is a test file, or a directory
that is searched for names ending in {" or ".join(SUFFIXES)}. A case is a recorded review, or the manifest of a lease
before (old) and after (new) a write, with the user who writes, a policy and a time:

\b
  policy: strict
  stamped: true
  cases:
  - name: a live lease is not taken
    old: live.yaml
    new: taken.yaml
    now: 2026-01-31T12:00:05Z
    user: system:serviceaccount:shop:checkout
    expect:
      allowed: false
      event: steal
      rules: {{takeover-before-expiry: deny}}

`stamped` gives manifests without managedFields the stamps of an API server: the old object was written at its
renewTime, the new one at `now`. What `expect` leaves out is not compared.
"""
_EPILOG: Final = """\
Exit codes:
  0  every verdict is the expected one
  1  at least one verdict is different
  2  something could not be read, no case was found, or wrong usage

Examples:
  lease-webhook test tests/leases
  lease-webhook test tests/leases --policy policy.yaml
  lease-webhook test tests/leases --format junit > report.xml
"""

ModeWord = Literal["deny", "warn", "audit"]


class Expectation(Struct, frozen=True, forbid_unknown_fields=True):
    """The expected verdict, but for what is left out; `rules` has all that deny or warn, and may have audit ones."""

    allowed: bool
    event: str | UnsetType = UNSET
    rules: dict[str, ModeWord] | UnsetType = UNSET


class Circumstances(Struct, frozen=True, forbid_unknown_fields=True):
    """Under which policy, by whom and when a write comes: of one case, or of all in a file."""

    policy: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    now: str = ""
    stamped: bool = False


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
    """One case, completed by what its file says of all, and where it stands: file, number from 1, line."""

    place: Place
    text: CaseText


_KEYS: Final = [field.name for struct in (FileText, CaseText, Expectation) for field in msgspec.structs.fields(struct)]


@click.command("test", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, shell_complete=files)
@policy_option("a preset or a policy file instead of those that the test files name")
@click.option("--verbose", "-v", is_flag=True, help="list also the cases that pass")
@format_option("json prints one line per case", FORMATS)
def command(*, paths: tuple[str, ...], policy: str | None, verbose: bool, output: str) -> int:
    printer = Printer("test", output, _EXPECTATION)
    counts: Counter[str] = Counter()
    for file in _case_files(paths):
        outcomes = [file] if isinstance(file, Unreadable) else [_outcome_of(case, policy) for case in file]
        for outcome in outcomes:
            word = "unreadable" if isinstance(outcome, Unreadable) else outcome.word
            counts[word] += 1
            if output != "text" or word != "passed" or verbose:
                printer.print(partial(_lines, outcome), partial(_as_json, outcome), partial(_examined, outcome))
    found = ", ".join(f"{counts[word]} {word}" for word in ("failed", "unreadable", "passed") if counts[word])
    printer.finish([f"{count(counts.total(), 'case')}: {found}"] if counts else [])
    if not counts:
        raise Failure(f"no case found; test files end in {' or '.join(SUFFIXES)}")
    return 2 if counts["unreadable"] else 1 if counts["failed"] else 0


class _Outcome(Struct, frozen=True):
    """The verdict of a case with each difference from the expected one, or why there is none (`error`)."""

    case: Case
    evaluation: Evaluation | None = None
    differences: tuple[str, ...] = ()
    error: str = ""

    @property
    def word(self) -> str:
        return "unreadable" if self.error else "failed" if self.differences else "passed"


def _lines(outcome: _Outcome | Unreadable) -> Iterator[str]:
    if isinstance(outcome, Unreadable):
        yield f"{style('unreadable', fg='red')}  {escape(outcome.place.path)}"
        yield indent(escape(outcome.error), 12)
        return
    color = "green" if outcome.word == "passed" else "red"
    place = style(escape(_place_of(outcome.case)), bold=True)
    yield f"{style(outcome.word.ljust(12), fg=color)}{place}  {escape(truncate(outcome.case.text.name))}"
    for text in [*outcome.differences, *_reasons(outcome)]:
        yield indent(escape(text), 12)


def _examined(outcome: _Outcome | Unreadable) -> Examination:
    if isinstance(outcome, Unreadable):
        return Examination("", outcome.place, error=outcome.error)
    found = tuple(Finding(_EXPECTATION.id, Severity.ERROR, text) for text in outcome.differences)
    return Examination(outcome.case.text.name, outcome.case.place, found, outcome.error)


def _place_of(case: Case) -> str:
    return f"{case.place.path}:{case.place.line}"


def _reasons(outcome: _Outcome) -> list[str]:
    if outcome.error:
        return [outcome.error]
    if outcome.word == "passed" or not outcome.evaluation:
        return []
    verdict = outcome.evaluation.verdict
    return [verdict.message] if not verdict.allowed else list(verdict.warnings)


def _as_json(outcome: _Outcome | Unreadable) -> dict[str, Any]:
    if isinstance(outcome, Unreadable):
        return as_json(outcome)
    head = {"source": _place_of(outcome.case), "name": outcome.case.text.name}
    if not outcome.evaluation:
        return {**head, "error": outcome.error}
    return {
        **head,
        "passed": outcome.word == "passed",
        "expected": to_builtins(outcome.case.text.expect),
        "actual": to_builtins(_actual(outcome.evaluation)),
        "differences": list(outcome.differences),
    }


def _outcome_of(case: Case, policy: str | None) -> _Outcome:
    try:
        evaluation = _evaluate(case, policy)
    except (Failure, InputError, ReviewError, ValueError) as error:
        return _Outcome(case, error=str(error))
    return _Outcome(case, evaluation, tuple(_differences(case.text.expect, evaluation)))


def _actual(evaluation: Evaluation) -> Expectation:
    """Return the verdict as a file expects it: with every rule that denies or warns."""
    modes = {rule: mode for rule, mode in _modes(evaluation).items() if mode in ("deny", "warn")}
    return Expectation(evaluation.verdict.allowed, evaluation.verdict.event or UNSET, modes)  # type: ignore[arg-type]  # a Literal is not narrowed by `in`


def _evaluate(case: Case, policy: str | None) -> Evaluation:
    text = case.text
    folder = Path(case.place.path).parent
    name = policy or text.policy or None
    if name and not policy and name not in PRESETS:
        name = str(folder / name)
    now = moment(text.now) if text.now else None
    if text.review is not None:
        if text.old is not None or text.new is not None:
            raise Failure("a case has a review, or old and new")
        return evaluate_review(case.place, _review(text.review, folder), load(name), now)
    if text.new is None and text.old is None:
        raise Failure("a case needs a review, or new, or old, or both")
    if text.groups and not text.user:
        raise Failure("groups need a user: a group alone writes nothing")
    writer = Writer(text.user, text.groups) if text.user else None
    new, old = (None if one is None else _object(one, folder) for one in (text.new, text.old))
    if text.stamped:
        new, old = new and stamped(new, now), old and stamped(old)
    body = review_of(new, old, writer)
    return evaluate_review(case.place, body, load(name), now, writer_known=writer is not None)


def _object(given: str | Value, folder: Path) -> Value:
    item = _only(given, folder)
    if not isinstance(item, Manifest):
        raise Failure(f"{_shown(given)}: not a Lease or LeaseCandidate")
    return item.document


def _review(given: str | Value, folder: Path) -> bytes:
    item = _only(given, folder)
    if not isinstance(item, Review):
        raise Failure(f"{_shown(given)}: not an AdmissionReview")
    return item.body


def _only(given: str | Value, folder: Path) -> Submitted:
    """Return the one document of a file, or the one that is written in the case."""
    if not isinstance(given, str):
        item = kinds.submitted(parsed(Place("the object in the case"), given))
        if isinstance(item, Unreadable):
            raise Failure(item.error)
        return item
    items = [item for item in submitted([str(folder / given)]) if not isinstance(item, Foreign)]
    if len(items) != 1:
        raise Failure(f"{given}: one object is needed, {len(items)} found")
    if isinstance(items[0], Unreadable):
        raise Failure(f"{given}: {items[0].error}")
    return items[0]


def _differences(expected: Expectation | None, evaluation: Evaluation) -> list[str]:
    if expected is None:
        return ["nothing is expected"]
    verdict = evaluation.verdict
    found = []
    if expected.allowed is not verdict.allowed:
        found.append(f"allowed: expected {json.dumps(expected.allowed)}, got {json.dumps(verdict.allowed)}")
    if expected.event is not UNSET and expected.event != verdict.event:
        found.append(f"event: expected {expected.event or 'none'}, got {verdict.event or 'none'}")
    if expected.rules is not UNSET:
        got = _modes(evaluation)
        for rule, mode in expected.rules.items():
            if got.get(rule) != mode:
                found.append(f"rules: {rule}: expected {mode}, got {got.get(rule, 'nothing')}")
        found += [
            f"rules: {rule}: expected nothing, got {mode}"
            for rule, mode in got.items()
            if rule not in expected.rules and mode != Mode.AUDIT.word
        ]
    return found


def _modes(evaluation: Evaluation) -> dict[str, str]:
    modes: dict[str, Mode] = {}
    for finding in evaluation.verdict.findings:
        modes[finding.rule] = max(finding.mode, modes.get(finding.rule, Mode.OFF))
    return {rule: mode.word for rule, mode in modes.items() if mode is not Mode.OFF}


def _shown(given: str | Value) -> str:
    return given if isinstance(given, str) else "the object in the case"


def _case_files(paths: Sequence[str]) -> Iterator[tuple[Case, ...] | Unreadable]:
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
        file = yaml_reader.read(text)
        msgspec.convert(file, FileText)
        cases = [msgspec.convert(_completed(case, file), CaseText) for case in file["cases"]]
        # The text has been read before, since PyYAML's composer bounds no nesting.
        root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    except OSError as error:
        problem = error.strerror or str(error)
    except msgspec.ValidationError as error:
        problem = _problem(error)
    except yaml.YAMLError:
        problem = "nested too deeply"
    except (ValueError, RecursionError) as error:
        problem = problem_of(error)
    else:
        (nodes,) = (value.value for key, value in root.value if key.value == "cases")
        lines = [node.start_mark.line + 1 for node in nodes]
        places = [Place(path, number, line, is_only=len(cases) == 1) for number, line in enumerate(lines, 1)]
        return tuple(map(Case, places, cases))
    return Unreadable(Place(path, line=1, is_only=True), problem)


def _completed(case: Value, file: Value) -> Value:
    """Return a case with what its file says of all cases. A group belongs to the user beside it."""
    common = {key: value for key, value in file.items() if key != "cases" and not (key == "groups" and "user" in case)}
    return common | case


def _problem(error: msgspec.ValidationError) -> str:
    problem, path = located(error)
    if unknown := UNKNOWN_FIELD.fullmatch(problem):
        problem = f"unknown key {quote(unknown[1])}{nearest(unknown[1], _KEYS)}"
    elif missing := MISSING_FIELD.fullmatch(problem):
        problem = f"{missing[1]} must be set"
    else:
        problem = reworded(problem) or problem
    return f"{path}: {problem}" if path else problem
