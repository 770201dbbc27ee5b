"""Who made a state that several requests were answered with."""

import pytest

from tests.history.merge.logs import list_in_order, shift, two_renewals
from webhook.analysis.history.follow import ClusterHistory


def test_of_two_requests_with_one_answer_the_one_that_replaced_another_state_made_it() -> None:
    """A patch that changes nothing is answered with the state as it is, even by a clock that is behind."""
    created, renewal, *_ = two_renewals().log
    user = {"username": "alice"}
    patch = {**renewal, "verb": "patch", "user": user, "objectRef": {**renewal["objectRef"], "resourceVersion": ""}}
    order = list_in_order([created, shift(patch, -1), renewal])
    assert [one.writer.user for one in order if one.writer] == [
        "system:serviceaccount:shop:db",
        "system:serviceaccount:shop:db",
        "alice",
    ]


@pytest.mark.parametrize(
    ("later", "is_known"),
    [
        pytest.param(0.002, False, id="one came before the other was answered"),
        pytest.param(0.1, True, id="one came after the other was answered"),
    ],
)
def test_of_two_patches_with_one_answer_the_first_made_it_unless_they_overlap(later: float, is_known: bool) -> None:
    created, renewal, *_ = two_renewals().log
    patch = {**renewal, "verb": "patch", "objectRef": {**renewal["objectRef"], "resourceVersion": ""}}
    other = shift({**patch, "user": {"username": "alice"}}, later)
    _, maker, second = list_in_order([created, patch, other])
    assert (maker.writer is not None) is is_known
    assert second.writer is not None


def test_a_renewal_by_an_unknown_one_of_two_is_not_that_of_the_holder() -> None:
    server = two_renewals()
    server.wait(2)
    server.elector("a", "shop/db").renew()
    patch = {**server.log[-1], "verb": "patch"}
    patch["objectRef"] = {**patch["objectRef"], "resourceVersion": ""}
    other = shift({**patch, "user": {"username": "alice"}}, 0.002)
    leases = ClusterHistory()
    for item in list_in_order([*server.log[:-1], patch, other]):
        leases.add(item)
    tenure = leases.leases["shop", "db"].current_tenure
    assert tenure is not None
    assert tenure.is_last_by_other
