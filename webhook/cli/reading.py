"""Reads the inputs of a command, merged in the order of time, and says as of when they are evaluated."""

import gc
import os
import select
import stat
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem
from msgspec import Struct
from msgspec.structs import replace

from webhook.admission.policy.file import load
from webhook.admission.policy.model import Policy
from webhook.admission.rules.expiry import BOUND, MAX_TOLERANCE
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.merge.merged import Merged
from webhook.analysis.inputs.cluster import TIMEOUT, Cluster, list_in_cluster, list_items, list_lease_names
from webhook.analysis.inputs.files import SUFFIXES, find_inputs
from webhook.analysis.inputs.items import STANDARD_INPUT, Item, RecordingGap, Unreadable
from webhook.analysis.inputs.meter import Meter
from webhook.analysis.inputs.stamp_reader import StampReader
from webhook.cli.options import complete_files, policy_option
from webhook.cli.progress import Progress
from webhook.cli.terminal import Failure, print_message
from webhook.errors import InputError
from webhook.kubernetes.formats import dns_label, dns_subdomain
from webhook.kubernetes.times import HOUR, MINUTE, SECOND, format_span, format_time
from webhook.text.commands import quote_path
from webhook.text.quoting import escape, quote, truncate

_COLLECTED: Final = 100_000
"""Objects after which Python looks for cycles."""
MAX_NAMED: Final = 5
"""How many unreadable parts are named, and gaps of a record, the latest; other unreadable parts are counted."""
_REQUEST_TIMEOUT: Final = "give up a request of kubectl after this time; 60s unless given, 0 for never"
_LONG_AFTER: Final = 15 * SECOND
"""For as long most leases last: one that was renewed when an input ended has expired by then, or seems to have."""
_PAST: Final = HOUR
"""A history with renewals that ended so long before it was piped is one of the past, and no watch that goes on."""
HIDDEN_STAMPS: Final = (
    "the input has no managedFields, so only the holders' own clocks say when they renewed; "
    "kubectl shows them with --show-managed-fields"
)

SKEWED: Final = (
    "the clocks of the API servers differ by {} or more, or these are several clusters, "
    "or etcd was put back to an earlier state: what is said of times, and of a holder "
    "that was replaced too early or too late, may be wrong by as much"
)


def connection_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options of kubectl that say which cluster, and as whom; the command gets them as one `Cluster`."""

    @click.option("--context", metavar="NAME", default="", help="run kubectl with this context")
    @click.option("--cluster", "cluster_name", metavar="NAME", default="", help="run kubectl with this cluster")
    @click.option("--kubeconfig", metavar="FILE", default="", help="for kubectl", shell_complete=complete_files)
    @click.option("--as", "as_user", metavar="USER", default="", help="let kubectl impersonate this user")
    @click.option("--as-group", "as_groups", metavar="GROUP", multiple=True, help="and this group; may be repeated")
    @click.option("--request-timeout", metavar="TIME", type=_parse_timeout, default="60s", help=_REQUEST_TIMEOUT)
    @wraps(function)
    def with_connection(  # the values are those that click passes
        context: str,
        cluster_name: str,
        kubeconfig: str,
        as_user: str,
        as_groups: tuple[str, ...],
        request_timeout: str,
        **given: Any,  # noqa: ANN401
    ) -> int:
        if as_groups and not as_user:
            raise Failure("--as-group needs --as, as in kubectl")
        cluster = Cluster(
            context=context,
            kubeconfig=kubeconfig,
            cluster=cluster_name,
            user=as_user,
            groups=as_groups,
            request_timeout=request_timeout,
        )
        if given.get("inputs"):
            refuse_kubectl_options(cluster, "--input")
        return function(cluster=cluster, **given)

    return with_connection


def _add_cluster_options(function: Callable[..., int], namespace_help: str) -> Callable[..., int]:
    @connection_options
    @click.option("-n", "--namespace", metavar="NAME", default="", help=namespace_help)
    @click.option("-A", "--all-namespaces", is_flag=True, help="run kubectl for all namespaces")
    @wraps(function)
    def with_cluster(cluster: Cluster, namespace: str, all_namespaces: bool, **given: Any) -> int:  # noqa: ANN401, FBT001 - what click passes
        return function(cluster=replace(cluster, namespace=namespace, all_namespaces=all_namespaces), **given)

    return with_cluster


def cluster_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the same, and those that say which namespaces."""
    return _add_cluster_options(function, "run kubectl for this namespace")


