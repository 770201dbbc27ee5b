"""Tables turned into RESULTS.md, plots and a section of docs/figures.md; the numbers are kept beside them as JSON."""

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec

from lab.bench import toolchain
from lab.bench.servers import PEERS, ROOT, find_interpreter_name
from lab.bench.table import Table
from lab.e2e.table import Rows, load

BENCH: Final = ROOT / "lab" / "bench"
FAULTS: Final = ROOT / "lab" / "faults"
PAGE: Final = ROOT / "docs" / "figures.md"
LIBRARIES: Final = (
    "gunicorn",
    "httptools",
    "uvloop",
    "msgspec",
    "flask",
    "prometheus-client",
)


def format_table(table: Table) -> str:
    """Return one table under its title."""
    lines = [f"### {table.title}", "", *table.notes]
    lines.append(
        f"Other programs of the machine kept up to {table.foreign_cores:.2f} cores busy; took {table.seconds:g} s on"
        f" {table.circumstances.date}, of commit {table.circumstances.commit}. `{table.command}`"
    )
    if table.rows:
        lines += [
            "",
            _format_row(table.header),
            _format_row(["---"] * len(table.header)),
            *map(_format_row, table.rows),
        ]
    return "\n".join(lines)


def format_bars(tables: Mapping[str, Table]) -> str:
    """Return all bars, met or missed."""
    rows = [
        _format_row((bar.what, bar.bar, bar.stretch, bar.measured, "met" if bar.met else "**missed**"))
        for table in tables.values()
        for bar in table.bars
    ]
    head = ("what", "bar", "stretch", "measured", "")
    return "\n".join(["### Bars", "", _format_row(head), _format_row(["---"] * len(head)), *rows])


def _describe_programs(tables: Mapping[str, Table]) -> str:
    """Return the machines of the tables, and the versions that are measured here now."""
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    peers = "; ".join(f"{peer.name} {_describe_version(peer.version)}" for peer in PEERS)
    return "\n".join(
        [
            *_list_machines(tables),
            f"- Ours: {find_interpreter_name()}, where a table names no other; {libraries}.",
            f"- Peers: {peers}.",
        ]
    )


def _list_machines(tables: Mapping[str, Table]) -> list[str]:
    names: dict[str, list[str]] = {}
    for name, table in tables.items():
        names.setdefault(table.circumstances.machine, []).append(name)
    if len(names) == 1:
        return [f"- Machine: {next(iter(names))}, shared."]
    return [f"- Machine of {', '.join(those)}: {machine}, shared." for machine, those in names.items()]


def _describe_version(version_of: object) -> str:
    assert callable(version_of)
    try:
        return str(version_of())
    except toolchain.MissingError as reason:
        return f"(not here: {reason})"


def keep(directory: Path, new: Mapping[str, Table], order: Mapping[str, object]) -> dict[str, Table]:
    """Put new tables beside those that were not measured again, and save them."""
    file = directory / "results.json"
    tables = msgspec.json.decode(file.read_bytes(), type=dict[str, Table]) if file.exists() else {}
    tables.update(new)
    everything = {key: tables[key] for key in order if key in tables}
    file.write_bytes(msgspec.json.format(msgspec.json.encode(everything), indent=1) + b"\n")
    return everything


def publish_bench(new: dict[str, Table]) -> None:
    """Write lab/bench/RESULTS.md, its plots and the section of docs/figures.md."""
    from lab.bench.__main__ import TABLES  # noqa: PLC0415  # the order of the tables is the program's

    everything = keep(BENCH, new, TABLES)
    plots = draw(everything)
    parts = [
        "# What a review costs",
        "",
        "Written by `make bench`; `make bench SHORT=1` prints the same tables in about four minutes. Do not edit.",
        "",
        _describe_programs(everything),
        "",
        format_bars(everything),
        *(f"\n{format_table(table)}" for table in everything.values()),
        "",
        *(f"![{text}](plots/{name}.svg)" for name, text in plots.items()),
    ]
    (BENCH / "RESULTS.md").write_text("\n".join(parts) + "\n")
    write_page()


def publish_faults(new: dict[str, Table]) -> None:
    """Write lab/faults/RESULTS.md and the section of docs/figures.md."""
    from lab.faults.__main__ import FAULTS as PROGRAMS  # noqa: PLC0415  # as above

    everything = keep(FAULTS, new, PROGRAMS)
    parts = [
        "# What the server survives",
        "",
        "Written by `make faults`; `make faults SHORT=1` runs the same programs in about four minutes. Do not edit.",
        "",
        _describe_programs(everything),
        "",
        format_bars(everything),
        *(f"\n{format_table(table)}" for table in everything.values()),
    ]
    (FAULTS / "RESULTS.md").write_text("\n".join(parts) + "\n")
    write_page()


PLOTS: Final = {
    "servers": "CPU per review by server, and latency under bursts",
    "growth": "CPU per review against its size, the policy's length and the workers",
}


