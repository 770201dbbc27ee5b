"""Tests of one old state that is written into a lease again and again: nobody leads by it, and no clock explains it."""

from typing import Any

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import SECOND, START, Elector, FakeServer, together
from tests.history.observing import View, advise, follow_log, follow_metadata, follow_watch
from webhook.analysis.claims.evidence.pods.rollouts import describe_templates
from webhook.analysis.claims.evidence.writers.stored_copies import find_stored_copies
from webhook.analysis.claims.findings.incidents import may_lack_thefts
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.analysis.claims.presentation.urgency import advise_with_urgency
from webhook.findings import ReportFinding, Severity
from webhook.kubernetes.times import format_micro_time

OLD = format_micro_time(START - 104 * 3600 * SECOND)
ARGO = "system:serviceaccount:argocd:controller"
GHOST = "db-59b8d7c9f4-w7k2p_1"
PODS = ("db-7cc97895b7-cd442", "db-7cc97895b7-nhfgt")


def apply(server: FakeServer, user: str = ARGO, manager: str = "argocd-controller", **changes: Any) -> None:
    """Write the state of a manifest into the lease, as it is in git."""
    spec = {**server.leases["shop/db"]["spec"], "holderIdentity": GHOST, "leaseTransitions": 6}
    server.write("shop/db", {**spec, "renewTime": OLD, "acquireTime": OLD, **changes}, manager, user, "")


def play(times: int = 4, **changes: Any) -> FakeServer:
    """A lease that is overwritten 1.2 s after each time it is taken."""
    server = FakeServer(uids={name: f"uid-of-{name}" for name in PODS})
    electors = [server.elector(name, "shop/db") for name in PODS]
    others = [server.elector(f"{name}-0", f"shop/{name}") for name in ("cart", "mail")]
    together(10, electors[0], *others)
    electors[1].ask()
    server.wait(1.2)
    apply(server, **changes)
    for number in range(times - 1):
        together(16, *others)
        _take(electors[number % 2], number)
        server.wait(1.2)
        apply(server, **changes)
    together(18, *others)
    return server


def _take(elector: Elector, number: int) -> None:
    """Take the lease as another process of the pod: its container was started again."""
    elector.identity = f"{elector.pod}_{number + 2}"
    elector.ask()
    elector.take()


def find(server: FakeServer, check: str, view: View = follow_log) -> list[ReportFinding]:
    return [one for one in account(view(server), server.now).findings if one.check == check]


@pytest.mark.parametrize("view", [follow_log, follow_watch], ids=["log", "watch"])
def test_no_clock_is_blamed_for_one_time_that_is_written_again(view: View) -> None:
    server = play()
    assert find(server, "holder-clock", view) == []
    assert "Clock:" not in text(account(view(server), server.now))


def test_who_writes_it_again_is_to_leave_the_lease_alone_now() -> None:
    server = play()
    said = advise_with_urgency(account(follow_log(server), server.now)).sentence
    assert said == (
        "Act now. argocd/controller wrote one old state into it 4 times, as of a stored copy: have it leave this Lease "
        "alone, and take it out of what it applies. To see the lease:"
    )


def test_the_application_is_what_a_label_of_the_lease_says() -> None:
    server = play()
    for event in server.log:
        if event["objectRef"]["name"] == "db" and "metadata" in event["responseObject"]:
            event["responseObject"]["metadata"]["labels"] = {"app.kubernetes.io/instance": "shop"}
    said = advise(account(follow_log(server), server.now))
    assert "as of a stored copy (its label app.kubernetes.io/instance, which clients write, says shop): have it" in said


def test_how_often_and_when_it_was_written_is_said_and_no_rollout() -> None:
    server = play()
    answer = account(follow_log(server), server.now)
    latest = [line.text for line in list_latest(answer)]
    assert (
        f"from then on argocd/controller wrote {GHOST} into it 4 times, 3 of them 1.2 s after another had taken it"
        in latest
    )
    assert "rollout" not in text(answer)


def test_a_watch_shows_no_two_leaders_and_not_who_wrote_it() -> None:
    server = play()
    *_, last = find(server, "lease-stolen", follow_watch)
    assert last.severity is Severity.WARNING
    assert f": no one renewed it as {GHOST}; the renewTime written with it was 4 d 8 h old, and the same 4 times." in (
        last.message
    )
    answer = account(follow_watch(server), server.now)
    assert "two may have led" not in text(answer)
    assert "It stored no renewal" not in text(answer)
    assert advise(answer).startswith("One old state was written into it 4 times, as of a stored copy: let what applies")


def test_who_never_renewed_has_not_stopped_to_renew() -> None:
    server = play()
    (found,) = find(server, "expired")
    assert "has not renewed the lease since it was written in at " in found.message
    assert found.fix == "kubectl -n shop get pods"
    assert "15 s after it was written in" in text(account(follow_log(server), server.now))


@pytest.mark.parametrize("view", [follow_log, follow_watch], ids=["log", "watch"])
def test_who_only_writes_copies_shares_no_lease(view: View) -> None:
    assert find(play(), "lease-shared", view) == []


