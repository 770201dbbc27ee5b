"""Prometheus Operator and Prometheus beside the node: Prometheus runs the configuration that the operator generates."""

import base64
import gzip
import json
import threading
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Self

from lab.cluster.isolation import ADDRESS
from lab.cluster.node import Node
from lab.cluster.programs import build_neighbors
from lab.cluster.world import World
from lab.e2e.control_plane import find_free_port
from lab.e2e.definitions import find_definitions
from lab.e2e.processes import Process
from tests.waiting import wait_for

WATCHED = ("podmonitors", "probes", "prometheuses", "prometheusrules", "servicemonitors")
SECRET = "/api/v1/namespaces/monitoring/secrets/prometheus-main"
RULES = "/api/v1/namespaces/monitoring/configmaps/prometheus-main-rulefiles-0"
TOKEN = "/api/v1/namespaces/monitoring/serviceaccounts/prometheus/token"
MOUNTED_RULES = "/etc/prometheus/rules/prometheus-main-rulefiles-0"
OURS = "serviceMonitor/lease-webhook/lease-webhook/0"
"""The job that the operator makes of our ServiceMonitor."""
PERIOD = 0.3


class Monitoring:
    """Both programs; a context manager that ends them. An overlay with `monitoring` must have been applied."""

    def __init__(self, world: World, node: Node) -> None:
        self._world, self._node = world, node
        self._directory = node.directory / "monitoring"
        self._port = find_free_port()
        self._processes: list[Process] = []
        self._ended = threading.Event()
        self._states: dict[str, str] = {}
        self._watcher = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._directory.mkdir()
        try:
            self._start_operator()
            self._start_prometheus()
        except BaseException:
            self.__exit__()
            raise
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._watcher.is_alive():
            self._watcher.join()
        for process in reversed(self._processes):
            process.kill()

    def list_firing(self) -> set[str]:
        """Return the names of the alerts that fire."""
        return {name for name, state in self._states.items() if state == "firing"}

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the result of one expression, now."""
        return self._get("query", query=expression)["result"]  # type: ignore[no-any-return]

    def query_range(self, expression: str, begin: float, end: float, step: float) -> list[dict[str, Any]]:
        """Return the series of one expression between two moments, in Unix time; raises RuntimeError if refused."""
        data = self._get("query_range", query=expression, start=f"{begin:.3f}", end=f"{end:.3f}", step=f"{step:g}")
        return data["result"]  # type: ignore[no-any-return]

    def _start_operator(self) -> None:
        plane = self._node.plane
        certificate, key = plane.authority.issue("prometheus-operator", organizations=["system:masters"])
        self._run(
            "prometheus-operator",
            build_neighbors().operator,
            f"--apiserver={plane.server}",
            f"--ca-file={plane.authority.file}",
            f"--cert-file={certificate}",
            f"--key-file={key}",
            f"--web.listen-address=127.0.0.1:{find_free_port()}",
        )
        text = (Path(__file__).parent / "monitoring.yaml").read_text()
        values = {
            "{token}": str(self._directory / "token"),
            "{authority}": str(plane.authority.file),
            "{server}": f"https://{ADDRESS}:{plane.port}",
        }
        for name, value in values.items():
            text = text.replace(name, value)
        self._world.kubectl.run_checked("apply", "--server-side", "-f", "-", manifest=text)
        request = {"spec": {"expirationSeconds": 7200}}
        answer = self._world.client.send("POST", TOKEN, request).expect(201)
        (self._directory / "token").write_text(answer["status"]["token"])

    def _start_prometheus(self) -> None:
        configuration, rules = wait_for("what the operator makes of our objects", self._read_configuration, 90, 0.5)
        folder = self._directory / "rules"
        folder.mkdir()
        for name, text in rules.items():
            (folder / name).write_text(text)
        file = self._directory / "prometheus.yaml"
        # What the sidecar of a pod would fill in.
        file.write_text(configuration.replace(MOUNTED_RULES, str(folder)).replace("$(SHARD)", "0"))
        self._run(
            "prometheus",
            build_neighbors().prometheus,
            f"--config.file={file}",
            f"--storage.tsdb.path={self._directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{self._port}",
        )
        try:
            wait_for("Prometheus scrapes two pods and the API server", self._is_scraping, 60, 0.5)
        except TimeoutError as error:
            targets = self._get("targets", state="active")["activeTargets"]
            states = "; ".join(f"{one['scrapeUrl']} {one['health']} {one['lastError']}" for one in targets)
            raise TimeoutError(f"{error}: {states or 'no target was discovered'}") from error

    def _read_configuration(self) -> tuple[str, dict[str, str]] | None:
        """Return the configuration and the files of rules, when both contain our objects."""
        for process in self._processes:
            process.check_alive()
        secret, rules = (self._world.client.send("GET", path) for path in (SECRET, RULES))
        packed = secret.body.get("data", {}).get("prometheus.yaml.gz") if secret.status == 200 else None
        if packed is None or rules.status != 200:
            return None
        configuration = gzip.decompress(base64.b64decode(packed)).decode()
        data: dict[str, str] = rules.body.get("data", {})
        return (configuration, data) if OURS in configuration and "LeaseWebhookGone" in str(data) else None

    def _is_scraping(self) -> bool:
        try:
            up = self.query("up == 1")
        except OSError:
            self._processes[-1].check_alive()
            return False
        jobs = [one["metric"]["job"] for one in up]
        return jobs.count("lease-webhook-metrics") == 2 and len(jobs) == 3

    def _watch(self) -> None:
        while not self._ended.wait(PERIOD):
            try:
                active = self._get("alerts")["alerts"]
            except OSError:
                continue
            states: dict[str, str] = {}
            for target in active:
                name = target["labels"]["alertname"]
                # An alert may have several series: it fires when one does.
                states[name] = "firing" if "firing" in (target["state"], states.get(name)) else target["state"]
            self._states = states

    def _get(self, what: str, **query: str) -> dict[str, Any]:
        address = f"http://127.0.0.1:{self._port}/api/v1/{what}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(address, timeout=20) as answer:
            body = json.loads(answer.read())
        if body["status"] != "success":
            raise RuntimeError(f"{what}: {body}")
        data: dict[str, Any] = body["data"]
        return data

    def _run(self, name: str, program: Path, *flags: str) -> None:
        # In the directory of the node, where the logs are that are shown and kept.
        self._processes.append(Process([str(program), *flags], self._node.directory / f"{name}.log"))


def apply_definitions(world: World, *plurals: str) -> None:
    """Give the cluster the definitions of custom resources."""
    files = [f"--filename={file}" for file in find_definitions(*plurals)]
    world.kubectl.run_checked("apply", "--server-side", *files)
    world.kubectl.run_checked("wait", "--for=condition=Established", "--timeout=30s", *files)
