"""One stored object as the checks see it."""

from collections.abc import Sequence

from msgspec import Struct

from webhook.api.managed_fields import Entry
from webhook.api.objects import Lease, LeaseCandidate, LeaseSpec
from webhook.audit.command_words import filled
from webhook.audit.finding import Finding
from webhook.history.standing import Standing
from webhook.reports.model import Severity
from webhook.rules.well_known import IDENTITY_LABEL, KUBE_SYSTEM, NODE_LEASES


class Subject(Struct, frozen=True):
    """A Lease with its state, or a LeaseCandidate without; `now` in microseconds since 1970.

    `interval` is the seconds between renewals, None if they were not seen; `homes` are the namespaces of the service
    accounts that wrote it, as far as that was seen.
    """

    kind: str
    namespace: str
    name: str
    object: Lease | LeaseCandidate
    entries: Sequence[Entry]
    now: int
    standing: Standing | None = None
    interval: float | None = None
    source: str = ""
    homes: frozenset[str] = frozenset()

    @property
    def lease(self) -> LeaseSpec:
        """The spec of a Lease."""
        assert isinstance(self.object, Lease)
        return self.object.spec

    @property
    def stands(self) -> Standing:
        """The state of a Lease."""
        assert self.standing is not None
        return self.standing

    @property
    def is_heartbeat(self) -> bool:
        """Whether it shows that a node or an API server runs: no one else would ever take such a lease."""
        return self.namespace == NODE_LEASES or self.is_apiserver_identity

    @property
    def is_apiserver_identity(self) -> bool:
        """Whether it is the identity of an API server."""
        labels = self.object.metadata.labels or {}
        return self.namespace == KUBE_SYSTEM and IDENTITY_LABEL in labels

    def finding(self, check: str, severity: Severity, message: str, repair: str, lease: str = "") -> Finding:
        """A finding about this object; its names are filled into the repair, see `filled`."""
        command = filled(repair, self.namespace, self.name, lease)
        return Finding(self.kind, self.namespace, self.name, check, severity, message, command, self.source)
