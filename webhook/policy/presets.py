"""The three presets, read from their policy files."""

from functools import cache

from webhook import policies
from webhook.policy import yaml_text
from webhook.policy.reading import typed
from webhook.policy.schema_types import PolicyDocument


@cache
def preset(name: str) -> PolicyDocument:
    """What the policy file of a preset says; the name is one that `PolicyDocument.preset` allows."""
    return typed(yaml_text.read(policies.text(name)).value)
