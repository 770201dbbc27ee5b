"""The policies that the page shows are valid, and its mistake is rejected in the words of the page."""

import re

import pytest

from tools.docs import policy_schema
from tools.docs.pages import DOCS, find_section
from webhook.admission.policy.explain import list_oddities
from webhook.admission.policy.parse import parse
from webhook.admission.policy.schema import PolicyError

PAGE = DOCS / "policy.md"


def list_policies() -> list[str]:
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [block for block in blocks if "apiVersion: lease-webhook/" in block]


def test_each_policy_of_the_page_is_valid_and_lint_has_no_note_on_it() -> None:
    policies = list_policies()
    assert policies, "the page shows no policy"
    for policy in policies:
        assert list_oddities(parse(policy), now=0) == []


def test_the_page_has_every_key() -> None:
    assert PAGE.read_text() == policy_schema.make_page(), "write it again: make docs"


def test_the_refusal_is_what_people_see() -> None:
    with pytest.raises(PolicyError) as caught:
        parse((DOCS / "examples" / "misspelled.yaml").read_text())
    assert f"misspelled.yaml: {caught.value}\n" in find_section(PAGE, "Validation")
