"""The JSON Schema of policy files, which the package ships, and the table of their keys, from the parser's types."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from tools.docs.pages import DOCS, ROOT, replace_generated
from webhook.admission.policy.schema import PolicyDocument
from webhook.admission.rules.registry import RULES

FILE: Final = ROOT / "webhook/admission/policy/policy.schema.json"
PAGE: Final = DOCS / "policy.md"
_BEGIN: Final = "<!-- written by make docs from webhook/admission/policy/schema.py -->\n"


def make_json_schema() -> dict[str, Any]:
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
    for rule, setting in definitions["Rules"]["properties"].items():
        setting["description"] = RULES[rule].summary
    definitions["Exemption"]["anyOf"] = [
        {"required": [name], "properties": {name: {"minItems": 1}}}
        for name in ("users", "groups", "service_accounts", "namespaces", "leases")
    ]
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "title": "Policy of lease-webhook", **made}


def make_text() -> str:
    """Return the text of the file."""
    return json.dumps(make_json_schema(), indent=2, ensure_ascii=False) + "\n"


def make_page() -> str:
    """Return the page of policy files with the table of their keys."""
    return replace_generated(PAGE, _BEGIN, _list_keys())


def _list_keys() -> Iterator[str]:
    yield "| key | what it may be | without it | what it says |"
    yield "|---|---|---|---|"
    properties = make_json_schema()["$defs"]["PolicyDocument"]["properties"]
    for name, about in properties.items():
        if "description" in about:
            yield f"| `{name}` | {_format_form(about)} | {_format_default(about)} | {about['description']} |"


def _format_form(about: Mapping[str, Any]) -> str:
    """Return what a key may be, in words; raises ValueError for a kind that has none yet."""
    match about:
        case {"enum": words}:
            return ", ".join(f"`{word}`" for word in words)
        case {"type": "integer", "minimum": least, "maximum": most}:
            return f"{least} to {most}"
        case {"type": "string"}:
            return "a text"
        case {"type": "array"}:
            return "a list"
        case {"$ref": _}:
            return "a mapping"
    raise ValueError(f"no words for {dict(about)}: add a case to _format_form, and both ends to a number")


def _format_default(about: Mapping[str, Any]) -> str:
    return f"`{about['default']}`" if about.get("default") else ""
