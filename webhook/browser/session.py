"""The files that are open in a page, and what each command says of them, as plain data.

The methods raise InputError, or a Failure of click, with the sentence that the command would print. What a command
prints on standard error is in `notes`.
"""

import io
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from itertools import islice
from pathlib import Path
from typing import Any, Final

from webhook.admission.policy.model import Policy
from webhook.admission.rules.expiry import BOUND
from webhook.admission.rules.mode import Mode
from webhook.analysis.audit.leases import Inventory
from webhook.analysis.audit.tokens import TokenCheck
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.findings.headline import make_headline
from webhook.analysis.claims.findings.ongoing import describe_end
from webhook.analysis.claims.presentation.happened import list_events
from webhook.analysis.claims.presentation.text import Line, list_facts, quote_events
from webhook.analysis.claims.presentation.urgency import advise_with_urgency
from webhook.analysis.claims.words import format_count
from webhook.analysis.history.audit_log.observed_requests import Writes
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.stored_leases import Key
from webhook.analysis.inputs.cluster import Cluster
from webhook.analysis.inputs.files import CaptureIndex, find_inputs, read_for_check
from webhook.analysis.inputs.items import InputKind, Item, Observation, OtherObject, Unreadable
from webhook.analysis.timeline.downsampling import fit_into
from webhook.analysis.timeline.lanes import TimelineBuilder
from webhook.analysis.timeline.page import render
from webhook.browser.budget import MAX_BYTES, Budget, ignore_progress
from webhook.cli import audit as audit_command
from webhook.cli import reading
from webhook.cli import timeline as timeline_command
from webhook.cli import why as why_command
from webhook.cli.checking.evaluation import Evaluation, Evaluator
from webhook.cli.checking.text import Counts, Tally, find_rules_and_modes, format_subject, make_evaluation_json
from webhook.cli.lease_table import COLUMNS, format_heading, make_row
from webhook.cli.progress import Progress
from webhook.cli.selection import Selection
from webhook.cli.terminal import Failure
from webhook.findings import ORDER, ReportFinding, Severity
from webhook.kubernetes.times import format_time
from webhook.text.quoting import truncate

Data = dict[str, Any]

MAX_ROWS: Final = 2000
"""Leases, findings and writes that a page lists; the commands list all."""
_KINDS: Final[dict[str, str]] = {
    InputKind.DUMP: "objects as they are stored",
    InputKind.WATCH: "a watch",
    InputKind.AUDIT_LOG: "an audit log",
    InputKind.REVIEW: "reviews",
}
_GZIP: Final = b"\x1f\x8b"
_MAX_LINE: Final = 300
"""Characters of a line that are shown."""
_NO_KIND: Final = "nothing about leases"
_MAX_EXPLAINED: Final = 3
"""Files of which it is said why they show no lease."""
_HEAD_BYTES: Final = 4096
"""Bytes of a file by which it is known what it is instead."""
_KUBECTL_MESSAGE: Final = re.compile(
    r"error: |Error from server|Unable to connect to the server|The connection to the server|No resources found"
)
"""How what kubectl prints begins when it has nothing to show; `client-go` writes the last but one."""
_MAX_PEEKED: Final = 1000
"""Items at the start of a file that show its kind."""
_SEVERITIES: Final = tuple(Severity)
_EVERYTHING: Final = Selection()
_UNEVALUATED: Final = "{} not evaluated: the input does not show what was changed"


