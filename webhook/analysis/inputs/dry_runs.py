"""Whether a request of an audit log was a dry run, which is answered as if it had been done and changes nothing.

In: an audit event. Out: that it was one, or not, or that the log hides it.
"""

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from webhook.kubernetes.request import NODE_USER, NULL

if TYPE_CHECKING:
    from webhook.analysis.inputs.audit_event import AuditEvent

_NOTHING: Final = bytes(NULL)
_NEVER_DRY: Final = frozenset({"system:kube-controller-manager", "system:kube-scheduler"}) | {
    f"system:serviceaccount:kube-system:{name}"
    for name in (
        "cronjob-controller",
        "daemon-set-controller",
        "device-taint-eviction-controller",
        "generic-garbage-collector",
        "job-controller",
        "namespace-controller",
        "node-controller",
        "pod-garbage-collector",
        "replicaset-controller",
        "replication-controller",
        "statefulset-controller",
        "taint-eviction-controller",
    )
}
"""The users of Kubernetes itself that delete pods, as kubelets do, in earnest: any other may ask for a dry run."""
_DELETIONS: Final = frozenset({"delete", "deletecollection"})


class Preconditions(Struct, frozen=True):
    """What a deletion asks for only if it holds: the uid of the object."""

    uid: str = ""


class DeleteOptions(Struct, frozen=True, rename="camel"):
    """The body of a deletion; that of an eviction has it inside."""

    dry_run: tuple[str, ...] = ()
    preconditions: Preconditions = Preconditions()
    delete_options: "DeleteOptions | None" = None
    grace_period_seconds: int | None = None


decode_delete_options: Final = msgspec.json.Decoder(DeleteOptions).decode
"""Returns options; raises ValueError or RecursionError."""


def find_dry_run(event: "AuditEvent") -> bool | None:
    """Return whether it was a dry run; None if that is in a body that the log does not show.

    A deletion has its options in its body, and in its query if it has no body (`pkg/endpoints/handlers/delete.go`); an
    eviction may ask for a dry run in either (`pkg/registry/core/pod/storage/eviction.go`). Of any other request it is
    in the query, whatever its object says.
    """
    is_asked = "All" in event.query.get("dryRun", ())
    is_eviction = event.object_ref.subresource == "eviction"
    if not is_eviction and event.verb not in _DELETIONS:
        return is_asked
    if is_asked and is_eviction:
        return True
    if not event.shows_body:
        return None
    if bytes(event.request_object) == _NOTHING:
        return is_asked
    try:
        options = decode_delete_options(event.request_object)
    except (ValueError, RecursionError):
        return False
    return bool((options.delete_options or options).dry_run)


def is_never_dry(event: "AuditEvent") -> bool:
    """Return whether a part of Kubernetes that deletes in earnest made a request, and nobody impersonating it."""
    writer = event.writer
    is_known = writer.user in _NEVER_DRY or writer.user.startswith(NODE_USER)
    return is_known and not writer.impersonator and "dryRun" not in event.query
