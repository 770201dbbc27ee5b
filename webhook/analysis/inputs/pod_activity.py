"""Requests of an audit log by pods that also ask for a lease, about anything else: they show that a silent pod ran.

In: lines of a log, and events. Out: which lines may have such a request, and what it was. A log of a large cluster is
nearly nothing but requests of pods, so a line is only decoded if its pod has asked for a lease before. Of a pod that
has just done so, only what it wrote and what failed is of interest: whether its work goes on.
"""

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from webhook.analysis.inputs.items import LISTINGS, Failure, PodAct, PodActivity, PodDeletion, PodRequest, name_program
from webhook.kubernetes.request import GROUP
from webhook.kubernetes.times import get_instant, normalize
from webhook.text.quoting import truncate_middle

if TYPE_CHECKING:
    from webhook.analysis.inputs.audit_event import AuditEvent

GROUP_MARKER: Final = GROUP.encode()
MAX_PODS: Final = 10_000
SILENT_FOR: Final = 4
"""Seconds after a pod's last request for a lease until its other requests are read."""
_UID: Final = b'"authentication.kubernetes.io/pod-uid":["'
"""How an API server writes the pod of a token; inside of a text its quotes would be escaped."""
_MAX_UID: Final = 64
"""Bytes; a UID has 36."""
_RECEIVED: Final = b'"requestReceivedTimestamp":"'
_DAY: Final = len("2026-01-02")
_TIME: Final = len("2026-01-02T03:04:05")
WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_WRITE_OR_FAILURE: Final = re.compile(rb'"verb":"(?:create|update|patch|delete)|"code":(?:40[34]|429|5\d\d)\b')
_WITHOUT_RIGHTS: Final = re.compile(r'[a-z0-9.-]+(?:/[a-z]+)?(?: "[^"]*")? is forbidden: User "[^"]*" cannot ')
"""How an authorizer's refusal begins; a webhook's message may quote it."""
_REVIEWS: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
_LONG_RUNNING: Final = frozenset({"attach", "exec", "log", "portforward", "proxy"})
"""Subresources whose requests are answered when they end, and may have begun long before."""


class PodsWithLeases:
    """The pods that asked for a lease in the lines read so far, by uid, and when they did so last."""

    def __init__(self) -> None:
        self._asked: dict[bytes, tuple[bytes, int]] = {}

    def note_line(self, line: bytes) -> None:
        """Remember the pod of a line about a lease."""
        uid = _find_uid(line)
        if uid and (uid in self._asked or len(self._asked) < MAX_PODS):
            self._asked[uid] = _find_moment(line)

    def may_tell_of(self, line: bytes) -> bool:
        """Return whether a line may have a request of a pod that has asked for a lease, and that is of interest."""
        uid = _find_uid(line)
        asked = self._asked.get(uid) if uid else None
        if asked is None:
            return False
        day, second = _find_moment(line)
        is_silent = day != asked[0] or abs(second - asked[1]) >= SILENT_FOR
        return is_silent or _WRITE_OR_FAILURE.search(line) is not None


def _find_uid(line: bytes) -> bytes:
    """Return the UID of the pod of a token, b"" if there is none, or if it is too long to be one."""
    start = line.find(_UID)
    if start < 0:
        return b""
    start += len(_UID)
    end = line.find(b'"', start, start + _MAX_UID + 1)
    return line[start:end] if end > start else b""


def _find_moment(line: bytes) -> tuple[bytes, int]:
    """Return the day and the second of the day at which a request was received: times are at the end of a line."""
    start = line.rfind(_RECEIVED) + len(_RECEIVED)
    text = line[start : start + _TIME]
    try:
        hours, minutes, seconds = map(int, text[_DAY + 1 :].split(b":"))
    except ValueError:
        return b"", 0
    return text[:_DAY], 3600 * hours + 60 * minutes + seconds


