"""Has the commands read an input of a history, and evaluates every claim that they make against the truth."""

import contextlib
import io
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from msgspec import Struct

from tests.truth.facts import Claim, Facts
from tests.truth.inputs import POLICY, Input
from tests.truth.predicates import PREDICATES, UNCHECKED
from tests.truth.records import History
from tests.truth.shown import Reading, Shown, shown_by_rows, shown_by_timeline
from tests.truth.shown_predicates import SHOWN
from tests.truth.stage import MILLISECOND
from webhook.analysis.inputs.cluster import Cluster
from webhook.analysis.inputs.items import Item
from webhook.cli import audit, reading, why
from webhook.cli.terminal import Failure
from webhook.kubernetes.times import format_micro_time, parse

CLAIMING: Final = ("why", "audit")
SHOWING: Final = ("timeline", "rows")
COMMANDS: Final = (*CLAIMING, *SHOWING)
"""`rows` are those of the tables of `why` and `top`, and what the recorder exposes of each lease."""
_SHOWN: Final[dict[str, Callable[[Reading], Iterator[Shown]]]] = {
    "timeline": shown_by_timeline,
    "rows": shown_by_rows,
}
CRASH: Final = "crash"
"""What counts as false when a command fails on an input that it must read."""


class Evaluated(Struct, frozen=True):
    """A claim of a command about a lease: `is_true` is None where no predicate says what it means."""

    command: str
    lease: str
    claim: dict[str, Any]
    is_true: bool | None
    problem: str = ""

    @property
    def id(self) -> str:
        """The kind of the claim."""
        return str(self.claim.get("claim", "?"))


def evaluate(
    history: History, given: Input, commands: Sequence[str] = COMMANDS, without: Sequence[str] = ()
) -> Iterator[Evaluated]:
    """Yield every claim that the commands make of every lease, with its truth; `without` these arguments."""
    with tempfile.TemporaryDirectory() as folder:
        paths, items = _write_inputs(Path(folder), given), _ItemsReadOnce()
        read = cache(partial(_read, given, paths, items))
        for command in commands:
            if command in _SHOWN:
                yield from _shown_by(command, history, given, read)
            else:
                yield from _claims_of(command, history, given, partial(run, command, given, paths, items), without)


class _ItemsReadOnce:
    """Reads the files of an input for the first command; the others take the same items, which nothing changes."""

    def __init__(self) -> None:
        self._read = reading.read_for_history
        self._known: dict[tuple[tuple[str, ...], str | None], list[Item]] = {}

    def __call__(
        self, paths: Sequence[str], cluster: Cluster | None = None, policy: str | None = None, **options: Any
    ) -> Iterator[Item]:
        key = tuple(paths), policy
        if key not in self._known:
            self._known[key] = list(self._read(paths, cluster, policy, **options))
        return iter(self._known[key])


def _claims_of(
    command: str,
    history: History,
    given: Input,
    run_command: Callable[[], list[dict[str, Any]]],
    without: Sequence[str],
) -> Iterator[Evaluated]:
    everything: dict[str, tuple[Facts, ...]] = {}
    try:
        answers = run_command()
    except Exception as error:  # noqa: BLE001 - whatever ends a command is reported as false
        yield Evaluated(command, "", {"claim": CRASH, "text": f"{type(error).__name__}: {error}"}, False)
        return
    for answer in answers:
        lease = f"{answer.get('namespace')}/{answer.get('name')}"
        claims = answer.get("claims", [answer] if "claim" in answer else [])
        evaluated_at = answer.get("now") or (None if given.now is None else format_micro_time(given.now))
        if lease not in everything:
            key = (str(answer.get("namespace")), str(answer.get("name")))
            everything[lease] = _ends(history, key, given, evaluated_at or "")
        facts = everything[lease]
        for claim in claims:
            yield _evaluate(command, lease, {key: one for key, one in claim.items() if key not in without}, facts)


def _read(given: Input, paths: Sequence[str], items: _ItemsReadOnce) -> Reading:
    with contextlib.redirect_stderr(io.StringIO()), patch.object(reading, "read_for_history", items):
        return Reading(given, paths)


