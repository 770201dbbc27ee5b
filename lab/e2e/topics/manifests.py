"""Every overlay applies cleanly and is stored as written; the shipped service reference routes real writes."""

import copy
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import yaml

from lab.e2e.api_client import MERGE
from lab.e2e.definitions import WRITTEN, find_definitions, find_versions
from lab.e2e.manifests import make_lease
from lab.e2e.stamp_cases import FIRST_MINOR, SUFFIX
from lab.e2e.webhook_server import WebhookServer
from lab.e2e.world import PROJECT, REGISTRATIONS, Row, World, build_lease_path
from tests.waiting import wait_for

BASE64 = (".caBundle", ".data.ca.crt", ".data.tls.crt", ".data.tls.key")
BASE = "self-signed"
README = (PROJECT / "README.md").read_text()
FOREIGN = ("cert-manager.io", "monitoring.coreos.com")
"""Groups of the custom resources that we write."""
"""A namespace that no other topic makes."""
SERVICE = "/api/v1/namespaces/lease-webhook/services/lease-webhook"


def run(world: World) -> Iterator[Row]:
    """Apply every overlay.

    Ends with the Service of the self-signed overlay turned into a name for this machine, for the other topics.
    Whatever reviews or refuses writes is deleted again.
    """
    definitions = [f"--filename={file}" for file in find_definitions(*WRITTEN)]
    world.kubectl.run_checked("apply", "--server-side", *definitions)
    world.kubectl.run_checked("wait", "--for=condition=Established", "--timeout=30s", *definitions)
    overlays = sorted(path.name for path in (PROJECT / "deploy" / "overlays").iterdir())
    components = sorted(path.name for path in (PROJECT / "deploy" / "components").iterdir())
    if world.plane.binaries.minor < FIRST_MINOR:
        components.remove("stamp")
    policies = world.tree / "deploy" / "stamp" / "policies.yaml"
    policies.write_text(policies.read_text().replace("expression: SUFFIX", f"expression: \"'{SUFFIX}'\""))
    for component in components:
        _write_overlay(world, component)
    # The self-signed overlay itself comes last and stays.
    others = [name for name in overlays if name != BASE] + [f"{BASE}+{name}" for name in components]
    for overlay in others:
        objects = world.render(overlay)
        yield _apply(world, f"overlay {overlay}", objects)
        _remove(world, objects)
    yield _check_typos(world, [world.render("cert-manager"), world.render(f"{BASE}+monitoring")])
    yield _apply(world, f"overlay {BASE}", world.render(BASE))
    yield from _check_route(world)


def _write_overlay(world: World, component: str) -> None:
    """Write an overlay as a person would: the self-signed one and a component."""
    directory = world.tree / "deploy" / "overlays" / f"{BASE}+{component}"
    directory.mkdir()
    kustomization = {"resources": [f"../{BASE}"], "components": [f"../../components/{component}"]}
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))


def _check_typos(world: World, manifests: list[list[dict[str, Any]]]) -> Row:
    """Put one unknown field in each custom resource: a definition that took anything would take it."""
    foreign = [thing for objects in manifests for thing in objects if thing["apiVersion"].partition("/")[0] in FOREIGN]
    accepted = []
    for thing in foreign:
        manifest = copy.deepcopy(thing)
        manifest.get("spec", manifest)["renewTyme"] = "1h"
        result = world.kubectl.run("apply", "--server-side", "--dry-run=server", "-f", "-", manifest=manifest)
        if not result.status or "renewTyme" not in result.stderr:
            accepted.append(f"{thing['kind']} {thing['metadata']['name']}: {result.stdout or result.stderr}")
    kinds = sorted({thing["kind"] for thing in foreign})
    observation = "; ".join(accepted) or f"refused in each of {len(foreign)} objects: {', '.join(kinds)}"
    of = ", ".join(f"{module.rpartition('/')[2]} {version}" for module, version in find_versions().items())
    return Row(f"a field that the definitions of {of} do not know", observation, bool(kinds) and not accepted)


def _apply(world: World, claim: str, objects: list[dict[str, Any]]) -> Row:
    text = yaml.safe_dump_all(objects)
    result = world.kubectl.run("apply", "--server-side", "-f", "-", manifest=text)
    problems = [result.stderr.strip()] if result.status or result.stderr else []
    if not problems:
        answer = json.loads(world.kubectl.run_checked("get", "-f", "-", "-o", "json", manifest=text))
        answers = answer["items"] if answer["kind"] == "List" else [answer]
        for manifest, stored in zip(objects, answers, strict=True):
            problems += [f"{manifest['kind']}{where}" for where in _find_missing(manifest, stored)]
    observation = "; ".join(problems) or f"{len(objects)} objects stored as written, no warning"
    return Row(f"{claim}: server-side apply", observation, not problems)


