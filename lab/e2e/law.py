"""`python -m lab.e2e.law`: histories of `make law` on real API servers, in every mode side by side.

Each history is played step by step in a namespace without us and in one of each mode: the electors of `tests/law`, of
every habit, renew, release and take over while strangers write. A namespace is labeled and listed in the middle of its
histories, as an installation is.
"""

import argparse
import contextlib
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Protocol, cast

import msgspec
from msgspec import Struct

from lab.e2e.api_client import APPLY, ApiClient, Reply
from lab.e2e.api_client import MERGE as MERGE_PATCH
from lab.e2e.control_plane import ControlPlane
from lab.e2e.toolchain import Binaries, build_all_binaries
from lab.e2e.webhook_server import WebhookServer
from lab.e2e.world import ROUTE, build_lease_path
from lab.e2e.world import World as Cluster
from tests.factories import Document
from tests.law.api_server import (
    CONFLICT,
    CREATE,
    DELETE,
    EXISTS,
    INVALID,
    MERGE,
    NOT_FOUND,
    PUT,
    TOO_LARGE,
    Refused,
    Request,
)
from tests.law.history import (
    ALIKE,
    HARMLESS,
    Broken,
    Collects,
    History,
    Installs,
    Step,
    Waits,
    World,
    drawn,
    leaves_spec,
)
from tests.law.modes import KEYS, LABEL, MODES, NONE, SUFFIX, Mode, shipped_stamps
from tests.law.writers import Writer
from tests.match_condition import EXPRESSION
from tests.model.api_server import User
from tests.model.managed_fields import APPLY as APPLIES
from tests.model.managed_fields import SECOND
from webhook.admission.policy.parse import parse
from webhook.api_server.rule_policies import make_manifests

DURATION: Final = 4
"""Seconds, of every lease."""
FIRST_WITH_STAMPS: Final = 36
"""The minor version of Kubernetes that serves policies that mutate."""
RULES: Final = "law-rules"
"""The label of namespaces in which the rules are in force as policies."""
_IN_FORCE: Final = ("webhook in standard", "webhook in strict", "stamps", "stamps and webhook in strict",
                    "policies only, strict", "policies only, strict, with stamps")  # fmt: skip
_OURS: Final = ("lease-webhook", "lease webhook")
_UNEVALUATED: Final = ("failed calling webhook", "deadline", "timeout", "timed out")


