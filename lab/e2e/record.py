"""`make record`: record the reviews of real clients again, for any Kubernetes version, with `serve --capture`.

It replaces the recordings of the clients that can run here: client-go, three of Python, the coordinated election and
what CloudNativePG sends.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from lab.e2e.control_plane import ControlPlane
from lab.e2e.elections import elect_asyncio, elect_client_go, elect_coordinated, elect_python, elect_python_aio
from lab.e2e.primaries import OPERATOR, elect_primary
from lab.e2e.toolchain import Binaries, build_all_binaries
from lab.e2e.webhook_server import WebhookServer
from lab.e2e.world import PROJECT, World

RECORDINGS = PROJECT / "tests" / "data" / "recordings"
INDEX = "index.jsonl"
ROUTE = "record"
ELECTIONS = {
    "client-go": elect_client_go,
    "kubernetes-asyncio": elect_asyncio,
    "kubernetes-python": elect_python,
    "kubernetes-python-aio": elect_python_aio,
    "coordinated": elect_coordinated,
    "cloudnative-pg": elect_primary,
}
RENEWALS_KEPT = 3
"""Plain renewals in a row that are kept."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Record for the chosen versions. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m lab.e2e.record", description=__doc__)
    parser.add_argument("--kubernetes", default="", help="only versions that begin so, for example v1.36")
    parser.add_argument("--into", type=Path, default=RECORDINGS, help="default: the project's own fixtures")
    parser.add_argument("--only", choices=ELECTIONS, help="only this client")
    options = parser.parse_args(arguments)
    clients = [options.only] if options.only else list(ELECTIONS)
    for binaries in build_all_binaries(options.kubernetes):
        with tempfile.TemporaryDirectory(prefix="lease-webhook-record-") as temporary:
            captured = _capture(binaries, Path(temporary), clients)
            count = _keep(captured, options.into, binaries, clients)
            print(f"{binaries.version}: {count} reviews recorded into {options.into}")
    return 0


def _capture(binaries: Binaries, directory: Path, clients: Sequence[str]) -> Path:
    """Run the elections under a webhook that sees every write and denies none."""
    captured = directory / "captured"
    with ControlPlane(binaries, directory) as plane:
        world = World(plane)
        world.create_local_service()
        with WebhookServer(directory, world.certs, policy="observe", capture=captured) as server:
            world.register(ROUTE, server.port, failure_policy="Fail", renewals=True)
            world.create_namespace(OPERATOR)
            for namespace in clients:
                world.create_namespace(namespace, route=ROUTE)
            world.settle()
            for namespace in clients:
                with ExitStack() as stack:
                    outcome = ELECTIONS[namespace](world, stack, namespace)
                    print(f"{binaries.version} {namespace}: {outcome}", file=sys.stderr)
    return captured


def _keep(captured: Path, into: Path, binaries: Binaries, clients: Sequence[str]) -> int:
    """Move the captured reviews to their place, and replace the lines of the index that they replace."""
    kubernetes = binaries.version.removeprefix("v")
    into.mkdir(parents=True, exist_ok=True)
    index = into / INDEX
    lines = [json.loads(line) for line in index.read_text().splitlines()] if index.exists() else []
    replaced = [line for line in lines if line["kubernetes"] == kubernetes and line["client"] in clients]
    for line in replaced:
        (into / line["file"]).unlink()
    entries = [line for line in lines if line not in replaced]
    for client in clients:
        for number, entry in enumerate(_thin_out(captured, client), 1):
            file = f"{kubernetes}/{client}/{number:02}-{entry['operation'].lower()}-{entry['event']}.json"
            (into / file).parent.mkdir(parents=True, exist_ok=True)
            (into / file).write_bytes((captured / entry["file"]).read_bytes())
            about = {
                "client": client,
                "client_version": _find_client_version(client, binaries),
                "kubernetes": kubernetes,
            }
            entries.append(entry | {"file": file} | about)
    index.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    return len(entries) - len(lines) + len(replaced)


def _thin_out(captured: Path, namespace: str) -> Iterator[dict[str, Any]]:
    """Yield the captured reviews of a namespace, in order, without long rows of renewals and failed creations."""
    row, created = 0, set[str]()
    for line in (captured / INDEX).read_text().splitlines():
        entry: dict[str, Any] = json.loads(line)
        if entry["namespace"] != namespace:
            continue
        row = row + 1 if entry["event"] == "renewal" else 0
        is_new = entry["operation"] != "CREATE" or entry["name"] not in created
        if row <= RENEWALS_KEPT and is_new:
            created.add(entry["name"])
            yield entry


def _find_client_version(client: str, binaries: Binaries) -> str:
    if client == "kubernetes-asyncio":
        return f"kubernetes_asyncio (PyPI) {binaries.kubernetes_asyncio}"
    if client.startswith("kubernetes-python"):
        return f"kubernetes (PyPI) {binaries.kubernetes_python}{'.aio' if client.endswith('aio') else ''}"
    if client == "cloudnative-pg":
        return f"the writes of CloudNativePG 1.30, by k8s.io/client-go {binaries.client_go}"
    return f"k8s.io/client-go {binaries.client_go}"


if __name__ == "__main__":
    sys.exit(main())
