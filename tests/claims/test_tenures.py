"""Tell how tenures begin and end where an input leaves something out, which is then said to be unknown."""

import json
import re
from collections.abc import Callable

import pytest

from tests.claims.accounts import account, text
from tests.claims.test_gaps import watch_again
from tests.factories import STAMP_ENTRY, changed, make_lease, make_review, put, to_bytes
from tests.history.fake_server import Elector, FakeServer, together
from tests.history.observing import LEASE, View, advise, follow_log, follow_watch, merge_inputs
from tests.inputs.reading import read
from webhook.admission.rules.stamps import Stamps
from webhook.analysis.claims.facts import find_claims
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover
from webhook.analysis.history.status import LeaseState
from webhook.analysis.inputs.stamp_reader import StampReader
from webhook.kubernetes.times import SECOND, format_micro_time, format_time


def shop() -> tuple[FakeServer, Elector, Elector]:
    """A leader that has renewed for 20 s, and a follower."""
    server = FakeServer()
    first, second = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    first.lead(20)
    return server, first, second


def print_account(histories: ClusterHistory, server: FakeServer) -> str:
    return text(account(histories, server.now))


def follow_inputs(*inputs: bytes) -> ClusterHistory:
    histories = ClusterHistory()
    for item in merge_inputs(*(read(f"in-{number}", [data]) for number, data in enumerate(inputs))):
        histories.add(item)
    histories.leases |= {key: histories.get_history(key) for key in histories.names()}
    return histories


def omit_request(server: FakeServer, verb: str) -> None:
    """Leave out the first request of this kind, as logs do that are not whole."""
    server.log.remove(next(one for one in server.log if one["verb"] == verb))


def cut_out(server: FakeServer, first: int, last: int) -> None:
    del server.log[first:last]


def test_a_lease_that_is_created_again_was_deleted_and_not_stolen() -> None:
    server, _, second = shop()
    server.delete("shop/db")
    omit_request(server, "delete")
    server.wait(3)
    second.lead(10)
    output = print_account(follow_log(server), server)
    assert "the lease was deleted while db-0_1 held it, then or later" in output
    assert "db-1_1 created it again (shop/db from pod db-1) after it was deleted" in output
    assert "; the lease had no holder for up to 3 s" in output
    assert "lease-deleted: the lease was deleted between 11:07:00Z and 11:07:03Z while db-0_1 held it; " in output
    assert "db-1_1 created it again at 11:07:03Z: if the holder did not delete it itself, as some do" in output
    assert "lease-stolen" not in output
    assert "ADVICE The log does not show who it was: see whether parts of it are missing." in output


def test_after_a_deletion_that_may_have_come_after_the_expiry_two_may_not_have_led() -> None:
    server, _, second = shop()
    server.delete("shop/db")
    omit_request(server, "delete")
    server.wait(16)
    second.lead(10)
    output = print_account(follow_log(server), server)
    assert "created it again at 11:07:16Z" in output
    assert "two may have led" not in output


def test_a_review_of_a_creation_does_not_say_that_the_lease_was_deleted() -> None:
    """Replicas that start at once all create the lease, and the API server asks before it refuses all but one."""
    reviews = [make_review(new=make_lease(put("spec.holderIdentity", one))) for one in "ab"]
    history = follow_inputs(*map(to_bytes, reviews)).leases["shop", "checkout"]
    assert not any(one.is_deleted for one in history.tenures)


def test_a_free_lease_that_was_created_again_was_not_deleted_while_it_was_held() -> None:
    server, first, second = shop()
    first.release()
    server.delete("shop/db")
    omit_request(server, "delete")
    second.lead(10)
    output = print_account(follow_log(server), server)
    assert "db-1_1 created it (shop/db from pod db-1)" in output
    assert "lease-deleted" not in output


