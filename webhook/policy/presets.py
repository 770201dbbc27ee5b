"""The three presets, made from the modes in each rule."""

from functools import cache
from typing import Final

from webhook.policy.convert import converted
from webhook.policy.schema_types import API_VERSION, PolicyDocument
from webhook.rules.mode import Mode
from webhook.rules.registry import OFFLINE_RULES, RULES
from webhook.rules.rule import Rule
from webhook.yaml_reader import Value

CAPS: Final = {"observe": Mode.WARN, "standard": Mode.DENY, "strict": Mode.DENY}
"""The cap of each preset: observe denies nothing."""


@cache
def preset(name: str) -> PolicyDocument:
    """The preset as a policy file would say it; the name is one that `PolicyDocument.preset` allows."""
    rules: dict[str, Value] = {
        rule.id: {"mode": mode_in(name, rule).word} for rule in (*RULES.values(), *OFFLINE_RULES.values())
    }
    return converted({"apiVersion": API_VERSION, "preset": name, "mode": CAPS[name].word, "rules": rules})


def mode_in(name: str, rule: Rule) -> Mode:
    """The mode of a rule in a preset, before the preset's cap."""
    return {"observe": rule.observe, "standard": rule.standard, "strict": rule.strict}[name]


def denied_by(name: str) -> frozenset[str]:
    """The ids of the rules that a preset denies by, before its cap."""
    return frozenset(rule.id for rule in RULES.values() if mode_in(name, rule) is Mode.DENY)
