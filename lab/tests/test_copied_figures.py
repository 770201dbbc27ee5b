"""Figures of cost and faults in the docs, equal to the measurements: nobody edits one by hand."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from lab import reading_costs
from lab.bench import results
from lab.cluster.table import RESULTS as CLUSTER
from lab.e2e.table import RESULTS
from tests.recordings import recordings
from webhook.cli.timeline import EXAMPLE, EXAMPLE_FILES

ROOT: Final = Path(__file__).parents[2]
DATA: Final = ROOT / "tests" / "data"


def read(path: Path) -> Any:
    return json.loads(path.read_bytes())


def list_costs() -> Iterator[dict[str, float]]:
    """Yield the median of each case in milliseconds, for each version of Kubernetes on which `make e2e` measured it."""
    for topics in read(RESULTS)["rows"].values():
        if "cost" in topics:
            yield {one["claim"]: float(re.findall(r"p50 \+?([\d.]+) ms", one["seen"])[0]) for one in topics["cost"]}


def list_layers() -> list[str]:
    """Return what each layer of the server adds to a takeover, in us, and last their sum."""
    cells = [row[1] for row in read(results.BENCH / "results.json")["by-layer"]["rows"]]
    added = [f"{float(re.findall(r'[+]([0-9.]+)', cell)[0]):.0f}" for cell in cells]
    return [*added, f"{float(cells[-1].split()[0]):.0f}"]


def format_range(added: list[float]) -> str:
    least, most = (f"{number:.1f}" for number in (min(added), max(added)))
    return f"{least} ms" if least == most else f"{least} to {most} ms"


def count_named_limits(source: str) -> tuple[int, int]:
    """Return how often `why` named the client's own rate limiter where that was the cause, and how often it was."""
    answers = [
        answer
        for answer in read(DATA / "causes.json")["cells"]
        if (answer["cause"], answer["source"]) == ("its own rate limiter", source)
    ]
    return (
        sum(answer["number"] for answer in answers if answer["names_limit"]),
        sum(answer["number"] for answer in answers),
    )


def count_refused_by_fence() -> int:
    events = map(json.loads, gzip.decompress((EXAMPLE / EXAMPLE_FILES[1]).read_bytes()).splitlines())
    texts = [event.get("responseStatus", {}).get("message", "") for event in events]
    return sum("ValidatingAdmissionPolicy 'fence-" in text for text in texts)


def list_double_leadership(*incidents: str) -> list[str]:
    truths = [read(DATA / "incidents" / one / "truth.json") for one in incidents]
    return [f"{truth['two_led'][0]['seconds']:.1f}" for truth in truths]


