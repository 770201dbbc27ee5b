"""`make planted`: plant each defect in a copy of the tree, and write its catchers into docs/proof.md.

The specification is TLC's refutation of the clause that is left out; traces are recorded incidents by the planted
rules, and the samples by which the arithmetic of Z3 is compared with the rule; torture is a short run of the planted
copy, whose history the whole tree checks; attacks are the standing ones; tests are examples and properties.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from lab.e2e.toolchain import find_cache_directory
from lab.spec import __main__ as spec
from lab.torture.defects import DEFECTS, NOTHING, TESTS, Defect

ROOT: Final = Path(__file__).parents[2]
RESULTS: Final = Path(__file__).parent / "planted.json"
PAGE: Final = ROOT / "docs" / "proof.md"
CATCHERS: Final = ("specification", "traces", "torture", "attacks", "tests")
ENOUGH: Final = 2
"""Catchers that must notice each defect."""
_COPIED: Final = ("webhook", "tests", "deploy", "docs", "lab", "tools", "certs")
_FILES: Final = (
    "Makefile",
    "pyproject.toml",
    "README.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "action.yml",
    "CONTRIBUTING.md",
)


_MODULE: Final = re.compile(r"`(tests/(?:\w+/)*(\w+)\.py)`")


class Detection(Struct, frozen=True):
    """The catchers of a defect, and their words, each "" if it did not notice the defect; None if it was not asked."""

    kind: str
    name: str
    by: dict[str, str | None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Plant the defects. Return 1 if one is noticed by fewer than two."""
    parser = argparse.ArgumentParser(prog="python -m lab.torture.planted", description=__doc__)
    parser.add_argument("--only", default="", help="defects whose kind and name contain this text")
    parser.add_argument("--without", default="", help="a catcher that is not asked; what it found before is kept")
    parser.add_argument("--seed", type=int, default=21, help="of the torture runs")
    parser.add_argument("--minutes", type=float, default=0.75, help="of each torture run")
    options = parser.parse_args(arguments)
    # Before the first of them runs for minutes.
    for defect in DEFECTS:
        apply_defect(defect)
    results_before = {one.name: one for one in read_stored()}
    for defect in DEFECTS:
        if options.only not in f"{defect.kind} {defect.name}":
            continue
        began = time.monotonic()
        before = results_before[defect.name].by if defect.name in results_before else {}
        by = {
            catcher: before.get(catcher) if catcher in options.without else _try_catcher(catcher, defect, options)
            for catcher in CATCHERS
        }
        print(f"{time.monotonic() - began:4.0f} s {defect.kind}: {defect.name}: {by}", flush=True)
        # Another process may have written meanwhile.
        now = {one.name: one for one in read_stored()}
        latest = now[defect.name].by if defect.name in now else {}
        by |= {catcher: latest.get(catcher) for catcher in CATCHERS if catcher in options.without}
        now[defect.name] = Detection(defect.kind, defect.name, by)
        results = [now[one.name] for one in DEFECTS if one.name in now]
        RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
    write_page()
    return int(any(sum(map(bool, one.by.values())) < ENOUGH for one in read_stored()))


def read_stored() -> list[Detection]:
    """Return the latest results."""
    return msgspec.json.decode(RESULTS.read_bytes(), type=list[Detection]) if RESULTS.exists() else []


def render_table(results: Sequence[Detection]) -> str:
    """Return the table in Markdown."""
    rows = "".join(
        f"| {one.kind}: {one.name} | {' | '.join(_format_cell(one.by.get(catcher)) for catcher in CATCHERS)} |\n"
        for one in results
    )
    return f"| defect | {' | '.join(CATCHERS)} |\n|---|{'---|' * len(CATCHERS)}\n{rows}"


def write_page() -> None:
    """Write the table into docs/proof.md."""
    spec.write_between(PAGE, "planted", render_table(read_stored()))


def _format_cell(words: str | None) -> str:
    """Return what noticed a defect, with a module of tests as a link: its path would make the table too wide."""
    if words is None:
        return ""
    module = _MODULE.fullmatch(words)
    return f"[{module[2]}](../{module[1]})" if module else words or "-"