def test_two_uids_in_turns_are_two_clusters() -> None:
    server, first, second = shop()
    alike = [(first, server.leases.pop("shop/db"))]
    second.take()
    alike.append((second, server.leases["shop/db"]))
    for _ in range(3):
        for number, (elector, stored) in enumerate(alike):
            server.wait(1)
            server.leases["shop/db"] = stored
            elector.renew()
            alike[number] = elector, server.leases["shop/db"]
    answer = account(follow_watch(server), server.now)
    assert answer.state is LeaseState.UNKNOWN
    assert text(answer).startswith("the input shows leases of several clusters under this name\n")
    assert [found.check for found in answer.findings] == ["clusters-mixed"]
    assert "took it" not in text(answer)
    assert "ADVICE Give the input of one cluster alone:" in text(answer)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (12.9, "db-1_1 took it (shop/db from pod db-1) from db-0_1, which still held it"),
        (12.99, "db-1_1 took it (shop/db from pod db-1) from db-0_1, which still held it"),
        (13.5, "db-1_1 took it from db-0_1: whether it had expired is not known; not renewed for up to 13.5 s"),
        (14.9, "db-1_1 took it from db-0_1: whether it had expired is not known; not renewed for up to 14.9 s"),
        (15.01, "db-1_1 took it (shop/db from pod db-1) after db-0_1 let it expire"),
    ],
)
def test_a_lease_had_expired_when_its_whole_duration_had_passed(seconds: float, words: str) -> None:
    server, _, second = shop()
    server.wait(seconds)
    second.lead(10)
    assert words in print_account(follow_log(server), server)


def test_whether_a_lease_had_expired_is_not_known_if_it_did_while_a_slow_takeover_was_stored() -> None:
    """A write is stored at some time between its request and the answer."""
    server, _, second = shop()
    server.wait(16)
    second.lead(0)
    server.log[-1]["requestReceivedTimestamp"] = format_micro_time(server.now - 3 * SECOND)
    second.lead(10)
    output = print_account(follow_log(server), server)
    assert "db-1_1 took it from db-0_1: whether it had expired is not known; not renewed for up to 16.1 s" in output


def test_a_write_that_the_log_leaves_out_is_no_silence() -> None:
    server, first, _ = shop()
    kept = len(server.log)
    first.lead(60)
    cut_out(server, kept, len(server.log))
    first.lead(20)
    output = print_account(follow_log(server), server)
    assert "did not renew" not in output
    assert "expired" not in output
    assert "as far as was recorded" in output


def test_how_the_holder_changed_is_not_known_if_the_log_leaves_out_writes() -> None:
    server, first, second = shop()
    kept = len(server.log)
    first.lead(60)
    first.release()
    second.take()
    cut_out(server, kept, len(server.log))
    second.lead(20)
    answer = account(follow_log(server), server.now)
    assert "db-1_1 came to hold it after db-0_1, at a time that was not recorded" in text(answer)
    assert not any(found.check == "leader-lost" for found in answer.findings)


def test_a_write_that_the_log_shows_without_its_object_is_not_missing() -> None:
    server, first, _ = shop()
    first.lead(2)
    del server.log[-1]["responseObject"]
    first.lead(20)
    assert "as far as was recorded" not in print_account(follow_log(server), server)


def test_other_leases_say_nothing_of_a_time_that_the_log_leaves_out() -> None:
    server, first, second = shop()
    mail, cart = server.elector("mail-0", "shop/mail"), server.elector("cart-0", "shop/cart")
    together(20, first, mail, cart)
    kept = len(server.log)
    together(16, mail, cart)
    cut_out(server, kept, len(server.log))
    second.take()
    together(20, second, mail, cart)
    assert "Why is not known: no other lease in the input shows whether" in print_account(follow_log(server), server)


