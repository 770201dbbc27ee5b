"""Who may write a lease, and under which holder identity: its form, bindings, and leases of the cluster itself.

Only what a person wrote down in a binding distinguishes a holder from an impostor.
"""

import unicodedata
from collections.abc import Iterable
from typing import Final

from webhook.admission.rules.change import (
    CLEANUP_CONTROLLERS,
    IDENTITY_LABEL,
    KUBE_SYSTEM,
    NODE_LEASES,
    NODES,
    CandidateChange,
    Event,
    LeaseChange,
)
from webhook.admission.rules.holders import POD, Binding, fits_pod, holder_matches
from webhook.admission.rules.rule import NO_FINDINGS, NOT_A_RENEWAL, Finding, Mode, Statement, texts
from webhook.kubernetes.field import forbidden, invalid
from webhook.kubernetes.request import UserInfo
from webhook.text.quoting import quote

_FIELD: Final = "spec.holderIdentity"
_REPLACEMENT: Final = "\ufffd"
_INVISIBLE: Final = frozenset({"Cf", "Zl", "Zp"})


@texts(
    source="ours: the API server checks neither length nor characters",
    why="The identity is shown in every `kubectl get lease` and copied into every log; the API server accepts "
    "megabytes of any text.",
    who="No known elector; for example, identities read from a file together with the newline at its end.",
    fix="Use the pod's name, an underscore and a UUID; trim the value.",
    stored="give the elector a short identity of printable characters, such as the pod's name",
)
def holder_identity_shape(change: LeaseChange) -> Iterable[Finding]:
    """spec.holderIdentity must be short, printable text in UTF-8."""
    holder = change.new_holder
    if holder == change.old_holder or not holder:
        return NO_FINDINGS
    limits = change.limits.holder_identity_shape
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


def _too_long(holder: str, size: int, limit: int, tier: Mode) -> Finding:
    happened = Statement(f"holderIdentity has {size} bytes, more than {limit}: each log line of the lease repeats it")
    error = invalid(_FIELD, holder, f"must not be longer than {limit} bytes, is {size}")
    return Finding(error, tier=tier, happened=happened)


@texts(
    source="ours: kube-vip, kwok and host-network pods use other identities, so never a denial by default",
    why="An identity that begins with the pod's name can be traced to the pod that wrote it.",
    who="kube-vip, kwok, and pods on the host network, whose host name is the node's.",
    fix="Set the elector's identity from the pod's name (downward API), or turn the rule off for those leases.",
)
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


_ASK: Final = "ask the operators of lease-webhook"


@texts(
    source="ours: a holder identity is free text, so only a person can say who may write it",
    why="The holder string is not an identity. The binding says who may write the lease.",
    who="Writers that are missing from the binding: a second operator, a backup tool, a person with kubectl.",
    fix="Ask the owner of the webhook's policy to add the writer to the binding, if it belongs there.",
    attack="wrote a lease that is bound to other writers",
)
def identity_binding(change: LeaseChange | CandidateChange) -> Iterable[Finding]:
    """A lease that the policy binds may be written only by a bound writer, under a holder identity that matches.

    An empty new holder matches, so that a bound writer may release. On DELETE, and on an UPDATE that removes the last
    finalizer of a deleted lease, only the writer counts, and the garbage collector and the namespace controller are
    exempt. Of writes that do not change spec, only those count that change labels, annotations, finalizers or owners of
    a lease while it is held, by another than the collectors: each makes a write fail that its holder has prepared, so
    enough of them end a healthy leader. The same holds for LeaseCandidates that name the lease: the API server makes
    one of them the holder, under the candidate's name.
    """
    binding = change.binding
    if binding is None:
        return NO_FINDINGS
    user = change.user
    deleted = change.event is Event.DELETE
    if deleted and user.username in CLEANUP_CONTROLLERS:
        return NO_FINDINGS
    is_lease = isinstance(change, LeaseChange)
    is_untouched = change.event is Event.UNTOUCHED
    if is_untouched and (user.username in CLEANUP_CONTROLLERS or not _disturbs_the_holder(change)):
        return NO_FINDINGS
    field, what = (_FIELD, "lease") if is_lease else ("spec.leaseName", "candidate of lease")
    if not binding.lists(user):
        detail = (
            f"only the writers bound in the webhook's policy may write this {'' if is_lease else 'candidate and its '}"
            f"lease, and {quote(user.username)} is not one of them; {_ASK}"
        )
        did = "deleted" if deleted else "wrote"
        lease = f"{change.request.namespace}/{change.request.lease_name}"
        happened = Statement(
            f"{{0}} {did} {what} {{1}}, which the policy binds to other writers", (user.username, lease)
        )
        return (Finding(forbidden(field, detail), happened=happened),)
    holder = change.new_holder if isinstance(change, LeaseChange) else change.request.name
    if deleted or is_untouched or not holder:
        return NO_FINDINGS
    return _holder_findings(field, holder, user, binding)


