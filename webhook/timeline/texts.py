"""The texts of marks: text from a cluster, truncated, with everything invisible escaped; and marks of answers."""

from collections.abc import Iterable, Iterator
from typing import Final

from webhook.api.text import escape, truncate
from webhook.explanation.words import by_writer, length, writer
from webhook.history.events import SLOW, Tenure
from webhook.inputs.items import Answer, Observation, Writer
from webhook.rules.registry import RULES
from webhook.timeline.model import Mark, MarkKind

MAX_NAME: Final = 256
MAX_TEXT: Final = 4000
"""Characters of a mark; a denial may have 12 KB."""
_MAX_WRITERS: Final = 3
_NOT_COUNTED: Final = frozenset({404, 409, 410})
"""Conflicts and absent objects are how electors race."""


def shown(text: str) -> str:
    """A name as it is drawn and searched for."""
    return escape(truncate(text, MAX_NAME))


def sentence(text: str) -> str:
    """The text of a mark."""
    return escape(truncate(text, MAX_TEXT))


def writer_name(one: Writer | None) -> str:
    """Return who wrote, for a column of its own."""
    return shown(writer(one)) if one and one.user else ""


def writers_of(tenure: Tenure) -> str:
    """Return who wrote as the holder; several only if several did."""
    return shown(" and ".join(writer(one) for one in tenure.writers[-_MAX_WRITERS:]))


def _refused(answer: Answer, writer: Writer | None) -> str:
    said = f": {answer.message}" if answer.message else ""
    took = f" after {length(answer.took)}" if answer.took >= 1_000_000 else ""
    code = f" with {answer.code}" if answer.code >= 400 else ""
    return sentence(f"a write{by_writer(writer)} was answered{code}{took}{said}")


def marks_of_answer(seen: Observation, at: int, holder: str) -> Iterator[Mark]:
    """The marks of one write, made `at` a moment in microseconds since 1970 while `holder` held the lease."""
    answer = seen.answer
    if answer is None:
        return
    dry = " (dry run)" if seen.is_dry_run else ""
    if not answer.is_stored:
        if answer.code not in _NOT_COUNTED:
            kind = MarkKind.FAILED if answer.code == 429 or answer.code >= 500 else MarkKind.DENIED
            yield Mark(kind, at, _refused(answer, seen.writer) + dry, holder, writer_name(seen.writer))
        return
    if answer.took > SLOW:
        text = f"the API server took {length(answer.took)} to answer a write{by_writer(seen.writer)}{dry}"
        yield Mark(MarkKind.SLOW, at, sentence(text), holder, writer_name(seen.writer))
    noted = answer.noted
    warned = [rule for rule, mode in noted.modes.items() if mode == "warn"]
    event = noted.event or "write"
    if noted.would_deny:
        admitted = f"lease-webhook admitted this {event}{by_writer(seen.writer)}"
        text = f"{admitted}, and would deny it by {_said(noted.would_deny)}{dry}"
        yield Mark(MarkKind.WOULD_DENY, at, sentence(text), holder, writer_name(seen.writer))
    elif warned:
        text = f"lease-webhook warned about this {event}{by_writer(seen.writer)}: {_said(warned)}{dry}"
        yield Mark(MarkKind.WARNED, at, sentence(text), holder, writer_name(seen.writer))


def _said(rules: Iterable[str]) -> str:
    """The names of rules with what they say, as far as they are known."""
    return "; ".join(f"{name} ({RULES[name].texts.summary.rstrip('.')})" if name in RULES else name for name in rules)