def interpret_pod_activity(event: "AuditEvent") -> PodActivity | None:
    """Return a request that a pod made with its own token; None for any other, and for a request that lasts long.

    If a user impersonated another user, no more is known than that.
    """
    reference, code, writer = event.object_ref, event.response_status.code, event.writer
    received, at = get_instant(normalize(event.request_received_timestamp)), event.answered_at
    is_by_pod = bool(writer.uid and writer.pod) or bool(writer.impersonator)
    is_long = event.verb in LISTINGS - {"list"} or reference.subresource in _LONG_RUNNING
    is_beside_leases = reference.api_group != GROUP
    if not (is_by_pod and is_beside_leases and code) or is_long or "dryRun" in event.query:
        return None
    if received is None or at is None:
        return None
    is_work = not _is_beside_work(event)
    is_write = event.verb in WRITES and is_work and 200 <= code < 300
    if writer.impersonator:
        return PodActivity(received=received, at=at, writer=writer.process, is_write=True) if is_write else None
    failure = _find_failure(event) if is_work else None
    return PodActivity(
        received=received,
        at=at,
        writer=writer.process,
        is_write=is_write,
        failure=failure,
        message=truncate_middle(event.response_status.message) if failure is not None else "",
        program=name_program(event.user_agent),
    )


def _is_beside_work(event: "AuditEvent") -> bool:
    """Return whether a request changes nothing, such as one for a token, or is what electors do, too: Events."""
    reference = event.object_ref
    is_event = reference.resource == "events" and reference.api_group in {"", "events.k8s.io"}
    is_review = reference.resource.endswith("reviews") and reference.api_group in _REVIEWS
    is_token = reference.resource == "serviceaccounts" and reference.subresource == "token"
    return not reference.resource or is_event or is_review or is_token


def find_activity(seen: PodDeletion | PodRequest) -> PodActivity | None:
    """Return a request about a pod as what the pod did that made it, or a user as another one; None of any other."""
    writer = seen.writer
    if not ((writer.uid and writer.pod) or writer.impersonator):
        return None
    if isinstance(seen, PodDeletion):
        return PodActivity(
            received=seen.at,
            at=seen.at,
            writer=writer.process,
            is_write=seen.is_surely_not_dry_run,
            may_be_write=not seen.is_surely_not_dry_run,
        )
    is_refused = seen.act is PodAct.REFUSED and _is_failure(seen.code)
    failure = Failure(
        verb="create",
        resource="pods",
        namespace=seen.namespace,
        code=seen.code,
        lacks_rights=seen.code == HTTPStatus.FORBIDDEN and _WITHOUT_RIGHTS.match(seen.message) is not None,
    )
    return PodActivity(
        received=seen.at,
        at=seen.at,
        writer=writer.process,
        is_write=seen.act in {PodAct.STATUS, PodAct.BOUND, PodAct.RESIZED, PodAct.IMAGE_SET},
        failure=failure if is_refused else None,
        message=seen.message if is_refused else "",
    )


def _is_failure(code: int) -> bool:
    """Return whether an answer is a failure: one of 429 need not be of limits, as a version that is not converted."""
    return code in {HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS} or code >= HTTPStatus.INTERNAL_SERVER_ERROR


def _find_failure(event: "AuditEvent") -> Failure | None:
    """Return what was to be done that failed, or was refused; None for what clients expect now and then.

    What is read by its name need not exist, but a list is only answered that nothing is found if its kind is not
    served.
    """
    reference, code = event.object_ref, event.response_status.code
    is_unserved = code == HTTPStatus.NOT_FOUND and event.verb == "list"
    if not (is_unserved or _is_failure(code)):
        return None
    resource = reference.full_resource
    return Failure(
        verb=event.verb,
        resource=f"{resource}/{reference.subresource}" if reference.subresource else resource,
        namespace=reference.namespace,
        code=code,
        lacks_rights=code == HTTPStatus.FORBIDDEN and _WITHOUT_RIGHTS.match(event.response_status.message) is not None,
    )
