"""`lease-webhook check`: evaluates manifests, reviews and histories as the webhook would, by one policy or two.

What is evaluated, and in which forms it is printed, is in `webhook.cli.checking`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import click
from msgspec import Struct

from webhook.admission.policy.file import load
from webhook.admission.rules.mode import Mode
from webhook.analysis.claims.words import format_count
from webhook.analysis.history.audit_log.observed_requests import Writes
from webhook.analysis.inputs.cluster import Cluster
from webhook.analysis.inputs.files import CaptureIndex, read_for_check
from webhook.analysis.inputs.items import STANDARD_INPUT, Unreadable
from webhook.cli.checking.evaluation import DocumentOutcome, Evaluation, Evaluator
from webhook.cli.checking.expectations import Comparison, read_expectations, write_expectations
from webhook.cli.checking.manifests import make_user_info
from webhook.cli.checking.printer import FORMATS, Printer
from webhook.cli.checking.text import (
    CHANGES,
    Counts,
    Tally,
    describe_change,
    find_rules_and_modes,
    format_counts,
    format_outcome,
    make_evaluation_json,
)
from webhook.cli.options import Command, complete_files, format_option, parse_moment, policy_option
from webhook.cli.progress import Progress
from webhook.cli.reading import (
    MAX_NAMED,
    cluster_options,
    format_skipped,
    read_for_history,
    refuse_kubectl_options,
    refuse_repeated_standard_input,
    widen_to_all_namespaces,
)
from webhook.cli.terminal import Failure, encode_line, print_message, style, wrap_on_terminal
from webhook.text.quoting import escape

_UNREADABLE: Final = 2
_FAILED: Final = 1
_LEVELS: Final = {"deny": Mode.DENY, "warn": Mode.WARN, "never": None}
"""The least severe outcome that is a failure, by the value of --fail-on."""

_DESCRIPTION = """\
Evaluates its input as the webhook would, before a webhook is installed or a policy is changed. A PATH is a file, a
directory or - for standard input, and contains manifests of Leases and LeaseCandidates, an audit log at level
RequestResponse, a watch, or AdmissionReviews that were captured. Other kinds are skipped and counted. Without a PATH,
kubectl lists the leases of the cluster, with your own credentials.

A manifest is evaluated as a creation, or as an update of the object of its name in --old, which compares whole
objects: a field that the manifest leaves out counts as removed. Without a namespace it goes to "default". Rules
about the writer are evaluated only with --user.

Each write of a log, of a watch or in a captured review is evaluated at its own moment, against what was stored before
it; it is counted instead where the input does not show that. Text shows what is denied or warned about; with
--against, what the second policy would change.
"""

_EPILOG = """\
Exit codes:
  0  nothing is denied (with --against: nothing newly denied)
  1  something is denied, or as --fail-on says (with --against: newly denied)
  2  something could not be read, too little found (--require), or wrong usage

