"""holderIdentity: its form, and whether it names its writer."""

import pytest

from tests.factories import HOLDER, Document, drop, make_lease, make_review, put
from tests.rules import dates_in_cel, wording
from tests.rules.findings import (
    DENY,
    FORBIDDEN,
    INVALID,
    RIVAL,
    WARN,
    by_user,
    created,
    said,
    take,
    update,
)

HOLDER_FIELD = "spec.holderIdentity"


@pytest.mark.parametrize(
    ("holder", "type_and_tier"),
    [
        pytest.param("node-1 with blanks", None, id="blanks"),
        pytest.param("größe", None, id="letters of other scripts"),
        pytest.param("a" * 512, None, id="512 bytes"),
        pytest.param("a" * 513, WARN, id="513 bytes"),
        pytest.param("é" * 257, WARN, id="514 bytes in 257 characters"),
        pytest.param("a" * 4096, WARN, id="4096 bytes"),
        pytest.param("a" * 4097, DENY, id="4097 bytes"),
        pytest.param("a\nb", DENY, id="a newline"),
        pytest.param("a\x1b[2Jb", DENY, id="an escape"),
        pytest.param("a\ufffd", DENY, id="what the API server puts for bytes that are not UTF-8"),
        pytest.param("a\u202eb", WARN, id="right to left"),
        pytest.param("a\u200bb", WARN, id="zero width"),
        pytest.param("a\u2028b", WARN, id="a line separator"),
        pytest.param("a\u2029b", WARN, id="a paragraph separator"),
        pytest.param("", None, id="no holder"),
        pytest.param(HOLDER, None, id="the same holder"),
    ],
)
def test_holder_identity_shape(holder: str, type_and_tier: object) -> None:
    review = update(take(holder), put("spec.leaseTransitions", 6))
    assert said("holder-identity-shape", review) == (
        {(INVALID, HOLDER_FIELD, type_and_tier)} if type_and_tier else set()
    )


def test_a_strange_holder_that_was_there_may_stay() -> None:
    strange = put(HOLDER_FIELD, "a\nb")
    assert said("holder-identity-shape", update(put("spec.leaseTransitions", 6), old=[strange])) == set()


POD = "checkout-6d5f9c-x2x8p"

DENIED = {(FORBIDDEN, HOLDER_FIELD, DENY)}


@pytest.mark.parametrize(
    ("review", "speaks"),
    [
        pytest.param(make_review(new=make_lease()), False, id="create by the holder's pod"),
        pytest.param(make_review(new=make_lease(take(RIVAL))), True, id="create with another name"),
        pytest.param(make_review(new=make_lease(drop(HOLDER_FIELD))), False, id="create without a holder"),
        pytest.param(update(take(RIVAL)), True, id="steal under another name"),
        pytest.param(update(take(RIVAL), old=[take("")]), True, id="claim under another name"),
        pytest.param(update(take(f"{POD}_2"), old=[take("other")]), False, id="steal under its own name"),
        pytest.param(update(take(RIVAL), review=[by_user("dev")]), False, id="by a user"),
        pytest.param(update(take("")), False, id="release"),
    ],
)
def test_holder_identity_mismatch(review: Document, speaks: bool) -> None:
    assert said("holder-identity-mismatch", review) == (DENIED if speaks else set())


WORDING = [
    pytest.param(
        "holder-identity-shape",
        created(take("a\x07")),
        'spec.holderIdentity: Invalid value: "a\\x07": must not contain control characters',
        'holder "a\\x07" has control characters, which break terminals and logs',
        id="a control character",
    ),
    pytest.param(
        "holder-identity-shape",
        created(take("a\u200b")),
        ('spec.holderIdentity: Invalid value: "a\\u200b": must not contain bidirectional or invisible characters'),
        'holder "a\\u200b" has invisible characters: it may look like another holder',
        id="an invisible character",
    ),
    pytest.param(
        "holder-identity-shape",
        update(wording.EDIT, take("a" * 600)),
        (f'spec.holderIdentity: Invalid value: "{"a" * 128}...": must not be longer than 512 bytes, is 600'),
        "holderIdentity has 600 bytes, more than 512: each log line of the lease repeats it",
        id="a long holder",
    ),
    pytest.param(
        "holder-identity-mismatch",
        created(take("rival")),
        (
            'spec.holderIdentity: Forbidden: holder "rival" must begin with the name of the writing pod, '
            '"checkout-6d5f9c-x2x8p"; set the elector\'s identity to the pod name, or lower the mode of this rule'
        ),
        ('holder "rival" does not begin with its pod\'s name, "checkout-6d5f9c-x2x8p"; use that as identity'),
        id="not the writer's pod",
    ),
]


def is_beyond_cel(request: Document, _field: str) -> bool:
    return dates_in_cel.has_long_holder(request)


WHERE_CEL_DIFFERS = {"holder-identity-mismatch": is_beyond_cel}
