"""A lease that the pod of a Job wrote last: the Job may have ended, and nobody is to act before that is seen."""

from typing import Any

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer
from tests.history.observing import View, advise, follow_both, follow_log, follow_metadata
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.analysis.claims.presentation.urgency import advise_with_urgency
from webhook.kubernetes.times import format_micro_time

POD = "backup-29934724-8c2ft"
CONTROLLER = "system:serviceaccount:kube-system:job-controller"
SEEN = "the job controller wrote the status of Job backup-29934724, as when a pod of it ends"


def write_status(server: FakeServer, user: str = CONTROLLER, job: str = "backup-29934724", code: int = 200) -> None:
    """An event of the audit log about a write of the status of a Job."""
    server.log.append(
        {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "stage": "ResponseComplete",
            "requestURI": f"/apis/batch/v1/namespaces/shop/jobs/{job}/status",
            "verb": "update",
            "user": {"username": user},
            "objectRef": {
                "resource": "jobs",
                "namespace": "shop",
                "name": job,
                "apiGroup": "batch",
                "apiVersion": "v1",
                "subresource": "status",
            },
            "responseStatus": {"metadata": {}, "code": code},
            "requestReceivedTimestamp": format_micro_time(server.now - 4000),
            "stageTimestamp": format_micro_time(server.now),
        }
    )


def run(*, ends: bool = True, **status: Any) -> FakeServer:
    """A pod takes the lease, renews it for a while and releases it; then the status of its Job is written."""
    server = FakeServer(uids={POD: "uid-of-the-pod"})
    backup = server.elector(POD, "shop/db")
    backup.lead(60)
    if ends:
        server.wait(1)
        backup.release()
        server.wait(1)
    write_status(server, **status)
    server.wait(1)
    server.elector("cart-0", "shop/cart").lead(130 if ends else 2)
    return server


def test_without_objects_it_is_asked_whether_the_job_is_complete() -> None:
    server = run()
    answer = account(follow_metadata(server), server.now)
    assert advise(answer) == (
        "Its last writer is named as a pod of Job backup-29934724, of which the status was written at 11:07:42Z, after "
        "that. See whether the Job is complete; if so, no action is needed: kubectl -n shop get job backup-29934724"
    )
    assert SEEN in [line.text for line in list_latest(answer)]


@pytest.mark.parametrize("view", [follow_log, follow_both], ids=["log", "watch and log"])
def test_a_lease_that_the_pod_of_a_job_released_needs_nobody_at_once(view: View) -> None:
    server = run()
    answer = account(view(server), server.now)
    assert not advise_with_urgency(answer).sentence.startswith("Act now")
    assert advise(answer).endswith("kubectl -n shop get job backup-29934724")


def test_a_pod_that_may_write_again_has_not_ended() -> None:
    server = run(ends=False)
    assert SEEN not in text(account(follow_metadata(server), server.now))


@pytest.mark.parametrize(
    "server",
    [run(user="mallory"), run(job="backup"), run(job="other-29934724"), run(code=403)],
    ids=["a stranger writes it", "its name is shorter", "another job", "it is refused"],
)
def test_what_is_no_status_of_its_job_says_nothing(server: FakeServer) -> None:
    output = text(account(follow_metadata(server), server.now))
    assert "wrote the status of Job" not in output
    assert "get job" not in output
