"""The API server's stamps may not be forged, and honest bookkeeping is not mistaken for forging.

Each review is what an API server makes of an honest write, with one thing changed. That the rules agree with the real
field manager on thousands of writes is shown by tests/conformance.
"""

from typing import Any

import pytest

from tests.factories import NOW, Document, Tweak, drop, make_entry, make_lease, make_review, put
from tests.rules.findings import DENY, FORBIDDEN, HOUR, RIVAL, SECOND, change_of, findings, said, take, update, written
from webhook.admission.rules import tampering
from webhook.kubernetes.managed_fields import is_nested_too_deeply

TAMPERED = {(FORBIDDEN, "metadata.managedFields", DENY)}
ENTRIES = "metadata.managedFields"
TIME = f"{ENTRIES}[0].time"
NOW_TEXT = "2025-11-20T12:00:02Z"
SECONDS_AGO = "2025-11-20T11:59:57Z"
HALF_A_MINUTE_AGO = "2025-11-20T11:59:30Z"
AN_HOUR_AGO = "2025-11-20T11:00:00Z"
IN_AN_HOUR = "2025-11-20T13:00:00Z"
RENEWAL = written(put("spec.renewTime", "2025-11-20T12:00:02.000000Z"), at=NOW_TEXT)
NESTED: Document = {"f:spec": {"f:renewTime": {"f:x": {}}}}


def entry(*fields: str, **changes: Any) -> Document:
    """An entry that owns these fields of spec; `time=None` leaves the time out."""
    entry = make_entry(*fields) | changes
    return {key: value for key, value in entry.items() if value is not None}


def owner_of(*path: str, manager: str = "labeler", time: str = NOW_TEXT) -> Document:
    """An entry that owns one field outside spec."""
    fields: Document = {}
    for step in reversed(path):
        fields = {step: fields}
    return entry(manager=manager, time=time, fieldsV1=fields)


def add(*entries: Document) -> Tweak:
    """More entries at the end."""

    def tweak(lease: Document) -> None:
        lease["metadata"].setdefault("managedFields", []).extend(entries)

    return tweak


def both(*tweaks: Tweak) -> Tweak:
    def tweak(lease: Document) -> None:
        for change in tweaks:
            change(lease)

    return tweak


LABEL = both(put("metadata.labels.tier", "1"), add(owner_of("f:metadata", "f:labels", "f:tier")))
MORE_MANAGERS = [owner_of("f:metadata", "f:labels", f"f:l{i}", manager=f"m{i}", time=AN_HOUR_AGO) for i in range(3)]


APPLIED = put(f"{ENTRIES}[0].operation", "Apply")
RELABEL = put("metadata.labels.tier", "2")
RELABELED = (APPLIED, LABEL)
"""Renewed by an apply, and labeled within the second in which the label changes again."""
PLANTED = owner_of("f:metadata", "f:labels", "f:a", manager="z", time=IN_AN_HOUR) | {"operation": "Apply"}
"""Any write may bring one such entry, of any time."""


def depth(levels: int) -> Document:
    """An entry whose fields nest so deeply that the list has this many levels."""
    fields: Document = {}
    for _ in range(levels - 3):
        fields = {"f:a": fields}
    return entry(manager="deep", time=AN_HOUR_AGO, fieldsV1=fields)


def owned_too(*path: str) -> Tweak:
    """The first entry owns this field as well."""

    def tweak(lease: Document) -> None:
        node = lease["metadata"]["managedFields"][0]["fieldsV1"]
        for step in path:
            node = node.setdefault(step, {})

    return tweak


STRATEGY = ("f:spec", "f:strategy")
PREFERRED = ("f:spec", "f:preferredHolder")
DROPPED = owner_of(*STRATEGY, manager="kubectl-patch")
"""What is left of a patch of strategy where the API server drops it."""


def dropped_beside(**fields: Any) -> Document:
    return DROPPED | {"fieldsV1": DROPPED["fieldsV1"] | fields}


