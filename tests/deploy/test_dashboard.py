"""The dashboard against Grafana's own schema, as its published types read and write it."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from tests.deploy.sources import DEPLOY

FILE = DEPLOY / "components" / "monitoring" / "dashboard.json"
register_default_plugins()


def lost(document: dict[str, Any]) -> list[str]:
    """Return what the types do not know, or read as something else. They drop unknown fields and add defaults."""
    written = json.loads(JSONEncoder().encode(Dashboard.from_json(document)))
    return list(_missing(document, written, "$"))


def _missing(ours: Any, theirs: Any, path: str) -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            yield from _missing(value, theirs.get(key), f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, value in enumerate(ours):
            yield from _missing(value, theirs[index], f"{path}[{index}]")
    elif ours != theirs:
        yield path


def test_grafana_knows_every_field_of_the_dashboard() -> None:
    assert lost(json.loads(FILE.read_text())) == []


@pytest.mark.parametrize(
    ("place", "path"),
    [
        pytest.param((), "$.titel", id="of the dashboard"),
        pytest.param(("panels", 0), "$.panels[0].titel", id="of a panel"),
        pytest.param(
            ("panels", 0, "fieldConfig", "defaults"), "$.panels[0].fieldConfig.defaults.titel", id="of a unit"
        ),
        pytest.param(("panels", 0, "targets", 0), "$.panels[0].targets[0].titel", id="of a query"),
        pytest.param(("templating", "list", 0), "$.templating.list[0].titel", id="of a variable"),
    ],
)
def test_a_misspelled_field_is_noticed(place: tuple[str | int, ...], path: str) -> None:
    document = copy.deepcopy(json.loads(FILE.read_text()))
    node = document
    for key in place:
        node = node[key]
    node["titel"] = "x"
    assert lost(document) == [path]
