"""One safe configuration, and the means to change one thing in it."""

import datetime as dt
from pathlib import Path
from typing import Any

import msgspec
import yaml

from webhook.api_server.doctor.documents import Configuration, WebhookEntry
from webhook.text.yaml_reader import LOADER

DATA = Path(__file__).parents[1] / "data" / "doctor"
BASE = Path(__file__).parents[2] / "deploy" / "base" / "90-webhook.yaml"
NOW = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
NAME = "kubernetes.io/metadata.name"


def document(**changes: Any) -> dict[str, Any]:
    """The shipped configuration with some fields of its webhook replaced; None removes a field."""
    whole: dict[str, Any] = next(yaml.load_all((DATA / "safe-as-shipped.yaml").read_text(), LOADER))
    webhook = whole["webhooks"][0]
    for field, value in changes.items():
        webhook[field] = value
        if value is None:
            del webhook[field]
    return whole


def configuration(annotations: dict[str, str] | None = None, **changes: Any) -> Configuration:
    whole = document(**changes)
    whole["metadata"]["annotations"] = annotations or {}
    return msgspec.convert(whole, Configuration)


def entry(annotations: dict[str, str] | None = None, **changes: Any) -> WebhookEntry:
    document = configuration(annotations, **changes)
    assert document.webhooks
    return WebhookEntry(document, 0, document.webhooks[0])


def condition(expression: str) -> list[dict[str, str]]:
    return [{"name": "not-a-plain-renewal", "expression": expression}]


def verified_expression() -> str:
    text: str = yaml.load(BASE.read_text(), LOADER)["webhooks"][0]["matchConditions"][0]["expression"]
    return text
