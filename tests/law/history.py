"""Histories of one Lease, played with us and without, and the laws that no mode may break.

A history is a list of steps that say who does something, never what comes of it: electors read and decide in each world
by themselves, and a stranger's changes are made to whatever is stored there. So the worlds may part, because a write
that we refuse is stored without us, and the same steps still mean the same in both. docs/proof.md has the laws.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from tests.factories import Document
from tests.law import strangers
from tests.law.admission import Policy
from tests.law.api_server import (
    CONFLICT,
    CREATE,
    DELETE,
    EXISTS,
    INVALID,
    NOT_FOUND,
    OF_THE_API_SERVER,
    TOO_LARGE,
    ApiServer,
    Refused,
    Request,
)
from tests.law.modes import KEYS, NONE, Admission, Mode, annotations_of
from tests.law.strangers import COLLECTOR, StrangersWrite, some_write
from tests.law.writers import CLIENT_GO, HABITS, Habit, Writer, plainer, writer
from tests.model.api_server import User
from tests.model.managed_fields import APPLY, SECOND

START: Final = 1_800_000_000 * SECOND + 7 * SECOND // 10
FORGED: Final = 65
"""Seconds by which a forged list of managedFields may delay a takeover where nothing is stamped."""
STRANGER: Final = -1


# ---- steps ----------------------------------------------------------------------------------------------------------


class Waits(Struct, frozen=True, tag=True):
    """Time passes."""

    seconds: float


class Acts(Struct, frozen=True, tag=True):
    """An elector does what it does; a stranger's write may come between its read and its write."""

    number: int
    between: StrangersWrite | None = None


class Releases(Struct, frozen=True, tag=True):
    """An elector stops in order: it releases what it holds, and acts no more."""

    number: int


class Stops(Struct, frozen=True, tag=True):
    """An elector dies."""

    number: int


class Starts(Struct, frozen=True, tag=True):
    """An elector that stopped or died is there again, and knows nothing."""

    number: int


class Writes(Struct, frozen=True, tag=True):
    """A stranger writes."""

    write: StrangersWrite


class Collects(Struct, frozen=True, tag=True):
    """The garbage collector deletes the lease if one of its owners does not exist."""


class Installs(Struct, frozen=True, tag=True):
    """From now on we are there; stamps that were planted earlier are removed, as the installation asks for."""


Step = Waits | Acts | Releases | Stops | Starts | Writes | Collects | Installs


class History(Struct, frozen=True):
    """The habits of the electors, and what happens."""

    habits: tuple[Habit, ...]
    steps: tuple[Step, ...]


class Broken(Struct, frozen=True):
    """A law that a step broke in a mode."""

    mode: str
    law: str
    step: int
    text: str


HARMLESS: Final = "an honest write that the API server alone would store is stored"
ALIKE: Final = "an honest write that is stored without us is stored with us"
UNDISTURBED: Final = "while a lease is held by its stamped writer, nobody else changes it"
FREE: Final = "a lease that is free or expired can be taken, whatever was written since the installation"


# ---- playing --------------------------------------------------------------------------------------------------------


class Played(Struct, frozen=True):
    """What a world made of a history: the laws that it broke, and how often each thing happened."""

    broken: tuple[Broken, ...]
    counts: Counter[str]


def play(
    history: History, mode: Mode, *, alone: Sequence[str] | None = None, policies: Sequence[Policy] | None = None
) -> Played:
    """Play a history in a mode, with these admission policies instead of its own.

    `alone` is what each step came to without us; if it is not given, that is played first.
    """
    outcomes = outcomes_without_us(history) if alone is None else alone
    world = World(history, mode, outcomes, policies)
    for number, step in enumerate(history.steps):
        world.take(number, step)
    return Played(tuple(world.broken), world.counts)


def outcomes_without_us(history: History) -> list[str]:
    """Return what the elector of each step came to without us: "stored", a refusal, or "" if it wrote nothing."""
    world = World(history, NONE, ())
    return [world.take(number, step) for number, step in enumerate(history.steps)]


