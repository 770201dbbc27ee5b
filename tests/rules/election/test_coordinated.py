"""strategy and preferredHolder of a Lease: only the API server may set them."""

import pytest

from tests.factories import drop, make_lease, make_review, put
from tests.rules import wording
from tests.rules.findings import (
    DENY,
    FORBIDDEN,
    said,
    update,
)


@pytest.mark.parametrize(
    ("rule", "name"), [("strategy-writer", "strategy"), ("preferred-holder-writer", "preferredHolder")]
)
@pytest.mark.parametrize(
    ("old", "new", "speaks"),
    [
        pytest.param(None, "a/b", True, id="introduced"),
        pytest.param("a/c", "a/b", True, id="changed"),
        pytest.param("a/b", "a/b", False, id="kept"),
        pytest.param("a/b", None, False, id="cleared"),
        pytest.param("a/b", "", False, id="emptied"),
        pytest.param(None, None, False, id="absent"),
    ],
)
def test_coordinated_fields(rule: str, name: str, old: str | None, new: str | None, speaks: bool) -> None:
    expected = {(FORBIDDEN, f"spec.{name}", DENY)} if speaks else set()
    edit = put("spec.leaseTransitions", 6)
    assert said(rule, update(edit, put(f"spec.{name}", new), old=[put(f"spec.{name}", old)])) == expected
    if old is None:
        assert said(rule, make_review(new=make_lease(put(f"spec.{name}", new)))) == expected


COORDINATED = [put("spec.strategy", "OldestEmulationVersion"), put("spec.preferredHolder", "x")]
WRITES_IT_ALLOWS = {
    "preferred-holder-writer": [update(wording.EDIT, drop("spec.preferredHolder"), old=COORDINATED)],
    "strategy-writer": [update(wording.EDIT, drop("spec.preferredHolder"), drop("spec.strategy"), old=COORDINATED)],
}
WORDING = [
    pytest.param(
        "preferred-holder-writer",
        update(wording.EDIT, put("spec.preferredHolder", "a"), put("spec.strategy", "a/b")),
        (
            "spec.preferredHolder: Forbidden: preferredHolder may be set by the API server's coordinated "
            "leader election only; leave it out, or have the policy exempt this writer"
        ),
        "a client set preferredHolder: a holder that sees it stops renewing",
        id="preferredHolder set",
    ),
    pytest.param(
        "strategy-writer",
        update(wording.EDIT, put("spec.strategy", "a/b")),
        (
            "spec.strategy: Forbidden: strategy may be set by the API server's coordinated leader election "
            "only; leave it out, or have the policy exempt this writer"
        ),
        "a client set strategy: coordinated leader election controls the lease now",
        id="strategy set",
    ),
]
