"""What an attacker can do, found by search and listed in docs/promises.md; and what a binding does about it."""

import pytest
from msgspec.structs import replace

from tests.model import world
from tests.model.api_server import User
from tests.model.arsenal import ATTACKS, TAKE
from tests.model.attacker import ATTACKERS, INSIDER, rendered, scene, threat_table, threats
from tests.model.depth import MORE
from tests.model.world import DAY
from tools.docs.pages import DOCS, find_section, find_table_lines

USUAL_DEPTH = 2
EACH_ATTACKER = [pytest.param(name, id=name) for name in ATTACKERS]


@pytest.mark.deep
def test_the_page_lists_every_threat_and_no_other() -> None:
    listed = find_table_lines(find_section(DOCS / "promises.md", "What it cannot do"))
    assert "\n".join(listed) == rendered(threat_table(USUAL_DEPTH + MORE))


def test_no_threat_is_a_single_write_in_strict() -> None:
    alone = {trace: row for trace, row in threat_table(1).items() if row[world.STRICT]}
    assert alone == {}


@pytest.mark.parametrize("policy", ["standard, bound", "strict, bound"])
@pytest.mark.parametrize("name", EACH_ATTACKER)
def test_with_a_binding_no_stranger_makes_two_leaders_or_writes_spec_at_all(policy: str, name: str) -> None:
    """The search also raises LawBrokenError at the first write of a stranger that changes spec and is allowed."""
    assert list(threats(policy, ATTACKERS[name], USUAL_DEPTH + MORE)) == []


@pytest.mark.parametrize(
    "attacker", [*(ATTACKERS[name] for name in ATTACKERS), INSIDER], ids=[*ATTACKERS, "an insider"]
)
def test_where_writers_are_stamped_nobody_makes_two_leaders(attacker: User) -> None:
    """By the rules alone; the guard of deploy/stamp refuses the same."""
    assert list(threats(world.STAMPED, attacker, USUAL_DEPTH + MORE)) == []


@pytest.mark.parametrize("name", EACH_ATTACKER)
def test_a_lease_without_stamps_falls_to_one_write_unless_the_policy_enforces(name: str) -> None:
    here = scene()
    assert here.lease is not None
    bare = replace(here, lease=replace(here.lease, entries=()), forged=True)
    assert (TAKE.text,) in threats(world.STRICT, ATTACKERS[name], 1, bare)
    assert list(threats("strict, without_stamps: enforce", ATTACKERS[name], 1, bare)) == []


@pytest.mark.parametrize("name", EACH_ATTACKER)
@pytest.mark.parametrize("skew", [-2 * DAY, DAY // 2], ids=["two days behind", "half a day ahead"])
def test_a_holder_whose_clock_is_wrong_is_protected_all_the_same(name: str, skew: int) -> None:
    """Its renewTime is the client's word; its stamps are the API server's."""
    assert list(threats(world.STRICT, ATTACKERS[name], 1, scene(skew=skew))) == []


def test_every_step_of_the_search_is_possible_somewhere() -> None:
    """An attack that could never be sent would prove nothing."""
    here = scene()
    assert here.lease is not None
    for attack in ATTACKS:
        assert attack.send(here.lease, here.now + 1) is not None, attack.text
