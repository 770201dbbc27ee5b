"""Leases with stamps, as constants of module Stamped."""

import datetime as dt
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from lab.spec.intervals import is_expired

NUMBERS: Final = {
    "Offsets": "{0}",
    "Durations": "{1, 6}",
    "Policies": '{"both"}',
    "MaxTime": "1000000",
    "MaxWrites": "1000000000",
    "MaxSwitches": "0",
}
_EPOCH: Final = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


class StampedVersion(Struct, frozen=True):
    """A version as module Stamped knows it; times are seconds. `before` is the revision that it replaced."""

    at: int
    before: int
    holder: str
    duration: int
    writer: str
    written: int
    term: int
    owner: str = ""
    by: str = ""


class Tenures(Struct, frozen=True):
    """Versions of one lease, and whether the module must allow them."""

    name: str
    versions: tuple[StampedVersion, ...]
    allowed: bool = True


def convert_to_stamped(
    lease: dict[str, Any], suffix: str, last: StampedVersion | None, before: int
) -> StampedVersion | None:
    """Return a version, None without stamps; `last` is the version before."""
    annotations = lease["metadata"].get("annotations") or {}
    writer, written, term = (
        annotations.get(f"lease-webhook/{name}-{suffix}") for name in ("writer", "written", "term")
    )
    if writer is None or written is None or term is None:
        return None
    spec = lease.get("spec", {})
    second = int((dt.datetime.fromisoformat(written) - _EPOCH).total_seconds()) if written else -1
    if second >= 0 and (last is None or second != last.written):
        at = second
    else:
        # A write that sets nothing is not dated; when it was made does not matter.
        at = last.at if last else 0
    return StampedVersion(
        at=at,
        before=before,
        holder=spec.get("holderIdentity") or "",
        duration=spec.get("leaseDurationSeconds") or 0,
        writer=writer,
        written=second,
        term=int(term) if term else 0,
        owner="m" if lease["metadata"].get("ownerReferences") else "",
    )


def corrupt_stamps(traces: Sequence[Tenures]) -> Iterator[Tenures]:
    """Yield traces that must not be allowed: a lower term, an older time, and a writer who did not wait."""
    for trace in traces:
        *before, last = trace.versions
        if not trace.allowed or len(before) < 3 or last.by or not last.holder or last.term < 2 or last.written < 0:
            continue
        older = max((one.written for one in before), default=0) - 3
        for what, other in (
            ("a lower term", replace(last, term=last.term - 1)),
            ("an older time", replace(last, written=older)),
        ):
            yield Tenures(f"{trace.name}, {what}", (*before, other), allowed=False)
        if before[-1].writer == last.writer and before[-1].holder and _is_guarded(before[-1], last.written):
            other = replace(last, writer="other", term=last.before)
            yield Tenures(f"{trace.name}, another writer", (*before, other), allowed=False)


def _is_guarded(version: StampedVersion, second: int) -> bool:
    """Return whether module Stamp refuses another writer at this second."""
    return version.written >= 0 and not is_expired(version.duration, version.written, second)


def format_stamped_constants(traces: Sequence[Tenures]) -> str:
    """Return a module that has the traces."""
    rows = ",\n".join(f"<<{', '.join(_format_row(trace, one) for one in trace.versions)}>>" for trace in traces)
    return f"---- MODULE Recorded ----\nEXTENDS Stamped\nRecordedTraces == <<\n{rows}>>\n====\n"


def _format_row(trace: Tenures, version: StampedVersion) -> str:
    begin = trace.versions[0].at - 60
    written = version.written - begin if version.written >= 0 else -1
    names = (
        (name, getattr(version, name)) for name in ("before", "holder", "duration", "writer", "term", "owner", "by")
    )
    fields = ", ".join(f"{name} |-> {json.dumps(value)}" for name, value in names)
    return f"[at |-> {version.at - begin}, written |-> {written}, {fields}]"
