"""Kubernetes Events on leases whose leader was lost, or that were stolen, in the words of `why`."""

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct, field

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.findings.headline import make_headline
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseState
from webhook.analysis.history.stored_leases import Key
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import format_time

COMPONENT: Final = "lease-recorder"
_THEFTS: Final = frozenset({"lease-stolen", "lease-contended"})
LOST: Final = "LeaderLost"
STOLEN: Final = "LeaseStolen"
_MAX_MESSAGE: Final = 1024
"""Bytes that an API server takes."""
_MAX_NAME: Final = 200
"""Characters of a name that is completed by the API server."""


class Notices(Struct):
    """Finds what is new since it last looked; of what was so before, or is seen first, it says nothing."""

    _live: set[Key] = field(default_factory=set)
    """Leases that were held when it last looked."""
    _steals: dict[Key, int] = field(default_factory=dict)

    def find_new(self, histories: ClusterHistory, now: int) -> Iterator[dict[str, Any]]:
        """Yield an Event for each loss and each steal since the last call."""
        self._live.intersection_update(histories.leases)
        known, self._steals = self._steals, {}
        for key, history in histories.leases.items():
            lease, status = history.lease, history.find_status(now)
            self._steals[key] = steals = history.handovers.get(Handover.STOLEN, 0)
            is_new = steals > known.get(key, steals)
            if history.is_deleted:
                self._live.discard(key)
            if lease is None or status is None or history.is_heartbeat:
                continue
            if is_new:
                yield _make_event(histories, history, lease, STOLEN, now)
            if status.state is LeaseState.LIVE:
                self._live.add(key)
            elif key in self._live:
                self._live.discard(key)
                if status.state is LeaseState.EXPIRED:
                    yield _make_event(histories, history, lease, LOST, now)


def _describe_latest_theft(account: Account, now: int) -> str:
    """Return the text of the latest theft, or of a contest that goes on; "" if there is no finding of one."""
    thefts = [one for one in account.findings if isinstance(one, Claim) and one.check in _THEFTS]
    latest = max(thefts, key=lambda one: one.over_since or now, default=None)
    return latest.message if latest is not None else ""


def _make_event(
    histories: ClusterHistory, history: LeaseHistory, lease: Lease, reason: str, now: int
) -> dict[str, Any]:
    account = make_account(histories, history, now)
    stolen = _describe_latest_theft(account, now) if reason == STOLEN else ""
    time = format_time(now)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": history.namespace, "generateName": f"{history.name[:_MAX_NAME].rstrip('.-')}."},
        "involvedObject": {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "namespace": history.namespace,
            "name": history.name,
            "uid": lease.metadata.uid or "",
        },
        "type": "Warning",
        "reason": reason,
        "message": (stolen or make_headline(account)).encode()[:_MAX_MESSAGE].decode(errors="ignore"),
        "source": {"component": COMPONENT},
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }
