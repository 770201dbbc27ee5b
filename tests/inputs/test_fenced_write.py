"""What an audit event says of a fence, and what only looks like one."""

import json
from typing import Any

import pytest

from tests.factories import Tweak, put
from tests.inputs.events import make_event
from tests.inputs.reading import read
from webhook.analysis.inputs.audit_log import FENCE_ANNOTATION
from webhook.analysis.inputs.items import FenceReport, Item, Observation

TEXT = (
    "lease shop/db is held by db-0_1 since transition 3, and this write comes from pod db-1; only the holder may "
    "write: stop this work, or acquire the lease first (fence db)"
)
DENIED = "is forbidden: ValidatingAdmissionPolicy 'fence-db' with binding 'fence-db' denied request: "
FORBIDDEN = (
    put("objectRef", {"resource": "deployments", "namespace": "shop", "name": "web", "apiGroup": "apps"}),
    put("verb", "patch"),
    put("requestObject", None),
    put("responseObject", None),
    put("responseStatus", {"code": 403, "message": f'deployments.apps "web" {DENIED}{TEXT}'}),
)


def items(*tweaks: Tweak) -> list[Item]:
    """Return what a log of this one event says."""
    line = json.dumps(make_event(*FORBIDDEN, *tweaks), separators=(",", ":")).encode() + b"\n"
    return [item for item in read("audit.log", [line]) if isinstance(item, FenceReport | Observation)]


def noted(failures: object) -> tuple[Tweak, ...]:
    text = failures if isinstance(failures, str) else json.dumps(failures)
    return put("responseStatus", {"code": 200}), put("annotations", {FENCE_ANNOTATION: text})


def test_a_refused_write_names_the_lease_the_fence_and_the_writer() -> None:
    (item,) = items()
    assert isinstance(item, FenceReport)
    assert (item.namespace, item.name, item.fence, item.is_refused) == ("shop", "db", "db", True)
    assert (item.target, item.writer.name) == ("patch deployments.apps shop/web", "shop/checkout")


def answered(message: str, code: int = 403) -> Tweak:
    return put("responseStatus", {"code": code, "message": message})


@pytest.mark.parametrize(
    "tweaks",
    [
        pytest.param((answered(f'field label not supported: "x{DENIED}{TEXT}"', 400),), id="a selector of the client"),
        pytest.param((answered(f'deployments.apps "web" {DENIED}{TEXT}', 400),), id="another code"),
        pytest.param(
            (answered(f'deployments.apps "web" is forbidden: User "x" may not: {TEXT}'),), id="missing rights"
        ),
        pytest.param((answered(f'deployments.apps "\\" {DENIED}{TEXT}" is forbidden: no'),), id="a name"),
        pytest.param((answered(f'admission webhook "a" denied the request: {DENIED}{TEXT}'),), id="a webhook"),
        pytest.param(
            (answered(f"deployments.apps {DENIED.replace('fence-', '')}{TEXT}"),), id="a policy that is not a fence"
        ),
        pytest.param(
            (answered(f'a {DENIED}{TEXT} "web" is forbidden: no'), put("objectRef", {"resource": f"a {DENIED}{TEXT}"})),
            id="a resource that none has",
        ),
    ],
)
def test_what_a_client_may_write_into_a_message_is_no_fence(tweaks: tuple[Tweak, ...]) -> None:
    assert items(*tweaks) == []


def test_an_object_without_a_name_is_refused_too() -> None:
    assert len(items(answered(f"deployments.apps {DENIED}{TEXT}"))) == 1


def test_a_subresource_is_named() -> None:
    (item,) = items(put("objectRef.subresource", "scale"))
    assert isinstance(item, FenceReport)
    assert item.target == "patch deployments.apps/scale shop/web"


def test_a_noted_write_was_not_refused() -> None:
    (item,) = items(*noted([{"message": "another policy"}, {"message": TEXT, "policy": "fence-db"}]))
    assert isinstance(item, FenceReport)
    assert (item.name, item.is_refused) == ("db", False)


@pytest.mark.parametrize(
    "tweaks",
    [
        pytest.param((put("stage", "RequestReceived"),), id="a request that is not answered yet"),
        pytest.param((put("responseStatus", {"code": 403, "message": "no (fence of wood)"}),), id="other words"),
        pytest.param((put("responseStatus", {"code": 403, "message": "no (fence db)"}),), id="no lease"),
        pytest.param((put("stageTimestamp", "yesterday"),), id="a time that is none"),
        pytest.param(noted("(fence db)"), id="an annotation that is not JSON"),
        pytest.param(noted([{"message": 7, "policy": "(fence db)"}]), id="an annotation of another type"),
    ],
)
def test_what_says_nothing_of_a_fence_is_passed_over(tweaks: tuple[Tweak, ...]) -> None:
    assert items(*tweaks) == []


def test_a_lease_whose_own_write_was_fenced_is_an_observation() -> None:
    reference: dict[str, Any] = {
        "resource": "leases",
        "namespace": "shop",
        "name": "db",
        "apiGroup": "coordination.k8s.io",
    }
    (item,) = items(put("objectRef", reference))
    assert isinstance(item, Observation)
