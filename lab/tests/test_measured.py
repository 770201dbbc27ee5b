"""What people read about cost and faults is what was measured: nobody edits a figure by hand."""

from pathlib import Path

import msgspec
import pytest

from lab import fast_paths, hour, reading_costs
from lab.bench import results
from lab.bench.table import Bar, Table
from lab.cluster import table as cluster
from lab.e2e import table as e2e
from lab.e2e.condition_cases import DROPPED, REVIEWED
from lab.e2e.world import Row
from lab.servers import __main__ as servers
from tools.docs.pages import DOCS, ROOT

DIRECTORIES = [pytest.param(results.BENCH, id="bench"), pytest.param(results.FAULTS, id="faults")]


@pytest.mark.parametrize("directory", DIRECTORIES)
def test_the_results_page_shows_what_was_measured(directory: Path) -> None:
    page = (directory / "RESULTS.md").read_text()
    tables = msgspec.json.decode((directory / "results.json").read_bytes(), type=dict[str, Table])
    assert results.format_bars(tables) in page
    for table in tables.values():
        assert results.format_table(table) in page


def test_the_page_of_figures_shows_what_was_measured() -> None:
    written = results.PAGE.read_text().partition(results.START)[2].partition(results.END)[0]
    assert written.strip() == results.summarize()


@pytest.mark.parametrize(("target", "file"), [("reading", reading_costs.RESULTS), ("hour", hour.RESULTS)])
def test_the_figures_of_commands_are_those_that_were_measured(target: str, file: Path) -> None:
    measured = msgspec.json.decode(file.read_bytes(), type=reading_costs.Measured)
    start, end = (f"<!-- {words} make {target}" for words in ("written by", "end of what"))
    written = reading_costs.PAGE.read_text().partition(start)[2].partition(end)[0].partition("-->\n")[2]
    assert written.strip() == reading_costs.make_table(measured).strip()


def test_the_page_of_real_pods_shows_what_was_seen() -> None:
    results = msgspec.json.decode(cluster.RESULTS.read_bytes(), type=cluster.Results)
    assert cluster.PAGE.read_text() == cluster.render_page(results)


@pytest.mark.parametrize("page", ["docs/design.md", "SECURITY.md"])
def test_the_writes_against_the_match_condition_are_counted(page: str) -> None:
    assert f" {len(DROPPED) + len(REVIEWED)} kinds of write" in (ROOT / page).read_text()


def test_the_page_of_figures_counts_the_same_writes() -> None:
    counted = f"{len(DROPPED)} kinds of plain renewals are not sent to us and {len(REVIEWED)} kinds of other writes are"
    assert counted in (DOCS / "figures.md").read_text()


def test_the_design_shows_what_fast_paths_were_measured_to_save() -> None:
    measured = msgspec.json.decode(fast_paths.RESULTS.read_bytes(), type=fast_paths.Measured)
    written = fast_paths.PAGE.read_text().partition(fast_paths.START)[2].partition(fast_paths.END)[0]
    assert written.strip() == fast_paths.make_table(measured).strip()


def test_the_design_shows_what_servers_were_seen_to_do() -> None:
    measured = msgspec.json.decode(servers.RESULTS.read_bytes(), type=servers.Results)
    written = servers.PAGE.read_text().partition(servers.START)[2].partition(servers.END)[0]
    assert written.strip() == servers.make_table(measured).strip()


def test_the_faults_begin_with_what_users_see() -> None:
    tables = msgspec.json.decode((results.FAULTS / "results.json").read_bytes(), type=dict[str, Table])
    first = results.format_survival(tables).splitlines()[4]
    assert first.startswith("| Rolling restart behind a Service")


def test_a_rolling_restart_is_summed_over_all_versions() -> None:
    alike = {"rotation": [Row("rolling restart, twice", "10 writes, 1 failed", passed=True)]}
    assert results.find_rolling_restart({"v1.37.1": alike, "v1.36.3": alike, "v1.35.8": {}})[1:3] == (20, 2)
    with pytest.raises(RuntimeError):
        results.find_rolling_restart({})


def test_the_page_of_real_api_servers_shows_what_was_seen() -> None:
    assert e2e.PAGE.read_text() == e2e.render_page(e2e.load())


def test_what_versions_show_alike_is_said_once() -> None:
    alike = {"kubectl": [Row("text of a 422", "as pinned", passed=True)]}
    other = {"kubectl": [Row("text of a 422", "a | b", passed=False)]}
    assert "| text of a 422 | as pinned |" in e2e.render({"v1.37.1": alike, "v1.36.3": alike})
    page = e2e.render({"v1.37.1": alike, "v1.36.3": other, "v1.35.8": alike, "v1.34.10": {}})
    assert "| text of a 422 | v1.37.1, v1.35.8: as pinned<br>v1.36.3: **FAILED** a \\| b |" in page
    assert "Ran on v1.37.1, v1.36.3, v1.35.8." in page
    assert "not served" in e2e.render({"v1.37.1": alike, "v1.36.3": {"kubectl": []}})


def test_a_topic_that_ran_on_no_version_leaves_no_gap() -> None:
    assert "\n\n\n" not in e2e.render(
        {"v1.37.1": {name: [Row("a", "b", passed=True)] for name in ("kubectl", "token")}}
    )


@pytest.mark.parametrize(
    ("bars", "result"),
    [
        pytest.param((Bar("memory", "<= 1", "0", met=True),), "all 1 bars met", id="one that is met"),
        pytest.param((Bar("memory", "<= 1", "2", met=False),), "**missed**: memory: 2", id="one that is missed"),
        pytest.param((), "**missed**: it has no bar", id="none, as where nothing ran"),
    ],
)
def test_a_table_without_reviews_is_summed_up_by_its_bars(bars: tuple[Bar, ...], result: str) -> None:
    table = Table("Hostile bodies", (), ("body", "MiB", "CPU s", "answer"), (("a", "20.0", "0.1", "413"),), bars)
    assert results.format_survival({"bodies": table}).splitlines()[-1] == f"| Hostile bodies |  |  |  | {result} |"
