"""`make fleet`: handovers and refusals by SQL in DuckDB, ClickHouse and Spark are those that `why` finds.

Every recorded incident is a cluster of its own. With `--events`, a log of so many events is generated too, and each
engine, `why` and `jq` read it.
"""

import argparse
import gzip
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from lab.fleet.engines import ENGINES
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.merge.merged import Merged
from webhook.analysis.inputs.files import find_inputs

ROOT: Final = Path(__file__).parents[2]
DATA: Final = ROOT / "tests" / "data"
HANDOVERS: Final = """
SELECT cluster, namespace, name, since, previous, holder, how,
  CASE WHEN how IN ('expired', 'released') THEN round(leaderless * 1000) ELSE -1 END
FROM handovers ORDER BY 1, 2, 3, 4"""
REFUSALS: Final = "SELECT cluster, namespace, name, answered, code, refused_by FROM refusals ORDER BY 1, 2, 3, 4, 5"
CHOSEN: Final = ("incidents.coordinated",)
"""The API server chose the holder, which led from its own first renewal on: SQL counts up to the choice."""
_MAX_REQUEST_MILLISECONDS: Final = 100
"""The most by which a bound of `why` may exceed what SQL says; requests of the recordings took less."""
JQ: Final = 'select(.verb == "delete")'
_LEASES: Final = 100

