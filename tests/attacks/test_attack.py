"""Attack files: variants are filled in, and a file that says something unknown is refused by name."""

import pytest

from tests.attacks.attack import PRESETS, attacks, parse
from tests.attacks.requests import Clock
from tests.deep_json import decode, encode

FILE = """
about: something
variants:
  one level: {levels: 1, who: a}
  two levels: {levels: 2, who: b}
writes:
- by: neighbor
  labels: {"${who}#": "yes"}
  repeat: $levels
  always: {denied: [a-rule]}
"""


def test_each_variant_is_an_attack_with_its_values_filled_in() -> None:
    one, two = parse("file", FILE)
    assert [one.id, two.id] == ["file.one-level", "file.two-levels"]
    assert [step.labels for step in two.writes[0].one_by_one()] == [{"b0": "yes"}, {"b1": "yes"}]
    assert one.writes[0].expected("strict").findings == {"a-rule": "deny"}


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(FILE.replace("repeat", "repeats"), id="an unknown key"),
        pytest.param(FILE.replace("$levels", "$depth"), id="a value that no variant has"),
        pytest.param(FILE.replace("about: something", ""), id="nothing that says what it is about"),
    ],
)
def test_a_file_that_is_no_attack_is_refused_by_name(broken: str) -> None:
    with pytest.raises(ValueError, match="file, variant"):
        list(parse("file", broken))


def test_every_attack_has_a_name_of_its_own_that_an_api_server_takes() -> None:
    names = [attack.lease_name(preset) for attack in attacks() for preset in PRESETS]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 253 for name in names)


def test_instants_are_relative_to_the_clock_of_the_writer() -> None:
    clock = Clock(1_800_000_000_500_000)
    assert clock.micro_time("now-1m") == "2027-01-15T07:59:00.500000Z"
    assert clock.time("now+1h") == "2027-01-15T09:00:00Z"
    assert clock.time("2020-01-01T00:00:00Z") == "2020-01-01T00:00:00Z"


@pytest.mark.parametrize("levels", [30, 9900])
def test_deep_json_is_written_out_and_read_back(levels: int) -> None:
    document = {"a": [{"f:x": f"<deep {levels}>"}, {}]}
    text = encode(document)
    assert text.count(b'"f:a"') == levels
    assert decode(text) == document
