"""The last renewal of a lease by its holder: its time, and whether it was the last write of all."""

import pytest

from tests.history.fake_server import FakeServer
from tests.history.observing import LEASE, View, follow_both, follow_log, follow_watch
from tests.history.test_succession import SECOND, log, tenure
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.history.holders.beginning import Beginning
from webhook.analysis.history.holders.processes import HolderProcesses
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.last_renewal import find_last_renewal
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.renewals import Silence
from webhook.analysis.history.status import LeaseState, LeaseStatus
from webhook.analysis.history.write import Dating, Write
from webhook.analysis.inputs.items import RecordingGap, Writer
from webhook.kubernetes.times import format_micro_time

OWN = Writer(user="system:serviceaccount:shop:db", pod="db-0", uid="1")
OTHER = Writer(user="system:serviceaccount:shop:db", pod="db-1", uid="2")
NOW = 60 * SECOND
SEEN = 30 * SECOND + 400_000
STAMPED = 30 * SECOND
LATER = 50 * SECOND
AHEAD = 140 * SECOND


def make_history(*, at: int = SEEN) -> LeaseHistory:
    """A lease that was last seen renewed at a moment."""
    history = LeaseHistory("shop", "db", is_list_only=False)
    history.renewals.last = at
    return history


def status(last_renewal: int | None = STAMPED, holder: str = "db-0") -> LeaseStatus:
    return LeaseStatus(LeaseState.LIVE, holder, 15, last_renewal, from_stamps=True)


def renewed(*, dating: Dating = Dating.WRITER_CLOCK, is_unseen: bool = False, at: int = 40 * SECOND) -> Tenure:
    """The tenure of a holder, which renewed at 40 s."""
    own = tenure("db-0", 10)
    own.renew(at, Write(at, at, at, dating))
    own.has_unseen_renewals = is_unseen
    return own


def renewed_by_another(
    *, is_unseen: bool = False, dating: Dating = Dating.LOG, at: int = 40 * SECOND, is_claimed: bool = False
) -> Tenure:
    """The same, by a log, and then another process renewed it."""
    own = renewed(is_unseen=is_unseen, dating=dating, at=at)
    own.processes.own = OWN
    own.note_renewal_by_other(LATER, OTHER, is_claimed=is_claimed)
    return own


def renewed_under_one_name(*, dating: Dating = Dating.WRITER_CLOCK, is_claimed: bool = False) -> Tenure:
    """Its holder's clock, which is ahead, dates its last renewal, which another process of that name followed."""
    own = renewed_by_another(dating=dating, at=AHEAD, is_claimed=is_claimed)
    own.processes.identity, own.processes.own = "db", None
    return own


def find(
    history: LeaseHistory,
    known: LeaseStatus | None,
    own: Tenure | None = None,
    *unrecorded: RecordingGap,
) -> int | None:
    return find_last_renewal(history, known, own, NOW, unrecorded)


def test_what_was_seen_is_more_exact_than_a_stamp_of_the_same_second() -> None:
    assert find(make_history(), status()) == SEEN


def test_a_stamp_that_is_not_of_what_was_seen_is_of_a_later_renewal() -> None:
    assert find(make_history(), status(LATER)) == LATER


def test_a_stamp_is_all_that_is_known_where_renewals_were_not_seen() -> None:
    assert find(make_history(), status(), renewed(is_unseen=True)) == STAMPED


def test_the_renew_time_of_a_release_is_taken_as_it_is() -> None:
    assert find(make_history(), status(holder="")) == STAMPED


def release(*, sets_renew_time: bool, writes: int = 0) -> FakeServer:
    """A server on which db-0 renewed at 20 s, and released the lease at 28 s; then others wrote it."""
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    holder.lead(20)
    server.wait(8)
    for number in range(1 + writes):
        spec = server.leases["shop/db"]["spec"] | {"holderIdentity": ""}
        renewed = {"renewTime": format_micro_time(server.now)} if sets_renew_time or number else {}
        server.write("shop/db", spec | renewed, holder.manager, holder.user, "db-0" if not number else "db-1")
        server.wait(4)
    return server


@pytest.mark.parametrize("follow", [follow_log, follow_watch, follow_both], ids=["audit log", "watch", "both"])
@pytest.mark.parametrize(
    ("server", "ago"),
    [
        pytest.param(release(sets_renew_time=False), 12, id="a release that leaves renewTime"),
        pytest.param(release(sets_renew_time=True), 4, id="a release that sets it"),
        pytest.param(release(sets_renew_time=False, writes=1), 4, id="another one sets it since"),
    ],
)
def test_a_release_that_leaves_renew_time_as_it_was_is_no_renewal(follow: View, server: FakeServer, ago: int) -> None:
    found = make_account(follow(server), follow(server).leases[LEASE], server.now).last_renewal
    assert found is not None
    assert found // SECOND == server.now // SECOND - ago


@pytest.mark.parametrize(("is_unseen", "found"), [(False, 40 * SECOND), (True, None)])
def test_a_removal_that_is_no_renewal_dates_none_that_was_not_seen(is_unseen: bool, found: int | None) -> None:
    own, history = renewed(is_unseen=is_unseen), make_history()
    history.tenures.append(own)
    own.end(LATER, Write(LATER))
    history.vacancy.begin(LATER, Handover.RELEASED)
    assert find(history, status(LATER, holder="")) == found


