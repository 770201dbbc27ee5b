"""The next state of a lease beside the one that it follows, and what it does to the holder.

In: two states and what showed them. Out: a frozen value, and one of a few kinds by the table below. `states` does what
follows.
"""

from collections.abc import Sequence
from enum import Enum, auto

from msgspec import Struct

from webhook.analysis.inputs.items import Act, Observation, Writer
from webhook.kubernetes.managed_fields import Entry
from webhook.kubernetes.objects import Lease, LeaseSpec
from webhook.kubernetes.times import get_readable_instant, normalize


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
    """Whatever was written, neither the holder nor the last renewal changed."""


class NextState(Struct, frozen=True):
    """The state `lease` with its `entries`, after the state `before` with those that were `known`, None if none was.

    `seen` shows it, by an `act` that is STORED if it does not show what wrote it. It was written at `at` at the
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
    def manager(self) -> str:
        """The field manager of a write that left the holder, "" if it is not known."""
        changed = [one.manager or "" for one in self.entries if one not in self.known]
        return changed[0] if len(changed) == 1 else ""

    @property
    def is_before_write(self) -> bool:
        """Whether an input shows it as the state that a write replaced."""
        return self.lease is self.seen.old

    @property
    def has_earlier_renew_time(self) -> bool:
        """True if a write moved renewTime back, as a stale copy does."""
        old, new = (
            get_readable_instant(normalize(self.old.renew_time)),
            get_readable_instant(normalize(self.new.renew_time)),
        )
        return old is not None and new is not None and new < old

    @property
    def has_other_renew_time(self) -> bool:
        """Whether renewTime is another one, or gone."""
        return normalize(self.new.renew_time) != normalize(self.old.renew_time)

    def classify(self, *, is_released: bool) -> Transition:
        """Classify what it does to the holder; `is_released`: one that is still named had released the lease.

        | between the states | the holder before | the holder | renewTime | transition |
        |---|---|---|---|---|
        | there was none before | | any, or none | | BEGINNING |
        | writes are missing | any, or none | any, or none | | RESUMPTION |
        | nothing | one | none | | RELEASE |
        | nothing | none, or one that had released it | another one | | CLAIM |
        | nothing | one | another one | | TAKING |
        | nothing | one | the same | another one | RENEWAL |
        | nothing | one | the same | as before, or gone | NONE |
        | nothing | none | none, and no one ever was, as in a heartbeat | another one | RENEWAL |
        | nothing | none | none | | NONE |
        """
        if self.before is None:
            return Transition.BEGINNING
        if self.is_gap:
            return Transition.RESUMPTION
        holder, holder_before = self.holder, self.old.holder_identity or ""
        if holder == holder_before:
            is_renewed = self.is_held and self.has_other_renew_time and normalize(self.new.renew_time) is not None
            return Transition.RENEWAL if is_renewed else Transition.NONE
        if not holder:
            return Transition.RELEASE
        return Transition.TAKING if holder_before and not is_released else Transition.CLAIM
