"""The text that kubectl prints for a verdict."""

import pytest

from tests.factories import make_lease, make_review, put, to_bytes
from webhook.admission.verdict import Cause, Verdict
from webhook.browser.kubectl import format_as_kubectl
from webhook.kubernetes.review import decode

LEASE = decode(to_bytes(make_review(put("request.name", "pinned"), new=make_lease(put("metadata.name", "pinned")))))
LONG = Cause("FieldValueInvalid", "Invalid value: 2147483647: too long", "spec.leaseDurationSeconds")
LATE = Cause("FieldValueInvalid", "Invalid value: too late", "spec.renewTime")


@pytest.mark.parametrize(
    ("verdict", "lines"),
    [
        pytest.param(Verdict("u", allowed=True), [], id="an admitted write: nothing"),
        pytest.param(Verdict("u", allowed=True, warnings=("a", "b")), ["Warning: a", "Warning: b"], id="warnings"),
        pytest.param(
            Verdict("u", allowed=False, code=403, reason="Forbidden", message="a"),
            ['Error from server (Forbidden): admission webhook "leases.lease-webhook.svc" denied the request: a'],
            id="forbidden: the message, after the webhook",
        ),
        pytest.param(
            Verdict("u", allowed=False, code=422, reason="Invalid", message="not printed", causes=(LONG, LONG)),
            ['The Lease "pinned" is invalid: spec.leaseDurationSeconds: Invalid value: 2147483647: too long'],
            id="invalid: the cause, once",
        ),
        pytest.param(
            Verdict("u", allowed=False, code=422, reason="Invalid", causes=(LONG, LATE)),
            [
                'The Lease "pinned" is invalid: ',
                "* spec.leaseDurationSeconds: Invalid value: 2147483647: too long",
                "* spec.renewTime: Invalid value: too late",
            ],
            id="invalid in two ways: a list",
        ),
    ],
)
def test_a_verdict_is_shown_as_kubectl_prints_it(verdict: Verdict, lines: list[str]) -> None:
    assert format_as_kubectl(verdict, LEASE).splitlines() == lines
