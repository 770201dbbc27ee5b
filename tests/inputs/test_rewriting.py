"""The spec that mutating webhooks leave of a request, as the annotations of an audit log show it."""

import json

import pytest
from msgspec import Raw

from webhook.analysis.inputs.rewriting import find_patched_spec

MUTATION, PATCH = "mutation.webhook.admission.k8s.io/", "patch.webhook.admission.k8s.io/"
CALL = "round_0_index_0"
ASKED = {"holderIdentity": "db-1", "leaseDurationSeconds": 15}


def annotate(*patch: object, call: str = CALL) -> dict[str, str]:
    """Annotations of one webhook, which changed something."""
    mutation = {"configuration": "defaults", "webhook": "defaults.vendor.example", "mutated": True}
    return {
        f"{MUTATION}{call}": json.dumps(mutation, separators=(",", ":")),
        f"{PATCH}{call}": json.dumps({"webhook": "defaults.vendor.example", "patch": patch}),
    }


@pytest.mark.parametrize(
    ("operation", "stored"),
    [
        ({"op": "replace", "path": "/spec/holderIdentity", "value": "db-0"}, ASKED | {"holderIdentity": "db-0"}),
        ({"op": "add", "path": "/spec/strategy", "value": "x"}, ASKED | {"strategy": "x"}),
        ({"op": "remove", "path": "/spec/holderIdentity"}, {"leaseDurationSeconds": 15}),
        ({"op": "replace", "path": "/spec", "value": {"holderIdentity": "db-0"}}, {"holderIdentity": "db-0"}),
        ({"op": "add", "path": "/metadata/labels/a", "value": "b"}, ASKED),
        ({"op": "move", "path": "/spec/holderIdentity", "from": "/metadata/name"}, None),
        ({"op": "replace", "path": "/spec", "value": 3}, None),
    ],
    ids=["replaced", "added", "removed", "the whole spec", "beside the spec", "moved", "no object"],
)
def test_what_a_webhook_changed_is_what_was_stored(operation: object, stored: object) -> None:
    assert find_patched_spec(Raw(json.dumps({"spec": ASKED}).encode()), annotate(operation)) == stored


def test_a_webhook_whose_call_has_no_place_hides_what_was_stored() -> None:
    annotations = annotate({"op": "remove", "path": "/spec/holderIdentity"}, call="somewhere")
    assert find_patched_spec(Raw(json.dumps({"spec": ASKED}).encode()), annotations) is None
