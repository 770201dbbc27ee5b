"""Fences that are proposed from audit logs, and what is left out."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.factories import to_bytes
from webhook.admission.policy.fences import FencedResource
from webhook.admission.policy.parse import parse
from webhook.analysis.inputs.audit_event import AuditEvent
from webhook.analysis.inputs.documents import Document, split_documents
from webhook.analysis.inputs.files import require_readable
from webhook.analysis.suggestions.fence import (
    Suggestion,
    find_leases,
    find_writes_by,
    format_policy,
    format_tally,
    suggest_fence,
)

USER = "system:serviceaccount:shop:operator"


def event(pod: str, resource: str, **changes: Any) -> dict[str, Any]:
    reference = {"resource": resource, "namespace": "shop", "name": "operator"}
    if resource == "leases":
        reference["apiGroup"] = "coordination.k8s.io"
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "stage": "ResponseComplete",
        "verb": "update",
        "user": {"username": USER, "extra": {"authentication.kubernetes.io/pod-name": [pod]} if pod else None},
        "objectRef": reference,
        "responseStatus": {"code": 200},
        "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z",
        **changes,
    }


def written(*events: dict[str, Any]) -> list[AuditEvent]:
    return find_writes_by(readable(events), USER)


def readable(events: Iterable[dict[str, Any]]) -> Iterator[Document]:
    return require_readable(split_documents("audit.log", map(to_bytes, events)))


def audited(*events: dict[str, Any]) -> Suggestion:
    return suggest_fence(written(*events), "shop/operator")


@pytest.mark.parametrize("end", ["\n", "\r", "\x0b", "\x1d", "\x85", "\u2028"])
def test_names_of_resources_and_pods_add_no_line_to_the_policy(end: str) -> None:
    added = f"{end}- name: added{end}  lease: other/other{end}  writers: [other/other]{end}  resources: [secrets]"
    suggestion = audited(*(event(f"a{added}", what) for what in ("leases", "configmaps", f"x{added}")))
    assert (len(suggestion.evidence), len(suggestion.left_out)) == (1, 2)
    text = format_policy("operator", "shop/operator", "shop/operator", suggestion)
    assert "added" not in "".join(line.partition("#")[0] for line in text.splitlines())
    assert len(parse(f"apiVersion: lease-webhook/v1\n{text}").fences) == 1


def test_only_stored_writes_of_the_service_account_count() -> None:
    others = [
        event("a", "pods", verb="get"),
        event("a", "pods", user={"username": "kim"}),
        event("a", "pods", responseStatus={"code": 409}),
        event("a", "pods", stage="RequestReceived"),
        event("a", "pods", kind="Lease"),
        event("a", "pods", verb=5, stage=[]),
    ]
    assert written(*others) == []


def test_what_only_the_leader_wrote_is_proposed() -> None:
    suggestion = audited(
        event("", "configmaps"),
        event("a", "leases"),
        event("a", "configmaps"),
        event("b", "secrets"),
        event("b", "leases"),
        event("b", "configmaps"),
        event("a", "events"),
    )
    assert suggestion.evidence == {FencedResource("", "configmaps"): "UPDATE; 1 by a, 1 by b as the leader"}
    assert suggestion.left_out["secrets"] == ("written without the lease: 1 by b; add it if those writes were mistakes")
    assert "events" in suggestion.left_out


def test_a_resource_that_nobody_wrote_while_somebody_led_is_not_proposed() -> None:
    suggestion = audited(event("a", "configmaps"), event("a", "leases"), event("a", "secrets"))
    assert set(suggestion.evidence) == {FencedResource("", "secrets")}


def test_what_was_written_only_before_anybody_led_is_not_proposed() -> None:
    assert audited(event("a", "configmaps")).evidence == {}


def test_a_token_without_a_pod_is_named() -> None:
    assert AuditEvent().pod == "a token without a pod"


def test_the_lease_that_is_written_most_is_first() -> None:
    events = written(event("a", "leases"), event("a", "pods"))
    assert find_leases(events) == ["shop/operator"]


def test_the_proposal_is_a_policy() -> None:
    suggestion = Suggestion({FencedResource("", "configmaps"): "UPDATE"}, {"events": "why"})
    text = format_policy("shop-operator", "shop/operator", "shop/operator", suggestion)
    assert parse(f"apiVersion: lease-webhook/v1\n{text}").fences[0].namespaces == ()
    assert text.endswith("# left out: events: why\n")


def test_a_tally_is_short() -> None:
    assert format_tally({"a": 1, "b": 3}) == "3 by b, 1 by a"
    assert format_tally(dict.fromkeys("abcdef", 1)) == "1 by a, 1 by b, 1 by c, 1 by d, and 2 more"
