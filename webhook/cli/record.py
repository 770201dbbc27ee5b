"""`lease-webhook record`: keep the history of every election in a directory."""

import signal
from pathlib import Path
from queue import Empty, SimpleQueue

import click

from webhook.cli.options import Command, directories
from webhook.cli.reading import cluster_options, everywhere, refuse_inside
from webhook.cli.terminal import print_message
from webhook.inputs.cluster import CANDIDATES, EVENTS, LEASES, Cluster
from webhook.live.recorder import Recorder, Records
from webhook.live.watch import LiveWatch

_DESCRIPTION = """\
Watches leases, their candidates and their Events, and keeps the history of every election in a few files: each change
of a holder, each gap between renewals, and how often and how regularly each holder renewed. why, timeline and audit
read the directory as any other input, also while it is written.

It runs until it is stopped. What it could not see is recorded as a gap.
"""

_EPILOG = """\
Examples:
  lease-webhook record history                             # with kubectl, for a while; meanwhile, or then:
  lease-webhook why shop/checkout --input history
  kubectl -n lease-webhook exec lease-recorder-0 -- \\
    /usr/local/bin/python3 -m webhook why shop/checkout --input /history

Exit codes: 0 it was stopped, 2 it cannot write.
"""


@click.command("record", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path), shell_complete=directories)
@click.option("--in-cluster", is_flag=True, help="watch with the service account of this pod, without kubectl")
@click.option("--max-size", type=click.IntRange(1), default=256, metavar="MIB", help="of the history; 256 unless given")
@click.option("--save-every", type=click.FloatRange(0.1), default=60, metavar="SECONDS", help="60 unless given")
@cluster_options
def command(*, directory: Path, in_cluster: bool, max_size: int, save_every: float, cluster: Cluster) -> int:
    if in_cluster:
        refuse_inside(cluster)
    # Not an Event: a signal that comes while the main thread holds its lock would wait for that forever.
    signals: SimpleQueue[int] = SimpleQueue()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: signals.put(number))
    recorder = Recorder(Records(directory, max_size * 1024 * 1024), print_message)
    cluster = everywhere(cluster)
    watches = [LiveWatch(recorder, cluster, one, is_inside=in_cluster) for one in (LEASES, CANDIDATES, EVENTS)]
    for watch in watches:
        watch.start()
    print_message(f"recording into {directory}")
    try:
        while not _has_one(signals, save_every):
            recorder.save()
            if not all(watch.is_alive() for watch in watches):
                raise RuntimeError("a watch has ended")
        recorder.save()
    finally:
        for watch in watches:
            watch.stop()
    return 0


def _has_one(signals: SimpleQueue[int], seconds: float) -> bool:
    """Wait for a signal, for so long."""
    try:
        signals.get(timeout=seconds)
    except Empty:
        return False
    return True