Rows = list[tuple[Any, ...]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare. Return 1 if an engine is missing or differs from `why`."""
    parser = argparse.ArgumentParser(prog="python -m lab.fleet", description=__doc__)
    parser.add_argument("--events", type=int, default=0, help="generate a log of so many events, too")
    parser.add_argument("--only", nargs="+", choices=ENGINES, default=list(ENGINES))
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="lease-webhook-fleet-") as name:
        folder = Path(name)
        copy_incidents(folder / "recorded" / "audit")
        failed = _compare(folder / "recorded", options.only)
        if options.events:
            log = folder / "generated" / "audit" / "one" / "audit.jsonl"
            generate_log(log, options.events)
            seconds_by_reader: dict[str, float] = {}
            failed += _compare(folder / "generated", options.only, seconds_by_reader)
            began = time.monotonic()
            subprocess.run(["jq", "-c", JQ, str(log)], check=True, stdout=subprocess.DEVNULL)
            seconds_by_reader["jq, a filter on the verb alone"] = time.monotonic() - began
            size = log.stat().st_size / 1e6
            print(f"\n{options.events} events, {size:.0f} MB\n\n| reader | seconds | MB/s |\n|---|---|---|")
            for reader, seconds in seconds_by_reader.items():
                print(f"| {reader} | {seconds:.0f} | {size / seconds:.0f} |")
    return 1 if failed else 0


def copy_incidents(folder: Path) -> None:
    """Give each incident the folder of a cluster."""
    logs = [*(DATA / "incidents").glob("*/audit.log.gz"), *(DATA / "measured-incidents").glob("*/audit.jsonl.gz")]
    for log in logs:
        cluster = folder / f"{log.parent.parent.name}.{log.parent.name}"
        cluster.mkdir(parents=True)
        (cluster / "audit.jsonl").write_bytes(gzip.decompress(log.read_bytes()))


def generate_log(path: Path, number: int) -> None:
    """Write a log of leases that are renewed every two seconds, and lost by one holder in every thousand renewals.

    The objects of requests, and managedFields, are left out, as an audit policy can have it.
    """
    path.parent.mkdir(parents=True)
    lines = gzip.decompress((DATA / "incidents" / "leader-killed" / "audit.log.gz").read_bytes()).splitlines()
    update = next(event for line in lines if (event := json.loads(line))["verb"] == "update")
    response = update["responseObject"]
    del update["requestObject"], response["metadata"]["managedFields"]
    text = json.dumps(update, separators=(",", ":"))
    for original, mark in (
        (response["spec"]["renewTime"], "@RENEWED@"),
        (update["stageTimestamp"], "@ANSWERED@"),
        (update["requestReceivedTimestamp"], "@ANSWERED@"),
        (response["spec"]["holderIdentity"], "@HOLDER@"),
        (response["metadata"]["name"], "@NAME@"),
    ):
        text = text.replace(f'"{original}"', f'"{mark}"')
    text = text.replace(
        f'"resourceVersion":"{response["metadata"]["resourceVersion"]}"', '"resourceVersion":"@VERSION@"'
    )
    at = 1_790_000_000.0
    holders = [0] * _LEASES
    with path.open("w") as file:
        for event in range(number):
            lease = event % _LEASES
            at += 2 / _LEASES
            if event % 997 == 0 and event:
                at += 20
                holders[lease] += 1
            moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at % 1 * 1e6):06d}Z"
            line = (
                text.replace("@VERSION@", str(1000 + event)).replace("@RENEWED@", moment).replace("@ANSWERED@", moment)
            )
            line = line.replace("@NAME@", f"lease-{lease}").replace("@HOLDER@", f"holder-{holders[lease]}")
            file.write(line + "\n")


def _compare(folder: Path, names: Iterable[str], seconds_by_reader: dict[str, float] | None = None) -> int:
    """Compare with `why`, and return how many rows differ.

    `seconds_by_reader` gets the time that each of them needs for handovers.
    """
    seconds_by_reader = {} if seconds_by_reader is None else seconds_by_reader
    began = time.monotonic()
    expected = {cluster.name: _follow(cluster) for cluster in sorted((folder / "audit").iterdir())}
    seconds_by_reader["why"] = time.monotonic() - began
    failed = 0
    for name in names:
        if importlib.util.find_spec(ENGINES[name].package) is None:
            print(f"FAILED {name}: {ENGINES[name].package} is not installed", file=sys.stderr)
            failed += 1
            continue
        engine = ENGINES[name](folder)
        for what, query, truth in (("refusals", REFUSALS, list_refusals), ("handovers", HANDOVERS, list_handovers)):
            expected_rows = sorted((cluster, *row) for cluster, one in expected.items() for row in truth(one))
            began = time.monotonic()
            rows = engine.query(query)
            seconds_by_reader[name] = time.monotonic() - began
            near = set(rows) & set(expected_rows) if truth is list_refusals else _find_near(rows, expected_rows)
            different = sorted(
                row for row in (set(rows) | set(expected_rows)) - near if row[0] not in CHOSEN or row[-1] == -1
            )
            print(
                f"{name}: {len(rows)} {what} of {len(expected)} clusters, {len(different)} differ from why", flush=True
            )
            for row in different[:20]:
                print("  ", "SQL" if row in set(rows) else "why", *row)
            failed += len(different)
    return failed


def _find_near(rows: Iterable[Any], expected_rows: Iterable[Any]) -> set[Any]:
    """Return the rows of both in which they agree: all columns, and the last one within the length of a request.

    The last column is in milliseconds. An API server stores a renewal at some time between its request and the answer,
    so what `why` says is a bound.
    """
    bounds = {row[:-1]: row for row in expected_rows}
    pairs = ((row, bounds[row[:-1]]) for row in rows if row[:-1] in bounds)
    return {
        each for row, bound in pairs if 0 <= bound[-1] - row[-1] <= _MAX_REQUEST_MILLISECONDS for each in (row, bound)
    }


def _follow(folder: Path) -> ClusterHistory:
    histories = ClusterHistory()
    for item in Merged(find_inputs([str(folder)]), 2**62):
        histories.add(item)
    return histories


def list_handovers(histories: ClusterHistory) -> Rows:
    """Return the findings of `why` in the columns of SQL, which does not see a new pod under the same identity."""
    return [
        (namespace, name, tenure.since, tenure.previous, tenure.holder, tenure.began.value, _measure_leaderless(tenure))
        for (namespace, name), one in histories.leases.items()
        for tenure in one.tenures
        if tenure.began not in {Handover.SEEN, Handover.CREATED, Handover.REPLACED} and tenure.previous
    ]


def _measure_leaderless(tenure: Tenure) -> int:
    """Return milliseconds, as SQL counts them: up to the write of the holder, not to its own first renewal."""
    is_known = tenure.began in {Handover.EXPIRED, Handover.RELEASED} and tenure.leaderless is not None
    return round((tenure.leaderless or 0) / 1000) if is_known else -1


def list_refusals(histories: ClusterHistory) -> Rows:
    """Return the refused writes in the same way."""
    return [
        (namespace, name, refusal.at, refusal.code, refusal.by.value)
        for (namespace, name), one in histories.leases.items()
        for refusal in one.requests.refusals
        if refusal.code >= 400 and not refusal.is_read
    ]


if __name__ == "__main__":
    sys.exit(main())
