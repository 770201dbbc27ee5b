"""`lease-webhook record`: keep the history of every election in a directory."""

import signal
import time
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, SimpleQueue

import click
from msgspec import Struct, field

from webhook.analysis.inputs.cluster import CANDIDATES, EVENTS, LEASES, Cluster, post_event, require_kubectl
from webhook.analysis.live.leases import LiveLeases
from webhook.analysis.live.notices import Notices
from webhook.analysis.live.recorder import Recorder, Records
from webhook.analysis.live.watch import Listener, Listeners, LiveWatch
from webhook.cli.options import Command, complete_directories, parse_address, parse_endpoint
from webhook.cli.reading import cluster_options, refuse_inside, widen_to_all_namespaces
from webhook.cli.terminal import Failure, needing_the_server, print_message
from webhook.errors import InputError

_DESCRIPTION = """\
Watches leases, their candidates and their Events, and keeps the history of every election in a few files: each change
of a holder, each gap between renewals, and how often and how regularly each holder renewed. why, timeline and audit
read the directory as any other input, also while it is written.

It runs until it is stopped. What it could not see is recorded as a gap.
"""

_EPILOG = """\
Examples:
  # with kubectl; run the second command meanwhile or afterward
  lease-webhook record history
  lease-webhook why shop/checkout --input history
  # in the recorder's pod
  kubectl -n lease-webhook exec lease-recorder-0 -- \\
    /usr/local/bin/python3 -m webhook why shop/checkout --input /history

Exit codes: 0 it was stopped, 2 it cannot write, or kubectl is not installed.
"""


_MAX_SIZE = "the size to which the history may grow; 256 unless given"
_SAVE_EVERY = "how often latest.jsonl is written; 60 unless given"
_METRICS = "serve metrics of elections for Prometheus at HOST:PORT, such as 0.0.0.0:8080"
_EVENTS = "create a Kubernetes Event on a lease whose leader is lost, or that is stolen"
_LOOK_EVERY = 5.0
"""Seconds between two looks for new findings."""


@click.command("record", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path), shell_complete=complete_directories)
@click.option("--in-cluster", is_flag=True, help="watch with the service account of this pod, without kubectl")
@click.option("--max-size", type=click.IntRange(1), default=256, metavar="MIB", help=_MAX_SIZE)
@click.option("--save-every", type=click.FloatRange(0.1), default=60, metavar="SECONDS", help=_SAVE_EVERY)
@click.option("--metrics", type=parse_address, metavar="ADDRESS", help=_METRICS)
@click.option("--events", "with_events", is_flag=True, help=_EVENTS)
@cluster_options
def command(
    *,
    directory: Path,
    in_cluster: bool,
    max_size: int,
    save_every: float,
    metrics: str | None,
    with_events: bool,
    cluster: Cluster,
) -> int:
    if in_cluster:
        refuse_inside(cluster)
    else:
        require_kubectl("in a pod, --in-cluster works without it")
    # Not an Event: a signal that comes while the main thread holds its lock would wait for that forever.
    signals: SimpleQueue[int] = SimpleQueue()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: signals.put(number))
    recorder = Recorder(Records(directory, max_size * 1024 * 1024), print_message)
    cluster = widen_to_all_namespaces(cluster)
    leases = LiveLeases()
    listener: Listener = Listeners((recorder, leases)) if metrics or with_events else recorder
    watches = [
        LiveWatch(listener if one == LEASES else recorder, cluster, one, is_in_cluster=in_cluster)
        for one in (LEASES, CANDIDATES, EVENTS)
    ]
    if metrics:
        _serve_metrics(leases, metrics)
    notices = _EventPoster(leases, cluster, is_in_cluster=in_cluster) if with_events else None
    for watch in watches:
        watch.start()
    print_message(f"recording into {directory}")
    try:
        _save_until_stopped(recorder, watches, signals, save_every, notices)
    finally:
        for watch in watches:
            watch.stop()
        recorder.save()
    print_message(f"stopped: {recorder.summary}, in {directory}")
    return 0


class _EventPoster(Struct):
    """Posts an Event about each new finding; the command calls it every few seconds."""

    leases: LiveLeases
    cluster: Cluster
    is_in_cluster: bool
    found: Notices = field(default_factory=Notices)
    problem: str = ""

    def post(self) -> None:
        """Post an Event about each new finding; report a refusal once."""
        with self.leases.lock() as (histories, now):
            events = [*self.found.find_new(histories, now)]
        for event in events:
            problem = ""
            try:
                post_event(self.cluster, event, is_in_cluster=self.is_in_cluster)
            except InputError as error:
                problem = f"no Event could be created: {error}"
                if problem != self.problem:
                    print_message(problem)
            self.problem = problem


def _serve_metrics(leases: LiveLeases, place: str) -> None:
    """Serve metrics in a thread."""
    with needing_the_server("--metrics"):
        from prometheus_client import start_http_server  # noqa: PLC0415

        from webhook.analysis.live.metrics import make_registry  # noqa: PLC0415
    host, port = parse_endpoint(place)
    try:
        start_http_server(port, host, make_registry(leases))
    except OSError as error:
        raise Failure(f"{place} cannot be bound: {error.strerror}") from error


def _save_until_stopped(
    recorder: Recorder,
    watches: Sequence[LiveWatch],
    signals: "SimpleQueue[int]",
    save_every: float,
    notices: _EventPoster | None,
) -> None:
    pause = save_every if notices is None else min(save_every, _LOOK_EVERY)
    saved = time.monotonic()
    while not _wait_for_signal(signals, pause):
        if notices is not None:
            notices.post()
        if time.monotonic() - saved >= save_every or notices is None:
            recorder.save()
            saved = time.monotonic()
        if not all(watch.is_alive() for watch in watches):
            raise RuntimeError("a watch has ended")


def _wait_for_signal(signals: SimpleQueue[int], seconds: float) -> bool:
    """Return whether a signal came within that time."""
    try:
        signals.get(timeout=seconds)
    except Empty:
        return False
    return True
