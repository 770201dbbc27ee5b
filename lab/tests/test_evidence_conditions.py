"""The conditions as Python drop a plain renewal, and send it once one more thing changes."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from tests.evidence.conditions import is_sent
from tests.evidence.stored_lease import Entry, Lease

SPEC = '{"f:spec":{"f:holderIdentity":{},"f:renewTime":{}}}'
LABEL = '{"f:metadata":{"f:labels":{"f:a":{}}}}'
OBJECT: dict[str, Any] = {
    "metadata": {"name": "checkout", "labels": {"a": "b"}},
    "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"},
}
OLD = Lease(
    OBJECT,
    (
        Entry("checkout", time="2026-01-01T00:00:00Z", fields=SPEC),
        Entry("tool", time="2025-01-01T00:00:00Z", fields=LABEL),
    ),
)


def make_renewed(change: Callable[[dict[str, Any]], None] = lambda _: None) -> Lease:
    manifest = copy.deepcopy(OBJECT)
    manifest["spec"]["renewTime"] = "2026-01-01T00:00:02.000000Z"
    change(manifest)
    assert OLD.entries is not None
    return Lease(manifest, (replace(OLD.entries[0], time="2026-01-01T00:00:02Z"), OLD.entries[1]))


def make_lease_with_entry(index: int, **changes: str) -> Lease:
    entries = list(make_renewed().entries or ())
    entries[index] = replace(entries[index], **changes)
    return Lease(make_renewed().object, tuple(entries))


def test_plain_renewal_is_not_sent() -> None:
    assert not is_sent(OLD, make_renewed())


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(None, id="a delete"),
        pytest.param(make_renewed(lambda o: o["spec"].update(holderIdentity="b")), id="another holder"),
        pytest.param(make_renewed(lambda o: o["spec"].update(leaseDurationSeconds=1)), id="another duration"),
        pytest.param(make_renewed(lambda o: o["spec"].pop("renewTime")), id="renewTime removed"),
        pytest.param(make_renewed(lambda o: o["spec"].update(OBJECT["spec"])), id="renewTime kept"),
        pytest.param(
            make_renewed(lambda o: o["spec"].update(renewTime="2026-01-02T00:00:01.000000Z")),
            id="more than a day ahead",
        ),
        pytest.param(make_renewed(lambda o: o["metadata"].pop("labels")), id="a label removed"),
        pytest.param(make_lease_with_entry(0, manager="mallory"), id="another manager owns renewTime"),
        pytest.param(make_lease_with_entry(0, manager="ancient-changes"), id="ancient-changes owns renewTime"),
        pytest.param(make_lease_with_entry(0, fields='{"f:spec":{"f:renewTime":{}}}'), id="the owner owns less"),
        pytest.param(make_lease_with_entry(0, time="12026-01-01T00:00:02Z"), id="a time of five digits"),
        pytest.param(make_lease_with_entry(1, time="2025-01-01T00:00:01Z"), id="another entry's time"),
        pytest.param(
            make_lease_with_entry(1, fields='{"f:spec":{"f:renewTime":{"f:x":{}}}}'), id="an owner below renewTime"
        ),
        pytest.param(Lease(make_renewed().object, (*(make_renewed().entries or ()), Entry("x"))), id="one entry more"),
    ],
)
def test_anything_more_is_sent(new: Lease | None) -> None:
    assert is_sent(OLD, new)


def test_create_is_sent() -> None:
    assert is_sent(None, OLD)


def test_deep_entry_that_stays_is_not_sent() -> None:
    deep = Entry("deep", fields='{"f:spec":' + '{"f:a":' * 9000 + "{}" + "}" * 9001)
    old, new = (Lease(one.object, (*(one.entries or ()), deep)) for one in (OLD, make_renewed()))
    assert not is_sent(old, new)
