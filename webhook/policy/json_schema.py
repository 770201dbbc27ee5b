"""The JSON Schema of a policy file, for editors and pipelines; made from the types of the parser."""

import json
from typing import Any, Final

import msgspec

from webhook.policy.schema_types import PolicyDocument
from webhook.rules.registry import RULES

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
KEYS: Final = {
    "preset": "What `rules` and `overrides` start from.",
    "mode": "The cap for everything, field rules included; `off` is the kill switch: every write is allowed.",
    "without_stamps": "For a lease without API server stamps: whether a denial that relies on a client's clock becomes "
    "a warning, or is enforced.",
    "docs_url": "An address that documents the rules: denials end with it, a slash and the rule's id.",
    "rules": "Modes and numbers for all leases.",
    "exempt": "Exemptions from the policy rules; the field rules always apply.",
    "overrides": "Modes and numbers for some leases; of several, the last one counts.",
    "bindings": "The only writers of a lease, and the holder identities they may use.",
    "fences": "Which writes only the holder of a lease may make; enforced by the API server once they are applied.",
}
NARROWING: Final = {
    "rules": "The rules that do not apply; without this list, none of the policy rules does.",
    "operations": "The operations to which the entry applies; without this list, all. A patch or an apply is UPDATE, "
    "or CREATE if it creates the object.",
}
_WHOM_OR_WHERE: Final = ("users", "groups", "service_accounts", "namespaces", "leases")


def schema() -> dict[str, Any]:
    """The schema as JSON values.

    It is weaker than the parser only in what JSON Schema cannot express: that a warn tier is not above its deny tier,
    that no lease is bound twice, that a file is not too large, and which resources and holders a fence may name.
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
    """The text of `webhook/policy/policy.schema.json`."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
