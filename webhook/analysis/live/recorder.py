"""Records what happens to leases in a directory: all changes but ordinary renewals, which are counted.

A record is an event of a watch, so anything that reads a watch can read it. The last state before anything else than an
ordinary renewal, and before a silence, has the key `renewals`: see `webhook.analysis.inputs.items.CountedRenewals`.

`latest.jsonl` has the state of every object, written again each minute; the other files only grow, each up to a size,
and the oldest is removed. A process that is killed leaves at most half a line, which the next one removes. What was not
seen is recorded as a gap.
"""

import errno
import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from webhook.analysis.claims.words import format_count
from webhook.analysis.history.status import date_state
from webhook.analysis.history.stored_leases import Key
from webhook.analysis.history.visibility.forged_stamps import is_renewal_dated_again
from webhook.analysis.inputs.cluster import CANDIDATES, LEASES
from webhook.analysis.inputs.files import read_path
from webhook.analysis.inputs.items import (
    MAX_BINS,
    MAX_LATEST,
    MILLISECOND,
    Act,
    CountedRenewals,
    ElectionEvent,
    InputKind,
    Item,
    Observation,
    Unreadable,
)
from webhook.analysis.inputs.kinds import GAP, interpret_all
from webhook.analysis.live.watch import Listing
from webhook.errors import InputError
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import SECOND, format_time

FILES: Final = 16
"""Files that the limit of the history is divided into."""
MAX_WAITING: Final = 16 * 1024 * 1024
"""Bytes of records that wait while the disk is full."""
_MAX_LINE: Final = 4 * 1024 * 1024
"""More than a record can have: etcd stores no object of more than 1.5 MiB."""
PATIENCE: Final = 120.0
"""Longer than an API server may take for a page of a list: what is not listed yet was not deleted."""
_KINDS: Final = {LEASES: "Lease", CANDIDATES: "LeaseCandidate"}

_FINE: Final = 200
"""Intervals that differ by a smaller part of their length are one in a histogram."""
_MIN_INTERVALS: Final = 3
_EVERY: Final = 16
"""Renewals after which the usual interval is computed again."""
_CHANGES: Final = {Act.STORED: "ADDED", Act.UPDATED: "MODIFIED", Act.DELETED: "DELETED"}

_Key = tuple[str, str, str]


