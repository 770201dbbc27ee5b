"""A request with typed objects, or with one error for each wrong type."""

import json
from typing import Any

import pytest

from tests.factories import (
    changed,
    drop,
    make_candidate,
    make_lease,
    make_review,
    put,
    to_bytes,
)
from webhook.kubernetes.field import ErrorType
from webhook.kubernetes.objects import Lease, LeaseCandidate
from webhook.kubernetes.request import Operation
from webhook.kubernetes.review import decode

REVIEW = to_bytes(make_review())
UPDATE = make_review(old=make_lease(), new=make_lease())


def test_a_candidate_and_a_deletion() -> None:
    candidate = decode(to_bytes(make_review(new=make_candidate())))
    assert isinstance(candidate.new, LeaseCandidate)
    deletion = decode(to_bytes(make_review(drop("request.name"), old=make_lease())))
    assert (deletion.operation, deletion.new, deletion.name) == (Operation.DELETE, None, "checkout")


@pytest.mark.parametrize(
    ("version", "foreign"),
    [("v1alpha1", "strategy"), ("v1alpha2", "preferredStrategies"), ("v1beta1", "preferredStrategies")],
)
def test_a_field_of_another_version_is_unknown_whatever_its_type(version: str, foreign: str) -> None:
    candidate = make_candidate(put("apiVersion", f"coordination.k8s.io/{version}"), put(f"spec.{foreign}", 5))
    request = decode(to_bytes(make_review(new=candidate)))
    assert request.object_errors == ()
    assert isinstance(request.new, LeaseCandidate)
    assert request.new.spec.lease_name == "checkout"


def test_what_is_not_evaluated_is_not_decoded() -> None:
    pods = changed(
        make_review(put("request.object", "anything")),
        put("request.kind", {"group": "", "version": "v1", "kind": "Pod"}),
        put("request.resource", {"group": "", "version": "v1", "resource": "pods"}),
    )
    for review in (pods, make_review(put("request.operation", "CONNECT"), put("request.object", None))):
        request = decode(to_bytes(review))
        assert request.contradiction == ""
        assert request.new is None


@pytest.mark.parametrize(
    ("path", "value", "field", "detail"),
    [
        pytest.param(
            "spec.leaseDurationSeconds",
            "15",
            "spec.leaseDurationSeconds",
            "must be an integer, not a string",
            id="a text for a number",
        ),
        pytest.param(
            "spec.leaseDurationSeconds",
            True,
            "spec.leaseDurationSeconds",
            "must be an integer, not a boolean",
            id="a truth for a number",
        ),
        pytest.param(
            "spec.leaseDurationSeconds",
            15.0,
            "spec.leaseDurationSeconds",
            "must be an integer, not a floating-point number",
            id="15.0",
        ),
        pytest.param(
            "spec.leaseDurationSeconds",
            2**31,
            "spec.leaseDurationSeconds",
            "must be at most 2147483647",
            id="2 to the 31st",
        ),
        pytest.param(
            "spec.leaseTransitions",
            2**63,
            "spec.leaseTransitions",
            "must be at most 2147483647",
            id="2 to the 63rd",
        ),
        pytest.param(
            "spec.leaseTransitions",
            10**30,
            "spec.leaseTransitions",
            "must be at most 2147483647",
            id="10 to the 30th",
        ),
        pytest.param(
            "spec.holderIdentity",
            5,
            "spec.holderIdentity",
            "must be a string, not an integer",
            id="a number for a text",
        ),
        pytest.param("spec", [], "spec", "must be an object, not a list", id="a list for spec"),
        pytest.param("metadata", 5, "metadata", "must be an object, not an integer", id="a number for metadata"),
        pytest.param(
            "metadata.labels",
            {"a": 1},
            "metadata.labels[...]",
            "must be a string, not an integer",
            id="a number for a label",
        ),
    ],
)
def test_wrong_types(path: str, value: Any, field: str, detail: str) -> None:
    (error,) = decode(to_bytes(make_review(put(f"request.object.{path}", value)))).object_errors
    assert (error.type, error.field, error.detail) == (ErrorType.TYPE_INVALID, field, detail)


def test_wrong_types_in_the_old_object_and_the_options() -> None:
    request = decode(to_bytes(changed(UPDATE, put("request.oldObject.spec", 5), put("request.options", {"dryRun": 5}))))
    assert [error.field for error in request.object_errors] == ["oldObject.spec", "options.dryRun"]


def test_of_duplicate_keys_the_last_wins() -> None:
    request = decode(REVIEW.replace(b'"leaseTransitions":5', b'"leaseTransitions":5,"leaseTransitions":6'))
    assert isinstance(request.new, Lease)
    assert request.new.spec.lease_transitions == 6
    assert json.loads(REVIEW)["request"]["uid"] == request.uid


def test_another_wrong_type_beside_a_field_of_another_version() -> None:
    candidate = make_candidate(put("spec.preferredStrategies", 5), put("spec.leaseName", 7))
    (error,) = decode(to_bytes(make_review(new=candidate))).object_errors
    assert (error.field, error.detail) == ("spec.leaseName", "must be a string, not an integer")
