"""The API server's stamps may not be forged, and honest bookkeeping is not mistaken for forging."""

import pytest

from tests.factories import Document, Tweak, drop, make_entry, put
from tests.rules.judging import DENY, FORBIDDEN, HOUR, NOW, RIVAL, change_of, findings, said, take, update, written

TAMPERED = {(FORBIDDEN, "metadata.managedFields", DENY)}
ENTRIES = "metadata.managedFields"
LABEL = put("metadata.labels.tier", "1")
RENEWAL = put("spec.renewTime", "2025-11-20T12:00:02.000000Z")


def entry(*, manager: str, time: str | None, fields: tuple[str, ...] = ("renewTime",)) -> Tweak:
    """One more entry at the end."""

    def tweak(lease: Document) -> None:
        added = make_entry(*fields, manager=manager)
        if time is None:
            del added["time"]
        else:
            added["time"] = time
        lease["metadata"]["managedFields"].append(added)

    return tweak


@pytest.mark.parametrize(
    "review",
    [
        pytest.param(update(put(ENTRIES, [])), id="emptied alone"),
        pytest.param(update(drop(ENTRIES)), id="removed alone"),
        pytest.param(update(put(ENTRIES, None), RENEWAL), id="emptied in a renewal"),
        pytest.param(update(put(ENTRIES, []), take(RIVAL)), id="emptied in a steal"),
        pytest.param(
            update(put(ENTRIES, []), old=[drop("spec.holderIdentity")]), id="emptied on a lease that nobody holds"
        ),
        pytest.param(update(LABEL, drop(f"{ENTRIES}[0].time")), id="time removed"),
        pytest.param(
            update(LABEL, put(f"{ENTRIES}[0].fieldsV1", {"f:spec": {"f:holderIdentity": {}}})), id="owner removed"
        ),
        pytest.param(
            update(put(f"{ENTRIES}[0].time", "2020-01-01T00:00:00Z")), id="time moved to the past, nothing else"
        ),
        pytest.param(
            update(
                LABEL,
                put(f"{ENTRIES}[0].time", "2025-11-20T11:59:57Z"),
                entry(manager="l", time="2025-11-20T12:00:05Z", fields=()),
            ),
            id="time moved back by more than the tolerance, with a label stamped now",
        ),
        pytest.param(
            update(LABEL, put(f"{ENTRIES}[0].time", "2025-11-20T13:00:01Z")), id="time moved more than an hour ahead"
        ),
        *(
            pytest.param(
                update(put(f"{ENTRIES}[0].time", "2020-01-01T00:00:00Z"), old=[put(path, value)]),
                id=f"every time moved to the past while {path} loses something, which stamps nothing",
            )
            for path, value in (
                ("metadata.labels.tier", "1"),
                ("metadata.annotations.note", "1"),
                ("metadata.finalizers", ["example.com/wait"]),
                ("metadata.ownerReferences", [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1"}]),
            )
        ),
        pytest.param(
            update(put(f"{ENTRIES}[0].time", "2020-01-01T00:00:00Z"), drop("spec.acquireTime")),
            id="every time moved to the past while acquireTime is removed",
        ),
    ],
)
def test_tampered(review: Document) -> None:
    assert said("renewal-stamp-tampered", review) == TAMPERED


@pytest.mark.parametrize(
    "review",
    [
        pytest.param(update(LABEL), id="a label, stamps untouched"),
        pytest.param(update(written(RENEWAL, at="2025-11-20T12:00:02Z")), id="a renewal"),
        pytest.param(
            update(RENEWAL, put(f"{ENTRIES}[0].time", "2025-11-20T11:00:00Z")),
            id="a renewal on a server an hour behind",
        ),
        pytest.param(
            update(LABEL, put(f"{ENTRIES}[0].time", "2025-11-20T12:00:05Z")), id="a label by the renewing manager"
        ),
        pytest.param(
            update(LABEL, put(f"{ENTRIES}[0].time", "2025-11-20T11:59:58Z")), id="moved back within the tolerance"
        ),
        pytest.param(
            update(
                LABEL,
                put(f"{ENTRIES}[0].time", "2025-11-20T11:59:58Z"),
                entry(manager="l", time="2025-11-20T12:00:01Z", fields=()),
                put("spec.leaseDurationSeconds", 1),
                old=[put("spec.leaseDurationSeconds", 1)],
            ),
            id="a label by the renewing manager on a slower API server, on a lease of one second",
        ),
        pytest.param(
            update(LABEL, put(f"{ENTRIES}[0].time", "2025-11-20T11:00:00Z")),
            id="a label by the renewing manager on an API server whose clock stepped back",
        ),
        pytest.param(
            update(put("spec.leaseTransitions", 6), put(f"{ENTRIES}[0].time", "2025-11-20T11:00:00Z")),
            id="an edit by the renewing manager on an API server whose clock stepped back",
        ),
        *(
            pytest.param(
                update(put(path, value), put(f"{ENTRIES}[0].time", "2025-11-20T11:00:00Z")),
                id=f"{path} set by the renewing manager on an API server whose clock stepped back",
            )
            for path, value in (
                ("metadata.annotations.note", "1"),
                ("metadata.finalizers", ["example.com/wait"]),
                ("metadata.ownerReferences", [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1"}]),
            )
        ),
        pytest.param(
            update(LABEL, put(f"{ENTRIES}[0].manager", "ancient-changes")),
            id="the owner's entry merged into ancient-changes",
        ),
        pytest.param(update(entry(manager="applier", time=None)), id="a co-owner without a time"),
        pytest.param(update(put(ENTRIES, []), old=[put(ENTRIES, [])]), id="empty before and after"),
        pytest.param(update(LABEL, put(ENTRIES, "junk"), old=[put(ENTRIES, "noise")]), id="broken before and after"),
        pytest.param(update(drop("spec.renewTime"), drop(f"{ENTRIES}[0].time")), id="renewTime removed with its stamp"),
        pytest.param(
            update(LABEL, entry(manager="x", time="2025-11-20T11:00:00Z"), old=[drop(f"{ENTRIES}[0].time")]),
            id="no stamp before",
        ),
    ],
)
def test_honest(review: Document) -> None:
    assert said("renewal-stamp-tampered", review) == set()


def test_a_stamp_ahead_is_measured_by_the_clock_of_the_shell() -> None:
    review = update(LABEL, put(f"{ENTRIES}[0].time", "2025-11-20T13:00:01Z"))
    assert said("renewal-stamp-tampered", review, now=NOW + HOUR) == set()


def test_what_the_denials_say() -> None:
    (emptied,) = findings(update(put(ENTRIES, [])))["renewal-stamp-tampered"]
    assert str(emptied.error) == (
        "metadata.managedFields: Forbidden: this write empties managedFields and with it the time of the last renewal "
        '(12:00:00Z by manager "checkout"); leave managedFields out of the request'
    )
    (moved,) = findings(update(LABEL, drop(f"{ENTRIES}[0].time")))["renewal-stamp-tampered"]
    assert str(moved.error) == (
        "metadata.managedFields: Forbidden: this write removes or changes the time of the last renewal "
        '(12:00:00Z by manager "checkout"); leave managedFields out of the request'
    )
    (unseen,) = findings(update(put(ENTRIES, []), old=[drop(f"{ENTRIES}[0].time")]))["renewal-stamp-tampered"]
    assert "what the API server saw of the lease" in str(unseen.error)


def test_broken_entries_own_nothing() -> None:
    broken = [{"time": 5}, "text", {"time": "2025-11-20T12:00:09Z", "fieldsV1": {"f:spec": {"f:renewTime": {}}}}]
    review = update(put("spec.leaseTransitions", 6), old=[put(ENTRIES, broken)])
    (only,) = change_of(review).old_entries
    assert only.owns_renew_time
    assert not only.owns_holder_identity


def test_the_cure_is_named_where_stamps_are_missing() -> None:
    (finding,) = findings(update(take(RIVAL), old=[drop(ENTRIES)]), now=NOW + HOUR)["lease-without-stamps"]
    assert "kubectl apply --server-side" in finding.error.detail