FIRST_APPLY = [
    owner_of("f:metadata", "f:labels", "f:tier") | {"operation": "Apply"},
    entry("renewTime", manager="before-first-apply", time=NOW_TEXT),
]
"""What the first apply, of a label, makes of a lease that had no entries."""


TAMPERED_UPDATES = {
    "(a) emptied alone": update(put(ENTRIES, [])),
    "(a) removed alone": update(drop(ENTRIES)),
    "(a) emptied in a renewal": update(put("spec.renewTime", "2025-11-20T12:00:02.000000Z"), put(ENTRIES, None)),
    "(a) emptied in a steal": update(put(ENTRIES, []), take(RIVAL)),
    "(a) emptied on a lease without a holder": update(put(ENTRIES, []), old=[drop("spec.holderIdentity")]),
    "(a) a broken list": update(put(ENTRIES, "junk")),
    "(b) 33 levels": update(RENEWAL, add(depth(33))),
    "(c) an owner of something below renewTime": update(RENEWAL, add(entry(time=AN_HOUR_AGO, fieldsV1=NESTED))),
    "(c) below renewTime in the writer's own entry": update(
        RENEWAL, put(f"{ENTRIES}[0].fieldsV1.f:spec.f:renewTime", {".": {}, "f:x": {}})
    ),
    "(c) below several fields, in no order": update(
        LABEL, put(f"{ENTRIES}[0].fieldsV1.f:spec", {"f:b": {"f:x": {}}, "f:a": {"f:x": {}}, "f:c": {"f:x": {}}})
    ),
    "(c) below a field that is not known": update(LABEL, put(f"{ENTRIES}[0].fieldsV1.f:spec.f:new", {"k:{}": {}})),
    "(c) below a field whose name has a control character": update(
        LABEL, put(f"{ENTRIES}[0].fieldsV1.f:spec.f:\x1f", {"f:x": {}})
    ),
    "(c) below a field without a name": update(LABEL, put(f"{ENTRIES}[0].fieldsV1.f:spec.f:", {"f:x": {}})),
    "(d) two entries more": update(LABEL, add(owner_of("f:metadata", "f:labels", "f:a", manager="x"))),
    "(e) two new times": update(
        RENEWAL,
        put(f"{ENTRIES}[1].time", AN_HOUR_AGO.replace("11:", "10:")),
        old=[add(MORE_MANAGERS[0])],
    ),
    "(e) an invented entry of a new time": update(drop("spec.acquireTime"), add(MORE_MANAGERS[0])),
    "(e) an invented entry of a known time": update(
        RENEWAL, add(owner_of("f:metadata", "f:labels", "f:a", manager="x", time="2025-11-20T12:00:00Z"))
    ),
    "(e) an invented entry of a known time beside a fold": update(
        RENEWAL,
        put(f"{ENTRIES}[1].manager", "ancient-changes"),
        add(owner_of("f:metadata", "f:labels", "f:a", manager="x", time=AN_HOUR_AGO)),
        old=[add(MORE_MANAGERS[0])],
    ),
    "(e) a fold of a new time": update(
        RENEWAL, add(owner_of("f:metadata", "f:labels", "f:a", manager="ancient-changes", time=AN_HOUR_AGO))
    ),
    "(e) a fold at the time of an apply": update(
        put(ENTRIES, [entry("renewTime"), PLANTED, PLANTED | {"manager": "ancient-changes", "operation": "Update"}]),
        old=[add(PLANTED)],
    ),
    "(f) entries invented without any before": update(
        put(ENTRIES, [entry("renewTime", time=AN_HOUR_AGO)]), old=[drop(ENTRIES)]
    ),
    "(f) two applies without any before": update(
        put(ENTRIES, [entry(operation="Apply"), entry(operation="Apply", manager="b")]), old=[drop(ENTRIES)]
    ),
    "(f) a second apply beside the first one": update(
        LABEL, put(ENTRIES, [*FIRST_APPLY, FIRST_APPLY[0] | {"manager": "b"}]), old=[drop(ENTRIES)]
    ),
    "(f) a second entry of what was there before the first apply": update(
        LABEL,
        put(ENTRIES, [*FIRST_APPLY, FIRST_APPLY[1] | {"apiVersion": "coordination.k8s.io/v1beta1"}]),
        old=[drop(ENTRIES)],
    ),
    "(f) an apply of the future without any before": update(
        put(ENTRIES, [entry("renewTime", operation="Apply", time=IN_AN_HOUR)]), old=[drop(ENTRIES)]
    ),
    "(f) an apply that leaves the renewal without an owner": update(
        put(ENTRIES, [owner_of("f:metadata", "f:labels", "f:a", manager="z2") | {"operation": "Apply"}]),
        old=[drop(ENTRIES)],
    ),
    "(f) a first apply that dates the renewal back": update(
        put(ENTRIES, [entry("renewTime", manager="before-first-apply", time=AN_HOUR_AGO)]), old=[drop(ENTRIES)]
    ),
    "(f) a first apply that sets nothing and dates the renewal back by half a minute": update(
        put(ENTRIES, [entry("renewTime", manager="before-first-apply", time=HALF_A_MINUTE_AGO)]), old=[drop(ENTRIES)]
    ),
    "(f) the same of a lease whose renewTime is not a time": update(
        put(ENTRIES, [entry("renewTime", manager="before-first-apply", time=HALF_A_MINUTE_AGO)]),
        old=[drop(ENTRIES), put("spec.renewTime", "soon")],
    ),
    "(f) a write under the name of the first apply, beside an apply that dates the renewal back": update(
        LABEL,
        put(
            ENTRIES,
            [
                owner_of("f:metadata", "f:labels", "f:tier", manager="before-first-apply", time=NOW_TEXT),
                entry("renewTime", operation="Apply", time=SECONDS_AGO),
            ],
        ),
        old=[drop(ENTRIES)],
    ),
    "(g) a renewal that leaves no stamp": update(put("spec.renewTime", "2025-11-20T12:00:02.000000Z"), drop(TIME)),
    "(g) a renewal whose owner is not the writer, dated back": update(
        put("spec.renewTime", "2025-11-20T12:00:02.000000Z"),
        put(f"{ENTRIES}[0].manager", "ancient-changes"),
        put(TIME, AN_HOUR_AGO),
        old=[add(MORE_MANAGERS[0])],
    ),
    "(h) the stamp removed": update(drop(TIME), old=[APPLIED]),
    "(h) the owner removed": update(LABEL, put(f"{ENTRIES}[0].fieldsV1", {"f:spec": {"f:holderIdentity": {}}})),
    "(h) the stamp moved back by a second": update(
        LABEL,
        put(f"{ENTRIES}[0].manager", "ancient-changes"),
        put(TIME, "2025-11-20T11:59:59Z"),
        old=[add(owner_of("f:metadata", "f:labels", "f:a", manager="a", time="2025-11-20T11:59:59Z"))],
    ),
    "(h) the stamp moved back, and nothing set": update(put(TIME, "2020-01-01T00:00:00Z")),
    "(i) the stamp moved ahead by an apply": update(RELABEL, put(TIME, "2025-11-20T12:00:05Z"), old=RELABELED),
    "(i) the stamp moved ahead to a known time of the future": update(
        LABEL,
        put(TIME, IN_AN_HOUR),
        old=[
            put(f"{ENTRIES}[0].operation", "Apply"),
            add(entry("acquireTime", operation="Apply", manager="b", time=IN_AN_HOUR)),
        ],
    ),
    "(l) an owner of a dropped field, an hour ahead": update(add(DROPPED | {"time": IN_AN_HOUR})),
    "(l) an owner of a dropped field, later than clocks differ": update(
        add(DROPPED | {"time": "2025-11-20T12:00:03Z"})
    ),
    "(l) an owner of a dropped field, an hour ago": update(add(DROPPED | {"time": AN_HOUR_AGO})),
    "(l) an owner of a dropped field, of no time": update(add({**DROPPED, "time": None})),
    "(l) an owner of a dropped field, folded": update(add(DROPPED | {"manager": "ancient-changes"})),
    "(l) an owner of a dropped field and of a label that is not there": update(
        add(dropped_beside(**{"f:metadata": {"f:labels": {"f:a": {}}}}))
    ),
    "(l) an owner of a dropped field and of something else of spec": update(
        add(dropped_beside(**{"f:spec": {"f:strategy": {}, "f:junk": {}}}))
    ),
    "(l) an owner of a dropped field and of something outside spec and metadata": update(
        add(dropped_beside(**{"f:junk": {}}))
    ),
    "(l) an owner of a dropped field and of a field that is not an object": update(
        add(dropped_beside(**{"f:metadata": 5}))
    ),
    "(l) the same, where it was so before": update(
        put(f"{ENTRIES}[1].time", NOW_TEXT), old=[add(dropped_beside(**{"f:metadata": 5}) | {"time": SECONDS_AGO})]
    ),
    "(l) an owner of a dropped field in a write that sets something": update(
        put("metadata.labels.tier", "1"), add(DROPPED)
    ),
    "(l) a second owner of a dropped field": update(
        add(DROPPED | {"manager": "b"}), old=[add(DROPPED | {"time": SECONDS_AGO})]
    ),
    "(l) an owner of a strategy that the lease has": update(
        put("spec.strategy", "OldestEmulationVersion"),
        add(DROPPED),
        old=[put("spec.strategy", "OldestEmulationVersion")],
    ),
    "(l) a deep owner of a dropped field, where one nested deeply before": update(
        add(depth(33), DROPPED | {"fieldsV1": depth(33)["fieldsV1"] | DROPPED["fieldsV1"]}), old=[add(depth(33))]
    ),
    "(l) the renewing manager's owner of a dropped field, dated back": update(
        owned_too(*STRATEGY), put(TIME, HALF_A_MINUTE_AGO)
    ),
    "(l) the renewing manager's owner of a dropped field, half a minute ahead": update(
        owned_too(*STRATEGY), put(TIME, "2025-11-20T12:00:30Z")
    ),
    **{
        f"(h) every time moved to the past while {path} loses something, which stamps nothing": update(
            put(TIME, "2020-01-01T00:00:00Z"), old=[put(path, value)]
        )
        for path, value in (
            ("metadata.labels.tier", "1"),
            ("metadata.annotations.note", "1"),
            ("metadata.finalizers", ["example.com/wait"]),
            ("metadata.ownerReferences", [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1"}]),
        )
    },
}


@pytest.mark.parametrize("name", TAMPERED_UPDATES)
def test_stamps_that_no_api_server_makes_are_denied(name: str) -> None:
    assert said("renewal-stamp-tampered", TAMPERED_UPDATES[name]) == TAMPERED


POD = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1"}
FOLDED = owner_of("f:metadata", "f:labels", "f:l0", manager="ancient-changes", time=AN_HOUR_AGO)
STEPPED_BACK = [
    ("metadata.labels.tier", "1", ("f:metadata", "f:labels", "f:tier")),
    ("metadata.annotations.note", "1", ("f:metadata", "f:annotations", "f:note")),
    ("metadata.finalizers", ["example.com/wait"], ("f:metadata", "f:finalizers", 'v:"example.com/wait"')),
    ("metadata.ownerReferences", [POD], ("f:metadata", "f:ownerReferences", 'k:{"uid":"1"}')),
    ("metadata.generateName", "a-", ("f:metadata", "f:generateName")),
    ("spec.leaseTransitions", 6, ("f:spec", "f:leaseTransitions")),
    ("spec.unknown", 6, ("f:spec", "f:unknown")),
]


LABELED: Document = {"f:metadata": {"f:labels": {"f:tier": {}}}}
HONEST_UPDATES = {
    "a label by another manager": update(LABEL),
    "a renewal": update(RENEWAL),
    "a renewal on a server an hour behind": update(RENEWAL, put(TIME, AN_HOUR_AGO)),
    "a renewal by a writer called ancient-changes": update(RENEWAL, put(f"{ENTRIES}[0].manager", "ancient-changes")),
    "a renewal that folds nothing": update(RENEWAL, old=[add(FOLDED)]),
    "the owner's entry renamed, as csaupgrade does": update(
        put(f"{ENTRIES}[0].manager", "upgraded"), put(f"{ENTRIES}[0].operation", "Apply")
    ),
    "a renewal by an apply that takes the field over": update(
        put("spec.renewTime", "2025-11-20T12:00:02.000000Z"),
        put(f"{ENTRIES}[0].fieldsV1", {"f:spec": {"f:holderIdentity": {}}}),
        add(entry("renewTime", operation="Apply", manager="applier", time=NOW_TEXT)),
    ),
    "a co-owner that applied the same value": update(
        add(entry("renewTime", operation="Apply", manager="applier", time=None)),
    ),
    "a fold that takes the oldest entry in": update(
        LABEL,
        put(f"{ENTRIES}[1].manager", "ancient-changes"),
        old=[add(MORE_MANAGERS[0])],
    ),
    "empty before and after": update(put(ENTRIES, []), old=[put(ENTRIES, [])]),
    "broken before and after": update(put("metadata.labels.a", "1"), put(ENTRIES, "x"), old=[put(ENTRIES, "y")]),
    "renewTime removed with its stamp": update(
        drop("spec.renewTime"), drop(f"{ENTRIES}[0].fieldsV1.f:spec.f:renewTime")
    ),
    "an apply of a name only, without entries before": update(
        put(ENTRIES, [entry("renewTime", manager="before-first-apply", time=NOW_TEXT)]), old=[drop(ENTRIES)]
    ),
    "the first apply of a lease that nobody ever renewed": update(
        put("spec", {}),
        put("metadata.labels.tier", "1"),
        put(ENTRIES, [owner_of("f:metadata", "f:labels", "f:tier") | {"operation": "Apply"}]),
        old=[put("spec", {}), drop(ENTRIES)],
    ),
    "the first apply without entries before": update(LABEL, put(ENTRIES, FIRST_APPLY), old=[drop(ENTRIES)]),
    "entries that nested deeply before": update(RENEWAL, old=[add(depth(33))]),
    "32 levels": update(
        put("metadata.labels.tier", "1"),
        add(depth(32) | {"time": NOW_TEXT, "fieldsV1": depth(32)["fieldsV1"] | LABELED}),
    ),
    "an owner below a field that was there before": update(
        RENEWAL, old=[add(entry(time=AN_HOUR_AGO, manager="x", fieldsV1=NESTED))]
    ),
    "an owner below a field without a name that was there before": update(
        RENEWAL, old=[add(entry(time=AN_HOUR_AGO, manager="x", fieldsV1={"f:spec": {"f:": {"f:x": {}}}}))]
    ),
    "a strategy that the API server dropped": update(add(DROPPED)),
    "a strategy dropped by an API server whose clock is half a minute behind": update(
        add(DROPPED | {"time": HALF_A_MINUTE_AGO})
    ),
    "a preferredHolder that the API server dropped": update(add(owner_of(*PREFERRED))),
    "both dropped, for the renewing manager": update(owned_too(*STRATEGY), owned_too(*PREFERRED), put(TIME, NOW_TEXT)),
    "a strategy dropped, and a label removed": update(
        add(DROPPED),
        old=[put("metadata.labels.tier", "1"), add(owner_of("f:metadata", "f:labels", "f:tier", time=AN_HOUR_AGO))],
    ),
    "a strategy dropped that its manager set before": update(
        put(f"{ENTRIES}[1].time", NOW_TEXT), old=[add(DROPPED | {"time": SECONDS_AGO})]
    ),
    "a strategy dropped, for a manager that owns a label": update(
        put(f"{ENTRIES}[1].time", NOW_TEXT),
        put(f"{ENTRIES}[1].fieldsV1", LABELED | DROPPED["fieldsV1"]),
        old=[put("metadata.labels.tier", "1"), add(owner_of("f:metadata", "f:labels", "f:tier", time=AN_HOUR_AGO))],
    ),
    "a strategy dropped that another manager set before": update(
        put(f"{ENTRIES}[1].time", NOW_TEXT),
        put(f"{ENTRIES}[1].manager", "b"),
        old=[add(DROPPED | {"time": SECONDS_AGO})],
    ),
    "a preferredHolder dropped, where a strategy is stored": update(
        put("spec.strategy", "OldestEmulationVersion"),
        add(owner_of(*PREFERRED)),
        old=[put("spec.strategy", "OldestEmulationVersion")],
    ),
    **{
        f"{path} set by the renewing manager on an API server whose clock stepped back": update(
            put(path, value), owned_too(*owned), put(TIME, AN_HOUR_AGO)
        )
        for path, value, owned in STEPPED_BACK
    },
}


@pytest.mark.parametrize("name", HONEST_UPDATES)
def test_stamps_of_honest_updates_are_allowed(name: str) -> None:
    assert said("renewal-stamp-tampered", HONEST_UPDATES[name]) == set()


@pytest.mark.parametrize(
    ("now", "renewed", "expected"),
    [
        pytest.param(50, "12:00:00", set(), id="the webhook's is ahead"),
        pytest.param(-50, "12:00:00", set(), id="the webhook's is behind"),
        pytest.param(2, "12:00:50", set(), id="the holder's is ahead"),
        pytest.param(5, "12:00:04", set(), id="both are ahead by the tolerance"),
        pytest.param(5, "12:00:05", TAMPERED, id="both are ahead by more than the tolerance"),
        pytest.param(63, "12:00:00", TAMPERED, id="the webhook's is ahead by more than the bound"),
    ],
)
def test_the_first_stamps_of_a_lease_and_clocks_that_are_wrong(now: int, renewed: str, expected: object) -> None:
    """The API server writes at 12:00:02; `now` is the webhook's clock in seconds after 12:00:00."""
    old = [drop(ENTRIES), put("spec.renewTime", f"2025-11-20T{renewed}.000000Z")]
    applied = update(put(ENTRIES, [entry("renewTime", manager="before-first-apply", time=NOW_TEXT)]), old=old)
    assert said("renewal-stamp-tampered", applied, now=NOW + now * SECOND) == expected


def test_a_stamp_that_an_apply_moves_ahead_is_measured_by_the_moment_of_the_write() -> None:
    """Its time may be that of the write, or a known one up to half the bound ahead.

    The other half is for API servers' clocks that differ: a steal that another clock dates must still be denied.
    """
    within = update(RELABEL, put(TIME, "2025-11-20T12:00:04Z"), old=RELABELED)
    assert said("renewal-stamp-tampered", within) == set()
    for time, expected in (("2025-11-20T12:00:32Z", set()), ("2025-11-20T12:00:33Z", TAMPERED)):
        known = (*RELABELED, add(entry("acquireTime", operation="Apply", manager="b", time=time)))
        assert said("renewal-stamp-tampered", update(RELABEL, put(TIME, time), old=known)) == expected


def test_a_writer_called_ancient_changes_is_measured_by_our_clock() -> None:
    back = update(
        put("spec.renewTime", "2025-11-20T12:00:02.000000Z"),
        put(f"{ENTRIES}[0].manager", "ancient-changes"),
        put(TIME, AN_HOUR_AGO),
        old=[add(MORE_MANAGERS[0])],
    )
    assert said("renewal-stamp-tampered", back, now=NOW - HOUR) == set()


# ---- created --------------------------------------------------------------------------------------------------------

NEW = (drop("metadata.resourceVersion"), put("metadata.creationTimestamp", "2025-11-20T12:00:00Z"))


def created(*tweaks: Tweak) -> Document:
    return make_review(new=make_lease(*NEW, *tweaks))


@pytest.mark.parametrize(
    "review",
    [
        pytest.param(created(put(f"{ENTRIES}[0].manager", "ancient-changes")), id="(j) folded into ancient-changes"),
        pytest.param(created(put(f"{ENTRIES}[0].fieldsV1", {"f:metadata": {}})), id="(j) no entry of the writer"),
        pytest.param(created(drop(TIME)), id="(j) the writer's entry has no time"),
        pytest.param(created(add(owner_of("f:metadata", "f:labels", "f:x"))), id="(j) an entry later than the write"),
        pytest.param(created(add(depth(33))), id="(b) 33 levels"),
        pytest.param(created(add(entry(fieldsV1=NESTED))), id="(c) an owner of something below renewTime"),
        pytest.param(created(drop(ENTRIES)), id="(k) no entries"),
        pytest.param(
            created(put("spec", {}), put(ENTRIES, [DROPPED | {"time": IN_AN_HOUR}])), id="(l) of dropped fields, ahead"
        ),
        pytest.param(created(put(ENTRIES, [DROPPED])), id="(l) of dropped fields, beside a spec"),
        pytest.param(
            created(put("spec", {}), put(ENTRIES, [DROPPED, owner_of(*PREFERRED)])), id="(l) two of dropped fields"
        ),
        pytest.param(
            created(add(depth(33)), put("metadata.resourceVersion", "5")), id="(b) a PUT of a name that does not exist"
        ),
        *(
            pytest.param(created(drop(ENTRIES), put("metadata.resourceVersion", text)), id=f"(k) of version {text!r}")
            for text in ("", "0", "00", "x", "-1", "1e3", "\u0661", "9" * 20)
        ),
    ],
)
def test_created_with_entries_that_no_api_server_makes(review: Document) -> None:
    assert said("renewal-stamp-tampered", review) == TAMPERED


@pytest.mark.parametrize(
    "review",
    [
        pytest.param(created(), id="by an honest client"),
        pytest.param(created(put("spec", {}), put(ENTRIES, [DROPPED])), id="of dropped fields only"),
        pytest.param(
            created(add(owner_of("f:metadata", "f:labels", "f:x", time=AN_HOUR_AGO))), id="beside an old entry"
        ),
        pytest.param(created(drop(ENTRIES), drop("metadata.uid")), id="a manifest"),
        pytest.param(created(drop(ENTRIES), drop("metadata.creationTimestamp")), id="without a time of creation"),
        pytest.param(created(drop(ENTRIES), put("spec", {})), id="with nothing that an entry could own"),
        pytest.param(
            created(drop(ENTRIES), put("metadata.creationTimestamp", AN_HOUR_AGO)), id="a copy of a stored object"
        ),
        pytest.param(
            created(drop(ENTRIES), put("metadata.creationTimestamp", IN_AN_HOUR)),
            id="a copy of an object that was stored by a clock that is ahead",
        ),
        pytest.param(
            make_review(drop("request.userInfo"), new=make_lease(put(f"{ENTRIES}[0].manager", "ancient-changes"))),
            id="a manifest of a stored object, checked as if it were created",
        ),
    ],
)
def test_created_honestly(review: Document) -> None:
    assert said("renewal-stamp-tampered", review) == set()


# ---- texts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "(a) emptied alone",
            'erases the time of the last renewal (12:00:00Z by manager "checkout")',
        ),
        ("(b) 33 levels", "brings an entry that nests deeper than 32 levels"),
        (
            "(c) an owner of something below renewTime",
            'brings an owner of something below "renewTime" of spec (manager "checkout"), where nothing can be',
        ),
        (
            "(c) below several fields, in no order",
            'brings an owner of something below "a" of spec (manager "checkout"), where nothing can be',
        ),
        (
            "(c) below a field whose name has a control character",
            'brings an owner of something below "\\x1f" of spec (manager "checkout"), where nothing can be',
        ),
        ("(d) two entries more", "adds 2 entries at once"),
        (
            "(e) two new times",
            (
                'brings 2 entries with new times, of manager "checkout" at 2025-11-20T12:00:02Z and '
                'of manager "m0" at 2025-11-20T10:00:00Z'
            ),
        ),
        (
            "(e) an invented entry of a known time",
            'brings an entry of manager "x" at 2025-11-20T12:00:00Z, which owns nothing that this write sets',
        ),
        (
            "(f) entries invented without any before",
            "fills managedFields that were empty, which only an apply does",
        ),
        ("(g) a renewal that leaves no stamp", "renews the lease and leaves no stamp of it"),
        (
            "(h) the stamp removed",
            'removes the time of the last renewal (12:00:00Z by manager "checkout")',
        ),
        (
            "(h) the stamp moved back by a second",
            'moves the time of the last renewal (12:00:00Z by manager "checkout") back to 11:59:59Z',
        ),
        (
            "(i) the stamp moved ahead by an apply",
            'moves the time of the last renewal (12:00:00Z by manager "checkout") ahead to 12:00:05Z',
        ),
    ],
)
def test_what_the_denials_say(name: str, text: str) -> None:
    (finding,) = findings(TAMPERED_UPDATES[name])["renewal-stamp-tampered"]
    assert finding.error.detail.startswith(f"this write {text}; remove metadata.managedFields from ")


