"""Metadata: what may not change, and what must be well-formed."""

import pytest

from tests.factories import Document, Tweak, changed, drop, make_review, put
from tests.rules.findings import (
    FORBIDDEN,
    INVALID,
    REQUIRED,
    TOO_LONG,
    created,
    field_errors,
    named,
    printed,
    update,
)
from webhook.admission.rules.answer_limits import MAX_FINDINGS

UID, CREATED, DELETED = "metadata.uid", "metadata.creationTimestamp", "metadata.deletionTimestamp"
LABELS, ANNOTATIONS, OWNERS = "metadata.labels", "metadata.annotations", "metadata.ownerReferences"
FINALIZERS, GENERATION = "metadata.finalizers", "metadata.generation"
GRACE, VERSION = "metadata.deletionGracePeriodSeconds", "metadata.resourceVersion"
EARLIER = "2024-01-02T03:04:05Z"
ZERO_TIME = "0001-01-01T00:00:00Z"
NODE = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}


@pytest.mark.parametrize(
    "review",
    [
        pytest.param(update(drop(UID)), id="uid: left out"),
        pytest.param(update(put(CREATED, EARLIER)), id="creationTimestamp: changed, so the old one is kept"),
        pytest.param(update(drop(CREATED)), id="creationTimestamp: left out"),
        pytest.param(update(put(CREATED, ZERO_TIME), old=(drop(CREATED),)), id="creationTimestamp: the zero time"),
        pytest.param(update(put(DELETED, "2024-01-02T04:04:05Z"), old=(put(DELETED, EARLIER),)), id="deleted: moved"),
        pytest.param(update(drop(DELETED), old=(put(DELETED, EARLIER),)), id="deletionTimestamp: left out"),
        pytest.param(update(drop(GRACE), old=(put(GRACE, 30),)), id="deletionGracePeriodSeconds: left out"),
        pytest.param(update(old=(put(GRACE, 30),)), id="deletionGracePeriodSeconds: kept"),
        pytest.param(update(put(GENERATION, 1), old=(put(GENERATION, 2),)), id="generation: lowered, so kept"),
        pytest.param(update(put(GENERATION, -1)), id="generation: negative, so the old one is kept"),
        pytest.param(update(drop("metadata.namespace")), id="namespace: left out"),
    ],
)
def test_what_the_api_server_puts_back_is_no_change(review: Document) -> None:
    review["request"]["namespace"] = "shop"
    assert field_errors(review) == []


@pytest.mark.parametrize(
    ("review", "field"),
    [
        pytest.param(update(named("other")), "metadata.name", id="name"),
        pytest.param(update(put("metadata.namespace", "other")), "metadata.namespace", id="namespace"),
        pytest.param(update(put(UID, "ffffffff")), UID, id="uid"),
        pytest.param(update(put(UID, "ffffffff"), old=(drop(UID),)), UID, id="uid where the old object has none"),
        pytest.param(update(put(CREATED, EARLIER), old=(drop(CREATED),)), CREATED, id="creationTimestamp introduced"),
        pytest.param(update(put(DELETED, EARLIER)), DELETED, id="deletionTimestamp introduced"),
        pytest.param(update(put(DELETED, None), old=(put(DELETED, ZERO_TIME),)), DELETED, id="a zero time removed"),
    ],
)
def test_what_may_not_change_is_named(review: Document, field: str) -> None:
    assert field_errors(review) == [("metadata-immutable", INVALID, field)]


def test_a_deletion_timestamp_is_an_instant_not_a_text() -> None:
    same = update(put(DELETED, "0001-01-01T01:00:00+01:00"), old=(put(DELETED, ZERO_TIME),))
    assert field_errors(same) == []


def test_names_that_are_lost_are_changed_names() -> None:
    review = changed(update(drop("metadata.name"), drop("metadata.namespace")), put("request.namespace", ""))
    assert field_errors(review) == [
        ("metadata-immutable", INVALID, "metadata.name"),
        ("metadata-immutable", INVALID, "metadata.namespace"),
        ("object-metadata", REQUIRED, "metadata.name"),
        ("object-metadata", REQUIRED, "metadata.namespace"),
    ]


def well_formed(*tweaks: Tweak) -> list[Document]:
    """The same metadata created, written again and left as it was."""
    return [created(*tweaks), update(*tweaks), update(old=tweaks)]


