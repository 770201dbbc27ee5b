"""The table of docs/policies-only.md: which rules a policy of the API server says, and which it cannot."""

from collections.abc import Iterator
from typing import Final

from tools.docs.pages import DOCS
from webhook.admission.rules.registry import RULES
from webhook.admission.rules.rule import Rule
from webhook.api_server.rule_policies import cel_of

PAGE: Final = DOCS / "policies-only.md"
_BEGIN: Final = "<!-- written by make docs from the YAML files of webhook/admission/rules -->\n"
_END: Final = "<!-- end of what make docs writes -->\n"


def page() -> str:
    """The page with the table of today."""
    before, _, rest = PAGE.read_text().partition(_BEGIN)
    return "".join((before, _BEGIN, "\n".join([*table(), _END]), rest.partition(_END)[2]))


def table() -> Iterator[str]:
    """Each rule of ours; what kube-apiserver checks too is one row."""
    yield "| rule | as a policy | what a policy does not say, or why it says nothing |"
    yield "|---|---|---|"
    validated = [rule for rule in RULES.values() if rule.parity and not cel_of(rule).broken]
    for rule in RULES.values():
        if rule not in validated:
            yield f"| [`{rule.id}`](rules/{rule.id}.md) | {_say_how_much(rule)} | {cel_of(rule).lacks} |"
    yield f"| the {len(validated)} others [at parity](rules/README.md) | not needed | {cel_of(validated[0]).lacks} |"


def _say_how_much(rule: Rule) -> str:
    if not cel_of(rule).broken:
        return "with stamps" if rule.id == "foreign-writer" else "no"
    return "in part" if cel_of(rule).lacks else "yes"
