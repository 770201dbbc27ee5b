"""The arithmetic of expiry for all times, durations and clocks, by Z3. Statements that go too far are refuted.

Real time and clocks are in microseconds, as in `webhook.admission.rules.expiry`; a stamp is the clock of an API
server, cut to a whole second. The formula is written once more here, for numbers and for Z3's terms, and compared with
the rule's.
"""

import random
from typing import Any, Final

from msgspec import Struct

from webhook.admission.rules.expiry import find_expiry
from webhook.kubernetes.managed_fields import Entry
from webhook.kubernetes.times import SECOND

SAMPLES: Final = 100_000
_NO_ENTRIES: Final[tuple[Entry, ...]] = ()


class Statement(Struct, frozen=True):
    """A statement in words for a reader; Z3 must prove it, or find numbers against it."""

    words: str
    holds: bool
    claim: Any


def list_statements(z3: Any) -> tuple[Statement, ...]:
    """Return the statements to prove: a renewal and a takeover, each by an API server with a clock of its own."""
    duration, renewal, takeover, fraction, other_fraction, later = z3.Ints("duration renewed taken one other later")
    stamp, moment = (renewal + fraction) / SECOND, (takeover + other_fraction) / SECOND
    apart = z3.If(fraction > other_fraction, fraction - other_fraction, other_fraction - fraction)
    age = takeover - renewal
    tolerance = z3.If(duration < 10, duration, 10)
    times = z3.And(renewal >= 0, takeover >= renewal, fraction >= 0, other_fraction >= 0, duration >= 1)

    def is_expired_by(after: Any = 0, slack: Any = tolerance) -> Any:
        return 5 * (moment + after - stamp) + slack >= 5 * duration

    def is_admitted(skew: int, low: int, high: int | None, slack: Any = tolerance) -> Any:
        inside = z3.And(times, duration >= low, apart <= skew, age >= duration * SECOND)
        return z3.Implies(z3.And(inside, duration <= high) if high else inside, is_expired_by(slack=slack))

    def is_refused(skew: int, low: int, high: int) -> Any:
        """Return the effect of a fence's clock on a write `age` after the renewal that its API server knows."""
        inside = z3.And(times, duration >= low, duration <= high, apart <= skew, age <= duration * SECOND)
        return z3.Implies(inside, z3.Not(5 * (moment - stamp) > 5 * duration + tolerance))

    longest = 2**31 - 1
    seconds_left = z3.If(duration - (moment - stamp) > 1, duration - (moment - stamp), 1)
    early = duration * SECOND - tolerance * SECOND / 5 - apart - SECOND
    return (
        Statement(
            "a takeover is not denied when the duration has passed, if clocks differ by 2 s at most, from 10 s on",
            True,
            is_admitted(2 * SECOND, 10, None),
        ),
        Statement("the same, if clocks differ by 1 s at most, for 5 to 9 s", True, is_admitted(SECOND, 5, 9)),
        Statement("the same, if clocks do not differ, for 1 to 4 s", True, is_admitted(0, 1, 4)),
        Statement("the same for 1 to 4 s, if clocks differ by a millisecond", False, is_admitted(1000, 1, 4)),
        Statement("the same for 5 to 9 s, if clocks differ by 1.001 s", False, is_admitted(1_001_000, 5, 9)),
        Statement("the same from 10 s on, if clocks differ by 2.001 s", False, is_admitted(2_001_000, 10, None)),
        Statement("the same from 10 s on without a tolerance", False, is_admitted(2 * SECOND, 10, None, 0)),
        Statement(
            "a takeover is denied until the duration has passed, less the tolerance, clocks' difference and a second",
            True,
            z3.Implies(z3.And(times, is_expired_by()), age > early),
        ),
        Statement(
            "the same without the second",
            False,
            z3.Implies(z3.And(times, is_expired_by()), age > early + SECOND),
        ),
        Statement(
            "the same with twice the tolerance",
            False,
            z3.Implies(z3.And(times, is_expired_by(slack=2 * tolerance)), age > early),
        ),
        Statement(
            "what has expired stays expired",
            True,
            z3.Implies(z3.And(times, is_expired_by(), later >= 0), is_expired_by(after=later)),
        ),
        Statement(
            "a takeover is not denied again after the seconds that a denial names",
            True,
            z3.Implies(z3.And(times, z3.Not(is_expired_by())), is_expired_by(after=seconds_left)),
        ),
        Statement(
            "a fence's clock refuses no write while the duration lasts, if clocks differ by 2 s at most, from 10 s on",
            True,
            is_refused(2 * SECOND, 10, longest),
        ),
        Statement("the same, if clocks differ by 1 s at most, for 5 to 9 s", True, is_refused(SECOND, 5, 9)),
        Statement("the same, if clocks do not differ, for 1 to 4 s", True, is_refused(0, 1, 4)),
        Statement("the same, if clocks differ by 2.001 s", False, is_refused(2_001_000, 10, longest)),
    )


def is_expired(duration: int, stamp: int, moment: int) -> bool:
    """Return the result of the statements' formula for stamps in whole seconds."""
    return 5 * (moment - stamp) + min(duration, 10) >= 5 * duration


def count_differences(seed: int) -> int:
    """Count the samples for which the rule and the formula disagree."""
    chance = random.Random(seed)
    differences = 0
    for _ in range(SAMPLES):
        duration = chance.choice((chance.randint(1, 20), chance.randint(1, 2**31 - 1)))
        stamp = chance.randint(0, 4 * 10**9)
        moment = max(0, stamp + chance.choice((chance.randint(-30, 40), duration + chance.randint(-5, 5))))
        rule = find_expiry("a", duration, 0, _NO_ENTRIES, moment * SECOND, moment * SECOND, stamp * SECOND)
        expired = is_expired(duration, stamp, moment)
        seconds_left = 0 if expired else max(1, duration - max(0, moment - stamp))
        if rule.from_stamps and (rule.is_expired, rule.seconds_left) != (expired, seconds_left):
            differences += 1
    return differences


def decide(z3: Any, statement: Statement) -> tuple[str, str]:
    """Return `proven`, `refuted` or `unknown`, and the numbers against it."""
    solver = z3.Solver()
    solver.set("timeout", 60_000)
    solver.add(z3.Not(statement.claim))
    answer = solver.check()
    if answer == z3.unsat:
        return "proven", ""
    if answer == z3.sat:
        model = solver.model()
        return "refuted", ", ".join(f"{name} {model[name]}" for name in sorted(model, key=str))
    return "unknown", ""
