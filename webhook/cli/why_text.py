"""One lease as `why` prints it: the state, the facts, what happened, what is wrong, what to do."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from webhook.api.text import cut, escape
from webhook.audit.finding import Finding
from webhook.cli.cluster_options import Moment
from webhook.cli.terminal import Paint, indent, width
from webhook.doctor.on_path import OnPath
from webhook.explanation.account import Account
from webhook.explanation.events import events
from webhook.explanation.explained import Explained
from webhook.explanation.text import Line, facts, headline, timing
from webhook.explanation.words import count
from webhook.history.standing import State
from webhook.reports.model import Severity

_LABEL: Final = 16
_MOST_WEBHOOKS: Final = 5


def lines(account: Account, as_of: Moment, webhooks: Sequence[OnPath] | None, paint: Paint) -> Iterator[str]:
    """The lines; `webhooks` are those on the path of its writes, None if that is not known."""
    history = account.history
    title = escape(f"{history.namespace}/{history.name}")
    color = paint.green if account.state is State.LIVE else paint.red
    yield f"{paint.bold(title)}  {color(account.state.value)}: {escape(headline(account))}{_counted(account)}"
    yield paint.dim(as_of.text)
    yield ""
    yield from _block([*facts(account), *_on_path(webhooks)])
    yield from _part("What happened", list(events(account)), paint)
    yield from _wrong(account, paint)
    yield ""
    yield paint.bold("What to do")
    yield indent(escape(account.advice.sentence), 2)
    if account.advice.command:
        yield f"    {escape(account.advice.command)}"
    yield from _part("How much it survives", list(timing(account)), paint)


def _part(head: str, lines: Sequence[Line], paint: Paint) -> Iterator[str]:
    if lines:
        yield ""
        yield paint.bold(head)
        yield from _block(lines, 2)


def _wrong(account: Account, paint: Paint) -> Iterator[str]:
    worrying = [one for one in account.findings if one.severity.value != "info"]
    if worrying:
        yield ""
        yield paint.bold("What is wrong")
    for one in worrying:
        mark = paint.red if one.severity.value == "error" else paint.yellow
        yield f"  {mark(one.severity.value)}  {one.check}{_over(one)}"
        yield indent(escape(one.message), 4)
        if one.repair != account.advice.command:  # that is shown below
            # Not wrapped: it is there to be copied.
            yield f"    -> {escape(one.repair)}"


def _counted(account: Account) -> str:
    """How many errors and warnings there are: `(1 error, 2 warnings)`."""
    found = [one.severity for one in account.findings]
    kinds = ((found.count(Severity.ERROR), "error"), (found.count(Severity.WARNING), "warning"))
    shown = ", ".join(count(number, what) for number, what in kinds if number)
    return f" ({shown})" if shown else ""


def _over(one: Finding) -> str:
    if not isinstance(one, Explained) or one.is_over is None:
        return ""
    return " (over)" if one.is_over else " (ongoing)"


def _block(lines: Iterable[Line], by: int = 0) -> Iterator[str]:
    for line in lines:
        wrapped = indent(escape(line.text), 0, width() - _LABEL - by).split("\n")
        for number, text in enumerate(wrapped):
            label = line.label if number == 0 else ""
            yield f"{' ' * by}{label:<{_LABEL}}{text}".rstrip()


def _on_path(webhooks: Sequence[OnPath] | None) -> Iterator[Line]:
    if webhooks is None:
        return
    shown = [
        f"{cut(one.name)} ({one.kind}, failurePolicy {one.failure_policy}, {one.timeout} s"
        f"{'' if one.sees_renewals else ', not its renewals'})"
        for one in webhooks[:_MOST_WEBHOOKS]
    ]
    more = len(webhooks) - len(shown)
    text = (
        f"its writes wait for {', '.join(shown)}{f' and {more} more' if more else ''}" if shown else "none on the path"
    )
    yield Line("Webhooks", text)
