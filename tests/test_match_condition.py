"""The shipped match condition: each of its terms has one kind of write reviewed, and plain renewals are skipped."""

from collections import Counter
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import Document, Tweak, changed, drop, make_candidate, make_entry, make_lease, make_review, put
from tests.match_condition import EXPRESSION, MAX_ENTRIES, is_reviewed, is_update_reviewed
from tests.recordings import recordings
from tools.docs.pages import DOCS, find_table_lines

LATER: Final = "2025-11-20T12:00:02.000000Z"
STAMPED: Final = "2025-11-20T12:00:02Z"
FUTURE: Final = "2036-01-01T00:00:00Z"
WRITTEN: Final = "lease-webhook/written-1a2b3c4d"
WRITER: Final = "lease-webhook/writer-1a2b3c4d"
STAMPS: Final = {WRITER: "uid user", WRITTEN: "2025-11-20T12:00:00Z", "lease-webhook/term-1a2b3c4d": "4711"}
CONSTANT: Final = {"manager": "lease-webhook-stamp", "operation": "Update", "time": "2000-01-01T00:00:00Z"}
LABEL: Final = make_entry(manager="kubectl-label") | {"fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}}}
OWNER: Final = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "name": "no-such",
    "uid": "0c3c9c0e-5b0e-4a55-9d2f-0d3f7f0b6c10",
}


def entries(*more: Document) -> Tweak:
    """These entries after the first one, in the order in which an API server sorts them."""

    def tweak(lease: Document) -> None:
        lease["metadata"]["managedFields"] += more

    return tweak


def twice(lease: Document) -> None:
    """The first entry once more."""
    lease["metadata"]["managedFields"].append(dict(lease["metadata"]["managedFields"][0]))


def many(count: int) -> Tweak:
    """So many entries altogether."""
    return entries(*(LABEL | {"manager": f"m{number:03}"} for number in range(count - 1)))


def stored(*tweaks: Tweak) -> tuple[Tweak, ...]:
    """Return what is so before and after the write."""
    return tweaks


def stamped_renewal(*tweaks: Tweak, old: tuple[Tweak, ...] = ()) -> Document:
    """The same where the API server stamps writers: the time of the stamp moves, and managedFields are constant."""
    before = make_lease(put("metadata.annotations", STAMPS), put("metadata.managedFields", [CONSTANT]), *old)
    renewed = (put("spec.renewTime", LATER), put(f"metadata.annotations[{WRITTEN}]", STAMPED))
    request: Document = make_review(old=before, new=changed(before, *renewed, *tweaks))["request"]
    return request


def renewal(*tweaks: Tweak, old: tuple[Tweak, ...] = ()) -> Document:
    """The request of a plain renewal with changes: `tweaks` to the new object, `old` to both."""
    before = make_lease(*old)
    renewed = (put("spec.renewTime", LATER), put("metadata.managedFields[0].time", STAMPED))
    after = changed(before, *(renewed if before["metadata"].get("managedFields") else renewed[:1]), *tweaks)
    request: Document = make_review(old=before, new=after)["request"]
    return request


@pytest.mark.parametrize(
    ("tweaks", "old"),
    [
        pytest.param((), (), id="by its holder"),
        pytest.param((put("spec.renewTime", "2025-11-21T11:00:00.000000Z"),), (), id="23 hours ahead"),
        pytest.param((put("spec.renewTime", "2025-11-20T07:00:00.000000Z"),), (), id="5 hours back"),
        pytest.param((put("metadata.managedFields[0].time", "2025-11-20T12:00:00Z"),), (), id="in the same second"),
        pytest.param((), stored(drop("spec.acquireTime"), drop("spec.leaseTransitions")), id="of a node's lease"),
        pytest.param((put("spec.acquireTime", None),), stored(drop("spec.acquireTime")), id="null for absent"),
        pytest.param((put("metadata.resourceVersion", "4713"),), (), id="with the version that an API server gives"),
        pytest.param((), stored(put("metadata.labels", {"a": "b"}), entries(LABEL)), id="of a lease with a label"),
        pytest.param((), stored(put("metadata.ownerReferences", [OWNER])), id="of a lease with an owner"),
        pytest.param((), stored(drop("metadata.managedFields")), id="of a lease whose stamps were wiped"),
        pytest.param((), stored(many(MAX_ENTRIES)), id="of a lease with 50 entries"),
        pytest.param((), stored(entries(LABEL | {"time": FUTURE})), id="beside a stored entry of the future"),
        pytest.param(
            (), stored(entries({k: v for k, v in LABEL.items() if k != "time"})), id="beside one without time"
        ),
        pytest.param((), stored(put("metadata.deletionTimestamp", "2025-11-20T11:00:01Z")), id="during a deletion"),
    ],
)
def test_a_plain_renewal_is_dropped(tweaks: tuple[Tweak, ...], old: tuple[Tweak, ...]) -> None:
    assert not is_reviewed(renewal(*tweaks, old=old))


