"""Gives a manifest the stamp that an API server would have set, for tests and reviews that are made by hand."""

from typing import Final

from webhook.api.micro_time import canonical_seconds
from webhook.cli.failure import Failure
from webhook.cli.moment import moment
from webhook.cli.sources import Document

MANAGER: Final = "lease-webhook-test"
"""The one field manager of a stamped manifest, as all replicas of an elector have one."""


def stamped(document: Document, at: int | None = None) -> Document:
    """The manifest with managedFields that date its spec: from `at` in microseconds since 1970, else from renewTime.

    One that has managedFields already, or no time to take, stays as it is.
    """
    metadata, spec = document.get("metadata"), document.get("spec")
    if not isinstance(metadata, dict) or not isinstance(spec, dict) or metadata.get("managedFields"):
        return document
    at = _renewed(spec) if at is None else at
    if at is None:
        return document
    entry: Document = {
        "manager": MANAGER,
        "operation": "Update",
        "apiVersion": document.get("apiVersion"),
        "time": canonical_seconds(at),
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {f"f:{field}": {} for field in spec}},
    }
    return {**document, "metadata": {**metadata, "managedFields": [entry]}}


def _renewed(spec: Document) -> int | None:
    try:
        return moment(str(spec.get("renewTime")))
    except Failure:
        return None
