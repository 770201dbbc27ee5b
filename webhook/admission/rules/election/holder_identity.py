"""spec.holderIdentity: its form, and the pod that it names."""

import unicodedata
from collections.abc import Iterable
from typing import Annotated, Final

from msgspec import Meta, Struct

from webhook.admission.rules.change import (
    Event,
    LeaseChange,
)
from webhook.admission.rules.finding import NO_FINDINGS, Finding, Statement
from webhook.admission.rules.holders import fits_pod
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.occasions import LEASES, NEW_HOLDER, WRITES
from webhook.admission.rules.rule import Rule
from webhook.admission.rules.texts import Stored, Texts
from webhook.kubernetes.field import forbidden, invalid
from webhook.text.quoting import quote

_FIELD: Final = "spec.holderIdentity"
_REPLACEMENT: Final = "\ufffd"
_INVISIBLE: Final = frozenset({"Cf", "Zl", "Zp"})


class ShapeLimits(Struct, frozen=True):
    """How many bytes of UTF-8 a holder identity may have."""

    warn_above_bytes: Annotated[int, Meta(description="warns of more than so many bytes of UTF-8")] = 512
    deny_above_bytes: Annotated[int, Meta(description="the mode applies to more than so many bytes")] = 4096


def holder_identity_shape(change: LeaseChange) -> Iterable[Finding]:
    """spec.holderIdentity must be short, printable text in UTF-8."""
    holder = change.new_holder
    if holder == change.old_holder or not holder:
        return NO_FINDINGS
    limits = change.find_limits(ShapeLimits)
    size = len(holder.encode())
    if size > limits.deny_above_bytes:
        return (_too_long(holder, size, limits.deny_above_bytes, Mode.DENY),)
    categories = set() if holder.isascii() and holder.isprintable() else {unicodedata.category(c) for c in holder}
    if "Cc" in categories:
        happened = Statement("holder {0} has control characters, which break terminals and logs", (holder,))
        return (Finding(invalid(_FIELD, holder, "must not contain control characters"), happened=happened),)
    if _REPLACEMENT in holder:
        happened = Statement("holder {0} was not UTF-8: other holders look the same in a review", (holder,))
        detail = "must be UTF-8, and must not contain U+FFFD, by which the API server replaces what is not"
        return (Finding(invalid(_FIELD, holder, detail), happened=happened),)
    if categories & _INVISIBLE:
        detail = "must not contain bidirectional or invisible characters"
        happened = Statement("holder {0} has invisible characters: it may look like another holder", (holder,))
        return (Finding(invalid(_FIELD, holder, detail), tier=Mode.WARN, happened=happened),)
    if size > limits.warn_above_bytes:
        return (_too_long(holder, size, limits.warn_above_bytes, Mode.WARN),)
    return NO_FINDINGS


HOLDER_IDENTITY_SHAPE: Final = Rule(
    check=holder_identity_shape,
    resources=LEASES,
    operations=WRITES,
    events=NEW_HOLDER | {Event.DELETE},
    standard=Mode.DENY,
    strict=Mode.DENY,
    limits=ShapeLimits,
    texts=Texts(
        source="ours: the API server checks neither length nor characters",
        why="The identity is shown in every `kubectl get lease` and copied into every log; the API server accepts "
        "megabytes of any text.",
        who="No known elector; for example, identities read from a file together with the newline at its end.",
        fix="Use the pod's name, an underscore and a UUID; trim the value.",
    ),
    stored=Stored(
        means="a holder with invisible characters, or one of several kilobytes",
        fix="give the elector a short identity of printable characters, such as the pod's name",
    ),
    reads=("spec.holderIdentity",),
    in_cel=RuleInCel(
        broken=r"""
        variables.holder != '' && variables.holder != variables.oldHolder && (size(bytes(variables.holder)) >
        $deny_above_bytes || variables.holder.matches('[\\p{Cc}\\x{FFFD}]'))
        """,
        message=r"""
        spec.holderIdentity: Invalid value: {!variables.holder}: must {size(bytes(variables.holder)) > $deny_above_bytes
        ? 'not be longer than ' + string($deny_above_bytes) + ' bytes, is ' + string(size(bytes(variables.holder))) :
        variables.holder.matches('[\\p{Cc}]') ? 'not contain control characters' : 'be UTF-8, and must not contain
        U+FFFD, by which the API server replaces what is not'}
        """,
        warned=r"""
        variables.holder != '' && variables.holder != variables.oldHolder && (size(bytes(variables.holder)) >
        $warn_above_bytes || variables.holder.matches('[\\p{Cf}\\p{Zl}\\p{Zp}]'))
        """,
        warning="""
        spec.holderIdentity: Invalid value: {!variables.holder}: must not {size(bytes(variables.holder)) >
        $warn_above_bytes ? 'be longer than ' + string($warn_above_bytes) + ' bytes, is ' +
        string(size(bytes(variables.holder))) : 'contain bidirectional or invisible characters'}
        """,
    ),
)


def _too_long(holder: str, size: int, limit: int, tier: Mode) -> Finding:
    happened = Statement(f"holderIdentity has {size} bytes, more than {limit}: each log line of the lease repeats it")
    error = invalid(_FIELD, holder, f"must not be longer than {limit} bytes, is {size}")
    return Finding(error, tier=tier, happened=happened)


def holder_identity_mismatch(change: LeaseChange) -> Iterable[Finding]:
    """A new spec.holderIdentity must begin with the name of the pod that writes it.

    Not evaluated if the writer's token has no pod name. Custom identities are common, so no preset denies; a binding
    decides.
    """
    pod = change.user.pod_name
    if not pod or not change.new_holder or fits_pod(change.new_holder, pod):
        return NO_FINDINGS
    detail = (
        f"holder {quote(change.new_holder)} must begin with the name of the writing pod, {quote(pod)}; "
        "set the elector's identity to the pod name, or lower the mode of this rule"
    )
    happened = Statement(
        "holder {0} does not begin with its pod's name, {1}; use that as identity", (change.new_holder, pod)
    )
    return (Finding(forbidden(_FIELD, detail), happened=happened),)


HOLDER_IDENTITY_MISMATCH: Final = Rule(
    check=holder_identity_mismatch,
    resources=LEASES,
    operations=WRITES,
    events=NEW_HOLDER,
    about_writer=True,
    standard=Mode.AUDIT,
    strict=Mode.WARN,
    texts=Texts(
        source="ours: kube-vip, kwok and host-network pods use other identities, so never a denial by default",
        why="An identity that begins with the pod's name can be traced to the pod that wrote it.",
        who="kube-vip, kwok, and pods on the host network, whose host name is the node's.",
        fix="Set the elector's identity from the pod's name (downward API), or turn the rule off for those leases.",
    ),
    reads=("spec.holderIdentity",),
    in_cel=RuleInCel(
        broken="""
        variables.pod != '' && variables.holder != '' && size(variables.holder) <= 4096 && size(variables.rests) == 0
        """,
        message="""
        spec.holderIdentity: Forbidden: holder {!variables.holder} must begin with the name of the writing pod,
        {!variables.pod}; set the elector's identity to the pod name, or lower the mode of this rule
        """,
        lacks="A holder of more than 4096 characters is not compared.",
        variables={
            # What follows the pod's name, for each of its names with which the holder begins.
            "rests": """
            [variables.pod, variables.host].filter(n, n != "" && variables.holder.startsWith(n))
            .map(n, variables.holder.substring(size(n))).filter(r, !r.matches("^[0-9A-Za-z]"))
            """,
        },
    ),
)