@pytest.mark.parametrize(
    ("tweaks", "old"),
    [
        pytest.param((), (), id="by its writer"),
        pytest.param((put(f"metadata.annotations[{WRITTEN}]", STAMPS[WRITTEN]),), (), id="in the same second"),
        pytest.param((), stored(put("metadata.annotations.a", "b")), id="beside another annotation"),
    ],
)
def test_a_stamped_renewal_is_dropped(tweaks: tuple[Tweak, ...], old: tuple[Tweak, ...]) -> None:
    assert not is_reviewed(stamped_renewal(*tweaks, old=old))


@pytest.mark.parametrize(
    ("tweaks", "old"),
    [
        pytest.param((put(f"metadata.annotations[{WRITER}]", "uid2 user"),), (), id="by another writer"),
        pytest.param((put("metadata.annotations[lease-webhook/term-1a2b3c4d]", "4712"),), (), id="of another term"),
        pytest.param((put(f"metadata.annotations[{WRITTEN}]", ""),), (), id="that is not dated"),
        pytest.param((put(f"metadata.annotations[{WRITTEN}]", "x" * 21),), (), id="with a time of more characters"),
        pytest.param((), stored(drop(f"metadata.annotations[{WRITTEN}]")), id="that is the first to be stamped"),
        pytest.param(
            (drop(f"metadata.annotations[{WRITTEN}]"), put("metadata.annotations[lease-webhook/written-x]", STAMPED)),
            (),
            id="with a time of another name",
        ),
        pytest.param((put("metadata.annotations.a", "b"),), (), id="with an annotation more"),
        pytest.param((entries(LABEL),), (), id="with an entry, as where it is not stamped"),
        pytest.param((put("metadata.labels", {"a": "b"}),), (), id="with a label"),
        pytest.param((put("metadata.managedFields[0].time", FUTURE),), (), id="with another entry"),
    ],
)
def test_a_stamped_renewal_with_one_thing_more_is_reviewed(tweaks: tuple[Tweak, ...], old: tuple[Tweak, ...]) -> None:
    assert is_reviewed(stamped_renewal(*tweaks, old=old))


TERMS: Final[dict[str, tuple[tuple[Tweak, ...], tuple[Tweak, ...]]]] = {
    "holderIdentity": ((put("spec.holderIdentity", "other"),), ()),
    "acquireTime": ((put("spec.acquireTime", LATER),), ()),
    "leaseDurationSeconds": ((put("spec.leaseDurationSeconds", 14),), ()),
    "leaseTransitions": ((put("spec.leaseTransitions", 6),), ()),
    "strategy": ((drop("spec.strategy"),), stored(put("spec.strategy", "OldestEmulationVersion"))),
    "preferredHolder": ((put("spec.preferredHolder", "other"),), ()),
    "labels": ((put("metadata.labels", {"a": "b"}),), ()),
    "annotations removed": ((drop("metadata.annotations"),), stored(put("metadata.annotations", {"a": "b"}))),
    "annotations, more than 100": (
        (put(f"metadata.annotations[{WRITTEN}]", STAMPED),),
        stored(put("metadata.annotations", {f"a{number}": "" for number in range(100)} | {WRITTEN: FUTURE})),
    ),
    "annotations changed": ((put("metadata.annotations.a", "c"),), stored(put("metadata.annotations", {"a": "b"}))),
    "ownerReferences": ((put("metadata.ownerReferences", [OWNER]),), ()),
    "finalizers": ((put("metadata.finalizers", ["a/c", "a/b"]),), stored(put("metadata.finalizers", ["a/b", "a/c"]))),
    "generateName": ((put("metadata.generateName", "checkout-"),), ()),
    "deletionTimestamp": ((put("metadata.deletionTimestamp", STAMPED),), ()),
    "renewTime unchanged": ((put("spec.renewTime", "2025-11-20T12:00:00.000000Z"),), ()),
    "renewTime null": ((put("spec.renewTime", None),), ()),
    "old renewTime null": ((), stored(put("spec.renewTime", None))),
    "renewTime length": ((put("spec.renewTime", "20000-01-01T00:00:00.000000Z"),), ()),
    "old renewTime length": ((), stored(put("spec.renewTime", "20000-01-01T00:00:00.000000Z"))),
    "renewTime before 1970": ((put("spec.renewTime", "0000-01-01T00:00:00.000000Z"),), ()),
    "renewTime after 2200": ((put("spec.renewTime", "9999-12-31T23:59:59.999999Z"),), ()),
    "old renewTime before 1970": ((), stored(put("spec.renewTime", "-001-01-01T00:00:00.000000Z"))),
    "old renewTime after 2200": ((), stored(put("spec.renewTime", "9999-12-31T23:59:59.999999Z"))),
    "24 hours ahead": ((put("spec.renewTime", "2025-11-21T12:00:00.000001Z"),), ()),
    "managedFields count": ((entries(LABEL),), ()),
    "managedFields count, the writer's entry twice": ((twice,), ()),
    "managedFields times of the writer": ((put("metadata.managedFields[0].time", "10000-01-01T00:00:00Z"),), ()),
    "managedFields above 50": ((), stored(many(MAX_ENTRIES + 1))),
    "managedFields times": ((), stored(entries(LABEL | {"time": "10000-01-01T00:00:00Z"}))),
    "old managedFields times": (
        (put("metadata.managedFields[0].time", STAMPED),),
        stored(put("metadata.managedFields[0].time", "20000-01-01T00:00:00Z")),
    ),
    "managedFields of others": ((put("metadata.managedFields[1].time", FUTURE),), stored(entries(LABEL))),
    "ancient-changes": ((), stored(put("metadata.managedFields[0].manager", "ancient-changes"))),
    "managedFields of the writer": ((put("metadata.managedFields[0].manager", "mallory"),), ()),
}


