"""A leader whose next pod could not be created, as the PriorityClass that it names was gone.

Source: the recorded incident of a class that was deleted with somebody else's application.
"""

import pytest

from tests.claims.test_late_takers import bind
from tests.claims.test_pods import NEW, SECURITY, explain, lead, log_pod
from tests.factories import Tweak, put
from tests.history.fake_server import together
from tests.inputs.test_related_writes import write_event
from webhook.kubernetes.times import format_micro_time

CLASS = 'pods "db-7d9c6b5f4-xk2pq" is forbidden: no PriorityClass with name critical was found'


def lack_class(*tweaks: Tweak, name: str = "critical", verb: str = "delete", message: str = CLASS) -> str:
    """A leader ends; new pods are refused, a PriorityClass is written before that; then another pod takes the lease."""
    server, db, others = lead()
    about = (
        put("objectRef.name", name),
        put("objectRef.namespace", ""),
        put("verb", verb),
        put("stageTimestamp", format_micro_time(server.now)),
    )
    server.log.append(write_event("priorityclasses", "scheduling.k8s.io", *about))
    server.wait(1)
    db.release()
    log_pod(server, put("responseStatus.message", message), *tweaks)
    together(30, *others)
    taker = server.elector(NEW, "shop/db")
    bind(NEW)(server, taker)
    together(4, *others)
    taker.lead(10)
    return explain(server)


@pytest.mark.parametrize(("verb", "done"), [("delete", "deleted"), ("create", "created")])
def test_a_priority_class_that_pods_lacked_is_listed(verb: str, done: str) -> None:
    assert f"PriorityClass critical was {done} by alice@example.org" in lack_class(verb=verb)


@pytest.mark.parametrize(
    ("name", "message"),
    [("critical-2", CLASS), ("critic", CLASS), ("critical", SECURITY)],
    ids=["a longer name", "a shorter name", "refused for another reason"],
)
def test_another_priority_class_is_left_out(name: str, message: str) -> None:
    assert "PriorityClass critic" not in lack_class(name=name, message=message).replace(message, "")


def test_of_a_taker_that_came_late_as_pods_were_refused_that_is_looked_at() -> None:
    output = lack_class()
    advice = "New pods were refused until 11:07:01Z, as is listed. See whether they still are:"
    assert f"ADVICE {advice} kubectl -n shop get events,pods" in output
