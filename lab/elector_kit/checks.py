"""The faults, one after the other, and the violations of an elector in each."""

import itertools
import signal
import time
from collections.abc import Callable, Iterator
from typing import Final

from lab.e2e.manifests import format_micro_time
from lab.elector_kit.stage import DEADLINE, DURATION, RETRY, Replica, Stage, Version

CHECKS: Final = (
    "two leaders",
    "no leader",
    "writes after it lost",
    "ignores a conflict",
    "trusts the holder's clock",
    "trusts its own duration",
    "goes on leading",
    "no release",
    "transitions",
    "acquireTime",
)
"""What can be wrong."""
_SOON: Final = 3 * DURATION
_TRIES: Final = 4
_DELAY: Final = 0.4
_NOISE: Final = 0.3

Violations = Iterator[tuple[str, str]]
"""What can be wrong, and what was."""


def run(stage: Stage) -> dict[str, str]:
    """Play all faults; return the violations by check, "" for none."""
    findings: dict[str, list[str]] = {name: [] for name in CHECKS}
    for play, when in _PLAYS.items():
        before = stage.both
        for name, words in play(stage):
            findings[name].append(words)
        if stage.both - before > _NOISE:
            findings["two leaders"].append(f"for {stage.both - before:.1f} s {when}")
        _clear(stage)
    for name, words in _check_counts(stage):
        findings[name].append(words)
    return {name: "; ".join(dict.fromkeys(words)) for name, words in findings.items()}


def _clear(stage: Stage) -> None:
    for replica in stage.replicas:
        replica.kill()
        replica.way.heal()
        replica.way.delay = 0.0
    stage.replicas.clear()
    stage.excused.clear()
    # What was on its way has arrived then.
    time.sleep(1)
    stage.delete()


def _make_boss(stage: Stage, ahead: float = 0.0, duration: int = DURATION) -> Version:
    now = format_micro_time(ahead)
    return stage.write(
        holderIdentity="boss", leaseDurationSeconds=duration, renewTime=now, acquireTime=now, leaseTransitions=7
    )


def _check_behind_holder(stage: Stage) -> Violations:
    """Renew every second by a holder whose clock is a minute behind."""
    _make_boss(stage, -60)
    replica = stage.start_replica("a")
    seconds = stage.keep_alive(_SOON, -60, lambda: stage.holder == replica.identity)
    if seconds is not None:
        yield "trusts the holder's clock", "took a lease that a holder renewed whose clock was a minute behind"


def _check_holder_ahead(stage: Stage) -> Violations:
    """Let a holder disappear whose clock is a minute ahead."""
    _make_boss(stage, 60)
    replica = stage.start_replica("a")
    stage.keep_alive(DURATION, 60, lambda: False)
    delay = stage.wait_until(3 * _SOON, lambda: stage.holder == replica.identity)
    if delay is None or delay > DURATION + 4 * RETRY + 3:
        seconds = f"{delay:.0f} s" if delay else f"more than {3 * _SOON} s"
        yield "trusts the holder's clock", f"waited {seconds} for a holder who was gone, whose clock was a minute ahead"


def _check_longer_lease(stage: Stage) -> Violations:
    """Let a holder not renew for three durations of the elector, while the lease's duration is four."""
    _make_boss(stage, duration=4 * DURATION)
    replica = stage.start_replica("a")
    seconds = stage.wait_until(_SOON, lambda: stage.holder == replica.identity)
    if seconds is not None:
        yield "trusts its own duration", f"took a lease of {4 * DURATION} s after {seconds:.0f} s"


def _start_leader(stage: Stage, identity: str = "a") -> Replica:
    replica = stage.start_replica(identity)
    if stage.wait_until(60, lambda: stage.holder == identity and replica.leads) is None:
        raise RuntimeError(f"{stage.elector.name} does not lead")
    return replica


def _check_steal(stage: Stage) -> Violations:
    """Write someone else into the lease."""
    leader = _start_leader(stage)
    time.sleep(2 * RETRY)
    steal = _make_boss(stage, duration=4 * DURATION)
    delay = _stop(stage, leader)
    early = (version for version in stage.list_written(steal.revision) if version.at < steal.at + DURATION - RETRY)
    yield from _find_written(leader, early, "after another took the lease")
    yield from _check_lateness(delay, DEADLINE + 2 * RETRY, "after another took the lease")


def _check_steal_in_flight(stage: Stage) -> Violations:
    """Write someone else while the elector's requests take their time, so that it has read the lease before."""
    leader = _start_leader(stage)
    leader.way.delay = _DELAY
    overwritten = renewals = 0
    for number in range(_TRIES):
        leader.revive()
        stage.wait_until(2 * DURATION, lambda: stage.holder == leader.identity and leader.leads)
        time.sleep(RETRY + 0.23 * number)
        steal = _make_boss(stage, duration=4 * DURATION)
        time.sleep(4 * _DELAY)
        holders = {version.holder for version in stage.list_written(steal.revision)}
        if leader.identity in holders:
            overwritten += 1
        if "boss" in holders:
            renewals += 1
        stage.delete()
    if overwritten:
        yield "ignores a conflict", f"overwrote a new holder in {overwritten} of {_TRIES} tries"
    if renewals:
        yield "ignores a conflict", f"renewed the lease of a new holder in {renewals} of {_TRIES} tries"


