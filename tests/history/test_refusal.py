"""What in the API server refused a write, as its message says; messages are those of real API servers."""

import pytest
from msgspec.structs import replace

from webhook.analysis.history.audit_log.refusal import Refusal, RefusedBy
from webhook.analysis.inputs.items import Act, Answer, InputKind, Observation, Place, Writer

RIGHTS = (
    'leases.coordination.k8s.io "db" is forbidden: User "system:serviceaccount:shop:db" cannot update resource '
    '"leases" in API group "coordination.k8s.io" in the namespace "shop"'
)
WEBHOOK = 'admission webhook "leases.lease-webhook.svc" denied the request: spec.holderIdentity: Forbidden: no'
POLICY = (
    "leases.coordination.k8s.io \"db\" is forbidden: ValidatingAdmissionPolicy 'depth' with binding 'depth' denied "
    "request: no"
)

UNAPPLIED = "the server rejected our request due to an error in our request"
"""The answer to a JSON patch whose operation `test` failed."""
APPLY_CONFLICT = 'Apply failed with 1 conflict: conflict with "kubectl-label" using v1: .spec.leaseDurationSeconds'


def observe(code: int, message: str = "", took: int = 0) -> Observation:
    return Observation(
        place=Place("audit.log", 1),
        input_kind=InputKind.AUDIT_LOG,
        act=Act.UPDATED,
        kind="Lease",
        namespace="shop",
        name="db",
        at=10_000_000,
        answer=Answer(code, message, took),
    )


def test_an_answer_without_a_time_is_not_dated() -> None:
    assert Refusal.from_observation(replace(observe(403, RIGHTS), at=None)) is None


def refusal(code: int, message: str = "", took: int = 0) -> Refusal:
    refusal = Refusal.from_observation(observe(code, message, took))
    assert refusal is not None
    return refusal


@pytest.mark.parametrize(
    ("code", "message", "by", "name"),
    [
        (403, RIGHTS, RefusedBy.RIGHTS, ""),
        (401, "Unauthorized", RefusedBy.CREDENTIALS, ""),
        (403, WEBHOOK, RefusedBy.WEBHOOK, "leases.lease-webhook.svc"),
        (403, POLICY, RefusedBy.POLICY, "depth"),
        (422, 'Lease.coordination.k8s.io "db" is invalid', RefusedBy.OTHER, ""),
        (409, APPLY_CONFLICT, RefusedBy.FIELDS, ""),
        (422, f"{POLICY}: {WEBHOOK}", RefusedBy.POLICY, "depth"),
        (422, f"{POLICY}: {RIGHTS}", RefusedBy.POLICY, "depth"),
        (403, f"{WEBHOOK}: {POLICY}", RefusedBy.WEBHOOK, "leases.lease-webhook.svc"),
        (403, f"{RIGHTS}: {WEBHOOK}", RefusedBy.RIGHTS, ""),
        (422, f'Lease.coordination.k8s.io "db" is invalid: spec: Invalid value: "{WEBHOOK}"', RefusedBy.OTHER, ""),
    ],
    ids=[
        "rights",
        "no credentials",
        "webhook",
        "policy",
        "validation",
        "fields of another manager",
        "a policy that quotes a webhook",
        "a policy that quotes an authorizer",
        "a webhook that quotes a policy",
        "an authorizer before a webhook",
        "validation that quotes a webhook",
    ],
)
def test_who_refused(code: int, message: str, by: RefusedBy, name: str) -> None:
    refused = refusal(code, message)
    assert refused.is_denied
    assert not refused.has_failed
    assert not refused.has_conflicted
    assert (refused.by, refused.name) == (by, name)


@pytest.mark.parametrize("code", [404, 409])
def test_what_a_client_expects_is_no_refusal(code: int) -> None:
    assert not refusal(code).is_denied
    assert not refusal(code).has_failed


@pytest.mark.parametrize("code", [429, 500, 503, 504])
def test_what_the_server_could_not_do_has_failed(code: int) -> None:
    assert refusal(code).has_failed
    assert not refusal(code).is_denied


def test_a_client_that_hung_up_at_once_was_not_kept_waiting() -> None:
    message = "Timeout: request did not complete within requested timeout - context canceled"
    assert not refusal(504, message, took=8_000).has_failed
    assert refusal(504, message, took=5_000_000).has_failed


def test_what_was_stored_in_time_is_not_remembered() -> None:
    assert Refusal.from_observation(observe(200)) is None
    assert refusal(200, took=4_000_000).received == 6_000_000


def test_long_messages_are_cut() -> None:
    assert len(refusal(403, "x" * 100_000).message) < 500
    assert refusal(403).writer == Writer()


NOT_ALLOWED = 'leases.coordination.k8s.io "db" is forbidden: User "u" cannot update resource "leases"'


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (WEBHOOK, "spec.holderIdentity: Forbidden: no"),
        (
            'admission webhook "w.example.com" denied the request',
            'admission webhook "w.example.com" denied the request',
        ),
        (POLICY, "no"),
        (f"invalid: {WEBHOOK}", f"invalid: {WEBHOOK}"),
        (f'{NOT_ALLOWED} in API group "coordination.k8s.io" in the namespace "shop"', NOT_ALLOWED),
        (f'{NOT_ALLOWED} in API group "coordination.k8s.io": RBAC: no role', f"{NOT_ALLOWED}: RBAC: no role"),
        ("Unauthorized", "Unauthorized"),
    ],
    ids=["webhook", "webhook without a reason", "policy", "a quoted webhook", "rights", "rights of a cluster", "other"],
)
def test_what_names_say_already_is_not_shown_of_a_message(message: str, shown: str) -> None:
    assert refusal(403, message).shown_message == shown
