"""The tables about rules in docs/promises.md and docs/audit.md are as the rules say."""

from tools.docs import audit_page, promises_page


def test_what_denies_a_renewal_is_as_the_rules_say() -> None:
    assert promises_page.PAGE.read_text() == promises_page.make_page(), "write it again: make docs"


def test_the_rules_of_stored_objects_are_as_the_rules_say() -> None:
    assert audit_page.PAGE.read_text() == audit_page.make_page(), "write it again: make docs"
