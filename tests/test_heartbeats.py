"""Heartbeats are told from elections by the shape of the Lease."""

from collections.abc import Collection
from typing import Any

import msgspec
import pytest

from tests.recordings import recordings
from webhook.analysis.heartbeats import find_owner, is_heartbeat
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.review import decode

HEARTBEAT: dict[str, Any] = {
    "metadata": {"name": "managed-cluster-lease", "namespace": "east"},
    "spec": {
        "holderIdentity": "managed-cluster-lease",
        "leaseDurationSeconds": 60,
        "renewTime": "2026-11-24T12:00:00.000000Z",
    },
}


def lease(**spec: object) -> Lease:
    return msgspec.convert({**HEARTBEAT, "spec": {**HEARTBEAT["spec"], **spec}}, Lease)


def test_a_lease_that_only_says_who_lives_is_a_heartbeat() -> None:
    assert is_heartbeat(lease(), "east")


def test_a_lease_that_is_renewed_and_names_no_one_is_a_heartbeat() -> None:
    assert is_heartbeat(lease(holderIdentity=None), "east")


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"acquireTime": "2026-11-24T11:00:00.000000Z"}, id="it was acquired"),
        pytest.param({"leaseTransitions": 0}, id="it counts transitions"),
        pytest.param({"strategy": "OldestEmulationVersion"}, id="the API server elects"),
        pytest.param({"preferredHolder": "b"}, id="another holder is preferred"),
        pytest.param({"renewTime": None}, id="it was never renewed"),
        pytest.param({"holderIdentity": None, "leaseDurationSeconds": None}, id="it has neither holder nor duration"),
        pytest.param({"holderIdentity": None, "acquireTime": "2026-11-24T11:00:00.000000Z"}, id="it was given up"),
        pytest.param({"holderIdentity": ""}, id="it was released"),
    ],
)
def test_a_lease_of_another_shape_is_an_election(spec: dict[str, Any]) -> None:
    assert not is_heartbeat(lease(**spec), "east")


def test_a_lease_of_a_node_is_a_heartbeat_whatever_it_has() -> None:
    assert is_heartbeat(lease(acquireTime="2026-11-24T11:00:00.000000Z"), "kube-node-lease")


ELECTORS = {
    *("client-go", "cloudnative-pg", "coordinated", "coordinated-control-plane", "fabric8", "kube-controller-manager"),
    *(
        "kube-leader-election",
        "kube-scheduler",
        "kubernetes-asyncio",
        "kubernetes-python",
        "kubernetes-python-aio",
        "kubert",
    ),
}


def held_by_clients(clients: Collection[str]) -> list[tuple[str, Lease]]:
    """The leases that recorded clients wrote while they held them, in a namespace of no meaning."""
    reviews = [decode(recording.body) for recording in recordings() if recording.client in clients]
    news = [request.new for request in reviews if isinstance(request.new, Lease)]
    return [("shop", new) for new in news if new.spec.holder_identity and new.spec.renew_time]


def test_no_recorded_elector_writes_a_heartbeat() -> None:
    held = held_by_clients(ELECTORS)
    assert held
    assert [lease for namespace, lease in held if is_heartbeat(lease, namespace)] == []


def test_the_kubelet_writes_heartbeats_only() -> None:
    held = held_by_clients({"node-heartbeat"})
    assert held
    assert all(is_heartbeat(lease, namespace) for namespace, lease in held)


def test_the_owner_is_named_by_kind_and_name() -> None:
    owned = {**HEARTBEAT["metadata"], "ownerReferences": [{"kind": "Seed", "name": "aws-eu"}]}
    assert find_owner(msgspec.convert({**HEARTBEAT, "metadata": owned}, Lease)) == "Seed aws-eu"
    assert find_owner(lease()) == ""


@pytest.mark.parametrize("owners", [[], [None], [{"kind": "Seed"}], [{"name": "aws-eu"}]])
def test_an_owner_without_a_kind_or_a_name_is_not_named(owners: list[Any]) -> None:
    assert find_owner(msgspec.convert({"metadata": {"ownerReferences": owners}}, Lease)) == ""
