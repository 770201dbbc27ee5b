"""The rows as one Markdown table, and the page in docs/."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, field

from lab.cluster.plan import CHECKS
from lab.cluster.shortened import FACTOR
from lab.e2e.world import Row
from tools.circumstances import Circumstances, find_circumstances

PAGE = Path(__file__).parents[2] / "docs" / "cluster-figures.md"
RESULTS = Path(__file__).with_name("results.json")
MAX_CELL = 300
OURS = (
    "A single node: kube-apiserver, controller-manager, scheduler, kube-proxy and kubelet built from Go modules, "
    "containerd, runc and a bridge from Debian packages."
)

NEIGHBORS = f"""\
## Alerts and the dashboard

Prometheus Operator reads the ServiceMonitor and the PrometheusRule of the component `monitoring`, and Prometheus runs
with the configuration that it makes. The Deployment's pods and kube-apiserver are scraped. Durations are divided by
{FACTOR}: `for: 1h` is three minutes, `[10m]` is 30 s, a scrape comes every 1.5 s; thresholds are as shipped. Alerts of
the component `audit-alerts` need kube-state-metrics, which this suite does not run; promtool tests them
(`make manifests`).

What the queries of the dashboard gave in that time, over all faults of the table. Drawn by matplotlib from Prometheus'
answers, not by Grafana, which is not part of this suite: one plot for each panel that has data, without the lines that
are zero all the time. `make test` compares the dashboard's JSON with Grafana's published schema.

![Ten plots, one for each panel of the dashboard with data, over the minutes of the run.](images/dashboard.svg)

"""


class Results(Struct):
    """The results of a whole run, by the name of the check; `repeated` are checks that ran again later, and when."""

    circumstances: Circumstances
    version: str
    image: str
    minutes: float
    ours: bool
    rows: dict[str, list[Row]]
    repeated: dict[str, str] = field(default_factory=dict)


def render(rows: Mapping[str, Sequence[Row]]) -> str:
    """Return the table of rows by the name of their check."""
    lines = ["| | | seen |", "|---|---|---|"]
    lines += [
        f"| {CHECKS[name].title} | {row.claim} | {_format_cell(row)} |"
        for name, rows_of_check in rows.items()
        for row in rows_of_check
    ]
    return "\n".join(lines) + "\n"


def publish(rows: Mapping[str, list[Row]], version: str, image: str, minutes: float, *, ours: bool) -> None:
    """Store the results of a whole run, and write the page."""
    _keep(Results(find_circumstances(), version, image, minutes, ours=ours, rows=dict(rows)))


def replace_rows(rows: Mapping[str, list[Row]], version: str) -> None:
    """Replace the rows of checks that ran alone on the same version as the last whole run, and write the page."""
    results = msgspec.json.decode(RESULTS.read_bytes(), type=Results)
    if results.version == version:
        results.rows |= rows
        now = find_circumstances()
        results.repeated |= dict.fromkeys(rows, f"{now.date} of commit {now.commit}")
        _keep(results)


def render_page(results: Results) -> str:
    """Return the page in docs/."""
    again = ", ".join(f"{CHECKS[name].title.lower()} ({name}) on {at}" for name, at in results.repeated.items())
    return (
        "# What real pods showed\n\n"
        f"Made by `make cluster` {results.circumstances}, in {results.minutes:.0f} minutes "
        f"on Kubernetes {results.version}. {OURS if results.ours else 'A cluster that was given.'}\n"
        f"The image: `{results.image}`{', the digest of two builds' if results.ours else ''}.\n"
        f"{f'Repeated separately: {again}.{chr(10)}' if again else ''}\n"
        "Under load: four writers, each with its own lease in a namespace that fails closed (component `strict`), "
        "every write reviewed.\nA write that no pod reviewed is a failed write. "
        "None may fail, except where a process is ended or stopped in the middle of a review.\n"
        "Times were taken on a busy machine: read them as upper limits.\n\n"
        f"{render(results.rows)}\n"
        f"{NEIGHBORS if results.ours else ''}"
        "What this page cannot show, and how to see it: several nodes, a network plugin that enforces policies, other "
        "container runtimes and processor architectures. On any cluster, kind for example:\n\n"
        "```sh needs=kind\nkind create cluster && kind load docker-image lease-webhook:checkout\n"
        "KUBECONFIG=~/.kube/config make cluster IMAGE=lease-webhook:checkout\n```\n"
    )


def _keep(results: Results) -> None:
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(results)) + b"\n")
    PAGE.write_text(render_page(results))


def _format_cell(row: Row) -> str:
    text = row.observation.replace("|", "\\|").replace("\n", " ")[:MAX_CELL]
    return text if row.mark == "ok" else f"**{row.mark}** {text}"
