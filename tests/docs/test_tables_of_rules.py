"""The tables about rules, findings and claims in docs/promises.md, docs/audit.md and docs/claims.md are up to date."""

from tools.docs import audit_page, claims_page, promises_page


def test_what_denies_a_renewal_is_as_the_rules_say() -> None:
    assert promises_page.PAGE.read_text() == promises_page.make_page(), "write it again: make docs"


def test_the_findings_are_as_the_rules_and_the_registries_say() -> None:
    assert audit_page.PAGE.read_text() == audit_page.make_page(), "write it again: make docs"


def test_the_claims_are_as_the_registry_says() -> None:
    assert claims_page.PAGE.read_text() == claims_page.make_page(), "write it again: make docs"
