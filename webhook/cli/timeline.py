"""`lease-webhook timeline`: what leases did over time, as a page or JSON, or as a page that goes on."""

import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from webhook.admission.rules.expiry import BOUND
from webhook.analysis.claims.words import format_count
from webhook.analysis.inputs.cluster import Cluster, require_kubectl
from webhook.analysis.inputs.items import Item
from webhook.analysis.timeline.downsampling import fit_into
from webhook.analysis.timeline.lanes import TimelineBuilder
from webhook.analysis.timeline.model import Timeline, make_timeline_json
from webhook.analysis.timeline.page import render
from webhook.cli import reading
from webhook.cli.absence import choose_lease, explain_absence, name_source, refuse_absence, suggest_name
from webhook.cli.ending import ignore_signals, raise_at_first_signal
from webhook.cli.options import (
    FORMATS_OF_OTHERS,
    Command,
    complete_files,
    parse_endpoint,
    parse_lease,
    parse_moment,
)
from webhook.cli.progress import Progress
from webhook.cli.terminal import Failure, print_message

if TYPE_CHECKING:
    from webhook.analysis.live.server import Feed

_DESCRIPTION = """\
Draws who held each lease when, and what happened to it: takeovers, steals, denials, fenced writes. The page is one
HTML file that loads nothing else.

The input is anything that shows leases: a watch, the audit log of the API server (also rotated and gzipped), reviews
that the webhook captured, dumps. Several are read as one, in order of time. Without an input, kubectl is run once,
with your own credentials: a list shows the present, a watch shows a history.
"""

_EPILOG = """\
Examples:
  lease-webhook timeline --example
  # watch for a while, stop it, then run the second command
  kubectl get leases -A -w -o json --output-watch-events \\
    --show-managed-fields > leases.json
  lease-webhook timeline --input leases.json -o page.html
  lease-webhook timeline --input leases.json --input /var/log/kubernetes/audit
  lease-webhook timeline shop/checkout --input leases.json --format json
  kubectl lease timeline --serve    # live, in a browser

Exit codes: 0 it was drawn, 2 no lease was found, or nothing could be read;
with --serve: 0 it was stopped.
"""

_FORMATS: Final = ("html", "json")
_PAGE: Final = "lease-timeline.html"
_OUTPUT: Final = f"where to write it; unless given, {_PAGE} on a terminal, else standard output, as with -"
EXAMPLE: Final = Path(__file__).parent / "example"
"""A leader that was paused, replaced and fenced; recorded on a real API server."""
EXAMPLE_FILES: Final = ("leases.json.gz", "audit.log.gz")


