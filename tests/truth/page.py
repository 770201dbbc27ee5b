"""The page docs/claims-figures.md: how many claims were evaluated on how many histories, and how many were false."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.truth.completeness import EXPIRED, HOW, LOSSES, TAKER, WHY
from tests.truth.tally import Tally
from tools.circumstances import find_circumstances

PAGE: Final = Path(__file__).parents[2] / "docs" / "claims-figures.md"
_HEAD: Final = """<!-- Written by `make truth COUNT={count} SEED={first} RESULTS=1`. Do not edit. -->
# Claims, evaluated on histories with known truth

Whether a [claim](claims.md) is true cannot be seen from the input that it is made of. So a simulator (`tests/truth`)
plays random elections of which everything is known: when each process ran, was paused, blocked or cut off, when it
worked as the leader, each request that an API server received and what became of it, and what was made to fail.

- **Electors** write, wait and give up as client-go, controller-runtime, fabric8 and both Python clients do, one to four
  replicas, some with a clock that is off, with local time, without a deadline; coordinated elections follow
  kube-apiserver's algorithm, stall included; in stamped namespaces the policies of [stamps](stamp.md) stamp and refuse.
- **Faults**: kills, stops, pauses, blocked loops, little CPU, cut networks, pods replaced under their names while the
  old process is gone or lives on, clock steps, lost rights, tokens, webhooks and policies that refuse, fail or are
  slow, priority and fairness, slow etcd, one or all API servers down, hanging or slow, clocks of API servers that
  differ, a webhook that rewrites the duration.
- **Outsiders**: GitOps by apply and by patch, restores, cleaners, persons with `kubectl`, a preStop hook, and attackers
  with `get` and `update` who steal, write others in, keep a dead holder alive, release, forge times, plant stamps and
  provoke refusals in others' names.
- Each history is read by `why` and `audit` in each kind of **input**, and every claim in their JSON is evaluated by the
  predicate of its kind (`tests/truth/predicates.py`). Instants are by the API servers' clocks, with 30 ms of slack.
- What is **shown** beside claims is evaluated, too (`tests/truth/shown_predicates.py`): `timeline-` are spans, gaps,
  marks, renewals and numbers of the page, `row-` the cells of the tables of `why` and `top`, `json-` the other keys of
  `why`, `metric-` what the recorder exposes. Instants may be off by a second; what a page says to be by writers'
  clocks, or of the time before the input begins, is not compared with those of API servers.

A claim that is false is shrunk to the smallest history that shows it, and stored: `make truth STORE=FOLDER`. The same
predicates evaluate [incidents recorded on real API servers](incidents.md). Planted defects of claims, such as a wrong
process, time or cause, are noticed (`tests/truth/test_planted.py`).
"""

_SAID: Final = """For each holder that lost the lease, as far as the input shows that time: whether a true claim says to
whom it lost it, and how (after a release, after expiry, while live); and, where it expired, why: one cause, or three at
most."""


def page(tally: Tally, first: int, count: int) -> str:
    """Return the whole page."""
    return "\n".join(
        [
            _HEAD.format(count=count, first=first),
            *_inputs(tally, first, count),
            "",
            *_kinds(tally),
            *_vacuous(tally),
            "",
            *_completeness(tally),
            "",
        ]
    )


def _inputs(tally: Tally, first: int, count: int) -> Iterator[str]:
    yield f"## {count} histories, seeds {first} to {first + count - 1}"
    yield ""
    yield f"Measured {find_circumstances()}."
    yield ""
    yield "| input | histories | claims | false |"
    yield "|---|---|---|---|"
    for kind, histories in sorted(tally.histories.items()):
        numbers = tally.count_input(kind)
        yield f"| {kind} | {histories} | {numbers.total()} | {numbers['false'] + numbers['unknown']} |"
    false = tally.count("false") + tally.count("unknown")
    yield f"| all | {tally.histories.total()} | {tally.claims.total()} | {false} |"


def _kinds(tally: Tally) -> Iterator[str]:
    yield "| claim | true | false |"
    yield "|---|---|---|"
    for claim in sorted({one for one, _, _ in tally.claims}):
        numbers = tally.count_claim(claim)
        yield f"| `{claim}` | {numbers['true']} | {numbers['false'] + numbers['unknown']} |"


def _vacuous(tally: Tally) -> Iterator[str]:
    if vacuous := tally.vacuous():
        yield ""
        yield f"Made of no history: {', '.join(f'`{one}`' for one in vacuous)}."


def _completeness(tally: Tally) -> Iterator[str]:
    yield "## How much is said"
    yield ""
    yield _SAID
    yield ""
    yield "| input | lost | to whom | how | expired | why |"
    yield "|---|---|---|---|---|---|"
    for kind in sorted(tally.histories):
        losses = tally.said.get(kind, Counter())
        shares = _share(losses[TAKER], losses[LOSSES]), _share(losses[HOW], losses[LOSSES])
        why = _share(losses[WHY], losses[EXPIRED])
        yield f"| {kind} | {losses[LOSSES]} | {shares[0]} | {shares[1]} | {losses[EXPIRED]} | {why} |"


def _share(part: int, whole: int) -> str:
    return f"{100 * part // whole} %" if whole else "-"
