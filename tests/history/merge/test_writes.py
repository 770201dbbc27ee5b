"""Where a write comes of which a log shows not all, where clocks differ."""

import json

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer
from tests.history.merge.logs import cut_to_request, list_in_order, patched, shift, two_renewals
from tests.history.observing import cluster_of
from webhook.analysis.history.holders.tenure import Handover


def test_a_write_comes_after_the_state_that_it_replaced_whatever_the_clocks_say() -> None:
    """At level Request a log does not show the resourceVersion of a write, only which one it replaced."""
    created, *renewals = two_renewals().log
    order = list_in_order([shift(cut_to_request(renewals[0]), 3), created, *renewals[1:]])
    assert [one.replaces for one in order] == ["", "101", "102"]


@pytest.mark.parametrize(
    ("behind", "place"),
    [
        pytest.param(-0.5, 3, id="the last renewal replaced the one before"),
        pytest.param(-3.5, 2, id="by clocks that differ by less than two seconds it came before the last renewal"),
    ],
)
def test_no_patch_comes_between_a_state_and_the_one_that_replaced_it(behind: float, place: int) -> None:
    log = two_renewals().log
    patch = {**patched(log[-1], behind), "objectRef": {**log[-1]["objectRef"], "resourceVersion": ""}}
    read = {**log[-1], "verb": "get", "responseObject": {}}
    order = list_in_order([*log[:-1], patch, shift(read, -0.2), log[-1]])
    assert [one.verb for one in order if one.verb != "get"].index("patch") == place


def test_a_patch_may_be_what_a_log_lacks_between_two_states() -> None:
    created, renewal, last = two_renewals().log
    patch = {**patched(last, -0.5), "objectRef": {**last["objectRef"], "resourceVersion": ""}}
    last = {**last, "objectRef": {**last["objectRef"], "resourceVersion": "101"}}
    unchanged = {**shift(renewal, 0.1), "verb": "patch", "objectRef": {**renewal["objectRef"], "resourceVersion": ""}}
    order = list_in_order([created, renewal, unchanged, patch, last])
    assert [one.verb for one in order] == ["create", "update", "patch", "patch", "update"]


@pytest.mark.parametrize(
    "ahead",
    [
        pytest.param(None, id="the log lacks it"),
        pytest.param(0.5, id="by another clock it came just after the taking"),
        pytest.param(3.5, id="no clocks differ by as much"),
    ],
)
def test_a_hidden_write_may_have_removed_the_holder_before_another_one_took_the_lease(ahead: float | None) -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    server.wait(1)
    server.write("shop/db", {**server.leases["shop/db"]["spec"], "holderIdentity": ""}, "kubectl-patch", "alice", "")
    server.wait(0.3)
    server.elector("b", "shop/db").take()
    *before, removal, taking = server.log
    patch = {**patched(removal, ahead or 0), "objectRef": {**removal["objectRef"], "resourceVersion": ""}}
    whole = [*map(cut_to_request, before), cut_to_request(taking), *([] if ahead is None else [patch])]
    answer = account(cluster_of(b"".join(json.dumps(one).encode() + b"\n" for one in whole)), server.now)
    assert answer.history.tenures[-1].began is Handover.UNKNOWN
    assert "lease-stolen" not in {one.check for one in answer.findings}
    assert "lacks some requests" not in text(answer)
