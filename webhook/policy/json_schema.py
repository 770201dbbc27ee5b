"""The JSON Schema of a policy file, for editors and pipelines; made from the same types that the parser uses."""

import json
from typing import Any, Final

import msgspec

from webhook.policy.schema_types import PolicyDocument
from webhook.rules.registry import RULES

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
KEYS: Final = {
    "preset": "What `rules` and `overrides` start from.",
    "mode": "The cap for everything, field rules included; `off` is the kill switch: every write is allowed.",
    "without_stamps": "Where a lease has no API server stamps, a deny that rests on a client's clock is a warning, "
    "or enforced.",
    "docs_url": "Where the rules are explained: denials end with this address, a slash and the rule's id.",
    "rules": "Modes and numbers for all leases.",
    "exempt": "Whom the policy rules leave alone; never the field rules.",
    "overrides": "Modes and numbers for some leases; later ones win.",
    "bindings": "Who alone may write a lease, and under which names.",
    "fences": "Which writes only the holder of a lease may make; enforced by the API server once they are applied.",
}
NARROWING: Final = {
    "rules": "The rules that are silent; without this list all policy rules are.",
    "operations": "The operations on which it holds; without this list all. A patch or an apply is UPDATE, or CREATE "
    "if it creates the object.",
}
_WHOM_OR_WHERE: Final = ("users", "groups", "service_accounts", "namespaces", "leases")


def schema() -> dict[str, Any]:
    """The schema as JSON values.

    It says less than the parser only where JSON Schema cannot say it: that a warn tier is not above its deny tier, that
    no lease is bound twice, that a file is not too large, and which resources and holders a fence may name.
    """
    made = msgspec.json.schema(PolicyDocument)
    for definition in made["$defs"].values():
        if "description" in definition:
            definition["description"] = " ".join(definition["description"].split())
        del definition["title"]
    for key, description in KEYS.items():
        made["$defs"]["PolicyDocument"]["properties"][key]["description"] = description
    for entry, keys in (("Exemption", NARROWING), ("Override", ("operations",))):
        for key in keys:
            made["$defs"][entry]["properties"][key]["description"] = NARROWING[key]
    for rule, setting in made["$defs"]["Rules"]["properties"].items():
        if rule in RULES:
            setting["description"] = RULES[rule].summary
    made["$defs"]["Exemption"]["anyOf"] = [
        {"required": [name], "properties": {name: {"minItems": 1}}} for name in _WHOM_OR_WHERE
    ]
    return {"$schema": DRAFT, "title": "Policy of lease-webhook", **made}


def schema_text() -> str:
    """The schema as it stands in `webhook/policy.schema.json`."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