def failed_and_stored(server: FakeServer, elector: Elector, code: int, *, by: str = "") -> None:
    """Renew, and have the API server answer that this failed."""
    elector.renew()
    server.log[-1]["responseStatus"] = {"metadata": {}, "code": code}
    server.log[-1]["responseObject"] = {"kind": "Status", "apiVersion": "v1"}
    if by:
        server.log[-1]["user"] = {"username": by}


def test_a_failed_renewal_that_was_stored_leaves_open_whether_the_lease_expired() -> None:
    server, first, second = shop()
    server.wait(8)
    failed_and_stored(server, first, 504)
    server.wait(10)
    second.lead(10)
    output = print_account(follow_log(server), server)
    assert "db-1_1 took it from db-0_1: whether it had expired is not known; not renewed for up to 18 s" in output
    assert (
        "leader-lost: db-0_1 last renewed at 11:07:00Z, up to 18 s before db-1_1 took the lease at 11:07:18Z" in output
    )
    assert "let it expire" not in output


@pytest.mark.parametrize(("code", "by", "is_late"), [(504, "", True), (429, "", False), (504, "mallory", False)])
def test_after_a_failed_renewal_of_its_own_a_holder_is_late(code: int, by: str, is_late: bool) -> None:
    server, first, _ = shop()
    server.wait(8)
    failed_and_stored(server, first, code, by=by)
    server.wait(10)
    first.lead(10)
    assert ("renewal-late" in print_account(follow_log(server), server)) == is_late


def test_a_list_after_a_list_does_not_say_how_the_holder_changed() -> None:
    server, first, second = shop()
    before = server.dump()
    first.release()
    second.lead(3)
    answer = account(follow_inputs(before, server.dump()), server.now)
    assert "db-1_1 came to hold it after db-0_1, at a time that was not recorded" in text(answer)
    assert "; it was not recorded when" in text(answer)
    assert not {"lease-stolen", "leader-lost"} & {found.check for found in answer.findings}


def test_a_list_after_a_list_of_the_same_state_shows_nothing_new() -> None:
    server, _, _ = shop()
    before = server.dump()
    server.leases["shop/db"]["metadata"]["resourceVersion"] = "200"
    assert "not recorded" not in print_account(follow_inputs(before, server.dump()), server)


@pytest.mark.parametrize("is_list", [True, False], ids=["after a list", "after a watch"])
def test_a_watch_that_begins_later_does_not_say_what_was_before_it(is_list: bool) -> None:
    server, first, second = shop()
    before = server.dump() if is_list else server.watch()
    server.events.clear()
    first.release()
    server.wait(100)
    server.events.clear()
    second.lead(20)
    answer = account(follow_inputs(before, server.watch()), server.now)
    assert "db-1_1 came to hold it after db-0_1, at a time that was not recorded" in text(answer)
    assert not any(found.check == "leader-lost" for found in answer.findings)


def test_a_holder_that_took_the_lease_again_in_what_was_missed_began_anew() -> None:
    server, first, _ = shop()
    seen = len(server.events)
    first.lead(60)
    first.take(leaseTransitions=0)
    server.events[seen:] = [(server.now, "ADDED", server.leases["shop/db"])]
    first.lead(10)
    history = follow_watch(server).leases[LEASE]
    assert [(one.holder, one.began, one.beginning.is_unseen) for one in history.tenures] == [
        ("db-0_1", Handover.SEEN, False),
        ("db-0_1", Handover.UNKNOWN, True),
    ]


def test_a_steal_is_measured_by_the_duration_that_the_old_holder_had() -> None:
    server, _, second = shop()
    server.wait(1)
    second.lead(10)
    second.release()
    assert "db-1_1 took the lease while db-0_1 still held it, 14 s before it expired" in print_account(
        follow_log(server), server
    )


