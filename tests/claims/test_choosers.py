"""The API server that chooses the holders of coordinated leases, and the change of it while no one led."""

import pytest

from tests.claims.accounts import account, text
from tests.claims.test_coordinated import STRATEGY, chooses, start_coordinated
from tests.history.fake_server import SECOND, FakeServer, together
from tests.history.observing import advise, follow_log
from webhook.analysis.claims.presentation.happened import list_latest

CHOOSER = "kube-system/leader-election-controller"
CHANGED = (
    f"another API server was to choose from then on: cp-1_1 took {CHOOSER}, which cp-2_1 had last renewed at 11:07:20Z"
)


def follow_chooser(lease: str = CHOOSER, *, stops: bool = True, is_chosen: bool = True) -> FakeServer:
    """A server on which a holder and the API server that is to choose stop, and others follow both of them."""
    server, first = start_coordinated()
    chooser, next_one = (server.elector(one, lease, user="system:apiserver", pod="") for one in ("cp-2", "cp-1"))
    chooser.take()
    for _ in range(10):
        server.wait(2)
        first.renew(strategy=STRATEGY)
        chooser.renew()
    server.wait(20 if stops else 2)
    next_one.take()
    together(5, next_one)
    if is_chosen:
        chooses(server, "b_1")
    else:
        server.elector("b", "shop/db").take()
    together(10, next_one)
    return server


def test_another_api_server_was_to_choose_before_it_chose_a_holder() -> None:
    server = follow_chooser()
    found = account(follow_log(server), server.now)
    assert CHANGED in text(found)
    assert "which lost the lease. Look at the API server cp-2_1, which chose before, too: " in advise(found)
    assert advise(found).endswith("; kubectl -n kube-system get leases -l apiserver.kubernetes.io/identity")
    assert any(CHANGED in line.text for line in list_latest(found))


@pytest.mark.parametrize(
    "server",
    [
        follow_chooser("kube-system/another"),
        follow_chooser(stops=False),
        follow_chooser(is_chosen=False),
        start_coordinated()[0],
    ],
    ids=["another lease", "it was taken while it was held", "no one was chosen", "no change"],
)
def test_else_nothing_is_said_of_who_chooses(server: FakeServer) -> None:
    assert "was to choose from then on" not in text(account(follow_log(server), server.now))


def test_by_clocks_that_differ_it_is_not_known_whether_that_came_first() -> None:
    server = follow_chooser()
    histories = follow_log(server)
    histories.bounds.skew = 2 * SECOND
    assert "was to choose from then on" not in text(account(histories, server.now))
