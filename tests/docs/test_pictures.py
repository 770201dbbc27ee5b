"""The pictures of elections are all shown, with words for those who do not see them."""

import re

from tools.docs.pages import DOCS
from tools.docs.pictures import COMMANDS, FOLDER

PAGE = DOCS / "election-explained.md"


def test_the_page_shows_each_picture_with_words_for_those_who_do_not_see_it() -> None:
    shown = dict(re.findall(r"!\[([^\]]{40,})\]\(images/elections/([^)]+)\)", PAGE.read_text()))
    assert sorted(shown.values()) == sorted(f"{name}.png" for name in COMMANDS)
    assert {path.name for path in FOLDER.iterdir()} == set(shown.values())
