"""Prints outcomes in one of FORMATS, each as soon as it is known if the format allows that."""

from collections.abc import Iterable
from typing import Final, TextIO

from msgspec import Struct, field

from webhook.admission.rules.mode import Mode
from webhook.analysis.inputs.items import OtherObject
from webhook.cli.checking.annotations import format_annotations
from webhook.cli.checking.evaluation import DocumentOutcome, Evaluation
from webhook.cli.checking.junit import format_junit
from webhook.cli.checking.sarif import format_sarif
from webhook.cli.checking.text import Tally, format_outcome, make_evaluation_json
from webhook.cli.reading import format_skipped
from webhook.cli.terminal import encode_line, print_message, wrap_on_terminal

FORMATS: Final = ("text", "json", "junit", "sarif", "github")


class Printer(Struct):
    """Takes one outcome after another; `fails_on` is the least severe level that is a failure, None for none.

    `annotations` is a file that also gets those of GitHub.
    """

    output: str
    fails_on: Mode | None
    show_allowed: bool = False
    annotations: TextIO | None = None
    tally: Tally = field(default_factory=Tally)
    _kept: list[DocumentOutcome] = field(default_factory=list)

    def add(self, outcome: DocumentOutcome) -> None:
        """Count an outcome, and print it, or keep it for a document of all."""
        self.tally.count(outcome)
        if isinstance(outcome, OtherObject):
            return
        if self.annotations:
            self.annotations.writelines(f"{line}\n" for line in format_annotations(outcome))
        if self.output == "json":
            print(encode_line(make_evaluation_json(outcome)))
        elif self.output == "github":
            for line in format_annotations(outcome):
                print(line)
        elif self.output != "text":
            self._kept.append(outcome)
        elif self._is_listed(outcome):
            print("\n".join(format_outcome(outcome)))

    def finish(self, counts: Iterable[str], unknown: int) -> None:
        """Print what comes at the end; `counts` are lines for people, `unknown` the writes that were not evaluated."""
        if self.output == "junit":
            print(format_junit(self._kept, self.fails_on))
        elif self.output == "sarif":
            print(format_sarif(self._kept))
        if self.output == "text":
            for line in counts:
                print(line)
            for line in self.tally.format_lines(unknown):
                print(wrap_on_terminal(line, 2))
        elif self.tally.skipped:
            print_message(format_skipped(self.tally.skipped))

    def _is_listed(self, outcome: DocumentOutcome) -> bool:
        """Return whether text has an outcome: what is allowed only on request."""
        return not isinstance(outcome, Evaluation) or outcome.level > Mode.AUDIT or self.show_allowed