def test_what_an_api_server_dates_needs_no_stamp() -> None:
    assert find(make_history(), status(), renewed(dating=Dating.LOG)) == 40 * SECOND


def test_a_renewal_by_another_process_is_none_by_the_holder() -> None:
    assert find(make_history(), status(LATER), renewed_by_another()) == 40 * SECOND


def test_a_claim_says_nothing_beside_a_later_renewal_by_another_process_that_a_log_dates() -> None:
    assert find(make_history(), status(LATER), renewed_by_another(dating=Dating.WRITER_CLOCK)) is None


def test_a_claim_beside_a_later_claim_is_the_last_renewal_as_it_says_itself() -> None:
    claimed = renewed_by_another(dating=Dating.WRITER_CLOCK, is_claimed=True)
    assert find(make_history(), status(LATER), claimed) == 40 * SECOND


def test_of_one_name_the_renewal_that_a_log_dates_counts_after_one_by_a_clock_ahead() -> None:
    own = renewed_under_one_name()
    assert (find(make_history(), status(LATER), own), own.kept_until) == (LATER, LATER)


@pytest.mark.parametrize(
    ("dating", "is_claimed"),
    [
        pytest.param(Dating.LOG, False, id="clocks of API servers"),
        pytest.param(Dating.WRITER_CLOCK, True, id="clocks of writers"),
    ],
)
def test_of_times_of_one_kind_the_latest_counts(dating: Dating, is_claimed: bool) -> None:
    own = renewed_under_one_name(dating=dating, is_claimed=is_claimed)
    assert (find(make_history(), status(LATER), own), own.kept_until) == (AHEAD, AHEAD)


def test_a_renewal_by_a_clock_ahead_counts_after_one_that_a_log_dates() -> None:
    own = renewed_under_one_name(dating=Dating.LOG)
    own.renew(LATER - SECOND, Write(LATER - SECOND, dating=Dating.WRITER_CLOCK))
    assert own.kept_until == LATER - SECOND


def test_a_claim_of_what_was_not_seen_is_no_time_of_a_log() -> None:
    own = renewed_under_one_name(dating=Dating.LOG)
    own.resume(AHEAD, is_seen=True, is_claimed=True)
    own.note_renewal_by_other(LATER, OTHER)
    assert own.kept_until == LATER


def test_whether_the_holder_renewed_before_another_did_may_not_have_been_seen() -> None:
    assert find(make_history(), status(LATER), renewed_by_another(is_unseen=True)) is None


def test_nothing_is_known_once_the_input_may_lack_writes() -> None:
    history = make_history()
    history.continuity.hidden_since = LATER
    assert find(history, status()) is None


@pytest.mark.parametrize("known", [None, status(None)], ids=["no state", "a state without renewTime"])
def test_without_a_renew_time_the_last_one_that_was_seen_counts(known: LeaseStatus | None) -> None:
    assert find(make_history(), known) == SEEN


def test_without_a_renew_time_nothing_is_known_where_none_was_seen() -> None:
    assert find(LeaseHistory("shop", "db", is_list_only=False), None) is None


def test_a_list_alone_shows_no_renewal() -> None:
    history = make_history()
    history.is_list_only = True
    assert find(history, None) is None


@pytest.mark.parametrize(("end", "is_known"), [(SEEN, True), (SEEN + 1, False)], ids=["before it", "after it"])
def test_a_renewal_may_follow_while_nothing_is_recorded(end: int, is_known: bool) -> None:
    assert (find(make_history(), None, None, RecordingGap(0, end, "")) == SEEN) is is_known


@pytest.mark.parametrize(("end", "is_known"), [(SEEN, True), (SEEN + 1, False)], ids=["before it", "after it"])
def test_a_renewal_may_follow_while_the_input_does_not_show_any(end: int, is_known: bool) -> None:
    history = make_history()
    history.renewals.unseen = (Silence(0, end),)
    assert (find(history, None) == SEEN) is is_known


@pytest.mark.parametrize(("at", "is_known"), [(NOW, True), (NOW + 1, False)], ids=["now", "later than now"])
def test_a_clock_that_is_ahead_dates_no_renewal(at: int, is_known: bool) -> None:
    assert (find(make_history(at=at), None) == at) is is_known


@pytest.mark.parametrize("known", [None, status(None)], ids=["no state", "a state without renewTime"])
def test_the_clock_of_a_writer_dates_no_renewal_that_no_state_shows(known: LeaseStatus | None) -> None:
    history = make_history()
    history.renewals.is_last_claimed = True
    assert find(history, known) is None


@pytest.mark.parametrize(
    ("own", "writer", "is_own"),
    [(None, OTHER, True), (OWN, None, True), (OWN, OWN, True), (OWN, OTHER, False)],
    ids=["of an unknown process", "by an unknown writer", "by its own", "by another one"],
)
def test_a_write_before_any_renewal(own: Writer | None, writer: Writer | None, is_own: bool) -> None:
    processes, taken = HolderProcesses("db-0_1"), log(1)
    processes.own = own
    written = Write(at=taken.at, writer=writer)
    tenure = Tenure(processes, SECOND, Handover.CLAIMED, SECOND, beginning=Beginning(taken), last_extension=written)
    assert tenure.is_renewed_last_by_own is is_own
