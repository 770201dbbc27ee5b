"""Recorded leases, as constants of module Trace: each is allowed, or refused for what the rules refuse too."""

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Raw, Struct
from msgspec import json as msgjson
from msgspec.structs import replace

from webhook.admission.rules.expiry import date_last_renewal, find_expiry
from webhook.kubernetes.managed_fields import list_entries
from webhook.kubernetes.times import SECOND, parse_seconds

INCIDENTS: Final = Path(__file__).parents[2] / "tests" / "data" / "incidents"


class Version(Struct, frozen=True):
    """The data of module Trace about a stored lease; times are seconds since 1970."""

    at: int
    holder: str
    duration: int
    renew_time: bool
    stamp: int


class Trace(Struct, frozen=True):
    """Versions of one lease, and whether the module must allow them."""

    name: str
    versions: tuple[Version, ...]
    allowed: bool = True


def read_recorded() -> Iterator[Trace]:
    """Yield the leases of every incident, cut where a write is refused by the rules, which is a separate trace."""
    for file in sorted(INCIDENTS.glob("*/leases.json.gz")):
        events = map(json.loads, gzip.decompress(file.read_bytes()).splitlines())
        yield from list_watched(file.parent.name, events)


def list_watched(source: str, events: Iterable[dict[str, Any]]) -> Iterator[Trace]:
    """Yield the leases of a watch; one that was deleted and created again is another trace."""
    leases: dict[str, list[list[dict[str, Any]]]] = defaultdict(lambda: [[]])
    for event in events:
        lease = event["object"]
        lives = leases[f"{source}: {lease['metadata']['namespace']}/{lease['metadata']['name']}"]
        if event["type"] == "DELETED":
            lives.append([])
        else:
            lives[-1].append(lease)
    for name, lives in leases.items():
        for life in lives:
            yield from split_into_traces(name, life)


def corrupt(traces: Sequence[Trace]) -> Iterator[Trace]:
    """Yield traces that must not be allowed: an older stamp, and a holder who was never replaced."""
    for trace in traces:
        if not trace.allowed or len(trace.versions) < 4:
            continue
        *before, last = trace.versions
        if last.holder and last.stamp == last.at:
            yield Trace(f"{trace.name}, an older stamp", (*before, replace(last, stamp=last.stamp - 3)), allowed=False)
        if last.holder and last.holder == before[-1].holder:
            yield Trace(f"{trace.name}, another holder", (*before, replace(last, holder="nobody")), allowed=False)


def format_constants(traces: Sequence[Trace]) -> str:
    """Return a module that has the traces."""
    rows = ",\n".join(
        f"<<{', '.join(_format_row(trace.versions[0].at, one) for one in trace.versions)}>>" for trace in traces
    )
    return f"---- MODULE Recorded ----\nEXTENDS Trace\nRecordedTraces == <<\n{rows}>>\n====\n"


def _format_row(begin: int, version: Version) -> str:
    return (
        f"[at |-> {version.at - begin + 60}, holder |-> {json.dumps(version.holder)}, duration |-> {version.duration}, "
        f"renewTime |-> {str(version.renew_time).upper()}, seen |-> {version.stamp - begin + 60}]"
    )


def split_into_traces(name: str, life: Sequence[dict[str, Any]]) -> Iterator[Trace]:
    """Yield the traces of one life of a lease: a write that the rules refuse is a separate trace, and ends another."""
    piece: list[Version] = []
    for lease in life:
        version = _make_version(lease)
        if piece and (replace(version, at=piece[-1].at) == piece[-1] or not (version.holder or piece[-1].holder)):
            continue
        if piece and _is_refused(piece[-1], version):
            yield Trace(f"{name}, refused", (piece[-1], version), allowed=False)
            yield from _filter_long(name, piece)
            piece = []
        piece.append(version)
    yield from _filter_long(name, piece)


def _filter_long(name: str, piece: Sequence[Version]) -> Iterator[Trace]:
    if len(piece) > 1:
        yield Trace(name, tuple(piece))


def _make_version(lease: dict[str, Any]) -> Version:
    spec = lease.get("spec", {})
    entries = list_entries(Raw(msgjson.encode(lease["metadata"].get("managedFields", []))))
    stamps = [entry.stamp for entry in entries if entry.stamp is not None]
    stamp = date_last_renewal(entries)
    at = max(stamps, default=parse_seconds(lease["metadata"]["creationTimestamp"]))
    return Version(
        at=at // SECOND,
        holder=spec.get("holderIdentity") or "",
        duration=spec.get("leaseDurationSeconds") or 0,
        renew_time="renewTime" in spec,
        stamp=(at if stamp is None else stamp) // SECOND,
    )


def _is_refused(old: Version, new: Version) -> bool:
    """Return whether takeover-before-expiry refuses it in `strict`."""
    if not old.holder or new.holder in ("", old.holder):
        return False
    at = new.at * SECOND
    return not find_expiry(old.holder, old.duration, 0, (), at, at, old.stamp * SECOND).is_expired