class Failures:
    """Counts of outcomes, and the laws that were broken; for several threads."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {}
        self.broken: list[tuple[str, Broken]] = []
        self._lock = threading.Lock()

    def add(self, name: str, world: "RealWorld") -> None:
        """Add the outcome of a world."""
        with self._lock:
            self.counts.setdefault(world.mode.name, Counter()).update(world.counts)
            self.broken += [(name, one) for one in world.broken]


class Server:
    """One lease of a real API server, with the interface of the model."""

    def __init__(self, namespace: str, name: str, clients: Mapping[str, ApiClient]) -> None:
        self._namespace, self._name, self._clients = namespace, name, clients
        self._path = build_lease_path(namespace, name)
        self._known: Document | None = None
        self.admission: Any = None

    @property
    def stored(self) -> Document | None:
        """The stored object; the same one as before if nothing was stored since."""
        reply = self._clients["admin"].send("GET", self._path)
        return self._reuse_if_same(reply.body if reply.status == 200 else None)

    @stored.setter
    def stored(self, lease: Document) -> None:
        """Replace the stored object, as an administrator does."""
        self._clients["admin"].send("PUT", self._path, lease).expect()

    def clean(self) -> None:
        """Remove apparent stamps, as the installation asks for while the label is `pending`."""
        body = {"metadata": {"annotations": dict.fromkeys(KEYS)}}
        self._clients["admin"].send("PATCH", self._path, body, media=MERGE_PATCH).expect(200, 404)

    def _reuse_if_same(self, lease: Document | None) -> Document | None:
        if lease is not None:
            lease.setdefault("spec", {})
            known = self._known
            if known is not None and all(
                known["metadata"][key] == lease["metadata"][key] for key in ("uid", "resourceVersion")
            ):
                return known
        self._known = lease
        return lease

    def send(self, user: User, request: Request, clock: int) -> Document | None:  # noqa: ARG002 - the clock is its own
        """Send the request of a client. Raises Refused."""
        client = self._clients[f"{user.name} {user.pod}"]
        body = request.body and request.body | {"metadata": request.body.get("metadata", {}) | {"name": self._name}}
        if body and request.verb in (PUT, CREATE, APPLIES):
            body["metadata"]["namespace"] = self._namespace
            body |= {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        manager = request.manager
        if request.verb == DELETE:
            reply = client.send("DELETE", self._path)
        elif request.verb == CREATE:
            reply = client.send("POST", build_lease_path(self._namespace), body, fieldManager=manager)
        elif request.verb == PUT:
            reply = client.send("PUT", self._path, body, fieldManager=manager)
        elif request.verb == MERGE:
            reply = client.send("PATCH", self._path, body, media=MERGE_PATCH, fieldManager=manager)
        else:
            body["metadata"].pop("managedFields", None)
            reply = client.send("PATCH", self._path, body, media=APPLY, fieldManager=manager, force=request.force)
        if reply.status not in (200, 201):
            raise Refused(_find_reason(reply))
        if request.verb == DELETE:
            return self.stored
        return self._reuse_if_same(reply.body)


def _find_reason(reply: Reply) -> str:
    """Return the refusal as the model words it."""
    if any(word in reply.message for word in _OURS):
        return reply.message
    too_large = "too large" in reply.message or reply.status == 413
    words = {409: EXISTS if "already exists" in reply.message else CONFLICT, 404: NOT_FOUND, 422: INVALID, 400: INVALID}
    return f"{TOO_LARGE if too_large else words.get(reply.status, f'HTTP {reply.status}')}: {reply.message[:300]}"


class RealWorld(World):
    """A world whose time is the clock's, and whose server is real."""

    def __init__(self, history: History, mode: Mode, alone: Sequence[str], server: Server) -> None:
        super().__init__(history, mode, alone)
        self._server = cast("Any", server)

    @property
    def now(self) -> int:
        """The clock, in microseconds since 1970."""
        return time.time_ns() // 1000

    @now.setter
    def now(self, value: int) -> None:
        """Ignore the value: time passes by itself."""

    def install(self) -> None:
        """Record that the namespace is labeled."""
        self._admission.in_force = True
        self.is_stamped = False

    def _check(self, writer: Writer, request: Request, kind: str, refusal: str, *, is_entitled: bool) -> None:
        """Check the laws: an API server says by itself whether it or a policy refuses a write."""
        ours = any(word in refusal for word in _OURS)
        word = "refused" if ours else refusal.partition(":")[0]
        self.counts[f"{kind} {word}"] += 1
        if any(text in refusal for text in _UNEVALUATED):
            self.counts["without a verdict"] += 1
            return
        if not is_entitled or not self._admission.in_force:
            return
        text = f"{kind} by {writer.identity}: {refusal[:400]}"
        if kind == "release" and "erases the time" in refusal:
            self.counts["release of everything refused"] += 1
        elif kind == "release" and ours and leaves_spec(request, self._server.stored):
            self.counts["release of nothing refused"] += 1
        elif ours:
            self._break(HARMLESS, text)
        elif word not in self._without_meaning and self._alone and self._alone[self._step] == "stored":
            self._break(ALIKE, text)

    @property
    def _without_meaning(self) -> frozenset[str]:
        """Refusals of the API server that are not compared with the world without us.

        What was planted before the installation may have been replaced there, by a write that we refused.
        """
        return frozenset((CONFLICT, NOT_FOUND, EXISTS) + ((INVALID,) if self.is_planted else ()))

    def _is_held_by_its_writer(self) -> bool:
        """Return the same for a second earlier: the write is on its way for a while."""
        self.spec_at -= SECOND
        is_held = super()._is_held_by_its_writer()
        self.spec_at += SECOND
        return is_held


class Place(Struct, frozen=True):
    """A namespace of a batch: its mode, clients of who writes in it, and kubeconfigs of the electors' pods."""

    namespace: str
    mode: Mode
    clients: Mapping[str, ApiClient]
    kubeconfigs: Mapping[str, Path]


class Cleaner(Protocol):
    """A cleanup of the histories that are played in the places of a batch."""

    def clean(self) -> None:
        """Remove planted stamps."""


