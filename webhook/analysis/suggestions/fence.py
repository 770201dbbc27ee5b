"""A fence suggested from the audit log of an API server: what the leader wrote, and its followers did not."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field

from webhook.admission.policy.fences import FencedResource, find_reason_not_to_fence, read_resource
from webhook.admission.policy.schema import FENCED_OPERATIONS, PolicyError
from webhook.analysis.inputs.audit_event import AuditEvent, decode_event
from webhook.analysis.inputs.documents import Document
from webhook.kubernetes.request import GROUP
from webhook.text.quoting import escape
from webhook.text.yaml_writer import write_scalar

_OPERATION_OF_VERB: Final[Mapping[str, str]] = {
    "create": "CREATE",
    "update": "UPDATE",
    "patch": "UPDATE",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
"""The verbs of audit events that write. A patch that is a server-side apply may create as well."""

_OWN_STATE: Final = {
    FencedResource("", "pods", "status"): "followers report the conditions of their own pods",
    FencedResource("", "nodes", "status"): "every node agent reports the state of its own node",
}


class Suggestion(Struct):
    """The result: evidence for each resource, and why others are left out."""

    evidence: dict[FencedResource, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def find_writes_by(documents: Iterable[Document], username: str) -> list[AuditEvent]:
    """Return the stored writes of one user, oldest first; what is not an audit event is skipped."""
    found = []
    for document in documents:
        if document.kind != "Event" or not document.api_version.startswith("audit.k8s.io/"):
            continue
        try:
            event = decode_event(document.text)
        except (ValueError, RecursionError):
            continue
        is_stored = event.stage == "ResponseComplete" and 200 <= event.response_status.code < 300
        if event.user.username == username and event.verb in _OPERATION_OF_VERB and is_stored:
            found.append(event)
    return sorted(found, key=lambda event: event.request_received_timestamp)


def find_leases(events: Iterable[AuditEvent]) -> list[str]:
    """Return the leases that were written, as namespace/name, the most often written first."""
    counts = Counter(f"{event.object_ref.namespace}/{event.object_ref.name}" for event in events if _is_lease(event))
    return [lease for lease, _ in counts.most_common()]


def suggest_fence(events: Iterable[AuditEvent], lease: str) -> Suggestion:
    """Return what only the leader wrote. The leader is the pod whose write of the lease was stored last.

    Who led before the first write of the lease is not known, so writes before it are left out.
    """
    leader = ""
    operations: dict[FencedResource, set[str]] = {}
    leading: dict[FencedResource, Counter[str]] = {}
    following: dict[FencedResource, Counter[str]] = {}
    for event in events:
        reference = event.object_ref
        if _is_lease(event) and f"{reference.namespace}/{reference.name}" == lease:
            leader = event.pod
        if leader:
            resource = FencedResource(reference.api_group, reference.resource, reference.subresource)
            operations.setdefault(resource, set()).add(_OPERATION_OF_VERB[event.verb])
            counts = leading if event.pod == leader else following
            counts.setdefault(resource, Counter())[event.pod] += 1
    found = Suggestion()
    for resource, used in operations.items():
        if reason := _find_reason_to_leave_out(resource):
            found.left_out[str(resource)] = reason
        elif others := following.get(resource):
            text = f"written without the lease: {format_tally(others)}; add it if those writes were mistakes"
            found.left_out[str(resource)] = text
        else:
            listed = ", ".join(one for one in FENCED_OPERATIONS if one in used)
            found.evidence[resource] = f"{listed}; {format_tally(leading[resource])} as the leader"
    return found


def format_policy(name: str, lease: str, writer: str, found: Suggestion) -> str:
    """Return an entry of a policy file with comments; names may hold line breaks, but each line stays one line."""
    lines = [
        "fences:",
        f"- name: {write_scalar(name)}",
        f"  lease: {write_scalar(lease)}",
        f"  writers: [{write_scalar(writer)}]",
    ]
    lines += ["  mode: warn    # first; deny once nothing is warned about for a week"]
    lines += ["  # token: true    # with stamps (docs/stamp.md): no old leader writes by a late watch", "  resources:"]
    width = max(len(str(one)) for one in found.evidence)
    lines += [f"  - {one!s:<{width}}  # {found.evidence[one]}" for one in sorted(found.evidence)]
    lines += [f"# left out: {name}: {reason}" for name, reason in sorted(found.left_out.items())]
    return "".join(f"{escape(line.rstrip())}\n" for line in lines)


def _find_reason_to_leave_out(resource: FencedResource) -> str:
    """Return why a fence must not cover this resource although the writer writes it; "" if it may be suggested."""
    if reason := _OWN_STATE.get(resource) or find_reason_not_to_fence(resource):
        return reason
    try:
        read_resource(str(resource), "")
    except PolicyError as error:
        return error.problem
    return ""


def _is_lease(event: AuditEvent) -> bool:
    reference = event.object_ref
    return reference.api_group == GROUP and reference.resource == "leases" and bool(reference.name)


def format_tally(counts: Mapping[str, int]) -> str:
    """Return `3 by op-a, 1 by op-b`, the most frequent first, at most four of them."""
    shown = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    text = ", ".join(f"{number} by {name}" for name, number in shown[:4])
    return text if len(shown) <= 4 else f"{text}, and {len(shown) - 4} more"
