"""Options that select and sort leases, as kubectl has them."""

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial, wraps
from typing import Any, Final

import click
from click.shell_completion import CompletionItem
from msgspec import Struct

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.registry import FINDING_IDS
from webhook.analysis.history.status import LeaseState
from webhook.cli.lease_table import LeaseRow
from webhook.findings import ReportFinding
from webhook.kubernetes.objects import Lease, LeaseCandidate
from webhook.kubernetes.selectors import SelectorRequirement, is_met, parse_selector
from webhook.text.quoting import quote, truncate

ORDERS: Final[Mapping[str, Callable[[LeaseRow], Any]]] = {
    "worst": lambda row: (row.trouble, row.key),
    "name": lambda row: row.key,
    "renewed": lambda row: (row.renewed, row.key),
    "changes": lambda row: (-row.changes, row.key),
}
"""The key of a row in each order: the worst, the longest silent and the most often changed come first."""
_STATES: Final = tuple(map(str, LeaseState))
_MAX_WORD: Final = 80


class Selection(Struct, frozen=True):
    """A selection of leases, and their order; empty members leave nothing out."""

    states: frozenset[str] = frozenset()
    checks: frozenset[str] = frozenset()
    labels: tuple[SelectorRequirement, ...] = ()
    selector: str = ""
    """The labels as they were typed."""
    order: str = ""
    """One of ORDERS; "" leaves it to the command."""

    @property
    def is_everything(self) -> bool:
        """True if nothing is left out."""
        return not (self.states or self.checks or self.labels)

    def has_labels(self, seen: Lease | LeaseCandidate | None) -> bool:
        """Return whether an object has the labels; one of which only writes were seen has none that are known."""
        if seen is None or not self.labels:
            return not self.labels
        labels = {key: value or "" for key, value in (seen.metadata.labels or {}).items()}
        return all(is_met(one, labels) for one in self.labels)

    def has_check(self, findings: Iterable[ReportFinding]) -> bool:
        """Return whether one of the findings is asked for."""
        return not self.checks or any(one.check in self.checks for one in findings)

    def includes(self, account: Account) -> bool:
        """Return whether an account is in a state, and has a finding, that is asked for."""
        return (not self.states or account.state.value in self.states) and self.has_check(account.findings)

    def sort(self, rows: Iterable[LeaseRow]) -> list[LeaseRow]:
        """Return rows in the order that is asked for, the worst first unless one is."""
        return sorted(rows, key=ORDERS[self.order or "worst"])


def parse_checks(values: Iterable[str]) -> frozenset[str]:
    """Return ids of findings, of which each value may have several; raises BadParameter for one that is none."""
    return _parse_list(values, FINDING_IDS, "a finding; lease-webhook claims lists them among all claims")


def parse_labels(text: str) -> tuple[SelectorRequirement, ...]:
    """Return the requirements of a label selector, none of ""; raises BadParameter for anything else."""
    try:
        return parse_selector(text) if text else ()
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _parse_list(values: Iterable[str], known: Collection[str], what: str) -> frozenset[str]:
    found = [word for value in values for word in map(str.strip, value.split(",")) if word]
    for word in found:
        if word not in known:
            near = difflib.get_close_matches(word[:_MAX_WORD], known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise click.BadParameter(f"{quote(truncate(word, _MAX_WORD))} is not {what}{hint}")
    return frozenset(found)


def _complete_checks(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(one) for one in FINDING_IDS if one.startswith(incomplete)]


check_option: Final = click.option(
    "--check",
    "checks",
    metavar="CHECK,...",
    multiple=True,
    help="only those with one of these findings; may be repeated",
    shell_complete=_complete_checks,
)

labels_option: Final = click.option(
    "-l", "--selector", "labels", metavar="LABELS", default="", help="only those with these labels"
)


def selection_options(order_help: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return a decorator that adds the options; the command gets them as one `Selection`.

    `order_help` says how the command sorts by default.
    """
    return partial(_add_selection_options, order_help=order_help)


def _add_selection_options(function: Callable[..., int], order_help: str) -> Callable[..., int]:
    @labels_option
    @click.option(
        "--state", "states", metavar="STATE,...", multiple=True, help=f"only leases that are {_join_with_or(_STATES)}"
    )
    @check_option
    @click.option("--sort-by", "order", type=click.Choice(tuple(ORDERS)), help=order_help)
    @wraps(function)
    def with_selection(
        labels: str,
        states: tuple[str, ...],
        checks: tuple[str, ...],
        order: str | None,
        **given: Any,  # noqa: ANN401 - what click passes
    ) -> int:
        selection = Selection(
            states=_parse_list(states, _STATES, f"a state: {_join_with_or(_STATES)}"),
            checks=parse_checks(checks),
            labels=parse_labels(labels),
            selector=labels,
            order=order or "",
        )
        return function(selection=selection, **given)

    return with_selection


def _join_with_or(words: Collection[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}"
