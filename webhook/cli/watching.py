"""Live views in a terminal: all leases, or one of them, drawn again each second until Ctrl-C."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from webhook.admission.policy.file import load
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.stored_leases import Key
from webhook.analysis.inputs.cluster import Cluster
from webhook.analysis.live.leases import LiveLeases
from webhook.analysis.live.watch import LiveWatch
from webhook.cli.absence import describe_namesakes
from webhook.cli.ending import ignore_signals, raise_at_first_signal
from webhook.cli.lease_table import COLUMNS, TOP, WIDE, LeaseRow, format_heading, make_row
from webhook.cli.reading import EvaluationTime
from webhook.cli.selection import Selection
from webhook.cli.tables import draw, find_filled, fit_columns, make_console, measure_widths
from webhook.cli.terminal import Failure

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

Draw = Callable[[ClusterHistory, EvaluationTime], "list[RenderableType]"]

_NEVER_SEEN: Final = 2
"""The exit code where a lease was not there, as without --watch."""
CLOCK: Final = "the clock of the API server"
_ENDS: Final = "Ctrl-C ends it"
_ANSWER_SECONDS: Final = 5.0
"""After so long, a cluster that has shown no lease and no failure has none."""
_PAUSE: Final = 1.0
_SHARE: Final = 4
"""The pause after a table, as a multiple of the time that making it took, so that work stays bounded."""
_AROUND: Final = 4
"""Lines of the terminal that are not rows: two above them, the head, and one below."""


def watch_all(cluster: Cluster, selection: Selection, policy: str | None, namespace: str) -> int:
    """Show the leases of a cluster as they are, the worst first.

    The `policy` file says which stamps to believe, and has the numbers of rules.
    """
    _show_live(cluster, policy, lambda histories, as_of: draw_frame(histories, as_of, selection, namespace))
    return 0


def draw_frame(
    histories: ClusterHistory, as_of: EvaluationTime, selection: Selection, namespace: str = ""
) -> "list[RenderableType]":
    """Return what is drawn of all leases at one moment, as wide as the terminal."""
    keys = [key for key in histories.names() if namespace in {"", key[0]}]
    rows = [make_row(one) for one in _find_accounts(histories, keys, as_of, selection)]
    return [*_draw_lines([format_heading(rows), as_of.text]), *_draw_table(selection.sort(rows))]


def watch_one(
    cluster: Cluster, key: Key, policy: str | None, describe: Callable[[Account, EvaluationTime], Sequence[str]]
) -> int:
    """Show one lease as `describe` does, whose lines may have colors of a terminal; return 2 if it was never there."""
    code = _NEVER_SEEN

    def draw(histories: ClusterHistory, as_of: EvaluationTime) -> "list[RenderableType]":
        nonlocal code
        namespace, name = key
        found = [one for one in histories.names() if one[1] == name and namespace in {"", one[0]}]
        present = [one for one in found if not histories.get_history(one).is_deleted] or found
        if not present:
            return [*_draw_lines([f"there is no lease {f'{namespace}/' if namespace else ''}{name} now"])]
        if len(present) > 1:
            return [*_draw_lines([describe_namesakes(present)])]
        code = 0
        account = make_account(histories, histories.get_history(present[0]), as_of.at)
        return [*_draw_lines(describe(account, as_of))]

    _show_live(cluster, policy, draw)
    return code


def _find_accounts(
    histories: ClusterHistory, keys: Sequence[Key], as_of: EvaluationTime, selection: Selection
) -> "list[Account]":
    found = (histories.get_history(key) for key in keys)
    live = (one for one in found if not one.is_deleted and selection.has_labels(one.lease))
    accounts = (make_account(histories, one, as_of.at) for one in live)
    return [one for one in accounts if selection.includes(one)]


def _draw_table(rows: Sequence[LeaseRow]) -> "list[RenderableType]":
    from rich.text import Text  # noqa: PLC0415 - only on a terminal

    if not rows:
        return []
    size = make_console().size
    shown = rows[: max(1, size.height - _AROUND - 1)]
    every = (*COLUMNS, *WIDE)
    numbers = [n for n, column in enumerate(every) if column.head in TOP]
    numbers.sort(key=lambda n: TOP.index(every[n].head))
    columns, cells = [every[n] for n in numbers], [tuple(row.cells[n] for n in numbers) for row in shown]
    kept = find_filled(columns, cells)
    columns, cells = [columns[n] for n in kept], [tuple(row[n] for n in kept) for row in cells]
    table = draw(columns, fit_columns(columns, measure_widths(columns, cells), size.width), cells)
    more = len(rows) - len(shown)
    return [table, Text(f"... {more:,} more" if more else "", style="dim")]


def _draw_lines(lines: Sequence[str]) -> "list[Text]":
    from rich.text import Text  # noqa: PLC0415 - only on a terminal

    return [Text.from_ansi(line) for line in "\n".join(lines).split("\n")]


def _show_live(cluster: Cluster, policy: str | None, draw: Draw) -> None:
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        raise Failure(
            "this needs a terminal; `lease-webhook record` keeps what happens, and `why` shows the present state"
        )
    from rich.console import Group  # noqa: PLC0415 - only on a terminal
    from rich.live import Live  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    in_force = load(policy) if policy else None
    leases = LiveLeases(in_force.stamps, in_force.find_limits) if in_force else LiveLeases()
    watch = LiveWatch(leases, cluster)
    raise_at_first_signal()
    last: list[RenderableType] = []
    started = time.monotonic()
    try:
        watch.start()
        with Live(console=make_console(), screen=True, auto_refresh=False, vertical_overflow="crop") as live:
            while True:
                began = time.monotonic()
                with leases.lock() as (histories, now):
                    # Until a cluster has answered, nothing is known, not even that it has no lease.
                    has_answered = not leases.status and began - started >= _ANSWER_SECONDS
                    is_known = histories.lease_count > 0 or has_answered
                    last = draw(histories, EvaluationTime(now, CLOCK)) if is_known else []
                hint = _ENDS if is_known else f"waiting for the API server; {_ENDS}"
                live.update(Group(*last, Text(leases.status or hint, style="dim")), refresh=True)
                time.sleep(max(_PAUSE, _SHARE * (time.monotonic() - began)))
    except KeyboardInterrupt:
        # The last picture stays on the terminal.
        make_console().print(Group(*last))
    finally:
        ignore_signals()
        watch.stop()
