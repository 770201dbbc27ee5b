"""Workflow commands of GitHub, which a runner shows beside the line of a file.

https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands; values are escaped as
`actions/toolkit` does (packages/core/src/command.ts), so none ends a line or a property.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from webhook.admission.rules.mode import Mode
from webhook.analysis.inputs.items import Unreadable
from webhook.cli.checking.evaluation import Evaluation
from webhook.cli.checking.problems import list_problems
from webhook.text.quoting import escape, truncate

_COMMANDS: Final = {Mode.DENY: "error", Mode.WARN: "warning"}
_DATA: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def format_annotations(outcome: Evaluation | Unreadable) -> Iterator[str]:
    """Yield a line for each problem that denies or warns; a path is relative to the root of the repository."""
    about = f"{truncate(outcome.subject)}: " if isinstance(outcome, Evaluation) else ""
    for problem in list_problems(outcome):
        if command := _COMMANDS.get(problem.level):
            properties = {"file": outcome.place.path.removeprefix("./")}
            properties |= {"line": str(problem.line)} if problem.line else {}
            properties["title"] = f"lease-webhook: {problem.rule}"
            text = escape(about + problem.text).translate(_DATA)
            yield f"::{command} {_format_properties(properties.items())}::{text}"


def _format_properties(properties: Iterable[tuple[str, str]]) -> str:
    return ",".join(f"{name}={escape(value).translate(_PROPERTY)}" for name, value in properties)
