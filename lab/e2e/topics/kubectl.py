"""All operations of kubectl on a Lease and on a LeaseCandidate, allowed and refused."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from lab.e2e.api_client import ApiClient
from lab.e2e.kubectl import Completed, Kubectl
from lab.e2e.manifests import format_micro_time, make_candidate, make_lease
from lab.e2e.webhook_server import WebhookServer
from lab.e2e.world import COORDINATION, WEBHOOK, Row, World

NAMESPACE = "kubectl"
FOREVER = 2147483647
DEPRECATION = re.compile(r"^Warning: coordination.k8s.io/\w+ LeaseCandidate is deprecated in .*$", re.MULTILINE)
"""The API server's own warning about the version, not ours."""
REFUSED = re.compile(r"\(lease webhook, rules? [a-z-]+(?:, [a-z-]+)*\)")

INVALID_TEXT = (
    'The Lease "pinned" is invalid: '
    "spec.leaseDurationSeconds: Invalid value: 2147483647: must not be greater than 31536000; "
    "a dead holder would keep the lease for as long (lease webhook, rule duration-too-long)\n"
)
FORBIDDEN_TEXT = re.compile(
    rf'Error from server \(Forbidden\): admission webhook "{re.escape(WEBHOOK)}" denied the request: '
    r'spec\.holderIdentity: Forbidden: lease "kubectl/pinned" is held by "pinned-holder", last renewed \d+ s ago '
    r"\(\d\d:\d\d:\d\dZ, API server clock\), duration 15 s; retry in \d+ s, or ask the holder to release it "
    r"\(lease webhook, rule takeover-before-expiry\)\n"
)
"""How kubectl prints a denial, word for word."""
RELEASE = json.dumps({"spec": {"holderIdentity": None}})


class _Kind(Struct, frozen=True):
    """A kind in one version: its constructor, a harmless change, and one that a rule refuses."""

    label: str
    plural: str
    resource: str
    make: Callable[[str], dict[str, Any]]
    good: dict[str, Any]
    bad: dict[str, Any]
    deletion_is_evaluated: bool = False

    def make_changed(self, name: str, change: dict[str, Any]) -> dict[str, Any]:
        """Return the object with a change in its spec."""
        object_ = self.make(name)
        return object_ | {"spec": object_["spec"] | change}


Attempt = Callable[[Kubectl, _Kind, str, dict[str, Any]], Completed]


def _write(verb: str, *flags: str) -> Attempt:
    return lambda kubectl, kind, name, change: kubectl.run(
        verb, "-n", NAMESPACE, "-f", "-", *flags, manifest=kind.make_changed(name, change)
    )


def _patch(style: str) -> Attempt:
    def attempt(kubectl: Kubectl, kind: _Kind, name: str, change: dict[str, Any]) -> Completed:
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
    """Run the webhook with preset strict, so that deletions of live leases are refused as well."""
    world.create_namespace(NAMESPACE, route=NAMESPACE)
    person, kubectl = world.create_user("kim")
    with WebhookServer(world.directory, world.certs, policy="strict") as server:
        world.register(NAMESPACE, server.port, failure_policy="Fail")
        world.settle()
        yield from _check_pinned_text(kubectl)
        for kind in _list_kinds(world):
            yield _check_matrix(world, kubectl, person, kind)


def _list_kinds(world: World) -> Iterator[_Kind]:
    # A spec that another writer may change: unheld, so that neither expiry nor shortening has a say.
    yield _Kind(
        label="Lease v1",
        plural="leases",
        resource="leases",
        make=lambda name: make_lease(name, holderIdentity=None),
        good={"leaseDurationSeconds": 20},
        bad={"leaseDurationSeconds": FOREVER},
        deletion_is_evaluated=True,
    )
    for version in world.plane.binaries.candidate_versions:
        yield _Kind(
            label=f"LeaseCandidate {version}",
            plural="leasecandidates",
            resource=f"leasecandidates.{version}.coordination.k8s.io",
            make=lambda name, version=version: make_candidate(version, name),  # type: ignore[misc]
            good={"renewTime": format_micro_time(1)},
            bad={"renewTime": format_micro_time(10 * 365 * 86400)},
        )


