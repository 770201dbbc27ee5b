"""`record` on a real API server: killed, disk full, API server restarted, upgraded; and what `why` answers then."""

import http.client
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import yaml

from lab.e2e.electors import start_client_go
from lab.e2e.manifests import format_micro_time, make_lease
from lab.e2e.topics.live_timeline import Plane
from lab.e2e.world import PROJECT, Account, Row, World, build_lease_path
from tests.waiting import wait_for

NAMESPACE = "recorded"
TIMES = ("-duration=6s", "-deadline=4s", "-retry=1s", "-release")
PATIENCE = 60.0
_PROGRAM = """\
import sys
from pathlib import Path
from webhook.cli.main import main
from webhook.analysis.inputs import cluster
cluster.ACCOUNT = Path(sys.argv[1])
sys.exit(main(sys.argv[2:]))
"""


class Recording:
    """The command as a pod runs it, with the token of a service account, and the directory that it writes."""

    def __init__(self, plane: Plane, account: Path, directory: Path, *options: str) -> None:
        self._plane = plane
        self._account = account
        self._options = options
        self.save_every = "1"
        self.directory = directory
        self.log = directory.with_suffix(".log")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def start(self) -> None:
        """Start the command, and wait until it has listed the leases."""
        place = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(self._plane.port)}
        words = ["record", str(self.directory), "--in-cluster", f"--save-every={self.save_every}", *self._options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(self._account), *words],
                cwd=PROJECT, env={**os.environ, **place}, stderr=log,
            )  # fmt: skip
        began = time.time()
        latest = self.directory / "latest.jsonl"
        patience = PATIENCE + float(self.save_every)
        wait_for("the recorder", lambda: latest.exists() and latest.stat().st_mtime > began, patience)

    def stop(self, number: int) -> int:
        """Stop the command by a signal; return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def ask_why(self, lease: str) -> tuple[dict[str, Any], str]:
        """Return the answer of `why` about a lease from the record, and its standard error."""
        return ask_why(lease, self.directory)


def ask_why(lease: str, record: Path) -> tuple[dict[str, Any], str]:
    """Return the answer of `why` about a lease from a file or a directory, and its standard error."""
    words = [sys.executable, "-m", "webhook", "why", f"{NAMESPACE}/{lease}", "--input", str(record), "--format=json"]
    result = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, check=False)
    return json.loads(result.stdout) if result.returncode == 0 else {}, result.stderr


def run(world: World) -> Iterator[Row]:
    """Run on a separate control plane, whose API server is restarted."""
    directory = world.directory / "recorder"
    directory.mkdir()
    with Plane(world.plane.binaries, directory) as plane, ExitStack() as stack:
        own = World(plane)
        own.create_namespace(NAMESPACE)
        account = create_shipped_account(own)
        watch = stack.enter_context((directory / "watch.json").open("wb"))
        words = ("get", "leases", "-A", "-w", "-o", "json", "--output-watch-events", "--show-managed-fields")
        kubectl = subprocess.Popen(
            [plane.binaries.kubectl, f"--kubeconfig={plane.write_kubeconfig('admin', 'system:masters')}", *words],
            stdout=watch, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        stack.callback(kubectl.kill)
        recording = stack.enter_context(Recording(plane, account, directory / "history"))
        yield _check_election(own, recording, stack, Path(watch.name))
        kubectl.kill()
        yield _check_full_disk(own, recording)
        yield _check_kill(own, recording)
        yield _check_api_server_restart(own, plane, recording)
        yield _check_upgrade(own, recording)
        yield _check_size(recording)


def create_shipped_account(world: World) -> Path:
    """Apply the rights of the component; return a directory like that of a pod's service account."""
    text = (PROJECT / "deploy" / "components" / "recorder" / "rights.yaml").read_text()
    world.admin.send("POST", "/api/v1/namespaces", {"metadata": {"name": "lease-webhook"}}).expect(201, 409)
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    for document in yaml.safe_load_all(text):
        if document["kind"] != "ServiceAccount":
            world.admin.send("POST", f"{rbac}/{document['kind'].lower()}s", document).expect()
    return write_pod_directory(world, world.create_account("lease-webhook", "lease-recorder"))


def write_pod_directory(world: World, account: Account) -> Path:
    """Write the token of an account, and the CA, where a pod would find them."""
    folder = world.directory / "account"
    folder.mkdir()
    token = json.loads(account.kubeconfig.read_text())["users"][0]["user"]["token"]
    (folder / "token").write_text(token)
    (folder / "ca.crt").write_bytes(world.plane.authority.file.read_bytes())
    return folder


def write(world: World, name: str, holder: str) -> None:
    """Write a holder into a lease; an API server that was restarted has closed its connections."""

    def is_written() -> bool:
        try:
            _write(world, name, holder)
        except (OSError, http.client.HTTPException):
            return False
        return True

    wait_for("a write", is_written, PATIENCE)


def _write(world: World, name: str, holder: str) -> None:
    body = make_lease(name, holderIdentity=holder, renewTime=format_micro_time())
    reply = world.admin.send("POST", build_lease_path(NAMESPACE), body)
    if reply.status == 409:
        spec = {"spec": body["spec"]}
        world.admin.send(
            "PATCH", build_lease_path(NAMESPACE, name), spec, media="application/merge-patch+json"
        ).expect()


