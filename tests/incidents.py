"""The incidents that were recorded on a real API server (`tests/data/incidents`), and what `why` makes of them."""

import gzip
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tests.factories import Document
from tests.history.observing import observe_all
from tests.inputs.reading import read
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.inputs.items import Item, Observation
from webhook.cli.options import parse_moment
from webhook.kubernetes.times import SECOND

FOLDER: Final = Path(__file__).parent / "data" / "incidents"
WATCH, AUDIT_LOG = "leases.json.gz", "audit.log.gz"
SOURCES: Final = (WATCH, AUDIT_LOG)
THREE, BOTH, METADATA = "three", "both", "metadata"
"""The audit log as three API servers write it, watch and audit log together, the audit log at level Metadata."""


class Incident(Struct, frozen=True):
    """One incident; `truth` is what the test that played it did and what the electors reported."""

    name: str
    truth: Document

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name of the lease."""
        return self.truth["namespace"], self.truth["name"]

    def file(self, source: str) -> Path:
        """The watch or the audit log."""
        return FOLDER / self.name / source

    def account(self, source: str, until: int | None = None) -> Account:
        """Return what `why` knows from a watch or an audit log, up to an instant in microseconds since 1970."""
        return _make_account(self.name, source, until)

    def read_account(self, source: str, until: int | None) -> Account:
        """Read it, whether or not it was read before."""
        data = gzip.decompress(self.file(source if source in SOURCES else AUDIT_LOG).read_bytes())
        if until is not None:
            data = _watch_until(data, until) if source == WATCH else _log_until(data, until)
        histories = ClusterHistory()
        items = list(read(source, [at_metadata(data) if source == METADATA else data]))
        inputs = {BOTH: [items, self._watch()], THREE: in_three_files(items)}.get(source, [items])
        observe_all(histories, *inputs)
        assert histories.bounds.until is not None
        return make_account(histories, histories.leases[self.key], until or histories.bounds.until)

    def _watch(self) -> list[Item]:
        return list(read(WATCH, [gzip.decompress(self.file(WATCH).read_bytes())]))


@cache
def _make_account(name: str, source: str, until: int | None) -> Account:
    return incident(name).read_account(source, until)


def at_metadata(log: bytes) -> bytes:
    """An audit log without the objects of requests and responses."""
    events = [json.loads(line) for line in log.splitlines()]
    for event in events:
        event["level"] = "Metadata"
        event.pop("requestObject", None)
        event.pop("responseObject", None)
    return b"".join(json.dumps(event, separators=(",", ":")).encode() + b"\n" for event in events)


def in_three_files(log: Iterable[Item]) -> list[list[Item]]:
    """A client stays on its connection, so all of its requests are in the log of one API server."""
    files: list[list[Item]] = [[], [], []]
    for item in log:
        writer = item.writer if isinstance(item, Observation) else None
        files[len((writer.pod or writer.user) if writer else "") % 3].append(item)
    return files


@cache
def incidents() -> tuple[Incident, ...]:
    """All of them, by name."""
    names = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
    return tuple(Incident(name, json.loads((FOLDER / name / "truth.json").read_text())) for name in names)


def incident(name: str) -> Incident:
    """One of them."""
    return next(one for one in incidents() if one.name == name)


def instant(text: str) -> int:
    """A time of the truth in microseconds since 1970."""
    return parse_moment(text)


def _log_until(data: bytes, until: int) -> bytes:
    kept = (line for line in data.splitlines(keepends=True) if instant(json.loads(line)["stageTimestamp"]) <= until)
    return b"".join(kept)


def _watch_until(data: bytes, until: int) -> bytes:
    decoder, text, place, kept = json.JSONDecoder(), data.decode(), 0, ""
    while place < len(text):
        event, end = decoder.raw_decode(text, place)
        # A stamp has whole seconds: it may have been made within the second that it names.
        if max(_stamps(event["object"]), default=0) <= until - SECOND:
            kept += text[place : end + 1]
        place = end + 1
    return kept.encode()


def _stamps(lease: dict[str, Any]) -> list[int]:
    return [instant(entry["time"]) for entry in lease["metadata"]["managedFields"]]