class _State(Struct, gc=False):
    """The latest state of an object, and the renewals since the one that was recorded."""

    seen: Observation
    at: int | None = None
    is_new_holder: bool = False
    usual: int | None = None
    count: int = 0
    latest: list[int] = field(default_factory=list)
    histogram: dict[int, int] = field(default_factory=dict)

    @property
    def record(self) -> bytes:
        """The state, with the renewals that led to it."""
        if not self.latest:
            return _record("ADDED", self.seen)
        return _record("MODIFIED", self.seen, CountedRenewals(self.latest, self.histogram))

    def is_silence(self, gap: int) -> bool:
        """True if a reader may call a time without a renewal a silence, so that it must see both ends of it.

        So it must if the lease expired in that time, however often it is renewed. Stamps have whole seconds.
        """
        duration = self.seen.object.spec.lease_duration_seconds if isinstance(self.seen.object, Lease) else None
        if duration and gap > (duration - 1) * SECOND:
            return True
        return self.usual is not None and gap > self.usual * 7 // 5 + SECOND * 4 // 5

    def renew(self, gap: int) -> None:
        """Count one renewal."""
        self.count += 1
        self.latest.append(gap)
        if len(self.latest) > MAX_LATEST:
            length = round(self.latest.pop(0) / MILLISECOND)
            fine = max(1, length // _FINE)
            length = round(length / fine) * fine
            self.histogram[length] = self.histogram.get(length, 0) + 1
        if self.usual is None or self.count % _EVERY == 0:
            self.usual = _find_usual(self.latest) or self.usual


def _find_usual(intervals: Sequence[int]) -> int | None:
    """Return the median of the latest intervals, None as long as there are few."""
    return sorted(intervals)[len(intervals) // 2] if len(intervals) >= _MIN_INTERVALS else None


class Condenser:
    """The leases and candidates of a cluster: the latest state of each, and what is not recorded yet."""

    def __init__(self) -> None:
        self._states: dict[_Key, _State] = {}
        self._latest = 0
        self._renewed_last: _Key = ("", "", "")
        self.renewals = 0
        """Ordinary renewals that a watch showed."""
        self.changes = 0
        """Changes of a holder that a watch showed."""

    def get_names(self, kind: str) -> set[Key]:
        """Return the namespace and name of every object of a kind."""
        return {key[1:] for key in self._states if key[0] == kind}

    def observe(self, seen: Observation) -> Iterator[bytes]:
        """Yield what is to be recorded of one event of a watch."""
        key = (seen.kind, seen.namespace, seen.name)
        before, lease = self._states.get(key), seen.object
        if seen.act is Act.DELETED:
            # A watch does not date a deletion: it counts as made after whatever was renewed last.
            yield from _flush_renewals(self._states.get(self._renewed_last))
            yield from _flush_renewals(self._states.pop(key, None))
            # An object that is missing from a list is recorded with its last known state.
            seen = seen if seen.text or before is None else replace(before.seen, act=Act.DELETED)
        elif before is not None and before.seen.resource_version == seen.resource_version:
            return
        else:
            state = _State(seen)
            self._states[key] = state
            if isinstance(lease, Lease):
                state.at = date_state(lease.spec, seen.entries)
            if before is not None and isinstance(before.seen.object, Lease) and isinstance(lease, Lease):
                state.usual = (
                    before.usual if seen.counted_renewals is None else _find_usual(seen.counted_renewals.latest)
                )
                state.is_new_holder = before.seen.object.spec.holder_identity != lease.spec.holder_identity
                if state.is_new_holder and seen.act is Act.UPDATED:
                    self.changes += 1
                # What a record has counted before stays as it is.
                if seen.act is Act.UPDATED and seen.counted_renewals is None and _is_renewal(before.seen, seen):
                    self.renewals += 1
                    if self._try_to_count(key, before, state):
                        return
            yield from _flush_renewals(before)
        yield _record(_CHANGES[seen.act], seen, seen.counted_renewals)

    def make_snapshot(self) -> Iterator[bytes]:
        """Return the state of every object, with what was counted."""
        return (state.record for state in self._states.values())

    def _try_to_count(self, key: _Key, before: _State, state: _State) -> bool:
        """Count a renewal; return False if it has to be recorded, together with the state before it."""
        if before.at is None or state.at is None:
            return False
        state.at = max(state.at, before.at)
        if state.at >= self._latest:
            self._latest, self._renewed_last = state.at, key
        gap = state.at - before.at
        if before.is_new_holder or before.is_silence(gap) or len(before.histogram) >= MAX_BINS:
            return False
        state.count, state.latest, state.histogram = before.count, before.latest, before.histogram
        state.renew(gap)
        return True


def _flush_renewals(state: _State | None) -> Iterator[bytes]:
    """Yield a state with the renewals that were counted, if there were some, and begin to count again."""
    if state is not None and state.latest:
        yield state.record
        state.latest, state.histogram = [], {}


def _record(change: str, seen: Observation, counted: CountedRenewals | None = None) -> bytes:
    renewals = b"" if counted is None else b'"renewals":' + msgspec.json.encode(counted) + b","
    text = msgspec.json.format(seen.text, indent=-1) if b"\n" in seen.text else seen.text
    return b'{"type":"%s",%s"object":%s}\n' % (change.encode(), renewals, text)


def _is_renewal(old: Observation, new: Observation) -> bool:
    """True if a state is the one before, renewed in the ordinary way and nothing else."""
    assert isinstance(old.object, Lease)
    assert isinstance(new.object, Lease)
    before, after = old.object.spec, new.object.spec
    fixed, now = old.object.metadata, new.object.metadata
    return (
        bool(before.holder_identity)
        and after.renew_time not in {None, before.renew_time}
        and after == replace(before, renew_time=after.renew_time)
        and fixed == replace(now, resource_version=fixed.resource_version, managed_fields=fixed.managed_fields)
        and (new.entries == old.entries or is_renewal_dated_again(new.entries, old.entries))
    )


class Records:
    """The files; `is_lost` is true once records were dropped because too many had to wait."""

    def __init__(self, directory: Path, limit: int) -> None:
        """Raise InputError if another recorder writes there; `limit` is of the history, in bytes."""
        self.problem = ""
        self.is_lost = False
        self.latest = directory / "latest.jsonl"
        self._directory = directory
        self._limit = limit
        self._waiting = bytearray()
        self._file: BinaryIO | None = None
        self._is_of_before = True
        """Whether `latest` was written by the process before, so that it has what the history still lacks."""
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(directory / ".lock", os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            written = [path.stat().st_mtime for path in [self.latest, *self.list_files()] if _is_file(path)]
            # `latest` may have become one after the file that was written to.
            for path in self.list_files()[-2:]:
                _remove_half_line(path)
        except OSError as error:
            is_file = isinstance(error, FileExistsError | NotADirectoryError)
            why = (
                "is a file, not a directory"
                if is_file
                else f"is not writable, or another recorder writes there: {error}"
            )
            raise InputError(f"{directory} {why}") from error
        self.seen_until = max(written, default=None)
        """The time at which the process before saw something last, in seconds since 1970."""

    def list_files(self) -> list[Path]:
        """Return the files of the history, oldest first."""
        found = (path for path in self._directory.glob("leases-*.jsonl") if _parse_number(path).isdecimal())
        return sorted(filter(_is_file, found), key=lambda path: int(_parse_number(path)))

    def append(self, lines: Iterable[bytes]) -> None:
        """Add to the history; what cannot be written waits for `write`, and is lost if that is too much."""
        self._waiting += b"".join(lines)
        if self._waiting and not self.problem:
            self.write()
        elif len(self._waiting) > MAX_WAITING:
            self.is_lost = True
            self._waiting.clear()

    def write(self) -> None:
        """Write the records that wait."""
        try:
            if self._waiting:
                if self._file is None:
                    self._file = self._rotate_files().open("xb", buffering=0)
                _write(self._file, self._waiting)
                self._waiting.clear()
                if self._file.tell() * FILES > self._limit:
                    self._file.close()
                    self._file = None
            self.problem = ""
        except OSError as error:
            self.problem = str(error)

    def replace_latest(self, lines: Iterable[bytes], seen_until: float | None) -> None:
        """Write the present state; if that fails, the one written before stays."""
        new = self.latest.with_suffix(".tmp")
        try:
            # A link that someone has put there is not followed.
            new.unlink(missing_ok=True)
            with new.open("xb") as file:
                file.writelines(lines)
            if seen_until is not None:
                os.utime(new, (seen_until, seen_until))
            if self._is_of_before and _is_file(self.latest):
                self.latest.rename(self._rotate_files())
            new.rename(self.latest)
            self._is_of_before = False
        except OSError as error:
            self.problem = str(error)

    def _rotate_files(self) -> Path:
        """Remove what is too much, and return a name that is after all others, also if the clock was set back."""
        files = self.list_files()
        size = sum(path.stat().st_size for path in files)
        number = int(_parse_number(files[-1])) if files else 0
        while files and size > self._limit - self._limit // FILES:
            oldest = files.pop(0)
            size -= oldest.stat().st_size
            oldest.unlink()
        return self._directory / f"leases-{max(number + 1, time.time_ns() // 1_000_000):015d}.jsonl"


class Recorder:
    """Records what the watches show; `say` is called with what is wrong."""

    def __init__(self, records: Records, say: Callable[[str], None]) -> None:
        self._records = records
        self._say = say
        self._said = ""
        self._problem = ""
        """Why the history could not be written when it was saved last; "" if it could."""
        self._lock = threading.Lock()
        self._condenser = Condenser()
        self._seen_until = records.seen_until
        for item in interpret_all(read_path(str(records.latest))) if _is_file(records.latest) else ():
            # Others may put an audit log or a review into the file.
            if isinstance(item, Observation) and item.input_kind is InputKind.WATCH:
                # It is recorded already.
                list(self._condenser.observe(item))
        self._condenser.renewals = self._condenser.changes = 0
        self._listings = {one: Listing(one, PATIENCE) for one in _KINDS.values()}
        self._reason = "the recorder did not run, or could not write"
        self._is_gap = True
        """Whether it is not known what happened since something was seen last."""

    @property
    def summary(self) -> str:
        """`26 renewals of 3 leases, 1 change of holder`, since it began."""
        with self._lock:
            kept, leases = self._condenser, len(self._condenser.get_names("Lease"))
            renewals = f"{format_count(kept.renewals, 'renewal')} of {format_count(leases, 'lease')}"
            return f"{renewals}, {format_count(kept.changes, 'change')} of holder"

    def begin(self, resource: str) -> None:
        """Note that a watch begins, perhaps again."""
        with self._lock:
            if kind := _KINDS.get(resource):
                self._listings[kind].begin(self._condenser.get_names(kind))
            self._is_gap = self._is_gap or resource == LEASES

    def observe(self, item: Item) -> None:
        """Take in one item of any watch."""
        with self._lock:
            if isinstance(item, Unreadable) and (kind := _KINDS.get(item.place.path)):
                self._listings[kind].note_unreadable()
            elif isinstance(item, ElectionEvent):
                self._records.append([_encode_event(item)])
            elif isinstance(item, Observation):
                if item.kind == "Lease":
                    self._note_gap()
                self._listings[item.kind].note(item, time.monotonic())
                self._records.append(self._condenser.observe(item))

    def show_status(self, status: str) -> None:
        """Say why a watch ended, and remember it of that of leases."""
        self._reason = status if LEASES in status else self._reason
        if status and status != self._said:
            self._said = status
            self._say(status)

    def save(self) -> None:
        """Write the present state and the records that wait; raises InputError if any were lost."""
        with self._lock:
            for gone in (one for listing in self._listings.values() for one in listing.find_deleted(time.monotonic())):
                self._records.append(self._condenser.observe(gone))
            if self._records.is_lost:
                raise InputError(f"the history cannot be written: {self._records.problem}")
            self._records.write()
            self._records.replace_latest(self._condenser.make_snapshot(), self._seen_until)
            problem = self._records.problem
        # What is over, and comes again, is said again.
        if problem and problem != self._problem:
            self._say(f"the history cannot be written: {problem}")
        self._problem = problem

    def _note_gap(self) -> None:
        """Record a gap before the first lease that a watch shows."""
        now = time.time()
        if self._is_gap and self._seen_until is not None:
            start, end = (format_time(int(at * SECOND)) for at in (min(self._seen_until, now), now))
            self._records.append([_encode_line(GAP, {"from": start, "to": end, "reason": self._reason})])
        self._is_gap, self._seen_until = False, now


def _parse_number(path: Path) -> str:
    return path.stem.removeprefix("leases-")


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _remove_half_line(path: Path) -> None:
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _MAX_LINE))
        text = file.read()
        file.truncate(size - len(text) + text.rfind(b"\n") + 1)


def _write(file: BinaryIO, text: bytearray) -> None:
    """Write all of it or nothing."""
    size = file.tell()
    if file.write(text) != len(text):
        file.seek(size)
        file.truncate()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _encode_event(item: ElectionEvent) -> bytes:
    about = {"kind": "Lease", "namespace": item.namespace, "name": item.lease}
    head = {"kind": "Event", "apiVersion": "v1", "lastTimestamp": format_time(item.at)}
    return _encode_line("ADDED", {**head, "message": item.text, "involvedObject": about})


def _encode_line(change: str, shown: dict[str, object]) -> bytes:
    return msgspec.json.encode({"type": change, "object": shown}) + b"\n"
