"""Leases that only a list shows are kept as text, and nothing that is known of them depends on it."""

import gzip
import json
import random
from pathlib import Path

import pytest

from tests.factories import NOW, Tweak, drop, make_lease, put
from tests.history.observing import input_of
from tests.inputs.reading import read
from webhook.analysis.claims.assemble import make_account, make_account_of_state
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.merge.merged import Merged
from webhook.analysis.history.renewals import OtherLeases
from webhook.analysis.history.stored_leases import StoredLeases
from webhook.analysis.inputs.items import Item, Observation
from webhook.kubernetes.times import SECOND

INCIDENTS = Path("tests/data/measured-incidents")
LATEST = 2**62


def items_of(name: str, file: str) -> list[Item]:
    return list(read(file, [gzip.decompress((INCIDENTS / name / file).read_bytes())]))


def conclusion(*inputs: list[Item], is_kept: bool) -> dict[object, object]:
    histories = ClusterHistory()
    for item in Merged([input_of(items) for items in inputs], LATEST):
        if isinstance(item, Observation) and not is_kept:
            histories.find_or_begin_history((item.namespace, item.name))
        histories.add(item)
    now = histories.bounds.until or 1_800_000_000_000_000
    return {
        key: make_account_json(make_account(histories, histories.get_history(key), now)) for key in histories.names()
    }


@pytest.mark.parametrize("name", ["killed", "crashloop", "same-identity", "foreign-release", "node-cut"])
@pytest.mark.parametrize("file", ["dump.json.gz", "dump-plain.json.gz"])
def test_a_list_alone(name: str, file: str) -> None:
    dump = items_of(name, file)
    known = conclusion(dump, is_kept=False)
    assert conclusion(dump, is_kept=True) == known
    random.Random(name).shuffle(dump)
    assert conclusion(dump, is_kept=True) == known


@pytest.mark.parametrize("name", ["killed", "same-identity", "foreign-release"])
def test_a_list_beside_a_watch(name: str) -> None:
    dump, watch = items_of(name, "dump.json.gz"), items_of(name, "watch.jsonl.gz")
    known = conclusion(dump, watch, is_kept=False)
    assert conclusion(dump, watch, is_kept=True) == known
    assert conclusion(watch, dump, is_kept=True) == known
    assert conclusion(dump, dump, watch, is_kept=True) == known


def test_more_than_one_block_and_more_than_one_file() -> None:
    stored, seen = StoredLeases(), {}
    for name in ("killed", "same-identity"):
        for number, item in enumerate(items_of(name, "dump.json.gz") * 30):
            if isinstance(item, Observation):
                key = (name, str(number))
                assert stored.add(key, item)
                assert not stored.add(key, item)
                seen[key] = item
    for key, item in seen.items():
        state = stored.get(key)
        assert state is not None
        assert (state.object, state.place.path) == (item.object, item.place.path)
    assert len([*stored.list_last_renewals()]) == len(seen)
    first = next(iter(seen))
    stored.forget(first)
    assert stored.get(first) is None
    assert len([*stored.list_last_renewals()]) == len(seen) - 1


STATES = {
    "held": (),
    "expired": (
        put("spec.renewTime", "2025-11-20T11:00:00.000000Z"),
        put("metadata.managedFields.0.time", "2025-11-20T11:00:00Z"),
    ),
    "released": (put("spec.holderIdentity", ""),),
    "never held": (put("spec", {}), drop("metadata.managedFields")),
    "frozen by a duration": (put("spec.leaseDurationSeconds", 2**31 - 1),),
    "renewed by a clock that is ahead": (put("spec.renewTime", "2025-11-20T12:00:45.000000Z"),),
    "without a stamp": (drop("metadata.managedFields"),),
    "without a renewTime": (drop("spec.renewTime"),),
    "in kube-system": (put("metadata.namespace", "kube-system"),),
    "a heartbeat": (drop("spec.acquireTime"), drop("spec.leaseTransitions")),
    "of a node": (put("metadata.namespace", "kube-node-lease"),),
    "with an odd holder": (put("spec.holderIdentity", "a\u200bb"),),
}


@pytest.mark.parametrize("tweaks", STATES.values(), ids=STATES)
def test_the_row_of_a_stored_lease_is_that_of_its_account(tweaks: tuple[Tweak, ...]) -> None:
    histories = ClusterHistory()
    for item in read("leases.json", [json.dumps(make_lease(*tweaks)).encode()]):
        histories.add(item)
    (key,) = histories.names()
    state, history = histories.stored.get(key), histories.get_history(key)
    assert state is not None
    for now in (NOW, NOW + 20 * SECOND, NOW + 3600 * SECOND):
        of_state, whole = make_account_of_state(histories, key, state, now), make_account(histories, history, now)
        assert of_state.findings == whole.findings
        assert of_state.is_heartbeat is whole.is_heartbeat
        assert (of_state.status, of_state.holder, of_state.last_renewal, of_state.history.changes) == (
            whole.status,
            whole.holder,
            whole.last_renewal,
            whole.history.changes,
        )


def take_list(histories: ClusterHistory, *tweaks: Tweak) -> None:
    for item in read("leases.json", [json.dumps(make_lease(*tweaks)).encode()]):
        histories.add(item)


def test_a_lease_that_a_list_shows_after_a_question_is_in_the_next_answer() -> None:
    histories = ClusterHistory()
    take_list(histories, *STATES["expired"])
    expired = histories.get_history(("shop", "checkout"))
    assert histories.index.list_namespaces_of("checkout") == ["shop"]
    assert histories.index.compare_silent_with_others(expired, NOW) == OtherLeases()

    take_list(histories, put("metadata.namespace", "store"))
    assert histories.index.list_namespaces_of("checkout") == ["shop", "store"]
    assert histories.index.compare_silent_with_others(expired, NOW) == OtherLeases(on_time=1)


def test_a_lease_that_only_a_list_shows_is_followed_once_for_all_of_its_name() -> None:
    histories = ClusterHistory()
    for namespace in ("shop", "store", "depot"):
        take_list(histories, put("metadata.namespace", namespace))
    shop, store = (histories.get_history((namespace, "checkout")) for namespace in ("shop", "store"))
    (depot, seen_from_shop), (also_depot, _) = map(histories.index.list_namesakes, (shop, store))
    assert (depot.namespace, seen_from_shop.namespace) == ("depot", "store")
    assert also_depot is depot


def test_names_in_turns_from_many_blocks() -> None:
    """In the order of names, leases of a list are in other blocks again and again."""
    histories = ClusterHistory()
    for number in range(2000):
        for item in read("leases.json", [json.dumps(make_lease(put("metadata.name", f"lease-{number}"))).encode()]):
            histories.add(item)
    stored_states = [histories.stored.get(key) for key in histories.names()]
    assert [one and one.name for one in stored_states] == sorted(f"lease-{number}" for number in range(2000))