def _try_catcher(catcher: str, defect: Defect, options: argparse.Namespace) -> str | None:
    if catcher == "specification":
        return _find_refutation(defect.clause)
    with tempfile.TemporaryDirectory(prefix="lease-webhook-planted-") as folder:
        tree = Path(folder) / "tree"
        _plant(defect, tree)
        if catcher == "traces":
            return _check_traces(tree) if defect.kind == "rule" else None
        if catcher == "torture":
            return _check_torture(tree, options.seed, options.minutes)
        tests = ("tests/attacks", "tests/model") if catcher == "attacks" else TESTS[defect.kind]
        if catcher == "attacks" and defect.kind in ("token", "fence"):
            return None
        return _check_tests(tree, tests)


def _find_refutation(clause: str) -> str | None:
    """Return the law by which `make spec` refuted the clause, as it wrote it into the page."""
    module, _, defect = clause.partition(": ")
    match = re.search(
        rf"^\| {re.escape(module)} \| {re.escape(defect)} \| (\w+) \|", PAGE.read_text("utf-8"), re.MULTILINE
    )
    if match:
        return match[1]
    return next((", ".join(one.laws) for one in spec.list_limits() if one.title == clause), None)


def _copy(tree: Path) -> None:
    tree.mkdir()
    hidden = shutil.ignore_patterns("__pycache__", "*.key", ".hypothesis")
    for name in _COPIED:
        if (ROOT / name).exists():
            shutil.copytree(ROOT / name, tree / name, ignore=hidden)
    for name in _FILES:
        shutil.copy(ROOT / name, tree)


def _plant(defect: Defect, tree: Path) -> None:
    _copy(tree)
    (tree / defect.file).write_text(apply_defect(defect), encoding="utf-8")


def apply_defect(defect: Defect) -> str:
    """Return the file with the defect; raises ValueError unless the changed text is there once."""
    text = (ROOT / defect.file).read_text(encoding="utf-8")
    if text.count(defect.old) != 1:
        raise ValueError(f"{defect.name}: the text is {text.count(defect.old)} times in {defect.file}")
    if defect.new == NOTHING:
        end = text.index('    """\n', text.index(defect.old)) + len('    """\n')
        return text[:end] + NOTHING + text[end:]
    return text.replace(defect.old, defect.new)


def _run(tree: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    return subprocess.run(
        [sys.executable, *command], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )


def _check_traces(tree: Path) -> str:
    output = _run(tree, "-m", "lab.spec", "--only", "no check at all").stdout
    lines = [
        line for line in output.splitlines() if line.startswith("FAILED") and ("traces" in line or "samples" in line)
    ]
    names = {"traces": "trace", "samples": "arithmetic"}
    return ", ".join(names[word] for word in names if any(word in line for line in lines))


def _check_torture(tree: Path, seed: int, minutes: float) -> str:
    """Run torture in the copy; the stored history is checked by the whole tree."""
    directory = tree / "kept"
    flags = ("--seeds", str(seed), "--minutes", str(minutes), "--keep", str(directory), "--no-specification")
    result = _run(tree, "-m", "lab.torture", *flags)
    history = directory / f"seed-{seed}.json.gz"
    if not history.exists():
        return "does not start" if result.returncode else ""
    output = _run(ROOT, "-m", "lab.torture", "--check", str(history)).stdout
    print("\n".join(re.findall(r"PROBLEM .*", output)[:5]), flush=True)
    shutil.copy(history, find_cache_directory() / f"planted-{time.time_ns()}.json.gz")
    return ", ".join(dict.fromkeys(_shorten(problem) for problem in re.findall(r"PROBLEM (.*)", output)))


def _shorten(problem: str) -> str:
    subject, _, rest = problem.partition(":")
    return "term" if " fell from " in rest else subject


def _check_tests(tree: Path, tests: Sequence[str]) -> str:
    """Return the first module that fails, and that does not without the defect."""
    first = _find_first_failure(tree, tests)
    if not first:
        return ""
    whole = tree.with_name("whole")
    _copy(whole)
    if _find_first_failure(whole, [first]):
        raise RuntimeError(f"{first} fails in a copy without a defect")
    return f"`{first}`"


def _find_first_failure(tree: Path, tests: Sequence[str]) -> str:
    result = _run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=no", "-x", *tests)
    if result.returncode not in (0, 1):
        raise RuntimeError(result.stdout[-2000:] + result.stderr[-2000:])
    return next(_find_failed(result.stdout), "")


def _find_failed(text: str) -> Iterator[str]:
    for line in text.splitlines():
        match = re.match(r"(?:FAILED|ERROR) (\S+?)(?:::\S+?)?(?:\[| |$)", line)
        if match:
            yield match[1].partition("::")[0]


if __name__ == "__main__":
    sys.exit(main())
