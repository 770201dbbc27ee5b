"""Names and namespaces of new objects."""

import pytest

from tests.factories import Document, Tweak, changed, drop, put
from tests.rules.findings import INVALID, REQUIRED, candidate_created, created, field_errors, named, printed, update

NAME, BASE, NAMESPACE = "metadata.name", "metadata.generateName", "metadata.namespace"


def generated(base: str) -> Tweak:
    """A name that the API server has yet to draw."""

    def tweak(document: Document) -> None:
        document["metadata"].pop("name")
        document["metadata"]["generateName"] = base

    return tweak


@pytest.mark.parametrize(
    "review",
    [
        pytest.param(created(named("a")), id="one letter"),
        pytest.param(created(named("a.b-c.0")), id="labels with dots"),
        pytest.param(created(named("a" * 253)), id="253 bytes"),
        pytest.param(created(generated("checkout-")), id="generateName that ends in a dash"),
        pytest.param(created(generated("a" * 200)), id="generateName that is cut"),
        pytest.param(created(put(BASE, "checkout-")), id="generateName beside the drawn name"),
        pytest.param(created(drop(NAMESPACE), lambda _: None), id="namespace of the request alone"),
        pytest.param(candidate_created(named("Host_0.a-b")), id="candidate: capitals and underscores"),
        pytest.param(candidate_created(generated("Host_")), id="candidate: generateName"),
        pytest.param(update(old=(named("Not_A_Lease_Name"),)), id="UPDATE of a name that CREATE would refuse"),
    ],
)
def test_a_legal_name_is_left_alone(review: Document) -> None:
    review["request"]["namespace"] = "shop"
    assert field_errors(review) == []


@pytest.mark.parametrize(
    ("review", "fields"),
    [
        pytest.param(created(named("Checkout")), [NAME], id="a capital"),
        pytest.param(created(named("check_out")), [NAME], id="an underscore"),
        pytest.param(created(named("checkout.")), [NAME], id="a dot at the end"),
        pytest.param(created(named("a" * 254)), [NAME], id="254 bytes"),
        pytest.param(created(generated("Check-")), [BASE, NAME], id="generateName with a capital"),
        pytest.param(created(put(BASE, "Check-")), [BASE], id="bad generateName beside a good name"),
        pytest.param(created(generated("a.")), [BASE], id="generateName that only the suffix completes"),
        pytest.param(created(put(NAMESPACE, "Shop")), [NAMESPACE], id="namespace with a capital"),
        pytest.param(created(put(NAMESPACE, "a.b")), [NAMESPACE], id="namespace with a dot"),
        pytest.param(created(put(NAMESPACE, "a" * 64)), [NAMESPACE], id="namespace of 64 bytes"),
        pytest.param(candidate_created(named("a b")), [NAME], id="candidate: a blank"),
        pytest.param(candidate_created(named("..")), [NAME], id="candidate: two dots"),
        pytest.param(candidate_created(named("..a")), [NAME], id="candidate: two dots before a letter"),
        pytest.param(candidate_created(named("a" * 254)), [NAME], id="candidate: 254 bytes"),
    ],
)
def test_an_illegal_name_is_named(review: Document, fields: list[str]) -> None:
    assert field_errors(review) == [("object-name", INVALID, field) for field in fields]


def test_a_name_and_a_namespace_are_required() -> None:
    review = changed(created(drop(NAME), drop(NAMESPACE)), put("request.namespace", ""), put("request.name", ""))
    assert field_errors(review) == [("object-name", REQUIRED, NAME), ("object-name", REQUIRED, NAMESPACE)]
    assert printed(review) == [
        "metadata.name: Required value: name or generateName is required",
        "metadata.namespace: Required value",
    ]


def test_the_words_are_those_of_the_api_server() -> None:
    assert printed(created(named("X"))) == [
        (
            'metadata.name: Invalid value: "X": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric '
            "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex "
            r"used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        )
    ]
