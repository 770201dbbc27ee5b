"""Prints outcomes one by one as text or JSON lines, or all of them at the end as a report."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from webhook.cli import json_text
from webhook.cli.progress import Progress
from webhook.cli.report import Outcome, Tally, error_line, json_of, say, text_of
from webhook.cli.report_format import REPORTS, document, subjects_of
from webhook.cli.sources import Skipped, Unreadable
from webhook.cli.terminal import paint_for
from webhook.reports.model import Subject

FORMATS = ("text", "json", *REPORTS)


class OutcomePrinter:
    """What `check` and `replay` print, in one of FORMATS; the progress line shows `what` they count."""

    def __init__(self, command: str, output: str, what: str) -> None:
        self.output = output
        self._command = command
        self._progress = Progress(what)
        self._paint = paint_for(sys.stdout)
        self._subjects: list[Subject] = []

    def watch(self, items: Iterable[Any]) -> Iterator[Any]:
        """The items, counted on a terminal if they take long."""
        return self._progress.watch(items)

    def show(self, outcome: Outcome, label: str = "") -> None:
        """Print an outcome, or keep it for the report; in text, `label` replaces the word for the verdict."""
        if self.output in REPORTS:
            self._subjects += subjects_of(outcome)
        elif self.output == "text":
            self._progress.print(*text_of(outcome, self._paint, label))
        elif isinstance(outcome, Unreadable):
            self._progress.print(error_line(outcome))
        elif not isinstance(outcome, Skipped):
            self.show_json(json_of(outcome))

    def show_json(self, line: dict[str, Any]) -> None:
        """Print one line of JSON."""
        self._progress.print(json_text.line(line))

    def keep(self, subject: Subject) -> None:
        """Keep something of another form for the report."""
        self._subjects.append(subject)

    def finish(self, lines: Iterable[str], tally: Tally | None = None) -> None:
        """Print the report; or, as text, these lines. With a format for programs, standard error names the skipped."""
        if self.output in REPORTS:
            print(document(self._command, self._subjects, self.output))
        if self.output == "text":
            print("\n".join(lines))
        elif tally and tally.skipped:
            say(tally.skipped_text())
