"""Leases without the API server's stamps: one that changes hands, and one that is created empty."""

from collections.abc import Iterable
from typing import Final

from webhook.admission.rules.change import Event, LeaseChange
from webhook.admission.rules.finding import NO_FINDINGS, Finding, Statement
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.occasions import ALL_EVENTS, CREATE, LEASES, NEW_HOLDER, UPDATE
from webhook.admission.rules.rule import Rule
from webhook.admission.rules.texts import Texts
from webhook.kubernetes.field import forbidden

_FIELD: Final = "metadata.managedFields"
_FIX: Final = (
    "`kubectl apply --server-side` of apiVersion, kind, name, namespace and a label brings a record back "
    "(it stamps now, so a takeover waits one duration)"
)


def lease_without_stamps(change: LeaseChange) -> Iterable[Finding]:
    """A lease that changes hands must carry the API server's stamps of its last renewal and of its new holder."""
    if change.event is Event.CLAIM:
        if change.new_entries or change.old_entries:
            return NO_FINDINGS
        unknown = "the API server keeps no record of this lease, so one write can take it from its new holder"
        happened = Statement("the API server keeps no record of this lease: one write can take it; fix: {page}")
    elif change.expiry.from_stamps:
        return NO_FINDINGS
    else:
        unknown = "the API server has no record of the last renewal of this lease, so its holder's own clock decides"
        happened = Statement("no API server record of the last renewal: the holder's own clock decided; repair: {page}")
    return (Finding(forbidden(_FIELD, f"{unknown}; {_FIX}"), happened=happened),)


LEASE_WITHOUT_STAMPS: Final = Rule(
    check=lease_without_stamps,
    resources=LEASES,
    operations=UPDATE,
    events=NEW_HOLDER,
    standard=Mode.AUDIT,
    strict=Mode.WARN,
    texts=Texts(
        source="ours: without stamps only the holder's own clock says when a lease expired, and a denial weakens",
        why="Without a stamp only the holder's own clock says whether the lease is live, and it may be wrong.",
        who="Leases that were created with a name only, and those whose managedFields were emptied before the webhook "
        "was installed, or removed by the API server because the lease was too large for etcd; and all leases of a "
        "namespace that is labeled lease-webhook/stamp and not listed under `stamps` in the policy file. The writer "
        "did nothing wrong.",
        fix="If the namespace has the label lease-webhook/stamp, list it under `stamps` in the policy file. Else "
        "restore the stamps: `kubectl apply --server-side` of apiVersion, kind, name, namespace and a label. That "
        "stamps the lease at that moment, so a takeover waits one duration.",
        attack="took a lease without a record of its renewal",
    ),
    reads=("spec.holderIdentity", "metadata.managedFields"),
    in_cel=RuleInCel(
        broken="""
        variables.event == 'claim' ? size(variables.entries) + size(variables.oldEntries) == 0 : variables.oldHolder !=
        '' && variables.oldRenewTime != '' && !variables.oldEntries.exists(m, m.?manager.orValue('') ==
        'lease-webhook-stamp') && (variables.seen == '' || variables.written != '' && variables.age < -60)
        """,
        message=r"""
        metadata.managedFields: Forbidden: the API server {variables.event == 'claim' ? 'keeps no record of this lease,
        so one write can take it from its new holder' : 'has no record of the last renewal of this lease, so its
        holder\'s own clock decides'}; `kubectl apply --server-side` of apiVersion, kind, name, namespace and a label
        brings a record back (it stamps now, so a takeover waits one duration)
        """,
    ),
)


def lease_created_empty(change: LeaseChange) -> Iterable[Finding]:
    """A lease may not be created with a name only: the API server then never keeps managedFields for it."""
    if change.new_entries or change.set_fields:
        return NO_FINDINGS
    detail = (
        "the API server keeps no record of the renewals of a lease that is created empty, so one write could take it "
        "from a live holder; create it with a label"
    )
    happened = Statement("a lease was created empty: no renewal of it will have an API server's stamp; fix: {page}")
    return (Finding(forbidden(_FIELD, detail), happened=happened),)


LEASE_CREATED_EMPTY: Final = Rule(
    check=lease_created_empty,
    resources=LEASES,
    operations=CREATE,
    events=ALL_EVENTS,
    standard=Mode.WARN,
    strict=Mode.DENY,
    texts=Texts(
        source="ours: apimachinery's skipNonAppliedManager tracks no update of an object that has no managedFields",
        why="The API server keeps managedFields for an object only if it is created with a field, or applied "
        "server-side later. Without them nothing proves that the lease is renewed, and one write takes it from a live "
        "holder, in `strict` too.",
        who="Manifests of leases that are created beforehand, so that RBAC can name them, and contain nothing but a "
        "name. No known elector.",
        fix="Add a label to the manifest. If the lease exists, apply the manifest with `kubectl apply --server-side`; "
        "neither `kubectl label` nor an apply of the name alone makes the API server keep managedFields.",
    ),
    reads=("metadata.labels", "metadata.annotations", "metadata.finalizers", "metadata.managedFields"),
    in_cel=RuleInCel(
        broken="""
        size(variables.entries) + size(variables.spec) == 0 && ['labels', 'annotations', 'finalizers',
        'ownerReferences', 'generateName'].all(f, !variables.new.metadata[?f].hasValue())
        """,
        message="""
        metadata.managedFields: Forbidden: the API server keeps no record of the renewals of a lease that is created
        empty, so one write could take it from a live holder; create it with a label
        """,
    ),
)
