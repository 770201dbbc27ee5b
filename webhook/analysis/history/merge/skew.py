"""By how much the clocks of API servers differ."""

from collections.abc import Iterable, Sequence

from webhook.admission.rules.expiry import date_last_renewal
from webhook.admission.rules.stamps import is_constant
from webhook.analysis.history.merge.dated import DatedItem
from webhook.analysis.inputs.items import InputKind
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import SECOND


def measure_skew(lanes: Iterable[Sequence[DatedItem]], latest: int) -> int:
    """Return what clocks differ by, at least: no earlier write is received after a later one was answered.

    Stamps after `latest`, in microseconds since 1970, are not believed.
    """
    writes, skew = [], 0
    for lane in lanes:
        before, last_stamp = None, None
        for item in lane:
            if not item.revision:
                continue
            # A request that changes nothing is answered with an old resourceVersion.
            if before is not None and _is_renewal_after(before, item):
                if item.is_exact:
                    writes.append((item.revision, item.time - item.observation.took, item.time))
                elif (stamp := _find_stamp(item)) is not None and stamp <= latest:
                    skew = max(skew, (last_stamp or stamp) - stamp - SECOND)
                    last_stamp = stamp
            before = item
    received_last = 0
    for _, received, answered in sorted(writes):
        skew = max(skew, received_last - answered)
        received_last = max(received_last, received)
    return skew


def _find_stamp(item: DatedItem) -> int | None:
    """Return when a renewal of a watch was stamped; None if that is not known.

    The only owner of a renewTime that has changed is stamped with the write, whatever a client sends. That of the next
    write of a lease, which a client makes for what it has read, is not earlier by the same clock.
    """
    seen = item.observation
    owners = [one for one in seen.entries if one.owns_renew_time]
    is_known = seen.input_kind is InputKind.WATCH and len(owners) == 1 and not is_constant(seen.entries)
    return date_last_renewal(seen.entries) if is_known else None


def _is_renewal_after(before: DatedItem, after: DatedItem) -> bool:
    known, shown = before.observation.object, after.observation.object
    return isinstance(shown, Lease) and known is not None and known.spec.renew_time != shown.spec.renew_time
