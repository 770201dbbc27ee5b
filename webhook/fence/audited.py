"""A suggestion from the audit log of an API server: what the leader wrote, and its followers did not."""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from webhook.api.request import GROUP
from webhook.fence.suggestion import OPERATION_OF_VERB, Suggestion, operations_in_words, reason_to_leave_out, tally
from webhook.observations.audit_event import AuditEvent
from webhook.policy.fences.resource import FencedResource


def written_by(events: Iterable[Mapping[str, object]], username: str) -> list[AuditEvent]:
    """The stored writes of one user, oldest first; what is not an audit event is skipped."""
    found = []
    for one in events:
        if one.get("kind") != "Event" or not str(one.get("apiVersion")).startswith("audit.k8s.io/"):
            continue
        try:
            event = msgspec.convert(one, AuditEvent, strict=False)
        except msgspec.ValidationError:
            continue
        is_stored = event.stage == "ResponseComplete" and 200 <= event.response_status.code < 300
        if event.user.username == username and event.verb in OPERATION_OF_VERB and is_stored:
            found.append(event)
    return sorted(found, key=lambda event: event.request_received_timestamp)


def leases_of(events: Iterable[AuditEvent]) -> list[str]:
    """The leases that were written, as namespace/name, the most often written first."""
    counts = Counter(f"{event.object_ref.namespace}/{event.object_ref.name}" for event in events if _is_lease(event))
    return [lease for lease, _ in counts.most_common()]


def from_audit(events: Iterable[AuditEvent], lease: str) -> Suggestion:
    """What only the leader wrote. The leader is the pod whose write of the lease was stored last."""
    leader = ""
    verbs: dict[FencedResource, set[str]] = {}
    leading: dict[FencedResource, Counter[str]] = {}
    following: dict[FencedResource, Counter[str]] = {}
    before = 0
    for event in events:
        reference = event.object_ref
        if _is_lease(event) and f"{reference.namespace}/{reference.name}" == lease:
            leader = event.pod
        resource = FencedResource(reference.api_group, reference.resource, reference.subresource)
        verbs.setdefault(resource, set()).add(event.verb)
        if not leader:
            before += 1
        counts = leading if event.pod == leader else following
        if leader:
            counts.setdefault(resource, Counter())[event.pod] += 1
    found = Suggestion()
    for resource, written in verbs.items():
        others = following.get(resource)
        reason = reason_to_leave_out(resource)
        if reason:
            found.left_out[str(resource)] = reason
        elif others:
            found.left_out[str(resource)] = (
                f"written without the lease: {tally(others)}; add it if those writes were mistakes"
            )
        elif resource in leading:
            found.evidence[resource] = f"{operations_in_words(written)}; {tally(leading[resource])} as the leader"
    if before:
        found.unseen.append(f"who led during the first {before} writes, before the first write of the lease")
    return found


def _is_lease(event: AuditEvent) -> bool:
    reference = event.object_ref
    return reference.api_group == GROUP and reference.resource == "leases" and bool(reference.name)
