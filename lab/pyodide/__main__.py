"""`make pyodide`: the tests of the core in Pyodide's Python 3.14, and the output of every command as in CPython.

Node runs what a browser runs, the same WebAssembly. Where the words of PyYAML's two parsers differ,
the one in Python is asked outside, too.
"""

import argparse
import os
import shutil
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import yaml

from lab.outputs.__main__ import compute_output, compute_outputs
from lab.outputs.commands import Invocation, list_invocations
from lab.outputs.stored import Output
from lab.pyodide import left_out
from lab.pyodide.left_out import NAMES
from lab.pyodide.outputs import WITHOUT
from tools.web.runtime import BUILD, COMPILED, ROOT, put_packages, run_in_pyodide
from webhook.text import yaml_reader

SUITES: Final = (
    "tests/rules", "tests/kubernetes", "tests/policy", "tests/test_evaluate.py", "tests/test_verdict.py",
    "tests/text", "tests/inputs", "tests/history", "tests/claims", "tests/audit", "tests/timeline", "tests/browser",
)  # fmt: skip
READ_BY_OUTPUTS: Final = ("tests/history", "tests/claims", "tests/audit", "tests/timeline")
"""Suites of what the stored outputs show of every recorded history; `--short` leaves them out."""
LEFT_OUT: Final = {
    "tests/policy/test_json_schema.py": "jsonschema needs a compiled package that Pyodide does not have",
    "tests/inputs/test_in_cluster.py": "sockets",
    "tests/inputs/test_files.py": "programs, pipes and devices",
    "tests/kubernetes/test_nesting.py": "the depth at which the C stack ends",
}
"""Modules that ask for what a browser does not have."""
_STACK: Final = 256 * 1024 * 1024
"""Bytes: V8 ends a program whose stack is full, and tests nest deeply."""
_COMPILED_TOO: Final = ("hypothesis",)


def main() -> int:
    """Run both. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lab.pyodide", description=__doc__)
    parser.add_argument("--only", choices=("tests", "outputs"), help="one of the two")
    parser.add_argument("--short", action="store_true", help=f"without {', '.join(READ_BY_OUTPUTS)}")
    parser.add_argument("paths", nargs="*", help="paths of tests instead of all suites")
    options = parser.parse_args()
    site = BUILD / "tests"
    shutil.rmtree(site, ignore_errors=True)
    put_packages(site, COMPILED)
    put_packages(site, _COMPILED_TOO, "requirements-test.txt")
    suites = [suite for suite in SUITES if not (options.short and suite in READ_BY_OUTPUTS)]
    if options.short:
        print(f"left to `make pyodide`: {', '.join(READ_BY_OUTPUTS)}", flush=True)
    has_failed = options.only != "outputs" and _run_tests(site, options.paths or suites)
    if options.only != "tests" and not options.paths:
        has_failed = _compare_outputs(site) or has_failed
    return 1 if has_failed else 0


def _run(site: Path, module: str, words: Sequence[str], *folders: Path) -> int:
    """Run a module of Python, and return its exit code; only pure Python is imported from the virtual environment."""
    path = [str(ROOT), str(site), sysconfig.get_paths()["purelib"]]
    return run_in_pyodide(module, words, ROOT, *folders, path=path, stack=_STACK)


def _run_tests(site: Path, suites: Sequence[str]) -> bool:
    """Run the tests, and return whether one failed."""
    for path, reason in [*LEFT_OUT.items(), *((", ".join(names), reason) for reason, names in NAMES.items())]:
        print(f"left out: {path} ({reason})")
    plugins = ["-p", "no:cacheprovider", "-p", left_out.__name__]
    words = ["-q", *plugins, *(f"--ignore={path}" for path in LEFT_OUT)]
    # CPython 3.14 counts references in another way than Hypothesis expects, which says so once.
    quiet = ["-W", "ignore:It looks like `register_random`"]
    return _run(site, "pytest", [*words, *quiet, *(one for one in suites if (ROOT / one).exists())]) != 0


def _compare_outputs(site: Path) -> bool:
    """Compare the output of every command, and return whether one differs."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outputs.jsonl"
        if _run(site, "lab.pyodide.outputs", [str(file)], Path(folder)):
            return True
        decoded = (msgspec.json.decode(line, type=Output) for line in file.read_bytes().splitlines())
        inside = {output.command: output for output in decoded}
    os.environ.update(NO_COLOR="1", COLUMNS="120")
    invocations = [one for one in list_invocations() if one.words[0] not in WITHOUT]
    different = [
        (one, inside[one.text])
        for one, outside in zip(invocations, compute_outputs(invocations), strict=True)
        if inside[one.text] != outside and inside[one.text] != _run_in_python(one)
    ]
    for invocation, actual in different:
        print(
            f"\n$ lease-webhook {invocation.text}\n  in Pyodide: exit code {actual.code}",
            "\n".join(actual.lines)[:600],
        )
    print(f"{len(inside) - len(different)} commands print the same in Pyodide, {len(different)} do not", end="")
    print(f" ({time.monotonic() - began:.0f} s)")
    return bool(different)


def _run_in_python(invocation: Invocation) -> Output:
    """Return the output of a command if YAML is parsed by PyYAML's own parser instead of libyaml."""
    by_libyaml, yaml_reader.LOADER = yaml_reader.LOADER, yaml.SafeLoader
    try:
        return compute_output(invocation)
    finally:
        yaml_reader.LOADER = by_libyaml


if __name__ == "__main__":
    sys.exit(main())
