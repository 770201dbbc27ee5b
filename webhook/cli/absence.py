"""What a command says where it found no lease, or not the one that was named."""

import difflib
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Final

import click

from webhook.analysis.history.stored_leases import Key
from webhook.analysis.inputs.cluster import Cluster
from webhook.analysis.inputs.contents import MOST, Contents, find_contents
from webhook.analysis.inputs.items import NO_KIND, STANDARD_INPUT
from webhook.cli.progress import Progress
from webhook.cli.terminal import Failure, print_message
from webhook.text.quoting import escape, truncate

_SHOWN: Final = 3
_MAX_COMPARED: Final = 5_000
"""Names that a mistyped one is compared with."""
_MAX_NAME: Final = 320
_NEAR: Final = 0.75
_MAX_NEAR: Final = 5
_LIKE: Final = 0.5
_ENVELOPES: Final = "envelopes of log services that are opened: docs/why.md#audit-logs-of-clouds-and-collectors"
_POLICY: Final = "the audit policy must log leases, docs/why.md#the-audit-policy"


def name_source(paths: Sequence[str], cluster: Cluster | None = None) -> str:
    """Return where a command looked: in the input, or in what it listed of a cluster, all of it unless one is given."""
    if paths:
        return "the input"
    if cluster is None or cluster.all_namespaces:
        return "the cluster"
    return f"namespace {cluster.namespace}" if cluster.namespace else "the namespace of the context"


def refuse_absence(
    what: str, paths: Sequence[str], progress: Progress | None, cluster: Cluster | None = None
) -> Exception:
    """Return how a command ends that found nothing: with what the inputs hold instead.

    What could not be read was named before: if nothing else is there, no more is said.
    """
    if progress is not None and progress.is_stopped:
        return progress.refuse(Failure(what))
    text = explain_absence(paths, progress)
    if progress is not None and progress.unreadable and not text:
        return click.exceptions.Exit(Failure.exit_code)
    return Failure(f"{what} is in {name_source(paths, cluster)}{text}")


def describe_others(number: int) -> str:
    """Return `; 2 others are`, after a sentence that something is not in a place."""
    return f"; {number:,} other{' is' if number == 1 else 's are'}"


def describe_namesakes(found: Sequence[Key]) -> str:
    """Say that the name of a lease is that of several, in which namespaces, and how to choose one."""
    (first, name), spaces = found[0], ", ".join(space for space, _ in found[:_MAX_NEAR])
    return f"{name} is in several namespaces: {spaces}; name one, as {first}/{name}"


def explain_absence(paths: Sequence[str], progress: Progress | None = None) -> str:
    """Return what to add to the message that nothing was found; one line may be printed before it."""
    if STANDARD_INPUT in paths or not paths:
        is_empty = progress is not None and [*paths] == [STANDARD_INPUT] and not progress.meter.read
        return ": standard input is empty" if is_empty else ""
    found = find_contents(paths)
    if found.events:
        number = sum(found.events.values())
        shown = f"{number:,}" if number < MOST else "the first"
        print_message(f"{_name(paths)}: {shown} audit events, of {_list(found.events)}")
        return f": {_POLICY}"
    if found.objects:
        hint = f"; {_ENVELOPES}" if NO_KIND in found.objects else ""
        return f": other documents in {_name(paths)} ({_list(found.objects)}){hint}"
    return _describe_emptiness(found)


def explain_emptiness(paths: Sequence[str]) -> str:
    """Return what to add to the message that nothing was found in inputs that have no document."""
    if STANDARD_INPUT in paths:
        return ": standard input is empty" if [*paths] == [STANDARD_INPUT] else ""
    return _describe_emptiness(find_contents(paths))


def _describe_emptiness(found: Contents) -> str:
    if found.empty:
        return f": {_name(found.empty)} is empty"
    if found.bare:
        return f": {_name(found.bare)} has no .json, .yaml, .log or .gz file"
    return ""


def _name(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{escape(paths[0])}{more}"


def _list(counted: Mapping[str, int]) -> str:
    most = sorted(counted.items(), key=lambda one: (-one[1], one[0]))
    shown = ", ".join(f"{escape(truncate(name, 40))} {number:,}" for name, number in most[:_SHOWN])
    return f"{shown}, ..." if len(most) > _SHOWN else shown


def suggest_name(name: str, known: Mapping[str, str]) -> str:
    """Return a hint at the name that is nearest to a mistyped one, as it is to be written, "" if none is."""
    near = difflib.get_close_matches(name[:_MAX_NAME], islice(known, _MAX_COMPARED), n=3, cutoff=_NEAR)
    return next((f"; did you mean {known[one]}?" for one in near if _is_near_in_each_part(name, one)), "")


def suggest_leases(namespace: str, name: str, known: Collection[tuple[str, str]]) -> str:
    """Return a hint at the lease that was meant: the nearest, else those that share a part of the name, "" if none do.

    Without a namespace, the names alone are compared.
    """
    lease = f"{namespace}/{name}" if namespace else name
    names = {f"{space}/{other}" if namespace else other: f"{space}/{other}" for space, other in known}
    if hint := suggest_name(lease, names):
        return hint
    near = [f"{space}/{other}" for space, other in known if name in other or space == namespace]
    return f"; there {'are' if near[1:] else 'is'} {', '.join(near[:_MAX_NEAR])}" if near else ""


def choose_lease(namespace: str, name: str, known: Collection[Key], source: str, instead: str = "") -> Key:
    """Return the lease that was named, in any namespace if that is "".

    Raises Failure if it is not in the `source`, with what to do `instead`, or if there are several.
    """
    found = [key for key in known if key[1] == name and namespace in ("", key[0])]
    if len(found) == 1:
        return found[0]
    if found:
        raise Failure(describe_namesakes(found))
    shown = f"{namespace}/{name}" if namespace else name
    hint = suggest_leases(namespace, name, known) or (f"; {instead}" if instead else describe_others(len(known)))
    raise Failure(f"lease {shown} is not in {source}{hint}")


def _is_near_in_each_part(name: str, other: str) -> bool:
    """True if the namespaces are like each other, and the names too: a namespace alone does not hint at a lease."""
    parts = zip(name.split("/"), other.split("/"), strict=False)
    return all(difflib.SequenceMatcher(None, mine, theirs).ratio() >= _LIKE for mine, theirs in parts)
