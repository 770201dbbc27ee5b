"""What is dangerous depends on whether renewals wait."""

from typing import Any

import pytest

from tests.doctor.shipped import NAME, entry
from webhook.api_server.doctor.checks import DANGERS
from webhook.api_server.doctor.documents import WebhookEntry

OPT_IN = {
    "matchExpressions": [
        {"key": NAME, "operator": "NotIn", "values": ["kube-system", "kube-node-lease", "lease-webhook"]},
        {"key": "lease-webhook/fail", "operator": "In", "values": ["closed"]},
    ]
}
CREATES = [
    {
        "apiGroups": ["coordination.k8s.io"],
        "apiVersions": ["v1"],
        "resources": ["leases"],
        "operations": ["CREATE"],
    }
]


def find_dangers(entry: WebhookEntry) -> list[str]:
    return [finding.check for check in DANGERS for finding in check(entry)]


@pytest.mark.parametrize(
    ("changes", "annotations", "expected"),
    [
        pytest.param({}, {}, [], id="as shipped"),
        pytest.param({"timeoutSeconds": 3}, {}, [], id="three seconds, renewals dropped"),
        pytest.param({"timeoutSeconds": 4}, {}, ["timeout-too-long"], id="four seconds"),
        pytest.param({"matchConditions": None}, {}, ["renewals-reviewed"], id="renewals reviewed"),
        pytest.param({"matchConditions": None}, {"lease-webhook/renewals": "reviewed"}, [], id="and it is meant"),
        pytest.param({"matchConditions": None, "namespaceSelector": OPT_IN}, {}, [], id="for namespaces that asked"),
        pytest.param(
            {"matchConditions": None, "timeoutSeconds": 3, "namespaceSelector": OPT_IN},
            {},
            ["timeout-too-long"],
            id="for namespaces that asked, three seconds",
        ),
        pytest.param({"matchConditions": None, "rules": CREATES}, {}, [], id="no rule for updates: nothing to drop"),
        pytest.param({"failurePolicy": "Fail", "namespaceSelector": OPT_IN}, {}, [], id="fail closed when asked"),
        pytest.param({"failurePolicy": "Fail"}, {}, ["fails-closed-everywhere"], id="fail closed everywhere"),
        pytest.param(
            {"failurePolicy": "Fail", "namespaceSelector": OPT_IN, "matchConditions": None},
            {"lease-webhook/renewals": "reviewed"},
            ["renewals-fail-closed"],
            id="fail closed with renewals is never a choice",
        ),
    ],
)
def test_which_dangers_an_outage_of_the_webhook_has(
    changes: dict[str, Any], annotations: dict[str, str], expected: list[str]
) -> None:
    assert find_dangers(entry(annotations, **changes)) == expected
