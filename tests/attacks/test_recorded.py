"""The attacks as a real API server sent them for review: each write ends as its file says."""

import pytest

from tests.attacks import recorded
from tests.attacks.attack import PRESETS, Attack, attacks
from tests.attacks.play import play, problems

EACH_ATTACK = [pytest.param(attack, id=attack.id) for attack in attacks()]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("attack", EACH_ATTACK)
def test_a_recorded_attack_ends_as_its_file_says(attack: Attack, preset: str) -> None:
    world = recorded.RecordedWorld(recorded.reviews_of(attack, preset), recorded.policy_of(preset))
    differences = problems(attack, preset, play(attack, attack.lease_name(preset), world))
    assert not differences, "\n".join(differences)


def test_every_recording_belongs_to_an_attack() -> None:
    """A recording that is left over would be read by nobody; after a renaming, record again."""
    wanted = {recorded.file_of(attack, preset) for attack in attacks() for preset in PRESETS}
    assert set(recorded.FOLDER.iterdir()) == wanted