def test_a_silence_is_measured_by_the_duration_of_its_time() -> None:
    server = FakeServer()
    first, second = server.elector("db-0", "shop/db", duration=60), server.elector("db-1", "shop/db")
    first.lead(20)
    server.wait(45)
    first.lead(20)
    server.wait(70)
    second.lead(20)
    output = print_account(follow_log(server), server)
    assert "the holder did not renew it for 47 s" in output
    assert "The lease expired, but no one took it" not in output
    assert "the lease expired, and no one took it" not in output
    assert "By default client-go" not in output  # it has a default for 15 s only
    assert "the lease expired, 60 s after the last renewal by db-0_1" in output


def test_a_deletion_is_measured_by_the_duration_that_the_holder_had() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db", duration=60).lead(20)
    server.wait(30)
    server.delete("shop/db")
    server.wait(1)
    server.elector("db-1", "shop/db").lead(20)
    output = print_account(follow_log(server), server)
    assert (
        "admin deleted the lease at 11:07:30Z while db-0_1 held it; db-1_1 created it again 1 s later: two may"
        in output
    )


@pytest.mark.parametrize("view", [follow_log, follow_watch], ids=["audit log", "watch"])
@pytest.mark.parametrize("renews", [True, False], ids=["with a renewal", "alone"])
def test_a_duration_that_another_writer_lowered_ends_no_tenure(view: View, renews: bool) -> None:
    server, first, second = shop()
    spec = server.leases["shop/db"]["spec"] | {"leaseDurationSeconds": 1}
    server.wait(1)
    server.write("shop/db", spec | ({"renewTime": first._time()} if renews else {}), "curl", "mallory", "")
    server.wait(2)
    second.lead(20)
    output = print_account(view(server), server)
    assert "let it expire" not in output
    if renews and view is follow_watch:
        # Only a field manager says that another one renewed it for a shorter time.
        assert "db-1_1 took it from db-0_1: whether it had expired is not known" in output
        return
    took = r"took it \(\S+ from pod db-1\) from" if view is not follow_watch else "was written into it in place of"
    assert re.search(rf"db-1_1 {took} db-0_1, which still held it", output)
    assert "s before it expired by the duration that its holder wrote" in output
    assert "does not wait until the lease expires" not in output
    assert ("Find out why mallory changed how long it lasts." in output) is (view is follow_log)


def test_a_holder_may_lower_its_own_duration() -> None:
    server, first, second = shop()
    first.duration = 5
    first.lead(20)
    server.wait(6)
    second.lead(20)
    assert "db-1_1 took it (shop/db from pod db-1) after db-0_1 let it expire" in print_account(
        follow_log(server), server
    )


def remove_holder(server: FakeServer, *, holder: str | None = "") -> None:
    """Have an admin remove the holder: the field, or its value."""
    spec = server.leases["shop/db"]["spec"] | {"holderIdentity": holder}
    if holder is None:
        del spec["holderIdentity"]
    server.write("shop/db", spec, "kubectl-patch", "admin", "")


@pytest.mark.parametrize(
    ("seconds", "severity", "words"),
    [
        (2, "error", "admin removed db-0_1 as the holder, which had renewed the lease 2 s before"),
        (
            14,
            "warning",
            "admin removed db-0_1 as the holder, which had not renewed the lease for 14 s, and may still have led",
        ),
        (3600, "warning", "admin removed db-0_1 as the holder, which had not renewed the lease for 1 h 0 min: it had"),
    ],
)
def test_a_removed_holder_still_led_if_its_lease_had_not_expired(seconds: float, severity: str, words: str) -> None:
    server, _, second = shop()
    server.wait(seconds)
    remove_holder(server)
    server.wait(40)
    answer = account(follow_log(server), server.now)
    assert words in text(answer)
    assert text(answer).startswith("no one holds it: its holder was removed 40 s ago\n")
    assert [found.severity for found in answer.findings if found.check == "foreign-release"] == [severity]
    second.lead(10)
    output = print_account(follow_log(server), server)
    assert ("two may have led" in output) == (seconds < 15)
    assert "db-1_1 took it (shop/db from pod db-1) after admin removed db-0_1 as the holder" in output
    assert ("; not renewed for up to 1 h 1 min" in output) == (seconds > 15)