class World:
    """One world while a history is played in it.

    `spec_by` is whose write changed spec last (the number of an elector, STRANGER, None if nobody did), `spec_at` when;
    `touched_at` is when anything was stored last.
    """

    def __init__(
        self, history: History, mode: Mode, alone: Sequence[str], policies: Sequence[Policy] | None = None
    ) -> None:
        self.mode = mode
        self.now = START
        self.writers = [writer(number, habit) for number, habit in enumerate(history.habits)]
        self.broken: list[Broken] = []
        self.counts: Counter[str] = Counter()
        self._alone = alone
        self._admission = Admission(mode, policies)
        self._server = ApiServer(self._admission)
        self._is_guarded = mode.is_guarded
        self._step = 0
        self.spec_by: int | None = None
        self.spec_at = self.touched_at = START
        self.is_forged = False
        self.is_stamped = False
        self.is_planted = False

    def take(self, number: int, step: Step) -> str:
        """Take one step; return what an elector's write came to."""
        self._step = number
        match step:
            case Waits(seconds):
                self.now += round(seconds * 1000) * SECOND // 1000
            case Acts(who, between):
                return self._act(who, between)
            case Releases(who):
                return self._release(who)
            case Stops(who):
                self.writers[who].alive = False
            case Starts(who):
                writer = self.writers[who]
                writer.alive, writer.copy = True, None
            case Writes(write):
                self._write(write)
            case Collects():
                self._collect()
            case Installs():
                self._install()
        return ""

    def _install(self) -> None:
        stored = self._server.stored
        if stored is not None:
            annotations = stored["metadata"].get("annotations") or {}
            rest = {key: value for key, value in annotations.items() if key not in KEYS}
            self._server.stored = stored | {"metadata": stored["metadata"] | {"annotations": rest}}
        self._admission.in_force = True
        self._admission.label = "required" if self.mode.stamps else ""
        self.is_stamped = False

    # ---- electors ----

    def _act(self, number: int, between: StrangersWrite | None) -> str:
        writer = self.writers[number]
        if not writer.alive:
            return ""
        self.now += SECOND // 1000
        if writer.habit.reads or not writer.holds:
            writer.observe(self._server.stored, self.now)
        outcome = self._send_next(number, writer.next_write(self.now), between)
        if outcome.startswith((CONFLICT, NOT_FOUND)) and not writer.habit.reads:
            self.now += SECOND // 1000
            writer.observe(self._server.stored, self.now)
            outcome = self._send_next(number, writer.next_write(self.now), None)
        return outcome

    def _release(self, number: int) -> str:
        writer = self.writers[number]
        if not writer.alive:
            return ""
        self.now += SECOND // 1000
        if writer.habit.reads:
            writer.observe(self._server.stored, self.now)
        outcome = self._send_next(number, writer.release(self.now), None, what="release")
        if outcome.startswith(CONFLICT):
            self.now += SECOND // 1000
            writer.observe(self._server.stored, self.now)
            outcome = self._send_next(number, writer.release(self.now), None, what="release")
        writer.alive, writer.copy = False, None
        return outcome

    def _send_next(
        self, number: int, request: Request | None, between: StrangersWrite | None, *, what: str = ""
    ) -> str:
        writer, stored = self.writers[number], self._server.stored
        if between is not None:
            self.now += SECOND // 1000
            self._write(between)
            stored = self._server.stored
        if request is None:
            self.counts["waits"] += 1
            return ""
        kind = what or _kind(writer, stored)
        # A list of a copy that was changed since, sent without its resourceVersion, undoes what its client never saw;
        # the renewal of a lease that was deleted since creates it. Its client did not ask to hear of the conflict.
        copies = writer.habit.finalizer or writer.habit.owner == "added" or stored is None
        is_stale = copies and writer.copy is not stored
        is_entitled = self._is_entitled(number, stored) and not is_stale
        if writer.habit.numbered or (what and writer.habit.release in ("cut", "deleted")):
            is_free = stored is None or self._is_stamped(stored) or not _is_held_by(writer, stored)
            is_entitled = is_entitled and is_free
        try:
            answer = self._send(writer.user, request, number)
        except Refused as refused:
            self._check(writer, request, kind, str(refused), is_entitled=is_entitled)
            return str(refused)
        self.counts[f"{kind} stored"] += 1
        writer.observe(answer, self.now)
        return "stored"

    def _is_entitled(self, number: int, stored: Document | None) -> bool:
        """Return whether a renewal is by who holds the lease, or a takeover comes after expiry, in this world."""
        writer = self.writers[number]
        holder = None if stored is None else stored["spec"].get("holderIdentity")
        if stored is None or not holder:
            return True
        if _is_held_by(writer, stored):
            return not self._is_guarded or not self.is_stamped or self.spec_by == number
        duration = stored["spec"].get("leaseDurationSeconds")
        if duration is None or (not self._is_guarded and stored["spec"].get("renewTime") is None):
            return True
        # What is not stamped yet has no time but those of managedFields, which others can move.
        has_rules = bool(self.mode.webhook or self.mode.rules)
        by_stamps = self._is_guarded and (self.is_stamped or not has_rules)
        since = self.spec_at if by_stamps else self.touched_at
        if self.is_forged and not by_stamps:
            since += FORGED * SECOND
        return bool(self.now >= since + duration * SECOND)

    def _is_stamped(self, stored: Document) -> bool:
        """Return whether a stamp shows whose the lease is: who renames, cuts or deletes a live one may be anyone."""
        return self._is_guarded and self.is_stamped and all(annotations_of(stored)[:2])

    def _check(self, writer: Writer, request: Request, kind: str, refusal: str, *, is_entitled: bool) -> None:
        """Check the laws for an elector's write that is refused."""
        word = refusal.partition(":")[0]
        self.counts[f"{kind} {word if word in OF_THE_API_SERVER else 'refused'}"] += 1
        text = f"{kind} by {writer.identity}: {refusal}"
        if not is_entitled or not self._admission.in_force:
            return
        try:
            left = self._server.outcome(self._server.stored, writer.user, request, self.now, _admit_all)
        except Refused as without_us:
            # Nothing that only validates makes a lease larger.
            is_filled = word == TOO_LARGE and not self.mode.stamps
            if word not in (CONFLICT, NOT_FOUND, EXISTS) and not is_filled:
                # A value from before the installation that the API server refuses is no different without us, unless
                # another stranger's write, which we refused, replaced it there.
                is_planted = self.is_planted and str(without_us).startswith(INVALID)
                if self._alone and self._alone[self._step] == "stored" and not is_planted:
                    self._break(ALIKE, text)
                elif self._is_guarded and word == INVALID and kind != "renewal" and not self.is_planted:
                    self._break(FREE, text)
            return
        if kind == "release" and left is not None and not left["metadata"].get("managedFields"):
            # It leaves nothing that managedFields could own, and so a lease which no API server would date again.
            self.counts["release of everything refused"] += 1
            return
        if kind == "release" and request.verb == APPLY and left is not None and left["spec"].get("holderIdentity"):
            # A stranger owns the holder as well, so that an apply which leaves it out releases nothing.
            self.counts["release by an apply refused"] += 1
            return
        if kind == "release" and leaves_spec(request, self._server.stored):
            self.counts["release of nothing refused"] += 1
            return
        self._break(HARMLESS, text)

    def _break(self, law: str, text: str) -> None:
        self.broken.append(Broken(self.mode.name, law, self._step, text))

    # ---- strangers ----

    def _write(self, write: StrangersWrite) -> None:
        request = write.request(self._server.stored, self.now)
        if request is None:
            return
        before, is_live = self._server.stored, self._is_held_by_its_writer()
        try:
            self._send(strangers.USERS[write.by], request, STRANGER)
        except Refused:
            self.counts["a stranger's write refused"] += 1
            return
        self.counts["a stranger's write stored"] += 1
        self.is_forged |= any(change.name == "entries" for change in write.changes)
        if not self._admission.in_force:
            self.is_planted = True
        if is_live and self._server.stored is not before:
            self._break(UNDISTURBED, f"{write.verb} by {write.by}: {[change.name for change in write.changes]}")

    def _is_held_by_its_writer(self) -> bool:
        """Return whether the guard knows an elector as the writer of a lease that has not expired."""
        stored = self._server.stored
        if not (self._is_guarded and self.is_stamped and self.spec_by not in (None, STRANGER)) or stored is None:
            return False
        if not all(annotations_of(stored)[:2]):
            return False  # there was no room for stamps, or no time, because someone had emptied managedFields
        duration = stored["spec"].get("leaseDurationSeconds")
        if not stored["spec"].get("holderIdentity") or duration is None:
            return False
        tolerance = min(2.0, duration / 5) + 1
        return self.now < self.spec_at + int((duration - tolerance) * SECOND)

    def _collect(self) -> None:
        stored = self._server.stored
        owners = () if stored is None else stored["metadata"].get("ownerReferences") or ()
        if any(owner["kind"] == "Ghost" for owner in owners):
            try:
                self._send(COLLECTOR, Request(verb=DELETE, body={}), STRANGER)
            except Refused:
                self.counts["a collection refused"] += 1

    def _send(self, user: User, request: Request, by: int) -> Document | None:
        self._admission.now = self.now
        before = self._server.stored
        after = self._server.send(user, request, self.now)
        if after is not before:
            self.touched_at = self.now
            if after is None or before is None or after["spec"] != before["spec"]:
                self.spec_by, self.spec_at = by, self.now
                self.is_stamped = self._admission.in_force
            if after is None:
                self.spec_by, self.is_forged = None, False
        return after