@pytest.mark.parametrize("term", TERMS)
def test_one_thing_more_is_reviewed(term: str) -> None:
    tweaks, old = TERMS[term]
    assert is_reviewed(renewal(*tweaks, old=old))


def terms() -> list[str]:
    """Return what stands between `||`, without the brackets around several terms."""
    bare_terms = []
    for part in EXPRESSION.split("||"):
        term = part.rpartition("exists(before,")[2].strip()
        while term.count(")") > term.count("("):
            term = term.removesuffix(")")
        bare_terms.append(term)
    return bare_terms


@pytest.mark.parametrize("term", terms())
def test_each_term_is_needed_by_a_write(term: str) -> None:
    """Without it, a write that is reviewed is skipped, or the expression fails."""
    candidate = make_review(old=make_candidate(), new=make_candidate(put("spec.renewTime", LATER)))["request"]
    requests = [renewal(*tweaks, old=old) for tweaks, old in TERMS.values()]
    requests += [
        candidate | {"object": make_lease(put("spec.renewTime", LATER)), "oldObject": make_lease()},
        make_review(new=make_lease())["request"],
    ]
    without = EXPRESSION.replace(term, "false", 1)

    def is_lost(request: Document) -> bool:
        try:
            return not is_reviewed(request, without)
        except ValueError:
            return True

    assert any(is_lost(request) for request in requests)


def test_everything_but_updates_of_leases_is_reviewed() -> None:
    old, new = make_candidate(), make_candidate(put("spec.renewTime", LATER))
    assert is_reviewed(make_review(old=old, new=new)["request"])
    assert is_reviewed(make_review(new=make_lease())["request"])
    assert is_reviewed(make_review(old=make_lease())["request"])


BELOW: Final = LABEL | {"manager": "z", "time": "2020-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("tweaks", "old"),
    [
        pytest.param((entries(*(LABEL | {"manager": f"m{n}", "time": FUTURE} for n in range(12))),), (), id="a fold"),
        pytest.param(
            (entries(BELOW | {"fieldsV1": {"f:spec": {"f:renewTime": {"f:x": {}}}}}),), (), id="an owner below a scalar"
        ),
        pytest.param(
            (put("metadata.managedFields[1].fieldsV1", {"f:spec": {"f:renewTime": {"f:x": {}}}}),),
            stored(entries(LABEL)),
            id="an owner below a scalar in place of another entry",
        ),
        pytest.param((put("metadata.managedFields[1].manager", "z"),), stored(entries(LABEL)), id="another name"),
        pytest.param((drop("metadata.managedFields[1]"),), stored(entries(LABEL)), id="an entry that is removed"),
        pytest.param((drop("metadata.managedFields"),), (), id="stamps that are wiped"),
        pytest.param((put("metadata.managedFields", [make_entry("renewTime")]),), (), id="an entry that owns less"),
        pytest.param((put("metadata.managedFields[0].operation", "Apply"),), (), id="another operation"),
        pytest.param((put("metadata.managedFields[0].subresource", "status"),), (), id="a subresource"),
        pytest.param((put("spec.leaseDurationSeconds", 1),), (), id="a shorter duration"),
        pytest.param((drop("spec.leaseDurationSeconds"),), (), id="no duration"),
    ],
)
def test_no_evidence_is_forged_by_a_renewal(tweaks: tuple[Tweak, ...], old: tuple[Tweak, ...]) -> None:
    assert is_reviewed(renewal(*tweaks, old=old))


