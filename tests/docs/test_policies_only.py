"""The page about policies without a webhook says of each rule what the file beside the rule says."""

import pytest

from tools.docs import policies_table
from tools.docs.pages import DOCS
from webhook.admission.rules.registry import RULES


def test_the_table_is_as_the_rules_say() -> None:
    assert policies_table.PAGE.read_text() == policies_table.make_page(), "write it again: make docs"


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_written_in_cel_or_has_a_reason_why_not(name: str) -> None:
    about = RULES[name].in_cel
    assert about.is_said or about.lacks.endswith(".")
    assert bool(about.broken) == bool(about.message)
    assert not about.warned or about.warning or about.message
    assert about.is_said or RULES[name].parity or not about.lacks.startswith("The API server validates")


@pytest.mark.parametrize("page", ["policies-only.md", "stamp.md"])
def test_a_page_says_what_works_where_another_manager_wrote_the_objects(page: str) -> None:
    """An apply comes before it: a replacement makes no object, and a deletion leaves nothing in force meanwhile."""
    text = (DOCS / page).read_text()
    assert 0 < text.index("kubectl apply --server-side --force-conflicts") < text.index("kubectl replace -f")
    assert text.index("kubectl replace -f") < text.index("\nkubectl delete")
