"""Candidates of a coordinated election that answer their pings by a clock that is behind: none of it counts."""

import pytest

from tests.claims.accounts import text
from tests.claims.test_candidates import candidate, event
from tests.claims.test_coordinated import STRATEGY, start_coordinated, writes
from tests.claims.test_unanswered_pings import PINGED, explain, ping, watch
from tests.factories import Document
from tests.history.fake_server import FakeServer
from tests.history.observing import advise
from webhook.analysis.claims.presentation.text import list_facts
from webhook.analysis.history.holders.tenure import API_SERVER

POD = {
    "authentication.kubernetes.io/pod-name": ["b"],
    "authentication.kubernetes.io/pod-uid": ["u"],
    "authentication.kubernetes.io/node-name": ["worker-2"],
}
BEHIND = "2026-11-18T11:06:12.000000Z"
DOES_NOT_COUNT = "an answer whose renewTime is before the ping does not count"


def answer(server: FakeServer, renew_time: str, *, extra: dict[str, list[str]] | None = None) -> None:
    """Have a candidate answer its ping."""
    event(server, "update", ping(renewTime=renew_time), user="system:serviceaccount:shop:db")
    server.log[-1]["user"]["extra"] = POD if extra is None else extra


def play(*renew_times: str, rest: float = 20, extra: dict[str, list[str]] | None = None) -> FakeServer:
    """A holder that renews on, while a candidate is pinged and answers."""
    server, first = start_coordinated()
    event(server, "update", ping(), user=API_SERVER)
    for renew_time in renew_times:
        answer(server, renew_time, extra=extra)
    for _ in first.ticks(rest):
        first.renew(strategy=STRATEGY)
    return server


def test_an_answer_by_a_clock_that_is_behind_does_not_count_and_the_clock_is_to_be_set() -> None:
    found = explain(play(BEHIND))
    assert (
        "Candidate: LeaseCandidate db-1 answers its pings, the last time at 11:07:00Z, but its clock is 48 s behind "
        f"that of the API server: {DOES_NOT_COUNT}"
    ) in text(found)
    assert advise(found).startswith(
        "Set the clock of the node of LeaseCandidate db-1, worker-2. It is held and renewed"
    )


def test_where_the_node_is_not_known_the_advice_leads_to_it() -> None:
    assert advise(explain(play(BEHIND, extra={}))).endswith(
        "Set the clock of the node of LeaseCandidate db-1. To see which node that is: kubectl -n shop get pods -o wide"
    )


@pytest.mark.parametrize(
    "renew_times",
    [(BEHIND, "2026-11-18T11:07:00.500000Z"), ("2026-11-18T11:06:59.500000Z",), ("never",), ()],
    ids=["a later answer that counts", "a clock that is hardly behind", "an answer without a readable time", "none"],
)
def test_what_is_no_answer_by_a_clock_that_is_behind_is_not_said_to_be(renew_times: tuple[str, ...]) -> None:
    assert DOES_NOT_COUNT not in text(explain(play(*renew_times)))


def test_an_answer_of_a_candidate_that_is_gone_is_no_longer_said() -> None:
    server = play(BEHIND)
    event(server, "delete", ping(renewTime=BEHIND))
    assert DOES_NOT_COUNT not in text(explain(server))


def test_a_watch_does_not_date_an_answer_so_that_no_clock_is_compared() -> None:
    found = watch(("ADDED", candidate()), ("MODIFIED", ping()), ("MODIFIED", ping(renewTime=BEHIND)))
    assert DOES_NOT_COUNT not in text(found)


def test_a_read_of_an_answer_is_none() -> None:
    server = play()
    event(server, "get", ping(renewTime=BEHIND))
    assert DOES_NOT_COUNT not in text(explain(server))


def name_candidate(server: FakeServer, name: str, **changes: object) -> None:
    """Have the log show the update of a candidate by an API server."""
    stored: Document = candidate(pingTime=PINGED, **changes)
    stored["metadata"]["name"] = name
    event(server, "update", stored, user=API_SERVER)
    server.log[-1]["objectRef"]["name"] = name


def wait_in_vain(candidate_name: str, **changes: object) -> FakeServer:
    """A holder that created its lease itself, without a strategy, and fell silent, while another one reads it."""
    server = FakeServer()
    mail, first, reader = (
        server.elector(name, f"shop/{lease}") for name, lease in (("m", "mail"), ("a", "db"), ("b", "db"))
    )
    mail.take()
    first.take()
    for _ in mail.ticks(20):
        mail.renew()
        first.renew()
    name_candidate(server, candidate_name, **changes)
    for _ in mail.ticks(60):
        mail.renew()
        reader.ask()
    return server


def test_a_lease_without_a_strategy_that_a_candidate_holds_is_of_a_coordinated_election() -> None:
    found = explain(wait_in_vain("a_1"))
    facts = {line.label: line.text for line in list_facts(found, verbose=True)}
    assert facts["Can be taken"].startswith("now, by the process that an API server names")
    assert facts["Readers"] == "b (reads the lease again and again)"
    assert "may be renewed through an API server" not in text(found)
    assert "does not take it" not in advise(found)


@pytest.mark.parametrize(
    ("name", "changes"),
    [("b_1", {}), ("a_1", {"leaseName": "mail"})],
    ids=["which is not its holder", "for another lease"],
)
def test_a_candidate_makes_no_election_coordinated(name: str, changes: Document) -> None:
    """Anyone may create one."""
    found = explain(wait_in_vain(name, **changes))
    assert "Can be taken: now, by the process that" not in text(found)
    assert "pod b reads it and does not take it" in text(found)


FOREIGN = "acme.example/PreferZoneB"


def expire_with(strategy: str, *, is_released: bool = False) -> FakeServer:
    server, _ = start_coordinated()
    writes(server, strategy=strategy, **({"holderIdentity": ""} if is_released else {}))
    event(server, "update", ping(strategy=strategy), user=API_SERVER)
    server.elector("mail-0", "shop/mail").lead(50)
    return server


@pytest.mark.parametrize("is_released", [True, False], ids=["a free lease", "an expired one"])
def test_who_is_chosen_by_a_strategy_of_others_is_chosen_by_no_api_server(*, is_released: bool) -> None:
    found = explain(expire_with(FOREIGN, is_released=is_released))
    (takeable,) = (line.text for line in list_facts(found, verbose=True) if line.label == "Can be taken")
    assert takeable.startswith(f"now, by the process that is chosen by {FOREIGN}, which no API server implements")


def test_what_chooses_by_a_strategy_of_others_is_to_be_looked_for() -> None:
    advice = advise(explain(expire_with(FOREIGN)))
    assert f"No API server chooses by the strategy {FOREIGN}; check that its implementation runs" in advice
    assert "an API server chooses only among those that do" not in advice


def test_that_an_answer_does_not_count_is_not_said_where_no_api_server_chooses() -> None:
    server = expire_with(FOREIGN)
    answer(server, BEHIND)
    assert DOES_NOT_COUNT not in text(explain(server))
