"""Two electors that take a lease from each other: one finding, which goes on as long as they do."""

from collections.abc import Callable

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import SECOND, FakeServer
from tests.history.observing import advise, follow_log, follow_watch, observe_all
from tests.inputs.reading import read
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.presentation.urgency import advise_with_urgency
from webhook.analysis.history.follow import ClusterHistory

Follow = Callable[[FakeServer], ClusterHistory]


def contend(times: int, *, names: tuple[str, ...] = ("db-0", "db-1")) -> FakeServer:
    """A lease that each of some replicas takes in turn, every five seconds, as if it were free."""
    server = FakeServer(uids={name: f"uid-of-{name}" for name in names})
    electors = [server.elector(name, "shop/db") for name in names]
    electors[0].lead(20)
    for number in range(times):
        server.wait(5)
        electors[(number + 1) % len(electors)].take()
    return server


def claims_of(account: Account, check: str) -> list[Claim]:
    return [found for found in account.findings if isinstance(found, Claim) and found.check == check]


def test_takeovers_in_turns_are_one_finding() -> None:
    server = contend(6)
    answer = account(follow_log(server), server.now)
    (claim,) = claims_of(answer, "lease-contended")
    assert claim.message == (
        "db-1_1 and db-0_1 took the lease from each other 6 times between 11:07:05Z and 11:07:30Z, each time while it "
        "was live: both may lead"
    )
    assert not claims_of(answer, "lease-stolen")
    assert claim.over_since == 0
    assert advise(answer).startswith("Both may lead: stop one of them, and find out why they do not wait")
    assert advise_with_urgency(answer).sentence.startswith("Act now. ")


def test_takeovers_in_turns_may_be_a_person_s_or_planned_by_a_watch() -> None:
    server = contend(6)
    answer = account(follow_watch(server), server.now)
    (claim,) = claims_of(answer, "lease-contended")
    assert claim.message == (
        "db-1_1 and db-0_1 were written into the lease in place of each other 6 times between 11:07:05Z and 11:07:30Z, "
        "each time while it was live: both may lead, unless they hand it over or another one writes one of them, "
        "or both; the input does not show who wrote it"
    )
    assert not claims_of(answer, "lease-stolen")
    assert claim.over_since == 0
    assert advise(answer) == "The audit log shows who wrote it: lease-webhook why shop/db --input AUDIT-LOG"


def hand_over_in_turns() -> FakeServer:
    """A lease whose holder writes the other one in every half a minute, as is planned."""
    server = FakeServer()
    electors = [server.elector(f"db-{number}", "shop/db") for number in range(2)]
    electors[0].lead(60)
    for number in range(6):
        before, after = electors[number % 2], electors[(number + 1) % 2]
        server.wait(1)
        before.take(holderIdentity=after.identity)
        after.lead(30)
    return server


def test_a_log_shows_that_what_looks_like_a_contest_to_a_watch_is_planned() -> None:
    server = hand_over_in_turns()
    logged, watched = account(follow_log(server), server.now), account(follow_watch(server), server.now)
    assert not claims_of(logged, "lease-contended")
    assert len(claims_of(logged, "handed-over")) == 6
    assert "two may have led" not in text(logged)
    (claim,) = claims_of(watched, "lease-contended")
    assert "unless they hand it over or another one writes one of them, or both" in claim.message
    assert "stop" not in advise(watched)


@pytest.mark.parametrize("follow", [follow_log, follow_watch])
@pytest.mark.parametrize(("seconds", "is_over"), [(12, False), (16, True), (3600, True)])
def test_a_contest_goes_on_for_as_long_as_the_next_takeover_may_come(
    follow: Follow, seconds: int, is_over: bool
) -> None:
    server = contend(6)
    taken = server.now
    server.elector("db-0", "shop/db").lead(seconds)
    answer = account(follow(server), server.now)
    (claim,) = claims_of(answer, "lease-contended")
    assert claim.over_since == (taken if is_over else 0)
    assert advise_with_urgency(answer).sentence.startswith("Act now. ") is not is_over
    assert ("stop one of them" in advise(answer)) is (follow is follow_log and not is_over)


def test_rare_takeovers_go_on_for_twice_the_longest_time_between_two() -> None:
    server = FakeServer()
    electors = [server.elector(f"db-{number}", "shop/db") for number in range(2)]
    electors[0].lead(20)
    for number in range(4):
        electors[(number + 1) % 2].lead(60)
    (claim,) = claims_of(account(follow_log(server), server.now), "lease-contended")
    assert claim.over_since == 0
    electors[0].lead(62)
    (claim,) = claims_of(account(follow_log(server), server.now), "lease-contended")
    assert claim.over_since == server.now - 122 * SECOND


