"""`make fuzz-leases`: random lists, times and sizes against live leases on a real API server.

In each story a stranger prepares a live lease with one to three writes: any managedFields, any time that protobuf can
write, any size up to the limit of etcd. Under `strict` none of its writes may then take the lease, release it or cut it
short, none may leave a lease that clients cannot read or that is too large, and no renewal, release or claim of an
honest client may be denied. Takeovers after expiry are honest too; stamps dated ahead may delay them by the bound.

With `--stamps` the API server stamps writers, by `deploy/stamp`, so one of the strangers is another pod of the holder's
service account. `guard`: all policies, and the webhook. `rule`: without the guard, so that `foreign-writer` is alone.
Takeovers may not be delayed then.
"""

import argparse
import copy
import datetime as dt
import json
import random
import re
import secrets
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from lab.e2e.api_client import JSON_PATCH, MERGE, ApiClient, Reply
from lab.e2e.control_plane import ControlPlane
from lab.e2e.stamp_cases import SUFFIX
from lab.e2e.stamping import OTHERS, STAMP, install, label, wait_until_stamped
from lab.e2e.toolchain import Binaries, build_all_binaries
from lab.e2e.topics.attacks_on_leases import create_actors, route, serve_policy
from lab.e2e.world import World, build_lease_path
from tests import protobuf
from tests.attacks.attack import STRICT, policy_text

Document = dict[str, Any]

NAMESPACE: Final = "shop"
LONG, SHORT = 600, 3
BOUND: Final = 65
WORKERS: Final = 6
MAX_BYTES: Final = 4 * 256 * 1024
"""Bytes of a lease after three writes, at most: each renewal may add 256 KiB to those that anyone may fill."""
ETCD: Final = 1_572_864

OFFSETS: Final = (
    -864_000,
    -3600,
    -90,
    -61,
    -45,
    -6,
    -3,
    -1,
    0,
    0,
    0,
    1,
    2,
    3,
    10,
    29,
    31,
    45,
    59,
    61,
    90,
    3600,
    864_000,
)
MANAGERS: Final = ("checkout", "checkout", "mallory", "ancient-changes", "before-first-apply", "x", "y", "unknown")
VERSIONS: Final = (*("coordination.k8s.io/v1",) * 8, "coordination.k8s.io/v1beta1", "a/b/c", "apps/v1", "v1")
FIELDS: Final = ("renewTime", "holderIdentity", "leaseDurationSeconds", "acquireTime", "leaseTransitions", "strategy")
BELOW: Final[tuple[Document, ...]] = ({}, {}, {}, {".": {}}, {"f:x": {}}, {".": {}, "f:x": {}}, {'v:"1"': {}})
SIZES: Final = (1000, 100_000, 250_000, 262_144, 300_000, 700_000, 1_048_576, 1_400_000, ETCD - 2000, ETCD - 600, ETCD)
_ERRORS: Final = re.compile(r"^apiserver_admission_match_condition_evaluation_errors_total\{.*\} (\S+)$", re.MULTILINE)
_UNEVALUATED: Final = ("failed calling webhook", "deadline", "timeout", "timed out")


class Stories:
    """A player of stories, until enough steals were tried and enough honest writes were sent."""

    def __init__(
        self, actors: Mapping[str, ApiClient], seed: int, steals: int, honest: int, *, stamped: bool = False
    ) -> None:
        self._actors = actors
        self.stamped = stamped
        self._seed = seed
        self._wanted = {"steals tried": steals, "honest writes": honest}
        self._lock = threading.Lock()
        self.count: Counter[str] = Counter()
        self.failures: list[Document] = []

    def play(self) -> None:
        """Play all stories, some at a time; a story is the same for the same seed and number, but for the clock."""
        with ThreadPoolExecutor(WORKERS) as pool:
            for worker in [pool.submit(self._play_story, number) for number in range(WORKERS)]:
                worker.result()

    def _play_story(self, number: int) -> None:
        while any(self.count[name] < count for name, count in self._wanted.items()):
            _Story(self, self._actors, f"{self._seed}-{number}").play()
            number += WORKERS

    def add(self, name: str) -> None:
        """Count an event by name."""
        with self._lock:
            self.count[name] += 1

    def fail(self, what: str, **how: Any) -> None:
        """Record a violation."""
        with self._lock:
            self.count[what] += 1
            self.failures.append({"what": what} | how)


