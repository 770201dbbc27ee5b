"""The figures as a page of the docs."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from lab.e2e.fence.cost import MAX_ADDED, Cost
from lab.e2e.fence.facts import Fact
from lab.e2e.fence.history import Figures
from lab.e2e.fence.run import Outcome
from lab.e2e.fence.stall import StallFigures, has_passed, render_rows
from lab.e2e.quantile import find_quantile

_INTRODUCTION: Final = """\
# The fence in figures

Made by `make fence` {circumstances}, in {minutes:.0f} minutes. What runs side by side shares its cores: read the times
as upper limits. Trials of each fault with each library: {trials} (the crash of an API server once with
client-go), with and without a fence side by side in the same run. Two pods append to one object as fast as they
can, without a resourceVersion; the order is that of the resourceVersions that the API server gave.

- **foreign**: stored writes of a pod while another pod held the lease;
- **interleaved**: those of them that were stored after the first write of the new holder: the damage;
- **sent after**: those of them that were *sent* after that first write was answered. With a fence this must be 0: what
  remains was in flight when the lease moved;
- **honest, refused**: writes of the holder that were refused, within a second of its acquisition and later. The latter
  must be 0. A refusal by RBAC, which an API server gives while it starts, is not counted.

The time to the first accepted write has two parts with controller-runtime: it starts its caches after it is elected.
"""


_OF_COSTS: Final = f"""
## What a write costs

How much longer a write takes with a fence, and with a policy that has the same match and the same
Lease as its parameter but only the expression `true`, which is the minimum cost of such a policy. Medians of the
differences to the same write without a policy, in the quietest round, and those of all rounds; nothing else ran on that
API server. The bars are +{MAX_ADDED["fence"]} ms, and +{MAX_ADDED["clock"]} ms with a token and a clock.
They are of updates by a leader that has renewed its lease, and do not apply to v1.31, which upstream no longer
maintains. A creation costs more with a token, because it is always stamped.

What a token costs is the policy that stamps: an API server writes the object as JSON and reads it again for each policy
that mutates, and then calls all mutating plugins again, also if nothing changes. So that policy is not evaluated for an
update of an object that has the token of the term.

| Kubernetes | | the fence | with a token | with a token and a clock | a policy that allows everything | |
|---|---|---|---|---|---|---|"""
_OF_STALLS: Final = """
### The watches of two of three API servers are late

Takeovers while the watches on leases of the second and the third API server are held, for 0.5, 3 and 8 s in turn; all
four kinds side by side, each in a namespace with stamps. The deposed leader goes on writing by all three API servers,
as fast as it can, and deletes an object by the second one at the end. The third one learns of the takeover last.
Afterwards a healthy leader creates, updates, applies and deletes by the first two. The times are those of four kinds at
once, beside other work; what each costs alone is below.
"""


class Section(Struct, frozen=True):
    """The results on one version of Kubernetes."""

    version: str
    outcomes: tuple[Outcome, ...]
    facts: tuple[Fact, ...]
    stalls: dict[str, StallFigures] | None = None

    @property
    def passed(self) -> bool:
        """True if every bar holds."""
        as_promised = all(one.passed for one in self.outcomes) and all(one.passed for one in self.facts)
        return (
            bool(self.outcomes or self.stalls or self.facts)
            and as_promised
            and (self.stalls is None or has_passed(self.stalls))
        )


def render(sections: Sequence[Section], costs: Sequence[Cost], trials: int, circumstances: str, minutes: float) -> str:
    """Return the page."""
    head = _INTRODUCTION.format(circumstances=circumstances, minutes=minutes, trials=trials)
    lines = [*(line for section in sections for line in _render_section(section)), *_render_costs(costs)]
    return "\n".join([head, *lines])


def _render_costs(costs: Sequence[Cost]) -> Iterator[str]:
    if not costs:
        return
    yield _OF_COSTS
    yield from (row for one in costs for row in one.rows)


def _render_section(section: Section) -> Iterator[str]:
    yield f"## kube-apiserver {section.version}\n"
    if section.outcomes:
        yield from _render_faults(section)
    if section.stalls:
        yield _OF_STALLS
        yield from render_rows(section.stalls)
    if section.facts:
        yield "\nSingle requests, each as it must be:\n"
        yield from (
            f"- {one.claim}" if one.passed else f"- **FAILED** {one.claim}: {one.observation}" for one in section.facts
        )


def _render_faults(section: Section) -> Iterator[str]:
    yield (
        "| fault | library | stored writes, foreign / interleaved / sent after, **without** | the same **with** the "
        "fence | refused | honest, refused: first second / later | takeover to first refused | to first accepted |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for outcome in section.outcomes:
        bad = "" if outcome.passed else f"**FAILED** {outcome.error} "
        delays = outcome.fenced.to_first_refused if outcome.is_active else ()
        yield (
            f"| {bad}{outcome.fault} | {outcome.library} "
            f"| {_format_counts(outcome.without)} | {_format_counts(outcome.fenced)} "
            f"| {outcome.fenced.refused} | {outcome.fenced.early} / {outcome.fenced.late} "
            f"| {_format_times(delays)} | {_format_times(outcome.fenced.to_first_accepted)} |"
        )


def _format_counts(figures: Figures) -> str:
    return f"{figures.foreign} / {figures.interleaved} / {figures.sent_late} of {figures.stored}"


def _format_times(times: Sequence[float]) -> str:
    if not times:
        return "-"
    return f"{find_quantile(times, 0.5):.1f} ms (worst {max(times):.1f})"
