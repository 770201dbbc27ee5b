"""Patches in a log that shows what was asked: each says who is to hold the lease, as an update does."""

import pytest

from tests.history.fake_server import FakeServer
from tests.history.observing import follow_log
from webhook.analysis.inputs.patches import names_holder, patch_lease
from webhook.kubernetes.objects import Lease, LeaseSpec, ObjectMeta

NAMED = ObjectMeta(name="db", namespace="shop")


def test_two_holders_that_patch_in_turn_are_both_known() -> None:
    server = FakeServer()
    first, second = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    first.take()
    for _ in range(4):
        server.wait(8)
        second.renew()
        server.wait(0.1)
        first.renew()
    for event in server.log[1:]:
        event["verb"], event["level"] = "patch", "Request"
        spec = event.pop("responseObject")["spec"]
        event["requestObject"] = {"spec": {key: spec[key] for key in ("holderIdentity", "renewTime")}}
    history = follow_log(server).leases["shop", "db"]
    assert [one.holder for one in history.tenures] == [first.identity, second.identity] * 4 + [first.identity]
    assert history.lease is not None
    assert history.lease.spec.lease_duration_seconds == 15
    assert not history.requests.accepted


@pytest.mark.parametrize(
    ("patch", "is_named"),
    [
        pytest.param(b'{"spec":{"holderIdentity":"a"}}', True, id="a holder"),
        pytest.param(b'{"spec":{"renewTime":"holderIdentity"}}', False, id="no holder"),
        pytest.param(b'{"spec":{"holderIdentity":1}}', False, id="a number"),
        pytest.param(b'[{"path":"/spec/holderIdentity"}]', False, id="a list of operations"),
        pytest.param(b'"holderIdentity', False, id="no JSON"),
        pytest.param(b'{"spec":"","holderIdentity":""}', False, id="no spec"),
    ],
)
def test_only_a_merge_patch_names_a_holder(patch: bytes, is_named: bool) -> None:
    assert names_holder(patch) is is_named


def test_a_patch_changes_what_it_has_and_keeps_the_rest() -> None:
    before = Lease(metadata=NAMED, spec=LeaseSpec(holder_identity="a", lease_duration_seconds=15))
    after = patch_lease(before, b'{"spec":{"holderIdentity":"b"}}', NAMED)
    assert after == Lease(metadata=NAMED, spec=LeaseSpec(holder_identity="b", lease_duration_seconds=15))


def test_without_a_state_before_a_patch_must_have_the_duration() -> None:
    assert patch_lease(None, b'{"spec":{"holderIdentity":"b"}}', NAMED) is None
    after = patch_lease(None, b'{"spec":{"holderIdentity":"b","leaseDurationSeconds":9}}', NAMED)
    assert after == Lease(metadata=NAMED, spec=LeaseSpec(holder_identity="b", lease_duration_seconds=9))


def test_a_patch_of_wrong_types_leaves_the_state_unknown() -> None:
    assert patch_lease(None, b'{"spec":{"holderIdentity":"b","leaseDurationSeconds":"9"}}', NAMED) is None