def test_each_time_is_counted() -> None:
    server = play(8)
    answer = account(follow_log(server), server.now)
    assert len([one for one in answer.findings if one.check == "lease-stolen"]) == 8
    assert not may_lack_thefts(answer.history)
    server = play(12)
    assert may_lack_thefts(account(follow_log(server), server.now).history)


def test_what_was_written_again_long_ago_is_not_to_be_ended_now() -> None:
    server = play()
    elector = server.elector(PODS[0], "shop/db")
    elector.identity = f"{PODS[0]}_9"
    elector.lead(600)
    assert not advise_with_urgency(account(follow_log(server), server.now)).sentence.startswith("Act now")


@pytest.mark.parametrize("view", [follow_log, follow_watch], ids=["log", "watch"])
def test_names_that_another_one_wrote_in_with_an_old_time_are_of_no_rollout(view: View) -> None:
    tenures = list(account(view(server := play(6)), server.now).history.tenures)
    assert describe_templates(tenures, tenures[0].since, len(tenures) - 1) == ""


def test_of_writes_that_nothing_dates_exactly_only_their_number_is_said() -> None:
    copies = find_stored_copies(account(follow_watch(server := play()), server.now).history)
    assert copies is not None
    assert copies.describe() == f"{GHOST} was written into it 4 times, each time with the same old renewTime"


def test_whether_two_writes_go_on_is_not_known() -> None:
    history = account(follow_log(server := play(2)), server.now).history
    copies = find_stored_copies(history)
    assert copies is None or not copies.is_ongoing(history, server.now)


def test_new_times_are_of_no_stored_copy() -> None:
    server = FakeServer(uids={name: f"uid-of-{name}" for name in PODS})
    db = server.elector(PODS[0], "shop/db")
    for _ in range(4):
        together(10, db)
        apply(server, renewTime=format_micro_time(server.now))
        server.wait(1)
        db.take()
    answer = account(follow_log(server), server.now)
    assert "stored copy" not in text(answer)


def replace_by_force(server: FakeServer, *, seconds: float = 17, user: str = "marek") -> None:
    """Delete the lease and create it again from an old export, and have another pod take it after a while."""
    spec = server.leases["shop/db"]["spec"] | {"holderIdentity": GHOST, "renewTime": OLD}
    server.wait(0.2)
    server.delete("shop/db", user)
    server.wait(0.01)
    server.write("shop/db", spec, "kubectl-replace", user, "")
    server.log[-1]["requestURI"] += "?fieldManager=kubectl-replace&fieldValidation=Strict"
    server.wait(1.8)
    server.elector(PODS[0], "shop/db").fail(409, "the object has been modified")
    server.wait(seconds)
    other = server.elector(PODS[1], "shop/db")
    other.take()
    together(10, other)


def start() -> FakeServer:
    server = FakeServer(uids={name: f"uid-of-{name}" for name in PODS})
    server.elector(PODS[0], "shop/db").lead(20)
    return server


@pytest.mark.parametrize("view", [follow_log, follow_watch], ids=["log", "watch"])
def test_an_old_record_that_no_one_renews_makes_no_two_leaders(view: View) -> None:
    server = start()
    replace_by_force(server)
    (found,) = find(server, "lease-deleted", view)
    assert found.severity is Severity.WARNING
    assert (
        f"created again with the holder {GHOST} and an old renewTime, 2026-11-14T03:06:40Z (field manager "
        "kubectl-replace)," in found.message.replace("created it again", "created again")
    )
    assert "two may have led" not in found.message
    assert f"no one renewed it until {PODS[1]}_1 took it at 11:07:19Z, " in found.message
    output = text(account(view(server), server.now))
    assert "the lease expired" not in output
    assert f" after {GHOST} was written into it and did not renew it for up to " in output


def test_who_takes_it_before_the_last_holder_gives_up_may_lead_beside_it() -> None:
    server = start()
    replace_by_force(server, seconds=6)
    (found,) = find(server, "lease-deleted")
    assert "two may have led at once" in found.message


def test_an_old_record_after_which_no_one_has_taken_the_lease_may_have_two_leaders() -> None:
    server = start()
    spec = server.leases["shop/db"]["spec"] | {"holderIdentity": GHOST, "renewTime": OLD}
    server.delete("shop/db", "marek")
    server.write("shop/db", spec, "kubectl-replace", "marek", "")
    server.elector("cart-0", "shop/cart").lead(40)
    assert "no one renewed it until" not in text(account(follow_log(server), server.now))
    assert find(server, "lease-deleted")


def test_without_objects_the_next_write_is_said() -> None:
    server = start()
    replace_by_force(server)
    (found,) = find(server, "lease-deleted", follow_metadata)
    assert found.severity is Severity.WARNING
    assert f"; the next write was by {PODS[1]} at 11:07:19Z, 19 s after the last one by {PODS[0]}" in found.message
    assert "marek created it again (field manager kubectl-replace) at once;" in found.message
    assert "for 0 s" not in text(account(follow_metadata(server), server.now))
    assert "marek created it again after it was deleted" in text(account(follow_metadata(server), server.now))


def test_a_write_that_conflicts_is_no_question() -> None:
    server = start()
    replace_by_force(server)
    output = text(account(follow_log(server), server.now))
    assert f"a write by pod {PODS[0]}, the previous holder, was refused, as another one had come before it" in output
