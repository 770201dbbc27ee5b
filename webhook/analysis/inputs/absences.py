"""Requests of an audit log that show that an object was gone: it was not found, or another one took its name.

In: an audit event. Out: which object was not there, and since when at the latest. So a deletion before that was no dry
run, even if the log hides the options of that. Only a pod's own requests are not read so: they are what the pod does.
"""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from webhook.analysis.inputs.items import ObjectAbsence
from webhook.analysis.inputs.related_writes import KINDS
from webhook.kubernetes.times import get_instant, normalize

if TYPE_CHECKING:
    from webhook.analysis.inputs.audit_event import AuditEvent

NODE: Final = "Node"
POD: Final = "Pod"
_OFTEN_MISSING: Final = frozenset({"configmaps", "secrets", "replicasets"})
"""Clients look for these all the time, whether they are there or not: that would crowd out what matters."""
_KINDS: Final[Mapping[tuple[str, str], str]] = {
    ("", "pods"): POD,
    **{place: kind for place, kind in KINDS.items() if place[1] not in _OFTEN_MISSING},
}
_OBJECT: Final = re.compile(
    rb'"resource":\s*+"(?:%b)"' % b"|".join(resource.encode() for resource in dict.fromkeys(name for _, name in _KINDS))
)
_NOT_FOUND: Final = re.compile(rb'"code":\s*+404\b')
_OF_OBJECT: Final = frozenset({"get", "delete", "patch", "update"})
"""Verbs of requests that are answered with 404 if the object itself is not there."""


def may_show_absence(line: bytes) -> bool:
    """Return whether a line of a log may be of a request for an object that was not found; few are."""
    return _NOT_FOUND.search(line) is not None and _OBJECT.search(line) is not None


def interpret_absence(event: "AuditEvent") -> ObjectAbsence | None:
    """Return which object was not there when a request came; None if the request does not show that.

    A creation shows it: an API server has one object of a name at a time. An answer from a cache may be an old one.
    """
    reference, code = event.object_ref, event.response_status.code
    kind = _KINDS.get((reference.api_group, reference.resource))
    received = get_instant(normalize(event.request_received_timestamp))
    is_whole = not reference.subresource and bool(reference.name)
    if kind is None or received is None or not is_whole or event.is_from_cache or "dryRun" in event.query:
        return None
    is_missing = event.verb in _OF_OBJECT and code == HTTPStatus.NOT_FOUND
    is_created = event.verb == "create" and code == HTTPStatus.CREATED
    if not (is_missing or is_created):
        return None
    at = event.answered_at if is_created else received
    return None if at is None else ObjectAbsence(at, kind, reference.namespace, reference.name)
