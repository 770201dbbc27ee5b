"""Requests of an audit log about pods that were not made, or that run, or wait: not about their deletion.

In: an audit event. Out: that a pod was refused, that somebody wrote the status of a pod, that it got a node; whether
that concerns a lease is for others to say. What a status says is not read: most logs do not show it.
"""

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from webhook.analysis.inputs.items import PodAct, PodRequest
from webhook.text.quoting import truncate

if TYPE_CHECKING:
    from webhook.analysis.inputs.kinds import AuditEvent

_POD: Final = re.compile(rb'"resource":\s*+"pods"')
_ACT: Final = re.compile(rb'"verb":\s*+"create"|"subresource":\s*+"status"')
"""Of the requests about pods, which are most of many logs, nearly all say nothing."""
_MAX_MESSAGE: Final = 200
_ACTS: Final = {
    ("create", ""): PodAct.REFUSED,
    ("create", "binding"): PodAct.BOUND,
    ("patch", "status"): PodAct.STATUS,
    ("update", "status"): PodAct.STATUS,
}


def may_be_pod_request(line: bytes) -> bool:
    """Return whether a line of a log may be of a request that `interpret_pod_status` reads."""
    return _POD.search(line) is not None and _ACT.search(line) is not None


def interpret_pod_status(event: "AuditEvent") -> PodRequest | None:
    """Return what a request says of a pod; None if it is about something else, or if it changed nothing."""
    reference, at, code = event.object_ref, event.answered_at, event.response_status.code
    act = _ACTS.get((event.verb, reference.subresource))
    if reference.resource != "pods" or reference.api_group or act is None or at is None or "dryRun" in event.query:
        return None
    is_refused = act is PodAct.REFUSED and code >= HTTPStatus.BAD_REQUEST and code != HTTPStatus.CONFLICT
    is_stored = act is not PodAct.REFUSED and 200 <= code < 300 and bool(reference.name)
    if not (is_refused or is_stored):
        return None
    return PodRequest(
        at=at,
        act=act,
        namespace=reference.namespace,
        name=reference.name,
        writer=event.writer,
        code=code,
        message=truncate(event.response_status.message, _MAX_MESSAGE),
    )
