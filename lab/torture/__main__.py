"""`make torture`: electors of four languages while everything fails, with lease-webhook and without it.

Every run is drawn from a seed, which is printed. A history in which a law is broken is stored, and checked again by
`--check FILE`. `--results` writes the table into docs/torture.md.
"""

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from lab.e2e.toolchain import Binaries, MissingToolchainError, build_all_binaries, find_cache_directory
from lab.spec.__main__ import install_packages, write_between
from lab.torture.electors import build_porcupine
from lab.torture.history import History, keep, read_history
from lab.torture.laws import Verdict, check_history
from lab.torture.run import KINDS, Run
from tools.circumstances import Circumstances, find_circumstances

RESULTS: Final = Path(__file__).parent / "results.json"
PAGE: Final = Path(__file__).parents[2] / "docs" / "torture.md"
CONDITIONS: Final = {
    "seconds": "seconds",
    "faults": "faults",
    "attacks": "attacks",
    "versions of leases": "versions of leases",
    "register operations": "register operations",
}
"""Figures about what was done in a run, by what the table calls them."""
OUTCOMES: Final = {
    "stolen": "stolen",
    "leaders' writes": "writes of leaders",
    "interleaved": "interleaved writes",
    "stranger's writes": "writes of a stranger",
    "no leader, reviewed": "leaderless reviewed",
    "no leader, stamped": "leaderless stamped",
}
"""Figures about what came of it, by what the table calls them."""


