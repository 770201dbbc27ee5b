"""`make fuzz-guided`: fuzzing that learns which inputs run new lines, by atheris, which is libFuzzer for Python.

Each target of `tests.fuzz.targets` runs in a process of its own, because libFuzzer ends its process. A failing input is
written beside the working corpus; `--input FILE` runs it alone, and `tests/fuzz/test_corpora.py` is where it becomes a
test.
"""

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
WORK: Final = ROOT / "build" / "fuzz"
"""The folder of the working corpora and of inputs that failed, kept between runs."""
_MEMORY: Final = 2048
"""MiB of a process; what a target itself may take is far below."""
_HANGS: Final = 60
"""Seconds after which libFuzzer ends a process that hangs."""
_STRUCTURED: Final = 0.7
"""The share of changes that keep JSON JSON, for targets that read it."""
_DONE: Final = re.compile(r"Done (\d+) runs in (\d+) second")
_COVERED: Final = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)/(\S+)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz targets one after another. Return 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m lab.fuzz_guided", description=__doc__)
    parser.add_argument("--target", action="append", default=[], help="one of the targets; all without it")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--runs", type=int, help="new inputs for each target, in place of seconds: the same each time")
    parser.add_argument("--seed", type=int, default=0, help="0 draws one")
    parser.add_argument(
        "--keep", action="store_true", help="write the working corpus, minimized, into tests/data/corpora"
    )
    parser.add_argument("--input", type=Path, help="run this input alone, with a traceback")
    parser.add_argument("--list", action="store_true", help="print the names of the targets")
    parser.add_argument("--export", type=Path, help="write what the target begins with into this archive")
    parser.add_argument("--inside", metavar="TARGET", help=argparse.SUPPRESS)
    options, of_libfuzzer = parser.parse_known_args(arguments)
    if options.inside:
        fuzz(options.inside, of_libfuzzer)
    elif of_libfuzzer:
        parser.error(f"unknown: {' '.join(of_libfuzzer)}")
    from tests.fuzz.targets import TARGETS, beginning, write  # noqa: PLC0415 - inside, it is imported by `fuzz`, which counts its lines

    names = options.target or [*TARGETS]
    if unknown := set(names) - TARGETS.keys():
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    if options.list:
        print(*TARGETS, sep="\n")
        return 0
    if options.export:
        write(options.export, [data for name in names for data in beginning(name)])
        return 0
    if options.input:
        for name in names:
            TARGETS[name].check(options.input.read_bytes())
        return 0
    failed = [name for name in names if not _run(name, options.seconds, options.runs, options.seed)]
    if options.keep and not failed:
        for name in names:
            _minimize(name)
    return 1 if failed else 0


def fuzz(name: str, arguments: Sequence[str]) -> None:
    """Run a target under libFuzzer, which takes its own arguments and ends the process."""
    import atheris  # noqa: PLC0415 - installed only for this

    with atheris.instrument_imports(include=["webhook"]):
        from tests.fuzz import mutations  # noqa: PLC0415 - what is imported here is instrumented
        from tests.fuzz.targets import MAX_SECONDS, TARGETS  # noqa: PLC0415
    target = TARGETS[name]

    def check(data: bytes) -> None:
        began = time.process_time()
        target.check(data)
        assert time.process_time() - began < MAX_SECONDS, f"{len(data)} bytes take {time.process_time() - began:.1f} s"

    def mutate(data: bytes, limit: int, seed: int) -> bytes:
        draw = random.Random(seed)
        changed = mutations.mutate(data, draw, limit=limit) if draw.random() < _STRUCTURED else None
        return atheris.Mutate(data, limit) if changed is None else changed

    def cross(data: bytes, other: bytes, limit: int, seed: int) -> bytes:
        return mutations.graft(data, other, random.Random(seed), limit=limit) or data[:limit]

    own = {"custom_mutator": mutate, "custom_crossover": cross} if target.is_json else {}
    # To merge, libFuzzer runs what it takes for its program in a shell.
    program = f"{sys.executable} -m lab.fuzz_guided --inside {name}"
    atheris.Setup([program, *arguments], check, **own)
    atheris.Fuzz()


def _run(name: str, seconds: int, runs: int | None, seed: int) -> bool:
    """Fuzz one target in a process; return False if an input failed."""
    from tests.fuzz.targets import MAX_SIZE, beginning  # noqa: PLC0415

    work = WORK / name
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as fixed:
        # A run of a fixed number is the same each time, so it begins with what is in the tree and nothing else.
        folder = Path(fixed) if runs else work
        first = beginning(name)
        for number, data in enumerate(first):
            (folder / f"seed-{number:05}").write_bytes(data)
        limits = [f"-runs={len(first) + runs}"] if runs else [f"-max_total_time={seconds}"]
        result = _run_libfuzzer(name, [*limits, f"-seed={seed}", f"-max_len={MAX_SIZE}", str(folder)])
    print(_summarize(name, result.stdout), flush=True)
    if result.returncode:
        print(result.stdout[-6000:], file=sys.stderr, flush=True)
        print(f"again: python -m lab.fuzz_guided --target {name} --input FILE", file=sys.stderr, flush=True)
    return result.returncode == 0


def _run_libfuzzer(name: str, arguments: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "lab.fuzz_guided", "--inside", name]
    limits = [f"-rss_limit_mb={_MEMORY}", f"-timeout={_HANGS}", f"-artifact_prefix={WORK}/{name}-"]
    environment = os.environ | {"PYTHONHASHSEED": "0", "COLUMNS": "100"}
    return subprocess.run(
        [*command, *limits, *arguments],
        env=environment,
        cwd=ROOT,
        text=True,
        errors="replace",
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def _summarize(name: str, output: str) -> str:
    totals, covered = _DONE.findall(output), _COVERED.findall(output)
    runs, seconds = totals[-1] if totals else ("?", "?")
    edges, features, inputs, size = covered[-1] if covered else ("?",) * 4
    return f"{name}: {runs} inputs in {seconds} s, {edges} branches, {features} features, corpus {inputs} of {size}"


def _minimize(name: str) -> None:
    """Keep the inputs of the working corpus that run all branches that no seed runs."""
    from tests.fuzz.targets import TARGETS, keep  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as merged:
        seeds = [*TARGETS[name].seeds()]
        for number, data in enumerate(seeds):
            (Path(merged) / f"seed-{number}").write_bytes(data)
        result = _run_libfuzzer(name, ["-set_cover_merge=1", merged, str(WORK / name)])
        if result.returncode:
            raise SystemExit(result.stdout[-2000:])
        inputs = [data for path in Path(merged).iterdir() if (data := path.read_bytes()) not in seeds]
    keep(name, inputs)
    print(f"{name}: {len(inputs)} inputs of {sum(map(len, inputs))} bytes are kept", flush=True)


if __name__ == "__main__":
    sys.exit(main())
