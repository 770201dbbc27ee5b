"""The next state of a lease, with the state that it follows, and what it does to the holder.

In: two states and what showed them. Out: a frozen value, and its kind by the table `TRANSITIONS`. `states` does what
follows.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum, auto
from typing import Final

from msgspec import Struct

from webhook.analysis.inputs.items import Act, Observation, Writer
from webhook.kubernetes.managed_fields import Entry
from webhook.kubernetes.objects import Lease, LeaseSpec
from webhook.kubernetes.times import normalize


class Transition(Enum):
    """What a state does to the holder of the state before."""

    RENEWAL = auto()
    TAKING = auto()
    """Another holder replaced one that was still named."""
    CLAIM = auto()
    """A holder was written into a lease that was free."""
    RELEASE = auto()
    """The holder was removed."""
    BEGINNING = auto()
    """Before, the lease did not exist, or was not known."""
    RESUMPTION = auto()
    """What was written since the state before was not seen."""
    NONE = auto()
    """Neither the holder nor the last renewal changed, but perhaps something else."""


class Before(Enum):
    """Who held the lease before, as far as is known."""

    NO_STATE = auto()
    """The lease did not exist, or was not known."""
    UNSEEN = auto()
    """Writes since the state before were not seen."""
    FREE = auto()
    RELEASED = auto()
    """It names a holder, which had released it."""
    HELD = auto()


class After(Enum):
    """Who holds the lease, compared with the state before."""

    FREE = auto()
    SAME = auto()
    """The same holder, or none of a heartbeat that never named one; renewTime is as before, or gone."""
    RENEWED = auto()
    """The same holder, or none as of such a heartbeat, with another renewTime."""
    ANOTHER = auto()


TRANSITIONS: Final[Mapping[tuple[Before, After], Transition]] = {
    **{(Before.NO_STATE, after): Transition.BEGINNING for after in After},
    **{(Before.UNSEEN, after): Transition.RESUMPTION for after in After},
    **{(before, After.SAME): Transition.NONE for before in (Before.FREE, Before.RELEASED, Before.HELD)},
    **{(before, After.RENEWED): Transition.RENEWAL for before in (Before.FREE, Before.RELEASED, Before.HELD)},
    (Before.FREE, After.FREE): Transition.NONE,
    (Before.FREE, After.ANOTHER): Transition.CLAIM,
    (Before.RELEASED, After.FREE): Transition.RELEASE,
    (Before.RELEASED, After.ANOTHER): Transition.CLAIM,
    (Before.HELD, After.FREE): Transition.RELEASE,
    (Before.HELD, After.ANOTHER): Transition.TAKING,
}
"""What a state does to the holder of the state before: each combination has an entry."""


class NextState(Struct, frozen=True):
    """A new state (`lease`, `entries`), and the one that it follows (`before`, `known`), None if there was none.

    `seen` shows it, by an `act` that is STORED if that does not show what wrote it. It was written at `at` at the
    earliest, or as far as is known at `moment`, by `writer`. `is_gap`: writes between the two were not seen. `is_new`:
    the lease did not exist before.
    """

    seen: Observation
    act: Act
    lease: Lease
    entries: Sequence[Entry]
    before: Lease | None
    known: Sequence[Entry]
    at: int
    moment: int | None
    writer: Writer | None
    is_gap: bool
    is_new: bool
    is_nameless: bool = False
    """It is a heartbeat, and the lease never named a holder: whoever renews it stands in for that."""
    is_before_sent: bool = False
    """The state before is what a client sent, and nothing shows that it was still stored by then."""

    @property
    def old(self) -> LeaseSpec:
        """The spec before, an empty one if there was no state."""
        return self.before.spec if self.before else LeaseSpec()

    @property
    def new(self) -> LeaseSpec:
        """The spec."""
        return self.lease.spec

    @property
    def holder(self) -> str:
        """The holder, "" for none."""
        return self.lease.spec.holder_identity or ""

    @property
    def is_held(self) -> bool:
        """Whether it has a holder, or is renewed without one, as a heartbeat may be."""
        return bool(self.holder) or self.is_nameless

    @property
    def only_changed_manager(self) -> str:
        """The field manager whose entry alone is new or changed, "" if none or several are."""
        changed = [one.manager or "" for one in self.entries if one not in self.known]
        return changed[0] if len(changed) == 1 else ""

    def find_manager_of(self, fields: Collection[str]) -> str:
        """Return the field manager whose entry is new or changed and owns one of `fields`; "" if there is not just one.

        Fields are named as in managedFields.
        """
        return self._find_changed_manager(lambda one: not one.owned.spec.isdisjoint(fields))

    def find_manager_of_label(self, key: str) -> str:
        """Return the field manager whose entry is new or changed and owns a label; "" if there is not just one."""
        return self._find_changed_manager(lambda one: f"f:{key}" in one.owned.labels)

    def _find_changed_manager(self, owns: Callable[[Entry], bool]) -> str:
        managers = {one.manager or "" for one in self.entries if one not in self.known and owns(one)}
        return managers.pop() if len(managers) == 1 else ""

    @property
    def is_before_write(self) -> bool:
        """Whether an input shows it as the state that a write replaced."""
        return self.lease is self.seen.old

    @property
    def has_other_renew_time(self) -> bool:
        """Whether renewTime is another one, or gone."""
        return normalize(self.new.renew_time) != normalize(self.old.renew_time)

    def classify(self, *, is_released: bool) -> Transition:
        """Return what it does to the holder, by the table; `is_released`: a holder that is still named released it."""
        return TRANSITIONS[self._find_before(is_released=is_released), self._find_after()]

    def _find_before(self, *, is_released: bool) -> Before:
        if self.before is None:
            return Before.NO_STATE
        if self.is_gap:
            return Before.UNSEEN
        if not self.old.holder_identity:
            return Before.FREE
        return Before.RELEASED if is_released else Before.HELD

    def _find_after(self) -> After:
        if self.holder != (self.old.holder_identity or ""):
            return After.ANOTHER if self.holder else After.FREE
        if not self.is_held:
            return After.FREE
        is_renewed = self.has_other_renew_time and normalize(self.new.renew_time) is not None
        return After.RENEWED if is_renewed else After.SAME
