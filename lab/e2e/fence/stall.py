"""Takeovers while the watches of two of three API servers are held, under four kinds of fences side by side.

The deposed leader goes on writing by all three API servers, as fast as it can. The order is that of the
resourceVersions.
"""

import concurrent.futures
import itertools
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final, Self

from msgspec import Struct

from lab.e2e.api_client import APPLY, MERGE, ApiClient, Reply
from lab.e2e.fence.plane import TwoServers
from lab.e2e.fence.token import Bench
from lab.e2e.fence.trial import FIRST, SECOND
from lab.e2e.kubectl import Kubectl
from lab.e2e.quantile import find_quantile
from lab.e2e.threads import run_threads
from tests.waiting import wait_for

VARIANTS: Final[dict[str, dict[str, Any] | None]] = {
    "no fence": None,
    "fence": {"token": False},
    "fence, token": {"token": True},
    "fence, token, clock": {"token": True, "expired": "deny"},
}
DURATION: Final = 15
"""Seconds, as client-go has by default."""
RENEWAL: Final = 2.0
OWN_WRITES: Final = 10
"""Writes by the new leader to the shared object in each trial."""
STALLS: Final = (0.5, 3.0, 8.0)
"""Seconds for which the deposed leader goes on while the watch is held, in turn."""
HONEST: Final = 10_000
"""Writes of a healthy leader of the variant that has everything; of the others a quarter."""
_AGAIN: Final = 0.002
"""Seconds between two writes of the deposed leader by one API server."""


class StallFigures(Struct, frozen=True):
    """The fate of the writes of one variant, in all trials together.

    `interleaved`: updates of the deposed leader stored after the successor's first one. `deleted`: objects that it
    deleted after the successor had written them. `tries`: refused first writes of a successor, before it knew.
    """

    takeovers: int = 0
    sent: int = 0
    interleaved: int = 0
    deleted: int = 0
    tries: int = 0
    honest: int = 0
    refused: int = 0
    milliseconds: tuple[float, ...] = ()

    def __add__(self, other: Self) -> "StallFigures":
        """Return both together."""
        return StallFigures(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))

    def has_passed(self, variant: str) -> bool:
        """Return whether the bars of a fence with a token hold."""
        is_token_required = "token" in variant
        return self.takeovers > 0 and not (is_token_required and (self.interleaved or self.deleted or self.refused))

    def render_row(self, variant: str) -> str:
        """Return the row in Markdown."""
        bad = "" if self.has_passed(variant) else "**FAILED** "
        median = f"{find_quantile(self.milliseconds, 0.5):.2f} ms" if self.milliseconds else "-"
        return (
            f"| {bad}{variant} | {self.interleaved} of {self.sent} | {self.deleted} of {self.takeovers} "
            f"| {self.refused} of {self.honest} | {self.tries} | {median} |"
        )


def run_stalls(plane: TwoServers, kubectl: Kubectl, trials: int, writes: int) -> dict[str, StallFigures]:
    """Run the trials, and `writes` of a healthy leader of each variant by both API servers."""
    benches = {name: _create_bench(plane, kubectl, number) for number, name in enumerate(VARIANTS)}
    leaders = [SECOND, FIRST]
    for bench in benches.values():
        bench.create_lease(bench.create_pod_client(FIRST), leaseDurationSeconds=DURATION)
        bench.write_lease(bench.create_pod_client(FIRST))
    figures_by_variant = dict.fromkeys(VARIANTS, StallFigures())
    with concurrent.futures.ThreadPoolExecutor(len(benches)) as pool:
        for number in range(trials):
            new, old = leaders
            _wait_until_caught_up(benches, old)
            with plane.stall():
                jobs = {
                    name: pool.submit(_play_takeover, bench, old, new, number, STALLS[number % len(STALLS)])
                    for name, bench in benches.items()
                }
                for name, job in jobs.items():
                    figures_by_variant[name] += job.result()
            print(f"takeover {number + 1}: {figures_by_variant}", file=sys.stderr, flush=True)
            leaders.reverse()
    _wait_until_caught_up(benches, leaders[1])
    for name, figures in _write_healthily(benches, leaders[1], writes).items():
        figures_by_variant[name] += figures
    return figures_by_variant


def _create_bench(plane: TwoServers, kubectl: Kubectl, number: int) -> Bench:
    keys = [*VARIANTS.values()][number]
    return Bench(plane, kubectl, f"stall-{number}", fenced=keys is not None, **(keys or {}))


def _wait_until_caught_up(benches: dict[str, Bench], leader: str) -> None:
    """Wait until the other API servers admit the leader wherever there is a fence."""
    for bench in benches.values():
        _renew(bench, leader)
        for port in (bench.plane.second_port, bench.plane.third_port):
            _wait_for_watch(bench, bench.create_pod_client(leader, port))


def _wait_for_watch(bench: Bench, client: ApiClient) -> None:
    wait_for("the watch", lambda: _write(client, bench, "log", "w").status == 200, 60)


