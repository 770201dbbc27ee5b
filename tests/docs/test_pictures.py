"""The pictures of elections are what the command draws now, and a page shows each of them."""

import re

import pytest

from tools.docs.pages import DOCS
from tools.docs.pictures import COMMANDS, FOLDER, pictures

PAGE = DOCS / "election-explained.md"


@pytest.fixture(scope="module")
def drawn() -> dict[str, str]:
    return pictures()


@pytest.mark.parametrize("name", [f"{name}.svg" for name in COMMANDS])
def test_a_picture_is_what_the_command_draws(name: str, drawn: dict[str, str]) -> None:
    assert (FOLDER / name).read_text() == drawn[name], "draw it again: make docs"


def test_the_page_shows_each_picture_with_words_for_those_who_do_not_see_it() -> None:
    shown = dict(re.findall(r"!\[([^\]]{40,})\]\(images/elections/([^)]+)\)", PAGE.read_text()))
    assert sorted(shown.values()) == sorted(f"{name}.svg" for name in COMMANDS)


def test_there_is_no_other_picture(drawn: dict[str, str]) -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(drawn)
