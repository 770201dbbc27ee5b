"""holderIdentity of a Lease: its form, and whether it names the pod of its writer."""

import unicodedata
from collections.abc import Iterable
from typing import Final

from webhook.api.field import forbidden, invalid
from webhook.api.text import quote
from webhook.rules.change import LeaseChange
from webhook.rules.events import Event
from webhook.rules.finding import NOTHING, Finding
from webhook.rules.mode import Mode
from webhook.rules.rule import LEASES, NOT_A_RENEWAL, WRITES, Rule
from webhook.rules.statement import Statement
from webhook.rules.writer_identity import fits_pod

_FIELD: Final = "spec.holderIdentity"
_INVISIBLE: Final = frozenset({"Cf", "Zl", "Zp"})


def holder_identity_is_readable(change: LeaseChange) -> Iterable[Finding]:
    """spec.holderIdentity must be short, printable text.

    It is shown in every `kubectl get lease` and copied into every log; the API server accepts megabytes of any text.
    """
    holder = change.new_holder
    if holder == change.old_holder or not holder:
        return NOTHING
    limits = change.limits.holder_identity_shape
    size = len(holder.encode())
    if size > limits.deny_above_bytes:
        return (_too_long(holder, size, limits.deny_above_bytes, Mode.DENY),)
    categories = set() if holder.isascii() and holder.isprintable() else {unicodedata.category(c) for c in holder}
    if "Cc" in categories:
        happened = Statement("holder {0} has control characters, which break terminals and logs", (holder,))
        return (Finding(invalid(_FIELD, holder, "must not contain control characters"), happened=happened),)
    if categories & _INVISIBLE:
        detail = "must not contain bidirectional or invisible characters"
        happened = Statement("holder {0} has invisible characters: it may look like another holder", (holder,))
        return (Finding(invalid(_FIELD, holder, detail), tier=Mode.WARN, happened=happened),)
    if size > limits.warn_above_bytes:
        return (_too_long(holder, size, limits.warn_above_bytes, Mode.WARN),)
    return NOTHING


def _too_long(holder: str, size: int, limit: int, tier: Mode) -> Finding:
    happened = Statement(f"holderIdentity has {size} bytes, more than {limit}: each log line of the lease repeats it")
    return Finding(
        invalid(_FIELD, holder, f"must not be longer than {limit} bytes, is {size}"), tier=tier, happened=happened
    )


def holder_identity_names_its_writer(change: LeaseChange) -> Iterable[Finding]:
    """A new spec.holderIdentity must begin with the name of the pod that writes it.

    Not evaluated if the writer's token has no pod name. Custom identities are common, so no preset denies; a binding
    decides.
    """
    pod = change.user.pod_name
    if not pod or not change.new_holder or fits_pod(change.new_holder, pod):
        return NOTHING
    detail = (
        f"holder {quote(change.new_holder)} must begin with the name of the writing pod, {quote(pod)}; "
        "set the elector's identity to the pod name, or lower the mode of this rule"
    )
    happened = Statement(
        "holder {0} does not begin with its pod's name, {1}; use that as identity",
        (change.new_holder, pod),
    )
    return (Finding(forbidden(_FIELD, detail), happened=happened),)


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
        standard=Mode.AUDIT,
        strict=Mode.WARN,
        source="ours: kube-vip, kwok and host-network pods use other identities, so never a denial by default",
    ),
)
