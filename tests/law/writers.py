"""Honest writers: election clients of every habit, as programs that read a Lease and write it.

A habit is what its kind of client does with each write, whatever is stored: which verb, whether it reads first, which
metadata it puts back, how it counts, what its release looks like. All instants are true time in microseconds.
"""

from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from tests.factories import Document
from tests.law.api_server import CREATE, DELETE, MERGE, NAME, NAMESPACE, PUT, Request, copied
from tests.model.api_server import User, service_account
from tests.model.managed_fields import APPLY, SECOND
from webhook.kubernetes.times import format_micro_time, parse

_API: Final = "coordination.k8s.io/v1"


class Habit(Struct, frozen=True, kw_only=True):
    """What a client does with each write.

    `verb`: PUT, MERGE or APPLY; `force` is that of an apply. `reads`: it reads before each write; else it renews over
    its last answer, and reads after a conflict. `whole`: its PUT has what it read; else only what it sets itself.
    `guarded`: its patch has the resourceVersion, as each PUT must. `labels`, `annotations`, `finalizer`: it puts its
    own back. `counter`: its annotation has a new value each time. `bulk`: characters of another annotation that it puts
    back. `owner`: "", "if none" is there, "added" to those that are there, or "alone". `transitions`: "counted",
    "counted in 32 bits" or "never" set. `acquires`: acquireTime is set by renewals, too. `expiry`: by "observation", or
    by "renewTime". `release`: holder "empty", "kept" with a duration of 1 s, "cut" to that without a renewal, all
    "removed", the lease "deleted", or "none". `numbered`: each write has a new number behind its identity. `heartbeat`:
    the time that its renewals set, "renewTime", or "acquireTime" alone, without a duration. `duration` is in seconds; 0
    is never set.
    """

    verb: str = PUT
    force: bool = True
    reads: bool = True
    whole: bool = True
    guarded: bool = True
    labels: bool = False
    annotations: bool = False
    counter: bool = False
    bulk: int = 0
    finalizer: bool = False
    owner: str = ""
    transitions: str = "counted"
    acquires: bool = False
    expiry: str = "observation"
    release: str = "empty"
    numbered: bool = False
    heartbeat: str = "renewTime"
    duration: int = 15


CLIENT_GO: Final = Habit(reads=False, transitions="counted in 32 bits")
"""client-go since 0.27: over its last answer, after a conflict over what it reads."""

HABITS: Final[dict[str, tuple[str | int, ...]]] = {
    "verb": (PUT, PUT, MERGE, APPLY),
    "force": (True, True, False),
    "reads": (True, False),
    "whole": (True, True, True, False),
    "guarded": (True, True, False),
    "labels": (False, True),
    "annotations": (False, False, True),
    "counter": (False, True),
    "bulk": (0, 0, 0, 0, 3_000, 12_000),
    "finalizer": (False, False, False, True),
    "owner": ("", "", "if none", "added", "alone"),
    "transitions": ("counted", "counted in 32 bits", "never"),
    "acquires": (False, False, True),
    "expiry": ("observation", "renewTime"),
    "release": ("empty", "empty", "kept", "cut", "removed", "deleted", "none"),
    "numbered": (False, False, False, False, True),
    "heartbeat": ("renewTime", "renewTime", "renewTime", "renewTime", "acquireTime"),
    "duration": (15, 15, 15, 6, 40, 0),
}
"""Values of each part of a habit, the usual ones more than once."""


