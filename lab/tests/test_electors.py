"""docs/electors.md shows what `make elector-kit` found, and says what each check is."""

from lab.elector_kit import __main__ as kit
from lab.elector_kit.checks import CHECKS

PAGE = kit.PAGE.read_text(encoding="utf-8")


def test_the_page_shows_what_was_found() -> None:
    assert kit.format_results(kit.read_stored()) in PAGE


def test_every_elector_was_tried() -> None:
    assert [one.elector for one in kit.read_stored() if set(one.violations) != set(CHECKS)] == []


def test_each_check_finds_something_in_the_elector_that_is_wrong_on_purpose() -> None:
    violations = next(one.violations for one in kit.read_stored() if one.elector == kit.WRONG)
    assert [name for name in CHECKS if not violations[name]] == []


def test_each_check_finds_nothing_in_some_elector() -> None:
    assert [name for name in CHECKS if all(one.violations[name] for one in kit.read_stored())] == []


def test_the_page_says_what_each_check_is() -> None:
    assert [name for name in CHECKS if f"\n| {name} | " not in PAGE] == []