def _check_race(stage: Stage) -> Violations:
    """Let two replicas with slow requests want a lease that is released."""
    _make_boss(stage)
    first, other = stage.start_replica("a"), stage.start_replica("b")
    both = (first, other)
    for each in both:
        each.way.delay = _DELAY
    stage.keep_alive(DURATION, 0, lambda: False)
    for _ in range(_TRIES):
        for each in both:
            each.revive()
        stage.write(holderIdentity="", leaseDurationSeconds=1, renewTime=format_micro_time())
        if stage.wait_until(_SOON, lambda: stage.holder in ("a", "b")) is None:
            yield "no leader", "no one led after a release"
        time.sleep(3)
        _make_boss(stage)
        stage.wait_until(DEADLINE + 2 * RETRY, lambda: not any(each.leads for each in both))


def _check_partition(stage: Stage) -> Violations:
    """Cut its network; a second replica takes the lease."""
    leader, other = _start_leader(stage), stage.start_replica("b")
    time.sleep(2 * RETRY)
    leader.way.cut()
    delay = _stop(stage, leader)
    succession = stage.wait_until(_SOON, lambda: stage.holder == other.identity)
    yield from _check_lateness(delay, DURATION + RETRY, "while its network was cut")
    if succession is None:
        yield "no leader", "no one led after the leader was cut off"
    revision = stage.revision
    leader.way.heal()
    time.sleep(DURATION)
    yield from _find_written(leader, stage.list_written(revision), "when its network was back")


def _check_pause(stage: Stage) -> Violations:
    """Stop it until its successor leads, and then let it go on."""
    leader, other = _start_leader(stage), stage.start_replica("b")
    time.sleep(2 * RETRY)
    leader.send(signal.SIGSTOP)
    stage.excused.add(leader.identity)
    if stage.wait_until(_SOON, lambda: stage.holder == other.identity) is None:
        yield "no leader", "no one led after the leader was paused"
    revision = stage.revision
    leader.send(signal.SIGCONT)
    delay = _stop(stage, leader)
    yield from _find_written(leader, stage.list_written(revision), "after a pause")
    yield from _check_lateness(delay, DEADLINE + 2 * RETRY, "after a pause")


def _check_termination(stage: Stage) -> Violations:
    """Send SIGTERM, as a kubelet does."""
    leader = _start_leader(stage)
    time.sleep(2 * RETRY)
    leader.end()
    if stage.wait_until(1.5, lambda: stage.holder != leader.identity) is None:
        yield "no release", "keeps the lease when it is ended by SIGTERM"


_PLAYS: Final[dict[Callable[[Stage], Violations], str]] = {
    _check_behind_holder: "",
    _check_holder_ahead: "",
    _check_longer_lease: "",
    _check_steal: "",
    _check_steal_in_flight: "",
    _check_race: "after a release",
    _check_partition: "while the network of one was cut",
    _check_pause: "after a pause of another",
    _check_termination: "",
}
"""The faults, and when two replicas led in them."""


def _find_written(replica: Replica, versions: Iterator[Version], when: str) -> Violations:
    """Yield its own writes; a renewal in the name of another replica cannot be seen."""
    words = {replica.identity: "wrote itself into the lease", "": "released the lease", "boss": "renewed the lease"}
    first = next((version for version in versions if version.holder in words), None)
    if first:
        yield "writes after it lost", f"{words[first.holder]} of its new holder {when}"


def _stop(stage: Stage, replica: Replica) -> float | None:
    return stage.wait_until(_SOON, lambda: not replica.leads)


def _check_lateness(delay: float | None, limit: float, when: str) -> Violations:
    if delay is None or delay > limit:
        yield "goes on leading", f"for {f'more than {_SOON}' if delay is None else f'{delay:.0f}'} s {when}"


def _check_counts(stage: Stage) -> Violations:
    """Compare each version with the next: what became of leaseTransitions and acquireTime."""
    for before, after in itertools.pairwise(list(stage.versions)):
        if before.lease is None or after.lease is None or after.holder not in ("a", "b"):
            continue
        old, new = (one.spec.get("leaseTransitions") for one in (before, after))
        is_new = after.holder != before.holder
        if is_new and (new or 0) != (old or 0) + 1:
            yield "transitions", "never written" if new is None else "not raised by one with a new holder"
        if not is_new and (new or 0) != (old or 0):
            yield "transitions", "changed without a new holder"
        former, current = (one.spec.get("acquireTime") for one in (before, after))
        if former is not None and (former != current) != is_new:
            yield "acquireTime", "not changed with a new holder" if is_new else "changed without a new holder"
