"""`lease-webhook check`: evaluates manifests, reviews and histories as the webhook would, by one policy or two."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import click
from msgspec import Struct
from msgspec.structs import replace

from webhook.api.review import ReviewError
from webhook.cli.evaluation import Evaluation, Key, Writer, evaluate_request, evaluate_review, key_of, review_of
from webhook.cli.options import Command, files, format_option, moment, policy_option
from webhook.cli.reading import cluster_options, everywhere, observed
from webhook.cli.report import DENIED, UNREADABLE, WORDS, Outcome, Tally, as_json, finish, show
from webhook.cli.terminal import Failure, json_line, print_message, table
from webhook.explanation.words import count
from webhook.history.merge import Merged
from webhook.history.writes import Writes
from webhook.inputs.cluster import Cluster
from webhook.inputs.documents import Value
from webhook.inputs.files import Received, submitted
from webhook.inputs.items import STANDARD_INPUT, Foreign, Input, Item, Observation, Unreadable
from webhook.inputs.kinds import Manifest, Review, Submitted
from webhook.policy.model import Policy
from webhook.policy_file import load
from webhook.rules.expiry import BOUND
from webhook.rules.rule import Mode

Counts = Counter[tuple[str, Mode]]
"""The number of documents with a finding of each rule, by mode."""

_DESCRIPTION = """\
Evaluates what it is given as the webhook would, before a webhook is installed or a policy changed. A PATH is a file, a
directory or - for standard input, and contains manifests of Leases and LeaseCandidates, an audit log at level
RequestResponse, a watch, or AdmissionReviews that were captured. Other kinds are skipped and counted. Without a PATH,
kubectl lists the leases of the cluster, with your own credentials.

A manifest is evaluated as a creation, or as an update of the object of its name in --old, which compares whole
objects: a field that the manifest leaves out counts as removed. Without a namespace it goes to "default". Rules
about the writer are evaluated only with --user.

Each write of a log, a watch or a recording is evaluated at its own moment, against what was stored before it; it is
counted instead where the input does not show that. Of these, text shows what is denied or warned about; with --against,
what the second policy would change.
"""

_EPILOG = """\
Exit codes:
  0  nothing is denied (with --against: nothing newly denied)
  1  something is denied (with --against: newly denied)
  2  something could not be read, too little found (--require), or wrong usage

