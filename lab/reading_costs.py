"""The cost of `audit` and `why` for large inputs, and the length of `why`, into docs/figures.md: `make reading`.

About three minutes. Times are those of the processor; exit code 1 if a bar is missed.
"""

import argparse
import contextlib
import gzip
import io
import json
import random
import shutil
import statistics
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from lab.child_cost import Cost, measure_cost
from tests.factories import Document, make_lease, put
from tests.inputs.events import make_event
from tools.circumstances import Circumstances, find_circumstances
from tools.docs.pages import ROOT
from webhook.cli.main import main as run_command

LEASES: Final = 100_000
FEW: Final = 10_000
LOG_MEGABYTES: Final = 1000
JQ_MEGABYTES: Final = 50
MOST_OF_JQ: Final = 2.5
MOST_WORDS: Final = 73
NOW: Final = "2025-11-20T12:00:04Z"


_EACH: Final = (
    put("auditID", "@ID"),
    put("objectRef.name", "@NAME"),
    put("requestReceivedTimestamp", "@AT"),
    put("stageTimestamp", "@AT"),
)
"""Marks in place of the values that differ between events of a log."""
RESULTS: Final = Path(__file__).with_name("reading-costs.json")
PAGE: Final = ROOT / "docs" / "figures.md"


class Row(Struct, frozen=True):
    """One figure and its bar."""

    what: str
    found: str
    bar: str
    is_met: bool


def dump(count: int) -> Iterator[str]:
    """Yield the output of kubectl for so many leases, in no order: each has a holder and times of its own."""
    drawn = random.Random(1)
    lease = make_lease(
        put("metadata.name", "NAME"),
        put("metadata.uid", "UID"),
        put("metadata.resourceVersion", "REVISION"),
        put("spec.holderIdentity", "NAME_HOLDER"),
        put("spec.renewTime", "2025-11-20T11:59:SECOND.MICROSZ"),
        put("metadata.managedFields[0].time", "2025-11-20T11:59:SECONDZ"),
    )
    item = json.dumps(lease, indent=4).replace("\n", "\n        ")
    numbers = list(range(count))
    drawn.shuffle(numbers)
    yield '{\n    "apiVersion": "v1",\n    "items": [\n        '
    for place, number in enumerate(numbers):
        values = {
            "NAME": f"checkout-{number}",
            "UID": str(uuid.UUID(int=drawn.getrandbits(128))),
            "REVISION": str(drawn.randrange(1, 10**9)),
            "HOLDER": str(uuid.UUID(int=drawn.getrandbits(128))),
            # One of ten has expired.
            "SECOND": str(drawn.randrange(43, 50) if drawn.random() < 0.1 else drawn.randrange(50, 60)),
            "MICROS": f"{drawn.randrange(10**6):06}",
        }
        text = item
        for word, value in values.items():
            text = text.replace(word, value)
        yield ("" if place == 0 else ",\n        ") + text
    yield '\n    ],\n    "kind": "List",\n    "metadata": {"resourceVersion": ""}\n}\n'


def make_mixed_log(megabytes: int) -> Iterator[str]:
    """Yield an audit log in which one event of ten is about a lease, no two alike."""
    pod = make_event(*_EACH, put("objectRef.resource", "pods"), put("objectRef.apiGroup", ""))
    return _make_log([_format(pod).replace("coordination.k8s.io", "apps")] * 9 + [_format_renewal()], megabytes)


def make_lease_log(megabytes: int) -> Iterator[str]:
    """Yield an audit log about nothing but leases, at level RequestResponse, no two events alike."""
    return _make_log([_format_renewal()], megabytes)


def _format_renewal() -> str:
    objects = [
        put(f"{name}.{path}", value)
        for name in ("requestObject", "responseObject")
        for path, value in {
            "metadata.name": "@NAME",
            "metadata.resourceVersion": "@REVISION",
            "metadata.managedFields[0].time": "@SECONDZ",
            "spec.renewTime": "@AT",
        }.items()
    ]
    return _format(make_event(*_EACH, *objects))


