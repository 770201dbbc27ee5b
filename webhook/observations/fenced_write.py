"""An audit event about any object that says a fence refused the write, or would have.

A refusal is in the message of the response; a fence in mode warn or audit leaves an annotation.
Source: kubernetes/apiserver `pkg/admission/plugin/policy/validating/dispatcher.go` (texts and annotation).
"""

import re
from typing import Final

import msgspec
from msgspec import Struct

from webhook.api.text import cut
from webhook.observations.audit_event import LoggedRequest, decoded, moment_of, writer_of
from webhook.observations.observation import Fenced, Source

MARKER: Final = b"(fence "
"""What the message of every fence ends with."""
ANNOTATION: Final = "validation.policy.admission.k8s.io/validation_failure"

_FENCE: Final = re.compile(r"\(fence ([a-z0-9.-]{1,253})\)")
_LEASE: Final = re.compile(r"\blease ([a-z0-9.-]{1,253})/([a-z0-9.-]{1,253}) (?:is held by|has no holder|may write)")
_LONGEST_NAME: Final = 253


class _Failure(Struct, frozen=True, gc=False):
    message: str = ""


_failures: Final = msgspec.json.Decoder(list[_Failure])


def fenced_write_of(data: bytes, source: Source) -> Fenced | None:
    """What an audit event says of a fence; None if it says nothing of one.

    Raises:
        ValueError: it is not JSON of an audit event.

    """
    event = decoded(data)
    if event.stage != "ResponseComplete":
        return None
    is_refused = event.response_status.code >= 400
    message = event.response_status.message if is_refused else ""
    fence = _FENCE.search(message)
    if fence is None:
        message = next((text for text in _noted(event) if _FENCE.search(text)), "")
        fence, is_refused = _FENCE.search(message), False
    at = moment_of(event.stage_timestamp)
    if fence is None or at is None:
        return None
    lease = _LEASE.search(message)
    return Fenced(
        source=source,
        at=at,
        fence=fence[1],
        namespace=lease[1] if lease else "",
        name=lease[2] if lease else "",
        writer=writer_of(event),
        target=_target(event),
        message=message,
        is_refused=is_refused,
    )


def _noted(event: LoggedRequest) -> list[str]:
    try:
        return [one.message for one in _failures.decode((event.annotations or {}).get(ANNOTATION, "[]"))]
    except (ValueError, RecursionError):
        return []


def _target(event: LoggedRequest) -> str:
    """`create deployments.apps shop/checkout`: what was to be done to what."""
    reference = event.object_ref
    resource = ".".join(part for part in (reference.resource, reference.api_group) if part)
    below = f"/{reference.subresource}" if reference.subresource else ""
    name = "/".join(part for part in (reference.namespace, reference.name) if part)
    return " ".join(cut(part, _LONGEST_NAME) for part in (event.verb, resource + below, name) if part)
