"""Observations of audit events and reviews, as the reader makes them."""

from typing import Any

from tests.factories import NOW, Document, Tweak, make_review, put, to_bytes
from tests.inputs.events import make_event
from tests.inputs.reading import read
from webhook.analysis.inputs.items import Item, LogEnd, Observation


def item(document: Document, received: int | None = None) -> Item:
    """Return what the reader makes of a document that says something of leases."""
    (only,) = (one for one in read("in", [to_bytes(document)], received) if not isinstance(one, LogEnd))
    return only


def audited(verb: str, *tweaks: Tweak, name: str = "checkout", user: str = "", code: int = 200) -> Observation:
    """A request in an audit log at level Metadata, by the service account `shop/checkout` unless a user is named."""
    changes = [
        put("verb", verb),
        put("level", "Metadata"),
        put("requestObject", None),
        put("responseObject", None),
        put("objectRef.name", name),
        put("responseStatus.code", code),
    ]
    if user:
        changes += [put("user.username", user), put("user.extra", {})]
    observation = item(make_event(*changes, *tweaks))
    assert isinstance(observation, Observation)
    return observation


def annotated(**texts: str) -> Tweak:
    """Return what the webhook wrote into the audit log; `_` stands for `-` in a key."""
    annotations: dict[str, Any] = {
        f"leases.lease-webhook.svc/{key.replace('_', '-')}": text for key, text in texts.items()
    }
    return put("annotations", {"authorization.k8s.io/decision": "allow", **annotations})


def reviewed(*tweaks: Tweak, received: int = NOW, **objects: Document) -> Observation:
    """A captured review."""
    observation = item(make_review(*tweaks, **objects), received)
    assert isinstance(observation, Observation)
    return observation