class Batch:
    """Histories that are played at one time: all before the installation, then all after it."""

    def __init__(self, cluster: Cluster, number: int, modes: Sequence[Mode], common: Mapping[str, ApiClient]) -> None:
        self._cluster = cluster
        self.places = [
            self._create_place(f"{number}-{at}", mode, common) for at, mode in enumerate((NONE, *modes))
        ]  # nothing first: what it came to is what the others are compared with

    def _create_place(self, name: str, mode: Mode, common: Mapping[str, ApiClient]) -> Place:
        namespace = self._cluster.create_namespace(name)
        clients = dict(common)
        kubeconfigs = {}
        for pod in (*(f"checkout-{number}" for number in range(3)), "checkout-9"):
            account = self._cluster.create_account(namespace, "checkout", pod)
            clients[f"system:serviceaccount:shop:checkout {pod}"] = account.client
            kubeconfigs[pod] = account.kubeconfig
        clients["system:serviceaccount:shop:mallory mallory-0"] = self._cluster.create_account(
            namespace, "mallory", "mallory-0"
        ).client
        return Place(namespace, mode, clients, kubeconfigs)

    def play(self, seeds: Sequence[int], failures: Failures) -> None:
        """Play the histories of these seeds."""
        stories = [_Story(seed, self.places) for seed in seeds]
        with ThreadPoolExecutor(len(stories)) as pool:
            list(pool.map(_Story.play_before, stories))
            self.install(stories)
            list(pool.map(_Story.play_after, stories))
        for story in stories:
            for world in story.worlds:
                failures.add(story.name, world)

    def install(self, stories: Sequence["Cleaner"]) -> None:
        """Put every mode in force in its namespace, stamps in two steps, between which planted ones are removed."""
        for value in ("pending", "required"):
            for place in self.places:
                labels: dict[str, str] = {LABEL: value} if place.mode.stamps else {}
                if place.mode.webhook:
                    labels[ROUTE] = find_route(place.mode)
                if place.mode.rules:
                    labels[RULES] = "true"
                path = f"/api/v1/namespaces/{place.namespace}"
                self._cluster.admin.send("PATCH", path, {"metadata": {"labels": labels}}, media=MERGE_PATCH).expect()
            # The policies see a namespace's labels through a watch.
            time.sleep(2)
            if value == "pending":
                for story in stories:
                    story.clean()


class _Story:
    def __init__(self, seed: int, places: Sequence[Place]) -> None:
        self.name = f"law-{seed}"
        history = shorten(drawn(seed))
        at = next(number for number, step in enumerate(history.steps) if isinstance(step, Installs))
        self._steps = history.steps[:at], history.steps[at + 1 :]
        self._alone: list[str] = []
        self._servers = [Server(place.namespace, self.name, place.clients) for place in places if place.mode.stamps]
        self.worlds = [
            RealWorld(history, place.mode, self._alone, Server(place.namespace, self.name, place.clients))
            for place in places
        ]

    def clean(self) -> None:
        """Remove planted stamps."""
        for server in self._servers:
            server.clean()

    def play_before(self) -> None:
        """Play the writes before the installation."""
        self._play_steps(self._steps[0], 0)

    def play_after(self) -> None:
        """Play the rest."""
        for world in self.worlds:
            world.install()
        self._play_steps(self._steps[1], len(self._steps[0]))

    def _play_steps(self, steps: Sequence[Step], first: int) -> None:
        for number, step in enumerate(steps, first):
            if isinstance(step, Waits):
                time.sleep(step.seconds)
            self._alone += [""] * (number + 1 - len(self._alone))
            for world in self.worlds:
                outcome = world.take(number, step)
                if world.mode is NONE:
                    self._alone[number] = outcome


def shorten(history: History) -> History:
    """Return the history with leases of a few seconds, and without garbage collection or a full etcd."""
    habits = tuple(msgspec.structs.replace(habit, duration=DURATION) for habit in history.habits)
    steps: list[Step] = []
    for step in history.steps:
        match step:
            case Waits(seconds):
                steps.append(Waits(DURATION + 1.5 if seconds > 5 else min(seconds, 0.7)))
            case Collects():
                continue
            case _:
                steps.append(step)
    return History(habits, tuple(steps))


def find_route(mode: Mode) -> str:
    """Return the registration that reviews the writes of a mode."""
    return f"law-{mode.webhook}{'-stamped' if mode.stamps else ''}"


