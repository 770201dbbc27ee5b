"""Requests of an audit log that show that a pod or a node was gone."""

import pytest

from tests.factories import Document, Tweak, changed, drop, put
from tests.history.fake_server import START
from tests.inputs.test_pod_requests import pod_event, read_events
from webhook.analysis.inputs.items import ObjectAbsence, PodActivity, RelatedWrite


def missing_pod_event(*tweaks: Tweak) -> Document:
    """An event at level Metadata: a person asked for a pod that was not there."""
    return pod_event(
        put("verb", "get"),
        put("requestURI", "/api/v1/namespaces/shop/pods/db-0"),
        put("user", {"username": "alice"}),
        put("objectRef.name", "db-0"),
        put("responseStatus", {"metadata": {}, "status": "Failure", "code": 404}),
        *tweaks,
    )


NODE = put("objectRef.resource", "nodes"), drop("objectRef.namespace"), put("objectRef.name", "n1")
CREATED = (put("verb", "create"), put("responseStatus", {"metadata": {}, "code": 201}))


def test_a_pod_that_was_not_found() -> None:
    assert read_events(missing_pod_event()) == [ObjectAbsence(START - 4000, "Pod", "shop", "db-0")]


def test_a_node_that_was_not_found() -> None:
    assert read_events(missing_pod_event(*NODE)) == [ObjectAbsence(START - 4000, "Node", "", "n1")]


def test_what_was_created_was_not_there_before() -> None:
    """The answer dates it: the request may have come while the one before was still there."""
    assert read_events(missing_pod_event(*CREATED)) == [ObjectAbsence(START, "Pod", "shop", "db-0")]


def test_that_a_node_was_created_is_told_of_itself() -> None:
    (write,) = read_events(missing_pod_event(*CREATED, *NODE))
    assert isinstance(write, RelatedWrite)
    assert (write.kind, write.name, write.verb, write.at) == ("Node", "n1", "created", START)


@pytest.mark.parametrize(
    "tweaks",
    [
        (put("responseStatus.code", 200),),
        (put("verb", "list"), put("responseStatus.code", 404)),
        (put("objectRef.subresource", "log"),),
        (put("objectRef.apiGroup", "metrics.k8s.io"),),
        (put("objectRef.name", ""), *CREATED),
        (put("requestURI", "/api/v1/namespaces/shop/pods/db-0?resourceVersion=0"),),
        (put("requestURI", "/api/v1/namespaces/shop/pods/db-0?dryRun=All"), *CREATED),
        (put("requestReceivedTimestamp", "soon"),),
        (put("stageTimestamp", "soon"), *CREATED),
        (put("objectRef.resource", "secrets"),),
        (drop("objectRef"),),
    ],
    ids=[
        "it was found",
        "a list",
        "a part of a pod",
        "another group",
        "without a name",
        "from a cache",
        "a dry run",
        "without a time",
        "without a time of the answer",
        "another resource",
        "about nothing",
    ],
)
def test_requests_that_do_not_show_that_a_pod_was_gone(tweaks: tuple[Tweak, ...]) -> None:
    found = read_events(changed(missing_pod_event(), *tweaks))
    assert not any(isinstance(one, ObjectAbsence) for one in found)


def test_what_a_pod_asks_for_is_its_activity() -> None:
    user = {
        "username": "system:serviceaccount:shop:db",
        "extra": {f"authentication.kubernetes.io/pod-{key}": [f"db-{key}"] for key in ("name", "uid")},
    }
    (activity,) = read_events(missing_pod_event(put("user", user)))
    assert isinstance(activity, PodActivity)
