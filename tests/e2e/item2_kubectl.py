"""Item 2: everything that kubectl can do to a Lease and to a LeaseCandidate, allowed and refused."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from tests.e2e.api_client import ApiClient
from tests.e2e.kubectl import Kubectl, Printed
from tests.e2e.manifests import micro_time, sample_candidate, sample_lease
from tests.e2e.webhook_server import WebhookServer
from tests.e2e.world import COORDINATION, WEBHOOK, Row, World

NAMESPACE = "kubectl"
FOREVER = 2147483647
DEPRECATION = re.compile(r"^Warning: coordination.k8s.io/\w+ LeaseCandidate is deprecated in .*$", re.MULTILINE)
"""The API server's own warning about the version, not ours."""
REFUSED = re.compile(r"\(lease webhook, rule [a-z-]+\)")

INVALID_TEXT = (
    'The Lease "pinned" is invalid: '
    "spec.leaseDurationSeconds: Invalid value: 2147483647: must not be greater than 31536000; "
    "a dead holder would keep the lease for as long (lease webhook, rule duration-too-long)\n"
)
FORBIDDEN_TEXT = re.compile(
    rf'Error from server \(Forbidden\): admission webhook "{re.escape(WEBHOOK)}" denied the request: '
    r'spec\.holderIdentity: Forbidden: lease "kubectl/pinned" is held by "pinned-holder", last write seen \d+ s ago '
    r"\(\d\d:\d\d:\d\dZ, API server clock\), duration 15 s; retry in \d+ s, or ask the holder to release it "
    r"\(lease webhook, rule takeover-before-expiry\)\n"
)
"""How kubectl prints a denial, word for word."""
RELEASE = json.dumps({"spec": {"holderIdentity": None}})


class _Kind(Struct, frozen=True):
    """A kind in one version: how to make one, a change that nobody minds, and one that a rule refuses."""

    label: str
    plural: str
    resource: str
    make: Callable[[str], dict[str, Any]]
    good: dict[str, Any]
    bad: dict[str, Any]
    deletion_is_judged: bool = False

    def changed(self, name: str, change: dict[str, Any]) -> dict[str, Any]:
        """The object with a change in its spec."""
        made = self.make(name)
        return made | {"spec": made["spec"] | change}


Attempt = Callable[[Kubectl, _Kind, str, dict[str, Any]], Printed]


def _write(verb: str, *flags: str) -> Attempt:
    return lambda kubectl, kind, name, change: kubectl.run(
        verb, "-n", NAMESPACE, "-f", "-", *flags, manifest=kind.changed(name, change)
    )


def _patch(style: str) -> Attempt:
    def attempt(kubectl: Kubectl, kind: _Kind, name: str, change: dict[str, Any]) -> Printed:
        body: Any = {"spec": change}
        if style == "json":
            body = [{"op": "add", "path": f"/spec/{field}", "value": value} for field, value in change.items()]
        return kubectl.run("patch", kind.resource, name, "-n", NAMESPACE, f"--type={style}", "-p", json.dumps(body))

    return attempt


CREATES: dict[str, Attempt] = {
    "create": _write("create"),
    "create --dry-run": _write("create", "--dry-run=server"),
    "apply": _write("apply"),
    "apply --server-side": _write("apply", "--server-side"),
}
CHANGES: dict[str, Attempt] = {
    "apply of a change": _write("apply"),
    "apply --server-side of a change": _write("apply", "--server-side", "--force-conflicts"),
    "apply --dry-run of a change": _write("apply", "--dry-run=server"),
    "replace": _write("replace"),
    "patch --type=merge": _patch("merge"),
    "patch --type=json": _patch("json"),
    "patch --type=strategic": _patch("strategic"),
}


def run(world: World) -> Iterator[Row]:
    """The webhook runs with preset strict, so that deletions of live leases are refused as well."""
    world.namespace(NAMESPACE, route=NAMESPACE)
    person, kubectl = world.person("kim")
    with WebhookServer(world.directory, world.certs, policy="strict") as server:
        world.register(NAMESPACE, server.port, failure_policy="Fail")
        world.settle()
        yield from _pinned_text(kubectl)
        for kind in _kinds(world):
            yield _matrix(world, kubectl, person, kind)


