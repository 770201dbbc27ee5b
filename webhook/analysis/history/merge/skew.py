"""By how much the clocks of API servers differ."""

from collections.abc import Iterable, Sequence

from webhook.analysis.history.merge.dated import DatedItem
from webhook.kubernetes.objects import Lease


def measure_skew(lanes: Iterable[Sequence[DatedItem]]) -> int:
    """Return what clocks differ by, at least: no earlier write is received after a later one was answered."""
    writes = []
    for lane in lanes:
        before = None
        for item in lane:
            if not item.revision:
                continue
            # A request that changes nothing is answered with an old resourceVersion.
            if item.is_exact and before is not None and _is_renewal_after(before, item):
                writes.append((item.revision, item.time - item.observation.took, item.time))
            before = item
    skew = latest = 0
    for _, received, answered in sorted(writes):
        skew = max(skew, latest - answered)
        latest = max(latest, received)
    return skew


def _is_renewal_after(before: DatedItem, after: DatedItem) -> bool:
    known, shown = before.observation.object, after.observation.object
    return isinstance(shown, Lease) and known is not None and known.spec.renew_time != shown.spec.renew_time
