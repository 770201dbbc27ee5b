"""What was seen of one object, with its place in the order."""

from operator import attrgetter
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.analysis.inputs.items import NO_TEXTS, Act, FenceReport, InputKind, Observation, parse_number
from webhook.analysis.inputs.rewriting import find_rewritings
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import SECOND

_NOT_DATED: Final = -2

TOLERANCE: Final = 2 * SECOND
"""What clocks of API servers, and whole seconds of stamps, are taken to differ by."""
JITTER: Final = SECOND // 4
"""How much later than another one an API server may log what it answered first."""
by_time: Final = attrgetter("time")


class DatedItem(Struct):
    """An item and its place in the order; `revision` is 0 if it is not a state.

    `time` is an estimate unless exact, and not known before an order is needed. `is_claimed`: of a state, the clock of
    its writer alone says so.
    """

    item: Observation | FenceReport
    time: int = _NOT_DATED
    revision: int = 0
    is_exact: bool = False
    is_claimed: bool = False

    @property
    def has_time(self) -> bool:
        """Whether its time was estimated before."""
        return self.time != _NOT_DATED

    @property
    def observation(self) -> Observation:
        """What was seen, of an item that is no report of a fence."""
        assert isinstance(self.item, Observation)
        return self.item

    @property
    def size(self) -> int:
        """Bytes of the document that shows it, 0 if that is not known."""
        return self.item.size if isinstance(self.item, Observation) else 0

    @property
    def is_deletion(self) -> bool:
        """Whether the object was deleted."""
        return isinstance(self.item, Observation) and self.item.is_deletion

    @property
    def is_undated(self) -> bool:
        """Whether no API server dates it: a deletion, or a state without stamps."""
        return self.is_claimed or (self.is_deletion and not self.is_exact)

    @property
    def is_stored_write(self) -> bool:
        """Whether it shows that something was stored."""
        return isinstance(self.item, Observation) and self.item.is_stored and self.item.act is not Act.READ

    @property
    def is_creation(self) -> bool:
        """Whether the object was created."""
        return self.is_stored_write and self.observation.act is Act.CREATED

    def join_with(self, shown: "DatedItem") -> "DatedItem":
        """Return the same write with the object that another input shows of it."""
        request, seen = self.observation, shown.observation
        # Whoever saved a watch may have left out managedFields, which the answer to the request has.
        is_fuller = request.has_managed_fields and not seen.has_managed_fields and not is_as_sent(request)
        rewritings = request.rewritings
        asked = request.object if request.asked is None and is_as_sent(request) else request.asked
        if isinstance(asked, Lease) and isinstance(seen.object, Lease):
            annotations = request.answer.annotations if request.answer else NO_TEXTS
            rewritings = tuple(find_rewritings(asked.spec, seen.object.spec, annotations))
        item = replace(
            request,
            object=request.object if is_fuller else seen.object,
            resource_version=seen.resource_version,
            place=seen.place,
            shown_by=seen.shown_by,
            log=request.log_path,
            rewritings=rewritings,
            is_watched=seen.input_kind is InputKind.WATCH,
            has_object_of_log=is_fuller,
            is_surely_not_dry_run=True,
        )
        return DatedItem(item, self.time, shown.revision, is_exact=True)


def is_as_sent(seen: Observation) -> bool:
    """Return whether a log shows of a write what was sent, and not what was stored: that has a resourceVersion."""
    return seen.input_kind is InputKind.AUDIT_LOG and seen.object is not None and not seen.resource_version


def is_hidden_write(seen: DatedItem) -> bool:
    """Return whether a log shows of an update neither what it replaced nor what it made."""
    if not seen.is_stored_write or seen.revision or seen.is_deletion or seen.is_creation:
        return False
    if seen.observation.is_beside_spec and seen.observation.may_change_nothing:
        return False  # it made none
    return not (seen.observation.resource_version or seen.observation.replaces)


def is_of_dump(seen: DatedItem) -> bool:
    """Return whether only a list shows this, which has each object once."""
    return isinstance(seen.item, Observation) and seen.item.input_kind is InputKind.DUMP


def describe(item: Observation) -> DatedItem:
    """Return what was seen, with the revision that it was stored at and without a time so far."""
    revision = parse_number(item.resource_version) if item.is_stored else 0
    return DatedItem(item, revision=revision, is_exact=item.at is not None)
