"""Plans that are stored: the shortest histories that once had a command say what is not true."""

from pathlib import Path
from typing import Final

from tests.truth.plans import from_json
from tests.truth.play import play
from tests.truth.records import History

_FOLDER: Final = Path(__file__).parents[1] / "data" / "histories"
NAMES: Final = sorted(path.stem for path in _FOLDER.glob("*.json"))


def play_stored(name: str) -> History:
    """Play the stored plan of this name, one of `NAMES`."""
    return play(from_json((_FOLDER / f"{name}.json").read_bytes()))
