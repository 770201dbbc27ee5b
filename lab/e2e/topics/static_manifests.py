"""The webhook and the depth policy as static manifests on an API server's disk, on a control plane of their own."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from lab.e2e.api_client import ApiClient
from lab.e2e.control_plane import ControlPlane
from lab.e2e.one_lease import OneLease, make_entry, nest_fields
from lab.e2e.webhook_server import WebhookServer
from lab.e2e.world import PROJECT, REGISTRATIONS, Row, World, build_lease_path, make_absent_row
from tests import protobuf
from tests.waiting import wait_for

FIRST_MINOR: Final = 36
"""Alpha there; on by default one version later."""
GATES: Final = "CoordinatedLeaderElection=true,ManifestBasedAdmissionControlConfig=true"
NAME: Final = "lease-webhook.static.k8s.io"
FOLDERS: Final = ("webhooks", "policies")
RELOAD_SECONDS: Final = 150
"""At most: the API server looks once a minute."""
NAMESPACE: Final = "default"
BROKEN: Final = "kind: Nothing\n"
_RELOADS: Final = re.compile(
    r'^apiserver_manifest_admission_config_controller_automatic_reloads_total\{.*status="failure".*\} (\S+)$',
    re.MULTILINE,
)


def run(world: World) -> Iterator[Row]:
    """Start an API server that finds the files on its disk, write, break the files, and remove them."""
    if world.plane.binaries.minor < FIRST_MINOR:
        yield make_absent_row("static manifests", world.plane.binaries.version)
        return
    directory = world.directory / "static"
    with WebhookServer(world.directory, world.certs) as webhook:
        flags = _configure(world, directory, webhook.port)
        with ControlPlane(world.plane.binaries, directory / "plane", flags=flags) as plane:
            admin = plane.create_client("admin", "system:masters")
            yield from _check_in_force(admin, webhook)
            yield from _check_outside_api(admin)
            yield from _check_changed_on_disk(admin, directory / "webhooks")
        yield _check_broken_file(world, directory, flags)


def _configure(world: World, directory: Path, port: int) -> list[str]:
    """Write the files of docs/static-manifests.md for this directory and this port; return the API server's flags."""
    (directory / "plane").mkdir(parents=True)
    shipped = world.tree / "deploy" / "static-manifests"
    for folder in FOLDERS:
        (directory / folder).mkdir()
        text = world.kubectl.run_checked("kustomize", str(shipped / folder))
        (directory / folder / "lease-webhook.yaml").write_text(text.replace("127.0.0.1:8443", f"127.0.0.1:{port}"))
    configuration = directory / "admission-configuration.yaml"
    text = (shipped / configuration.name).read_text()
    configuration.write_text(text.replace("/etc/kubernetes/lease-webhook", str(directory)))
    return [f"--admission-control-config-file={configuration}", f"--feature-gates={GATES}"]


def _check_in_force(admin: ApiClient, webhook: WebhookServer) -> Iterator[Row]:
    status, message = _try_proof(admin)
    observation = f"HTTP {status}: {message.partition(':')[0]}..."
    yield Row("the first write after the start is reviewed", observation, status == 422 and "lease webhook" in message)
    lease = OneLease(admin, NAMESPACE, "renewed")
    lease.create().expect(201)
    before = webhook.count_reviews()
    lease.put().expect(200)
    renewals = webhook.count_reviews() - before
    lease.put(holderIdentity="b").expect(200)
    takeovers = webhook.count_reviews() - before - renewals
    observation = f"{renewals} reviews of a plain renewal, {takeovers} of a takeover"
    yield Row("the match condition holds", observation, (renewals, takeovers) == (0, 1))
    deep = OneLease(admin, NAMESPACE, "deep")
    deep.create().expect(201)
    body = protobuf.lease(deep.make_changed(), [make_entry("z", nest_fields(9).encode())])
    reply = admin.send("PUT", deep.path, body, media=protobuf.MEDIA)
    yield Row("the depth policy: 9 levels", f"HTTP {reply.status}", reply.status == 422)


def _check_outside_api(admin: ApiClient) -> Iterator[Row]:
    count = len(admin.get(REGISTRATIONS)["items"])
    status = admin.send("DELETE", f"{REGISTRATIONS}/{NAME}").status
    observation = f"{count} listed, DELETE gives HTTP {status}"
    yield Row("the API neither shows nor deletes it", observation, (count, status) == (0, 404))
    created = admin.send("POST", REGISTRATIONS, {"metadata": {"name": NAME}})
    yield Row("no one takes its name through the API", f"HTTP {created.status}", created.status == 422)


def _check_changed_on_disk(admin: ApiClient, folder: Path) -> Iterator[Row]:
    (folder / "broken.yaml").write_text(BROKEN)
    begin = time.monotonic()

    def is_refused() -> bool:
        return any(float(count) for count in _RELOADS.findall(admin.send("GET", "/metrics").message))

    wait_for("a failed reload", is_refused, RELOAD_SECONDS, 1)
    status, _ = _try_proof(admin)
    observation = f"noticed after {time.monotonic() - begin:.0f} s, the proof gives HTTP {status}"
    yield Row("with a broken file the last good ones stay in force", observation, status == 422)
    for file in folder.iterdir():
        file.unlink()
    begin = time.monotonic()
    wait_for("the files to be gone", lambda: _try_proof(admin)[0] == 201, RELOAD_SECONDS, 1)
    yield Row(
        "break-glass: without the files nothing is reviewed", f"after {time.monotonic() - begin:.0f} s", passed=True
    )


def _check_broken_file(world: World, directory: Path, flags: list[str]) -> Row:
    (directory / "webhooks" / "broken.yaml").write_text(BROKEN)
    (directory / "again").mkdir()
    try:
        with ControlPlane(world.plane.binaries, directory / "again", flags=flags):
            observation = "it starts"
    except RuntimeError as error:
        observation = "it exits" if "broken.yaml" in str(error) else str(error)
    return Row("an API server that starts with a broken file", observation, observation == "it exits")


def _try_proof(admin: ApiClient) -> tuple[int, str]:
    """Return the status and message of deploy/proof.yaml as a dry run."""
    body: dict[str, Any] = yaml.safe_load((PROJECT / "deploy" / "proof.yaml").read_text())
    reply = admin.send("POST", build_lease_path(NAMESPACE), body, dryRun="All")
    return reply.status, reply.message