def _format(event: Document) -> str:
    return json.dumps(event, separators=(",", ":")) + "\n"


def _make_log(block: Sequence[str], megabytes: int) -> Iterator[str]:
    """Yield the events of a block again and again; each block is a renewal of one of 50 leases, 40 ms later."""
    drawn = random.Random(1)
    begin = datetime(2025, 11, 20, 1, tzinfo=UTC)
    for number in range(megabytes * 1_000_000 // sum(map(len, block))):
        at = begin + number * timedelta(milliseconds=40)
        values = {
            "@NAME": f"checkout{number % 50:02}",
            "@AT": f"{at:%Y-%m-%dT%H:%M:%S.%f}Z",
            "@SECOND": f"{at:%Y-%m-%dT%H:%M:%S}",
            "@REVISION": str(4711 + number),
        }
        for event in block:
            text = event.replace("@ID", str(uuid.UUID(int=drawn.getrandbits(128))))
            for word, value in values.items():
                text = text.replace(word, value)
            yield text


def measure(words: list[str]) -> Cost:
    """Run one of our commands."""
    return measure_cost([sys.executable, "-m", "webhook", *words])


def write_file(path: Path, content: Iterator[str], opened: Callable[..., object] = open) -> float:
    """Write a file; return its size in megabytes, unzipped."""
    size = 0
    with opened(path, "wt") as file:  # type: ignore[attr-defined]
        for text in content:
            file.write(text)
            size += len(text)
    return size / 1e6


def measure_rows(directory: Path) -> Iterator[Row]:
    """Measure everything."""
    yield count_words()
    large, few = directory / "large.json", directory / "few.json"
    write_file(large, dump(LEASES))
    write_file(few, dump(FEW))
    peer = measure_cost(["jq", "-c", ".items[]", str(large)]).seconds if shutil.which("jq") else None
    cost = measure(["audit", "--input", str(large), "--now", NOW])
    yield from _compare_with_jq("`audit`", cost, peer)
    yield Row(f"`audit` of {LEASES:,} leases in a dump, CPU", f"{cost.seconds:.1f} s", "<= 20 s", cost.seconds <= 20)
    yield Row("its memory", f"{cost.mebibytes:.0f} MiB", "<= 400 MiB", cost.mebibytes <= 400)
    for what, words in (("the table of", []), ("one of", ["shop/checkout-7"])):
        cost = measure(["why", *words, "--input", str(large), "--now", NOW])
        yield from _compare_with_jq("`why`", cost, peer) if not words else ()
        text = f"`why`, {what} {LEASES:,} leases in a dump, CPU"
        yield Row(text, f"{cost.seconds:.1f} s", "<= 12 s", cost.seconds <= 12)
        yield Row("its memory", f"{cost.mebibytes:.0f} MiB", "<= 150 MiB", cost.mebibytes <= 150)
    large.unlink()
    why_command = ["why", "shop/checkout-7", "--input", str(few), "--now", NOW]
    seconds = min(measure(why_command).seconds for _ in range(5))
    yield Row(f"`why` of one lease in a dump of {FEW:,}, CPU", f"{seconds:.2f} s", "<= 1.5 s", seconds <= 1.5)
    for what, content in (
        ("one event of ten is about a lease", make_mixed_log),
        ("nothing but leases", make_lease_log),
    ):
        log = directory / "audit.log"
        size = write_file(log, content(LOG_MEGABYTES))
        for command in ("why", "audit"):
            cost = measure([command, "--input", str(log)])
            yield _make_speed_row(f"`{command}` of an audit log of 1 GB, {what}", size, cost)
            yield Row("its memory", f"{cost.mebibytes:.0f} MiB", "<= 100 MiB", cost.mebibytes <= 100)
            if command == "why" and shutil.which("jq"):
                yield _measure_peer(log, size / cost.seconds)
        log.unlink()
    zipped = directory / "audit.log.gz"
    size = write_file(zipped, make_mixed_log(LOG_MEGABYTES // 10), gzip.open)
    cost = measure(["why", "--input", str(zipped)])
    yield _make_speed_row("`why` of 100 MB of it, gzipped", size, cost)


def _compare_with_jq(command: str, ours: Cost, peer: float | None) -> Iterator[Row]:
    """Yield how many times the CPU of jq a command takes that reads the same list."""
    if peer is not None:
        times = ours.seconds / peer
        what = f"{command} of {LEASES:,} leases, times the CPU of `jq -c '.items[]'`"
        yield Row(what, f"{times:.1f}", f"<= {MOST_OF_JQ}", times <= MOST_OF_JQ)


def count_words() -> Row:
    """Count the words of `why` on the audit log of each stored incident, without --verbose."""
    numbers: list[int] = []
    for truth in sorted(ROOT.glob("tests/data/*incidents/*/truth.json")):
        content = json.loads(truth.read_text())
        lease = f"{content['namespace']}/{content.get('lease') or content['name']}"
        texts = (print_output(["why", lease, "--input", str(log)]) for log in truth.parent.glob("audit*.gz"))
        numbers += [len(text.split()) for text in texts]
    median = statistics.median(numbers)
    what = f"`why` of each of {len(numbers)} audit logs of incidents, median"
    return Row(what, f"{median:.0f} words", f"<= {MOST_WORDS} words", median <= MOST_WORDS)


def print_output(words: list[str]) -> str:
    """Return what a command prints. Raises RuntimeError if it fails or prints nothing, which would be short."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        status = run_command(words)
    text = out.getvalue()
    if status or not text.strip():
        raise RuntimeError(f"{' '.join(words)}: status {status}, {len(text)} characters")
    return text


def _measure_peer(log: Path, ours: float) -> Row:
    """Measure jq on the start of a log, which is as long as a few seconds of it."""
    start = log.with_name("start.log")
    with log.open() as whole, start.open("w") as file:
        file.writelines(whole.readlines(JQ_MEGABYTES * 1_000_000))
    theirs = start.stat().st_size / 1e6 / measure_cost(["jq", "-c", ".", str(start)]).seconds
    start.unlink()
    return Row(f"`jq -c` of {JQ_MEGABYTES} MB of it", f"{theirs:.0f} MB/s", "not faster than `why`", theirs <= ours)


def _make_speed_row(what: str, size: float, cost: Cost) -> Row:
    speed = size / cost.seconds
    return Row(f"{what}, for one core", f"{speed:.0f} MB/s", ">= 40 MB/s", speed >= 40)


class Measured(Struct, frozen=True):
    """The figures of one run, and when and where that was."""

    circumstances: Circumstances
    rows: list[Row]


def make_table(measured: Measured) -> str:
    """Return the rows in Markdown, after a sentence about the run."""
    lines = (
        f"| {row.what} | {row.bar} | {row.found} | {'met' if row.is_met else 'missed'} |\n" for row in measured.rows
    )
    head = "| what | bar | measured |  |\n| --- | --- | --- | --- |\n"
    return f"Measured {measured.circumstances}.\n\n{head}{''.join(lines)}"


def publish(rows: list[Row], results: Path, target: str) -> None:
    """Print the table of a make target, and write it into docs/figures.md."""
    measured = Measured(find_circumstances(), rows)
    print(make_table(measured))
    results.write_bytes(msgspec.json.format(msgspec.json.encode(measured)) + b"\n")
    start, end = f"<!-- written by make {target} -->", f"<!-- end of what make {target} writes -->"
    before, _, rest = PAGE.read_text().partition(start)
    _, _, after = rest.partition(end)
    PAGE.write_text(f"{before}{start}\n{make_table(measured)}{end}{after}")


def main() -> int:
    """Measure, print the table, and write it into docs/figures.md."""
    argparse.ArgumentParser(prog="python -m lab.reading_costs", description=__doc__.partition("\n")[0]).parse_args()
    with tempfile.TemporaryDirectory() as name:
        measured = [*measure_rows(Path(name))]
    publish(measured, RESULTS, "reading")
    return 0 if all(row.is_met for row in measured) else 1


if __name__ == "__main__":
    raise SystemExit(main())
