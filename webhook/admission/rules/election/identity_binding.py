"""Limits the writers of a bound lease, and the holder identities that they may write.

Only what a person wrote down in a binding distinguishes a holder from an impostor.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from webhook.admission.rules.change import (
    CLEANUP_CONTROLLERS,
    CandidateChange,
    Condition,
    Event,
    LeaseChange,
)
from webhook.admission.rules.finding import NO_FINDINGS, Finding, Statement
from webhook.admission.rules.holders import POD, Binding, holder_matches
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.occasions import ALL_EVENTS, ANY_OPERATION, BOTH
from webhook.admission.rules.rule import Rule
from webhook.admission.rules.texts import DeniedRenewal, Texts
from webhook.kubernetes.field import forbidden
from webhook.kubernetes.managed_fields import is_same_list
from webhook.kubernetes.request import UserInfo
from webhook.text.quoting import quote

_FIELD: Final = "spec.holderIdentity"
_ASK: Final = "ask the operators of lease-webhook"
_REPLACEMENTS: Final = ("\ufffd".encode(), b"\\ufffd")
"""U+FFFD in JSON: as it is, and as managedFields, which stay undecoded, may escape it."""


def identity_binding(change: LeaseChange | CandidateChange) -> Iterable[Finding]:
    """A lease that the policy binds may be written only by a bound writer, under a holder identity that matches.

    An empty new holder matches, so that a bound writer may release. On DELETE, and on an UPDATE that removes the last
    finalizer of a deleted lease, only the writer counts, and the garbage collector and the namespace controller are
    exempt. Of writes that do not change spec, only those count that change labels, annotations, finalizers, owners,
    generateName or managedFields of a lease while it is held, by another than the collectors: each makes a write fail
    that its holder has prepared, so enough of them end a healthy leader. A write of an object that contains U+FFFD
    counts as such a change: an API server puts it into a review for each byte that is not UTF-8, so the review cannot
    show that nothing changed. The same holds for LeaseCandidates that name the lease, held or not: the API server makes
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
    if is_untouched and (user.username in CLEANUP_CONTROLLERS or not _disturbs(change)):
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


IDENTITY_BINDING: Final = Rule(
    check=identity_binding,
    resources=BOTH,
    operations=ANY_OPERATION,
    events=ALL_EVENTS,
    only_if=Condition.BOUND,
    about_writer=True,
    standard=Mode.DENY,
    strict=Mode.DENY,
    texts=Texts(
        source="ours: a holder identity is free text, so only a person can say who may write it",
        why="The holder string is not an identity. The binding says who may write the lease.",
        who="Writers that are missing from the binding: a second operator, a backup tool, a person with kubectl.",
        fix="Ask the owner of the webhook's policy to add the writer to the binding, if it belongs there.",
        attack="wrote a lease that is bound to other writers",
    ),
    denied_renewal=DeniedRenewal(reason="a writer or a holder that a binding of yours excludes"),
    attack_at_any_mode=False,
    reads=(
        "spec.holderIdentity",
        "spec.leaseName",
        "metadata.name",
        "metadata.labels",
        "metadata.annotations",
        "metadata.finalizers",
        "metadata.ownerReferences",
        "metadata.generateName",
        "metadata.managedFields",
    ),
    in_cel=RuleInCel(
        broken="""
        variables.isBound && !(variables.event in ['delete', 'untouched'] && variables.isCleanup) && (variables.event !=
        'untouched' || variables.disturbs && !variables.isListed) && (!variables.isListed || variables.event != 'delete'
        && variables.holder != '' && variables.isListed && !variables.fits && variables.isCheckable)
        """,
        message="""
        {variables.field}: Forbidden: {variables.isListed ? variables.misfit : variables.unlisted}; ask the operators of
        lease-webhook
        """,
        warned="""
        variables.isBound && !(variables.event in ['delete', 'untouched']) && variables.holder != '' &&
        variables.isListed && !variables.fits && !variables.isCheckable
        """,
        warning="""
        {variables.field}: Forbidden: {!variables.user} does not write from a pod, so its holder name cannot be checked
        (binding {variables.bound[0].shown[0]}); write from a pod, or ask the operators of lease-webhook
        """,
        lacks="A holder of more than 4,096 characters fits no template but `*`. A policy sees the bytes themselves, so "
        "U+FFFD in an object does not count as a change.",
        variables={
            # Without the name of a pod, a template that has it cannot be checked.
            "isCheckable": """
            variables.pod != "" || variables.bound.all(b, size(b.needs) > 0 || !b.holders.exists(h,
            h.contains("${pod}")))
            """,
            "podNames": r"""
            (variables.pod == variables.host ? [variables.pod] : [variables.pod, variables.host]).filter(n, n != "" &&
            !n.contains("\\"))
            """,
            # \Q to \E is literal text. A longer holder would cost more than an expression may.
            "fits": r"""
            variables.bound.exists(b, b.holders.exists(h, h == "^(?s).*$" || size(variables.holder) <= 4096
            && (h.contains("${pod}") ? variables.podNames.exists(n, variables.holder.matches(h.replace("${pod}",
            "\\Q" + n + "\\E"))) : variables.holder.matches(h))))
            """,
        },
        phrases={
            "misfit": """
            the holder of this lease must match the binding {variables.bound[0].shown[0]}, and {!variables.holder} does
            not
            """,
            "unlisted": """
            only the writers bound in the webhook's policy may write this {variables.candidate}lease, and
            {!variables.user} is not one of them
            """,
        },
    ),
)


def _disturbs(change: LeaseChange | CandidateChange) -> bool:
    """True if a write that leaves spec as it is changes metadata of a lease that is held, or of a candidate.

    These are all fields of metadata that an API server lets an update change, so a write that leaves them as they are
    moves no resourceVersion: an empty or zero value that is set in spec and means the same is in managedFields, too.
    Where a review has U+FFFD, other bytes may be stored before and after the write.
    """
    if isinstance(change, LeaseChange) and not change.old_holder:
        return False
    new, old = change.new_metadata, change.old_metadata
    return (
        (new.labels or {}) != (old.labels or {})
        or (new.annotations or {}) != (old.annotations or {})
        or (new.finalizers or ()) != (old.finalizers or ())
        or (new.owner_references or ()) != (old.owner_references or ())
        or (new.generate_name or "") != (old.generate_name or "")
        or not is_same_list(new.managed_fields, old.managed_fields)
        or _has_replacement(change)
    )


def _has_replacement(change: LeaseChange | CandidateChange) -> bool:
    text = msgspec.json.encode((change.new_metadata, change.new_spec))
    return any(replacement in text for replacement in _REPLACEMENTS)


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