class _Tally:
    """Operations that were allowed and refused as expected, and the other ones."""

    def __init__(self) -> None:
        self.allowed = self.refused = 0
        self.problems: list[str] = []

    def allow(self, operation: str, result: Completed) -> None:
        """Expect that the command ends well and without a word of ours."""
        complaint = DEPRECATION.sub("", result.stderr).strip()
        if result.status or complaint:
            self.problems.append(f"{operation}: {complaint}")
        self.allowed += 1

    def refuse(self, operation: str, result: Completed) -> None:
        """Expect that the command fails by one of our rules."""
        if result.status == 0 or not REFUSED.search(result.stderr):
            self.problems.append(f"{operation} was not refused: {result.stdout}{result.stderr}".strip())
        self.refused += 1


def _check_matrix(world: World, kubectl: Kubectl, person: ApiClient, kind: _Kind) -> Row:
    tally = _Tally()
    for number, (operation, attempt) in enumerate(CREATES.items()):
        tally.allow(operation, attempt(kubectl, kind, f"good-{number}", {}))
        tally.refuse(operation, attempt(kubectl, kind, f"bad-{number}", kind.bad))
    for number, (operation, attempt) in enumerate(CHANGES.items()):
        # A client-side or server-side apply changes what it made itself; everything else changes what was created.
        if "server-side" in operation:
            start = CREATES["apply --server-side"]
        else:
            start = CREATES["apply" if "apply" in operation else "create"]
        for expect, change in ((tally.allow, kind.good), (tally.refuse, kind.bad)):
            name = f"change-{number}-{expect.__name__}"
            started = start(kubectl, kind, name, {})
            if started.status:
                raise RuntimeError(f"cannot create {kind.label} {name}: {started.stderr.strip()}")
            expect(operation, attempt(kubectl, kind, name, change))
    tally.allow("label", kubectl.run("label", kind.resource, "good-0", "-n", NAMESPACE, "seen=yes"))
    tally.allow("delete", kubectl.run("delete", kind.resource, "change-0-allow", "-n", NAMESPACE))
    version = kind.make("any")["apiVersion"].partition("/")[2]
    collection = f"{COORDINATION}/{version}/namespaces/{NAMESPACE}/{kind.plural}"
    if kind.deletion_is_evaluated:
        live = ("live-1", "live-2")
        for name in live:
            person.send("POST", collection, make_lease(name, leaseDurationSeconds=3600)).expect(201)
        tally.refuse("delete", kubectl.run("delete", kind.resource, live[0], "-n", NAMESPACE))
        tally.refuse("deletecollection", kubectl.run("delete", "--raw", collection))
        world.kubectl.run_checked("delete", kind.resource, *live, "-n", NAMESPACE)
    tally.allow("deletecollection", kubectl.run("delete", "--raw", collection))
    remainder = person.get(collection)["items"]
    if remainder:
        tally.problems.append(f"deletecollection left {len(remainder)} objects")
    observation = "; ".join(tally.problems) or f"{tally.allowed} operations allowed, {tally.refused} refused"
    return Row(f"kubectl on {kind.label}", observation, not tally.problems)


def _check_pinned_text(kubectl: Kubectl) -> Iterator[Row]:
    too_long = kubectl.run(
        "create", "-n", NAMESPACE, "-f", "-", manifest=make_lease("pinned", leaseDurationSeconds=FOREVER)
    )
    yield Row(
        "text of a 422, word for word",
        _describe_text(too_long.stderr, too_long.stderr == INVALID_TEXT),
        too_long.stderr == INVALID_TEXT,
    )
    kubectl.run_checked("create", "-n", NAMESPACE, "-f", "-", manifest=make_lease("pinned"))
    steal = json.dumps({"spec": {"holderIdentity": "thief"}})
    result = kubectl.run("patch", "lease", "pinned", "-n", NAMESPACE, "--type=merge", "-p", steal)
    kubectl.run_checked("patch", "lease", "pinned", "-n", NAMESPACE, "--type=merge", "-p", RELEASE)
    matches = FORBIDDEN_TEXT.fullmatch(result.stderr) is not None
    yield Row("text of a 403, word for word", _describe_text(result.stderr, matches), matches)


def _describe_text(text: str, matches: bool) -> str:
    return "as pinned" if matches else f"kubectl printed {text!r}"
