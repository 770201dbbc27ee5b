"""The options of a write."""

import pytest

from tests.factories import Document, changed, make_candidate, make_lease, make_review, put
from tests.rules.findings import INVALID, NOT_SUPPORTED, TOO_LONG, created, field_errors, printed, update
from webhook.kubernetes.field import ErrorType


def with_options(review: Document, **options: object) -> Document:
    return changed(review, put("request.options", options))


def deleted(**options: object) -> Document:
    return with_options(make_review(old=make_lease()), **options)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="empty"),
        pytest.param({"dryRun": ["All"]}, id="dryRun: All"),
        pytest.param({"dryRun": ["All", "All"]}, id="dryRun: All twice"),
        pytest.param({"dryRun": []}, id="dryRun: an empty list"),
        pytest.param({"fieldManager": "k\N{LATIN SMALL LETTER E WITH ACUTE}ctl edit"}, id="fieldManager: letters"),
        pytest.param({"fieldManager": "m" * 128}, id="fieldManager: 128 bytes"),
        pytest.param({"fieldManager": "m\U0003fffd"}, id="fieldManager: a character of a Unicode to come"),
        pytest.param({"fieldManager": "", "fieldValidation": ""}, id="empty texts"),
        *(
            pytest.param({"fieldValidation": word}, id=f"fieldValidation: {word}")
            for word in ("Ignore", "Warn", "Strict")
        ),
    ],
)
def test_legal_options_are_left_alone(options: dict[str, object]) -> None:
    for review in (created(), update(), make_review(new=make_candidate())):
        assert field_errors(with_options(review, **options)) == []


@pytest.mark.parametrize(
    ("options", "error", "field"),
    [
        pytest.param({"dryRun": ["Some"]}, NOT_SUPPORTED, "dryRun", id="dryRun: Some"),
        pytest.param({"dryRun": ["All", ""]}, NOT_SUPPORTED, "dryRun", id="dryRun: All and nothing"),
        pytest.param({"fieldManager": "m" * 129}, TOO_LONG, "fieldManager", id="fieldManager: 129 bytes"),
        pytest.param(
            {"fieldManager": "\u00e9" * 65}, TOO_LONG, "fieldManager", id="fieldManager: 65 letters, 130 bytes"
        ),
        pytest.param({"fieldManager": "a\tb"}, INVALID, "fieldManager", id="fieldManager: a tab"),
        pytest.param({"fieldValidation": "strict"}, NOT_SUPPORTED, "fieldValidation", id="fieldValidation: lower case"),
    ],
)
def test_illegal_options_of_any_write_are_named(options: dict[str, object], error: ErrorType, field: str) -> None:
    for review in (created(), update(), make_review(new=make_candidate()), deleted()):
        assert field_errors(with_options(review, **options)) == [("request-options", error, field)]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"gracePeriodSeconds": 0}, id="gracePeriodSeconds: zero"),
        pytest.param({"propagationPolicy": "Foreground"}, id="propagationPolicy: Foreground"),
        pytest.param({"propagationPolicy": "Background"}, id="propagationPolicy: Background"),
        pytest.param({"propagationPolicy": "Orphan"}, id="propagationPolicy: Orphan"),
        pytest.param({"orphanDependents": True}, id="orphanDependents alone"),
        pytest.param({"preconditions": {"uid": "u", "resourceVersion": "7"}}, id="preconditions"),
        pytest.param({"preconditions": {"uid": None}}, id="preconditions: null"),
    ],
)
def test_legal_options_of_a_deletion_are_left_alone(options: dict[str, object]) -> None:
    assert field_errors(deleted(**options)) == []


@pytest.mark.parametrize(
    ("options", "error", "field"),
    [
        pytest.param({"gracePeriodSeconds": -1}, INVALID, "gracePeriodSeconds", id="gracePeriodSeconds: negative"),
        pytest.param({"propagationPolicy": ""}, NOT_SUPPORTED, "propagationPolicy", id="propagationPolicy: empty"),
        pytest.param(
            {"propagationPolicy": "Orphan", "orphanDependents": False},
            INVALID,
            "propagationPolicy",
            id="propagationPolicy beside orphanDependents",
        ),
        pytest.param({"preconditions": {"uid": ""}}, INVALID, "preconditions.uid", id="preconditions: an empty uid"),
        pytest.param(
            {"preconditions": {"resourceVersion": "7.0"}},
            INVALID,
            "preconditions.resourceVersion",
            id="preconditions: no number",
        ),
    ],
)
def test_illegal_options_of_a_deletion_are_named(options: dict[str, object], error: ErrorType, field: str) -> None:
    assert field_errors(deleted(**options)) == [("request-options", error, field)]


def test_the_words_are_those_of_the_api_server() -> None:
    wrong = {
        "dryRun": ["Some", "All"],
        "fieldManager": "m" * 128 + "\u00e9\u200b",
        "fieldValidation": "x",
        "gracePeriodSeconds": -1,
        "propagationPolicy": "x",
        "orphanDependents": True,
        "preconditions": {"uid": "", "resourceVersion": "x"},
    }
    assert printed(deleted(**wrong)) == [
        'dryRun: Unsupported value: "Some, All": supported values: "All"',
        "fieldManager: Too long: may not be more than 128 bytes",
        f'fieldManager: Invalid value: "{"m" * 128}...": invalid character U+200B (at position 130)',
        'fieldValidation: Unsupported value: "x": supported values: "", "Ignore", "Strict", "Warn"',
        "gracePeriodSeconds: Invalid value: -1: must be greater than or equal to 0",
        'propagationPolicy: Invalid value: "x": orphanDependents and deletionPropagation cannot be both set',
        'propagationPolicy: Unsupported value: "x": supported values: "Foreground", "Background", "Orphan", "nil"',
        'preconditions.uid: Invalid value: "": must not be empty',
        'preconditions.resourceVersion: Invalid value: "x": must be a decimal number',
    ]