def draw(tables: Mapping[str, Table]) -> dict[str, str]:
    """Draw the plots."""
    python = create_drawing_environment()
    (BENCH / "plots").mkdir(exist_ok=True)
    subprocess.run([python, str(BENCH / "plots.py"), str(BENCH)], check=True)
    return {name: text for name, text in PLOTS.items() if (BENCH / "plots" / f"{name}.svg").exists() and tables}


def create_drawing_environment() -> Path:
    """Return a Python of a separate environment, created once: drawing needs libraries that nothing else does."""
    environment = toolchain.CACHE / "plots"
    locked = BENCH / "requirements.txt"
    mark = environment / "installed"
    if not mark.exists() or mark.read_bytes() != locked.read_bytes():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(environment)], check=True)
        subprocess.run(
            [environment / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes",
             "-r", str(locked)],
            check=True,
        )  # fmt: skip
        mark.write_bytes(locked.read_bytes())
    return environment / "bin" / "python"


START: Final = "<!-- written by make bench and make faults -->"
END: Final = "<!-- until here -->"


def write_page() -> None:
    """Put both summaries between the marks in docs/figures.md."""
    text = PAGE.read_text()
    before, marker, rest = text.partition(START)
    if not marker:
        raise RuntimeError(f"{PAGE.name} has no line {START}")
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{START}\n{summarize()}\n{END}{after}")


def summarize() -> str:
    """Return the section of docs/figures.md: the results of each program, and a plot."""
    parts = []
    for directory, title, table in (
        (BENCH, "What it costs", format_bars),
        (FAULTS, "What it survives", format_survival),
    ):
        file = directory / "results.json"
        if not file.exists():
            continue
        tables = msgspec.json.decode(file.read_bytes(), type=dict[str, Table])
        page = f"{directory.relative_to(ROOT)}/RESULTS.md"
        noise = max(one.foreign_cores for one in tables.values())
        runs = [one.circumstances for one in tables.values()]
        when = _join_ends(one.date[:10] for one in runs)
        commits, machines = (
            " and ".join(dict.fromkeys(names))
            for names in ([one.commit for one in runs], [one.machine for one in runs])
        )
        meanwhile = f"other programs kept up to {noise:.1f} cores busy meanwhile:"
        head = f"**{title}**, measured {when} of commit {commits} on {machines}"
        parts += [
            f"{head}, in full in [{page}](../{page}); {meanwhile}",
            "\n".join(table(tables).splitlines()[2:]),
        ]
    if (BENCH / "plots" / "servers.svg").exists():
        parts.append(f"![{PLOTS['servers']}](../lab/bench/plots/servers.svg)")
    return "\n\n".join(parts)


def _join_ends(days: Iterable[str]) -> str:
    ordered = sorted(days)
    return ordered[0] if ordered[0] == ordered[-1] else f"{ordered[0]} to {ordered[-1]}"


def format_survival(tables: Mapping[str, Table]) -> str:
    """Return one row for each fault: the load, its results, and the bars that were missed."""
    e2e = load()
    what, *found = find_rolling_restart(e2e.rows)
    rows = [_format_row((f"{what} (`make e2e`, {e2e.circumstances.date[:10]}, {e2e.circumstances.commit})", *found))]
    for table in tables.values():
        sums: tuple[object, ...] = ("", "", "")
        if table.header[1:4] == ("reviews", "lost", "wrong verdicts"):
            sums = tuple(sum(int(row[column]) for row in table.rows if row[column]) for column in (1, 2, 3))
        missed = "; ".join(f"**missed**: {bar.what}: {bar.measured}" for bar in table.bars if not bar.met)
        met = f"all {len(table.bars)} bars met" if table.bars else "**missed**: it has no bar"
        rows.append(_format_row((table.title, *sums, missed or met)))
    head = ("fault", "reviews meanwhile", "lost", "wrong verdicts", "result")
    return "\n".join(["### Faults", "", _format_row(head), _format_row(["---"] * len(head)), *rows])


def find_rolling_restart(rows: Mapping[str, Rows]) -> tuple[str, int, int, str, str]:
    """Return the row that matters to users, from those of `make e2e`: calls lost while pods of a Service are replaced.

    Raises RuntimeError where no row is of a rolling restart.
    """
    observations = [
        row.observation
        for topics in rows.values()
        for topic in topics.values()
        for row in topic
        if row.claim.startswith("rolling restart")
    ]
    if not observations:
        raise RuntimeError("lab/e2e/results.json has no rolling restart")
    counts = re.findall(r"(\d+) writes, (\d+) failed", "\n".join(observations))
    writes, failed = (sum(int(count) for count in column) for column in zip(*counts, strict=True))
    result = "every write answered" if not failed else f"**missed**: {failed} writes failed"
    return ("Rolling restart behind a Service, failurePolicy Fail", writes, failed, "", result)


def _format_row(cells: object) -> str:
    assert isinstance(cells, list | tuple)
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
