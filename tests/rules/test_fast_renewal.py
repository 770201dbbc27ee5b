"""The fast path of renewals keeps its promise: no rule finds anything in what takes it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from tests.factories import NOW, Document, Tweak, drop, make_entry, put
from tests.recordings import recordings
from tests.rules.findings import SECOND, change_of, update, written
from webhook.api import micro_time
from webhook.api.request import Operation
from webhook.rules import fast_renewal
from webhook.rules.binding import Binding
from webhook.rules.change import Change, LeaseChange
from webhook.rules.events import Event
from webhook.rules.fast_renewal import is_fast_renewal
from webhook.rules.limits import DEFAULT_LIMITS
from webhook.rules.registry import RULES_BY_OCCASION

LATER = "2025-11-20T12:00:02.000000Z"
RENEWAL = written(put("spec.renewTime", LATER), at="2025-11-20T12:00:02Z")

NODE = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "6a1d4c52-8f4e-4d53-9d0c-5a2f5f0c7e12"}


def takes_fast_path(change: Change) -> bool:
    return is_fast_renewal(change.request, change.now, change.limits, change.binding)


def fast(*tweaks: Tweak, **changes: Any) -> bool:
    return takes_fast_path(change_of(update(*tweaks, **changes)))


def test_a_plain_renewal_takes_fast_path() -> None:
    assert fast(RENEWAL)


def test_a_heartbeat_of_a_node_takes_fast_path() -> None:
    owned = put("metadata.ownerReferences", [NODE])
    assert fast(RENEWAL, owned, old=[owned])


def test_a_renewal_beside_other_managers_takes_fast_path() -> None:
    other = make_entry(manager="labeler", time="2025-11-20T11:00:00Z") | {"fieldsV1": {"f:metadata": {"f:labels": {}}}}
    moved = [put("spec.renewTime", LATER), put("metadata.managedFields[1].time", "2025-11-20T12:00:02Z")]
    before = [lambda lease: lease["metadata"]["managedFields"].insert(0, other)]
    assert fast(*moved, old=before)
    behind = [lambda lease: lease["metadata"]["managedFields"].append(other)]
    assert fast(RENEWAL, old=behind)


def test_a_renewal_beside_an_entry_without_a_time_goes_to_the_rules() -> None:
    other = make_entry(manager="applier") | {"operation": "Apply"}
    del other["time"]
    assert not fast(RENEWAL, old=[lambda lease: lease["metadata"]["managedFields"].append(other)])


def test_a_list_too_long_to_be_remembered_takes_it_too() -> None:
    assert fast(RENEWAL, old=[put("metadata.managedFields[0].manager", "m" * 3000)])


def test_what_is_remembered_of_one_lease_says_nothing_about_another() -> None:
    assert fast(RENEWAL)
    assert not fast(RENEWAL, old=[put("metadata.managedFields[0].manager", "ancient-changes")])
    assert not fast(RENEWAL, old=[put("metadata.name", "a/b")])
    assert fast(RENEWAL, old=[put("metadata.name", "other")])


def test_entries_that_are_not_utf8_go_to_the_rules() -> None:
    """A review is UTF-8, but an object from a file or a log need not be."""
    request = change_of(update(RENEWAL)).request
    broken = {
        name: replace(lease, metadata_or_none=replace(lease.metadata, managed_fields=Raw(entries)))
        for name, lease in (("new", request.new), ("old", request.old))
        if lease is not None
        for entries in [bytes(lease.metadata.managed_fields).replace(b'"checkout"', b'"\xff"')]
    }
    assert not is_fast_renewal(replace(request, **broken), NOW, DEFAULT_LIMITS, None)


def test_two_owners_that_stay_go_to_the_rules() -> None:
    assert not fast(RENEWAL, old=[put("metadata.ownerReferences", [NODE, NODE | {"uid": "other"}])])


def test_what_is_remembered_is_bounded() -> None:
    for number in range(fast_renewal._MOST_REMEMBERED + 2):
        assert fast(RENEWAL, old=[put("metadata.uid", f"u{number}")])
        fast_renewal._stamps[f"{number:020}".encode()]
    assert len(fast_renewal._known) <= fast_renewal._MOST_REMEMBERED
    assert len(fast_renewal._stamps) <= fast_renewal._MOST_REMEMBERED


@pytest.mark.parametrize("place", ["metadata.name", "metadata.namespace"])
def test_a_long_name_goes_to_the_rules(place: str) -> None:
    """What is found about short names is remembered; a client may not fill that memory with long ones."""
    long = put(place, "a" * 254)
    assert not fast(RENEWAL, old=[long])


@pytest.mark.parametrize(
    "tweak",
    [
        pytest.param(put("metadata.labels", {"a": "b"}), id="a label"),
        pytest.param(put("metadata.annotations", {"a": "b"}), id="an annotation"),
        pytest.param(put("metadata.finalizers", ["a/b"]), id="a finalizer"),
        pytest.param(put("metadata.ownerReferences", []), id="a list of no owners"),
        pytest.param(put("metadata.ownerReferences", [None]), id="a null owner"),
        pytest.param(put("metadata.ownerReferences", [NODE, NODE]), id="two owners"),
        pytest.param(put("metadata.ownerReferences", [NODE | {"kind": "Event"}]), id="an owner that may be none"),
        pytest.param(put("metadata.ownerReferences", [NODE | {"apiVersion": ""}]), id="an owner without a version"),
        pytest.param(put("metadata.ownerReferences", [NODE | {"name": ""}]), id="an owner without a name"),
        pytest.param(put("metadata.ownerReferences", [NODE | {"uid": ""}]), id="an owner without a uid"),
        pytest.param(put("metadata.generation", 1), id="a generation"),
        pytest.param(put("metadata.generateName", "a-"), id="a generateName"),
        pytest.param(put("metadata.deletionTimestamp", "2025-11-20T12:00:00Z"), id="a deletion"),
        pytest.param(put("metadata.uid", "other"), id="another uid"),
        pytest.param(drop("metadata.resourceVersion"), id="no resourceVersion"),
        pytest.param(put("metadata.managedFields", []), id="no managedFields"),
        pytest.param(put("metadata.managedFields[0].time", "10000-01-01T00:00:00Z"), id="an unreadable entry time"),
        pytest.param(drop("metadata.managedFields[0].time"), id="an entry without a time"),
        pytest.param(put("metadata.managedFields[0].time", "0001-01-01T00:00:00Z"), id="an entry with the zero time"),
        pytest.param(put("metadata.managedFields[0].manager", "other"), id="another manager"),
        pytest.param(put("metadata.managedFields[0].fieldsV1.f:spec.f:x", {}), id="a field owned beside"),
        pytest.param(put("metadata.ownerReferences", [NODE]), id="an owner that was not there"),
        pytest.param(put("spec.holderIdentity", "other"), id="another holder"),
        pytest.param(put("spec.acquireTime", LATER), id="another acquireTime"),
        pytest.param(put("spec.leaseDurationSeconds", 14), id="another duration"),
        pytest.param(put("spec.leaseTransitions", 6), id="another count"),
        pytest.param(put("spec.strategy", "a/b"), id="a strategy"),
        pytest.param(put("spec.preferredHolder", "x"), id="a preferredHolder"),
        pytest.param(put("spec.renewTime", "2025-11-20T12:00:00.000000Z"), id="renewTime as it was"),
        pytest.param(put("spec.renewTime", "2025-11-20T13:00:00.000000Z"), id="renewTime an hour ahead of the clock"),
        pytest.param(drop("spec.renewTime"), id="no renewTime"),
    ],
)
def test_one_thing_more_goes_to_the_rules(tweak: Tweak) -> None:
    assert not fast(RENEWAL, tweak)


def second_owner(lease: Document) -> None:
    lease["metadata"]["managedFields"].append(make_entry("renewTime", manager="b"))


@pytest.mark.parametrize(
    "old",
    [
        pytest.param(drop("spec.leaseDurationSeconds"), id="no duration"),
        pytest.param(put("spec.leaseDurationSeconds", 0), id="an illegal duration"),
        pytest.param(put("spec.leaseTransitions", -1), id="an illegal count"),
        pytest.param(put("metadata.labels", {"a": "b"}), id="a label, which stays"),
        pytest.param(put("metadata.managedFields[0].manager", "ancient-changes"), id="an entry that is a fold"),
        pytest.param(put("metadata.managedFields[0].fieldsV1.f:spec.f:renewTime.f:x", {}), id="an owner below"),
        pytest.param(put("metadata.managedFields[0].fieldsV1.f:spec", None), id="no owner of anything in spec"),
        pytest.param(second_owner, id="a second owner"),
        pytest.param(put("metadata.namespace", "Shop"), id="an illegal namespace"),
        pytest.param(put("metadata.name", "a/b"), id="an illegal name"),
        pytest.param(drop("metadata.namespace"), id="no namespace"),
        pytest.param(put("spec.renewTime", "10000-01-01T00:00:00.000000Z"), id="an unreadable renewTime before"),
    ],
)
def test_what_was_there_goes_to_the_rules_too(old: Tweak) -> None:
    assert not fast(RENEWAL, old=[old])


def test_a_binding_and_options_that_say_something_go_to_the_rules() -> None:
    assert not takes_fast_path(change_of(update(RENEWAL), binding=Binding()))
    assert not fast(RENEWAL, review=[put("request.options.fieldManager", "me")])


PATHS: dict[str, list[Any]] = {
    "spec.renewTime": ["", None, LATER, "2036-01-01T00:00:00.000000Z", "10000-01-01T00:59:59.999999Z", "noise"],
    "spec.acquireTime": [None, LATER, "10000-01-01T00:59:59.999999Z", "noise"],
    "spec.leaseDurationSeconds": [None, -1, 0, 1, 86_401, 2_147_483_647],
    "spec.leaseTransitions": [None, -1, 0, 6, 2_147_483_647],
    "spec.holderIdentity": [None, "", "other", "a\nb"],
    "spec.strategy": [None, "", "bad", "a/b"],
    "spec.preferredHolder": [None, "", "x"],
    "metadata.name": [None, "", "a/b", ".."],
    "metadata.namespace": [None, "", "Shop"],
    "metadata.uid": [None, "", "other"],
    "metadata.resourceVersion": [None, ""],
    "metadata.generation": [None, -1],
    "metadata.creationTimestamp": [None, "noise", "2025-11-20T11:00:01Z"],
    "metadata.deletionTimestamp": [None, "2025-11-20T11:00:01Z"],
    "metadata.deletionGracePeriodSeconds": [None, 30],
    "metadata.generateName": [None, "a/"],
    "metadata.labels": [None, {}, {"a": "b"}, {"_": "-"}],
    "metadata.annotations": [None, {"_": ""}],
    "metadata.finalizers": [None, [], ["bad one"]],
    "metadata.ownerReferences": [
        None,
        [{}],
        [None],
        [NODE],
        [NODE | {"controller": True}],
        [NODE | {"controller": True}, NODE | {"uid": "other", "controller": True}],
        [NODE | {"kind": "Event"}],
        [NODE | {"apiVersion": "/v1"}],
        [NODE | {"uid": None}],
    ],
    "metadata.managedFields": [
        None,
        [],
        "junk",
        [{}],
        [make_entry("renewTime", time="10000-01-01T00:00:00Z")],
        [make_entry("renewTime", time="2025-11-20T12:00:02Z")],
        [make_entry("renewTime", manager="ancient-changes")],
        [make_entry("renewTime"), make_entry("renewTime", manager="b")],
        [make_entry("renewTime") | {"fieldsV1": {"f:spec": {"f:renewTime": {"f:x": {}}}}}],
        [make_entry("holderIdentity"), make_entry("renewTime", manager="b", time="2025-11-20T12:00:02Z")],
    ],
}


STORED_PATHS = PATHS | {
    "metadata.managedFields": [entries for entries in PATHS["metadata.managedFields"] if entries and entries[0] != "j"]
}


def tweaks(paths: dict[str, list[Any]]) -> st.SearchStrategy[Tweak]:
    return st.sampled_from([put(path, value) for path, values in paths.items() for value in values])


TWEAKS = tweaks(PATHS)
STORED = tweaks(STORED_PATHS)
CLOCKS = st.sampled_from([NOW, NOW - 10 * SECOND, NOW - 100 * 86_400 * SECOND, NOW + 100 * 86_400 * SECOND])
RENEWALS = st.integers(-200, 200_000).map(
    lambda seconds: put("spec.renewTime", micro_time.canonical(NOW + seconds * SECOND))
)


@given(new=st.lists(st.one_of(TWEAKS, RENEWALS), max_size=3), old=st.lists(STORED, max_size=2), now=CLOCKS)
def test_no_rule_finds_anything_in_what_takes_it(new: list[Tweak], old: list[Tweak], now: int) -> None:
    review = update(RENEWAL, *new, old=old)
    for key in ("name", "namespace"):  # what contradicts the request never reaches the rules
        review["request"][key] = review["request"]["object"]["metadata"].get(key)
    change = change_of(review, now=now)
    assert isinstance(change, LeaseChange)
    if takes_fast_path(change):
        assert change.event is Event.RENEWAL
        rules = RULES_BY_OCCASION["leases", Operation.UPDATE, Event.RENEWAL]
        assert not [rule.id for rule in rules if list(rule.check(change))]


@pytest.mark.parametrize(
    "client", ["client-go", "kube-controller-manager", "kube-scheduler", "kubernetes-python", "node-heartbeat"]
)
def test_recorded_renewals_take_it(client: str) -> None:
    changes = [
        change_of(recording.document(), now=recording.received)
        for recording in recordings()
        if recording.client == client
    ]
    renewals = [change for change in changes if isinstance(change, LeaseChange) and change.event is Event.RENEWAL]
    assert renewals
    assert all(map(takes_fast_path, renewals))