def test_thefts_hours_apart_are_no_contest() -> None:
    server = FakeServer()
    electors = [server.elector(f"db-{number}", "shop/db", retry=10) for number in range(2)]
    electors[0].lead(20)
    for number in range(4):
        electors[(number + 1) % 2].lead(3600)
    answer = account(follow_log(server), server.now)
    assert not claims_of(answer, "lease-contended")
    assert len(claims_of(answer, "lease-stolen")) == 4
    assert "Act now" not in advise_with_urgency(answer).sentence


def test_a_contest_across_midnight_has_both_dates() -> None:
    server = FakeServer()
    server.wait(12 * 3600 + 50 * 60)
    electors = [server.elector(f"db-{number}", "shop/db") for number in range(2)]
    electors[0].lead(20)
    for number in range(4):
        electors[(number + 1) % 2].lead(120)
    (claim,) = claims_of(account(follow_log(server), server.now), "lease-contended")
    assert "4 times between 2026-11-18T23:57:00Z and 2026-11-19T00:03:00Z, each" in claim.message


def test_a_contest_that_is_over_says_when_it_was() -> None:
    server = contend(6)
    server.elector("db-0", "shop/db").lead(60)
    server.elector("db-0", "shop/db").release()
    answer = account(follow_log(server), server.now)
    (claim,) = claims_of(answer, "lease-contended")
    assert claim.message.endswith("while it was live: both may have led all the time")
    assert claim.over_since is not None
    assert claim.over_since < server.now - 50 * SECOND


def test_three_takeovers_are_thefts() -> None:
    server = contend(3)
    answer = account(follow_log(server), server.now)
    assert not claims_of(answer, "lease-contended")
    assert len(claims_of(answer, "lease-stolen")) == 3


def test_thefts_by_three_in_a_circle_are_no_contest_of_two() -> None:
    server = contend(6, names=("db-0", "db-1", "db-2"))
    assert not claims_of(account(follow_log(server), server.now), "lease-contended")


def test_takeovers_after_the_expiry_are_no_contest() -> None:
    server = FakeServer()
    first, second = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    for _ in range(4):
        first.lead(4)
        server.wait(20)
        second.lead(4)
        server.wait(20)
    assert not claims_of(account(follow_log(server), server.now), "lease-contended")


def test_another_writer_that_puts_both_there_in_turns_is_named_and_no_contest() -> None:
    server = contend(0)
    for number in range(6):
        server.wait(2)
        spec = server.leases["shop/db"]["spec"] | {"holderIdentity": f"db-{(number + 1) % 2}_1"}
        server.write("shop/db", spec, "kubectl-patch", "mallory", "")
    answer = account(follow_log(server), server.now)
    assert not claims_of(answer, "lease-contended")
    assert "mallory wrote db-1_1 into the lease" in text(answer)


def contend_in_one_second(*, overlaps: int = 0) -> Account:
    """Two replicas write within each second, by a log at level Metadata and a watch; some requests overlap."""
    server = FakeServer(uids={"db-0": "uid-0", "db-1": "uid-1"})
    electors = [server.elector(f"db-{number}", "shop/db", user="system:serviceaccount:shop:db") for number in (0, 1)]
    electors[0].lead(20)
    server.wait(0.5)
    for number in range(20):
        server.wait(1.98)
        electors[1].take()
        server.wait(0.02)
        electors[0].take()
        if number < overlaps:
            server.log[-1]["requestReceivedTimestamp"] = server.log[-2]["requestReceivedTimestamp"]
    for event in server.log:
        event["verb"] = event["verb"].replace("update", "patch")
        event["objectRef"].pop("resourceVersion", None)
    histories = ClusterHistory()
    observe_all(histories, read("watch", [server.watch()]), read("log", [server.audit_log(metadata_only=True)]))
    return account(histories, server.now)


def test_writes_of_one_second_are_by_whom_the_log_shows_in_its_order() -> None:
    (claim,) = claims_of(contend_in_one_second(), "lease-contended")
    assert "took the lease from each other" in claim.message
    assert claim.message.endswith(": both may lead")


def test_where_two_requests_overlap_the_others_are_by_whom_the_log_shows() -> None:
    answer = contend_in_one_second(overlaps=1)
    (claim,) = claims_of(answer, "lease-contended")
    assert "took the lease from each other" in claim.message
    assert "of these times, the input shows that the new holder wrote itself in" in claim.message
    assert advise(answer).startswith("Both may lead: stop one of them")
