"""The rules that a policy may name: those of single writes, and those that only reports over stored objects use."""

from typing import Final

from webhook.rules import candidate_strategy_conflict
from webhook.rules.registry import RULES

OFFLINE: Final = (candidate_strategy_conflict.ID,)
RULE_IDS: Final = (*RULES, *OFFLINE)