class Session:
    """Reads its paths once for each command, as the commands do; of `why` the history is kept."""

    def __init__(
        self,
        paths: Sequence[str],
        progress: Callable[[int, int], None] = ignore_progress,
        *,
        limit: int = MAX_BYTES,
        now: int | None = None,
    ) -> None:
        self.paths = tuple(paths)
        self._progress = progress
        self._limit = limit
        self._now = now
        self._history: ClusterHistory | None = None
        self._recognized: list[Data] = []
        self._notes: list[str] = []

    # ---- what was read -------------------------------------------------------------------------------------------

    def list_leases(self) -> Data:
        """Return what was recognized, and a row of `why` for each lease."""
        histories, as_of = self._read_histories()
        found = why_command.select_accounts(histories, histories.names(), as_of, _EVERYTHING, is_row=True)
        rows = _EVERYTHING.sort(map(make_row, found))
        shown = rows[:MAX_ROWS]
        return {
            "recognized": self._recognized,
            "notes": self._notes,
            "as_of": _describe_time(as_of),
            "heading": format_heading(rows),
            "head": [column.head for column in COLUMNS],
            "rows": [[cell.text for cell in row.cells[: len(COLUMNS)]] for row in shown],
            "leases": ["/".join(row.key) for row in shown],
            "severities": [_SEVERITIES[row.trouble[0]].value for row in shown],
            "left_out": len(rows) - len(shown),
        }

    def explain_lease(self, lease: str) -> Data:
        """Return what `why NAMESPACE/NAME` says; raises Failure if it is not in the input."""
        histories, as_of = self._read_histories()
        namespace, _, name = lease.partition("/")
        known: Key = (namespace, name)
        if known not in histories.names():
            raise Failure(f"lease {lease} is not in the input")
        account = make_account(histories, histories.get_history(known), as_of.at, as_of.seen_until)
        advice = advise_with_urgency(account)
        return {
            "lease": lease,
            "title": lease,
            "state": account.state.value,
            "headline": make_headline(account),
            "as_of": _describe_time(as_of),
            "facts": _list_lines(list_facts(account)),
            "events": _list_lines(list_events(account)),
            "quoted": _list_lines(quote_events(account)),
            "findings": [_describe_finding(one, account.now) for one in account.findings],
            "advice": {"sentence": advice.sentence, "command": advice.command},
        }

    def audit(self) -> Data:
        """Return what `audit` finds, the worst first."""
        with _collect_notes() as notes:
            inventory = Inventory(reading.find_evaluation_time(self._now, self.paths, None).at, frozenset())
            tokens, fail_on = TokenCheck([]), Severity.WARNING
            audit = audit_command.Audit(inventory, tokens, fail_on, self._now, self.paths, "", _EVERYTHING)
            found = sorted(audit.run(self._read_items()), key=lambda one: ORDER[one.severity])
            notes.extend(audit.list_complaints())
        return {
            "notes": notes,
            "summary": " ".join(audit_command.summarize(audit, Severity.INFO)),
            "findings": [
                {**audit_command.make_finding_json(one), "lease": _name_lease(one), "subject": str(one.subject)}
                for one in found[:MAX_ROWS]
            ],
            "left_out": max(0, len(found) - MAX_ROWS),
        }

    def draw_timeline(self) -> Data:
        """Return the page of `timeline` as HTML."""
        builder = TimelineBuilder(time.time_ns() // 1000 + BOUND)
        with _collect_notes() as notes:
            timeline = timeline_command.read_timeline(builder, self._read_items(), self.paths, Cluster(), self._now)
        return {"notes": notes, "html": render(fit_into(timeline)), "leases": len(timeline.lanes)}

    def check(self, policy: Policy, *, all_logs: bool = False) -> Data:
        """Return what a policy denies and warns about, as `check` lists it."""
        evaluator = Evaluator([policy], CaptureIndex(self.paths), self._now, None, Writes(all_logs))
        tally, rules, listed = Tally(), Counts(), list[Data]()
        with _collect_notes() as notes:
            for (outcome,) in evaluator.evaluate_all(read_for_check(self.paths, meter=self._make_budget()), None, None):
                tally.count(outcome)
                if isinstance(outcome, Evaluation):
                    rules.update(find_rules_and_modes(outcome))
                if isinstance(outcome, OtherObject) or (isinstance(outcome, Evaluation) and outcome.level is Mode.OFF):
                    continue
                if len(listed) < MAX_ROWS:
                    listed.append(
                        {
                            **make_evaluation_json(outcome),
                            "subject": _name_subject(outcome),
                            "lease": _name_reviewed_lease(outcome),
                        }
                    )
        if unknown := evaluator.writes.unknown:
            notes.append(_UNEVALUATED.format(format_count(unknown, "write")))
        return {
            "notes": notes,
            "summary": next(tally.format_lines(unknown)),
            "rules": _group_by_rule(rules),
            "outcomes": listed,
            "left_out": max(0, tally.levels[Mode.DENY] + tally.levels[Mode.WARN] + tally.unreadable - len(listed)),
        }

    # ---- how it is read ------------------------------------------------------------------------------------------

    def _make_budget(self) -> Budget:
        path = " --input ".join(self.paths) or "FILE"
        return Budget(path=path, limit=self._limit, progress=self._progress)

    def _read_items(self) -> Iterator[Item]:
        progress = Progress()
        progress.meter = self._make_budget()
        return reading.read_for_history(self.paths, progress=progress)

    def _read_histories(self) -> tuple[ClusterHistory, reading.EvaluationTime]:
        """Return the history of all leases, which is read once, and the time as of which it is evaluated."""
        if self._history is None:
            histories = ClusterHistory()
            kinds = [(path, _find_kind(path, self._make_budget())) for path in self.paths]
            self._recognized = [
                {"path": path, "kind": kind, "says": _KINDS.get(kind, _NO_KIND)} for path, kind in kinds
            ]
            with _collect_notes() as notes:
                for item in self._read_items():
                    histories.add(item)
                if not histories.lease_count:
                    raise Failure("; ".join(_explain_missing_leases(path) for path in self.paths[:_MAX_EXPLAINED]))
                if histories.hides_stamps:
                    notes.append(reading.HIDDEN_STAMPS)
                as_of = reading.find_evaluation_time(self._now, self.paths, histories.bounds.until)
                histories.bounds.is_over = True
                if self._now is None and histories.bounds.until is None:
                    times = (at for at, _ in histories.stored.list_last_renewals())
                    histories.bounds.may_be_older = reading.print_doubt_of_list(as_of, times)
            self._history, self._notes = histories, notes
        return self._history, reading.find_evaluation_time(self._now, self.paths, self._history.bounds.until)


def _find_kind(path: str, budget: Budget) -> str:
    """Return the kind of the first items of a file about leases; "" if there is none."""
    items = (item for one in find_inputs([path], budget) for item in one.read())
    seen = (item.input_kind for item in islice(items, _MAX_PEEKED) if isinstance(item, Observation))
    return next((kind.value for kind in seen), "")


def _explain_missing_leases(path: str) -> str:
    """Return why a file shows no lease, by its first bytes."""
    with Path(path).open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head.strip():
        return f"{path} is empty"
    if not head.startswith(_GZIP):
        text = head.decode(errors="replace")
        if "\0" in text or text.count("\ufffd") > 1:
            return f"{path} is not text: open the JSON or YAML that kubectl writes, or an audit log"
        first = text.lstrip().partition("\n")[0].strip()
        if _KUBECTL_MESSAGE.match(first):
            return f"{path} has what kubectl answered in place of leases: {truncate(first, _MAX_LINE)}"
    return f"{path} has no lease: open a list, a watch, an audit log or a review of leases"


@contextmanager
def _collect_notes() -> Iterator[list[str]]:
    """Collect what a command prints on standard error, a note for each line."""
    notes: list[str] = []
    with redirect_stderr(io.StringIO()) as printed:
        yield notes
    notes[:0] = printed.getvalue().splitlines()


def _describe_time(as_of: reading.EvaluationTime) -> str:
    """Return the time of evaluation and where it comes from, without the option that a page does not have."""
    return f"As of {format_time(as_of.at)}, {as_of.origin.partition(';')[0]}"


def _list_lines(lines: Iterator[Line]) -> list[list[str]]:
    return [[line.label, line.text] for line in lines]


def _name_lease(finding: ReportFinding) -> str:
    """Return the lease that a finding is about, "" for another object."""
    subject = finding.subject
    return f"{subject.namespace}/{subject.name}" if subject.kind == "Lease" else ""


def _describe_finding(finding: ReportFinding, now: int) -> Data:
    return {
        "severity": finding.severity.value,
        "check": finding.check,
        "ends": describe_end(finding, now),
        "message": finding.message,
        "fix": finding.fix,
    }


def _name_subject(outcome: Evaluation | Unreadable) -> str:
    return format_subject(outcome) if isinstance(outcome, Evaluation) else str(outcome.place)


def _name_reviewed_lease(outcome: Evaluation | Unreadable) -> str:
    if isinstance(outcome, Unreadable) or outcome.request.kind != "Lease":
        return ""
    return f"{outcome.request.namespace}/{outcome.request.name}"


def _group_by_rule(counts: Counts) -> list[Data]:
    rules = sorted({rule for rule, _ in counts})
    modes = (Mode.DENY, Mode.WARN, Mode.AUDIT)
    return [{"rule": rule, **{mode.word: counts[rule, mode] for mode in modes}} for rule in rules]
