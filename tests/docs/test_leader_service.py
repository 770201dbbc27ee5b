"""The reconciler of docs/leader-service.md, without a cluster: what it would change."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

FILE = Path(__file__).parents[2] / "docs" / "examples" / "leader_service.py"
NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
LEADS = {"example.com/leader": "true"}


@pytest.fixture(scope="module")
def reconciler() -> dict[str, Any]:
    defined: dict[str, Any] = {"__name__": "leader_service"}
    exec(FILE.read_text(encoding="utf-8"), defined)
    return defined


def lease(**spec: object) -> SimpleNamespace:
    known = {
        "holder_identity": "checkout-0_8c1",
        "lease_duration_seconds": 15,
        "renew_time": NOW - timedelta(seconds=4),
    }
    return SimpleNamespace(spec=SimpleNamespace(**{**known, **spec}))


@pytest.mark.parametrize(
    ("stored", "holder"),
    [
        pytest.param(lease(), "checkout-0_8c1", id="held"),
        pytest.param(lease(renew_time=NOW - timedelta(seconds=15)), "", id="expired, to the second"),
        pytest.param(lease(holder_identity=""), "", id="released"),
        pytest.param(lease(holder_identity=None), "", id="never held"),
        pytest.param(lease(renew_time=None), "", id="never renewed"),
        pytest.param(lease(lease_duration_seconds=None), "", id="without a duration"),
    ],
)
def test_who_holds_the_lease(reconciler: dict[str, Any], stored: SimpleNamespace, holder: str) -> None:
    assert reconciler["holder_of"](stored, NOW) == holder


@pytest.mark.parametrize(
    ("pods", "holder", "expected"),
    [
        pytest.param([("a", {}), ("b", None)], "a_1", [("a", "true")], id="the first leader"),
        pytest.param([("a", LEADS), ("b", {})], "a_1", [], id="nothing has changed"),
        pytest.param([("b", {}), ("a", LEADS)], "b_1", [("a", None), ("b", "true")], id="the old one loses it first"),
        pytest.param([("a", LEADS)], "", [("a", None)], id="no one leads"),
        pytest.param([("a", {}), ("a-1", {})], "a-1_x", [("a-1", "true")], id="a name that begins like another"),
        pytest.param([("a", {})], "a", [("a", "true")], id="the name alone"),
        pytest.param([("a", {})], "d8197e38-48e4", [], id="a holder that names no pod"),
    ],
)
def test_what_is_changed(
    reconciler: dict[str, Any], pods: list[tuple[str, Any]], holder: str, expected: list[tuple[str, Any]]
) -> None:
    assert [*reconciler["changes"](pods, holder)] == expected