@pytest.mark.parametrize(
    ("pod", "is_told"), [("db-0", True), ("intruder", False)], ids=["the holder before", "another pod"]
)
def test_a_holder_that_was_paused_may_release_the_lease_of_the_next(pod: str, is_told: bool) -> None:
    server, first, second = shop()
    server.wait(16)
    second.lead(6)
    spec = server.leases["shop/db"]["spec"] | {"holderIdentity": "", "leaseDurationSeconds": 1}
    server.write("shop/db", spec, first.manager, first.user, pod)
    output = print_account(follow_log(server), server)
    assert "removed db-1_1 as the holder" in output
    assert ("db-0, which had lost the lease, was paused: client-go with ReleaseOnCancel" in output) == is_told


def test_a_removed_field_has_no_date_and_is_no_release() -> None:
    server, _, second = shop()
    server.wait(3600)
    remove_holder(server, holder=None)
    # The API server keeps no entry of who only removed a field.
    entries = server.leases["shop/db"]["metadata"]["managedFields"]
    server.leases["shop/db"]["metadata"]["managedFields"] = [one for one in entries if one["manager"] == "operator"]
    output = print_account(follow_watch(server), server)
    assert output.startswith("no one holds it\n")
    assert "db-0_1 was removed as the holder, then or later" in output
    assert "released it" not in output
    second.take()
    output = print_account(follow_watch(server), server)
    assert "db-1_1 took it after db-0_1 was removed as the holder; not renewed for up to 1 h 1 min" in output


def test_a_list_without_the_field_of_the_holder_shows_no_release() -> None:
    server, _, _ = shop()
    remove_holder(server, holder=None)
    assert print_account(follow_inputs(server.dump()), server).startswith("no one holds it\n")


def test_who_takes_a_lease_that_was_free_at_the_start_may_not_be_the_first_holder() -> None:
    server, first, second = shop()
    first.release()
    server.events = [(server.now, "ADDED", server.leases["shop/db"])]
    server.wait(10)
    second.lead(10)
    assert "db-1_1 took it; no one held it" in print_account(follow_watch(server), server)


def test_a_renewal_shows_that_a_holder_did_not_step_down_for_the_preferred_one() -> None:
    server, first, second = shop()
    spec = server.leases["shop/db"]["spec"] | {"preferredHolder": "x", "strategy": "OldestEmulationVersion"}
    server.write("shop/db", spec, "kubectl-edit", "ops", "")
    first.lead(60)
    server.wait(17)
    second.lead(10)
    output = print_account(follow_log(server), server)
    assert "db-1_1 took it (shop/db from pod db-1) after db-0_1 let it expire" in output
    assert "leader-lost" in output


@pytest.mark.parametrize("is_gone", [True, False], ids=["the last finalizer was removed", "a finalizer is left"])
def test_a_lease_with_finalizers_is_deleted_when_they_are_gone(is_gone: bool) -> None:
    server, first, _ = shop()
    stored = json.loads(json.dumps(server.leases["shop/db"]))
    stored["metadata"] |= {"deletionTimestamp": format_time(server.now), "finalizers": ["example.com/keep"]}
    server.log_request("shop/db", "delete", "admin", "", stored)
    server.leases["shop/db"] = stored
    if is_gone:
        del stored["metadata"]["finalizers"]
        server.log_request("shop/db", "update", "keeper", "", stored)
        assert print_account(follow_log(server), server).startswith("the lease was deleted 0 s ago by admin\n")
    else:
        answer = account(follow_log(server), server.now)
        assert answer.state is LeaseState.LIVE
        assert "deleted while" not in text(answer)
        assert advise(answer).startswith(
            "The lease is held, but was deleted: it is gone as soon as its finalizers are."
        )
        assert make_account_json(answer)["holder"] == first.identity


