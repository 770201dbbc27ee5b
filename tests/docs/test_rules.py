"""docs/rules has one page for each rule, as the code says."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from msgspec import Struct

from tools.docs.pages import find_section
from tools.docs.rule_pages import FOLDER, make_rule_pages
from webhook.admission.policy.parse import parse
from webhook.admission.rules.limits import describe_numbers
from webhook.cli.rules import list_all_rules

HEAD = "apiVersion: lease-webhook/v1\npreset: strict\n"
RELAXED = [pytest.param(FOLDER / f"{rule}.md", id=rule) for rule in list_all_rules()]


@cache
def pages() -> Mapping[str, str]:
    return make_rule_pages()


def test_each_rule_has_a_page_and_no_page_is_left_of_one_that_is_gone() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(pages())


@pytest.mark.parametrize("page", sorted(FOLDER.iterdir()), ids=lambda page: page.stem)
def test_a_page_is_as_the_code_says(page: Path) -> None:
    assert page.read_text() == pages().get(page.name), "write it again: make docs"


@pytest.mark.parametrize("rule", list_all_rules())
def test_a_rule_explains_itself_in_whole_sentences(rule: str) -> None:
    about = list_all_rules()[rule].texts
    for text in (about.why, about.who, about.fix):
        assert text.endswith(".")
        assert "  " not in text


def test_a_number_without_a_meaning_is_refused() -> None:
    class Unexplained(Struct, frozen=True):
        above_seconds: int = 5

    with pytest.raises(ValueError, match=r"Unexplained\.above_seconds has no meaning: declare it as Annotated"):
        describe_numbers(Unexplained)


@pytest.mark.parametrize("page", RELAXED)
def test_a_policy_accepts_what_a_page_shows(page: Path) -> None:
    for block in re.findall(r"```yaml\n(.*?)```", find_section(page, "How to relax"), re.DOTALL):
        parse(f"{HEAD}{block}")
        for number in re.findall(r"^  # (.*)$", block, re.MULTILINE):
            parse(f"{HEAD}rules:\n  {number}\n")