@pytest.mark.parametrize(
    "tweak",
    [
        pytest.param(put(LABELS, {"app": "x", "example.com/Tier_1": "", "empty": None}), id="labels"),
        pytest.param(put(LABELS, {f"{'a.' * 100}b/{'c' * 63}": "d" * 63}), id="long labels"),
        pytest.param(put(ANNOTATIONS, {"EXAMPLE.com/Any": "\n" * 999, "\u0130": None}), id="annotations"),
        pytest.param(put(ANNOTATIONS, {"a": "x" * (256 * 1024 - 1)}), id="annotations of 256 KiB"),
        pytest.param(put(OWNERS, [NODE]), id="an owner"),
        pytest.param(put(OWNERS, [NODE, {**NODE, "controller": True, "apiVersion": "apps/v1"}]), id="one controller"),
        pytest.param(put(OWNERS, [{**NODE, "apiVersion": "events.k8s.io/v1", "kind": "Event"}]), id="another Event"),
        pytest.param(put(FINALIZERS, ["example.com/Keep", "orphan"]), id="finalizers"),
        pytest.param(put(GENERATION, 0), id="generation 0"),
    ],
)
def test_well_formed_metadata_are_left_alone(tweak: Tweak) -> None:
    for review in well_formed(tweak):
        assert field_errors(review) == []


@pytest.mark.parametrize("field", [pytest.param(LABELS, id="labels"), pytest.param(ANNOTATIONS, id="annotations")])
def test_the_order_of_findings_does_not_follow_that_of_the_keys(field: str) -> None:
    keys = [f"a b{number:03d}" for number in range(MAX_FINDINGS + 1)]
    there = printed(created(put(field, dict.fromkeys(keys, ""))))
    assert len(there) == MAX_FINDINGS
    assert printed(created(put(field, dict.fromkeys(reversed(keys), "")))) == there


@pytest.mark.parametrize(
    ("tweak", "field"),
    [
        pytest.param(put(LABELS, {"a b": ""}), LABELS, id="a label's key"),
        pytest.param(put(LABELS, {"app": "a b"}), LABELS, id="a label's value"),
        pytest.param(put(ANNOTATIONS, {"a b": ""}), ANNOTATIONS, id="an annotation's key"),
        pytest.param(put(OWNERS, [{**NODE, "apiVersion": ""}]), f"{OWNERS}.apiVersion", id="owner without version"),
        pytest.param(put(OWNERS, [{**NODE, "apiVersion": "a/b/c"}]), f"{OWNERS}.apiVersion", id="owner of a/b/c"),
        pytest.param(put(OWNERS, [{**NODE, "kind": ""}]), f"{OWNERS}.kind", id="owner without kind"),
        pytest.param(put(OWNERS, [{**NODE, "name": None}]), f"{OWNERS}.name", id="owner without name"),
        pytest.param(put(OWNERS, [{**NODE, "uid": ""}]), f"{OWNERS}.uid", id="owner without uid"),
        pytest.param(put(OWNERS, [{**NODE, "kind": "Event"}]), OWNERS, id="an Event as owner"),
        pytest.param(put(OWNERS, [{**NODE, "apiVersion": "/v1", "kind": "Event"}]), OWNERS, id="an Event of /v1"),
        pytest.param(put(OWNERS, [{**NODE, "controller": True}] * 2), OWNERS, id="two controllers"),
        pytest.param(put(FINALIZERS, ["a b"]), FINALIZERS, id="a finalizer's name"),
        pytest.param(put(FINALIZERS, ["orphan", "foregroundDeletion"]), FINALIZERS, id="two ways of deletion"),
    ],
)
def test_malformed_metadata_are_named_without_ratchet(tweak: Tweak, field: str) -> None:
    for review in well_formed(tweak):
        assert field_errors(review) == [("object-metadata", INVALID, field)]


def test_an_owner_of_nothing_lacks_everything() -> None:
    fields = [f"{OWNERS}.{key}" for key in ("apiVersion", "kind", "name", "uid")]
    assert field_errors(created(put(OWNERS, [None]))) == [("object-metadata", INVALID, field) for field in fields]


def test_a_finalizer_of_nothing_lacks_a_name() -> None:
    assert field_errors(created(put(FINALIZERS, [None]))) == [("object-metadata", INVALID, FINALIZERS)] * 2


