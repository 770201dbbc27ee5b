"""Who wrote one lease, under which holders: the evidence for a binding."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

from webhook.api.objects import Lease, LeaseSpec
from webhook.observations.observation import Act, Observation
from webhook.rules.events import is_lease_untouched, same_time
from webhook.rules.well_known import CLEANUP_CONTROLLERS
from webhook.suggestions.evidence import Evidence
from webhook.suggestions.writers import Record, is_always_exempt, is_stranger

MOST_HOLDERS: Final = 1000
"""Of one lease: users with their pods and holders that are remembered."""
REFUSED: Final = frozenset({401, 403, 422})

UNKNOWN: Final = ""
"""The user of a write whose writer the input does not show."""


class Held(Struct, frozen=True):
    """A holder with the user and the pod that wrote it, each "" if it is not known."""

    user: str
    pod: str
    holder: str


class LeaseUse(Struct):
    """What was seen of one lease.

    `records` are the writes of each user, `exempt` the users to whom a binding does not apply, `refused` what was not
    stored, by user and by what looks like an attack. `taken` are holders that first came by what looks like one.
    `hidden` are the writes whose holder the input does not show.
    """

    namespace: str
    name: str
    records: dict[str, Record] = field(default_factory=dict)
    holders: dict[Held, None] = field(default_factory=dict)
    taken: dict[str, None] = field(default_factory=dict)
    pods: dict[str, None] = field(default_factory=dict)
    refused: dict[tuple[str, str], Evidence] = field(default_factory=dict)
    exempt: dict[str, None] = field(default_factory=dict)
    hidden: Evidence = field(default_factory=Evidence)
    acts: set[Act] = field(default_factory=set)
    last: LeaseSpec | None = None

    def observe(self, seen: Observation, suspicions: tuple[str, ...]) -> None:
        """Take in one write, or the stored object."""
        writer = seen.writer
        user = writer.user if writer else UNKNOWN
        if not seen.is_stored:
            # Electors that race cause conflicts.
            if seen.answer and seen.answer.code in REFUSED:
                self.refused.setdefault((user, "; ".join(suspicions)), Evidence()).add(seen)
            return
        new = seen.object.spec if isinstance(seen.object, Lease) else None
        if self._is_free(seen, user, new):
            return
        if writer and is_always_exempt(writer):
            self.exempt[user] = None
            return
        self.acts.add(seen.act)
        if seen.act is not Act.STORED:
            self.records.setdefault(user, Record()).add(seen, suspicions)
        pod = writer.pod if writer else ""
        if seen.act is Act.DELETED:
            return
        if pod and len(self.pods) < MOST_HOLDERS:
            self.pods[pod] = None
        if new is None:
            self.hidden.add(seen)
        elif new.holder_identity:
            self._hold(Held(user, pod, new.holder_identity), is_taken=bool(suspicions))

    def _is_free(self, seen: Observation, user: str, new: LeaseSpec | None) -> bool:
        """Whether a binding allows this to anyone: it leaves spec alone, or cleans up."""
        old = seen.old.spec if isinstance(seen.old, Lease) else self.last
        self.last = None if seen.act is Act.DELETED else new
        if seen.act is Act.DELETED:
            return user in CLEANUP_CONTROLLERS
        return seen.act is Act.UPDATED and new is not None and old is not None and _is_untouched(old, new)

    def _hold(self, held: Held, *, is_taken: bool) -> None:
        if is_taken and all(one.holder != held.holder for one in self.holders):
            self.taken[held.holder] = None
        if held in self.holders or len(self.holders) < MOST_HOLDERS:
            self.holders[held] = None

    @property
    def attackers(self) -> Iterator[str]:
        """Users who do not belong to the lease and made what looks like an attack."""
        for user, record in self.records.items():
            if record.suspicious and is_stranger(user, self.namespace):
                yield user

    def holders_of(self, users: frozenset[str]) -> list[Held]:
        """The holders that these users wrote, and those whose writer is not known, without what was taken."""
        known = {one.holder for one in self.holders if one.user in users}
        barred = {one.holder for one in self.holders if one.user not in users | {UNKNOWN}} | self.taken.keys()
        return [
            one
            for one in self.holders
            if one.user in users or (one.user == UNKNOWN and one.holder not in barred - known)
        ]


def _is_untouched(old: LeaseSpec, new: LeaseSpec) -> bool:
    return (
        (old.holder_identity or "") == (new.holder_identity or "")
        and same_time(old.renew_time, new.renew_time)
        and is_lease_untouched(old, new)
    )
