"""A holder that acts as another user than it is, and may do so no longer: the answers name that user."""

import pytest

from tests.claims.accounts import account, shop
from tests.history.fake_server import FakeServer
from tests.history.observing import advise, follow_log
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.claim import Claim

AGENT = "system:serviceaccount:ci:agent"
JOB = "ci:job:7"
ACCOUNT = "system:serviceaccount:shop:deployer"


def forbid(resource: str, name: str, where: str = "at the cluster scope", group: str = "") -> str:
    who = f'User "{AGENT}" cannot impersonate resource "{resource}" in API group "{group}" {where}'
    return f'{resource} "{name}" is forbidden: {who}'


def lose(message: str, *, user: str = JOB, by: str = AGENT) -> Account:
    """A holder to which an agent gives its user until it is refused, and another one that takes the lease."""
    server, (db, mail, cart) = shop()
    db.user, db.pod = user, ""
    for _ in range(10):
        for elector in (db, mail, cart):
            elector.lead(2)
    _act_as_agent(server, user)
    db.user = by
    for _ in range(8):
        server.wait(2)
        db.fail(403, message, verb="get")
        mail.renew()
        cart.renew()
    server.elector("db-1", "shop/db").lead(10)
    return account(follow_log(server), server.now)


def _act_as_agent(server: FakeServer, user: str) -> None:
    for event in server.log:
        if event["user"]["username"] == user:
            event["user"], event["impersonatedUser"] = {"username": AGENT}, {"username": user}


@pytest.mark.parametrize(
    ("user", "message", "command"),
    [
        (JOB, forbid("users", JOB), f"users/{JOB}"),
        (ACCOUNT, forbid("serviceaccounts", "deployer", 'in the namespace "shop"'), "serviceaccounts/deployer -n shop"),
    ],
    ids=["a user", "a service account"],
)
def test_a_holder_whose_agent_may_not_act_as_it_was_refused(user: str, message: str, command: str) -> None:
    answer = lose(message, user=user)
    (lost,) = (found for found in answer.findings if found.check == "leader-lost")
    assert f"The reads of db-0_1 were refused: 8 reads answered with 403, the last one: {message}." in lost.message
    assert f"kubectl auth can-i impersonate {command} --as={AGENT}" in advise(answer)


@pytest.mark.parametrize(
    ("message", "by"),
    [(forbid("users", "ci:job:8"), AGENT), (forbid("users", JOB), "system:serviceaccount:ci:other"), ("", AGENT)],
    ids=["as another user", "another agent", "no text"],
)
def test_what_is_refused_to_an_agent_for_others_was_not_refused_to_the_holder(message: str, by: str) -> None:
    (lost,) = (found for found in lose(message, by=by).findings if found.check == "leader-lost")
    assert "refused" not in lost.message


def test_of_a_right_to_act_as_a_group_all_rights_are_shown() -> None:
    answer = lose(forbid("groups", "ci:jobs"))
    (refused,) = (found for found in answer.findings if found.check == "read-refused")
    assert isinstance(refused, Claim)
    assert (refused.advice, refused.fix) == (
        "ci/agent lacked a right to act as another user, or as one of a group. To see its rights:",
        f"kubectl auth can-i --list -n shop --as={AGENT}",
    )