def _check_election(world: World, recording: Recording, stack: ExitStack, watch: Path) -> Row:
    electors = {}
    for name in ("red", "green", "other"):
        electors[name] = start_client_go(
            stack, world.plane.binaries, world.create_account(NAMESPACE, name).kubeconfig, *TIMES,
            namespaces=[NAMESPACE], lease="other" if name == "other" else "election", identity=name,
        )  # fmt: skip

    def read_holder() -> str:
        body = world.admin.send("GET", build_lease_path(NAMESPACE, "election")).body
        return str(body.get("spec", {}).get("holderIdentity") or "")

    first = wait_for("a leader", read_holder, PATIENCE)
    time.sleep(25)
    electors[first].process.kill()
    wait_for("the next leader", lambda: read_holder() not in {"", first}, PATIENCE)
    time.sleep(6)
    found, _ = recording.ask_why("election")
    expected, _ = ask_why("election", watch)

    def extract_essence(account: dict[str, Any]) -> list[Any]:
        tenures = [
            (one["holder"], one["since"], one["began"], one.get("leaderless_seconds")) for one in account["tenures"]
        ]
        return [
            tenures,
            [(one["check"], one["message"]) for one in account["findings"] if one["check"] == "leader-lost"],
        ]

    is_equal = extract_essence(found) == extract_essence(expected)
    sizes = [path.stat().st_size for path in recording.directory.glob("leases-*")]
    observation = (
        f"{len(found['tenures'])} holders, {sum(sizes)} bytes in place of {watch.stat().st_size}; equal: {is_equal}"
    )
    return Row("why says of a crash what it says from a watch", observation, is_equal)


def _check_full_disk(world: World, recording: Recording) -> Row:
    """Check a full disk: a limit on the size of files fails a write in its middle."""
    process = recording.process.pid
    size = max(path.stat().st_size for path in recording.directory.glob("leases-*"))
    resource.prlimit(process, resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
    write(world, "disk", "before")
    time.sleep(3)
    write(world, "disk", "during")
    is_reported = wait_for("the problem", lambda: "cannot be written" in recording.log.read_text(), PATIENCE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    write(world, "disk", "after")
    time.sleep(3)
    account, errors = recording.ask_why("disk")
    holders = [one["holder"] for one in account["tenures"]]
    return Row(
        "a full disk is said, and what waited is written", f"holders {holders}, {errors!r}",
        is_reported and holders == ["before", "during", "after"] and not errors,
    )  # fmt: skip


def _check_kill(world: World, recording: Recording) -> Row:
    recording.stop(signal.SIGKILL)
    write(world, "killed", "while it was dead")
    world.admin.send("DELETE", build_lease_path(NAMESPACE, "disk")).expect()
    time.sleep(2)
    recording.start()
    write(world, "killed", "afterwards")
    time.sleep(3)
    account, errors = recording.ask_why("killed")
    holders = [one["holder"] for one in account["tenures"]]
    is_named = "not recorded from" in errors and "did not run" in errors
    return Row(
        "kill -9: what was lost is a gap", f"holders {holders}, {errors.strip()!r}",
        is_named and holders[-1] == "afterwards",
    )  # fmt: skip


def _check_api_server_restart(world: World, plane: Plane, recording: Recording) -> Row:
    write(world, "restart", "before")
    time.sleep(2)
    away = plane.restart()
    write(world, "restart", "after")
    wait_for("the lease", lambda: recording.ask_why("restart")[0].get("holder") == "after", PATIENCE)
    account, errors = recording.ask_why("restart")
    holders = [one["holder"] for one in account["tenures"]]
    gaps = [line for line in errors.splitlines() if "did not run" not in line]
    return Row(
        "the API server restarts: it goes on", f"away for {away:.1f} s, holders {holders}, gaps: {gaps}",
        holders == ["before", "after"],
    )  # fmt: skip


def _check_upgrade(world: World, recording: Recording) -> Row:
    write(world, "upgrade", "before")
    time.sleep(1)
    code = recording.stop(signal.SIGTERM)
    recording.start()
    write(world, "upgrade", "after")
    time.sleep(2)
    account, errors = recording.ask_why("upgrade")
    holders = [one["holder"] for one in account["tenures"]]
    return Row(
        "an upgrade: it stops, starts and goes on",
        f"exit code {code}, holders {holders}, {errors.count('not recorded')} gaps",
        code == 0 and holders == ["before", "after"] and errors.count("not recorded") >= 2,
    )  # fmt: skip


def _check_size(recording: Recording) -> Row:
    """Check that renewals are in the records that follow them, and not records of their own."""
    recording.stop(signal.SIGTERM)
    paths = recording.directory.glob("*.jsonl")
    lines = [json.loads(line) for path in paths for line in path.read_bytes().splitlines()]
    counts = [one["renewals"] for one in lines if "renewals" in one]
    renewals = sum(len(one["latest"]) + sum(one["histogram"].values()) for one in counts)
    return Row("ordinary renewals are counted", f"{len(lines)} lines, {renewals} renewals in them", renewals > 20)
