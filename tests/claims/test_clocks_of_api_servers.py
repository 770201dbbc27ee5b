"""API servers whose clocks differ by more than a lease lasts: nothing within that difference is concluded."""

import json
from collections.abc import Callable

import pytest

from tests.claims.accounts import account, text
from tests.factories import Document
from tests.history.fake_server import SECOND, FakeServer
from tests.history.observing import follow_log, follow_watch, merge_inputs
from tests.inputs.reading import read
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.facts import find_claims
from webhook.analysis.claims.findings.headline import make_headline
from webhook.analysis.claims.presentation.urgency import advise_with_urgency
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.status import LeaseState
from webhook.analysis.inputs.items import ClockSkew
from webhook.kubernetes.times import format_micro_time, format_time, parse, parse_seconds

BEHIND = 25
SECOND_SERVER = "second"
"""The field manager of its clients."""
INPUTS = pytest.mark.parametrize("is_watched", [False, True], ids=["logs", "logs and a watch"])


class TwoServers:
    """The requests of db-0 end at one API server; those of db-1 and mail-0 at another one, of another clock."""

    def __init__(self) -> None:
        self.server = FakeServer()
        self.first = self.server.elector("db-0", "shop/db")
        self.second = self.server.elector("db-1", "shop/db", manager=SECOND_SERVER)
        self.mail = self.server.elector("mail-0", "shop/mail", manager=SECOND_SERVER)
        self.first.take()
        self.mail.take()

    def go_on(self, seconds: int, *renewing: int) -> None:
        """Let time pass, in which mail-0 renews, and those of the two that are named by number."""
        for _ in range(0, seconds, 2):
            self.server.wait(2)
            self.mail.renew()
            for number in renewing:
                (self.first, self.second)[number].renew()

    def explain(self, *, behind: int, is_watched: bool) -> Account:
        logs: tuple[list[Document], list[Document]] = ([], [])
        for event in self.server.log:
            is_second = _pod_of(event) != "db-0"
            times = {
                key: format_micro_time(parse(event[key]) - is_second * behind * SECOND)
                for key in ("requestReceivedTimestamp", "stageTimestamp")
            }
            stored = _set_stamps_back(event["responseObject"], behind)
            logs[is_second].append({**event, **times, "responseObject": stored})
        texts = ["\n".join(json.dumps(one, separators=(",", ":")) for one in log).encode() for log in logs]
        items = [list(read(f"{number}.log", [one])) for number, one in enumerate(texts)]
        if is_watched:
            events = [(at, kind, _set_stamps_back(one, behind)) for at, kind, one in self.server.events]
            items.append(list(read("watch.json", [FakeServer(events=events).watch()])))
        histories = ClusterHistory()
        for item in merge_inputs(*items):
            histories.add(item)
        assert (histories.bounds.skew > 20 * SECOND) is (behind == BEHIND)
        return account(histories, self.server.now)


def _pod_of(event: Document) -> str:
    (pod,) = event["user"]["extra"]["authentication.kubernetes.io/pod-name"]
    return str(pod)


def _set_stamps_back(lease: Document, behind: int) -> Document:
    """Return a lease with the stamps that the second API server made by its own clock."""
    entries = [
        {**one, "time": format_time(parse_seconds(one["time"]) - (one["manager"] == SECOND_SERVER) * behind * SECOND)}
        for one in lease["metadata"]["managedFields"]
    ]
    return {**lease, "metadata": {**lease["metadata"], "managedFields": entries}}


def hand_over() -> TwoServers:
    """The first one ends, and the second one takes the lease once it has expired."""
    play = TwoServers()
    play.go_on(40, 0)
    play.go_on(16)
    play.second.take()
    play.go_on(20, 1)
    return play


@INPUTS
def test_a_takeover_by_another_clock_is_no_theft(is_watched: bool) -> None:
    output = text(hand_over().explain(behind=BEHIND, is_watched=is_watched))
    assert "lease-stolen" not in output
    assert "whether it had expired is not known" in output