def cluster_and_input_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the same for a command that also restricts what --input has to the namespace, by `find_namespace`."""
    return _add_cluster_options(function, "run kubectl for this namespace; of --input, only its leases")


def _parse_timeout(text: str) -> str:
    if not TIMEOUT.fullmatch(text):
        raise click.BadParameter(f"{quote(truncate(text))} is not a time such as 5s, 2m or 0 for no limit")
    return text


def refuse_inside(cluster: Cluster) -> None:
    """Raise Failure if options of kubectl are given for a command that runs in a pod, as the account of that."""
    if option := _find_option(cluster):
        raise Failure(f"--in-cluster uses the service account of the pod, without kubectl: {option} is not for it")


def refuse_kubectl_options(cluster: Cluster, instead: str) -> None:
    """Raise Failure if options of kubectl are given for files, which are read `instead` of a cluster."""
    if option := _find_option(cluster):
        raise Failure(f"{option} is for kubectl, which does not run with {instead}")


def _find_option(cluster: Cluster) -> str:
    """Return the first option of kubectl that is given, "" if there is none."""
    return cluster.options[0].partition("=")[0] if cluster.options else ""


def refuse_repeated_standard_input(paths: Sequence[str | None]) -> None:
    """Raise UsageError if `-` is there twice: standard input is read once."""
    if paths.count(STANDARD_INPUT) > 1:
        raise click.UsageError(f"{STANDARD_INPUT} is given twice: standard input is read once")


def _check_inputs(_ctx: click.Context, _param: click.Parameter, paths: tuple[str, ...]) -> tuple[str, ...]:
    refuse_repeated_standard_input(paths)
    return paths


input_option: Final = click.option(
    "--input",
    "inputs",
    metavar="FILE|DIR|-",
    multiple=True,
    callback=_check_inputs,
    help="may be repeated",
    shell_complete=complete_files,
)


def leases_and_inputs(function: Callable[..., int]) -> Callable[..., int]:
    """Add leases as arguments and inputs as options."""
    return _add_leases_and_inputs(function, "[NAMESPACE/NAME]...")


def lease_and_inputs(function: Callable[..., int]) -> Callable[..., int]:
    """Add the same for a command that takes one lease, by `find_named_lease`, which refuses more in its own words."""
    return _add_leases_and_inputs(function, "[NAMESPACE/NAME]")


def _add_leases_and_inputs(function: Callable[..., int], metavar: str) -> Callable[..., int]:
    @click.argument("leases", metavar=metavar, nargs=-1, shell_complete=_complete_names)
    @input_option
    @wraps(function)
    def with_leases(leases: tuple[str, ...], **given: Any) -> int:  # noqa: ANN401 - what click passes
        # in/audit.log is a name that a lease may have, too.
        suffixes = () if given["inputs"] else SUFFIXES
        refuse_files(word for word in leases if word.endswith(suffixes) or not _is_lease(word))
        return function(leases=leases, **given)

    return with_leases


def refuse_files(words: Iterable[str]) -> None:
    """Raise UsageError for an argument that is a file, a directory or `-`: inputs are named by an option."""
    for word in words:
        if word == STANDARD_INPUT or os.path.exists(word):  # noqa: PTH110 - never raises
            # The word is there to be copied, so it is not cut.
            raise click.UsageError(f"an input is an option: --input {quote_path(word)}")


def _is_lease(word: str) -> bool:
    namespace, _, name = word.partition("/")
    return not (dns_label(namespace) or dns_subdomain(name))


def _complete_names(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    context, kubeconfig, namespace = (ctx.params.get(name) or "" for name in ("context", "kubeconfig", "namespace"))
    cluster = widen_to_all_namespaces(Cluster(context, kubeconfig, namespace))
    return [CompletionItem(one) for one in list_lease_names(cluster) if one.startswith(incomplete)]


def print_unread_pipe(instead: str = "--input -") -> None:
    """Say that what another command writes to standard input is not read, and what reads it."""
    if _has_pipe():
        print_message(f"the cluster is examined, not standard input: {instead} reads that")


def _has_pipe() -> bool:
    """Return whether another command writes to standard input, or has written to it.

    A pipe that was closed without a byte is what cron and CI runners give to their jobs.
    """
    try:
        number = sys.stdin.fileno()
        if not stat.S_ISFIFO(os.fstat(number).st_mode):
            return False
        poll = select.poll()
        poll.register(number, select.POLLIN)
        return poll.poll(0) != [(number, select.POLLHUP)]
    except (AttributeError, OSError, ValueError):
        return False  # it is closed, or no file


def find_named_lease(leases: Sequence[str]) -> str | None:
    """Return the lease that was named, None without one; raises Failure for several."""
    if len(leases) > 1:
        raise Failure(f"one lease at a time: {', '.join(leases)}")
    return leases[0] if leases else None


stamps_option: Final = policy_option("a policy file, whose `stamps` say where stamps are believed", metavar="FILE")
stamps_and_numbers_option: Final = policy_option(
    "a policy file: where `stamps` are believed, and the numbers of its rules", metavar="FILE"
)


def widen_to_all_namespaces(cluster: Cluster) -> Cluster:
    """Return the cluster with all of its namespaces unless one is named."""
    return replace(cluster, all_namespaces=cluster.all_namespaces or not cluster.namespace)


def find_namespace(cluster: Cluster) -> str:
    """Return the namespace to which the options also restrict inputs; "" for all."""
    return "" if cluster.all_namespaces else cluster.namespace


def make_cluster_history(policy: Policy | None) -> ClusterHistory:
    """Return a history into which nothing was fed, with what a policy file says of its leases."""
    if policy is None:
        return ClusterHistory()
    return ClusterHistory(stamped=frozenset(policy.stamps), find_limits=policy.find_limits)


def read_for_history(
    paths: Sequence[str],
    cluster: Cluster | None = None,
    policy: str | None = None,
    *,
    with_pods: bool = False,
    is_in_cluster: bool = False,
    resources: Sequence[str] = (),
    progress: Progress | None = None,
    instead: str = "--input -",
) -> Iterator[Item]:
    """Yield every item in files, directories and standard input (`-`), each as soon as it is read.

    Without paths the cluster is listed, with pods and nodes if `with_pods`: by kubectl, which also lists `resources`,
    or, if `is_in_cluster`, with the service account of the pod that this runs in. A pipe that is not read then is
    mentioned, with what reads it `instead`, unless that is "". The `policy` file says where stamps are believed.
    `progress` is shown meanwhile.
    """
    # Objects that are read have no cycles, and 100,000 leases are many objects.
    gc.set_threshold(_COLLECTED)
    reader = StampReader({} if policy is None else load(policy).stamps)
    notes: list[str] = []
    items: Iterable[Item]
    merged = None
    meter = progress.meter if progress else Meter()
    if paths or cluster is None:
        items = merged = Merged(find_inputs(paths, meter), time.time_ns() // 1000 + BOUND, reader)
    elif is_in_cluster:
        items = _take_until_stopped(list_in_cluster(cluster, notes, with_pods=with_pods), meter)
    else:
        if instead:
            print_unread_pipe(instead)
        items = _take_until_stopped(list_items(cluster, notes, with_pods=with_pods, resources=resources), meter)
    unreadable = 0
    gaps: deque[RecordingGap] = deque(maxlen=MAX_NAMED)
    for item in progress.track_reading(items) if progress else items:
        if isinstance(item, Unreadable):
            unreadable += 1
            _name_unreadable(item, unreadable, progress)
        if isinstance(item, RecordingGap):
            gaps.append(item)
        yield reader.read(item)
    if unreadable > MAX_NAMED:
        print_message(f"{unreadable - MAX_NAMED} more could not be read")
    notes += map(str, gaps)
    if merged is not None and merged.skew > MAX_TOLERANCE:
        notes.append(SKEWED.format(format_span(merged.skew)))
    for note in notes:
        print_message(note)


def _name_unreadable(part: Unreadable, number: int, progress: Progress | None) -> None:
    if number <= MAX_NAMED:
        print_message(f"{part.place.short}: {part.error}")
    if progress:
        progress.unreadable = number


def _take_until_stopped(items: Iterator[Item], meter: Meter) -> Iterator[Item]:
    """Yield and count what a cluster lists, until the meter stops it: Ctrl-C also ends kubectl."""
    try:
        for item in items:
            meter.items += 1
            yield item
            if meter.is_stopped:
                return
    except InputError:
        if not meter.is_stopped:
            raise


class EvaluationTime(Struct, frozen=True):
    """The time at which the input is evaluated, in microseconds since 1970, and where it comes from.

    `seen_until` is the end of an input that ends after `at`: what a client wrote does not move it beyond the clock.
    """

    at: int
    origin: str
    seen_until: int = 0
    is_piped_late: bool = False
    """Whether this is the time of the clock, although the history on standard input ended long before."""

    @property
    def text(self) -> str:
        """`as of 2026-11-22T12:00:00Z (...)`."""
        return f"as of {format_time(self.at)} ({self.origin})"


def find_evaluation_time(given: int | None, paths: Sequence[str], until: int | None, shown: int = 0) -> EvaluationTime:
    """Return the time at which the input is evaluated; `given` is the value of --now.

    `until` is the end of a history; None for objects of one moment, which do not say when that was. `shown` is the
    latest time in it, if only what clients may have written says when it ends.
    """
    clock = time.time_ns() // 1000
    if given is not None:
        if until is None or given >= until:
            return EvaluationTime(given, f"--now{_describe_time_after(until, given)}")
        if given + SECOND > until:
            return EvaluationTime(until, "--now")  # people and clocks that print seconds leave out the rest of one
        end = format_time(until)
        origin = f"--now, before the end of the input at {end}: what happened after --now is included"
        return EvaluationTime(given, origin, min(until, clock))
    if STANDARD_INPUT in paths or not paths:
        after = _describe_time_after(until, clock)
        moment = f"; for that moment: --now {format_time(until)}" if until is not None and after else ""
        return EvaluationTime(clock, f"the clock of this computer{after}{moment}", is_piped_late=bool(after))
    if until is not None:
        return EvaluationTime(min(until, clock), "input's end", min(shown, clock))
    written = max((at for path in paths if (at := _date_input(Path(path))) is not None), default=clock)
    return EvaluationTime(min(written, clock), "when the file was written")


def is_over(given: int | None, paths: Sequence[str], histories: ClusterHistory) -> bool:
    """Return whether nothing was observed after the end of an input, as of files; `given` is the value of --now.

    Whatever feeds standard input may still be running, unless the history that it sent ended long ago. A watch of
    leases that no one renews does not count as such a history: it shows only when they were written.
    """
    until = histories.bounds.until
    is_long_ago = until is not None and time.time_ns() // 1000 - until >= _PAST
    is_past = is_long_ago and any(one.renewals.count for one in histories.leases.values())
    return bool(paths) and (given is not None or is_past or STANDARD_INPUT not in paths)


def _describe_time_after(until: int | None, at: int) -> str:
    """Say that an input ended long before `at`, as a log of the past does: nothing says what happened since."""
    if until is None or at - until < _LONG_AFTER:
        return ""
    return f", {format_span(at - until)} after the input's end: what happened since is not in it"


def format_skipped(skipped: "Counter[str]") -> str:
    """Return `3 skipped (Pod 2, Service 1)`: objects of other kinds."""
    kinds = ", ".join(f"{escape(truncate(kind, 40))} {count}" for kind, count in skipped.most_common(5))
    return f"{skipped.total()} skipped ({kinds}{', ...' if len(skipped) > 5 else ''})"


def print_doubt_of_list(as_of: EvaluationTime, renewals: Iterable[int]) -> bool:
    """Say when a list was probably taken, if most of its leases were last renewed together at another time.

    Return whether they were.
    """
    times = sorted(renewals)
    together = sum(1 for at in times if at > times[-1] - MINUTE)
    if together <= max(1, len(times) // 2) or abs(off := as_of.at - times[-1]) <= MINUTE:
        return False
    latest, since = format_time(times[-1]), f"{format_span(abs(off))} {'before' if off > 0 else 'after'}"
    print_message(
        f"most leases were last renewed within a minute before {latest}, {since} the time of evaluation: "
        f"if the list was taken then, give --now {latest}"
    )
    return True


def _date_input(path: Path) -> int | None:
    """Return when a file, or the latest file of a directory, was written; None if that is not known."""
    try:
        written = [one for one in path.iterdir() if one.is_file()] if path.is_dir() else [path]
        return max((one.stat().st_mtime_ns // 1000 for one in written), default=None)
    except OSError:
        return None