class Writer(Struct, kw_only=True):
    """One instance of a client.

    `copy` is the object that it last read or was answered, `since` when its spec changed.
    """

    identity: str
    user: User
    habit: Habit
    copy: Document | None = None
    since: int = 0
    alive: bool = True
    writes: int = 0
    kept: dict[str, Any] = field(default_factory=dict)

    def observe(self, stored: Document | None, now: int) -> None:
        """Read the lease."""
        before = self.copy and self.copy["spec"]
        self.copy = stored
        if (stored and stored["spec"]) != before:
            self.since = now

    @property
    def holds(self) -> bool:
        """Return whether it is the holder in what it knows."""
        return self.copy is not None and self.is_named(self.copy["spec"].get("holderIdentity"))

    def is_named(self, holder: str | None) -> bool:
        """Return whether a holder is this instance."""
        return (holder or "").partition("#")[0] == self.identity

    @property
    def _name(self) -> str:
        return f"{self.identity}#{self.writes}" if self.habit.numbered else self.identity

    def next_write(self, now: int) -> Request | None:
        """Return what it writes over what it knows; None while another holds the lease."""
        old = self.copy
        if old is None:
            return self._request(None, self._claimed({}, now))
        spec = old["spec"]
        if self.holds:
            return self._request(old, self._renewed(spec, now))
        if spec.get("holderIdentity") and not self._is_expired(spec, now):
            return None
        return self._request(old, self._claimed(spec, now))

    def release(self, now: int) -> Request | None:
        """Return its release; None if it holds nothing, or just leaves."""
        how, old = self.habit.release, self.copy
        if old is None or not self.holds or how == "none":
            return None
        if how == "deleted":
            return Request(verb=DELETE, body={})
        spec = dict(old["spec"])
        if how == "cut":
            spec["leaseDurationSeconds"] = 1
        elif how == "removed":
            spec |= dict.fromkeys(("holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime"))
        else:
            spec |= {
                "leaseDurationSeconds": 1,
                "renewTime": format_micro_time(now),
                "acquireTime": format_micro_time(now),
            }
        if how == "empty":
            spec["holderIdentity"] = ""
        return self._request(old, spec)

    @property
    def _duration(self) -> Document:
        return {"leaseDurationSeconds": (self._sets_renew_time and self.habit.duration) or None}

    @property
    def _sets_renew_time(self) -> bool:
        return self.habit.heartbeat == "renewTime"

    def _claimed(self, spec: Document, now: int) -> Document:
        time = format_micro_time(now)
        claimed: Document = {"holderIdentity": self._name, "acquireTime": time}
        claimed["renewTime"] = time if self._sets_renew_time else None
        if self.habit.transitions != "never":
            count = (spec.get("leaseTransitions") or 0) + 1 if spec else 0
            if self.habit.transitions == "counted in 32 bits":
                count = (count + 2**31) % 2**32 - 2**31
            claimed["leaseTransitions"] = count
        return spec | claimed | self._duration

    def _renewed(self, spec: Document, now: int) -> Document:
        renewed = spec | self._duration | {"holderIdentity": self._name, "renewTime": format_micro_time(now)}
        if not self._sets_renew_time:
            return renewed | {"renewTime": None, "acquireTime": format_micro_time(now)}
        return renewed | ({"acquireTime": format_micro_time(now)} if self.habit.acquires else {})

    def _is_expired(self, spec: Document, now: int) -> bool:
        if not self._sets_renew_time:
            return now >= self.since + self.habit.duration * SECOND
        duration, renewed = spec.get("leaseDurationSeconds"), spec.get("renewTime")
        if duration is None or renewed is None:
            return True
        if self.habit.expiry == "observation":
            return bool(now >= self.since + duration * SECOND)
        try:
            return bool(now >= parse(renewed) + duration * SECOND)
        except ValueError:
            return False

    def _request(self, old: Document | None, spec: Document) -> Request:
        """A write of this spec by its verb, with the metadata that it always sets."""
        habit = self.habit
        self.writes += 1
        known: Document = {} if old is None else old["metadata"]
        metadata = self._metadata(known)
        version = (
            {"resourceVersion": known["resourceVersion"]}
            if old is not None and (habit.guarded or habit.verb == PUT)
            else {}
        )
        body: Document = {"apiVersion": _API, "kind": "Lease"}
        if habit.verb == APPLY:
            head = {"name": NAME, "namespace": NAMESPACE}
            set_ = {name: value for name, value in spec.items() if value is not None}
            return Request(
                verb=APPLY,
                body=body | {"metadata": head | metadata | version, "spec": set_},
                manager="checkout",
                force=habit.force,
            )
        if old is None:
            return Request(verb=CREATE, body=body | {"metadata": {"name": NAME} | metadata, "spec": spec})
        if habit.verb == MERGE:
            before = old["spec"]
            changed = {name: value for name, value in spec.items() if before.get(name) != value}
            usual = {"holderIdentity": spec.get("holderIdentity"), "renewTime": spec.get("renewTime")}
            return Request(verb=MERGE, body={"metadata": metadata | version, "spec": usual | changed})
        if not habit.whole:
            return Request(verb=PUT, body=body | {"metadata": {"name": NAME} | metadata | version, "spec": spec})
        whole = copied(known)
        for name, value in metadata.items():
            whole[name] = (whole.get(name) or {}) | value if isinstance(value, dict) else value
        return Request(verb=PUT, body=body | {"metadata": whole, "spec": spec})

    def _metadata(self, known: Document) -> Document:
        habit, metadata = self.habit, Document()
        if habit.labels:
            metadata["labels"] = {"app.example/elector": self.identity}
        if habit.annotations:
            epoch = f"{self.writes:06}" if habit.counter else "here"
            metadata["annotations"] = {"app.example/epoch": epoch}
        if habit.bulk:
            metadata["annotations"] = metadata.get("annotations", {}) | {"app.example/state": "s" * habit.bulk}
        if habit.finalizer:
            others = [one for one in known.get("finalizers") or () if one != "app.example/elector"]
            # Nothing may be added to an object that is being deleted, and its writer sees that it is.
            if not known.get("deletionTimestamp") or "app.example/elector" in (known.get("finalizers") or ()):
                metadata["finalizers"] = [*others, "app.example/elector"]
        owners = known.get("ownerReferences") or []
        mine = {"apiVersion": "v1", "kind": "Pod", "name": self.user.pod, "uid": f"uid-of-{self.user.pod}"}
        if habit.owner == "alone" or (habit.owner == "if none" and not owners):
            metadata["ownerReferences"] = [mine]
        elif habit.owner == "added" and mine not in owners:
            metadata["ownerReferences"] = [*owners, mine]
        return metadata


def writer(number: int, habit: Habit) -> Writer:
    """The instance of this number: a pod of a service account that several instances share."""
    pod = f"checkout-{number}"
    return Writer(identity=f"{pod}_1f0e", user=service_account(NAMESPACE, "checkout", pod), habit=habit)


def plainer(habit: Habit) -> list[Habit]:
    """Habits that differ from this one in one part, which is client-go's."""
    usual = Habit()
    names = Habit.__struct_fields__
    return [
        replace(habit, **{name: getattr(usual, name)}) for name in names if getattr(habit, name) != getattr(usual, name)
    ]
