"""The table of the chart's values: names and defaults from values.yaml, descriptions from values.schema.json."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from tools.docs.pages import ROOT

CHART: Final = ROOT / "deploy" / "chart"
PAGE: Final = CHART / "README.md"
_BEGIN: Final = "<!-- written by make docs from values.yaml and values.schema.json -->\n"


def make_page() -> str:
    """Return the page with the table of both files."""
    before, begin, _ = PAGE.read_text().partition(_BEGIN)
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    rows = [f"| `{name}` | `{json.dumps(default)}` | {text} |" for name, default, text in _list_rows(schema, values)]
    return "\n".join([f"{before}{begin}| value | default | what it does |", "|---|---|---|", *rows]) + "\n"


def _list_rows(schema: Mapping[str, Any], values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any, str]]:
    for name, default in values.items():
        entry = schema["properties"][name]
        if "description" in entry:
            yield f"{above}{name}", default, entry["description"]
        else:
            yield from _list_rows(entry, default, f"{above}{name}.")