def test_a_holder_that_goes_on_after_its_release_holds_the_lease_again() -> None:
    """As fabric8 releases it since 7.5: with its name."""
    server, first, _ = shop()
    server.wait(1)
    now = first._time()
    first.renew(leaseDurationSeconds=1, acquireTime=now, renewTime=now)
    server.wait(2)
    first.renew()
    assert "db-0_1 held it by then (shop/db from pod db-0); not renewed for up to 2 s" in print_account(
        follow_log(server), server
    )


def stamp_events(server: FakeServer) -> FakeServer:
    """Have the API server stamp each write, all by one user: of two in one second, the stamp dates the first alone."""
    for at, _, stored in server.events:
        stored["metadata"]["managedFields"] = [STAMP_ENTRY]
        stored["metadata"]["annotations"] = {
            "lease-webhook/writer-x": "- system:serviceaccount:shop:db",
            "lease-webhook/written-x": format_time(at),
        }
    return server


def follow_stamped(watch: bytes) -> ClusterHistory:
    """Return the history that a watch shows, where the stamps are believed."""
    histories, reader = ClusterHistory(), StampReader({"shop": Stamps("x")})
    for item in merge_inputs(map(reader.read, read("in", [watch]))):
        histories.add(item)
    return histories


@pytest.mark.parametrize("is_by_itself", [True, False], ids=["by itself", "by another one"])
@pytest.mark.parametrize("is_released", [True, False], ids=["released", "held"])
def test_only_another_one_may_have_stolen_a_lease_that_was_held_by_a_write_that_nothing_dates(
    *, is_by_itself: bool, is_released: bool
) -> None:
    server, first, second = shop()
    server.wait(1)
    now = first._time()
    first.renew(**({"leaseDurationSeconds": 1, "acquireTime": now, "renewTime": now} if is_released else {}))
    server.wait(0.01)
    (first.renew if is_by_itself else second.take)()
    answer = account(follow_stamped(stamp_events(server).watch()), server.now)
    is_stolen = "lease-stolen" in {one.check for one in answer.findings}
    assert is_stolen == (not is_by_itself and not is_released)


def test_who_goes_on_after_its_release_is_not_said_to_take_the_lease_from_itself() -> None:
    server, first, _ = shop()
    now = first._time()
    first.renew(leaseDurationSeconds=1, acquireTime=now, renewTime=now)
    server.wait(0.01)
    first.renew()
    output = text(account(follow_stamped(stamp_events(server).watch()), server.now))
    assert "db-0_1 took it from" not in output
    assert "whether it had expired" not in output


def test_a_lease_that_a_gap_leaves_free_is_not_stolen() -> None:
    server, first, second = shop()
    seen = len(server.events)
    server.wait(2)
    first.release()
    server.wait(0.01)
    second.take()
    server.wait(2)
    second.renew()
    watch = watch_again(stamp_events(server).watch(), seen, seen + 1)
    answer = account(follow_stamped(watch), server.now)
    taken = list(answer.history.tenures)[-1]
    assert (taken.holder, taken.began, taken.beginning.is_dated) == ("db-1_1", Handover.UNKNOWN, False)
    assert "lease-stolen" not in {one.check for one in answer.findings}


def test_a_lease_that_was_released_with_its_name_does_not_wait_to_expire() -> None:
    server, first, _ = shop()
    server.wait(1)
    now = first._time()
    first.renew(leaseDurationSeconds=1, acquireTime=now, renewTime=now)
    assert "expires" not in {one.check for one in find_claims(account(follow_log(server), server.now))}


def test_another_pod_that_renews_under_the_same_name_after_expiry_takes_nothing() -> None:
    server, first, _ = shop()
    first.lead(20)
    server.wait(20)
    again = server.elector("db-0b", "shop/db")
    again.identity = first.identity
    again.renew()
    claims = [one.check for one in find_claims(account(follow_log(server), server.now))]
    assert claims.count("taken") == 1


