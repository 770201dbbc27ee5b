"""The laws of every history. Nothing here starts a process but Porcupine and TLC, which `check_history` runs."""

import itertools
import re
import subprocess
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from lab.spec import __main__ as spec
from lab.spec.stamped_traces import StampedVersion, Tenures, convert_to_stamped, corrupt_stamps
from lab.spec.traces import Trace, corrupt, split_into_traces
from lab.torture.electors import RETRY
from lab.torture.history import History, StoredVersion
from webhook.kubernetes.times import SECOND, parse, parse_seconds

REVIEWED, STAMPED = "reviewed/mixed", "stamped/operator"
ATTACKER: Final = "mallory"
STRANGER: Final = "stranger"
_SURE: Final = 3 * SECOND
_LONG: Final = 60 * SECOND
"""A run of so long has something of everything."""


class Verdict(Struct, frozen=True):
    """Violations, and figures by name."""

    problems: tuple[str, ...]
    figures: dict[str, float]


def check_history(history: History, porcupine: Path, packages: Path | None) -> Verdict:
    """Check a history; without `packages` TLC is left out."""
    reviewed, stamped = (
        list(list_reviewed_traces(history)),
        list(list_stamped_traces(history)) if history.protected else [],
    )
    problems: list[str] = [f"registers: {line}" for line in find_not_linearizable(history, porcupine)]
    steals = [trace.name for trace in reviewed if not trace.allowed]
    fallen, interleaved = list(find_falling_terms(history)), list(find_interleaved_writes(history))
    if history.protected:
        problems += [f"reviewed: stored, and the rules refuse it: {name}" for name in steals]
        problems += [f"stamped: {one}" for one in (*fallen, *find_unstamped_writes(history))] + [
            f"fence: {one}" for one in interleaved
        ]
        problems += [*find_denied_renewals(history), *find_losses(history)]
    problems += find_idle(history)
    copies = (list(corrupt(reviewed)), list(corrupt_stamps(stamped)))
    if packages:
        problems += [f"module Takeover: {name}" for name in spec.find_mismatches(packages, [*reviewed, *copies[0]])]
        if history.protected:
            problems += [
                f"module Stamp: {name}" for name in spec.find_stamped_mismatches(packages, [*stamped, *copies[1]])
            ]
    figures: dict[str, float] = {
        "seconds": (history.end - history.begin) / SECOND,
        "faults": len(history.faults),
        "attacks": len(history.attacks),
        "attacks answered 200": sum(1 for one in history.attacks if one.status == 200),
        "versions of leases": sum(len(one) for one in history.leases.values()),
        "traces": len(reviewed) + len(stamped),
        "corrupted traces": len(copies[0]) + len(copies[1]),
        "stolen": len(steals) + (0 if history.protected else sum(classify_steals(history.leases[STAMPED]))),
        "register operations": len(history.operations),
        "writes of leaders": sum(1 for one in history.logs if one.object is not None),
        "interleaved writes": sum(1 for one in interleaved if not one.startswith(STRANGER)),
        "writes of a stranger": sum(one.startswith(STRANGER) for one in interleaved),
        "leaderless reviewed": measure_leaderless(history, REVIEWED),
        "leaderless stamped": measure_leaderless(history, STAMPED),
    }
    return Verdict(tuple(problems), figures)


def find_idle(history: History) -> Iterator[str]:
    """Yield what a run did not do at all: nothing can be broken where nothing happens."""
    if history.end - history.begin < _LONG:
        return
    done: dict[str, Collection[object]] = {
        "faults": history.faults,
        "register operations that were answered": [one for one in history.operations if one.result != "unknown"],
        "writes of leaders": [one for one in history.logs if one.object is not None],
    }
    for lease in (REVIEWED, STAMPED):
        namespace = lease.partition("/")[0]
        attacks = [one for one in history.attacks if one.namespace == namespace and one.status < 500]
        done[f"attacks in {namespace} that were answered"] = attacks
        # The first version shows only that there is a lease.
        done[f"renewals of {lease}"] = list(_list_renewals(history, lease))[1:]
    yield from (f"the run has no {what}" for what, those in done.items() if not those)


def list_reviewed_traces(history: History) -> Iterator[Trace]:
    """Yield the lives of the lease that the webhook guards."""
    for life in _split_into_lives(history.leases[REVIEWED]):
        yield from split_into_traces(
            f"seed {history.seed} {REVIEWED} from {life[0].revision}", [one.object for one in life if one.object]
        )


