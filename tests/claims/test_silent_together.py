"""All processes that ask for a lease fall silent at once, while an API server goes on: an observation, no cause."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import Elector, FakeServer
from tests.history.observing import follow_both, follow_log
from tests.truth.evaluation import claims_in
from tests.truth.inputs import Kind, input_of
from tests.truth.planting import Defect, move_instants, says
from tests.truth.predicates import PREDICATES
from tests.truth.stored import play_stored
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.facts import find_claims
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.claims.presentation.text import list_facts
from webhook.analysis.history.visibility.bounds import MAX_LISTED


class Shop:
    """A holder of shop/db, two candidates, and an API server that renews its own lease."""

    def __init__(self) -> None:
        self.server = FakeServer()
        self.api = self.server.elector("api", "kube-system/apiserver-x")
        self.mail = self.server.elector("mail-0", "shop/mail")
        self.holder, *self.candidates = (self.server.elector(f"db-{number}", "shop/db") for number in range(3))
        self.api.take()
        self.holder.take()

    def go_on(self, seconds: int, *asking: Elector, renewing: tuple[Elector, ...] = ()) -> None:
        """Let time pass, in which some ask every two seconds, and others renew what they hold."""
        for second in range(1, seconds + 1):
            self.server.wait(1)
            if second % 10 == 0:
                self.api.renew()
            for elector in renewing if second % 2 == 0 else ():
                elector.renew()
            for elector in asking if second % 2 == 1 else ():
                elector.ask()

    def work(self, seconds: int = 60) -> None:
        """Have the holder renew the lease, which it also reads, and the candidates wait for it."""
        self.go_on(seconds, self.holder, *self.candidates, renewing=(self.holder,))

    def explain(self) -> str:
        return text(account(follow_log(self.server), self.server.now))

    @property
    def claims(self) -> list[dict[str, Any]]:
        """The claims that all fell silent."""
        claims = make_account_json(account(follow_log(self.server), self.server.now))["claims"]
        return [one for one in claims if one["claim"] == "silent-together"]


def test_all_fell_silent_while_the_api_server_went_on() -> None:
    shop = Shop()
    shop.work()
    shop.go_on(60)
    output = shop.explain()
    assert (
        "Together: all 3 processes that asked for it again and again (db-0, db-1, db-2) were last answered between "
        "11:07:38Z and 11:07:39Z, while an API server went on renewing its own lease until 11:08:40Z. The log does "
        "not show why: perhaps something that only they share, such as their network, credentials, image, node or "
        "workload, or another API server that they now use"
    ) in output
    assert output.count("were last answered") == 1
    (claim,) = shop.claims
    assert (claim["count"], claim["severity"], "cause" in claim) == (3, "info", False)
    assert claim["from"] <= claim["to"] <= claim["latest"]


def test_the_output_says_why_once() -> None:
    """That all fell silent says more than that the holder did."""
    shop = Shop()
    shop.mail.take()
    shop.go_on(60, shop.holder, *shop.candidates, renewing=(shop.holder, shop.mail))
    shop.go_on(60, renewing=(shop.mail,))
    result = account(follow_log(shop.server), shop.server.now)
    assert [line.label for line in list_facts(result, verbose=False)] == ["Together"]
    assert {"Why", "Together"} <= {line.label for line in list_facts(result)}


def test_others_that_the_api_server_answers_show_more_than_its_own_lease() -> None:
    shop = Shop()
    shop.mail.take()
    shop.candidates.pop()
    shop.go_on(60, shop.holder, *shop.candidates, renewing=(shop.holder, shop.mail))
    shop.go_on(60, renewing=(shop.mail,))
    output = shop.explain()
    assert "both processes that asked for it again and again (db-0, db-1) were last answered" in output
    assert "an API server went on answering others until 11:08:40Z" in output


def go_on_alone(shop: Shop) -> None:
    shop.go_on(60, shop.candidates[0])


def end_later(shop: Shop) -> None:
    shop.go_on(8, shop.candidates[0])
    shop.go_on(60)


def ask_once(shop: Shop) -> None:
    shop.go_on(30)
    shop.server.elector("alice", "shop/db", user="alice", pod="").ask()
    shop.go_on(30)


def end_the_log(shop: Shop) -> None:
    shop.server.wait(60)


def renew_once(shop: Shop) -> None:
    shop.go_on(10)
    shop.server.wait(50)


def lose_a_part(shop: Shop) -> None:
    known = len(shop.server.log)
    shop.work(20)
    del shop.server.log[known:]
    shop.go_on(60)


def delete_a_pod(shop: Shop) -> None:
    shop.server.delete_pod("db-1")
    shop.go_on(60)


def watch(shop: Shop) -> None:
    shop.server.log_request("shop/db", "watch", "alice", "", {})
    shop.go_on(60)


@pytest.mark.parametrize(
    "play",
    [
        pytest.param(go_on_alone, id="a candidate goes on"),
        pytest.param(end_later, id="a candidate went on for some time"),
        pytest.param(ask_once, id="a person asked later"),
        pytest.param(end_the_log, id="the log ends then"),
        pytest.param(renew_once, id="the log ends before the lease expires"),
        pytest.param(lose_a_part, id="the log has a hole"),
        pytest.param(delete_a_pod, id="the pod of a candidate was deleted"),
        pytest.param(watch, id="someone watched it"),
    ],
)
def test_other_silences_are_no_silence_together(play: Callable[[Shop], None]) -> None:
    shop = Shop()
    shop.work()
    play(shop)
    assert shop.claims == []
    assert "Together" not in shop.explain()


def test_a_single_process_does_not_fall_silent_together() -> None:
    shop = Shop()
    shop.go_on(60, shop.holder, renewing=(shop.holder,))
    shop.go_on(60)
    assert shop.claims == []


def test_a_holder_that_another_one_wrote_in_did_not_ask_with_them() -> None:
    shop = Shop()
    for elector in shop.candidates:
        elector.user = shop.holder.user
    shop.work()
    shop.server.write("shop/db", {**shop.server.leases["shop/db"]["spec"], "holderIdentity": "x"}, "cli", "bob", "")
    shop.go_on(60)
    assert shop.claims == []


def test_who_had_ended_before_did_not_fall_silent_with_them() -> None:
    shop = Shop()
    shop.work()
    shop.go_on(60, shop.holder, shop.candidates[0], renewing=(shop.holder,))
    shop.go_on(60)
    (claim,) = shop.claims
    assert claim["count"] == 2


def test_too_many_processes_to_remember_make_no_claim_of_a_common_silence() -> None:
    shop = Shop()
    shop.candidates += [shop.server.elector(f"more-{number}", "shop/db") for number in range(MAX_LISTED)]
    for elector in shop.candidates:
        elector.user = shop.holder.user
    shop.work()
    shop.go_on(60)
    assert shop.claims == []


def test_of_many_processes_a_few_are_named() -> None:
    shop = Shop()
    shop.candidates += [shop.server.elector(f"more-{number}", "shop/db") for number in range(3)]
    shop.work()
    shop.go_on(60)
    assert "all 6 processes that asked for it again and again (db-0, db-1, db-2, more-0 and 2 more)" in shop.explain()


def test_another_lease_of_the_same_processes_does_not_show_that_others_were_answered() -> None:
    shop = Shop()
    shop.server.log.clear()
    both = shop.server.elector("db-0", "shop/mail", user=shop.holder.user)
    both.take()
    shop.holder.take()
    for _ in range(30):
        shop.server.wait(2)
        for elector in (shop.holder, both):
            elector.renew()
        for elector in shop.candidates:
            elector.ask()
    for _ in range(30):
        shop.server.wait(2)
        both.renew()
    assert shop.claims == []


def test_a_heartbeat_has_no_candidates() -> None:
    shop = Shop()
    kubelet, reader = (shop.server.elector(pod, "kube-node-lease/worker-1") for pod in ("kubelet", "reader"))
    kubelet.take()
    shop.go_on(60, kubelet, reader, renewing=(kubelet, shop.holder))
    shop.go_on(60, renewing=(shop.holder,))
    histories = follow_log(shop.server)
    answer = make_account(histories, histories.leases["kube-node-lease", "worker-1"], shop.server.now)
    assert answer.history.is_heartbeat
    assert "silent-together" not in {claim.check for claim in find_claims(answer)}


def test_a_watch_beside_the_log_leaves_what_the_log_shows_alone() -> None:
    shop = Shop()
    shop.work()
    shop.go_on(60)
    claims = make_account_json(account(follow_both(shop.server), shop.server.now))["claims"]
    assert "silent-together" in {one["claim"] for one in claims}


@pytest.mark.parametrize(
    "plant",
    [
        pytest.param(says(count=4), id="more than there were"),
        pytest.param(move_instants(-8, "from", "to"), id="that asked later"),
    ],
)
def test_a_false_claim_that_processes_fell_silent_is_noticed(plant: Defect) -> None:
    history = play_stored("all-that-ask-for-a-lease-are-cut-off-at-once")
    given = input_of(history, Kind.LOG)
    assert given
    (together,) = ((claim, facts) for claim, facts in claims_in(history, given) if claim["claim"] == "silent-together")
    claim, facts = together
    changed = plant(claim, facts)
    assert changed
    assert PREDICATES["silent-together"](facts, claim)
    assert not PREDICATES["silent-together"](facts, changed)


@pytest.mark.parametrize(
    ("nodes", "is_silent", "is_said"),
    [(("n1", "n1", "n1"), True, True), (("n1", "n1", "n1"), False, False), (("n1", "n2", "n1"), True, False)],
    ids=["one node, which is silent", "one node, which goes on", "two nodes"],
)
def test_that_all_ran_on_a_node_that_is_silent_is_said(nodes: tuple[str, ...], is_silent: bool, is_said: bool) -> None:
    shop = Shop()
    shop.server.nodes = {f"db-{number}": node for number, node in enumerate(nodes)}
    kubelet = shop.server.elector("n1", "kube-node-lease/n1", user="system:node:n1", pod="", duration=40)
    kubelet.take()
    for _ in range(6):
        shop.work(10)
        kubelet.renew()
    for _ in range(6):
        shop.go_on(10)
        if not is_silent:
            kubelet.renew()
    output = shop.explain()
    assert "were last answered" in output
    ran = "All ran on node n1, by their tokens, whose lease was not renewed since either"
    assert (ran in output) is is_said
    assert ("The log does not show why" in output) is not is_said
