"""The savings of each fast path of docs/design.md: CPU of one takeover with it and without it: `make fast-paths`.

Half a minute. A review goes the whole way, over a transport that only keeps what it is given; the rounds of both ways
take turns, and the median of their ratios counts.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Final

import msgspec
import pytest
from msgspec import Struct

from tests.server.connections import connect, make_port, request, served, take_the_long_way
from tests.server.test_known_heads import forgetful_port
from tools.circumstances import Circumstances, find_circumstances
from tools.docs.pages import ROOT
from webhook.admission.rules.election import renewal_stamp
from webhook.kubernetes import review

RECORDED: Final = ROOT / "tests" / "data" / "recordings" / "1.36.3" / "client-go" / "04-update-takeover.json"
RESULTS: Final = Path(__file__).with_name("fast-paths.json")
PAGE: Final = ROOT / "docs" / "design.md"
START: Final = "<!-- written by make fast-paths -->"
END: Final = "<!-- end of what make fast-paths writes -->"
ROUNDS: Final = 61
REVIEWS: Final = 400


class Saving(Struct, frozen=True):
    """Microseconds of one review with a fast path and without it, and the share that it saves."""

    path: str
    fast: float
    general: float
    share: float


class Measured(Struct, frozen=True):
    """The savings of one run, and when and where that was."""

    circumstances: Circumstances
    rows: list[Saving]


def measure_savings() -> list[Saving]:
    """Measure each fast path."""
    body = RECORDED.read_bytes().strip()
    length = b"Content-Length: %d" % len(body)
    line = b"POST /validate?timeout=10s HTTP/1.1"
    data = request(line, b"Host: a", b"Content-Type: application/json", length, body=body)
    (connection, wire), (forgetful, other) = connect(make_port()), connect(forgetful_port())
    flasks, flasks_wire = connect(take_the_long_way(served()).ports[0])

    def send() -> None:
        wire.written = b""
        connection.data_received(data)

    def parse() -> None:
        other.written = b""
        forgetful.data_received(data)

    def send_routed() -> None:
        flasks_wire.written = b""
        flasks.data_received(data)

    @contextmanager
    def read_in_parts() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(review, "_decode_whole", review._decode_parts)
            yield

    @contextmanager
    def search_entries() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(renewal_stamp, "has_usual_entries", lambda _change: False)
            yield

    return [
        _measure("before Flask's routing", send, send_routed),
        _measure("`KnownHeads`", send, parse),
        _measure("a review in one pass", send, send, without=read_in_parts),
        _measure("`has_usual_entries`", send, send, without=search_entries),
    ]


def _measure(
    name: str,
    fast: Callable[[], object],
    general: Callable[[], object],
    without: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Saving:
    rounds = []
    for _ in range(ROUNDS):
        fast_time = _measure_microseconds(fast)
        with without():
            rounds.append((fast_time, _measure_microseconds(general)))
    share = 1 - statistics.median(one / other for one, other in rounds)
    with_it, without_it = (round(statistics.median(times), 1) for times in zip(*rounds, strict=True))
    return Saving(name, with_it, without_it, round(share, 3))


def _measure_microseconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    for _ in range(REVIEWS):
        work()
    return (time.process_time() - began) / REVIEWS * 1e6


def make_table(measured: Measured) -> str:
    """Return the rows in Markdown, after a sentence about the run."""
    rows = (f"| {one.path} | {one.fast:.0f} us | {one.general:.0f} us | {one.share:.0%} |\n" for one in measured.rows)
    head = "| fast path | CPU of a takeover | without it | saves |\n|---|---|---|---|\n"
    return f"Measured {measured.circumstances}.\n\n{head}{''.join(rows)}"


def main() -> int:
    """Measure, print the table, and write it into docs/design.md; return 1 if a fast path saves less than a tenth."""
    argparse.ArgumentParser(prog="python -m lab.fast_paths", description=__doc__.partition("\n")[0]).parse_args()
    measured = Measured(find_circumstances(), measure_savings())
    print(make_table(measured))
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(measured)) + b"\n")
    before, _, rest = PAGE.read_text().partition(START)
    PAGE.write_text(f"{before}{START}\n{make_table(measured)}{END}{rest.partition(END)[2]}")
    return int(any(one.share < 0.1 for one in measured.rows))


if __name__ == "__main__":
    raise SystemExit(main())
