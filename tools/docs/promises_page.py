"""The table of docs/promises.md: what a renewal is denied for, as the rules say beside their checks."""

from collections.abc import Iterator
from typing import Final

from tools.docs.pages import DOCS, replace_generated
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.registry import OBJECT_TYPES_RULE, RULES_IN_ORDER
from webhook.admission.rules.rule import Rule
from webhook.admission.rules.texts import DeniedRenewal

PAGE: Final = DOCS / "promises.md"
_BEGIN: Final = "<!-- written by make docs from webhook/admission/rules -->\n"
_DENIED_WITHOUT_A_WEBHOOK: Final = (
    "| a writer other than the stamped one of a live lease, or a value by which no one else could take it, where "
    "[stamps](stamp.md#bounds) are in force | the policies `lease-webhook-stamp-guard` and "
    "`lease-webhook-stamp-bounds`, without a webhook |"
)


def make_page() -> str:
    """Return the page with the current table."""
    return replace_generated(PAGE, _BEGIN, make_rows())


def make_rows() -> Iterator[str]:
    """Yield a row for each reason, with the rules that deny for it; the last one is about no rule."""
    denied: dict[str, list[str]] = {}
    # The rule of the types comes first: what it denies reaches no other.
    for rule in (OBJECT_TYPES_RULE, *RULES_IN_ORDER):
        if rule.denied_renewal:
            denied.setdefault(rule.denied_renewal.reason, []).append(_describe(rule, rule.denied_renewal))
    yield "| denied for | by |"
    yield "|---|---|"
    for reason, rules in denied.items():
        yield f"| {_link_from_page(reason)} | {', '.join(rules)} |"
    yield _DENIED_WITHOUT_A_WEBHOOK


def _describe(rule: Rule, denied: DeniedRenewal) -> str:
    """Return the id, and when it denies: not in each preset, or not always."""
    preset = "" if rule.standard is Mode.DENY else "in `strict`"
    notes = ", ".join(filter(None, (preset, denied.condition)))
    return f"`{rule.id}` ({_link_from_page(notes)})" if notes else f"`{rule.id}`"


def _link_from_page(text: str) -> str:
    """Return a text of a rule, whose links are those of docs/rules, as a page of docs/ has it."""
    return text.replace("](../", "](")
