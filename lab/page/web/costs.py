"""The cost of the page in Chromium, into docs/browser.md: `make web-costs`.

The times are those of a clock, so other work on the machine counts; its load is beside them.
"""

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

from playwright.sync_api import sync_playwright

from lab.page.web.served import ROOT, SITE, Web, serve
from lab.reading_costs import dump, make_lease_log

PAGE: Final = ROOT / "docs/browser.md"
_INCIDENT: Final = ROOT / "tests/data/incidents/lease-stolen"
_RUNS: Final = 3
_LARGE: Final = 15 * 60 * 1000
_BEGIN, _END = "<!-- written by make web-costs -->", "<!-- end of what make web-costs writes -->"


def read_processes(root: int) -> dict[int, list[str]]:
    """Return the fields of /proc/PID/stat, from the parent on, of every process below one."""
    fields_by_pid: dict[int, list[str]] = {}
    for entry in Path("/proc").iterdir():
        try:
            fields_by_pid |= {int(entry.name): (entry / "stat").read_text().rpartition(")")[2].split()}
        except (OSError, ValueError):
            continue
    below = {root}
    while more := {pid for pid, fields in fields_by_pid.items() if int(fields[1]) in below and pid not in below}:
        below |= more
    return {pid: fields for pid, fields in fields_by_pid.items() if pid in below and pid != root}


def find_peak() -> float:
    """Return the peak memory of one process of the browser, in MB."""
    peaks = []
    for pid in read_processes(os.getpid()):
        try:
            peaks += re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        except OSError:
            continue
    return max(map(int, peaks)) / 1000


class Costs:
    """Seconds of the clock, by action."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {}

    @contextmanager
    def measure(self, what: str) -> Iterator[None]:
        """Measure the time of a block."""
        began = time.monotonic()
        yield
        self.times.setdefault(what, []).append(time.monotonic() - began)

    def make_row(self, what: str, bar: str) -> str:
        """Return a row of the table."""
        return f"| {what} | {median(self.times[what]):.1f} s | {bar} |"


def measure_small(browser: Any, origin: str, costs: Costs) -> None:
    """Measure a first start, each view of an incident, and a second start."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    files = [_INCIDENT / "audit.log.gz", _INCIDENT / "leases.json.gz"]
    with costs.measure("the first view of an incident, with an empty cache"):
        web = Web(context, origin)
        web.open(*files)
    views: dict[str, Callable[[], Any]] = {
        "audit": web.page.locator("#audit .card").first.wait_for,
        "timeline": web.timeline.locator(".lane").first.wait_for,
        "check": web.page.locator("#checked h2").wait_for,
    }
    for view, is_there in views.items():
        with costs.measure(f"the next view: {view}"):
            web.show(view)
            is_there()
    with costs.measure("the next view: review"):
        web.page.select_option("#examples", label="Another namespace takes a live lease")
        web.page.wait_for_selector("#verdicts .card")
    web.wait_for_cache()
    with costs.measure("the first view after a reload"):
        web.page.goto(f"{origin}/?again")
        web.open(*files)
    context.close()


def measure_large(browser: Any, origin: str, costs: Costs, what: str, file: Path) -> float:
    """Measure all views of a large file, and return the most memory that a process had, in MB."""
    context = browser.new_context()
    web = Web(context, origin)
    web.page.set_default_timeout(_LARGE)
    with costs.measure(f"why of {what}"):
        web.open(file)
    with costs.measure(f"audit, timeline and check of {what}"):
        for view, selector in (("audit", "#audit h2"), ("timeline", "#timeline iframe"), ("check", "#checked h2")):
            web.show(view)
            web.page.wait_for_selector(selector)
    assert web.error == ""
    memory = find_peak()
    context.close()
    return memory


def main() -> None:
    """Measure, print and publish."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or ""
    costs, rows = Costs(), list[str]()
    with tempfile.TemporaryDirectory() as folder, serve(SITE) as origin, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, chromium_sandbox=os.geteuid() != 0)
        for _ in range(_RUNS):
            measure_small(browser, origin, costs)
        rows += [costs.make_row(what, "5 s" if "first view" in what else "1.5 s") for what in costs.times]
        logs = {"a log of 100 MB": make_lease_log(100), "a list of 60,000 leases, 88 MB": dump(60_000)}
        for what, content in logs.items():
            file = Path(folder) / "large.log"
            with file.open("w") as opened:
                opened.writelines(content)
            memory = measure_large(browser, origin, costs, what, file)
            rows += [costs.make_row(f"why of {what}", f"{memory:.0f} MB at most")]
            rows += [costs.make_row(f"audit, timeline and check of {what}", "")]
        version = browser.version
        browser.close()
    load = os.getloadavg()[1]
    about = f"Chromium {version} on {os.cpu_count()} cores, load {load:.0f}; medians of {_RUNS} runs, large files once."
    table = ["| | time | bar, or memory |", "|---|---|---|", *rows]
    text = "\n".join([_BEGIN, about, "", *table, _END])
    print(text)
    text_before = PAGE.read_text()
    PAGE.write_text(
        text_before[: text_before.index(_BEGIN)] + text + text_before[text_before.index(_END) + len(_END) :]
    )


if __name__ == "__main__":
    main()
