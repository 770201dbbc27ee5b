"""Logs whose clocks differ, and what comes of them in which order."""

import json

from tests.factories import Document
from tests.history.fake_server import SECOND, FakeServer
from tests.history.observing import merge_inputs
from tests.inputs.reading import read
from webhook.analysis.inputs.items import Observation
from webhook.kubernetes.times import format_micro_time, parse


def cut_to_request(event: Document) -> Document:
    """The event as a log shows it at level Request."""
    stored = event["responseObject"]
    asked = {**stored, "metadata": {key: stored["metadata"][key] for key in ("name", "namespace")}}
    kept = {key: value for key, value in event.items() if key != "responseObject"}
    return {**kept, "level": "Request", "requestObject": asked}


def shift(event: Document, seconds: float) -> Document:
    """The event as an API server whose clock is ahead logs it."""
    keys = "requestReceivedTimestamp", "stageTimestamp"
    return {**event, **{key: format_micro_time(parse(event[key]) + int(seconds * SECOND)) for key in keys}}


def patched(event: Document, seconds: float) -> Document:
    """A patch as a log at level Request shows it: not which state it replaced, nor what it made."""
    asked = cut_to_request(event)
    return shift({**asked, "verb": "patch", "user": {"username": "alice"}}, seconds)


def two_renewals() -> FakeServer:
    server = FakeServer()
    server.elector("a", "shop/db").lead(5)
    return server


def list_in_order(log: list[Document]) -> list[Observation]:
    lines = b"".join(json.dumps(one).encode() + b"\n" for one in log)
    items = merge_inputs([*read("log", [lines])])
    return [one for one in items if isinstance(one, Observation)]
