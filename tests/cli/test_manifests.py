"""A manifest as a review: its writer, its stamps, and a typo, which the API server would drop without a word."""

import pytest

from tests.factories import Tweak, changed, make_candidate, make_lease, put
from webhook.cli.manifests import MAX_UNKNOWN, Writer, stamped, unknown_fields


@pytest.mark.parametrize(
    ("tweak", "field", "hint"),
    [
        pytest.param(put("spec.leaseDuration", 15), "spec.leaseDuration", "leaseDurationSeconds", id="a short name"),
        pytest.param(put("spec.holderidentity", "a"), "spec.holderidentity", "holderIdentity", id="another case"),
        pytest.param(put("metadata.label", {}), "metadata.label", "labels", id="in metadata"),
        pytest.param(put("status", {}), "status", "", id="a status, which a Lease does not have"),
        pytest.param(put("spec.leaseName", "x"), "spec.leaseName", "", id="a field of the other kind"),
    ],
)
def test_an_unknown_field_of_a_lease(tweak: Tweak, field: str, hint: str) -> None:
    (warning,) = unknown_fields(make_lease(tweak))
    end = f'; did you mean "{hint}"?' if hint else ""
    assert warning == f'unknown field "{field}": the API server drops it, kubectl refuses it{end}'


def test_a_candidate_has_fields_of_its_own() -> None:
    candidate = make_candidate()
    assert unknown_fields(candidate) == ()
    (listed,) = unknown_fields(changed(candidate, put("spec.preferredStrategies", [])))
    assert listed.startswith('unknown field "spec.preferredStrategies"')


def test_what_is_no_object_has_no_fields() -> None:
    assert unknown_fields(make_lease(put("spec", 5), put("metadata", None))) == ()


def test_of_many_mistakes_in_a_document_some_are_named() -> None:
    assert len(unknown_fields(make_lease(put("spec", {f"field{number}": 0 for number in range(99)})))) == MAX_UNKNOWN


@pytest.mark.parametrize(
    ("user", "groups"),
    [
        ("system:serviceaccount:shop:checkout", ["system:serviceaccounts", "system:serviceaccounts:shop"]),
        ("system:node:worker-1", ["system:nodes"]),
        ("ann", []),
    ],
)
def test_a_user_comes_with_the_groups_of_every_authenticator(user: str, groups: list[str]) -> None:
    made = Writer(user, ("more",)).user_info()
    assert made == {"username": user, "groups": ["more", *groups, "system:authenticated"]}


def test_stamps_that_are_there_stay() -> None:
    assert stamped(make_lease(), 0) == make_lease()
