"""The cost of a review counts correct answers only: wrong ones are cheaper."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
from msgspec.structs import replace

from lab.bench.__main__ import has_missed
from lab.bench.load import Report
from lab.bench.processes import Usage
from lab.bench.servers import Server, make_echo_server
from lab.bench.table import Bar, Table
from lab.bench.tables import correctness, cpu, growth, kinds, open_loop
from lab.e2e.quantile import find_quantile
from lab.tests.fakes import REPORT, WRONG_VERDICT, FakeServer

LATENCIES = ("p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms")
MISSED = Bar("p99", "<= 1 ms", "2 ms", met=False)
MEASUREMENTS = {
    "by kind of write": (kinds, kinds.measure_beside_controller_runtime),
    "layer by layer": (kinds, kinds.measure_layers),
    "of a cluster": (kinds, kinds.make_cluster_table),
    "beside the peers": (cpu, cpu.run),
    "on a timetable": (open_loop, open_loop.run),
    "by the number of workers": (growth, growth.measure_workers),
}


def measure(
    module: ModuleType,
    run: Callable[..., Table],
    report: Report,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Table:
    """Return the table of a measurement in which each load has this report."""

    @contextmanager
    def run_server(server: Server, *_: object, **__: object) -> Iterator[FakeServer]:
        yield FakeServer(directory, server=server)

    @contextmanager
    def measure_tree(_: int) -> Iterator[Usage]:
        yield Usage(cpu=0.01, wall=1.0)

    fakes: dict[str, object] = {
        "run_server": run_server,
        "measure_tree": measure_tree,
        "run_load": lambda *_, **__: report,
        "list_missing": lambda *_: [],
        "read_memory_mib": lambda _: 30.0,
        "_keep_busy": measure_tree,
    }
    for place in (module, cpu):  # where `start_all` is
        for name, fake in fakes.items():
            monkeypatch.setattr(place, name, fake, raising=False)
    monkeypatch.setattr("time.sleep", lambda _: None)
    return run(directory, short=True)


@pytest.mark.parametrize("name", MEASUREMENTS)
@pytest.mark.parametrize(
    ("report", "met"),
    [
        pytest.param(REPORT, True, id="right answers"),
        pytest.param(WRONG_VERDICT, False, id="a wrong verdict"),
        pytest.param(replace(REPORT, right=99, statuses={"200": 99, "503": 1}), False, id="a 503"),
    ],
)
def test_a_cost_has_a_bar_that_each_answer_was_right(
    name: str, report: Report, met: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = measure(*MEASUREMENTS[name], report, tmp_path, monkeypatch)
    assert [bar.met for bar in table.bars if bar.of_answers] == [met]


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_without_a_right_answer_there_is_no_cost(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="no answer was right"):
        measure(*MEASUREMENTS[name], replace(REPORT, right=0, statuses={"503": 100}), tmp_path, monkeypatch)


def test_the_cost_is_that_of_a_right_answer() -> None:
    assert replace(REPORT, right=50).compute_micros(0.001) == 2 * REPORT.compute_micros(0.001) == 20.0


def test_latencies_of_no_answer_meet_no_bar() -> None:
    document = {key: value for key, value in msgspec.to_builtins(REPORT).items() if key not in LATENCIES}
    report = msgspec.json.decode(json.dumps(document), type=Report)
    assert all(math.isnan(getattr(report, name)) for name in LATENCIES)
    assert not report.p99_ms <= REPORT.p99_ms


@pytest.mark.parametrize(
    ("bar", "strict", "short", "missed"),
    [
        pytest.param(MISSED, True, False, True, id="any, if all are required"),
        pytest.param(MISSED, False, False, False, id="a cost, if they are not"),
        pytest.param(replace(MISSED, of_load=True), True, True, False, id="one of the load in a short run"),
        pytest.param(replace(MISSED, of_answers=True), False, True, True, id="one of answers"),
        pytest.param(replace(MISSED, met=True, of_answers=True), True, False, False, id="one that is met"),
    ],
)
def test_a_missed_bar_of_answers_always_fails_the_program(bar: Bar, strict: bool, short: bool, missed: bool) -> None:
    assert has_missed([bar], strict=strict, short=short) == missed


def test_parts_of_the_server_that_read_no_review_are_not_asked_for_an_answer() -> None:
    constant = {part: make_echo_server(part).constant_answer for part in ("echo", "connection", "verdict")}
    assert constant == {"echo": True, "connection": True, "verdict": False}


def test_kills_that_were_not_tried_are_a_bar_that_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killer:
        back_seconds = (0.1,)

        def __init__(self, *_: object) -> None: ...

        def start(self) -> None: ...

        def join(self) -> None: ...

    monkeypatch.setattr(correctness, "_Killer", Killer)
    table = measure(correctness, correctness.check_kills, REPORT, tmp_path, monkeypatch)
    assert [(bar.measured, bar.met) for bar in table.bars if bar.what == "kills that were tried"] == [("1", False)]


@pytest.mark.parametrize(
    ("values", "share", "quantile"),
    [
        pytest.param([1, 2], 0.5, 2, id="the upper one of two"),
        pytest.param([1, 2, 3], 0.5, 2, id="the middle of three"),
        pytest.param(range(1, 101), 0.99, 100, id="one that 99 of 100 do not exceed is not more than their share"),
        pytest.param(range(1, 201), 0.99, 199, id="the 199th of 200"),
        pytest.param([1, 2], 1, 2, id="the largest"),
    ],
)
def test_a_quantile_is_the_smallest_value_that_more_than_a_share_do_not_exceed(
    values: list[float], share: float, quantile: float
) -> None:
    assert find_quantile(values, share) == quantile
