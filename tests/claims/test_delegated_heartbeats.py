"""A heartbeat that another program renews for a while: under its own field manager, with an annotation that says so.

Source: the recorded incident of an edge node whose heartbeat another node's agent delegates.
"""

import pytest

from tests.claims.accounts import text
from tests.history.fake_server import Elector, FakeServer
from tests.history.observing import View, follow_log, follow_watch
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.kubernetes.managed_fields import OF_API_SERVERS

EDGE = "kube-node-lease/edge"
MARK = {"example.com/delegate": "true"}
RUN = "until 11:09:01Z it was renewed 3 times under field manager yurthub, which clients choose"
MARKED = ", with the annotation example.com/delegate=true"


def renew(elector: Elector, number: int, annotations: dict[str, str] | None = None) -> None:
    """Renew each 10 s, and leave annotations on the lease."""
    server = elector.server
    for _ in range(number):
        server.wait(10)
        (elector.renew if EDGE in server.leases else elector.take)()
        server.leases[EDGE]["metadata"]["annotations"] = annotations or {}


def delegate(
    *,
    annotations: dict[str, str] | None = MARK,
    is_back: bool = True,
    manager: str = "yurthub",
    before: str = "kubelet",
) -> FakeServer:
    """The kubelet of edge renews its lease, then another program three times, then the kubelet again."""
    server = FakeServer()
    kubelet = server.elector("edge", EDGE, user="system:node:edge", pod="", duration=40, manager=before)
    agent = server.elector("x", EDGE, user="system:serviceaccount:kube-system:yurthub", pod="hub-1", manager=manager)
    kubelet.identity = agent.identity = "edge"
    agent.duration = 40
    renew(kubelet, 10)
    server.wait(11)
    renew(agent, 3, annotations)
    renew(kubelet, 4 if is_back else 0, annotations)
    return server


def texts(server: FakeServer, view: View) -> tuple[str, str]:
    """Return what is said of edge, and what of that is said first."""
    histories = view(server)
    found = make_account(histories, histories.leases["kube-node-lease", "edge"], server.now)
    return text(found), "\n".join(line.text for line in list_latest(found))


@pytest.mark.parametrize(
    ("annotations", "is_back", "said"),
    [
        (MARK, True, f"{RUN}{MARKED}; before and after under kubelet"),
        (None, True, f"{RUN}; before and after under kubelet"),
        (MARK, False, f"{RUN}{MARKED}; before under kubelet"),
    ],
    ids=["with an annotation", "without one", "until the end"],
)
def test_a_watch_shows_renewals_under_another_field_manager(
    annotations: dict[str, str] | None, is_back: bool, said: str
) -> None:
    whole, latest = texts(delegate(annotations=annotations, is_back=is_back), follow_watch)
    assert f"11:08:41Z: {said}\n" in whole
    assert said in latest.splitlines()


@pytest.mark.parametrize(
    "server",
    [
        pytest.param(delegate(manager="kubelet"), id="one field manager"),
        pytest.param(delegate(manager=OF_API_SERVERS), id="that of API servers"),
        pytest.param(delegate(before=OF_API_SERVERS), id="after that of API servers"),
    ],
)
def test_other_renewals_are_not_told_by_their_field_manager(server: FakeServer) -> None:
    assert "under field manager" not in texts(server, follow_watch)[0]


@pytest.mark.parametrize("annotations", [MARK, None], ids=["with an annotation", "without one"])
def test_a_log_shows_who_renewed_meanwhile_and_with_what(annotations: dict[str, str] | None) -> None:
    whole, _ = texts(delegate(annotations=annotations), follow_log)
    mark = MARKED if annotations else ""
    assert f"renewed it as edge (3 renewals{mark}), while system:node:edge did not" in whole
    assert "under field manager" not in whole