def list_stamped_traces(history: History) -> Iterator[Tenures]:
    """Yield the pieces of the stamped lease for which the policies were in force all the time."""
    piece: list[StampedVersion] = []
    last_revision, suffix = 0, ""
    for stored in history.leases[STAMPED]:
        now = history.find_suffix(stored.revision)
        if now != suffix or not now:
            yield from _filter_long(history, piece)
            piece, suffix = [], now
        if stored.object is None:
            if piece:
                piece.append(
                    msgspec.structs.replace(piece[-1], by=_find_deleter(history, piece[-1]), before=last_revision)
                )
            yield from _filter_long(history, piece)
            piece = []
        elif now:
            version = convert_to_stamped(
                stored.object, now, piece[-1] if piece else None, last_revision or stored.revision - 1
            )
            if version:
                piece.append(version)
        last_revision = stored.revision
    yield from _filter_long(history, piece)


def find_unstamped_writes(history: History) -> Iterator[str]:
    """Yield versions that were stored without stamps while the policies were in force, once there were stamps."""
    last_suffix = ""
    for version in history.leases[STAMPED]:
        suffix = history.find_suffix(version.revision)
        if not suffix or version.object is None:
            continue
        is_stamped = convert_to_stamped(version.object, suffix, None, 0) is not None
        if is_stamped:
            last_suffix = suffix
        elif last_suffix == suffix:
            yield f"revision {version.revision} has no stamps"


def find_falling_terms(history: History) -> Iterator[str]:
    """Yield terms of the lease, and tokens of the shared object, that fell while the suffix stayed the same."""
    for versions, pattern in (
        (history.leases[STAMPED], r"lease-webhook/term-(\w+)"),
        (history.logs, r"[\w.-]*lease-webhook/token-(\w+)"),
    ):
        highest: dict[str, int] = {}
        for version in versions:
            now = history.find_suffix(version.revision)
            for key, value in ((version.object or {}).get("metadata", {}).get("annotations") or {}).items():
                match = re.fullmatch(pattern, key)
                if not match or match[1] != now or not value.isdigit():
                    continue
                if int(value) < highest.get(key, 0):
                    yield f"{key} fell from {highest[key]} to {value} at revision {version.revision}"
                highest[key] = int(value)


def find_interleaved_writes(history: History) -> Iterator[str]:
    """Yield writes to the shared object that were stored after one of a later tenure."""
    changes = list(_list_tenures(history))
    latest: dict[str, int] = {}
    top, segment, place = 0, "", 0
    for version in history.logs:
        now = history.find_suffix(version.revision) if history.protected else "none"
        entry = str(((version.object or {}).get("data") or {}).get("entry", ""))
        while place < len(changes) and changes[place][0] < version.revision:
            latest[changes[place][1]] = place + 1
            place += 1
        if now != segment:
            top, segment = 0, now
        pod = entry.partition("/")[0]
        if not now or not pod:
            continue
        if latest.get(pod, 0) < top:
            yield f"{entry} at revision {version.revision} is of tenure {latest.get(pod, 0)}, after one of {top}"
        top = max(top, latest.get(pod, 0))


def find_denied_renewals(history: History) -> Iterator[str]:
    """Yield denied writes of an elector that held the lease for seconds before and afterwards."""
    for name in history.leases:
        namespace = name.partition("/")[0]
        for holder, begin, end in _list_held(history, name):
            for denial in history.denials:
                own = denial.namespace == namespace and holder.partition("_")[0] == denial.pod
                if own and denial.verb != "create" and begin + _SURE < denial.at < end - _SURE:
                    yield f"{name}: {denial.pod} held it and was denied: {denial.message}"


def find_losses(history: History) -> Iterator[str]:
    """Yield deletions of the reviewed lease while it was live, and owners that it got while it was held."""
    namespace = REVIEWED.partition("/")[0]
    deletions = [
        one.at for one in history.attacks if (one.namespace, one.what, one.status) == (namespace, "delete", 200)
    ]
    for before, after in itertools.pairwise(history.leases[REVIEWED]):
        if before.object is None or not _read_spec(before).get("holderIdentity"):
            continue
        if after.object is None:
            entries = before.object["metadata"]["managedFields"]
            # A change of metadata dates everything that its manager owns, but does not renew.
            owners = [one for one in entries if "f:renewTime" in one.get("fieldsV1", {}).get("f:spec", {})]
            last = max(parse_seconds(one["time"]) for one in owners or entries)
            at = next((at for at in deletions if at >= last), history.end)
            if at - last < (_read_spec(before).get("leaseDurationSeconds", 0) - 4) * SECOND:
                yield f"reviewed: deleted at revision {after.revision}, {(at - last) / SECOND:.1f} s after its renewal"
        elif not before.object["metadata"].get("ownerReferences") and after.object["metadata"].get("ownerReferences"):
            yield f"reviewed: an owner was added at revision {after.revision}"