def test_a_takeover_that_only_a_watch_shows_is_no_theft_by_its_stamp() -> None:
    play = hand_over()
    play.server.log = [one for one in play.server.log if _pod_of(one) != "db-1"]
    output = text(play.explain(behind=BEHIND, is_watched=True))
    assert "lease-stolen" not in output


@INPUTS
def test_a_takeover_by_the_same_clock_is_one_of_an_expired_lease(is_watched: bool) -> None:
    output = text(hand_over().explain(behind=0, is_watched=is_watched))
    assert "db-1_1 took the expired lease" in output


@INPUTS
def test_a_lease_that_has_expired_by_one_clock_alone_may_be_live(is_watched: bool) -> None:
    answer = hand_over().explain(behind=BEHIND, is_watched=is_watched)
    assert answer.state is LeaseState.UNKNOWN
    output = text(answer)
    assert "db-1_1 is named; whether the lease has expired is not known: the times of the API servers" in output
    assert "holder-clock" not in output
    advice = advise_with_urgency(answer)
    assert advice.sentence.startswith("Compare the clocks of the API servers' nodes")
    assert advice.command == "kubectl -n shop get lease db --watch"


@INPUTS
def test_a_lease_that_has_expired_by_every_clock_has(is_watched: bool) -> None:
    play = hand_over()
    play.go_on(44)
    answer = play.explain(behind=BEHIND, is_watched=is_watched)
    assert answer.state is LeaseState.EXPIRED
    assert advise_with_urgency(answer).sentence.startswith("Act now")


@INPUTS
def test_a_clock_that_is_off_by_more_than_those_of_the_servers_is_wrong(is_watched: bool) -> None:
    play = TwoServers()
    play.second.ahead = 90
    play.go_on(40, 0)
    play.go_on(16)
    play.second.take()
    play.go_on(20, 1)
    ahead = play.explain(behind=BEHIND, is_watched=is_watched).status
    assert ahead is not None
    assert ahead.ahead is not None
    assert ahead.ahead > 60 * SECOND


@pytest.mark.parametrize(("behind", "is_late"), [(0, True), (BEHIND, False)], ids=["equal clocks", "other clocks"])
def test_a_renewal_is_late_only_by_more_than_clocks_differ(behind: int, is_late: bool) -> None:
    play = TwoServers()
    play.go_on(40, 0)
    play.go_on(12)
    play.go_on(20, 0)
    answer = play.explain(behind=behind, is_watched=False)
    assert any(one.check == "renewal-late" for one in find_claims(answer)) is is_late


def test_a_difference_that_is_found_later_counts_for_what_was_read_before() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(20)
    server.wait(30)
    histories = follow_log(server)
    assert account(histories, server.now).state is LeaseState.EXPIRED
    histories = follow_log(server)
    histories.add(ClockSkew(BEHIND * SECOND))
    assert account(histories, server.now).state is LeaseState.UNKNOWN


def test_a_takeover_that_a_watch_dates_before_the_last_renewal_is_no_theft() -> None:
    """Nothing else in the watch shows that clocks differ."""
    play = hand_over()
    events = [
        (at, kind, _set_stamps_back(one, BEHIND))
        for at, kind, one in play.server.events
        if one["metadata"]["name"] == "db"
    ]
    said = text(account(follow_watch(FakeServer(events=events)), play.server.now))
    assert "lease-stolen" not in said
    assert "leader-lost" not in said
    assert "db-1_1 took it from db-0_1" in said


def watch(play: TwoServers, *, behind: int, at_second: Callable[[int], bool] | None = None) -> Account:
    """Return a watch of shop/db with the stamps of two servers: by field manager, or by number of writes."""
    events: list[tuple[int, str, Document]] = []
    for at, kind, one in play.server.events:
        if one["metadata"]["name"] == "mail":
            continue
        shown = _set_stamps_back(one, behind)
        if at_second is not None:
            seconds = at_second(len(events)) * behind
            entries = [
                {**entry, "time": format_time(parse_seconds(entry["time"]) - seconds * SECOND)}
                for entry in one["metadata"]["managedFields"]
            ]
            shown = {**one, "metadata": {**one["metadata"], "managedFields": entries}}
        events.append((at, kind, shown))
    return account(follow_watch(FakeServer(events=events)), play.server.now)


