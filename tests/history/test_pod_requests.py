"""How much is remembered of requests about pods."""

from webhook.analysis.history.audit_log.deleted_pods import MAX_PODS
from webhook.analysis.history.audit_log.pod_requests import MAX_REQUESTS, PodRequests
from webhook.analysis.inputs.items import PodAct, PodRequest, Writer


def request(at: int, act: PodAct = PodAct.STATUS, name: str = "db-0", user: str = "a") -> PodRequest:
    return PodRequest(at=at, act=act, namespace="shop", name=name, writer=Writer(user))


def test_of_one_pod_the_latest_requests_are_remembered_in_the_order_of_time() -> None:
    known = PodRequests()
    for at in range(MAX_REQUESTS + 1, 0, -1):
        known.add(request(at))
    assert [one.at for one in known.list_about("shop", "db-0")] == list(range(1, MAX_REQUESTS + 1))
    assert not known.list_about("mail", "db-0")


def test_the_pod_of_which_nothing_was_heard_for_longest_is_forgotten() -> None:
    known = PodRequests()
    for number in range(MAX_PODS):
        known.add(request(number, name=f"db-{number}"))
    known.add(request(MAX_PODS, name="db-0"))
    known.add(request(MAX_PODS + 1, name="other"))
    names = known.list_names("shop")
    assert len(names) == MAX_PODS
    assert "db-0" in names
    assert "db-1" not in names


def test_refusals_are_kept_by_who_asked() -> None:
    known = PodRequests()
    for at in range(2 * MAX_REQUESTS):
        known.add(request(at, PodAct.REFUSED, name="", user="a"))
    known.add(request(0, PodAct.REFUSED, name="", user="b"))
    refused = known.list_refused({"shop"})
    assert [one.writer.user for one in refused].count("b") == 1
    assert len(refused) == MAX_REQUESTS + 1
    assert not known.list_refused({"mail"})


def test_a_request_in_two_copies_of_a_log_is_one() -> None:
    known = PodRequests()
    for at in (1, 2, 1, 2):
        known.add(request(at))
    assert [one.at for one in known.list_about("shop", "db-0")] == [1, 2]