def leaves_spec(request: Request, stored: Document | None) -> bool:
    """Return whether a release changes nothing of `spec`: the lease was free before, so only metadata is left of it."""
    before: Document = {} if stored is None else stored["spec"]
    return all(before.get(name) == value for name, value in request.body.get("spec", {}).items())


def _admit_all(user: User, operation: str, old: Document | None, new: Document | None) -> Document | None:
    return new


def _kind(writer: Writer, stored: Document | None) -> str:
    if stored is None:
        return CREATE
    if _is_held_by(writer, stored):
        return "renewal"
    return "takeover" if stored["spec"].get("holderIdentity") else "claim"


def _is_held_by(writer: Writer, stored: Document) -> bool:
    return writer.is_named(stored["spec"].get("holderIdentity"))


# ---- drawing --------------------------------------------------------------------------------------------------------


def drawn(seed: int) -> History:
    """The history of a seed."""
    draw = random.Random(seed)
    habits = _some_habits(draw)
    steps: list[Step] = []
    durations = max(habit.duration for habit in habits)
    rounds = draw.randint(5, 14)
    installed = draw.choice((0, 0, 1, 2, 3))
    for number in range(rounds):
        if number == installed:
            if draw.random() < 0.7:
                steps += [Writes(some_write(draw)) for _ in range(draw.randint(1, 3)) if number]
            steps.append(Installs())
        elif draw.random() < 0.5:
            steps += [Writes(some_write(draw)) for _ in range(draw.choice((1, 1, 2)))]
        if draw.random() < 0.05:
            steps.append(Collects())
        steps += _some_absence(draw, len(habits))
        wait = draw.choice((0.2, 2, 2, 2, 3))
        if draw.random() < 0.25:
            wait = durations + draw.choice((0.5, 2, 3, 70, 700))
        steps.append(Waits(wait))
        for who in range(len(habits)):
            between = some_write(draw) if draw.random() < 0.08 else None
            steps.append(Acts(who, between))
    return History(habits, tuple(steps))


