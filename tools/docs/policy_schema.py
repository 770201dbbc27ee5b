"""The JSON Schema of policy files, which the package ships, made from the types that the parser decodes."""

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tools.docs.pages import ROOT
from webhook.admission.policy.schema import PolicyDocument
from webhook.admission.rules.registry import RULES

FILE: Final = ROOT / "webhook/admission/policy/policy.schema.json"
_DESCRIPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "PolicyDocument": {
        "preset": "What `rules` and `overrides` start from.",
        "mode": "The cap for everything, field rules included; `off` is the kill switch: every write is allowed.",
        "without_stamps": "For a lease without API server stamps: whether a denial that relies on a client's clock "
        "becomes a warning, or is enforced.",
        "docs_url": "An address that documents the rules: denials end with it, a slash and the rule's id.",
        "rules": "Modes and numbers for all leases.",
        "exempt": "Exemptions from the policy rules; the field rules always apply.",
        "overrides": "Modes and numbers for some leases; of several, the last one counts.",
        "bindings": "The only writers of a lease, and the holder identities they may use.",
        "fences": "Which writes only the holder of a lease may make; enforced by the API server once they are applied.",
        "stamps": "Where the API server stamps the writers of leases; believed only in the namespaces named here.",
    },
    "FenceSetting": {
        "holder": "Templates of the holder identity. Without them the writer that `stamps` records is compared; where "
        'there are no stamps, they are `["${pod}_*"]`.',
        "token": "Whether each write carries the term of the lease, and one by an API server that knows an older term "
        "is refused; needs `stamps`.",
        "expired": "What happens to a write of a holder whose lease has expired, by the API server's clock; needs "
        "`stamps`.",
    },
    "StampSetting": {
        "writer": "Whether one writer is a pod, or all pods of a user, as the namespace is labeled.",
    },
    "Exemption": {
        "rules": "The rules that do not apply; without this list, none of the policy rules does.",
        "operations": "The operations to which the entry applies; without this list, all. A patch or an apply is "
        "UPDATE, or CREATE if it creates the object.",
    },
}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a policy file, for editors and pipelines.

    It is weaker than the parser only in what JSON Schema cannot express: that a warn tier is not above its deny tier,
    that no lease is bound twice, that a file is not too large, and which resources and holders a fence may name.
    """
    made = msgspec.json.schema(PolicyDocument)
    definitions = made["$defs"]
    for definition in definitions.values():
        if "description" in definition:
            definition["description"] = " ".join(definition["description"].split())
        del definition["title"]
    operations = _DESCRIPTIONS["Exemption"]["operations"]
    for entry, descriptions in (*_DESCRIPTIONS.items(), ("Override", {"operations": operations})):
        for key, description in descriptions.items():
            definitions[entry]["properties"][key]["description"] = description
    for rule, setting in definitions["Rules"]["properties"].items():
        setting["description"] = RULES[rule].texts.summary
    definitions["Exemption"]["anyOf"] = [
        {"required": [name], "properties": {name: {"minItems": 1}}}
        for name in ("users", "groups", "service_accounts", "namespaces", "leases")
    ]
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "title": "Policy of lease-webhook", **made}


def text() -> str:
    """Return the text of the file."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
