"""The table of docs/policies-only.md: the rules that a policy of the API server can express, and the others."""

from collections.abc import Iterator
from typing import Final

from tools.docs.pages import DOCS, replace_generated
from webhook.admission.rules.registry import ALL_RULES
from webhook.admission.rules.rule import Rule
from webhook.api_server.rule_policies import STAMP_RULE

PAGE: Final = DOCS / "policies-only.md"
_BEGIN: Final = "<!-- written by make docs from webhook/admission/rules -->\n"


def make_page() -> str:
    """Return the page with the current table."""
    return replace_generated(PAGE, _BEGIN, make_rows())


def make_rows() -> Iterator[str]:
    """Yield a row for each rule of ours; the checks of kube-apiserver are one row."""
    yield "| rule | as a policy | what a policy does not say, or why it says nothing |"
    yield "|---|---|---|"
    validated = [rule for rule in ALL_RULES.values() if rule.parity and not rule.in_cel.is_said]
    for rule in ALL_RULES.values():
        if rule not in validated:
            yield f"| [`{rule.id}`](rules/{rule.id}.md) | {_say_how_much(rule)} | {rule.in_cel.lacks} |"
    yield f"| the {len(validated)} others [at parity](rules/README.md) | not needed | {validated[0].in_cel.lacks} |"


def _say_how_much(rule: Rule) -> str:
    if not rule.in_cel.is_said:
        return "with stamps" if rule.id == STAMP_RULE else "no"
    return "in part" if rule.in_cel.lacks else "yes"