def _remove(world: World, objects: list[dict[str, Any]]) -> None:
    """Remove objects that would disturb the next overlay; namespaces stay, as nothing here finishes their deletion."""
    others = [entry for entry in objects if entry["kind"] != "Namespace"]
    world.kubectl.run_checked("delete", "--wait=false", "-f", "-", manifest=yaml.safe_dump_all(others))


def _find_missing(manifest: Any, stored: Any, path: str = "") -> Iterator[str]:
    """Yield where `stored` differs from `manifest`; what the API server added beside it does not count.

    An empty list or map is not stored at all, and base64 comes back without the line breaks that kustomize makes.
    """
    if isinstance(manifest, dict) and isinstance(stored, dict):
        for key, value in manifest.items():
            yield from _find_missing(value, stored.get(key), f"{path}.{key}")
    elif isinstance(manifest, list) and isinstance(stored, list) and len(manifest) == len(stored):
        for index, value in enumerate(manifest):
            yield from _find_missing(value, stored[index], f"{path}[{index}]")
    elif isinstance(manifest, str) and isinstance(stored, str) and path.endswith(BASE64):
        if "".join(manifest.split()) != stored:
            yield f"{path} differs"
    elif (manifest or None if isinstance(manifest, list | dict) else manifest) != stored:
        yield f"{path} is {stored!r}, applied was {manifest!r}"


def _check_route(world: World) -> Iterator[Row]:
    """Check the webhook as shipped: service reference, caBundle and certificate; only the port is local."""
    name = {"spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": None, "clusterIPs": None}}
    world.admin.send("PATCH", SERVICE, name, media=MERGE).expect()
    world.create_namespace("shipped")
    person, _ = world.create_user("shipped-user")
    with WebhookServer(world.directory, world.certs) as server:
        port = [{"op": "replace", "path": "/webhooks/0/clientConfig/service/port", "value": server.port}]
        path = f"{REGISTRATIONS}/lease-webhook"
        world.admin.send("PATCH", path, port, media="application/json-patch+json").expect()

        def find_denial() -> str:
            body = make_lease("absurd", leaseDurationSeconds=2147483647)
            reply = person.send("POST", build_lease_path("shipped"), body, dryRun="All")
            return reply.message if reply.status == 422 else ""

        message = wait_for("a denial through the shipped service reference", find_denial, 30)
        proof = world.kubectl.run("create", "--dry-run=server", "-f", str(PROJECT / "deploy" / "proof.yaml"))
        message_of_proof = proof.stderr.strip()
        yield Row(
            "the proof of README, asked as system:masters",
            message_of_proof,
            proof.status == 1 and message_of_proof in README,
        )
        yield _check_status(world, "in force: the webhook refused", "0 of 2 ready")
        person.send("POST", build_lease_path("shipped"), make_lease("good")).expect(201)
        reviews = server.count_reviews()
        observation = f"a bad Lease refused, a good one created, {reviews} reviews answered"
        yield Row(
            "the shipped Service name, caBundle and SAN reach gunicorn",
            observation,
            "duration" in message and reviews > 1,
        )
    yield _check_status(world, "not in force: the API server would store", "failurePolicy Ignore, 2 s, CA until")
    world.kubectl.run_checked("delete", "validatingwebhookconfiguration", "lease-webhook")
    yield _check_status(world, "not in force: the API server would store", "not-registered")
    world.kubectl.run_checked("delete", "validatingadmissionpolicybinding", "lease-webhook-depth")


def _check_status(world: World, begin: str, fact: str) -> Row:
    """Ask `lease-webhook status`; no pod runs here, so something is always wrong."""
    kubectl = world.plane.binaries.kubectl
    environment = {**os.environ, "PATH": f"{kubectl.parent}:{os.environ['PATH']}"}
    command = [
        sys.executable,
        "-m",
        "webhook",
        "status",
        f"--kubeconfig={world.plane.write_kubeconfig('admin', 'system:masters')}",
    ]
    result = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)
    print(result.stdout, file=sys.stderr)
    observation = f"exit {result.returncode}: {result.stdout.partition(chr(10))[0]}"
    passed = result.returncode == 1 and result.stdout.startswith(begin) and fact in result.stdout
    return Row(f"`lease-webhook status` with {fact.partition(',')[0]}", observation, passed)