class Result(Struct, frozen=True):
    """The result of a run: the presence of lease-webhook, violations, and the API servers' versions.

    `missing` are the electors that could not be built, and TLC where it did not check. A result that lacks something is
    not stored: the page is about runs with all of it.
    """

    seed: int
    protected: bool
    missing: tuple[str, ...]
    verdict: Verdict
    versions: tuple[str, ...]
    circumstances: Circumstances


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the seeds. Return 1 if a law was broken."""
    parser = argparse.ArgumentParser(prog="python -m lab.torture", description=__doc__)
    parser.add_argument("--seeds", default="", help="numbers with commas; otherwise one is drawn")
    parser.add_argument("--minutes", type=float, default=10.0, help="of each run")
    parser.add_argument("--without", action="store_true", help="the same runs once more without lease-webhook")
    parser.add_argument("--kubernetes", nargs="+", default=["v1.37"], help="versions of the API servers, in turn")
    parser.add_argument("--check", type=Path, nargs="*", default=[], help="check stored histories, and run nothing")
    parser.add_argument("--keep", type=Path, help="keep every history in this directory")
    parser.add_argument("--results", action="store_true", help="add the runs to what docs/torture.md shows")
    parser.add_argument("--no-specification", action="store_true", help="leave out TLC")
    options = parser.parse_args(arguments)
    # Ended from outside, the run still stops what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        program = build_porcupine()
        binaries = [build_all_binaries(version)[0] for version in options.kubernetes]
    except MissingToolchainError as error:
        print(f"FAILED, nothing was tested: {error}", file=sys.stderr)
        return 1
    without_java = shutil.which("java") is None
    if without_java:
        print("*** there is no Java: TLC does not check the histories ***", file=sys.stderr)
    packages = None if options.no_specification or without_java else install_packages()
    if options.check:
        histories, now = [read_history(file) for file in options.check], find_circumstances()
        new = [
            Result(
                one.seed,
                one.protected,
                list_missing(one, packages),
                check_history(one, program, packages),
                one.versions,
                now,
            )
            for one in histories
        ]
        has_problems = [_is_mentioned(str(file), one) for file, one in zip(options.check, new, strict=True)]
        if options.results:
            write(new)
        return int(any(wrong for wrong, one in zip(has_problems, new, strict=True) if one.protected))
    seeds = [int(text) for text in options.seeds.split(",") if text] or [random.randrange(10**6)]
    runs = [(seed, protected) for seed in seeds for protected in ((True, False) if options.without else (True,))]
    results = []
    for seed, protected in runs:
        results.append(_run_one(binaries, seed, options, program, packages, protected=protected))
        if options.results:
            write(results[-1:])
    return int(any(one.verdict.problems for one in results if one.protected))


def _run_one(
    binaries: Sequence[Binaries],
    seed: int,
    options: argparse.Namespace,
    program: Path,
    packages: Path | None,
    *,
    protected: bool,
) -> Result:
    name = f"seed-{seed}{'' if protected else '-without'}"
    print(f"seed {seed}, {options.minutes:g} minutes, {'with' if protected else 'without'} lease-webhook", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lease-webhook-torture-") as folder, ExitStack() as stack:
        run = Run(stack, binaries, Path(folder) / "cluster", seed, protected=protected)
        history = run.play(options.minutes * 60)
        reasons = run.programs.missing
    for fault in history.faults:
        print(f"  {fault}")
    verdict = check_history(history, program, packages)
    if verdict.problems and protected:
        file = find_cache_directory() / "torture" / f"{name}.json.gz"
        keep(history, file)
        print(f"FAILED, and stored: python -m lab.torture --check {file}", file=sys.stderr)
    if options.keep:
        keep(history, options.keep / f"{name}.json.gz")
    for language, reason in reasons.items():
        print(f"  NOT RUN: electors in {language}: {reason}")
    missing = list_missing(history, packages)
    result = Result(seed, protected, missing, verdict, history.versions, find_circumstances())
    _is_mentioned(f"{name} ({time.monotonic() - began:.0f} s)", result)
    return result


def list_missing(history: History, packages: Path | None) -> tuple[str, ...]:
    """Return the kinds of electors that were left out, and TLC if it did not check."""
    names = {holder.partition("_")[0] for holder in history.offsets}
    left_out = {
        kind: None
        for namespace, kinds in KINDS.items()
        for number, kind in enumerate(kinds)
        if f"{namespace}-{number}-{kind}" not in names
    }
    return (*left_out, *(() if packages else ("TLC",)))


def write(results: Sequence[Result]) -> None:
    """Replace the runs of the same seeds in what is stored, and write the table; leave out what lacks something."""
    for result in results:
        if result.missing:
            print(f"seed {result.seed} is not stored: without {', '.join(result.missing)}", file=sys.stderr)
    complete = [one for one in results if not one.missing]
    results_by_key = {(one.seed, one.protected): one for one in (*read_stored(), *complete)}
    all_results = [results_by_key[key] for key in sorted(results_by_key, key=lambda key: (key[0], not key[1]))]
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(all_results), indent=1) + b"\n")
    write_between(PAGE, "torture", render_table(all_results))


def read_stored() -> list[Result]:
    """Return the runs of which the page has a table."""
    return msgspec.json.decode(RESULTS.read_bytes(), type=list[Result]) if RESULTS.exists() else []


def render_table(results: Sequence[Result]) -> str:
    """Return the actions of each run, their results, and the times without a leader."""
    lines = [_format_header(["seed", "API servers", "lease-webhook"], CONDITIONS)]
    for result in results:
        label = f"| {result.seed} | {', '.join(result.versions)} | {_format_protection(result)} |"
        lines.append(f"{label}{_format_figures(result, CONDITIONS)}\n")
    lines.append("\n" + _format_header(["seed", "lease-webhook"], [*OUTCOMES, "broken laws"]))
    for result in results:
        problems = len(result.verdict.problems) if result.protected else "-"
        lines.append(
            f"| {result.seed} | {_format_protection(result)} |{_format_figures(result, OUTCOMES)} {problems} |\n"
        )
    for lease in ("reviewed", "stamped"):
        shares = []
        for protected in (True, False):
            runs = [one.verdict.figures for one in results if one.protected == protected]
            seconds, total = (sum(run[name] for run in runs) for name in (f"leaderless {lease}", "seconds"))
            shares.append(seconds / total if total else 0.0)
        ratio = shares[0] / shares[1] if shares[1] else 0.0
        lines.append(
            f"\nThe {lease} lease had no leader for {shares[0]:.1%} of the time with lease-webhook and for "
            f"{shares[1]:.1%} without: {ratio:.2f} times as long.\n"
        )
    lines.append(f"\n{_describe_runs(results)}")
    return "".join(lines)


def _describe_runs(results: Sequence[Result]) -> str:
    """Return when, of which commit and where the seeds ran, a line for each."""
    seeds_by_run: dict[str, list[str]] = {}
    for result in results:
        now = result.circumstances
        where = f"{now.date[:10]}, commit {now.commit}, {now.machine}"
        seeds_by_run.setdefault(where, []).append(f"{result.seed} {_format_protection(result)}")
    return "".join(f"- {where}: seeds {', '.join(seeds)}\n" for where, seeds in seeds_by_run.items())


def _format_header(labels: Collection[str], figures: Collection[str]) -> str:
    return f"| {' | '.join((*labels, *figures))} |\n|{'---|' * len(labels)}{'--:|' * len(figures)}\n"


def _format_protection(result: Result) -> str:
    return "with" if result.protected else "without"


def _format_figures(result: Result, columns: Mapping[str, str]) -> str:
    return "".join(f" {_format_number(result.verdict.figures.get(name))} |" for name in columns.values())


def _format_number(figure: float | None) -> str:
    if figure is None:
        return "-"
    return f"{figure:,.0f}" if figure == int(figure) else f"{figure:,.1f}"


def _is_mentioned(name: str, result: Result) -> bool:
    verdict = result.verdict
    without = f", without {', '.join(result.missing)}" if result.missing else ""
    print(f"{'FAILED' if verdict.problems else 'ok'} {name}{without}")
    for what, figure in verdict.figures.items():
        print(f"  {what}: {figure:g}")
    for problem in verdict.problems:
        print(f"  PROBLEM {problem}")
    sys.stdout.flush()
    return bool(verdict.problems)


if __name__ == "__main__":
    sys.exit(main())