def _kinds(world: World) -> Iterator[_Kind]:
    # A spec that another writer may change: unheld, so that neither expiry nor shortening has a say.
    yield _Kind(
        label="Lease v1",
        plural="leases",
        resource="leases",
        make=lambda name: sample_lease(name, holderIdentity=None),
        good={"leaseDurationSeconds": 20},
        bad={"leaseDurationSeconds": FOREVER},
        deletion_is_judged=True,
    )
    for version in world.plane.binaries.candidate_versions:
        yield _Kind(
            label=f"LeaseCandidate {version}",
            plural="leasecandidates",
            resource=f"leasecandidates.{version}.coordination.k8s.io",
            make=lambda name, version=version: sample_candidate(version, name),  # type: ignore[misc]
            good={"renewTime": micro_time(1)},
            bad={"renewTime": micro_time(10 * 365 * 86400)},
        )


def _matrix(world: World, kubectl: Kubectl, person: ApiClient, kind: _Kind) -> Row:
    problems: list[str] = []
    allowed = refused = 0

    def judge(operation: str, allow: Printed, deny: Printed | None) -> None:
        nonlocal allowed, refused
        complaint = DEPRECATION.sub("", allow.stderr).strip()
        if allow.status or complaint:
            problems.append(f"{operation}: {complaint}")
        allowed += 1
        if deny is not None:
            if deny.status == 0 or not REFUSED.search(deny.stderr):
                problems.append(f"{operation} was not refused: {deny.stdout}{deny.stderr}".strip())
            refused += 1

    for number, (operation, attempt) in enumerate(CREATES.items()):
        judge(
            operation, attempt(kubectl, kind, f"good-{number}", {}), attempt(kubectl, kind, f"bad-{number}", kind.bad)
        )
    for number, (operation, attempt) in enumerate(CHANGES.items()):
        for name in (f"good-change-{number}", f"bad-change-{number}"):
            first = "apply" if "apply" in operation else "create"
            flags = ("--server-side",) if "server-side" in operation else ()
            judge(f"set-up of {operation}", _write(first, *flags)(kubectl, kind, name, {}), None)
            allowed -= 1
        judge(
            operation,
            attempt(kubectl, kind, f"good-change-{number}", kind.good),
            attempt(kubectl, kind, f"bad-change-{number}", kind.bad),
        )
    judge("label", kubectl.run("label", kind.resource, "good-0", "-n", NAMESPACE, "seen=yes"), None)
    if kind.deletion_is_judged:
        for name in ("live-1", "live-2"):
            person.send(
                "POST",
                f"{COORDINATION}/v1/namespaces/{NAMESPACE}/leases",
                sample_lease(name, leaseDurationSeconds=3600),
            ).expect()
    version = kind.make("x")["apiVersion"].partition("/")[2]
    collection = f"{COORDINATION}/{version}/namespaces/{NAMESPACE}/{kind.plural}"
    judge(
        "delete",
        kubectl.run("delete", kind.resource, "good-0", "-n", NAMESPACE),
        kubectl.run("delete", kind.resource, "live-1", "-n", NAMESPACE) if kind.deletion_is_judged else None,
    )
    live = kubectl.run("delete", "--raw", collection) if kind.deletion_is_judged else None
    if kind.deletion_is_judged:
        world.kubectl.must("delete", kind.resource, "live-1", "live-2", "-n", NAMESPACE)
    judge("deletecollection", kubectl.run("delete", "--raw", collection), live)
    left = person.get(collection)["items"]
    if left:
        problems.append(f"deletecollection left {len(left)} objects")
    seen = "; ".join(problems) or f"{allowed} operations allowed, {refused} refused"
    return Row(2, f"kubectl on {kind.label}", seen, not problems)


def _pinned_text(kubectl: Kubectl) -> Iterator[Row]:
    too_long = kubectl.run(
        "create", "-n", NAMESPACE, "-f", "-", manifest=sample_lease("pinned", leaseDurationSeconds=FOREVER)
    )
    yield Row(
        2,
        "text of a 422, word for word",
        _verdict(too_long.stderr, too_long.stderr == INVALID_TEXT),
        too_long.stderr == INVALID_TEXT,
    )
    kubectl.must("create", "-n", NAMESPACE, "-f", "-", manifest=sample_lease("pinned"))
    steal = json.dumps({"spec": {"holderIdentity": "thief"}})
    stolen = kubectl.run("patch", "lease", "pinned", "-n", NAMESPACE, "--type=merge", "-p", steal)
    kubectl.must("patch", "lease", "pinned", "-n", NAMESPACE, "--type=merge", "-p", RELEASE)
    matches = FORBIDDEN_TEXT.fullmatch(stolen.stderr) is not None
    yield Row(2, "text of a 403, word for word", _verdict(stolen.stderr, matches), matches)


def _verdict(text: str, matches: bool) -> str:
    return "as pinned" if matches else f"kubectl printed {text!r}"