def test_entries_of_a_broken_list_own_nothing() -> None:
    broken = [{"time": 5}, entry("renewTime")]
    assert list(change_of(update(put("spec.leaseTransitions", 6), old=[put(ENTRIES, broken)])).old_entries) == []


def test_stored_entries_are_searched_once_for_one_that_nests_too_deeply(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each entry of object, 8,000 in both objects took longer than an API server waits."""
    searched = []

    def count(entries: Any) -> bool:
        searched.append(entries)
        return is_nested_too_deeply(entries)

    monkeypatch.setattr(tampering, "is_nested_too_deeply", count)
    deep = [depth(33) | {"manager": f"m{number}"} for number in range(20)]
    assert "renewal-stamp-tampered" not in findings(update(RENEWAL, old=[add(*deep)]))
    assert len(searched) == 1


def texts(rule: str, review: Document) -> list[str]:
    return [str(one.error) for one in findings(review)[rule]]


NO_STAMP = drop(TIME)


def test_the_message_about_emptied_stamps_names_the_manager() -> None:
    manager = "a-manager-with-a-name-of-more-than-forty-characters"
    (without,) = texts("renewal-stamp-tampered", update(put(ENTRIES, []), old=[NO_STAMP]))
    (long,) = texts("renewal-stamp-tampered", update(put(ENTRIES, []), old=[put(f"{ENTRIES}[0].manager", manager)]))
    (nameless,) = texts("renewal-stamp-tampered", update(put(ENTRIES, []), old=[drop(f"{ENTRIES}[0].manager")]))
    assert "erases what the API server saw of the lease; remove" in without
    assert 'manager "a-manager-with-a-name-of-more-than-forty' in long
    assert "forty-c" not in long
    assert 'manager "")' in nameless


WORDING = [
    pytest.param(
        "renewal-stamp-tampered",
        update(put("metadata.managedFields", [])),
        (
            "metadata.managedFields: Forbidden: this write erases the time of the last renewal (12:00:00Z by manager "
            '"checkout"); remove metadata.managedFields from the file or patch and send it again'
        ),
        'this write erases the time of the last renewal (12:00:00Z by manager "checkout")',
        id="managedFields emptied",
    ),
]
