"""The laws of fuzzing hold for each input of each corpus, and the mutators keep their promises."""

import json
import random
from pathlib import Path

import pytest

from tests.fuzz import mutations, targets
from tests.fuzz.targets import MAX_SIZE, TARGETS, corpus, keep
from tests.fuzz.yaml import check as check_yaml


@pytest.mark.parametrize("name", TARGETS)
def test_each_kept_input_and_each_seed_is_well(name: str) -> None:
    kept = corpus(name)
    assert kept
    for data in (*kept, *TARGETS[name].seeds()):
        assert len(data) <= MAX_SIZE
        TARGETS[name].check(data)


def test_a_corpus_is_written_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "CORPORA", tmp_path)
    keep("yaml", [b"b", b"a", b"", b"a"])
    written = (targets.CORPORA / "yaml.zip").read_bytes()
    assert corpus("yaml") == [b"", b"a", b"b"]
    keep("yaml", corpus("yaml"))
    assert (targets.CORPORA / "yaml.zip").read_bytes() == written


def test_a_change_keeps_json_json_and_follows_from_its_seed() -> None:
    data = b'{"a": [1, "x", {"b": null}], "c": true}'
    changes = [mutations.mutate(data, random.Random(seed), limit=1000) for seed in range(200)]
    assert changes == [mutations.mutate(data, random.Random(seed), limit=1000) for seed in range(200)]
    assert len(set(changes)) > 50
    for change in filter(None, changes):
        json.loads(change)


def test_one_line_of_several_is_changed() -> None:
    lines = [b'{"a": 1}', b"not JSON", b'{"b": 2}']
    for seed in range(50):
        change = mutations.mutate(b"\n".join(lines), random.Random(seed), limit=1000)
        assert change is None or sum(1 for one in lines if one in change.splitlines()) >= 2


def test_a_graft_takes_a_value_of_another_text() -> None:
    grafts = {mutations.graft(b'{"a": 1}', b'{"a": "gift"}', random.Random(seed), limit=100) for seed in range(20)}
    assert b'{"a":"gift"}' in grafts
    assert mutations.graft(b"[", b"{}", random.Random(1), limit=100) is None


@pytest.mark.parametrize(
    "text", ["a: 1e311", "a: 0o", "a: y", "? 1e3\n: 0o7", f"? {'k' * 1022}\n: 1", f"? {'k' * 1023}\n: 1"]
)
def test_scalars_that_fuzzing_found_are_read_and_written_as_they_are(text: str) -> None:
    check_yaml(text.encode())
