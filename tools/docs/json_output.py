"""The tables of docs/json-output.md: the fields of every command's JSON, from its schema."""

import json
from collections.abc import Iterator
from typing import Any, Final

from tools.docs.pages import DOCS, replace_generated
from tools.docs.policy_schema import make_json_schema
from webhook.admission.policy.schema import PLAIN_SETTINGS
from webhook.analysis.claims.claim import ARGUMENTS, ArgumentType

PAGE: Final = DOCS / "json-output.md"
SCHEMA: Final = DOCS / "json-output.schema.json"
_BEGIN: Final = "<!-- written by make docs from docs/json-output.schema.json -->\n"
_REFERENCE: Final = "#/$defs/"
_TYPES: Final[dict[ArgumentType, dict[str, Any]]] = {
    ArgumentType.TEXT: {"type": "string"},
    ArgumentType.TEXTS: {"type": "array", "items": {"type": "string"}},
    ArgumentType.COUNT: {"type": "integer"},
    ArgumentType.INSTANT: {"type": "string"},
    ArgumentType.LENGTH: {"type": "number"},
    ArgumentType.AUTHOR: {"$ref": f"{_REFERENCE}by"},
}


def make_schema() -> dict[str, Any]:
    """Return the contract: what the file says, the arguments of claims, and the settings of a policy that it lacks."""
    document: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    for name in ("audit", "claim"):
        document["$defs"][name]["properties"] |= _make_arguments()
    policy = document["$defs"]["policy"]
    known, others = {}, dict(policy["properties"])
    while policy["required"][-1] not in known:
        name = next(iter(others))
        known[name] = others.pop(name)
    settings = make_json_schema()["$defs"]["PolicyDocument"]["properties"]
    for name in PLAIN_SETTINGS:
        if name not in known:
            kind = "integer" if settings[name].get("type") == "integer" else "string"
            text = f"The setting of the file, null if it has none: {settings[name]['description']}"
            known[name] = {"type": [kind, "null"], "description": text}
            policy["required"].append(name)
    policy["properties"] = known | others
    return document


def _make_arguments() -> dict[str, Any]:
    found = {}
    for name, argument in ARGUMENTS.items():
        kind, *rest = _TYPES[argument.type].items()
        found[name] = dict([kind, *([("description", argument.means)] if argument.means else []), *rest])
    return found


def make_text() -> str:
    """Return the text of the contract."""
    return json.dumps(make_schema(), indent=1, ensure_ascii=False) + "\n"


def make_page() -> str:
    """Return the page with the current fields."""
    return replace_generated(PAGE, _BEGIN, _list_tables(make_schema()["$defs"]))


def _list_tables(definitions: dict[str, Any]) -> Iterator[str]:
    for name, definition in definitions.items():
        yield f"## {name}\n"
        yield f"{definition['description']}\n"
        yield "| field | type | |"
        yield "|---|---|---|"
        yield from _list_rows(definition, "")
        yield ""


def _list_rows(definition: dict[str, Any], path: str) -> Iterator[str]:
    required = definition.get("required", ())
    for name, field in definition.get("properties", {}).items():
        text = field.get("description", "")
        if "enum" in field:
            text += f" One of {', '.join(f'`{value}`' for value in field['enum'])}."
        if name not in required:
            text += " May be absent."
        yield f"| `{path}{name}` | {_format_type(field)} | {text} |"
        items = field.get("items", {})
        yield from _list_rows(field, f"{path}{name}.")
        yield from _list_rows(items, f"{path}{name}[].")


def _format_type(field: dict[str, Any]) -> str:
    if reference := field.get("$ref"):
        name = reference.removeprefix(_REFERENCE)
        return f"[{name}](#{name})"
    if choices := field.get("anyOf"):
        return " or ".join(_format_type(choice) for choice in choices)
    kinds = field.get("type", "any")
    if kinds == "array":
        items = field["items"]
        return f"list of {_format_type(items)}" if "$ref" in items else f"list of {items.get('type', 'any')}s"
    if kinds == "object" and "properties" not in field:
        values = field.get("additionalProperties", {}).get("type", "any")
        return f"object of {values} by name" if values != "any" else "object"
    return kinds if isinstance(kinds, str) else " or ".join(kinds)