def _some_habits(draw: random.Random) -> tuple[Habit, ...]:
    def some() -> Habit:
        if draw.random() < 0.15:
            return CLIENT_GO
        if draw.random() < 0.15:
            return msgspec.structs.replace(CLIENT_GO, labels=True)
        return msgspec.convert({name: draw.choice(values) for name, values in HABITS.items()}, Habit)

    first = some()
    others = [first if draw.random() < 0.7 else some() for _ in range(draw.choice((1, 1, 2)))]
    return (first, *others)


def _some_absence(draw: random.Random, count: int) -> list[Step]:
    who = draw.randrange(count)
    chance = draw.random()
    if chance < 0.08:
        return [Stops(who)]
    if chance < 0.2:
        return [Releases(who)]
    return [Starts(who)] if chance < 0.35 else []


# ---- shrinking ------------------------------------------------------------------------------------------------------


def shrunk(history: History, is_broken: Callable[[History], bool]) -> History:
    """The smallest history that is found to be still broken, by leaving out and by making plainer."""
    size = max(1, len(history.steps) // 2)
    while size:
        at = 0
        while at < len(history.steps):
            shorter = msgspec.structs.replace(history, steps=history.steps[:at] + history.steps[at + size :])
            if is_broken(shorter):
                history = shorter
            else:
                at += size
        size //= 2
    is_simpler = True
    while is_simpler:
        is_simpler = False
        for simpler in _simpler(history):
            if is_broken(simpler):
                history, is_simpler = simpler, True
                break
    return history


def _simpler(history: History) -> list[History]:
    histories: list[History] = []
    for number, habit in enumerate(history.habits):
        for plain in plainer(habit):
            habits = (*history.habits[:number], plain, *history.habits[number + 1 :])
            histories.append(msgspec.structs.replace(history, habits=habits))
    for at, step in enumerate(history.steps):
        for plain_step in _plainer_steps(step):
            steps = (*history.steps[:at], plain_step, *history.steps[at + 1 :])
            histories.append(msgspec.structs.replace(history, steps=steps))
    return histories


def _plainer_steps(step: Step) -> list[Step]:
    match step:
        case Acts(who, between) if between is not None:
            return [Acts(who), *(Acts(who, less) for less in _less(between))]
        case Writes(write):
            return [Writes(less) for less in _less(write)]
    return []


def _less(write: StrangersWrite) -> list[StrangersWrite]:
    changes = write.changes
    simpler = [
        msgspec.structs.replace(write, changes=changes[:at] + changes[at + 1 :])
        for at in range(len(changes))
        if len(changes) > 1
    ]
    plain = {"by": "a pod of another namespace", "verb": "put", "manager": "mallory"}
    if write.verb not in (DELETE, CREATE):
        simpler += [
            msgspec.structs.replace(write, **{name: value})
            for name, value in plain.items()
            if getattr(write, name) != value
        ]
    return simpler
