"""What `timeline`, tables of leases and metrics show beside claims, as statements that are true or false.

Each is a document like a claim: the kind of what is shown in `claim`, and what it says. They are made from the model of
the page and from rows of a table, so every label, span and number is one.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast

from tests.truth.inputs import LISTS, LOGS, Input, Kind
from webhook.admission.policy.file import load
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.claims.words import format_age
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.inputs.items import Act, Item, Observation
from webhook.analysis.live.leases import LiveLeases
from webhook.analysis.live.metrics import PREFIX, LeaderMetrics
from webhook.analysis.timeline.lanes import TimelineBuilder
from webhook.analysis.timeline.model import Lane, MarkKind, SpanKind, Timeline
from webhook.cli import reading
from webhook.cli.lease_table import make_row
from webhook.cli.selection import Selection
from webhook.cli.why import select_accounts
from webhook.kubernetes.times import SECOND, format_micro_time

Shown = tuple[tuple[str, str], dict[str, Any]]
"""Namespace and name of a lease, and what is shown of it."""
SOME_WRITES: Final = LISTS | {
    Kind.METADATA,
    Kind.MIXED,
    Kind.ASKED,
    Kind.HOLE,
    Kind.LATE_LOG,
    Kind.LATE_WATCH,
    Kind.BROKEN_RECORD,
}
"""Inputs that do not show every write."""
LATEST: Final = 2**52


class Reading:
    """An input that is read once, and when it ends."""

    def __init__(self, given: Input, paths: Sequence[str]) -> None:
        """Read the files of an input; the last one is a policy file, if it has one."""
        policy = paths[-1] if given.has_policy else None
        files = paths[:-1] if given.has_policy else paths
        self.given = given
        self.items: list[Item] = list(reading.read_for_history(files, policy=policy))
        self.histories = ClusterHistory(stamped=frozenset(load(policy).stamps) if policy else frozenset())
        for item in self.items:
            self.histories.add(item)
        bounds = self.histories.bounds
        self.as_of = reading.find_evaluation_time(given.now, files, bounds.until, bounds.shown)

    def timeline(self) -> Timeline:
        """Return what the page draws."""
        builder = TimelineBuilder(LATEST)
        for item in self.items:
            builder.observe(item)
        return builder.timeline(self.as_of.at)

    def seen_from(self, key: tuple[str, str]) -> int:
        """Return when an input first shows a lease: with its first write in a log, else when it was looked at first.

        A state that was written in the gap of a record is seen after it.
        """
        stored = (one for one in self.items if isinstance(one, Observation) and one.kind == "Lease" and one.is_stored)
        writes = (one for one in stored if (one.namespace, one.name) == key and one.act is not Act.READ)
        first = next(writes, None)
        if first is not None and first.at is not None:
            return first.at
        written = (first.latest_stamp if first else None) or 0
        return next((begin for begin, end in self.given.shown if written < end), self.given.shown[0][0])

    def accounts(self) -> Iterator[Account]:
        """Yield the leases as a table has them."""
        return select_accounts(self.histories, self.histories.names(), self.as_of, Selection(), is_row=True)

    def metrics(self) -> LeaderMetrics:
        """Return what the recorder exposes."""
        return LeaderMetrics(cast("LiveLeases", _Standing(self.histories, self.as_of.at)))


class _Standing:
    """Leases at one moment, in the place of those that live."""

    is_watching = True

    def __init__(self, histories: ClusterHistory, at: int) -> None:
        self._found = histories, at

    @contextmanager
    def lock(self) -> Iterator[tuple[ClusterHistory, int]]:
        yield self._found


# ---- the timeline ---------------------------------------------------------------------------------------------------


def shown_by_timeline(read: Reading) -> Iterator[Shown]:
    """Yield everything that a page shows of every lease."""
    timeline = read.timeline()
    for lane in timeline.lanes:
        clock = {"clock": "writer"} if lane.is_claimed else {}
        seen_from = read.seen_from((lane.namespace, lane.name))
        for claim in _of_lane(lane, timeline, read.given, seen_from):
            yield (lane.namespace, lane.name), claim | clock


def _of_lane(lane: Lane, timeline: Timeline, given: Input, seen_from: int) -> Iterator[dict[str, Any]]:
    if lane.problem:
        yield {"claim": "timeline-problem", "text": lane.problem}
    end, gaps = format_micro_time(timeline.ends), lane.list_gaps(timeline.ends)
    for span in lane.spans:
        span_facts: dict[str, Any] = {
            "identity": span.holder,
            "writer": span.writer,
            "manager": span.manager,
            "hidden": _hidden(given),
            "is_logged": given.kind in LOGS,
        }
        if span.reason and span.kind in (SpanKind.HELD, SpanKind.NEVER_HELD):
            span_facts |= {"seen_from": _time(seen_from)}
        until = end if span.ends is None else format_micro_time(span.ends)
        span_facts |= {"is_open": span.ends is None}
        kind, text = f"timeline-{span.kind.value}", span.describe(gaps, timeline.ends)
        yield {"claim": kind, **span_facts, "from": _time(span.begins), "to": until, "text": text}
    for gap in gaps:
        times = {"from": _time(gap.begins), "to": format_micro_time(gap.ends)}
        length = {"seconds": gap.length / SECOND, "identity": gap.holder}
        yield {"claim": "timeline-gap", **times, **length, "text": gap.describe(timeline.ends)}
    for doubt, text in lane.list_doubts(gaps, timeline.ends):
        times = {"from": _time(doubt.begins), "to": format_micro_time(doubt.ends or timeline.ends)}
        yield {"claim": f"timeline-{doubt.kind.value}", "identity": doubt.holder, **times, "text": text}
    for mark in lane.marks:
        is_dated = "then or later" not in mark.text and mark.kind is not MarkKind.DELETED
        moment = {"at": _time(mark.begins), "is_dated": is_dated}
        yield {"claim": f"timeline-{mark.kind.value}", **moment, "identity": mark.holder, "text": mark.text}
    hidden = {"is_hidden": any(one.kind is SpanKind.WRITTEN for one in lane.spans)}
    for at in lane.ticks.moments:
        yield {"claim": "timeline-renewal", "at": format_micro_time(at), **hidden}
    whole = {"is_whole": given.kind not in SOME_WRITES}
    yield {"claim": "timeline-handovers", "count": lane.handovers, **whole, "are_writers": given.kind is Kind.METADATA}
    yield {"claim": "timeline-renewals", "count": lane.ticks.count, **hidden}
    if lane.duration_seconds is not None:
        yield {"claim": "timeline-duration", "seconds": lane.duration_seconds}


def _hidden(given: Input) -> list[tuple[int, int]]:
    """Return the times of the history of which an input does not show every state."""
    if given.kind in {Kind.METADATA, Kind.MIXED, Kind.ASKED}:
        return [(0, LATEST)]
    edges = [0, *(at for span in given.shown for at in span)]
    return [(begin, end) for begin, end in zip(edges[::2], edges[1::2], strict=False) if begin < end]


# ---- tables, and metrics --------------------------------------------------------------------------------------------


def shown_by_rows(read: Reading) -> Iterator[Shown]:
    """Yield what the table of `why` and `top` shows of every lease, and what the recorder exposes of it."""
    now = read.as_of.at
    for account in read.accounts():
        key = (account.history.namespace, account.history.name)
        row = make_row(account)
        _, state, holder, renewed, takeable, changes, _, usual, duration, dated = (cell.text for cell in row.cells)
        whole = {"is_whole": read.given.kind not in SOME_WRITES}
        of_state = {"state": state, "dated": dated, "now": format_micro_time(now), "hidden": _hidden(read.given)}
        yield key, {"claim": "row-state", **of_state}
        yield key, {"claim": "row-holder", "state": state, "identity": account.known_holder, "text": holder}
        if row.renewed:
            right = {"is_right": renewed == format_age(row.renewed, now)}
            at = {"at": format_micro_time(row.renewed), "dated": dated, "state": state}
            yield key, {"claim": "row-renewed", **at, **right, "identity": account.holder, "text": renewed}
        if takeable == "now":
            yield key, {"claim": "row-takeable", "from": format_micro_time(now), **of_state}
        elif account.takeable_at is not None:
            yield key, {"claim": "row-takeable", "from": format_micro_time(account.takeable_at), **of_state}
        count = int(changes) if changes.isdecimal() else 0
        yield key, {"claim": "row-changes", "count": count, **whole, "are_writers": read.given.kind is Kind.METADATA}
        if account.history.interval is not None:
            writers = {"are_writers": read.given.kind is Kind.METADATA}
            yield key, {"claim": "row-usual", "seconds": account.history.interval, "text": usual, **writers}
        if account.status and account.status.duration is not None:
            yield key, {"claim": "row-duration", "seconds": account.status.duration, "text": duration}
        for claim in _of_json(make_account_json(account), read.given):
            yield key, claim
    if read.given.kind not in LOGS | LISTS:
        yield from _of_metrics(read)  # a recorder reads a watch


def _of_metrics(read: Reading) -> Iterator[Shown]:
    now = read.as_of.at
    for metric in read.metrics().collect():
        name = metric.name.removeprefix(PREFIX)
        for sample in metric.samples:
            if "lease" not in sample.labels or sample.name.endswith("_created"):
                continue
            key = (sample.labels["namespace"], sample.labels["lease"])
            how = {"how": sample.labels["how"]} if "how" in sample.labels else {}
            # Where a writer's clock dates a holder, no metric counts the time before it.
            is_claimed = any(one.beginning.write.is_claimed for one in read.histories.leases[key].tenures)
            is_whole = read.given.kind not in SOME_WRITES and not is_claimed
            times = {"now": format_micro_time(now), "value": sample.value, "is_whole": is_whole}
            yield key, {"claim": f"metric-{name.replace('_', '-')}", **times, **how}


# ---- the other keys of `why` in JSON --------------------------------------------------------------------------------


def _of_json(document: dict[str, Any], given: Input) -> Iterator[dict[str, Any]]:
    """Yield what the JSON of `why` says beside its claims."""
    dated = {"api-server": "API server"}.get(document["evidence"], document["evidence"])
    state = {"state": document["state"], "dated": dated, "now": document["now"], "hidden": _hidden(given)}
    whole = {"is_whole": given.kind not in SOME_WRITES}
    yield {"claim": "json-state", **state}
    yield {"claim": "json-holder", "state": document["state"], "identity": document["holder"] or ""}
    if document["held_since"]:
        yield {"claim": "json-held-since", "at": document["held_since"], "identity": document["holder"]}
    if document["last_renewal"]:
        yield from _of_last_renewal(document, state)
    if document["takeable_at"]:
        yield {"claim": "json-takeable", **state, "from": document["takeable_at"]}
    if document["duration_seconds"] is not None:
        yield {"claim": "json-duration", "seconds": document["duration_seconds"]}
    for how, count in document["handovers"].items():
        yield {"claim": "json-handovers", "how": how, "count": count, **whole}
    for before, tenure in zip([None, *document["tenures"]], document["tenures"], strict=False):
        if tenure["since"]:
            yield {"claim": "json-tenure-since", "identity": tenure["holder"], "at": tenure["since"]}
        if tenure["until"]:
            writers = {"are_writers": given.kind is Kind.METADATA}
            yield {"claim": "json-tenure-until", "identity": tenure["holder"], "at": tenure["until"], **writers}
        if tenure["leaderless_seconds"] is not None and before and tenure["since"]:
            since = {"identity": tenure["holder"], "at": tenure["since"], "previous": before["holder"]}
            yield {"claim": "json-tenure-leaderless", **since, "seconds": tenure["leaderless_seconds"]}


def _of_last_renewal(document: dict[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
    renewed = {**state, "at": document["last_renewal"], "identity": document["holder"] or "", "is_right": True}
    yield {"claim": "json-last-renewal", **renewed}
    by = document["last_renewal_by"]
    if by and by["user"]:
        who = {"user": by["user"], "pod": by["pod"], "uid": by.get("pod_uid", "")}
        yield {"claim": "json-last-renewal-by", "at": document["last_renewal"], "hidden": state["hidden"], **who}


def _time(at: int) -> str:
    return format_micro_time(max(0, at))