def _shown_by(command: str, history: History, given: Input, read: Callable[[], Reading]) -> Iterator[Evaluated]:
    try:
        claims = list(_SHOWN[command](read()))
        at = format_micro_time(read().as_of.at)
    except Exception as error:  # noqa: BLE001 - whatever ends a command is reported as false
        yield Evaluated(command, "", {"claim": CRASH, "text": f"{type(error).__name__}: {error}"}, False)
        return
    everything: dict[tuple[str, str], tuple[Facts, ...]] = {}
    for key, claim in claims:
        if key not in everything:
            # What is shown is as of a moment, which may be before the last write that nothing dates.
            standing = Facts(history, *key, _true_time(history, at))
            everything[key] = (*_ends(history, key, given, at), standing)
        yield _evaluate(command, "/".join(key), claim, everything[key])


def shown_in(history: History, given: Input) -> Iterator[tuple[dict[str, Any], Facts]]:
    """Yield everything that is shown beside claims, with the facts of its lease at the moment of evaluation."""
    with tempfile.TemporaryDirectory() as folder:
        read = _read(given, _write_inputs(Path(folder), given), _ItemsReadOnce())
        now = max(given.last, _true_time(history, format_micro_time(read.as_of.at)))
        facts_of = cache(partial(Facts, history, now=now))
        for command in SHOWING:
            yield from ((shown, facts_of(*key)) for key, shown in _SHOWN[command](read))


def _ends(history: History, key: tuple[str, str], given: Input, evaluated_at: str) -> tuple[Facts, ...]:
    """Return the truth of a lease: by clocks that differ, the end may be any moment from the last record on."""
    now = max(given.last, _true_time(history, evaluated_at) if evaluated_at else 0)
    return Facts(history, *key, now), Facts(history, *key, given.last, given.last)


def claims_in(history: History, given: Input, command: str = "why") -> Iterator[tuple[dict[str, Any], Facts]]:
    """Yield every claim of a command with the facts of its lease."""
    with tempfile.TemporaryDirectory() as folder:
        for answer in run(command, given, _write_inputs(Path(folder), given), _ItemsReadOnce()):
            now = max(given.last, _true_time(history, answer["now"]))
            facts = Facts(history, answer["namespace"], answer["name"], now)
            yield from ((claim, facts) for claim in answer["claims"])


def _evaluate(command: str, lease: str, claim: Claim, ends: Sequence[Facts]) -> Evaluated:
    predicate = PREDICATES.get(claim["claim"]) or SHOWN.get(claim["claim"])
    if predicate is None:
        return Evaluated(command, lease, dict(claim), True if claim["claim"] in UNCHECKED else None)
    try:
        return Evaluated(command, lease, dict(claim), any(predicate(facts, claim) for facts in ends))
    except (KeyError, TypeError, ValueError) as error:
        return Evaluated(command, lease, dict(claim), None, f"{type(error).__name__}: {error}")


def _true_time(history: History, text: str) -> int:
    """Return the true time of the moment at which an input was evaluated."""
    offsets = [offset * MILLISECOND for offset in history.plan.offsets]
    return parse(text) - min(offsets)


def run(command: str, given: Input, paths: Sequence[str], items: _ItemsReadOnce) -> list[dict[str, Any]]:
    """Return the JSON that a command prints of the items of some files."""
    arguments = ["--format", "json"]
    for path in paths:
        arguments += ["--policy" if path.endswith("policy.yaml") else "--input", path]
    if given.now is not None:
        arguments += ["--now", format_micro_time(given.now)]
    program = why.command if command == "why" else audit.command
    out, err = io.StringIO(), io.StringIO()
    read_items = patch.object(reading, "read_for_history", items)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), read_items:
        try:
            program.main(arguments, prog_name=command, standalone_mode=False)
        except Failure as failure:
            if not str(failure).startswith("no lease"):
                raise
    return [json.loads(line) for line in out.getvalue().splitlines() if line.startswith("{")]


def _write_inputs(folder: Path, given: Input) -> list[str]:
    for name, data in given.files.items():
        (folder / name).write_bytes(data)
    paths = [str(folder / name) for name in given.files]
    if given.has_policy:
        (folder / "policy.yaml").write_text(POLICY)
        paths.append(str(folder / "policy.yaml"))
    return paths