@pytest.mark.parametrize(
    ("review", "field"),
    [
        pytest.param(update(drop(VERSION)), VERSION, id="UPDATE without resourceVersion"),
        pytest.param(update(put(VERSION, "")), VERSION, id="UPDATE with an empty resourceVersion"),
        pytest.param(update(put(GRACE, 31), old=(put(GRACE, 30),)), GRACE, id="a changed grace period"),
        pytest.param(update(put(GRACE, 0)), GRACE, id="an introduced grace period"),
        pytest.param(created(put(GENERATION, -1)), GENERATION, id="CREATE with a negative generation"),
        pytest.param(update(old=(put(GENERATION, -1),)), GENERATION, id="a stored negative generation"),
        pytest.param(created(put(CREATED, "soon")), CREATED, id="a creationTimestamp that is not a time"),
        pytest.param(update(put(CREATED, "soon")), CREATED, id="an UPDATE with such a creationTimestamp"),
        pytest.param(created(put(DELETED, "2024-02-30T00:00:00Z")), DELETED, id="a deletionTimestamp in February 30"),
        pytest.param(update(old=(named("a/b"),)), "metadata.name", id="a stored name with a slash"),
        pytest.param(update(put("metadata.generateName", "%")), "metadata.generateName", id="a generateName with %"),
        pytest.param(update(old=(put("metadata.namespace", "A"),)), "metadata.namespace", id="a stored namespace"),
    ],
)
def test_other_malformed_metadata_are_named(review: Document, field: str) -> None:
    assert field_errors(review) == [("object-metadata", INVALID, field)]


def test_annotations_have_a_size() -> None:
    assert field_errors(created(put(ANNOTATIONS, {"a": "x" * (256 * 1024)}))) == [
        ("object-metadata", TOO_LONG, ANNOTATIONS)
    ]


def test_a_deleted_object_takes_no_new_finalizers() -> None:
    leaving = (put(DELETED, EARLIER), put(FINALIZERS, ["a/b", "c/d"]))
    assert field_errors(update(put(FINALIZERS, ["c/d"]), old=leaving)) == []
    assert field_errors(update(put(FINALIZERS, ["c/d", "e/f"]), old=leaving)) == [
        ("object-metadata", FORBIDDEN, FINALIZERS)
    ]
    assert field_errors(update(put(FINALIZERS, ["e/f"]), old=(put(DELETED, EARLIER),))) == [
        ("object-metadata", FORBIDDEN, FINALIZERS)
    ]


def test_a_time_that_was_unreadable_before_is_not_this_writes_fault() -> None:
    assert field_errors(update(put(UID, "ffffffff"), old=(put(CREATED, "soon"), put(DELETED, "soon")))) == [
        ("metadata-immutable", INVALID, UID)
    ]


def test_the_words_are_those_of_the_api_server() -> None:
    wrong = [
        put(LABELS, {"a": "-"}),
        put(ANNOTATIONS, {"a": "x" * (256 * 1024)}),
        put(
            OWNERS,
            [{**NODE, "apiVersion": "", "uid": "", "controller": True}, {**NODE, "name": "m", "controller": True}],
        ),
        put(FINALIZERS, ["orphan", "foregroundDeletion", "z/z"]),
        drop(VERSION),
        put(GRACE, 1),
    ]
    old = (put(DELETED, EARLIER), put(GENERATION, -1))
    assert printed(update(*wrong, put(UID, "ffffffff"), old=old)) == [
        'metadata.uid: Invalid value: "ffffffff": field is immutable',
        'metadata.resourceVersion: Invalid value: "": must be specified for an update',
        "metadata.deletionGracePeriodSeconds: Invalid value: 1: field is immutable",
        "metadata.generation: Invalid value: -1: must be greater than or equal to 0",
        (
            'metadata.labels: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric '
            "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
            "'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
        ),
        "metadata.annotations: Too long: may not be more than 262144 bytes",
        'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty',
        'metadata.ownerReferences.uid: Invalid value: "": must not be empty',
        (
            'metadata.ownerReferences: Invalid value: "Node/m": Only one reference can have Controller set to true. '
            'Found "true" in references for Node/n and Node/m'
        ),
        (
            'metadata.finalizers: Invalid value: ["orphan", "foregroundDeletion", "z/z"]: finalizer orphan and '
            "foregroundDeletion cannot be both set"
        ),
        (
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new "
            'finalizers []string{"foregroundDeletion", "orphan", "z/z"}'
        ),
    ]


def test_an_event_may_not_own() -> None:
    assert printed(created(put(OWNERS, [{**NODE, "kind": "Event"}]))) == [
        'metadata.ownerReferences: Invalid value: "Event/n": /v1, Kind=Event is disallowed from being an owner'
    ]


def test_a_deletion_is_not_evaluated() -> None:
    assert field_errors(make_review(old=created(put(LABELS, {"a b": ""}))["request"]["object"])) == []
