"""The resources that a fence may name, and the hints for those that it may not."""

from typing import Any

import pytest

from tests.policy.fences.made import refusal


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        pytest.param(
            {"resources": ["*"]},
            "resources[0]: `*` includes the leases, events and access reviews that followers must "
            "write; list resources by name, and each subresource (deployments.apps/status) beside its resource",
            id="everything",
        ),
        pytest.param(
            {"resources": ["leases.coordination.k8s.io"]},
            'resources[0]: "leases.coordination.k8s.io" cannot be fenced: a follower writes the lease to become its '
            "holder, so no takeover would be possible; leave leases out, and protect the lease with a binding",
            id="leases",
        ),
        pytest.param(
            {"resources": ["leasecandidates.coordination.k8s.io"]},
            'resources[0]: "leasecandidates.coordination.k8s.io" cannot be fenced: a candidate is written before it '
            "leads, so no candidate could be elected; leave it out",
            id="candidates",
        ),
        pytest.param(
            {"resources": ["events"]},
            'resources[0]: "events" cannot be fenced: followers write events too, for example during the election; '
            "leave "
            "events out",
            id="events",
        ),
        pytest.param(
            {"resources": ["tokenreviews.authentication.k8s.io"]},
            'resources[0]: "tokenreviews.authentication.k8s.io" cannot be fenced: followers send it to '
            "authenticate and "
            "to authorize, and nothing is stored; leave it out",
            id="token reviews",
        ),
        pytest.param(
            {"resources": ["validatingadmissionpolicies.admissionregistration.k8s.io"]},
            'resources[0]: "validatingadmissionpolicies.admissionregistration.k8s.io" cannot be fenced: the API server '
            "admits it without evaluating any policy; leave it out",
            id="the policies themselves",
        ),
        pytest.param(
            {"resources": ["deployments"]},
            'resources[0]: "deployments" is not a resource of the core group; did you mean "deployments.apps"?',
            id="a group forgotten",
        ),
        pytest.param(
            {"resources": ["statefulset.apps"]},
            'resources[0]: "statefulset" is not a resource of group apps; did you mean "statefulsets.apps"?',
            id="a singular",
        ),
        pytest.param(
            {"resources": ["zzzzzz"]},
            'resources[0]: "zzzzzz" is not a resource of the core group; write the group of a custom '
            "resource after its "
            "name, as in widgets.example.com",
            id="a custom resource without its group",
        ),
        pytest.param(
            {"resources": ["deployments/scale.apps"]},
            'resources[0]: "deployments/scale.apps" is not a resource; write the plural in lower case, its group '
            "and the subresource, as in deployments.apps/scale",
            id="a group behind the subresource",
        ),
        pytest.param(
            {"resources": ["Deployment.apps"]},
            'resources[0]: "Deployment.apps" is not a resource; write the plural in lower case, its group '
            "and the subresource, as in deployments.apps/scale",
            id="a kind",
        ),
        pytest.param(
            {"resources": ["@@"]},
            'resources[0]: "@@" is not a resource; write the plural in lower case, its group '
            "and the subresource, as in "
            "deployments.apps/scale",
            id="anything",
        ),
        pytest.param(
            {"resources": ["pods/stauts"]},
            'resources[0]: "stauts" is not a subresource of pods; did you mean "status"?',
            id="a subresource misspelt",
        ),
    ],
)
def test_what_is_refused(keys: dict[str, Any], words: str) -> None:
    assert refusal(**keys) == words
