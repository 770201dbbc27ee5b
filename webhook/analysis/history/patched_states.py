"""The state that a patch made of the one that is known, where a log has the patch and not what was stored.

An update of which a log has only what was sent is taken for what was stored; so is a patch with all of its changes.
"""

from msgspec.structs import replace

from webhook.admission.rules.expiry import MAX_TOLERANCE
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import is_earlier_renewal
from webhook.analysis.inputs.items import Act, InputKind, Observation
from webhook.analysis.inputs.patches import is_gated, patch_spec
from webhook.kubernetes.request import NULL


def show_patched_state(history: LeaseHistory, seen: Observation) -> Observation:
    """Return an observation of a patch with the state that it made; as it is, if that is not known.

    One that changed nothing left the spec as it was, and stored nothing. Where a watch shows the lease, what a patch
    did change is a state of that. Who gives a free lease a holder, or removes one, need not write what electors do, so
    that is not taken for stored.
    """
    changes, lease = seen.asked_changes, history.lease
    is_patch = seen.act is Act.UPDATED and seen.input_kind is InputKind.AUDIT_LOG and seen.is_stored
    is_hidden = seen.object is None and not (seen.is_beside_spec or seen.problem)
    if changes is None or lease is None or not (is_patch and is_hidden):
        return seen
    if history.is_deleted or history.hidden_since is not None or (seen.at or 0) < history.moment:
        return seen  # which state it found is not known
    if is_gated(changes) and not lease.spec.strategy:
        return seen  # an API server that takes part in no coordinated election drops these fields
    patched = patch_spec(lease.spec, changes)
    if patched is None:
        return seen
    if patched == lease.spec:
        return replace(seen, is_beside_spec=True)
    is_soon = (seen.at or 0) - history.moment <= MAX_TOLERANCE
    if is_soon and (is_earlier_renewal(lease.spec, patched) or _has_just_conflicted(history, seen)):
        return seen  # by clocks of API servers that differ, it may have come before the write that it seems to follow
    if history.continuity.is_shown_beside or bool(patched.holder_identity) != bool(lease.spec.holder_identity):
        return seen
    metadata = replace(lease.metadata, managed_fields=NULL, resource_version="")
    return replace(seen, object=replace(lease, metadata=metadata, spec=patched))


def _has_just_conflicted(history: LeaseHistory, seen: Observation) -> bool:
    """Return whether an update conflicted shortly before, and with no write that the log has: perhaps with this one."""
    last = next((one for one in reversed(history.requests.refusals) if one.has_conflicted), None)
    if last is None or (seen.at or 0) - last.at > MAX_TOLERANCE:
        return False
    writes = (*(one.at for one in history.idle_writes), *(at for at, _ in history.requests.accepted))
    return not any(last.at - MAX_TOLERANCE <= at <= last.at for at in writes)
