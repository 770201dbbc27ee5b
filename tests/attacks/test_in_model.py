"""The attacks in the model API server, and the model against the real one: both must store the same managedFields."""

from typing import Any, Final

import pytest

from tests.attacks import recorded
from tests.attacks.attack import PRESETS, Attack, attacks
from tests.attacks.in_model import OLDEST, ModelWorld, written
from tests.attacks.play import Outcome, play, problems
from tests.attacks.requests import Clock
from tests.deep_json import decode
from tests.model.managed_fields import SECOND, Entry
from tests.model.recordings import as_lease

EACH_ATTACK = [pytest.param(attack, id=attack.id) for attack in attacks()]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("attack", EACH_ATTACK)
def test_a_played_attack_ends_as_its_file_says(attack: Attack, preset: str) -> None:
    world = ModelWorld(recorded.policy_of(preset), max(attack.since, OLDEST))
    differences = problems(attack, preset, play(attack, attack.lease_name(preset), world))
    assert not differences, "\n".join(differences)


# ---- the model against the real API server --------------------------------------------------------------------------

CLOCKS: Final = (0, -SECOND, SECOND, -2 * SECOND, -3 * SECOND)
"""The writer's clock and the API server's, against the moment when the review was received."""


class ComparedWorld(recorded.RecordedWorld):
    """Sends each write to the model too, from the recorded old object; `differ` numbers those that come out other."""

    def __init__(self, reviews: list[recorded.Review], preset: str, offset: int, minor: int) -> None:
        super().__init__(reviews, recorded.policy_of(preset))
        self._minor = minor
        self.differ: dict[int, tuple[set[Entry], set[Entry]]] = {}
        self._offset = offset
        self._number = 0

    def clock(self) -> Clock:
        return Clock(self._left[0].received + self._offset)

    def send(self, _by: str, method: str, manager: str, body: dict[str, Any] | None, /) -> Outcome:
        review = self._left.pop(0)
        request = decode(review.body)["request"]
        if body is not None:
            old = as_lease(request["oldObject"], with_absent=True) if request["oldObject"] else None
            model = set(written(old, method, manager, body, review.received + self._offset, self._minor).entries)
            real = set(as_lease(request["object"], with_absent=True).entries)
            if model != real:
                self.differ[self._number] = model - real, real - model
        self._number += 1
        return Outcome(True, {})


@pytest.mark.parametrize("attack", EACH_ATTACK)
def test_the_model_stores_the_entries_that_the_api_server_stored(attack: Attack) -> None:
    for preset in PRESETS:
        differ: dict[int, tuple[set[Entry], set[Entry]]] = {}
        reviews = recorded.reviews_of(attack, preset)
        for offset in CLOCKS:
            world = ComparedWorld(reviews, preset, offset, max(attack.since, OLDEST))
            play(attack, attack.lease_name(preset), world)
            differ = {number: world.differ[number] for number in (differ or world.differ) if number in world.differ}
            if not differ:
                break
        assert not differ
