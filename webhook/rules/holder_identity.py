"""holderIdentity of a Lease: what it may look like, and whether it looks like its writer."""

import unicodedata
from collections.abc import Iterable
from typing import Final

from webhook.api.field import forbidden, invalid
from webhook.api.text import quote
from webhook.api.verdict import Mode
from webhook.rules.change import LeaseChange
from webhook.rules.events import Event
from webhook.rules.rule import LEASES, NOT_A_RENEWAL, NOTHING, WRITES, Finding, Rule
from webhook.rules.writer_identity import fits_pod

_FIELD: Final = "spec.holderIdentity"
_INVISIBLE: Final = frozenset({"Cf", "Zl", "Zp"})


def holder_identity_is_readable(change: LeaseChange) -> Iterable[Finding]:
    """spec.holderIdentity must be short, printable text.

    It is shown in every `kubectl get lease` and copied into every log; the API server takes megabytes of anything.
    """
    holder = change.new_holder
    if holder == change.old_holder or not holder:
        return NOTHING
    limits = change.limits.holder_identity_shape
    size = len(holder.encode())
    if size > limits.deny_above_bytes:
        return (
            Finding(invalid(_FIELD, holder, f"must not be longer than {limits.deny_above_bytes} bytes, is {size}")),
        )
    categories = set() if holder.isascii() and holder.isprintable() else {unicodedata.category(c) for c in holder}
    if "Cc" in categories:
        return (Finding(invalid(_FIELD, holder, "must not contain control characters")),)
    if categories & _INVISIBLE:
        detail = "must not contain bidirectional or invisible characters"
        return (Finding(invalid(_FIELD, holder, detail), tier=Mode.WARN),)
    if size > limits.warn_above_bytes:
        detail = f"must not be longer than {limits.warn_above_bytes} bytes, is {size}"
        return (Finding(invalid(_FIELD, holder, detail), tier=Mode.WARN),)
    return NOTHING


def holder_identity_names_its_writer(change: LeaseChange) -> Iterable[Finding]:
    """A new spec.holderIdentity must begin with the name of the pod that writes it.

    Silent where the writer's token names no pod. Custom identities are common, so this only tells; a binding decides.
    """
    pod = change.user.pod_name
    if not pod or not change.new_holder or fits_pod(change.new_holder, pod):
        return NOTHING
    detail = f"holder {quote(change.new_holder)} must begin with the name of the writing pod, {quote(pod)}"
    return (Finding(forbidden(_FIELD, detail)),)


RULES = (
    Rule(
        id="holder-identity-shape",
        check=holder_identity_is_readable,
        resources=LEASES,
        operations=WRITES,
        events=NOT_A_RENEWAL,
        source="ours: the API server checks neither length nor characters",
    ),
    Rule(
        id="holder-identity-mismatch",
        check=holder_identity_names_its_writer,
        resources=LEASES,
        operations=WRITES,
        events=frozenset({Event.CREATE, Event.CLAIM, Event.TAKEOVER, Event.STEAL}),
        about_writer=True,
        source="ours: kube-vip, kwok and host-network pods use other identities, so never a denial by default",
    ),
)