Examples:
  lease-webhook check lease.yaml
  lease-webhook check --ignore charts --format sarif --fail-on warn deploy
  lease-webhook check --old live.yaml --user system:node:worker-1 lease.yaml
  lease-webhook check --policy strict --all-logs /var/log/kubernetes/audit/*.log
  lease-webhook check --policy standard --against strict captured
  lease-webhook check --policy policy.yaml captured \\
    --expect captured/expected.jsonl
  kubectl lease check --policy strict
"""

_OLD = "what is stored now; bare manifests are evaluated as updates of it"
_IGNORE = "leave out what matches by name or path below a directory, never a PATH itself; may be repeated"
_SKIP = "skip files that are not Kubernetes objects even if they are named, for a list of changed files"
_NOW = "evaluate manifests at this time; else at the latest time in managedFields, else now"
_ALL_LOGS = "the audit logs are those of all API servers, whole: evaluate patches and deletions in them too"
_REQUIRE = "fail if fewer than N are evaluated; 1 unless given, 0 with --skip-foreign"
_UNKNOWN = "not evaluated, as the input does not show what they changed: {}; docs/check.md says what does"
_NOT_WHOLE = "; if these are the whole audit logs of all API servers, --all-logs evaluates more"
_FAIL_ON = "what ends with exit code 1; with --against, what is newly so"
_EXPECT = "compare outcomes with this file, and fail if one differs; docs/check-in-ci.md"
_WRITE_EXPECTED = "write such a file for the first time"
_ANNOTATIONS = "also write what --format github prints to this file"
_FORMAT = "json: a line per document; junit, sarif: a document; github: annotations"
_ALLOWED = "list what is allowed, too"
_NO_WRITER = "rules about the writer were not evaluated: --user NAME says who writes the manifests"
_CREATED = "--old has no {}: it was evaluated as a creation"
_MORE_CREATED = "--old lacks {} more, evaluated as creations"
_OF_A_CLUSTER = (
    "only creations were evaluated: what kubectl lists was evaluated as if it were being created; an audit log shows "
    "what writers do (--all-logs)"
)


@click.command("check", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("paths", metavar="[PATH]...", nargs=-1, shell_complete=complete_files)
@click.option("--old", metavar="PATH", help=_OLD, shell_complete=complete_files)
@click.option("--ignore", metavar="GLOB", multiple=True, help=_IGNORE)
@click.option("--skip-foreign", is_flag=True, help=_SKIP)
@click.option("--require", metavar="N", type=click.IntRange(0), help=_REQUIRE)
@policy_option("observe, standard (default), strict, or a policy file")
@policy_option("the policy to compare with: show what it would change", "--against")
@click.option("--all-logs", is_flag=True, help=_ALL_LOGS)
@click.option("--user", metavar="NAME", help="who writes the bare manifests")
@click.option("--group", "groups", metavar="G", multiple=True, help="a group of --user; may be repeated")
@click.option("--now", type=parse_moment, metavar="RFC3339", help=_NOW)
@click.option("--expect", metavar="FILE", help=_EXPECT, shell_complete=complete_files)
@click.option("--write-expected", metavar="FILE", help=_WRITE_EXPECTED, shell_complete=complete_files)
@click.option("--fail-on", type=click.Choice(tuple(_LEVELS)), default="deny", show_default=True, help=_FAIL_ON)
@click.option("--show-allowed", is_flag=True, help=_ALLOWED)
@cluster_options
@format_option(_FORMAT, FORMATS)
@click.option("--annotations", metavar="FILE", help=_ANNOTATIONS, shell_complete=complete_files)
def command(**given: Any) -> int:  # noqa: ANN401 - each option has a parameter of its name in _Options
    options = _Options(**given)
    options.refuse_contradictions()
    progress = Progress()
    run = _read(options, progress)
    code, evaluated = _choose_mode(options)(run)
    _print_notes(run, evaluated)
    if code != _UNREADABLE and not progress.is_stopped:
        _require(evaluated, options.least)
    return progress.exit_code(code)


class _Options(Struct, frozen=True, kw_only=True):
    """The command line."""

    paths: tuple[str, ...]
    old: str | None
    ignore: tuple[str, ...]
    skip_foreign: bool
    require: int | None
    policy: str | None
    against: str | None
    all_logs: bool
    user: str | None
    groups: tuple[str, ...]
    now: int | None
    expect: str | None
    write_expected: str | None
    fail_on: str
    show_allowed: bool
    cluster: Cluster
    output: str
    annotations: str | None

    def refuse_contradictions(self) -> None:
        """Raise Failure, or UsageError, for arguments that exclude each other, or need others."""
        refuse_repeated_standard_input([*self.paths, self.old])
        if self.groups and not self.user:
            raise Failure("--group needs --user: a group alone writes nothing")
        if self.paths and self.cluster.namespace:
            raise Failure("--namespace is for the cluster: what a PATH has is evaluated whole")
        if self.paths:
            refuse_kubectl_options(self.cluster, "a PATH")
        given = {"--expect": self.expect, "--write-expected": self.write_expected, "--against": self.against}
        named = [name for name, value in given.items() if value is not None]
        if len(named) > 1:
            raise Failure(f"{' and '.join(named)} exclude each other")
        if named and (self.annotations or self.output not in {"text", "json"}):
            raise Failure(f"{named[0]} prints text or json only")

    @property
    def left_out(self) -> tuple[str, ...]:
        """What is not read below a directory; a file of expectations may be in the directory that it is about."""
        return (*self.ignore, *(Path(one).name for one in (self.expect, self.write_expected) if one))

    @property
    def fails_on(self) -> Mode | None:
        """The least severe outcome that is a failure; None if none is."""
        return _LEVELS[self.fail_on]

    @property
    def least(self) -> int:
        """How many documents must be evaluated."""
        return (0 if self.skip_foreign else 1) if self.require is None else self.require


class _Run(Struct, frozen=True):
    """What is evaluated, by policies of these `names`."""

    options: _Options
    names: Sequence[str]
    evaluator: Evaluator
    outcomes: Iterator[list[DocumentOutcome]]


def _read(options: _Options, progress: Progress) -> _Run:
    """Return the outcomes of all that is read, by each policy, which are evaluated once they are asked for."""
    first = load(options.policy)
    policies, names = [first], [options.policy or first.preset]
    if options.against is not None:
        policies, names = [first, load(options.against)], [*names, options.against]
    received = CaptureIndex([path for path in options.paths if path != STANDARD_INPUT])
    # A recording has an index, so every file in it is evaluated.
    items = read_for_check(
        options.paths,
        options.left_out,
        skip_found=not received.moments,
        skip_named=options.skip_foreign,
        meter=progress.meter,
    )
    instead = "" if options.old == STANDARD_INPUT else "the argument -"
    cluster = widen_to_all_namespaces(options.cluster)
    history = None if options.paths else read_for_history((), cluster, instead=instead)
    user = make_user_info(options.user, options.groups) if options.user else None
    evaluator = Evaluator(policies, received, options.now, user, Writes(options.all_logs))
    outcomes = progress.track_reading(evaluator.evaluate_all(items, options.old, history))
    return _Run(options, names, evaluator, outcomes)


def _choose_mode(options: _Options) -> Callable[[_Run], tuple[int, int]]:
    """Return what prints the outcomes, and returns the exit code and the number of documents that were evaluated."""
    if options.write_expected:
        return _write
    if options.expect:
        return _expect
    return _show if options.against is None else _compare


def _print_notes(run: _Run, evaluated: int) -> None:
    """Print what the input does not show."""
    options, writes = run.options, run.evaluator.writes
    if not options.paths and options.output == "text" and evaluated:
        # Beside the counts, which would otherwise be kept without it.
        print(wrap_on_terminal(_OF_A_CLUSTER, 2))
    creations = [*run.evaluator.creations]
    for kind, namespace, name in creations[:MAX_NAMED]:
        print_message(_CREATED.format(f"{kind} {namespace}/{name}"))
    if len(creations) > MAX_NAMED:
        print_message(_MORE_CREATED.format(len(creations) - MAX_NAMED))
    if options.output == "text" and run.evaluator.is_writer_missing:
        print_message(_NO_WRITER)
    if unknown := writes.unknown:
        print_message(_UNKNOWN.format(format_count(unknown, "write")) + ("" if options.all_logs else _NOT_WHOLE))


def _require(evaluated: int, least: int) -> None:
    """Raise Failure for a run that evaluated too little, which a wrong path causes."""
    if evaluated < least:
        raise Failure(f"{evaluated} evaluated, and at least {least} must be: --require {evaluated} lets that pass")


def _show(run: _Run) -> tuple[int, int]:
    """Print what one policy says."""
    options, rules = run.options, Counts()
    with Path(options.annotations).open("w") if options.annotations else nullcontext() as file:
        printer = Printer(options.output, options.fails_on, show_allowed=options.show_allowed, annotations=file)
        for (outcome,) in run.outcomes:
            printer.add(outcome)
            if isinstance(outcome, Evaluation) and outcome.is_past:
                rules.update(find_rules_and_modes(outcome))
        printer.finish(format_counts([(run.names[0], rules)]), run.evaluator.writes.unknown)
    tally, least = printer.tally, options.fails_on
    has_failed = least is not None and any(tally.levels[level] for level in Mode if level >= least)
    return _exit_code(tally, has_failed=has_failed), tally.levels.total()


def _exit_code(tally: Tally, *, has_failed: bool) -> int:
    if tally.unreadable:
        return _UNREADABLE
    return _FAILED if has_failed else 0


def _write(run: _Run) -> tuple[int, int]:
    """Write what is to be expected from now on, unless something is unreadable."""
    path = run.options.write_expected
    assert path is not None
    if Path(path).exists():
        raise Failure(f"{path} exists: edit the lines that differ, or remove it first")
    comparison, tally = Comparison(path, {}), Tally()
    for (outcome,) in run.outcomes:
        tally.count(outcome)
        if isinstance(outcome, Evaluation):
            comparison.compare(outcome)
        else:
            _print(outcome, "text")
    if tally.unreadable:
        raise Failure(f"{path} is not written: {tally.unreadable} unreadable")
    if comparison.seen:
        written = write_expectations(path, comparison.seen.values())
        print(f"{path}: {format_count(written, 'line')} written: read them before you keep them")
    return 0, tally.levels.total()


def _expect(run: _Run) -> tuple[int, int]:
    """Print what differs from a file of expectations."""
    path, output = run.options.expect, run.options.output
    assert path is not None
    comparison, tally = Comparison(path, read_expectations(path)), Tally()
    for (outcome,) in run.outcomes:
        tally.count(outcome)
        if not isinstance(outcome, Evaluation):
            _print(outcome, output)
            continue
        different = comparison.compare(outcome)
        if output == "json":
            print(encode_line({**make_evaluation_json(outcome), "differences": different}))
        elif different:
            print("\n".join(format_outcome(outcome, "differs", different)))
    for review in comparison.missing:
        if output == "json":
            print(encode_line({"review": review, "differences": ["it was not evaluated"]}))
        else:
            print(f"{style('missing'.ljust(11), fg='red')}{escape(review)}\n           it was not evaluated")
    unexpected = comparison.unexpected + len(comparison.missing)
    if output == "text":
        summary = f"{tally.levels.total() - comparison.unexpected} as expected"
        summary += f", {unexpected} not" if unexpected else ""
        print(f"{summary}; {format_skipped(tally.skipped)}" if tally.skipped else summary)
    return _exit_code(tally, has_failed=unexpected > 0), tally.levels.total()


def _compare(run: _Run) -> tuple[int, int]:
    """Print what the second policy would change."""
    names, output, writes = run.names, run.options.output, run.evaluator.writes
    tally, changes = Tally(), Counter[str]()
    counts = (Counts(), Counts())
    for before, after in run.outcomes:
        tally.count(before)
        if not isinstance(before, Evaluation) or not isinstance(after, Evaluation):
            _print(before, output)
            continue
        changed = describe_change(before, after)
        changes[changed] += 1
        for counter, outcome in zip(counts, (before, after), strict=True):
            counter.update(find_rules_and_modes(outcome))
        if output == "json":
            print(
                encode_line({**make_evaluation_json(before), "against": make_evaluation_json(after), "change": changed})
            )
        elif changed:
            _print(after, output, changed)
    summary = ", ".join(f"{changes[change]} {change}" for change in CHANGES if changes[change])
    total = f"{format_count(changes.total(), 'write')}, {names[0]} against {names[1]}: {summary or 'no change'}"
    total += f"; {writes.unknown} not evaluated" if writes.unknown else ""
    if output == "text":
        print("\n".join([*format_counts(list(zip(names, counts, strict=True))), total]))
    elif tally.skipped:
        print_message(format_skipped(tally.skipped))
    failures = {Mode.DENY: CHANGES[:1], Mode.WARN: CHANGES[:2], None: ()}[run.options.fails_on]
    has_failed = any(changes[one] for one in failures)
    return _exit_code(tally, has_failed=has_failed), changes.total()


def _print(outcome: DocumentOutcome, output: str, label: str = "") -> None:
    if isinstance(outcome, Evaluation | Unreadable):
        print(
            "\n".join(
                [encode_line(make_evaluation_json(outcome))] if output == "json" else format_outcome(outcome, label)
            )
        )
