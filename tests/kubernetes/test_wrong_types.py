"""Every wrong type of an object is named, each once."""

import msgspec
import pytest

from tests.factories import UID, Document, drop, make_candidate, make_lease, make_review, put, to_bytes
from webhook.kubernetes.decoding_errors import split_path
from webhook.kubernetes.objects import Lease, WrongTypesError, decode_object
from webhook.kubernetes.review import decode


def errors(document: Document, **roles: Document) -> list[str]:
    review = make_review(new=document, **roles)
    return [error.field for error in decode(to_bytes(review)).object_errors]


def test_each_field_is_named_with_the_place_inside_it() -> None:
    lease = make_lease(
        put("metadata.labels", {"a": "b", "c": 1}),
        put("metadata.generation", "7"),
        put("metadata.managedFields", 5),
        put("spec.holderIdentity", 1),
        put("spec.leaseDurationSeconds", "15"),
        put("spec.leaseTransitions", 2**31),
        put("unknown", 1),
    )
    assert errors(lease) == [
        "metadata.generation",
        "metadata.labels[...]",
        "spec.holderIdentity",
        "spec.leaseDurationSeconds",
        "spec.leaseTransitions",
    ]


def test_both_objects_are_looked_at() -> None:
    assert errors(make_lease(put("spec", 5)), old=make_lease(put("metadata", []), put("kind", 1))) == [
        "spec",
        "oldObject.kind",
        "oldObject.metadata",
    ]


@pytest.mark.parametrize(("version", "foreign"), [("v1alpha1", "strategy"), ("v1alpha2", "preferredStrategies")])
def test_a_field_of_another_version_is_unknown_whatever_stands_before_it(version: str, foreign: str) -> None:
    candidate = make_candidate(
        put("apiVersion", f"coordination.k8s.io/{version}"), put(f"spec.{foreign}", 5), put("spec.leaseName", 5)
    )
    assert errors(candidate) == ["spec.leaseName"]


def test_what_is_wrong_behind_a_field_of_another_version_is_found() -> None:
    candidate = make_candidate(
        put("apiVersion", "coordination.k8s.io/v1alpha1"), put("spec.strategy", 5), put("spec.preferredStrategies", 5)
    )
    assert errors(candidate) == ["spec.preferredStrategies"]


def test_a_key_that_stands_twice_is_still_an_error() -> None:
    body = to_bytes(make_review(new=make_lease())).replace(b'"spec":{', b'"spec":5,"spec":{')
    assert [error.field for error in decode(body).object_errors] == ["spec"]


def test_the_words_are_those_of_the_decoder() -> None:
    text = to_bytes(make_lease(put("metadata.ownerReferences", [{"uid": UID}, {"uid": 1}]), drop("spec")))
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.json.decode(text, type=Lease)
    with pytest.raises(WrongTypesError) as caught:
        decode_object("Lease", "v1", text)
    assert caught.value.problems == [split_path(refused.value)]