class _Story:
    def __init__(self, stories: Stories, actors: Mapping[str, ApiClient], name: str) -> None:
        self._stories = stories
        self._actors = actors
        self._random = random.Random(name)
        self._name = f"fuzz-{name}"
        self._path = build_lease_path(NAMESPACE, self._name)
        self._log: list[Document] = []

    def play(self) -> None:
        short = self._random.random() < 0.03
        now = _format_now()
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": NAMESPACE},
            "spec": {
                "holderIdentity": "checkout-0_8c1",
                "leaseDurationSeconds": SHORT if short else LONG,
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": 1,
            },
        }
        self._actors["keeper"].send("POST", build_lease_path(NAMESPACE), body, fieldManager="checkout").expect(201)
        for _ in range(self._random.randint(1, 3)):
            self._plant()
            if self._random.random() < 0.3:
                time.sleep(1.05)
            if self._random.random() < 0.5:
                self._renew()
        if short:
            self._take_over()
        else:
            for _ in range(6):
                self._steal()
            for _ in range(3):
                self._renew()
            self._release_and_claim()
        self._actors["admin"].send("DELETE", self._path)

    # ---- the stranger ----

    def _plant(self) -> None:
        before = self._read()
        lease = copy.deepcopy(before)
        metadata, spec = lease["metadata"], lease["spec"]
        metadata["managedFields"] = self._mangle(metadata.get("managedFields", []))
        act = self._random.choice(
            ("nothing", "nothing", "label", "label", "renew", "renew", "acquire", "finalizer", "size")
        )
        if act == "label":
            metadata.setdefault("labels", {})[self._random.choice("abcd")] = str(self._random.randrange(10_000))
        elif act == "renew":
            spec["renewTime"] = self._draw_time(micro=True)
        elif act == "acquire":
            spec["acquireTime"] = self._draw_time(micro=True)
        elif act == "finalizer":
            metadata["finalizers"] = ["a.b/c"]
        elif act == "size":
            self._enlarge(lease)
        manager = self._random.choice(("checkout", "checkout", "mallory", "ancient-changes", "x"))
        reply = self._send("stranger", lease, manager)
        self._log_reply(act, manager, reply)
        if reply.status != 200:
            return
        self._stories.add("plants stored")
        after = self._read()
        if not _is_readable(after):
            self._fail("unreadable lease stored", stored=after)
        if len(json.dumps(after)) > MAX_BYTES:
            self._fail("large lease stored", size=len(json.dumps(after)))

    def _steal(self) -> None:
        lease = self._read()
        metadata, spec = lease["metadata"], lease["spec"]
        if self._random.random() < 0.85:
            metadata["managedFields"] = self._mangle(metadata.get("managedFields", []))
        else:
            metadata.pop("managedFields", None)
        how = self._random.choice(("take", "take", "take", "take", "release", "shorten", "remove renewTime"))
        if how == "take":
            times = _format_now() if self._random.random() < 0.9 else self._draw_time(micro=True)
            spec |= {"holderIdentity": "mallory-0_q", "renewTime": times, "acquireTime": times, "leaseTransitions": 2}
        elif how == "release":
            spec["holderIdentity"] = ""
        elif how == "shorten":
            spec["leaseDurationSeconds"] = 1
        else:
            spec.pop("renewTime")
        if self._random.random() < 0.2:
            metadata.setdefault("labels", {})["s"] = str(self._random.randrange(10_000))
        if self._random.random() < 0.05:
            self._enlarge(lease)
        manager = self._random.choice(("checkout", "mallory", "mallory", "ancient-changes", "x"))
        reply = self._send(self._random.choice(("stranger", "neighbor")), lease, manager)
        self._log_reply(how, manager, reply)
        self._stories.add("steals tried")
        if reply.status == 200:
            self._fail("STOLEN", stored=reply.body)
        elif _is_unevaluated(reply):
            self._stories.add("steals without a verdict")
        elif "lease webhook" not in reply.message:
            self._stories.add("steals refused by the API server")

    def _mangle(self, stored: list[Document]) -> list[Document]:
        draw, entries = self._random, copy.deepcopy(stored)
        for _ in range(draw.choice((0, 1, 1, 1, 2, 3))):
            change = draw.random()
            if change < 0.5 or not entries:
                entries.insert(draw.randint(0, len(entries)), self._invent_entry())
                continue
            entry = draw.choice(entries)
            spec = entry.setdefault("fieldsV1", {}).setdefault("f:spec", {})
            if change < 0.62:
                entry["time"] = self._draw_time()
            elif change < 0.7:
                entry["manager"] = draw.choice(MANAGERS)
            elif change < 0.78:
                entry["operation"] = draw.choice(("Apply", "Update"))
            elif change < 0.86 and spec:
                spec.pop(draw.choice(sorted(spec)))
            elif change < 0.93:
                spec[f"f:{draw.choice(FIELDS)}"] = draw.choice(BELOW)
            elif change < 0.96:
                entries.remove(entry)
            else:
                at = self._draw_time()
                labels: Iterator[Document] = (
                    {"f:metadata": {"f:labels": {f"f:l{at}": {}}}} for at in range(draw.randint(8, 12))
                )
                entries += [_make_entry(f"m{number}", "Update", at, fields) for number, fields in enumerate(labels)]
        return entries

    def _invent_entry(self) -> Document:
        draw = self._random
        fields: Document = {}
        if draw.random() < 0.8:
            fields["f:spec"] = {
                f"f:{name}": draw.choice(BELOW) if draw.random() < 0.3 else {}
                for name in draw.sample(FIELDS, draw.randint(1, 4))
            }
        if draw.random() < 0.4:
            labels = {f"f:{draw.choice('abcd')}": draw.choice(BELOW) for _ in range(2)}
            fields.setdefault("f:metadata", {})["f:labels"] = labels
        if draw.random() < 0.1:
            fields.setdefault("f:metadata", {})["f:ownerReferences"] = {'k:{"uid":"u"}': draw.choice(BELOW)}
        if draw.random() < 0.1:
            fields.setdefault("f:metadata", {})["f:finalizers"] = {'v:"a.b/c"': {}}
        time_ = self._draw_time() if draw.random() < 0.93 else None
        entry = _make_entry(draw.choice(MANAGERS), draw.choice(("Update", "Update", "Apply")), time_, fields)
        entry["apiVersion"] = draw.choice(VERSIONS)
        if draw.random() < 0.08:
            entry["subresource"] = draw.choice(("status", "scale", "x"))
        return entry

    def _enlarge(self, lease: Document) -> None:
        """Enlarge the lease by an entry, by labels, or by spec; up to a size, and not always exactly."""
        size = self._random.choice(SIZES) - self._random.choice((0, 0, 1, 4, 30)) - len(json.dumps(lease))
        metadata = lease["metadata"]
        where = self._random.choice(("entry", "entry", "labels", "finalizers", "holder"))
        if size <= 0:
            return
        if where == "entry":
            fields: Document = {"f:metadata": {"f:labels": {"f:" + "a" * max(1, size - 200): {}}}}
            operation = self._random.choice(("Apply", "Update"))
            metadata.setdefault("managedFields", []).append(_make_entry("pad", operation, self._draw_time(), fields))
        elif where == "labels":
            metadata["labels"] = {f"l{at}": "v" * 60 for at in range(size // 75)}
        elif where == "finalizers":
            metadata["finalizers"] = [f"a.b/{at:050}" for at in range(size // 60)]
        else:
            lease["spec"]["preferredHolder"] = "h" * size

    def _draw_time(self, *, micro: bool = False) -> str | int:
        """Return an instant near now as text, or any seconds of 64 bits, which only protobuf can write."""
        draw = self._random
        if draw.random() < 0.85:
            at = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=draw.choice(OFFSETS))
            return f"{at:%Y-%m-%dT%H:%M:%S.%fZ}" if micro else f"{at:%Y-%m-%dT%H:%M:%SZ}"
        years = draw.choice((-400, -1, 0, 9999, 10_000, 19_700, 20_000, 21_999, 197_000, 220_000, 292_277_000_000))
        around = int((years - 1970) * 365.2425 * 86_400) + draw.randrange(-(10**8), 10**8)
        return draw.choice((around, draw.getrandbits(64) - 2**63, 2**63 - 1, -(2**63)))

    def _send(self, by: str, lease: Document, manager: str) -> Reply:
        how = self._random.choice(("put", "put", "merge", "patch", "protobuf"))
        metadata = lease["metadata"]
        if how == "protobuf" or _has_seconds(lease):
            media, body = protobuf.MEDIA, protobuf.lease(lease)
            return self._actors[by].send("PUT", self._path, body, media=media, fieldManager=manager)
        parts = {key: metadata[key] for key in ("labels", "managedFields", "finalizers") if key in metadata}
        if how == "merge":
            body_ = {"metadata": parts, "spec": {"renewTime": None} | lease["spec"]}
            return self._actors[by].send("PATCH", self._path, body_, media=MERGE, fieldManager=manager)
        if how == "patch":
            operations = [{"op": "add", "path": "/spec", "value": lease["spec"]}]
            operations += [{"op": "add", "path": f"/metadata/{key}", "value": value} for key, value in parts.items()]
            return self._actors[by].send("PATCH", self._path, operations, media=JSON_PATCH, fieldManager=manager)
        return self._actors[by].send("PUT", self._path, lease, fieldManager=manager)

    # ---- honest clients ----

    def _renew(self) -> None:
        if self._random.random() < 0.3:
            self._write_honestly("keeper", "renewal by patch", {"renewTime": _format_now()}, patched=True)
        else:
            self._write_honestly("keeper", "renewal", {"renewTime": _format_now()})

    def _release_and_claim(self) -> None:
        now = _format_now()
        release = {"holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": now, "renewTime": now}
        if self._write_honestly("keeper", "release", release):
            self._write_honestly("successor", "claim", _make_claim("checkout-1_9f2", 2))

    def _take_over(self) -> None:
        time.sleep(SHORT + 1.2)
        if self._write_honestly(
            "successor", "takeover", _make_claim("checkout-1_9f2", 2), may_wait=not self._stories.stamped
        ):
            return
        self._stories.add("takeovers that had to wait")
        time.sleep(BOUND)
        self._write_honestly("successor", "takeover", _make_claim("checkout-1_9f2", 2))

    def _write_honestly(
        self, by: str, what: str, spec: Document, *, patched: bool = False, may_wait: bool = False
    ) -> bool:
        for _ in range(5):
            if patched:
                send = {"spec": spec}
                reply = self._actors[by].send("PATCH", self._path, send, media=MERGE, fieldManager="checkout")
            else:
                lease = self._read()
                lease["spec"] |= spec
                reply = self._actors[by].send("PUT", self._path, lease, fieldManager="checkout")
            if reply.status == 409 or _is_unevaluated(reply):
                self._stories.add("honest writes sent again")
                continue
            break
        self._log_reply(what, "checkout", reply)
        if reply.status == 200:
            self._stories.add("honest writes")
            self._stories.add(f"honest: {what}")
            return True
        if not may_wait:
            self._fail("HONEST WRITE DENIED", kind=what)
        return False

    # ---- both ----

    def _read(self) -> Document:
        return self._actors["admin"].get(self._path)

    def _log_reply(self, what: str, manager: str, reply: Reply) -> None:
        self._log.append({"what": what, "manager": manager, "status": reply.status, "message": reply.message[:300]})

    def _fail(self, what: str, **how: Any) -> None:
        self._stories.fail(what, lease=self._name, log=self._log, **how)


def _make_entry(manager: str, operation: str, time_: str | int | None, fields: Document) -> Document:
    entry = {"manager": manager, "operation": operation, "apiVersion": VERSIONS[0], "fieldsType": "FieldsV1"}
    return entry | {"fieldsV1": fields} | ({} if time_ is None else {"time": time_})


def _make_claim(holder: str, transitions: int) -> Document:
    now = _format_now()
    spec = {"holderIdentity": holder, "acquireTime": now, "renewTime": now, "leaseDurationSeconds": 15}
    return spec | {"leaseTransitions": transitions}


def _format_now() -> str:
    return f"{dt.datetime.now(dt.UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def _has_seconds(lease: Document) -> bool:
    times = [lease["spec"].get("renewTime"), lease["spec"].get("acquireTime")]
    times += [entry.get("time") for entry in lease["metadata"].get("managedFields", [])]
    return any(isinstance(one, int) for one in times)


def _is_readable(lease: Document) -> bool:
    """Return whether JSON clients can decode every time."""
    spec, entries = lease["spec"], lease["metadata"].get("managedFields", [])
    micro = [time_ for name in ("renewTime", "acquireTime") if (time_ := spec.get(name)) is not None]
    whole = [time_ for entry in entries if (time_ := entry.get("time")) is not None]
    return all(len(one) == 27 for one in micro) and all(len(one) == 20 for one in whole)


def _is_unevaluated(reply: Reply) -> bool:
    """Return whether the review did not end in time: this machine is loaded, and the policy is Fail."""
    return reply.status >= 500 and any(word in reply.message for word in _UNEVALUATED)


def run(
    binaries: Binaries, directory: Path, seed: int, steals: int, honest: int, stamps: str = ""
) -> tuple[Counter[str], list[Document]]:
    """Play on one API server. Return the counts and the violations."""
    with ControlPlane(binaries, directory) as plane:
        world = World(plane)
        world.create_local_service()
        actors = create_actors(world)
        stories = Stories(actors, seed, steals, honest, stamped=bool(stamps))
        text = policy_text(STRICT)
        if stamps:
            actors["neighbor"] = world.create_account(NAMESPACE, "checkout-0", "checkout-2").client
            guards = [one for one in OTHERS if one["metadata"]["name"] == "lease-webhook-stamp-guard"]
            install(world, [*STAMP, *(one for one in OTHERS if stamps == "guard" or one not in guards)])
            label(world, NAMESPACE)
            wait_until_stamped(actors["keeper"], NAMESPACE)
            text += f"stamps: [{{suffix: {SUFFIX}, namespaces: [{NAMESPACE}]}}]\n"
        with serve_policy(world, text, directory) as server:
            route(world, server.port, renewals=False)
            stories.play()
        errors = sum(float(count) for count in _ERRORS.findall(world.admin.send("GET", "/metrics").message))
        if errors:
            stories.fail("evaluation errors of the match condition", errors=errors)
    return stories.count, stories.failures


def main(arguments: Sequence[str] | None = None) -> int:
    """Run on each version that is asked for. Return 1 if there is a violation."""
    parser = argparse.ArgumentParser(prog="python -m lab.e2e.fuzz_leases", description=__doc__)
    parser.add_argument("--kubernetes", nargs="*", default=["v1.37", "v1.34"], help="versions that begin so")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000), help="of the stories")
    parser.add_argument("--steals", type=int, default=10_000, help="how many to try")
    parser.add_argument("--honest", type=int, default=10_000, help="honest writes to make")
    parser.add_argument("--stamps", choices=["guard", "rule"], default="", help="with the policies of deploy/stamp")
    options = parser.parse_args(arguments)
    failed = False
    for binaries in build_all_binaries(*options.kubernetes):
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="lease-webhook-fuzz-") as temporary:
            count, failures = run(
                binaries, Path(temporary), options.seed, options.steals, options.honest, options.stamps
            )
        failed = failed or bool(failures)
        print(f"{binaries.version}, seed {options.seed}, {time.monotonic() - began:.0f} s")
        print("\n".join(f"  {name}: {number:,}" for name, number in sorted(count.items())))
        for failure in failures[:20]:
            print(json.dumps(failure)[:6000])
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
