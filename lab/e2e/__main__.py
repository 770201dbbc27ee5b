"""`make e2e`: prove the webhook on real API servers, print a table, write RESULTS.md. Exit 1 when anything fails."""

import argparse
import concurrent.futures
import datetime as dt
import os
import platform
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from lab.e2e.control_plane import ControlPlane
from lab.e2e.table import Results, render, write
from lab.e2e.toolchain import KUBECTL, VERSIONS, Binaries, MissingToolchainError, build_all_binaries
from lab.e2e.topic_list import ALONE, BY_NAME, TOPICS, Topic
from lab.e2e.world import Row, World, complete_rows, list_not_run
from tools.circumstances import find_circumstances

PLANES_AT_ONCE = 3
FULL = (VERSIONS[0], VERSIONS[-1])
"""The versions on which everything runs; on the others, what must hold everywhere."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all topics, or the chosen ones. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m lab.e2e", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=BY_NAME, help="only these topics, on every version")
    parser.add_argument("--without", nargs="+", default=[], choices=BY_NAME, help="all but these topics")
    parser.add_argument(
        "--kubernetes", nargs="+", default=[""], help="only versions that begin so, for example v1.36 v1.31"
    )
    parser.add_argument("--full", nargs="*", default=FULL, help="versions that begin so run every topic, not just some")
    parser.add_argument("--required", action="store_true", help="fail, and do not skip, where Go is missing")
    parser.add_argument(
        "--repeat",
        action="store_true",
        help="run a topic that fails once more, on a fresh control plane; the second run decides, both are shown",
    )
    parser.add_argument("--keep", type=Path, help="keep logs in this directory")
    options = parser.parse_args(arguments)
    # Ended from outside, the run still stops what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        binaries = build_all_binaries(*options.kubernetes)
    except MissingToolchainError as error:
        if options.required:
            print(f"FAILED: {error}", file=sys.stderr)
            return 1
        print(f"\n*** SKIPPED, nothing was tested: {error} ***\n", file=sys.stderr)
        return 0
    if not binaries:
        print(f"FAILED: no version begins with {' or '.join(options.kubernetes)}", file=sys.stderr)
        return 1
    begin = dt.datetime.now(dt.UTC)
    topics_by_version = {
        entry.version: _choose(options, full=len(binaries) == 1 or entry.version.startswith(tuple(options.full)))
        for entry in binaries
    }
    if not all(topics_by_version.values()):
        print("FAILED: no topic is left to run", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="lease-webhook-e2e-") as temporary:
        directory = (options.keep or Path(temporary)).absolute()
        rows = _prove_all(binaries, directory, topics_by_version)
        failed = {
            version: [name for name, rows_of_topic in topics.items() if not _has_passed(rows_of_topic)]
            for version, topics in rows.items()
        }
        if any(failed.values()) and options.repeat:
            topics_to_repeat = "; ".join(f"{version} {' '.join(names)}" for version, names in failed.items() if names)
            print(f"{topics_to_repeat}: failed, run once more on fresh control planes", file=sys.stderr)
            again = _prove_all(binaries, directory / "repeated", failed)
            for version, topics in again.items():
                rows[version] |= {
                    name: _merge_rows(rows[version][name], rows_of_topic) for name, rows_of_topic in topics.items()
                }
    minutes = (dt.datetime.now(dt.UTC) - begin).total_seconds() / 60
    print(render(rows))
    not_run = [f"{version} {what}" for version, topics in rows.items() for what in list_not_run(topics)]
    print("".join(f"NOT RUN {what}\n" for what in not_run), end="", file=sys.stderr)
    if not options.only and not options.without and len(rows) == len(VERSIONS) and not not_run:
        programs = _describe_programs(binaries)
        write(
            Results(find_circumstances(), round(minutes, 1), is_repeated=options.repeat, programs=programs, rows=rows)
        )
    failures = [
        f"FAILED {version} {name}: {row.claim}: {row.observation}"
        for version, topics in rows.items()
        for name, rows_of_topic in topics.items()
        for row in rows_of_topic
        if not row.passed
    ]
    print("\n".join(failures), file=sys.stderr)
    return 1 if failures else 0


def _choose(options: argparse.Namespace, *, full: bool) -> list[str]:
    """Return the names of the topics that run on a version."""
    names = options.only or [topic.name for topic in TOPICS if full or topic.everywhere]
    return [name for name in names if name not in options.without]


def _prove_all(
    binaries: Sequence[Binaries], directory: Path, topics_by_version: Mapping[str, Collection[str]]
) -> dict[str, dict[str, list[Row]]]:
    """Return the rows of each chosen topic by version.

    Control planes run side by side, but for the one that must be alone.
    """
    rows: dict[str, dict[str, list[Row]]] = {entry.version: {} for entry in binaries}
    jobs = [
        (
            entry,
            name,
            [topic for topic in TOPICS if topic.plane == name and topic.name in topics_by_version[entry.version]],
        )
        for entry in binaries
        for name in dict.fromkeys(topic.plane for topic in TOPICS)
    ]
    for alone in (False, True):
        waiting = [job for job in jobs if (job[1] == ALONE) == alone and job[2]]
        with concurrent.futures.ThreadPoolExecutor(1 if alone else PLANES_AT_ONCE) as pool:
            begun = [
                (entry.version, pool.submit(_prove_or_fail, entry, directory / entry.version / name, topics))
                for entry, name, topics in waiting
            ]
            for version, run in begun:
                rows[version] |= run.result()
    return rows


def _prove_or_fail(binaries: Binaries, directory: Path, topics: Sequence[Topic]) -> dict[str, list[Row]]:
    """Return the rows of each topic; without a control plane each topic has failed, so that it may be repeated."""
    try:
        return _prove(binaries, directory, topics)
    except Exception as error:  # noqa: BLE001 - the other control planes still run
        traceback.print_exc()
        failed = Row("has a control plane", f"{type(error).__name__}: {error}".splitlines()[0], passed=False)
        return {topic.name: [failed] for topic in topics}


def _prove(binaries: Binaries, directory: Path, topics: Sequence[Topic]) -> dict[str, list[Row]]:
    """Return the rows of each of the topics, which share a control plane."""
    directory.mkdir(parents=True, exist_ok=True)
    rows: dict[str, list[Row]] = {}
    with ControlPlane(binaries, directory) as plane:
        world = World(plane)
        if not any(topic.name == "manifests" for topic in topics):  # it applies the Service itself
            world.create_local_service()
        for lanes in _split_into_phases(topics):
            with concurrent.futures.ThreadPoolExecutor() as pool:
                for rows_of_lane in pool.map(
                    lambda lane: {topic.name: _run_topic(world, topic) for topic in lane}, lanes
                ):
                    rows |= rows_of_lane
    return rows


def _has_passed(rows: Sequence[Row]) -> bool:
    return bool(rows) and all(row.passed for row in rows)


def _merge_rows(first: Sequence[Row], second: Sequence[Row]) -> list[Row]:
    """Return the rows of the second run, with what failed in the first beside them."""
    failed = "; ".join(f"{row.claim}: {row.observation}" for row in first if not row.passed)
    return [*second, Row("at the first attempt", failed, passed=_has_passed(second))]


def _split_into_phases(topics: Sequence[Topic]) -> Iterator[list[list[Topic]]]:
    """Yield the lanes of each phase, in the order of the phases."""
    for phase in sorted({topic.phase for topic in topics}):
        lanes: dict[int, list[Topic]] = {}
        for topic in topics:
            if topic.phase == phase:
                lanes.setdefault(topic.lane, []).append(topic)
        yield list(lanes.values())


def _run_topic(world: World, topic: Topic) -> list[Row]:
    """Return all rows of one topic.

    An exception becomes a failed row, so that the other topics still report.
    """
    rows: list[Row] = []
    version = world.plane.binaries.version
    begin = before = time.monotonic()
    try:
        for row in topic.run(world):
            now = time.monotonic()
            line = f"{version} {topic.name} {row.mark} ({now - before:.0f} s): {row.claim}: {row.observation}"
            print(line, file=sys.stderr, flush=True)
            before = now
            rows.append(row)
    except Exception as error:  # noqa: BLE001 - any failure is a row, and the command fails
        traceback.print_exc()
        rows.append(Row("runs to its end", f"{type(error).__name__}: {error}".splitlines()[0], passed=False))
    complete_rows(rows)
    print(f"{version} {topic.name} took {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    return rows


def _describe_programs(binaries: Sequence[Binaries]) -> str:
    versions = ", ".join(f"kube-apiserver {entry.version} with client-go {entry.client_go}" for entry in binaries)
    return (
        f"{versions}; kubectl {KUBECTL}, kubernetes_asyncio {binaries[0].kubernetes_asyncio}, "
        f"Python {platform.python_version()}, {os.cpu_count()} cores"
    )


if __name__ == "__main__":
    sys.exit(main())
