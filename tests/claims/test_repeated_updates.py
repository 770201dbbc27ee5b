"""Updates that are sent twice, as a proxy or a client does that missed the answer: the second one conflicts.

Source: the recorded incident of a mesh proxy that repeated renewals after 0.25 s.
"""

import copy
from typing import Any

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer
from tests.history.observing import View, follow_both, follow_log
from webhook.kubernetes.times import format_micro_time

REPEATS = "repeat an update that had just been accepted, with its resourceVersion and renewTime"
ELECTORS = "several electors in it"


def repeat(server: FakeServer, **changes: Any) -> None:
    """Have the update that was logged last answered with 409, 0.25 s later."""
    event = copy.deepcopy(server.log[-1])
    server.wait(0.25)
    spec = {**event["responseObject"]["spec"], **changes}
    event["requestObject"] = {**event["responseObject"], "spec": spec}
    event["responseStatus"] = {"metadata": {}, "code": 409, "status": "Failure", "message": "the object has changed"}
    event |= {one: format_micro_time(server.now) for one in ("requestReceivedTimestamp", "stageTimestamp")}
    del event["responseObject"]
    server.log.append(event)


def play(number: int = 6, others: int = 0, **changes: Any) -> FakeServer:
    """Have renewals sent twice, `others` of them with changes."""
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    holder.lead(40)
    for count in range(number):
        server.wait(2)
        holder.renew()
        repeat(server, **(changes if count < others else {}))
    holder.lead(10)
    return server


def said_of(server: FakeServer, view: View = follow_log) -> str:
    return text(account(view(server), server.now))


@pytest.mark.parametrize("view", [follow_log, follow_both], ids=["log", "both"])
def test_an_update_that_was_sent_twice_shows_no_other_elector(view: View) -> None:
    said = said_of(play(), view)
    assert f"6 updates by shop/db from pod db-0 conflicted (409) until 11:07:33Z; all {REPEATS}" in said
    assert ELECTORS not in said


def test_the_number_of_updates_that_were_sent_twice_is_said() -> None:
    said = said_of(play(6, others=2, renewTime="2026-11-18T11:07:00.000001Z"))
    assert f"6 updates by shop/db from pod db-0 conflicted (409) until 11:07:33Z; 4 of them {REPEATS}" in said


def test_an_update_with_another_renew_time_was_not_sent_before() -> None:
    said = said_of(play(6, others=6, renewTime="2026-11-18T11:07:00.000001Z"))
    assert REPEATS not in said
    assert ELECTORS in said