def test_where_writers_are_stamped_a_watch_without_the_policy_has_only_the_clock_of_the_holder() -> None:
    server, first, _ = shop()
    first.ahead = 60
    first.lead(20)
    for _, _, stored in server.events:
        stored["metadata"]["managedFields"] = [STAMP_ENTRY]
    renewed = [one for one in find_claims(account(follow_watch(server), server.now)) if one.check == "last-renewed"]
    assert [one.arguments["how"] for one in renewed] == ["writer-clock"]
    assert not {"earliest", "latest"} & renewed[0].arguments.keys()


def test_a_removal_without_a_date_may_have_come_after_the_lease_had_expired() -> None:
    server, _, second = shop()
    server.wait(2)
    remove_holder(server, holder=None)
    entries = server.leases["shop/db"]["metadata"]["managedFields"]
    server.leases["shop/db"]["metadata"]["managedFields"] = [one for one in entries if one["manager"] == "operator"]
    server.wait(30)
    second.take()
    (claim,) = (one for one in find_claims(account(follow_watch(server), server.now)) if one.check == "holder-removed")
    assert "11:07:00Z or later db-0_1 was removed as the holder while the lease may have been live" in claim.message
    assert claim.arguments["how"] == "unknown"


def test_a_wipe_after_a_patch_with_which_a_log_begins_shows_neither_a_live_lease_nor_a_renewal() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(20)
    spec = server.leases["shop/db"]["spec"]
    server.log.clear()
    server.wait(60)
    # Another manager owns the holder, so the renewal that managedFields date need not be that of the holder.
    written_in = {**spec, "holderIdentity": "db-1_1"}
    server.write("shop/db", written_in, "kube-apiserver", "mallory", "")
    server.log[-1] |= {"verb": "patch", "requestObject": {"spec": {"holderIdentity": "db-1_1"}}}
    server.wait(4)
    server.write("shop/db", {}, "kubectl-replace", "alice", "")
    explained = account(follow_log(server), server.now)
    (claim,) = (one for one in find_claims(explained) if one.check == "holder-removed")
    assert "alice removed db-1_1 as the holder while the lease may have been live" in claim.message
    assert (claim.arguments["how"], explained.last_renewal) == ("unknown", None)


def test_a_holder_that_writes_without_renewing_is_the_cause_of_its_loss() -> None:
    server = FakeServer()
    db, *others = (server.elector(f"{name}-0", f"shop/{name}") for name in ("db", "cache", "queue"))
    together(20, db, *others)
    spec = server.leases["shop/db"]["spec"]
    for _ in range(8):
        together(2, *others)
        server.write("shop/db", spec, "operator", db.user, db.pod)
    server.elector("db-1", "shop/db").lead(4)
    assert "Its pod wrote the lease and did not renew it: at least 7 writes" in text(
        account(follow_log(server), server.now)
    )


def test_a_deletion_by_its_holder_before_an_empty_lease_is_listed() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    server.wait(1)
    server.delete("shop/db", "system:serviceaccount:shop:db", "a")
    server.wait(1)
    server.write("shop/db", {"leaseDurationSeconds": 15, "leaseTransitions": 0}, "kubectl-create", "alice", "")
    server.wait(1)
    server.elector("b", "shop/db").take()
    lines = [line.text for line in list_latest(account(follow_log(server), server.now))]
    assert "a_1 deleted the lease, as some electors do when they stop" in lines


def test_who_removed_the_holder_of_a_lock_is_named() -> None:
    server = FakeServer()
    server.write("shop/db", {"holderIdentity": "job-1"}, "terraform", "ci", "")
    server.wait(30)
    server.write("shop/db", {}, "terraform", "maria", "")
    server.wait(5)
    server.write("shop/db", {"holderIdentity": "job-2"}, "terraform", "ci", "")
    output = print_account(follow_log(server), server)
    assert "maria removed job-1 as the holder" in output
    assert "not renewed for" not in output
    assert "Written: " in output
    assert "Last renewed" not in output


