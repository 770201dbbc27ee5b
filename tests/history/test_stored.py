"""Leases that only a list shows are kept as text, and nothing that is known of them depends on it."""

import gzip
import random
from pathlib import Path

import pytest

from tests.history.observing import input_of
from tests.inputs.reading import read
from webhook.explanation.account import account_of, as_json
from webhook.history.follow import Follower
from webhook.history.merge import Merged
from webhook.history.stored import StoredLeases
from webhook.inputs.items import Item, Observation

INCIDENTS = Path("tests/data/measured-incidents")
LATEST = 2**62


def items_of(name: str, file: str) -> list[Item]:
    return list(read(file, [gzip.decompress((INCIDENTS / name / file).read_bytes())]))


def conclusion(*inputs: list[Item], is_kept: bool) -> dict[object, object]:
    follower = Follower()
    for item in Merged([input_of(items) for items in inputs], LATEST):
        if is_kept:
            follower.take(item)
        else:
            follower.feed(item)
    now = follower.until or 1_800_000_000_000_000
    return {
        key: as_json(account_of(follower, one, now)) for key in follower.names() if (one := follower.history_of(key))
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
        found = stored.get(key)
        assert found is not None
        assert (found.object, found.place.path) == (item.object, item.place.path)
    assert len([*stored.last_renewals()]) == len(seen)
    first = next(iter(seen))
    assert stored.take(first) is not None
    assert stored.take(first) is None
    assert len([*stored.last_renewals()]) == len(seen) - 1
