"""Leases and LeaseCandidates in inputs, and texts of JSON that may have any form."""

from typing import Final

import msgspec
from msgspec import Raw

from webhook.kubernetes.decoding_errors import explain_problem
from webhook.kubernetes.objects import Lease, LeaseCandidate, ObjectMeta, WrongTypesError, decode_object

MAX_NAME: Final = 253


def decode_our_object(
    kind: str, version: str, data: bytes | Raw
) -> tuple[Lease | LeaseCandidate | None, ObjectMeta, str]:
    """Return the object of one of our kinds, its metadata, and why it cannot be decoded, if it cannot: then it is None.

    Raises ValueError if it is not JSON, RecursionError if nested deeply.
    """
    try:
        decoded = decode_object(kind, version, data)
    except WrongTypesError as error:
        problem, path = error.problems[0]
        said = f"{path or 'the object'} {explain_problem(problem) or problem}"
        found = msgspec.json.decode(data)
        namespace, name = get_text(found, "metadata", "namespace"), get_text(found, "metadata", "name")
        return None, ObjectMeta(namespace=namespace, name=name), said
    return decoded, decoded.metadata, ""


def get_text(value: object, *path: str) -> str:
    """Return the text below nested keys of JSON, "" if there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