def classify_steals(versions: Sequence[StoredVersion]) -> Iterator[bool]:
    """Yield for each change of the holder to the attacker whether someone else held the lease then."""
    for before, after in itertools.pairwise(versions):
        old, new = (_read_spec(one).get("holderIdentity") or "" for one in (before, after))
        yield new == ATTACKER and old not in ("", ATTACKER)


def measure_leaderless(history: History, name: str) -> float:
    """Return for how many seconds no honest elector had renewed the lease within two retry periods."""
    covered, end = 0, history.begin
    for _, at in _list_renewals(history, name):
        until = min(at + 2 * RETRY * SECOND, history.end)
        begin = max(at, end)
        if until > begin:
            covered += until - begin
            end = until
    return max(0.0, (history.end - history.begin - covered) / SECOND)


def find_not_linearizable(history: History, porcupine: Path) -> list[str]:
    """Return the findings of Porcupine about registers that are not linearizable."""
    lines = b"".join(msgspec.json.encode(one) + b"\n" for one in history.operations)
    result = subprocess.run([str(porcupine)], input=lines, capture_output=True, check=False, timeout=600)
    if result.returncode not in (0, 1):
        return [result.stderr.decode()]
    return [line for line in result.stdout.decode().splitlines() if not line.endswith(" ok")]


def _list_renewals(history: History, name: str) -> Iterator[tuple[str, int]]:
    """Yield each holder that is honest with the time of its renewal, as far as the run knows its clock."""
    for version in history.leases[name]:
        holder, renew_time = _read_spec(version).get("holderIdentity") or "", _read_spec(version).get("renewTime")
        if holder in history.offsets and renew_time and not _is_by_attacker(history, version):
            yield holder, parse(renew_time) - history.offsets[holder] * SECOND


def _list_held(history: History, name: str) -> Iterator[tuple[str, int, int]]:
    """Yield who held the lease without interruption, from its first to its last renewal."""

    def find_tenure(version: StoredVersion) -> tuple[Any, bool]:
        return _read_spec(version).get("holderIdentity"), _is_by_attacker(history, version)

    for _, tenure in itertools.groupby(history.leases[name], key=find_tenure):
        part = list(_list_renewals(msgspec.structs.replace(history, leases={name: list(tenure)}), name))
        if part:
            yield part[0][0], part[0][1], part[-1][1]


def _is_by_attacker(history: History, version: StoredVersion) -> bool:
    """Return whether the attacker is stamped, who may renew an expired lease in the name of its holder."""
    annotations = (version.object or {}).get("metadata", {}).get("annotations") or {}
    # While the policies are removed, one API server may still stamp, and guard, a lease that another lets her write.
    writer = annotations.get(f"lease-webhook/writer-{history.find_latest_suffix(version.revision)}", "")
    return bool(writer.endswith(f":{ATTACKER}"))


def _list_tenures(history: History) -> Iterator[tuple[int, str]]:
    """Yield since which revision which pod held the lease."""
    holder = ""
    for version in history.leases[STAMPED]:
        now = _read_spec(version).get("holderIdentity") or ""
        if now and now != holder:
            yield version.revision, now.partition("_")[0]
        holder = now


def _split_into_lives(versions: Sequence[StoredVersion]) -> Iterator[list[StoredVersion]]:
    for exists, life in itertools.groupby(versions, key=lambda one: one.object is not None):
        if exists:
            yield list(life)


def _filter_long(history: History, piece: Sequence[StampedVersion]) -> Iterator[Tenures]:
    if len(piece) > 1:
        yield Tenures(f"seed {history.seed} {STAMPED} after {piece[0].before}", tuple(piece))


def _find_deleter(history: History, last: StampedVersion) -> str:
    """Return who can have deleted a lease, which is the attacker alone: as its writer, if she wrote it last."""
    return last.writer if last.writer.endswith(f":{ATTACKER}") else "m"


def _read_spec(version: StoredVersion) -> dict[str, Any]:
    fields: dict[str, Any] = (version.object or {}).get("spec") or {}
    return fields
