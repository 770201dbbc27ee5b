"""One stored object as the checks see it, and the webhook's own rules that need no second state to compare with."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from webhook.api.managed_fields import Entry
from webhook.api.objects import Lease, LeaseCandidate, LeaseSpec
from webhook.api.request import GROUP, AdmissionRequest, Operation, Resource, cached
from webhook.findings import Finding, ObjectName, Severity, filled
from webhook.history.status import LeaseStatus, status_of
from webhook.rules.change import (
    IDENTITY_LABEL,
    KUBE_SYSTEM,
    NODE_LEASES,
    CandidateChange,
    LeaseChange,
    change_made_by,
)
from webhook.rules.registry import RULES
from webhook.rules.rule import Mode, Rule

STORED_RULES: Final[dict[str, Rule]] = {
    id_: rule for id_, rule in RULES.items() if rule.texts.stored and Operation.CREATE in rule.operations
}
"""Rules that a stored object alone can break."""

_BY_RESOURCE: Final = {
    resource.value: tuple(rule for rule in STORED_RULES.values() if resource in rule.resources) for resource in Resource
}


class Subject(Struct, frozen=True, dict=True):
    """A Lease or LeaseCandidate; `now` in microseconds since 1970.

    `interval` is the seconds between renewals, None if they were not seen. `standing` is its state, if a history knows
    more than the object. `seen_until` is the end of an input that shows more than happened until `now`.
    """

    object: Lease | LeaseCandidate
    namespace: str
    name: str
    now: int
    interval: float | None = None
    standing: LeaseStatus | None = None
    seen_until: int = 0
    source: str = ""

    @property
    def kind(self) -> str:
        """`Lease` or `LeaseCandidate`."""
        return "Lease" if isinstance(self.object, Lease) else "LeaseCandidate"

    @cached
    def change(self) -> LeaseChange | CandidateChange:
        """The object as rules see it: as if it were being created."""
        request = AdmissionRequest(
            uid="stored",
            operation=Operation.CREATE,
            resource=f"{self.kind.lower()}s",
            kind=self.kind,
            version=(self.object.api_version or "").partition("/")[2],
            group=GROUP,
            namespace=self.namespace,
            name=self.name,
            new=self.object,
        )
        return change_made_by(request, self.now)

    @property
    def entries(self) -> Sequence[Entry]:
        """Entries of managedFields."""
        return self.change.new_entries

    @property
    def lease(self) -> LeaseSpec:
        """The spec of a Lease."""
        assert isinstance(self.object, Lease)
        return self.object.spec

    @cached
    def status(self) -> LeaseStatus:
        """The state of a Lease."""
        assert isinstance(self.object, Lease)
        return self.standing or status_of(self.object, self.entries, self.now)

    @property
    def is_heartbeat(self) -> bool:
        """True if it shows that a node or an API server runs: no one else would ever take such a lease."""
        return self.namespace == NODE_LEASES or self.is_apiserver_identity

    @property
    def is_apiserver_identity(self) -> bool:
        """True if it is the identity of an API server."""
        labels = self.object.metadata.labels or {}
        return self.namespace == KUBE_SYSTEM and IDENTITY_LABEL in labels

    def finding(self, check: str, severity: Severity, message: str, fix: str) -> Finding:
        """Return a finding about this object; its names are filled into the fix, see `filled`."""
        command = filled(fix, self.namespace, self.name)
        subject = ObjectName(self.kind, self.namespace, self.name)
        return Finding(check, severity, message, command, self.source, subject)


def broken_rules(subject: Subject) -> Iterator[Finding]:
    """Yield what the rules find in a stored object."""
    change = subject.change
    standing = subject.status if isinstance(subject.object, Lease) else None
    block = standing.block if standing else None
    knows_clock = standing is not None and standing.ahead is not None
    for rule in _BY_RESOURCE[change.request.resource]:
        if block and block.rule == rule.id:
            continue
        if rule.id == "renew-time-in-future" and knows_clock:
            continue  # the check holder-clock reports it, measured by the API server's clock
        for found in rule.check(change):
            severity = Severity.ERROR if found.tier is Mode.DENY else Severity.WARNING
            yield subject.finding(rule.id, severity, str(found.error), rule.texts.stored)
