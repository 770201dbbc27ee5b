"""Timelines of any size for tests: elections that are drawn from a seed, with everything that a lane can show."""

from random import Random
from typing import Final

from webhook.analysis.timeline.model import Bucket, Lane, Mark, MarkKind, Span, SpanKind, Ticks, Timeline

SECOND: Final = 1_000_000
NOON: Final = 1_795_348_800 * SECOND
"""2026-11-22T12:00:00Z"""
DURATION: Final = 15

HOSTILE_NAMES: Final = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "\u202egnp.exe\u202c",
    "zero\u200bwidth",
    "a" * 4096,
    "'\"`${alert(1)}&amp;<!--",
    "javascript:alert(1)",
    "lone\ud800surrogate",
    "line\nbreak\u2028and\u2029more\x00",
    "__proto__",
    "constructor",
    "$policy $data ${library}",
)


def sample_lane(
    name: str,
    *,
    seed: int = 0,
    minutes: float = 10,
    events: int = 4,
    namespace: str = "shop",
    interval: int = 2 * SECOND,
    begins: int = NOON,
) -> Lane:
    """One lease: `events` times its holder dies, releases it, or loses it to a steal."""
    random = Random(seed)
    ends = begins + int(minutes * 60 * SECOND)
    spans: list[Span] = []
    marks: list[Mark] = []
    moments: list[int] = []
    holder = f"{name}-{random.randrange(4)}"
    writer = f"system:serviceaccount:{namespace}:{name}"
    since = begins
    at = begins
    changes = sorted(random.sample(range(begins + 20 * SECOND, ends - 30 * SECOND), events)) if events else []
    for change in changes:
        if change <= since + interval:
            continue
        at = _renewals(moments, at, change, interval)
        successor = f"{name}-{(int(holder[-1]) + 1 + random.randrange(3)) % 4}"
        match random.randrange(5):
            case 0 | 1:
                expires = at + DURATION * SECOND
                taken = expires + random.randrange(SECOND // 2, 4 * SECOND)
                spans.append(Span(SpanKind.HELD, since, expires, holder, writer, "checkout"))
                spans.append(Span(SpanKind.OVERDUE, expires, taken, holder, writer))
                text = f"{successor} took it over from {holder}, which renewed it {(taken - at) / 1e6:.1f} s before"
                marks.append(Mark(MarkKind.TAKEOVER_BY_EXPIRY, taken, text, successor, writer))
            case 2 | 3:
                taken = change + random.randrange(SECOND // 10, 3 * SECOND)
                spans.append(Span(SpanKind.HELD, since, change, holder, writer, "checkout"))
                spans.append(Span(SpanKind.LEADERLESS, change, taken))
                marks.append(Mark(MarkKind.RELEASE, change, f"{holder} released the lease", "", writer))
                text = f"{successor} took the released lease"
                marks.append(Mark(MarkKind.TAKEOVER_BY_RELEASE, taken, text, successor, writer))
            case _:
                taken = change
                successor = "intruder-0"
                spans.append(Span(SpanKind.HELD, since, change, holder, writer, "checkout"))
                text = f"intruder took it from {holder}, which had renewed it {(change - at) / 1e6:.1f} s before"
                marks.append(
                    Mark(MarkKind.WARNED, taken, "takeover-before-expiry: the lease is live", successor, "other/x")
                )
                by, until = "system:serviceaccount:other:intruder", at + DURATION * SECOND
                marks.append(Mark(MarkKind.STEAL, taken, text, successor, by, contested_until=until))
        since = at = taken
        holder = successor
    _renewals(moments, at, ends, interval)
    spans.append(Span(SpanKind.HELD, since, None, holder, writer, "checkout"))
    marks.sort(key=lambda mark: mark.begins)
    return Lane(namespace, name, DURATION, tuple(spans), Ticks(tuple(moments)), tuple(marks))


def _renewals(moments: list[int], since: int, until: int, interval: int) -> int:
    """Renew from `since` until before `until`; the last one."""
    at = since
    while at < until:
        moments.append(at)
        at += interval
    return moments[-1] if moments else since


def sample_timeline(leases: int, *, events: int = 4, minutes: float = 10, interval: int = 2 * SECOND) -> Timeline:
    """So many leases of three namespaces."""
    namespaces = ("kube-system", "payments", "shop")
    lanes = [
        sample_lane(
            f"controller-{number}", seed=number, events=0 if leases > 50 and number % 3 else events,
            minutes=minutes, namespace=namespaces[number % 3], interval=interval,
        )
        for number in range(leases)
    ]  # fmt: skip
    ends = NOON + int(minutes * 60 * SECOND)
    return Timeline(NOON, ends, tuple(lanes), (), ("leases.json",), None)


def hostile_timeline() -> Timeline:
    """Each hostile name as lease, holder, writer, manager, text and source."""
    lanes = tuple(
        Lane(
            name, name, DURATION,
            (
                Span(SpanKind.HELD, NOON, NOON + 60 * SECOND, name, name, name),
                Span(SpanKind.LEADERLESS, NOON + 60 * SECOND),
            ),
            Ticks((NOON, NOON + SECOND), (Bucket(NOON - 9 * SECOND, NOON - SECOND, 4),)),
            (Mark(MarkKind.DENIED, NOON + 30 * SECOND, name, name, name),),
        )
        for name in HOSTILE_NAMES
    )  # fmt: skip
    return Timeline(NOON, NOON + 120 * SECOND, lanes, HOSTILE_NAMES, HOSTILE_NAMES, NOON)
