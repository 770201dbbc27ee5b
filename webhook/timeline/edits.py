"""Writes by which a lease keeps its holder and loses or gains what no renewal touches."""

from webhook.api.objects import LeaseSpec
from webhook.rules.events import is_lease_untouched, is_renewal
from webhook.rules.times import normalized
from webhook.timeline.texts import changed_fields


def edit_of(old: LeaseSpec, new: LeaseSpec) -> str:
    """What was edited, as a clause; "" if the write is a renewal, changes nothing, or changes the holder.

    The event of the rules is that of `webhook.rules.change`; a changed duration counts here too, whoever renews.
    """
    if (old.holder_identity or "") != (new.holder_identity or ""):
        return ""
    before, after = normalized(old.renew_time), normalized(new.renew_time)
    if before == after and is_lease_untouched(old, new):
        return ""
    is_kept = after is not None or before is None
    if is_kept and is_renewal(old, new) and old.lease_duration_seconds == new.lease_duration_seconds:
        return "" if before != after else "acquireTime was changed"
    parts = [changed_fields(old, new), "" if is_kept else "renewTime was removed"]
    return ", ".join(part for part in parts if part)