Examples:
  lease-webhook check lease.yaml
  lease-webhook check --ignore charts deploy
  lease-webhook check --old live.yaml --user system:node:worker-1 lease.yaml
  lease-webhook check --policy strict --all-logs /var/log/kubernetes/audit/*.log
  lease-webhook check --policy standard --against strict captured
  kubectl lease check --policy strict
"""

_OLD = "what is stored now; bare manifests are evaluated as updates of it"
_IGNORE = "leave out what matches, by name or by path below a directory; may be repeated"
_SKIP = "skip files that are not Kubernetes objects even if they are named, for a list of changed files"
_NOW = "evaluate manifests at this time; else at the latest time in managedFields, else now"
_ALL_LOGS = "the audit logs are those of all API servers, whole: evaluate patches and deletions in them too"
_REQUIRE = "fail if fewer than N are evaluated; 1 unless given, 0 with --skip-foreign"
_UNKNOWN = "not evaluated, as the input does not show what they changed: {}; docs/check.md says what does"
_NOT_WHOLE = "; if these are the whole audit logs of all API servers, --all-logs evaluates more"
_CHANGES = ("newly denied", "newly warned", "no longer denied", "no longer warned", "other rules")
"""The changes that another policy makes to the outcome of a write, the worst first."""


@click.command("check", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("paths", metavar="[PATH]...", nargs=-1, shell_complete=files)
@click.option("--old", metavar="PATH", help=_OLD, shell_complete=files)
@click.option("--ignore", metavar="GLOB", multiple=True, help=_IGNORE)
@click.option("--skip-foreign", is_flag=True, help=_SKIP)
@click.option("--require", metavar="N", type=click.IntRange(0), help=_REQUIRE)
@policy_option("observe, standard (default), strict, or a policy file")
@policy_option("the policy to compare with: show what it would change", "--against")
@click.option("--all-logs", is_flag=True, help=_ALL_LOGS)
@click.option("--user", metavar="NAME", help="who writes the bare manifests")
@click.option("--group", "groups", metavar="G", multiple=True, help="a group of --user; may be repeated")
@click.option("--now", type=moment, metavar="RFC3339", help=_NOW)
@cluster_options
@format_option("json prints one line per document")
def command(
    *,
    paths: tuple[str, ...],
    old: str | None,
    ignore: tuple[str, ...],
    skip_foreign: bool,
    require: int | None,
    policy: str | None,
    against: str | None,
    all_logs: bool,
    user: str | None,
    groups: tuple[str, ...],
    now: int | None,
    cluster: Cluster,
    output: str,
) -> int:
    if groups and not user:
        raise Failure("--group needs --user: a group alone writes nothing")
    first = load(policy)
    policies = [first] if against is None else [first, load(against)]
    names = [policy or first.preset] if against is None else [policy or first.preset, against]
    received = Received([path for path in paths if path != STANDARD_INPUT])
    items = submitted(paths, ignore, skip_found=not received.is_used, skip_named=skip_foreign)
    history = None if paths else observed((), everywhere(cluster))
    evaluator = _Evaluator(policies, received, now, Writer(user, groups) if user else None, Writes(all_logs))
    outcomes = evaluator.outcomes(items, old, history)
    code, evaluated = (_show if against is None else _compare)(outcomes, names, output, evaluator.writes)
    if unknown := evaluator.writes.unknown:
        print_message(_UNKNOWN.format(count(unknown, "write")) + ("" if all_logs else _NOT_WHOLE))
    least = require if require is not None else int(not skip_foreign)
    if evaluated < least and code != UNREADABLE:
        raise Failure(f"{evaluated} evaluated, and at least {least} must be: --require {evaluated} lets that pass")
    return code


class _Evaluator(Struct):
    """Evaluates documents by each policy; `now` is for manifests, and for reviews without a time of their own."""

    policies: Sequence[Policy]
    received: Received
    now: int | None
    writer: Writer | None
    writes: Writes

    def outcomes(
        self, items: Iterator[Submitted | Input], old: str | None, history: Iterable[Item] | None
    ) -> Iterator[list[Outcome]]:
        """Yield what each policy says of each document, and then of each write of a history, in order."""
        replaced = [*submitted([old])] if old else []
        if any(isinstance(one, Input) for one in replaced):
            raise Failure("--old is what is stored at one moment: it takes no log and no watch")
        stored = {key_of(one.document): one.document for one in replaced if isinstance(one, Manifest)}
        broken = [one for one in replaced if isinstance(one, Unreadable)]
        for unreadable in (*self.received.unreadable, *broken):
            yield [unreadable] * len(self.policies)
        if broken:
            # An update evaluated as if it were a creation could look harmless.
            return
        logs: list[Input] = []
        for one in items:
            if isinstance(one, Input):
                logs.append(one)
            elif isinstance(one, Review | Manifest):
                yield [self._evaluated(one, stored, policy) for policy in self.policies]
            else:
                yield [one] * len(self.policies)
        for item in Merged(logs, time.time_ns() // 1000 + BOUND) if history is None else history:
            if isinstance(item, Unreadable | Foreign):
                yield [item] * len(self.policies)
            elif isinstance(item, Observation) and (request := self.writes.request(item)):
                yield [
                    evaluate_request(item.place, request, policy, item.at, writer_known=item.user is not None)
                    for policy in self.policies
                ]

    def _evaluated(self, item: Review | Manifest, stored: Mapping[Key, Value], policy: Policy) -> Outcome:
        try:
            if isinstance(item, Review):
                at = self.now if self.now is not None else self.received.of(item.place.path)
                return evaluate_review(item.place, item.body, policy, at)
            body = review_of(item.document, stored.get(key_of(item.document)), self.writer)
            found = evaluate_review(item.place, body, policy, self.now, writer_known=self.writer is not None)
            return replace(found, is_past=False)
        except (ReviewError, ValueError) as error:
            return Unreadable(item.place, str(error))


def _show(outcomes: Iterator[list[Outcome]], names: Sequence[str], output: str, writes: Writes) -> tuple[int, int]:
    """Print what one policy says, and return the exit code and the number of documents that were evaluated."""
    tally, rules = Tally(), Counts()
    for (outcome,) in outcomes:
        tally.count(outcome)
        is_shown = True
        if isinstance(outcome, Evaluation) and outcome.is_past:
            rules.update(_rules_and_modes(outcome))
            # As text, among thousands of writes, only those that are denied or warned about.
            is_shown = output != "text" or outcome.level > Mode.AUDIT
        if is_shown:
            show(outcome, output)
    tally.unknown = writes.unknown
    finish(output, [*_counts([(names[0], rules)]), *tally.lines()], tally)
    return tally.exit_code, tally.evaluated


def _compare(outcomes: Iterator[list[Outcome]], names: Sequence[str], output: str, writes: Writes) -> tuple[int, int]:
    """Print what the second policy would change, and return the same."""
    tally, changes = Tally(), Counter[str]()
    counts = (Counts(), Counts())
    for before, after in outcomes:
        tally.count(before)
        if not isinstance(before, Evaluation) or not isinstance(after, Evaluation):
            show(before, output)
            continue
        change = _change(before, after)
        changes[change] += 1
        for counter, outcome in zip(counts, (before, after), strict=True):
            counter.update(_rules_and_modes(outcome))
        if output == "json":
            print(json_line({**as_json(before), "against": as_json(after), "change": change}))
        elif change:
            show(after, output, change)
    summary = ", ".join(f"{changes[change]} {change}" for change in _CHANGES if changes[change])
    total = f"{count(changes.total(), 'write')}, {names[0]} against {names[1]}: {summary or 'no change'}"
    total += f"; {writes.unknown} not evaluated" if writes.unknown else ""
    finish(output, [*_counts(list(zip(names, counts, strict=True))), total])
    code = UNREADABLE if tally.unreadable else DENIED if changes[_CHANGES[0]] else 0
    return code, changes.total()


def _change(before: Evaluation, after: Evaluation) -> str:
    """Return the change in words, "" for none."""
    old, new = before.level, after.level
    if new != old:
        return f"newly {WORDS[new][0]}" if new > old else f"no longer {WORDS[old][0]}"
    return "" if _seen_by_writer(before) == _seen_by_writer(after) else "other rules"


def _rules_and_modes(evaluation: Evaluation) -> set[tuple[str, Mode]]:
    return {(finding.rule, finding.mode) for finding in evaluation.verdict.findings}


def _seen_by_writer(evaluation: Evaluation) -> set[tuple[str, Mode]]:
    """Return what the writer is shown; audit findings are for the log only."""
    return {(rule, mode) for rule, mode in _rules_and_modes(evaluation) if mode > Mode.AUDIT}


def _counts(columns: list[tuple[str, Counts]]) -> list[str]:
    """Return how many writes each rule denies, warns about or notes; of several columns, where they differ."""
    rules = sorted({rule for _, counter in columns for rule, _ in counter})
    rows = [(rule, *(_count(counter, rule) for _, counter in columns)) for rule in rules]
    shown = [row for row in rows if len(columns) == 1 or len(set(row[1:])) > 1]
    return ["", *table([("rule", *(name for name, _ in columns)), *shown]), ""] if shown else []


def _count(counter: Counts, rule: str) -> str:
    found = (f"{counter[rule, mode]} {mode.word}" for mode in (Mode.DENY, Mode.WARN, Mode.AUDIT) if counter[rule, mode])
    return ", ".join(found) or "-"