def _disturbs_the_holder(change: LeaseChange | CandidateChange) -> bool:
    """True if a write that leaves spec as it is changes metadata of a lease that is held."""
    if not isinstance(change, LeaseChange) or not change.old_holder:
        return False
    new, old = change.new_metadata, change.old_metadata
    return (
        (new.labels or {}) != (old.labels or {})
        or (new.annotations or {}) != (old.annotations or {})
        or (new.finalizers or ()) != (old.finalizers or ())
        or (new.owner_references or ()) != (old.owner_references or ())
    )


def _holder_findings(field: str, holder: str, user: UserInfo, binding: Binding) -> Iterable[Finding]:
    pod = user.pod_name
    if any(holder_matches(template, holder, pod) for template in binding.holders):
        return NO_FINDINGS
    templates = ", ".join(quote(template) for template in binding.holders)
    if pod or not any(POD in template for template in binding.holders):
        detail = f"the holder of this lease must match the binding {templates}, and {quote(holder)} does not; {_ASK}"
        happened = Statement("holder {0} does not match the binding {1} of this lease", (holder, binding.holders[0]))
        return (Finding(forbidden(field, detail), happened=happened),)
    detail = (
        f"{quote(user.username)} does not write from a pod, so its holder name cannot be checked "
        f"(binding {templates}); write from a pod, or {_ASK}"
    )
    happened = Statement(
        "{0} does not write from a pod, so its holder name cannot be checked (binding {1})",
        (user.username, next(template for template in binding.holders if POD in template)),
    )
    tier = Mode.DENY if binding.require_pod else Mode.WARN
    return (Finding(forbidden(field, detail), tier=tier, happened=happened),)


@texts(
    source="ours: NodeRestriction looks at the name and namespace of the lease and not at its spec",
    why="NodeRestriction checks the name and the namespace of the lease and not its spec, so a node could write any "
    "holder into it.",
    who="No known kubelet.",
    fix="Write the node's own name.",
    attack="wrote the lease of a node",
)
def node_lease_holder(change: LeaseChange) -> Iterable[Finding]:
    """A node may write only its own name as the holder of its lease."""
    if change.request.namespace != NODE_LEASES or NODES not in change.user.groups:
        return NO_FINDINGS
    if change.new_holder in (change.old_holder, change.request.name):
        return NO_FINDINGS
    detail = f"a node may name only itself, {quote(change.request.name)}, as the holder of its lease"
    happened = Statement("a node made {0} the holder of the lease of {1}", (change.new_holder, change.request.name))
    return (Finding(forbidden("spec.holderIdentity", detail), happened=happened),)


@texts(
    source="ours: NodeRestriction keeps nodes apart, but everyone else is held back by RBAC only",
    why="Whoever can write a node's lease can make a failed node look healthy.",
    who="kwok, virtual-kubelet and KubeEdge, which write for their nodes.",
    fix="Exempt that component for this rule before you let it deny.",
    attack="wrote the lease of a node",
)
def node_lease_writer(change: LeaseChange) -> Iterable[Finding]:
    """A lease in kube-node-lease must be written by the node that it is named after."""
    if change.request.namespace != NODE_LEASES or change.user.username == f"system:node:{change.request.name}":
        return NO_FINDINGS
    writer = quote(f"system:node:{change.request.name}")
    detail = f"this lease may be written by {writer} only; have the policy exempt this writer"
    happened = Statement(
        "{0} wrote the lease of node {1}: a dead node may look alive", (change.user.username, change.request.name)
    )
    return (Finding(forbidden("spec", detail), happened=happened),)


@texts(
    source="ours: only the API server's own loopback client writes these leases",
    why="These leases say which API servers are running, and controllers of the control plane rely on them.",
    who="No known client.",
    fix="Leave the lease to its API server; it repairs or recreates it.",
    attack="wrote the identity of an API server",
)
def apiserver_lease_writer(change: LeaseChange) -> Iterable[Finding]:
    """The identity lease of an API server may be written by system:apiserver only.

    Name, namespace and the stored label must all match: the label alone does not apply the rule to other leases. The
    label may not be removed either, because without it the rule would not apply to the next write.
    """
    request = change.request
    if request.namespace != KUBE_SYSTEM or not request.name.startswith("apiserver-"):
        return NO_FINDINGS
    if IDENTITY_LABEL not in (change.old_metadata.labels or {}) or change.user.username == "system:apiserver":
        return NO_FINDINGS
    if IDENTITY_LABEL not in (change.new_metadata.labels or {}):
        detail = f"{IDENTITY_LABEL} may be removed from an API server's identity lease by system:apiserver only"
        happened = Statement("{0} removed the identity label of an API server's lease", (change.user.username,))
        return (Finding(forbidden("metadata.labels", detail), happened=happened),)
    if change.event not in NOT_A_RENEWAL:
        return NO_FINDINGS
    detail = "an API server's identity lease may be written by system:apiserver only"
    happened = Statement("{0} wrote the identity lease of an API server", (change.user.username,))
    return (Finding(forbidden("spec", detail), happened=happened),)
