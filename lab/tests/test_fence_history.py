"""The figures of the end-to-end proof: each count by a history that has it."""

import json

from lab.e2e.fence.history import SECOND, Event, Figures, compute_figures, find_tenures, parse_events

A, B = "op-a", "op-b"
POLICY = "ValidatingAdmissionPolicy 'fence-x' denied request"


def make_held(holder: str, revision: int, at: int) -> Event:
    return Event("held", at, holder=f"{holder}_1" if holder else "", revision=revision)


def make_lease_write(pod: str, revision: int, sent: int) -> Event:
    return Event("lease", sent + 1, pod=pod, sent=sent, status=200, revision=revision)


def make_stored(pod: str, number: int, revision: int, sent: int) -> list[Event]:
    entry = f"{pod}/{number}"
    write = Event("write", sent + 5, pod=pod, entry=entry, sent=sent, status=200, revision=revision)
    return [write, Event("stored", sent + 6, entry=entry, revision=revision)]


def make_refused(pod: str, number: int, sent: int, message: str = POLICY) -> Event:
    return Event("write", sent + 5, pod=pod, entry=f"{pod}/{number}", sent=sent, status=403, message=message)


TAKEOVER = [make_lease_write(A, 1, 0), make_held(A, 1, 2), make_lease_write(B, 10, 100), make_held(B, 10, 103)]


def test_tenures_begin_with_an_answer_and_end_with_a_request() -> None:
    first, second = find_tenures(TAKEOVER)
    assert (first.pod, first.since, first.until) == (A, 1, 100)
    assert (second.pod, second.since, second.end_revision > 10) == (B, 101, True)


def test_a_renewal_is_not_a_takeover() -> None:
    assert len(find_tenures([*TAKEOVER, make_held(B, 12, 130)])) == 2


def test_a_deletion_ends_a_tenure_when_it_was_sent() -> None:
    events = [make_lease_write(A, 1, 0), make_held(A, 1, 2), make_held("", 5, 60)]
    assert find_tenures(events, {"sent": 50})[0].until == 50


def test_a_write_in_flight_is_foreign_and_interleaved_but_not_late() -> None:
    events = [*TAKEOVER, *make_stored(B, 1, 11, 110), *make_stored(A, 7, 12, 99), *make_stored(B, 2, 13, 120)]
    assert compute_figures(events) == Figures(
        stored=3, takeovers=1, foreign=1, interleaved=1, to_first_accepted=((115 - 101) / 1e6,)
    )


def test_a_write_before_the_first_one_of_the_successor_is_foreign_alone() -> None:
    events = [*TAKEOVER, *make_stored(A, 7, 11, 99), *make_stored(B, 1, 12, 110)]
    assert (compute_figures(events).foreign, compute_figures(events).interleaved) == (1, 0)


def test_a_write_that_is_sent_late_breaks_the_bar() -> None:
    events = [*TAKEOVER, *make_stored(B, 1, 11, 110), *make_stored(A, 7, 12, 130)]
    assert compute_figures(events).sent_late == 1


def test_a_write_of_a_follower_counts_although_the_holder_never_wrote() -> None:
    assert compute_figures([*TAKEOVER, *make_stored(A, 7, 12, 130)]).foreign == 1


def test_an_entry_without_an_answer_is_in_flight() -> None:
    unanswered = Event("stored", 140, entry=f"{A}/9", revision=12)
    assert compute_figures([*TAKEOVER, *make_stored(B, 1, 11, 110), unanswered]).sent_late == 0


def test_refusals_of_the_holder_are_early_or_late() -> None:
    events = [*TAKEOVER, make_refused(B, 1, 105), make_refused(B, 2, 102 + SECOND)]
    assert (compute_figures(events).early, compute_figures(events).late, compute_figures(events).refused) == (1, 1, 2)


def test_a_refusal_after_the_lease_moved_is_not_of_the_holder() -> None:
    events = [*TAKEOVER, make_refused(A, 1, 110)]
    assert (compute_figures(events).early, compute_figures(events).refused) == (0, 1)
    assert compute_figures(events).to_first_refused == ((115 - 101) / 1e6,)


def test_a_refusal_by_rbac_is_not_one_of_a_fence() -> None:
    assert compute_figures([*TAKEOVER, make_refused(B, 1, 105, "User cannot patch")]).refused == 0


def test_only_whole_lines_are_read() -> None:
    assert parse_events(['{"event": "write", "at": 1}', "klog", '{"event": "wr'], json.loads) == [Event("write", 1)]