VALUES: Final[dict[str, list[Any]]] = {
    "spec.holderIdentity": [None, "", "other"],
    "spec.leaseDurationSeconds": [None, 1, 2_147_483_647],
    "spec.acquireTime": [None, LATER],
    "spec.leaseTransitions": [None, 0, 6],
    "spec.strategy": [None, "", "a/b"],
    "spec.preferredHolder": [None, "", "other"],
    "spec.renewTime": [None, LATER, "0000-01-01T00:00:00.000000Z", "10000-01-01T00:00:00.000000Z"],
    "metadata.labels": [None, {"a": "b"}],
    "metadata.ownerReferences": [None, [OWNER]],
    "metadata.managedFields": [
        [],
        [make_entry("renewTime", time=STAMPED)],
        [make_entry("renewTime", manager="mallory", time=STAMPED)],
        [make_entry("renewTime"), LABEL],
        [{key: value for key, value in make_entry("renewTime").items() if key != "fieldsV1"}],
    ],
}
TWEAKS: Final = st.sampled_from(sorted(VALUES)).flatmap(
    lambda path: st.sampled_from(VALUES[path]).map(lambda value: put(path, value))
)


def without(lease: Document) -> Document:
    """The lease without what a plain renewal may change, absent and null being one."""
    spec = {key: value for key, value in lease["spec"].items() if key != "renewTime" and value is not None}
    metadata = {key: value for key, value in lease["metadata"].items() if value is not None}
    metadata["managedFields"] = [
        {key: value for key, value in entry.items() if not (key == "time" and _owns_renew_time(entry))}
        for entry in metadata["managedFields"]
    ]
    return {"spec": spec, "metadata": metadata}


def _owns_renew_time(entry: Document) -> bool:
    return "f:renewTime" in (entry.get("fieldsV1", {}).get("f:spec", {}))


@given(new=st.lists(TWEAKS, max_size=3), old=st.lists(TWEAKS, max_size=3))
def test_what_is_dropped_changes_renew_time_and_its_stamp_alone(new: list[Tweak], old: list[Tweak]) -> None:
    before = make_lease(*old)
    after = changed(before, put("spec.renewTime", LATER), *new)
    if not is_update_reviewed(after, before):
        assert without(after) == without(before)
        assert after["spec"]["renewTime"] != before["spec"]["renewTime"]


HEAD: Final = ["| client | renewals | not sent | reviewed |", "|---|---|---|---|"]


def is_renewal(request: Document) -> bool:
    """An update by which the same holder moves renewTime."""
    if request["operation"] != "UPDATE":
        return False
    new, old = request["object"].get("spec") or {}, request["oldObject"].get("spec") or {}
    same = new.get("holderIdentity") == old.get("holderIdentity") not in (None, "")
    return same and new.get("renewTime") not in (None, old.get("renewTime"))


def table() -> list[str]:
    """The recorded renewals of leases, by client: how many are skipped, and how many are reviewed."""
    renewals: Counter[str] = Counter()
    reviewed: Counter[str] = Counter()
    for recording in recordings():
        request = recording.document()["request"]
        if request["resource"]["resource"] == "leases" and is_renewal(request):
            client = "kubectl, by hand" if recording.by_person else recording.client
            renewals[client] += 1
            reviewed[client] += is_reviewed(request)
    lines = [
        f"| {one} | {count} | {count - reviewed[one]} | {reviewed[one]} |" for one, count in sorted(renewals.items())
    ]
    return [*HEAD, *lines]


def test_nothing_but_renewals_is_dropped_from_the_recordings() -> None:
    requests = [recording.document()["request"] for recording in recordings()]
    assert all(is_renewal(request) for request in requests if not is_reviewed(request))


def test_the_page_counts_the_recorded_renewals_that_are_dropped() -> None:
    page = (DOCS / "renewals.md").read_text().partition("\n## ")[0]
    assert find_table_lines(page) == table()