def _play_takeover(bench: Bench, old: str, new: str, number: int, seconds: float) -> StallFigures:
    leader, successor = bench.create_pod_client(old), bench.create_pod_client(new)
    names = (f"both-{number}", f"deleted-{number}")
    for name in names:
        leader.send("POST", _build_collection_path(bench), {"metadata": {"name": name}, "data": {"k": old}}).expect(201)
    stop = threading.Event()
    revisions: list[int] = []
    sent = itertools.count()

    def keep_writing(client: ApiClient) -> None:
        while not stop.is_set():
            reply = _write(client, bench, names[0], f"{old}-{next(sent)}")
            if reply.status == 200:
                revisions.append(_read_revision(reply))
            time.sleep(_AGAIN)

    ports = (bench.plane.port, bench.plane.second_port, bench.plane.third_port)
    with run_threads(stop, *(partial(keep_writing, bench.create_pod_client(old, port)) for port in ports)):
        time.sleep(0.1)
        _create_lease(bench, leader, holderIdentity="")
        _create_lease(bench, successor, holderIdentity=f"{new}-{number}")
        replies: list[Reply] = []
        while sum(1 for one in replies if one.status == 200) < OWN_WRITES and len(replies) < 10 * OWN_WRITES:
            replies.append(_write(successor, bench, names[0], f"{new}-{len(replies)}"))
        _write(successor, bench, names[1], new).expect(200)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            _renew(bench, new)
            replies.append(_write(successor, bench, names[0], f"{new}-{len(replies)}"))
            time.sleep(min(RENEWAL, seconds))
    late = bench.create_pod_client(old, bench.plane.second_port)
    deleted = late.send("DELETE", f"{_build_collection_path(bench)}/{names[1]}").status == 200
    own = [_read_revision(one) for one in replies if one.status == 200]
    early = next((at for at, one in enumerate(replies) if one.status == 200), len(replies))
    return StallFigures(
        takeovers=1,
        sent=next(sent),
        interleaved=sum(1 for revision in revisions if revision > own[0]),
        deleted=deleted,
        tries=early,
        honest=len(replies) - early,
        refused=sum(1 for one in replies[early:] if one.status != 200),
    )


def _write_healthily(benches: dict[str, Bench], leader: str, writes: int) -> dict[str, StallFigures]:
    """Renew in time as the leader, and write in turn by both API servers: updates, applies, creations, deletions.

    All variants do in every fourth round of four, the last one, which has everything, in each. The first 100 writes
    of a variant warm it up.
    """
    clients = {
        name: [bench.create_pod_client(leader, port) for port in (bench.plane.port, bench.plane.second_port)]
        for name, bench in benches.items()
    }
    times: dict[str, list[float]] = {name: [] for name in benches}
    refusals, honest = dict.fromkeys(benches, 0), dict.fromkeys(benches, 0)
    *_, last = benches
    last_renewal = 0.0
    for number in range(writes):
        if time.monotonic() - last_renewal > RENEWAL:
            last_renewal = time.monotonic()
            for bench in benches.values():
                _renew(bench, leader)
        for name, bench in benches.items():
            if number // 4 % 4 and name != last:
                continue
            reply = _write_honestly(clients[name][number // 16 % 2], bench, number)
            honest[name] += 1
            if reply.status not in (200, 201):
                refusals[name] += 1
            if number % 16 == 0 and honest[name] > 100:
                times[name].append(reply.milliseconds)
    return {
        name: StallFigures(honest=honest[name], refused=refusals[name], milliseconds=tuple(times[name]))
        for name in benches
    }


def _write_honestly(client: ApiClient, bench: Bench, number: int) -> Reply:
    name, text = f"own-{number // 4}", str(number)
    if number % 4 == 0:
        return _write(client, bench, "log", text)
    if number % 4 == 1:
        return client.send("POST", _build_collection_path(bench), {"metadata": {"name": name}, "data": {"k": text}})
    path = f"{_build_collection_path(bench)}/{name}"
    if number % 4 == 2:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": text}}
        return client.send("PATCH", path, body, media=APPLY, fieldManager="operator", force=True)
    return client.send("DELETE", path)


def render_rows(figures_by_variant: dict[str, StallFigures]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield (
        "| | updates of the old leader stored after its successor's first | objects that it deleted after its "
        "successor wrote them | honest writes refused | first tries of a successor | an update, p50 |"
    )
    yield "|---|---|---|---|---|---|"
    yield from (figures.render_row(name) for name, figures in figures_by_variant.items())


def has_passed(figures_by_variant: dict[str, StallFigures]) -> bool:
    """Return whether every bar holds, and there was anything to hold back."""
    without: Sequence[StallFigures] = [figures_by_variant["no fence"], figures_by_variant["fence"]]
    return all(one.interleaved for one in without) and all(
        one.has_passed(name) for name, one in figures_by_variant.items()
    )


def _create_lease(bench: Bench, client: ApiClient, **spec: Any) -> None:
    bench.write_lease(client, settle=False, **spec)


def _renew(bench: Bench, leader: str) -> None:
    bench.write_lease(bench.create_pod_client(leader), settle=False)


def _build_collection_path(bench: Bench) -> str:
    return bench.operator.log.rpartition("/")[0]


def _write(client: ApiClient, bench: Bench, name: str, text: str) -> Reply:
    return client.send("PATCH", f"{_build_collection_path(bench)}/{name}", {"data": {"k": text}}, media=MERGE)


def _read_revision(reply: Reply) -> int:
    return int(reply.body["metadata"]["resourceVersion"])