@contextlib.contextmanager
def install_modes(cluster: Cluster, directory: Path, modes: Sequence[Mode], batches: int) -> Iterator[None]:
    """Put the webhooks and policies of some modes in force where a namespace is labeled."""
    cluster.create_local_service()
    documents: list[Document] = []
    if any(mode.stamps for mode in modes):
        documents += shipped_stamps()
    if any(mode.rules for mode in modes):
        rules = parse(
            _format_policy("strict", _list_places(modes, batches, lambda mode: bool(mode.rules and mode.stamps)))
        )
        for document in make_manifests(rules, 0, EXPRESSION, ["kube-system", "kube-node-lease"]):
            if not document["kind"].endswith("Binding"):
                selector = document["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"]
                selector.append({"key": RULES, "operator": "In", "values": ["true"]})
            documents.append(document)
    for document in documents:
        kind = document["kind"].lower()
        plural = (
            kind.removesuffix("policybinding") + "policybindings" if kind.endswith("binding") else kind[:-1] + "ies"
        )
        path = f"/apis/admissionregistration.k8s.io/v1/{plural}/{document['metadata']['name']}"
        cluster.admin.send("PATCH", path, document, media=APPLY, fieldManager="law", force=True).expect()
    with ExitStack() as stack:
        for mode in modes:
            if not mode.webhook:
                continue
            places = _list_places(modes, batches, mode.__eq__) if mode.stamps else []
            file = directory / f"{find_route(mode)}.yaml"
            file.write_text(_format_policy(mode.webhook, places))
            server = stack.enter_context(WebhookServer(directory, cluster.certs, policy=str(file)))
            cluster.register(find_route(mode), server.port)
        cluster.settle()
        yield


def _list_places(modes: Sequence[Mode], batches: int, is_wanted: Callable[[Mode], bool]) -> list[str]:
    """Return the namespaces of some modes, in all batches."""
    return [f"{batch}-{at}" for batch in range(batches) for at, mode in enumerate(modes, 1) if is_wanted(mode)]


def _format_policy(preset: str, stamped: Sequence[str]) -> str:
    """Return a policy file that lists the namespaces with stamps."""
    stamps = f"stamps: [{{suffix: {SUFFIX}, namespaces: {[*stamped]!r}}}]\n" if stamped else ""
    return f"apiVersion: lease-webhook/v1\npreset: {preset}\n{stamps}"


def list_modes(binaries: Binaries) -> list[Mode]:
    """Return the modes that this API server can have."""
    has_stamps = binaries.minor >= FIRST_WITH_STAMPS
    return [mode for mode in MODES if mode.name in _IN_FORCE and (has_stamps or not mode.stamps)]


def create_strangers(cluster: Cluster) -> dict[str, ApiClient]:
    """Return clients of those who write in every namespace, and an administrator's."""
    cluster.create_namespace("other")
    mallory = cluster.create_account("other", "mallory", "mallory-0").client
    return {
        "admin": cluster.admin,
        "system:serviceaccount:other:mallory mallory-0": mallory,
        "mallory ": cluster.create_user("mallory")[0],
    }


def run(binaries: Binaries, directory: Path, seeds: range, at_once: int) -> Failures:
    """Play on one API server."""
    modes = list_modes(binaries)
    failures = Failures()
    batches = [seeds[at : at + at_once] for at in range(0, len(seeds), at_once)]
    with ControlPlane(binaries, directory) as plane:
        cluster = Cluster(plane)
        with install_modes(cluster, directory, modes, len(batches)):
            common = create_strangers(cluster)
            for number, some in enumerate(batches):
                Batch(cluster, number, modes, common).play(some, failures)
    return failures


def main(arguments: Sequence[str] | None = None) -> int:
    """Play on each version that is asked for. Return 1 if a law was broken."""
    parser = argparse.ArgumentParser(prog="python -m lab.e2e.law", description=__doc__)
    parser.add_argument("--kubernetes", nargs="*", default=["v1.37", "v1.34"], help="versions that begin so")
    parser.add_argument("--histories", type=int, default=1000, help="on each version")
    parser.add_argument("--seed", type=int, default=1, help="the first of the seeds")
    parser.add_argument("--at-once", type=int, default=25, help="histories that are played at one time")
    options = parser.parse_args(arguments)
    failed = False
    for binaries in build_all_binaries(*options.kubernetes):
        began = time.monotonic()
        seeds = range(options.seed, options.seed + options.histories)
        with tempfile.TemporaryDirectory(prefix="lease-webhook-law-") as temporary:
            failures = run(binaries, Path(temporary), seeds, options.at_once)
        print(f"{binaries.version}: {len(seeds)} histories from seed {seeds[0]} in {time.monotonic() - began:.0f} s")
        for mode, counts in failures.counts.items():
            print(f"  {mode}: {dict(sorted(counts.items()))}")
        for name, failure in failures.broken[:20]:
            print(f"FAILED {name}, {failure.mode}, step {failure.step}: {failure.law}\n  {failure.text}")
        print(f"  {len(failures.broken)} laws broken", flush=True)
        failed = failed or bool(failures.broken)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
