"""The rules that a policy may name: those of single writes, and those that only reports over stored objects use."""

from typing import Final

from webhook.rules.registry import OBJECT_TYPES, OFFLINE_RULES, RULES

OFFLINE: Final = tuple(OFFLINE_RULES)
RULE_IDS: Final = (*RULES, *OFFLINE)

FIXED: Final = (OBJECT_TYPES,)
"""Not in a policy's hands: a document of wrong types is read no further, so there is nothing left to evaluate."""
EXEMPTIBLE: Final = tuple(rule.id for rule in RULES.values() if not rule.parity and not rule.never_exempt)
"""The rules that an exemption silences, and may name."""


def why_never_exempt(name: str) -> str:
    """Why no exemption silences a rule, as a verb phrase; "" for a rule that one may name, and for an unknown name."""
    if name in OFFLINE:
        return "is not evaluated for a single write; set its mode instead"
    if name not in RULES or name in EXEMPTIBLE:
        return ""
    if RULES[name].parity:
        return "repeats a check of the API server, which holds for everybody"
    return "holds for everybody"