def list_copies() -> Iterator[tuple[str, str]]:
    """Yield each page, and the text that it must have by the measurements."""
    yield "README.md", f"evaluates {len(recordings())} reviews that real API servers sent"

    takeover = format_range([one["what a webhook adds to a takeover without one"] for one in list_costs()])
    renewal = format_range([one["renewal, shipped configuration"] - one["renewal, no webhook"] for one in list_costs()])
    yield "README.md", f"a takeover takes {takeover} longer and a renewal {renewal}"
    yield "docs/cost.md", f"takes {renewal} longer, a takeover {takeover}"
    yield "docs/faq.md", f"takes [{renewal}](cost.md)"
    names = ("renewal, shipped configuration", "takeover, shipped configuration", "renewal, webhook sees everything")
    yield (
        "docs/figures.md",
        f"p50 {' / '.join(', '.join(str(one[name]) for name in names) + ' ms' for one in list_costs())};",
    )
    bare = [" / ".join(str(one[f"{kind}, no webhook"]) for one in list_costs()) for kind in ("renewal", "takeover")]
    yield "docs/figures.md", f"without a webhook {bare[0]} ms (takeover {bare[1]})"

    pods = {row[0]: row[3:] for row in read(results.BENCH / "results.json")["cluster"]["rows"]}
    (most, memory), every, bound = pods["shipped"][2:], pods["all-renewals"], pods["all leases bound"]
    yield "README.md", f"two pods take about {most} mCPU and {memory} MiB together for up to 10,000 leases"
    yield (
        "docs/cost.md",
        f"[{most} mCPU and {memory} MiB](figures.md#cost-and-faults), two pods together, for up to 10,000",
    )
    yield "docs/cost.md", "{}, {} and {} mCPU for 100, 1,000 and 10,000 leases; {} MiB".format(*every)
    yield "docs/cost.md", "{}, {} and {} mCPU; {} MiB".format(*bound)
    yield (
        "docs/figures.md",
        f"two workers take {most} mCPU together for up to 10,000 leases as shipped, and {memory} MiB",
    )
    yield "docs/figures.md", "{} mCPU for 100 leases, {} for 1,000 and {} for 10,000".format(*every)
    yield "docs/figures.md", "with all leases bound, {}, {} and {} mCPU and {} MiB".format(*bound)
    layers = list_layers()
    yield "docs/figures.md", f"of {layers[-1]} us for a takeover, "
    yield (
        "docs/figures.md",
        "a constant answer takes {}, our connections {}, the verdict {}, and all else {}.".format(*layers),
    )
    pure = read(results.BENCH / "results.json")["pure"]["rows"][0]
    yield "docs/figures.md", f"takes {float(pure[1]):.0f} us in a loop without a server"

    shipped = "{}, {} and {} mCPU".format(*pods["shipped"])
    yield "docs/observe-to-strict.md", f"| {shipped} | {'{}, {} and {} mCPU'.format(*every)} |"

    limited, throttled = count_named_limits("log")
    yield "README.md", f"as a possible cause of [{limited} of {throttled} such losses]"

    yield "README.md", f"and {count_refused_by_fence()} writes of the old leader are refused by a fence"

    read_fast, leases_only = (
        one["found"].removesuffix("/s")
        for one in read(reading_costs.RESULTS)["rows"]
        if one["what"].startswith("`why` of an audit log of 1 GB")
    )
    yield "docs/cost.md", f"[{read_fast} of an audit log in a second](figures.md#large-inputs)"
    yield "docs/cost.md", f"one event of ten is about a lease, {leases_only} if all are"
    of_list = {
        one["what"].partition(" ")[0]: float(one["found"].removesuffix(" s"))
        for one in read(reading_costs.RESULTS)["rows"]
        if re.search(r"100,000 leases in a dump, CPU$", one["what"]) and "one of" not in one["what"]
    }
    yield (
        "docs/cost.md",
        "100,000 leases in {:.0f} s (`audit`) and {:.0f} s (`why`) of CPU".format(
            of_list["`audit`"], of_list["`why`,"]
        ),
    )

    stolen = list_double_leadership("lease-stolen", "steal-warned", "lease-deleted")
    yield "docs/promises.md", f"{stolen[0]}, {stolen[1]} and {stolen[2]} s of that beside the new leader"
    (first, second) = list_double_leadership("leader-paused", "fenced")
    assert first == second
    yield "docs/promises.md", f"for about 10 s after it is back | {first} s, twice |"

    measured = len([*(DATA / "measured-incidents").glob("*/truth.json")])
    yield "docs/proof.md", f"the {measured} of `tests/data/measured-incidents`"
    assert len([*(DATA / "incidents").glob("*/truth.json")]) == 16
    yield "docs/proof.md", "the sixteen [recorded incidents]"


@pytest.mark.parametrize(("page", "text"), [*list_copies()])
def test_a_page_copies_what_was_measured(page: str, text: str) -> None:
    assert text in (ROOT / page).read_text(encoding="utf-8")


def test_a_watch_never_names_the_rate_limiter() -> None:
    assert count_named_limits("watch") == (0, 20)


def test_each_answer_names_the_cause_that_was_induced() -> None:
    cells = read(DATA / "causes.json")["cells"]
    assert {cell["source"] for cell in cells if cell["causes"]} == {"log", "watch"}
    assert [cell for cell in cells if cell["is_wrong"]] == []


def test_a_changed_policy_is_in_force_as_soon_as_the_readme_says() -> None:
    assert "which takes up to a minute and a half" in (ROOT / "README.md").read_text(encoding="utf-8")
    texts = [
        row["seen"]
        for rows in read(CLUSTER)["rows"].values()
        for row in rows
        if "policy in the ConfigMap" in row["claim"]
    ]
    seconds = [int(found) for text in texts for found in re.findall(r"in force after (\d+) s", text)]
    assert seconds
    assert max(seconds) <= 90
