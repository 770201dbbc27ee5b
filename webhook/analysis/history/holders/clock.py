"""How far a holder's clock is off, by the renewTime that it writes and the time at which an API server stored it."""

from msgspec import Struct
from msgspec.structs import replace

from webhook.admission.rules.expiry import MAX_TOLERANCE
from webhook.analysis.inputs.items import Act, InputKind, Observation
from webhook.analysis.inputs.rewriting import RENEW_TIME
from webhook.kubernetes.objects import Lease, LeaseSpec
from webhook.kubernetes.times import SECOND, get_readable_instant, normalize


class SetBack(Struct, frozen=True):
    """A renewal at `at` that moved renewTime back, from `before` to `after`; microseconds since 1970.

    No clock that goes on does that: it was set back, or an old time was written. `latest` is renewTime as it was
    written last. `is_over`: it has passed `before` again.
    """

    at: int
    before: int
    after: int
    latest: int
    is_over: bool = False

    @property
    def length(self) -> int:
        """By how much it moved."""
        return self.before - self.after

    def follow(self, renewed: int) -> "SetBack":
        """Return what is known after another renewal, of which this is renewTime."""
        return replace(self, latest=renewed, is_over=self.is_over or renewed >= self.before)


def find_set_back(old: LeaseSpec, new: LeaseSpec, at: int, known: SetBack | None) -> SetBack | None:
    """Return the latest renewal that moved renewTime back, by more than API servers' clocks differ, None if none did.

    `known` is what was known before the one at `at`.
    """
    before, after = (get_readable_instant(normalize(one.renew_time)) for one in (old, new))
    if before is None or after is None:
        return known
    if before - after > MAX_TOLERANCE:
        return SetBack(at, before, after, after)
    return known.follow(after) if known is not None else None


class HolderClock(Struct, frozen=True):
    """By how many microseconds a clock is ahead of the API server's; less than 0 if it is behind."""

    ahead: int | None = None
    """None unless two writes agree, or the clock is right."""
    ahead_at_last: int | None = None
    """By how much the clock is ahead, by the latest write alone."""

    def measure(self, ahead: int | None, skew: int) -> "HolderClock":
        """Return what is known after a write: one odd renewTime may be that of a late request, or another writer's.

        `ahead` is by how much it was by that write, `skew` by how much clocks of API servers differ.
        """
        if ahead is None:
            return HolderClock()
        is_odd = abs(ahead) > MAX_TOLERANCE
        is_alone = self.ahead_at_last is not None and abs(self.ahead_at_last - ahead) > SECOND
        is_server = abs(ahead) <= skew + MAX_TOLERANCE
        return HolderClock(None if is_odd and (is_alone or is_server) else ahead, ahead)


def measure_by_request(seen: Observation) -> int | None:
    """Return by how much a writer's clock is ahead of when an API server answered a write, as a log shows; else None.

    It has fractions, as stamps have not, and what a log has of a request alone shows it, too. That it is behind does
    not show: a request may have been on its way. What a webhook changed is not the time of the writer's clock, and a
    patch may leave that of another writer.
    """
    is_write = seen.input_kind is InputKind.AUDIT_LOG and seen.act in {Act.CREATED, Act.UPDATED}
    if not is_write or seen.verb == "patch" or seen.at is None or not isinstance(seen.object, Lease):
        return None
    if any(one.field == RENEW_TIME for one in seen.rewritings):
        return None
    claimed = get_readable_instant(normalize(seen.object.spec.renew_time))
    if claimed is None or claimed < seen.at - seen.took - SECOND:
        return None
    return max(0, claimed - seen.at)
