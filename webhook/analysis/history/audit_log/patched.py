"""Patches of which a log shows what they set, and not what was stored: with the state before, that is the next state.

In: the observations of one lease. Out: such a patch with the state that it left, where the log alone shows it: a watch,
and reviews, show it better.
"""

from http import HTTPStatus
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.analysis.history.merge.dated import TOLERANCE
from webhook.analysis.inputs.items import Act, Observation, has_managed_fields
from webhook.analysis.inputs.patches import patch_spec
from webhook.kubernetes.objects import Lease, ObjectMeta
from webhook.kubernetes.request import NULL
from webhook.kubernetes.times import SECOND

_LONGEST: Final = SECOND
"""A patch that took longer may have been stored long before it was answered, and others since."""


class PatchedState(Struct):
    """The latest state of a lease, as far as it is known, which the next patch changes."""

    lease: Lease | None = None
    is_partial: bool = False
    """It is made of patches alone: fields that none of them set are not known."""
    is_hidden: bool = False
    """It is that of a patch of which it is not known whether it was stored last."""
    is_patched: bool = False
    """The write that made it is a patch of which a log does not show what was stored."""
    at: int | None = None
    """When its write was answered."""
    log: str = ""
    """The log that has this write."""

    def show(self, seen: Observation, *, is_shown_beside: bool, skew: int) -> Observation:
        """Return a request with the state that it left, if that is known of a patch."""
        if is_shown_beside or not seen.is_stored:
            return seen
        after = self._apply(seen)
        if after is None:
            if not (self.is_patched and seen.act is Act.UPDATED and isinstance(seen.object, Lease)):
                return seen
            is_unsure = self._may_come_before(seen, seen.object, TOLERANCE)
            return replace(seen, is_order_unsure=True) if is_unsure else seen
        if self.lease is not None and self.lease.spec == after.spec and has_managed_fields(self.lease):
            return seen  # what it did to the stamps, which date the renewal, is not shown
        is_comparable = self.is_patched and not skew and seen.log_path == self.log
        is_unsure = seen.took > _LONGEST or self._may_come_before(seen, after, 0 if is_comparable else TOLERANCE)
        return seen if is_unsure else replace(seen, object=after)

    def note(self, seen: Observation, present: Lease | None) -> None:
        """Take in what a request left; `present` is the latest state that is known after it."""
        if seen.act is Act.READ or seen.is_dry_run or seen.is_beside_spec:
            return
        if not seen.is_stored:
            is_unknown = seen.answer is not None and seen.answer.code >= HTTPStatus.INTERNAL_SERVER_ERROR
            self.lease = None if is_unknown else self.lease
            return
        self.is_patched = seen.spec_changes is not None
        self.is_partial = self.is_patched and (self.lease is None or self.is_partial)
        self.is_hidden = not isinstance(seen.object, Lease)
        if seen.is_deletion:
            self.lease = None
        else:
            self.lease = self._apply(seen) if self.is_hidden else present
        self.at, self.log = seen.at, seen.log_path

    def _apply(self, seen: Observation) -> Lease | None:
        """Return the state that a patch leaves; None if that is not known."""
        is_moved = seen.at is not None and self.at is not None and seen.at < self.at
        # One that comes after later writes, by what these replaced, may have changed nothing before them.
        if seen.spec_changes is None or seen.object is not None or is_moved:
            return None
        spec = patch_spec(self.lease.spec if self.lease else None, seen.spec_changes)
        if spec is None:
            return None
        before = self.lease.metadata if self.lease else ObjectMeta(name=seen.name, namespace=seen.namespace)
        # The API server's version and stamps of it are not shown.
        return Lease(metadata=replace(before, resource_version=None, managed_fields=NULL), spec=spec)

    def _may_come_before(self, seen: Observation, after: Lease, margin: int) -> bool:
        """Return whether a write may have been stored before the latest one, which named another holder.

        A patch need not name the state that it replaces, so of two at one time either may be stored last. By `margin`,
        clocks of the API servers that answered them may differ.
        """
        if self.at is None or seen.at is None:
            return False
        is_same = self.lease is not None and self.lease.spec.holder_identity == after.spec.holder_identity
        return not is_same and seen.at - seen.took <= self.at + margin