def take_turns(times: int, *, removed_by: str = "") -> FakeServer:
    """A lease that one replica after another takes and gives up, without renewing it."""
    server = FakeServer(uids={"db-0": "u-0", "db-1": "u-1"})
    for number in range(times):
        elector = server.elector(f"db-{number % 2}", "shop/db")
        elector.take()
        server.wait(5)
        if number == times - 1:
            break
        if removed_by:
            spec = server.leases["shop/db"]["spec"] | {"holderIdentity": ""}
            server.write("shop/db", spec, "kubectl-edit", removed_by, "")
        else:
            elector.release()
        server.wait(1)
    return server


@pytest.mark.parametrize("follow", [follow_log, follow_watch])
def test_a_lease_that_is_taken_and_given_up_unrenewed_is_a_lock(follow: Callable[[FakeServer], ClusterHistory]) -> None:
    server = take_turns(8)
    answer = account(follow(server), server.now)
    assert advise(answer).startswith(
        "It is taken and given up again and again (at least 7 times, each time held for up to"
    )


def test_a_lease_from_which_somebody_removes_each_holder_is_no_lock() -> None:
    server = take_turns(8, removed_by="mallory")
    assert "as a lock" not in advise(account(follow_log(server), server.now))


def test_a_lease_that_changed_hands_twice_is_no_lock() -> None:
    server = take_turns(3)
    assert "as a lock" not in advise(account(follow_log(server), server.now))


def test_a_write_that_leaves_renew_time_is_no_renewal_of_the_next_holder() -> None:
    server, _, second = shop()
    server.wait(1)
    spec = server.leases["shop/db"]["spec"] | {"holderIdentity": "db-1_1"}
    server.write("shop/db", spec, "kubectl-patch", "nina", "")
    server.wait(6)
    for _ in second.ticks(20):
        second.renew()
    assert account(follow_log(server), server.now).history.renewals.longest <= 2 * SECOND


def test_an_apply_that_is_answered_with_created_made_the_lease() -> None:
    server, _, _ = shop()
    server.log[0] = changed(server.log[0], put("verb", "patch"), put("responseStatus.code", 201))
    assert "db-0_1 created it (shop/db from pod db-0)" in print_account(follow_log(server), server)


def test_of_a_lock_that_a_user_wrote_there_is_no_pod_to_see() -> None:
    server = FakeServer()
    server.write("shop/db", {"holderIdentity": "job-1"}, "terraform", "ci", "")
    advice = advise(account(follow_log(server), server.now))
    assert advice.startswith(
        "Without a duration and a renewTime the lease stays until someone deletes or changes it; "
        "ci wrote it, not with the token of a pod. See whether its holder still works before you delete it:"
    )


def test_a_person_that_holds_the_lease_of_an_application_is_named() -> None:
    server, first, _ = shop()
    first.release()
    person = server.elector("laptop", "shop/db", user="dave@example.org", pod="")
    person.lead(20)
    assert advise(account(follow_log(server), server.now)).startswith(
        "dave@example.org holds it now, and not with the token of a pod."
    )


def test_when_a_holder_lost_a_lease_that_was_deleted_in_a_hole_of_the_log_is_not_known() -> None:
    server, first, _ = shop()
    other = server.elector("mail-0", "shop/mail")
    together(4, first, other)
    known = len(server.log)
    together(16, other)
    server.delete("shop/db")
    cut_out(server, known, len(server.log))
    for _ in range(2):
        server.wait(0.1)
        first.fail(404, 'leases.coordination.k8s.io "db" not found', verb="get")
    together(4, other)
    (tenure,) = make_account_json(account(follow_log(server), server.now))["tenures"]
    assert (tenure["holder"], tenure["until"]) == (first.identity, None)
