"""Deletions and evictions of pods in an audit log, and requests that look like them and delete nothing."""

import json

import pytest

from tests.factories import Tweak, drop, put
from tests.history.fake_server import START, FakeServer
from tests.inputs.reading import read
from webhook.analysis.inputs.items import Item, LogEnd, PodDeletion, Writer

DRAINER = "system:serviceaccount:kube-system:node-drainer"
CONTROLLER = "system:serviceaccount:kube-system:replicaset-controller"


def list_items(server: FakeServer) -> list[Item]:
    """Return the items of an audit log without its end."""
    return [one for one in read("in", [server.audit_log()]) if not isinstance(one, LogEnd)]


def read_deletion(*tweaks: Tweak, uid: str = "", is_eviction: bool = False) -> list[Item]:
    server = FakeServer()
    server.delete_pod("db-0", *tweaks, uid=uid, is_eviction=is_eviction)
    return list_items(server)


def test_the_deletion_of_a_pod() -> None:
    expected = PodDeletion(at=START, namespace="shop", name="db-0", writer=Writer(CONTROLLER), uid="u-1")
    assert read_deletion(uid="u-1") == [expected]


def test_an_eviction() -> None:
    (deletion,) = read_deletion(put("requestObject", {"kind": "Eviction"}), is_eviction=True)
    assert isinstance(deletion, PodDeletion)
    assert (deletion.is_eviction, deletion.is_surely_not_dry_run, deletion.uid) == (True, True, "")


@pytest.mark.parametrize(
    "tweak",
    [
        pytest.param(put("responseObject", {"kind": "Status", "details": {"name": "db-0", "uid": "u-1"}}), id="Status"),
        pytest.param(put("requestObject", {"preconditions": {"uid": "u-1"}}), id="precondition"),
        pytest.param(
            put("requestObject", {"kind": "Eviction", "deleteOptions": {"preconditions": {"uid": "u-1"}}}),
            id="precondition of an eviction",
        ),
    ],
)
def test_the_uid_of_the_pod(tweak: Tweak) -> None:
    (deletion,) = read_deletion(tweak)
    assert isinstance(deletion, PodDeletion)
    assert deletion.uid == "u-1"


@pytest.mark.parametrize("seconds", [None, 0, 300])
@pytest.mark.parametrize("is_eviction", [True, False])
def test_for_how_long_a_pod_may_take_to_end(seconds: int | None, *, is_eviction: bool) -> None:
    options = {"kind": "DeleteOptions", "gracePeriodSeconds": seconds}
    body = {"kind": "Eviction", "deleteOptions": options} if is_eviction else options
    (deletion,) = read_deletion(put("requestObject", body), is_eviction=is_eviction)
    assert isinstance(deletion, PodDeletion)
    assert deletion.grace == seconds


@pytest.mark.parametrize(
    "tweak",
    [
        pytest.param(put("responseStatus.code", 403), id="refused"),
        pytest.param(put("responseStatus.code", 429), id="a disruption budget"),
        pytest.param(put("requestURI", "/api/v1/namespaces/shop/pods/db-0?dryRun=All"), id="dry run by its query"),
        pytest.param(put("requestObject", {"dryRun": ["All"]}), id="dry run by its options"),
        pytest.param(put("requestObject", {"deleteOptions": {"dryRun": ["All"]}}), id="dry run of an eviction"),
        pytest.param(put("verb", "deletecollection"), id="many pods at once"),
        pytest.param(drop("objectRef.name"), id="no name"),
        pytest.param(put("objectRef.resource", "services"), id="another resource"),
        pytest.param(put("objectRef.apiGroup", "metrics.k8s.io"), id="another group"),
        pytest.param(put("objectRef.subresource", "proxy"), id="what a proxy passes on"),
        pytest.param(put("stage", "RequestReceived"), id="another stage"),
        pytest.param(put("stageTimestamp", "soon"), id="no time"),
        pytest.param(put("requestObject", {"dryRun": 3}), id="options of a wrong type"),
        pytest.param(put("responseObject", []), id="an answer of a wrong type"),
    ],
)
def test_what_deletes_no_pod(tweak: Tweak) -> None:
    assert read_deletion(tweak) == []


@pytest.mark.parametrize(
    ("tweak", "is_surely_not_dry_run"),
    [
        pytest.param(put("user.username", "alice"), False, id="a person"),
        pytest.param(put("user.username", CONTROLLER), True, id="a controller"),
        pytest.param(put("user.username", "system:node:worker-1"), True, id="a kubelet"),
        pytest.param(put("user.username", DRAINER), False, id="another account of kube-system"),
        pytest.param(put("impersonatedUser", {"username": CONTROLLER}), False, id="who acts as a controller"),
    ],
)
def test_a_log_at_level_metadata_hides_whether_a_deletion_was_a_dry_run(
    tweak: Tweak, is_surely_not_dry_run: bool
) -> None:
    (deletion,) = read_deletion(put("level", "Metadata"), drop("responseObject"), tweak)
    assert isinstance(deletion, PodDeletion)
    assert deletion.is_surely_not_dry_run is is_surely_not_dry_run


@pytest.mark.parametrize("query", ["gracePeriodSeconds=0", "dryRun=All"])
def test_a_query_says_nothing_where_a_body_may_be_hidden(query: str) -> None:
    uri = put("requestURI", f"/api/v1/namespaces/shop/pods/db-0?{query}")
    at_metadata = put("level", "Metadata"), drop("responseObject")
    (deletion,) = read_deletion(*at_metadata, put("user.username", "alice"), uri)
    assert isinstance(deletion, PodDeletion)
    assert not deletion.is_surely_not_dry_run


def test_a_controller_may_ask_for_a_dry_run_by_its_query() -> None:
    uri = put("requestURI", "/api/v1/namespaces/shop/pods/db-0?dryRun=All")
    (deletion,) = read_deletion(put("level", "Metadata"), drop("responseObject"), put("user.username", CONTROLLER), uri)
    assert isinstance(deletion, PodDeletion)
    assert not deletion.is_surely_not_dry_run


def test_a_deletion_with_a_body_has_no_options_in_its_query() -> None:
    uri = put("requestURI", "/api/v1/namespaces/shop/pods/db-0?dryRun=All")
    (deletion,) = read_deletion(put("requestObject", {"kind": "DeleteOptions"}), uri)
    assert isinstance(deletion, PodDeletion)
    assert deletion.is_surely_not_dry_run


def test_an_eviction_may_ask_for_a_dry_run_beside_its_body() -> None:
    uri = put("requestURI", "/api/v1/namespaces/shop/pods/db-0/eviction?dryRun=All")
    assert read_deletion(put("requestObject", {"kind": "Eviction"}), uri, is_eviction=True) == []


def test_other_events_about_pods_are_not_decoded() -> None:
    """The line of a log is broken; a line that is read would be reported."""
    event = {"kind": "Event", "apiVersion": "audit.k8s.io/v1", "verb": "patch", "objectRef": {"resource": "pods"}}
    line = json.dumps(event, separators=(",", ":")).encode()
    assert list(read("in", [line + b"\n", line[:-2] + b"\n", line + b"\n"])) == []


@pytest.mark.parametrize(("user", "number"), [("system:node:worker-1", 1), ("alice", 0)])
def test_a_kubelet_that_finds_its_pod_gone_confirms_the_deletion(user: str, number: int) -> None:
    found = read_deletion(put("responseStatus.code", 404), put("user.username", user))
    assert sum(1 for one in found if isinstance(one, PodDeletion)) == number
