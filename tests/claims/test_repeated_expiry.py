"""Holders that let a lease expire again and again, and come back each time: none of them renews in time."""

import pytest

from tests.claims.accounts import account, text
from tests.claims.test_pods import end, log_status, say
from tests.history.fake_server import FakeServer, together
from tests.history.observing import follow_log
from webhook.analysis.claims.presentation.urgency import advise_with_urgency


def take_turns(turns: int, *, renewals: int = 0, replicas: int = 2, are_ending: bool = False) -> FakeServer:
    """Replicas that take a lease of 10 s in turn, each time after it expired, beside others that are renewed.

    `are_ending`: a kubelet writes soon after that that a container of the holder's pod has ended.
    """
    server = FakeServer()
    electors = [server.elector(f"db-{number}", "shop/db", duration=10) for number in range(replicas)]
    others = [server.elector(f"mail{number}-0", f"shop/mail{number}") for number in range(3)]
    together(20, *others)
    for turn in range(turns):
        holder, before = electors[turn % replicas], electors[(turn - 1) % replicas]
        holder.take()
        for _ in range(renewals):
            together(2, *others)
            holder.renew()
        together(2, *others)
        if are_ending:
            log_status(server, holder.pod, *say(end({"exitCode": 2})))
        if turn and replicas == 2:
            before.ask()
        together(10, *others)
    electors[turns % replicas].take()
    together(2, *others)
    if replicas == 2:
        electors[1 - turns % 2].ask()
    return server


def test_holders_that_let_it_expire_in_turn_renew_too_rarely_or_stop_each_time() -> None:
    server = take_turns(5)
    found = account(follow_log(server), server.now)
    lost = [one for one in found.findings if one.check == "leader-lost"]
    # Each is a finding of its own, so that those before the last one are counted.
    assert len(lost) == 5
    assert lost[-1].message.endswith(
        "Its holders may renew too rarely, or stop each time: at least 5 holders in a row let it expire without one "
        "renewal, and each of them asked for it again later (it lasts 10 s)."
    )
    assert "heard again" not in text(found)
    advice = advise_with_urgency(found)
    assert advice.sentence.endswith(
        "Compare how often its holders renew with leaseDurationSeconds. To see their arguments:"
    )


def test_holders_whose_containers_ended_do_not_renew_too_rarely() -> None:
    server = take_turns(5, are_ending=True)
    found = account(follow_log(server), server.now)
    lost = [one for one in found.findings if one.check == "leader-lost"]
    assert len(lost) == 5
    assert "container db ended (exit code 2)" in lost[-1].message
    assert "too rarely" not in text(found)
    assert "leaseDurationSeconds" not in advise_with_urgency(found).sentence


@pytest.mark.parametrize(
    ("turns", "renewals", "replicas"),
    [(2, 0, 2), (5, 2, 2), (5, 0, 6)],
    ids=["too few", "each of them renewed it before", "none was heard again"],
)
def test_holders_that_may_have_stopped_each_for_its_own_reason_are_named_each(
    turns: int, renewals: int, replicas: int
) -> None:
    server = take_turns(turns, renewals=renewals, replicas=replicas)
    found = account(follow_log(server), server.now)
    lost = [one for one in found.findings if one.check == "leader-lost"]
    assert len(lost) == turns
    assert "in a row" not in text(found)