@pytest.mark.parametrize("behind", [BEHIND, -BEHIND, 60], ids=["behind", "ahead", "far behind"])
def test_a_watch_blames_neither_of_two_clocks(behind: int) -> None:
    said = text(watch(hand_over(), behind=behind))
    where = "behind" if behind < 0 else "ahead of"
    assert f"s {where} the time at which the API server stored it: the holder's clock is off, or that of the" in said
    assert "the holder's clock is at least" not in said
    assert "Act now" not in said


def test_a_lease_that_has_expired_by_its_stamp_alone_may_be_live() -> None:
    found = watch(hand_over(), behind=60)
    by_both = "for 1 min 0 s by the API server's clock; by its holder's, which wrote renewTime, for 0 s"
    assert make_headline(found) == f"db-1_1 has not renewed it {by_both}"
    advice = advise_with_urgency(found)
    look = "See whether it is renewed now; if so, compare the clocks of its holder and of the API servers:"
    assert (advice.sentence, advice.command) == (look, "kubectl -n shop get lease db --watch")


def test_a_lease_that_has_expired_by_both_clocks_has() -> None:
    play = hand_over()
    play.server.wait(30)
    found = watch(play, behind=60)
    assert "by its holder's" not in make_headline(found)
    assert advise_with_urgency(found).sentence.startswith("Act now if a program still uses this lease")


def test_a_takeover_is_late_by_renew_times_too_unless_two_clocks_stamped_it() -> None:
    said = text(watch(hand_over(), behind=-BEHIND))
    assert "up to 42 s (16 s by the renewTimes, if two clocks stamped the two writes) before " in said
    assert "taken-late" not in said
    assert "if two clocks" not in text(watch(hand_over(), behind=0))


def lead_for_a_minute() -> TwoServers:
    play = TwoServers()
    play.go_on(60, 0)
    return play


def test_a_renewal_is_late_by_renew_times_too_unless_two_clocks_stamped_it() -> None:
    said = text(watch(lead_for_a_minute(), behind=BEHIND, at_second=lambda number: number < 15))
    doubt = "unless its own clock was set, or stood still, another API server, of another clock, answered it since."
    assert f" on. By its renewTimes, it was 3 s: {doubt} Why is" in said
    assert "the lease expired, and no one took it" not in said.partition("renewal-late")[2]


def test_stamps_that_go_back_show_that_clocks_differ() -> None:
    found = watch(lead_for_a_minute(), behind=BEHIND, at_second=lambda number: number >= 15)
    assert found.state is LeaseState.UNKNOWN
    assert found.history.skew == 22 * SECOND
    assert "holder-clock" not in text(found)


@pytest.mark.parametrize(
    "tweak",
    [
        lambda entries: [{**one, "manager": "b"} for one in entries] + entries,
        lambda entries: [{**one, "time": "2093-01-01T00:00:00Z"} for one in entries],
        lambda _: [],
    ],
    ids=["of which of two owners it is", "of the future", "none"],
)
def test_a_stamp_that_need_not_be_that_of_the_write_shows_nothing_of_clocks(
    tweak: Callable[[list[Document]], list[Document]],
) -> None:
    play = lead_for_a_minute()
    for _, _, one in play.server.events[:20]:
        entries = one["metadata"]["managedFields"]
        later = [{**entry, "time": format_time(parse_seconds(entry["time"]) + 40 * SECOND)} for entry in entries]
        one["metadata"]["managedFields"] = tweak(later)
    histories = ClusterHistory()
    for item in merge_inputs(read("watch.json", [play.server.watch()]), latest=play.server.now + 60 * SECOND):
        histories.add(item)
    assert histories.bounds.skew == 0
