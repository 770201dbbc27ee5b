"""Every picture is made by a command, and shown with words for those who do not see it."""

import re
import xml.etree.ElementTree as ET

from tools.docs import path_picture
from tools.docs.pages import DOCS
from tools.docs.pictures import COMMANDS, FOLDER

PAGE = DOCS / "election-explained.md"


def test_the_page_shows_each_picture_with_words_for_those_who_do_not_see_it() -> None:
    pictures = dict(re.findall(r"!\[([^\]]{40,})\]\(images/elections/([^)]+)\)", PAGE.read_text()))
    assert sorted(pictures.values()) == sorted(f"{name}.png" for name in COMMANDS)
    assert {path.name for path in FOLDER.iterdir()} == set(pictures.values())


def test_every_picture_is_made_by_a_command() -> None:
    by_cluster = "dashboard.svg"  # `make pictures` draws it from what `make cluster` kept
    assert {one.name for one in FOLDER.parent.iterdir()} == {FOLDER.name, path_picture.FILE.name, by_cluster}


def test_the_picture_of_the_path_is_fresh_and_well_formed() -> None:
    assert path_picture.FILE.read_text() == path_picture.draw_picture()
    root = ET.fromstring(path_picture.draw_picture())
    assert root.find("{http://www.w3.org/2000/svg}title") is not None
