r"""`make elector-kit`: run electors on a real API server, break what they rest on, and say what they do wrong.

Any elector can be tried. It is a command line in which {kubeconfig}, {namespace}, {lease}, {identity}, {duration},
{deadline} and {retry} are filled in, and it prints something when it begins to lead and when it ends:

    python -m lab.elector_kit --name mine --command 'mine --config={kubeconfig} --id={identity}' \\
        --started 'became leader' --stopped 'lost'

Without a command the recorded clients are tried that can be built here. `--results` writes what was found into
docs/electors.md.
"""

import argparse
import shlex
import signal
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from lab.e2e.control_plane import ControlPlane
from lab.e2e.electors import ASYNCIO_PROGRAM, THREADS_PROGRAM
from lab.e2e.toolchain import Binaries, MissingToolchainError, build_all_binaries
from lab.e2e.world import World
from lab.elector_kit import checks
from lab.elector_kit.stage import Elector, Stage
from lab.spec.__main__ import write_between
from lab.torture.electors import build_languages
from tools.circumstances import Circumstances, find_circumstances

RESULTS: Final = Path(__file__).parent / "results.json"
WRONG: Final = "one that is wrong on purpose"
"""The last column: each check must find something in it."""
PAGE: Final = Path(__file__).parents[2] / "docs" / "electors.md"
EXAMPLE: Final = Path(__file__).parents[2] / "docs" / "examples" / "python_elector.py"
"""The example of docs/python-electors.md, run as its readers run it."""
_TIMES: Final = "{duration} {deadline} {retry}"
_WORDS: Final = f"{{kubeconfig}} {{namespace}} {{lease}} {{identity}} {_TIMES}"


class Result(Struct, frozen=True):
    """An elector and its violations by check, "" for none."""

    elector: str
    kubernetes: str
    violations: dict[str, str] = msgspec.field(name="found")
    circumstances: Circumstances | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the electors. Return 1 if one that was given as a command has violations."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.elector_kit",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--name", default="elector")
    parser.add_argument("--command", default="", help="an elector; without it the recorded clients")
    parser.add_argument("--started", default='"event": ?"started"', help="a pattern of what it prints when it leads")
    parser.add_argument("--stopped", default='"event": ?"stopped"', help="a pattern of what it prints when it ends")
    parser.add_argument("--only", default="", help="recorded clients whose name contains this text")
    parser.add_argument("--kubernetes", default="v1.37")
    parser.add_argument("--results", action="store_true", help="write what was found into docs/electors.md")
    options = parser.parse_args(arguments)
    # Ended from outside, the run still stops what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        binaries = build_all_binaries(options.kubernetes)[0]
    except MissingToolchainError as error:
        print(f"FAILED, nothing was tested: {error}", file=sys.stderr)
        return 1
    custom = [Elector(options.name, options.command, options.started, options.stopped)] if options.command else []
    electors = custom or [one for one in list_recorded(binaries) if options.only in one.name]
    with tempfile.TemporaryDirectory(prefix="lease-webhook-kit-") as folder:
        directory = Path(folder) / "plane"
        directory.mkdir()
        with ControlPlane(binaries, directory) as plane:
            world = World(plane)
            with ThreadPoolExecutor(len(electors)) as pool:
                findings = list(pool.map(lambda numbered: _try(world, *numbered), enumerate(electors)))
    now = find_circumstances()
    results = [Result(one.name, binaries.version, wrong, now) for one, wrong in zip(electors, findings, strict=True)]
    print(format_results(results))
    if options.results:
        results = _merge_stored(results, binaries)
        RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
        write_between(PAGE, "electors", format_results(results))
    has_failed = bool(custom) and any(any(one.violations.values()) for one in results)
    return 1 if has_failed else 0


def list_recorded(binaries: Binaries) -> list[Elector]:
    """Return the clients that are recorded and can be run here."""
    go = f"{binaries.clients} elector -kubeconfig={{kubeconfig}} -namespaces={{namespace}} -lease={{lease}} "
    go += "-identity={identity} -duration={duration}s -deadline={deadline}s -retry={retry}s"
    example = shlex.join([str(binaries.asyncio_python), str(EXAMPLE)])
    example = f"env KUBECONFIG={{kubeconfig}} {example} {{namespace}} {{lease}} {{identity}} {_TIMES}"
    python, threads = (
        shlex.join([str(binaries.asyncio_python), str(program)]) for program in (ASYNCIO_PROGRAM, THREADS_PROGRAM)
    )
    electors = [
        Elector(f"client-go {binaries.client_go}", f"{go} -release"),
        Elector(f"kubernetes {binaries.kubernetes_python}", f"{threads} {_WORDS}"),
        Elector(f"kubernetes {binaries.kubernetes_python}, {EXAMPLE.name}", example, "^leading", "^lost the lease"),
        Elector(
            f"kubernetes.aio {binaries.kubernetes_python}", f"env ASYNCIO_PACKAGE=kubernetes.aio {python} {_WORDS}"
        ),
        Elector(f"kubernetes_asyncio {binaries.kubernetes_asyncio}", f"{python} {_WORDS}"),
    ]
    names = {"java": "client-java 24.0.0", "rust": "kube-leader-election 0.44.0"}
    electors += [
        Elector(names[name], f"{shlex.join(command)} {_WORDS}") for name, command in build_languages()[0].items()
    ]
    wrong = shlex.join([sys.executable, str(Path(__file__).parent / "wrong_elector.py")])
    return [*electors, Elector(WRONG, f"{wrong} {_WORDS}")]


def format_results(results: Sequence[Result]) -> str:
    """Return a list in Markdown for each elector: in which checks it was wrong, and how."""
    return "\n".join(map(_format_result, results))


def _format_result(result: Result) -> str:
    if reason := result.violations.get("not tried"):
        return f"**{result.elector}** was not tried: {reason}\n"
    wrong = {name: result.violations[name] for name in checks.CHECKS if result.violations.get(name)}
    now = result.circumstances
    when = f" ({now.date[:10]}, commit {now.commit}, kube-apiserver {result.kubernetes})" if now else ""
    head = f"**{result.elector}**: right in {len(checks.CHECKS) - len(wrong)} of {len(checks.CHECKS)} checks{when}\n\n"
    return head + "".join(f"- {name}: {words}\n" for name, words in wrong.items())


def read_stored() -> list[Result]:
    """Return what the page shows."""
    return msgspec.json.decode(RESULTS.read_bytes(), type=list[Result]) if RESULTS.exists() else []


def _merge_stored(results: Sequence[Result], binaries: Binaries) -> list[Result]:
    """Return these and the stored results of the electors that were not tried this time, in the order of the table."""
    results_by_name = {one.elector: one for one in (*read_stored(), *results)}
    return [results_by_name[one.name] for one in list_recorded(binaries) if one.name in results_by_name]


def _try(world: World, number: int, elector: Elector) -> dict[str, str]:
    try:
        with Stage(world, elector, f"kit-{number}") as stage:
            findings = checks.run(stage)
    except (RuntimeError, OSError) as error:
        print(f"{elector.name}: {error}", file=sys.stderr)
        return {"not tried": str(error)}
    for name, words in findings.items():
        print(f"{elector.name}: {name}: {words or 'right'}", flush=True)
    return findings


if __name__ == "__main__":
    sys.exit(main())