@click.command("timeline", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@reading.leases_and_inputs
@click.option("-o", "--output", "place", metavar="FILE", default="", help=_OUTPUT, shell_complete=complete_files)
@click.option("--format", "output", type=click.Choice(_FORMATS), default="html", help="html unless given")
@click.option("--example", "is_example", is_flag=True, help="draw a recorded election instead of an input")
@click.option("--serve", "is_live", is_flag=True, help="serve the page, and follow what happens")
@click.option("--bind", "address", metavar="HOST:PORT", default=None, help="with --serve; 127.0.0.1 unless given")
@click.option(
    "--now", type=parse_moment, metavar="RFC3339", help="draw until this time, as of which leases have expired"
)
@reading.stamps_option
@reading.cluster_and_input_options
def command(
    *,
    inputs: tuple[str, ...],
    place: str,
    output: str,
    leases: tuple[str, ...],
    is_example: bool,
    is_live: bool,
    address: str | None,
    now: int | None,
    policy: str | None,
    cluster: Cluster,
) -> int:
    _refuse_format(place)
    if is_example:
        if inputs:
            raise Failure("--example is an input of its own: it takes no file")
        inputs = tuple(str(EXAMPLE / name) for name in EXAMPLE_FILES)
    wanted = [parse_lease(lease, cluster.namespace) for lease in leases]
    cluster = reading.widen_to_all_namespaces(cluster)
    if is_live:
        if place or leases or policy or now is not None or output != "html" or (inputs and cluster.namespace):
            words = "no lease, -o, --format, --now and --policy, and no --namespace with --input"
            raise Failure(f"--serve shows everything in a browser: it takes {words}")
        if not inputs:
            reading.print_unread_pipe()
        return _serve(inputs, cluster, "127.0.0.1:0" if address is None else address)
    if address is not None:
        raise Failure("--bind is for --serve")
    only = reading.find_namespace(cluster)
    # The API server's clock may be ahead of this computer's.
    builder = TimelineBuilder(time.time_ns() // 1000 + BOUND, names=frozenset(wanted), namespace=only)
    progress = Progress()
    items = reading.read_for_history(inputs, cluster, policy, progress=progress)
    progress.count = lambda: builder.histories.lease_count
    timeline = read_timeline(builder, items, inputs, cluster, now, progress)
    try:
        timeline = _select(timeline, wanted, only, name_source(inputs, cluster))
    except Failure as problem:
        raise progress.refuse(problem) from None
    if not place and output == "html" and sys.stdout.isatty():
        place = _PAGE
    _write(timeline if output == "json" else fit_into(timeline), output, place)
    return progress.exit_code(0)


def _refuse_format(place: str) -> None:
    """Refuse a file that is named as a format is: elsewhere -o takes a format."""
    if place in {*_FORMATS, *FORMATS_OF_OTHERS}:
        how = f"formats are {' and '.join(_FORMATS)}"
        if place in _FORMATS:
            how = f"for that format write --format {place}"
        raise Failure(f"-o {place} would be a file of that name: {how}; for the file write -o ./{place}")


def _write(timeline: Timeline, output: str, place: str) -> None:
    text = draw(timeline, output)
    if place in {"", "-"}:
        if buffer := getattr(sys.stdout, "buffer", None):
            buffer.write(text)  # UTF-8, whatever the encoding of the terminal is
        else:
            print(text.decode(), end="")
        return
    try:
        Path(place).write_bytes(text)
    except OSError as error:
        raise Failure(f"{place}: {error.strerror or error}") from error
    print_message(f"{place}: {_summarize(timeline)}")


def draw(timeline: Timeline, output: str) -> bytes:
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(make_timeline_json(timeline)), indent=2) + b"\n"
    return render(timeline).encode()


def read_timeline(
    builder: TimelineBuilder,
    items: Iterable[Item],
    paths: Sequence[str],
    cluster: Cluster,
    now: int | None,
    progress: Progress | None = None,
) -> Timeline:
    """Return what the items of some paths, or of kubectl, show; raises Failure if that is nothing."""
    for item in items:
        builder.observe(item)
    until = builder.histories.bounds.until
    as_of = reading.find_evaluation_time(now, paths, until)
    listing = f"kubectl get leases --context={cluster.context}" if cluster.context else "kubectl get leases"
    timeline = builder.timeline(as_of.at, tuple(paths) or (listing,), builder.clock - BOUND)
    if not timeline.lanes:
        raise refuse_absence("no lease", paths, progress, cluster)
    undrawn = [lane for lane in timeline.lanes if lane.problem]
    for lane in undrawn[: reading.MAX_NAMED]:
        print_message(f"{lane.namespace}/{lane.name} cannot be drawn: {lane.problem}")
    if len(undrawn) > reading.MAX_NAMED:
        print_message(f"{len(undrawn) - reading.MAX_NAMED} more cannot be drawn")
    if paths and until is None and now is None:
        reading.print_doubt_of_list(as_of, (lane.ticks.moments[-1] for lane in timeline.lanes if lane.ticks.moments))
    if builder.histories.hides_stamps:
        print_message(reading.HIDDEN_STAMPS)
    if not paths:
        print_message("a list shows one moment; `lease-webhook record history` keeps a history, for --input history")
    return timeline


def _select(timeline: Timeline, wanted: Sequence[tuple[str, str]], only: str, source: str) -> Timeline:
    lanes = {(lane.namespace, lane.name): lane for lane in timeline.lanes if only in {"", lane.namespace}}
    if only and not lanes:
        hint = suggest_name(only, {lane.namespace: lane.namespace for lane in timeline.lanes})
        raise Failure(f"no lease of namespace {only} is in {source}{hint}")
    found = {choose_lease(*key, lanes, source) for key in wanted}
    chosen = tuple(lane for key, lane in lanes.items() if not wanted or key in found)
    return msgspec.structs.replace(timeline, lanes=chosen)


def _summarize(timeline: Timeline) -> str:
    """Return what was drawn of how many leases."""
    marks = sum(mark.count for lane in timeline.lanes for mark in lane.marks)
    renewals = sum(lane.ticks.count for lane in timeline.lanes)
    text = ", ".join(
        [format_count(len(timeline.lanes), "lease"), format_count(renewals, "renewal"), format_count(marks, "mark")]
    )
    if not timeline.left_out:
        return text
    of_all = f"{len(timeline.lanes):,} of {len(timeline.lanes) + timeline.left_out:,} leases"
    return f"{of_all}, the rest is left out: name some, or a namespace with -n"


def _serve(paths: Sequence[str], cluster: Cluster, address: str) -> int:
    """Serve what the paths, or kubectl, show at HOST:PORT until Ctrl-C or a signal that ends programs."""
    # The server of Python's library is for this alone.
    from webhook.analysis.live.server import Feed, LiveServer  # noqa: PLC0415
    from webhook.analysis.live.watch import FirstFailure, Listeners, LiveWatch  # noqa: PLC0415

    host, _ = parse_endpoint(address)
    token = secrets.token_urlsafe(24)
    feed = Feed(", ".join(paths) or "kubectl get leases --watch")
    with _listen(address) as listener:
        port = listener.getsockname()[1]
        server = LiveServer(listener, feed, token, [host, "localhost"])
        if not paths:
            require_kubectl("--input serves what was recorded")
        watch = None if paths else LiveWatch(Listeners((feed, FirstFailure(print_message))), cluster)
        shown = f"[{host}]" if ":" in host else host
        threading.Thread(target=server.serve_forever, name="page", daemon=True).start()
        try:
            raise_at_first_signal()
            if watch:
                watch.start()
            else:
                threading.Thread(target=_read_into, args=(feed, paths), name="input", daemon=True).start()
            print(f"http://{shown}:{port}/{token}/", flush=True)
            print_message("Ctrl-C ends it")
            while True:
                time.sleep(1)  # Python acts on a signal that comes just before it when the sleep is over
        except KeyboardInterrupt:
            feed.end("lease-webhook has ended.")
        finally:
            # The end takes some seconds at most; a second signal in it would leave a kubectl behind.
            ignore_signals()
            if watch:
                watch.stop()
            server.shutdown()
    return 0


def _read_into(feed: "Feed", paths: Sequence[str]) -> None:
    feed.read(reading.read_for_history(paths))
    if not feed.lease_count:
        print_message(f"no lease is in the input{explain_absence(paths)}")


def _listen(address: str) -> socket.socket:
    host, port = parse_endpoint(address)
    try:
        if not ip_address(socket.gethostbyname(host) if ":" not in host else host).is_loopback:
            shown = "is not this computer alone: whoever knows the address can read the leases, unencrypted"
            print_message(f"{host} {shown}")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except socket.gaierror as error:
        raise Failure(f"{address} cannot be bound: {error.strerror}") from error
    except OSError as error:
        # create_server puts the address into the text once more.
        raise Failure(f"{address} cannot be bound: {os.strerror(error.errno or 0)}") from error
