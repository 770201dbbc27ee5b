"""The coordinated election: a Lease's strategy and preferredHolder, and the LeaseCandidates."""

from collections.abc import Iterable, Iterator
from typing import Final

from webhook.admission.rules.change import CandidateChange, Condition, LeaseChange, is_same_time
from webhook.admission.rules.finding import NO_FINDINGS, Finding, Statement
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.occasions import CANDIDATES, LEASES, NOT_A_RENEWAL, SPEC_EVENTS, UPDATE, WRITES
from webhook.admission.rules.rule import Rule
from webhook.admission.rules.texts import Texts
from webhook.kubernetes.field import forbidden
from webhook.kubernetes.times import normalize
from webhook.text.quoting import quote


def preferred_holder_writer(change: LeaseChange) -> Iterable[Finding]:
    """spec.preferredHolder may be set or changed by the API server only.

    Clearing it is allowed: every release by client-go does.
    """
    new, old = change.new_spec.preferred_holder, change.old_spec.preferred_holder
    return _set_by_client("preferredHolder", new, old, "a holder that sees it stops renewing")


PREFERRED_HOLDER_WRITER: Final = Rule(
    check=preferred_holder_writer,
    resources=LEASES,
    operations=WRITES,
    events=NOT_A_RENEWAL,
    only_if=Condition.UNUSUAL_SPEC,
    about_writer=True,
    standard=Mode.DENY,
    strict=Mode.DENY,
    texts=Texts(
        source="ours: kube-apiserver's leader election controller is the only shipped writer",
        why="A client-go holder that sees `preferredHolder` stops renewing, so that the lease expires.",
        who="Backup tools that restore objects as an ordinary user (Velero), and scripts that copy a Lease.",
        fix="Leave `preferredHolder` out of what you restore, or exempt the tool for this rule on CREATE.",
        attack="named the next leader",
    ),
    attack_at_any_mode=False,
    attack_on_create=False,
    reads=("spec.preferredHolder",),
    in_cel=RuleInCel(
        broken="""
        variables.spec.?preferredHolder.orValue('') != '' && variables.spec.?preferredHolder !=
        variables.oldSpec.?preferredHolder
        """,
        message="""
        spec.preferredHolder: Forbidden: preferredHolder may be set by the API server's coordinated leader election
        only; leave it out, or have the policy exempt this writer
        """,
    ),
)


def strategy_writer(change: LeaseChange) -> Iterable[Finding]:
    """spec.strategy may be set or changed by the API server only.

    Clearing it is allowed: every renewal by client-go does.
    """
    new, old = change.new_spec.strategy, change.old_spec.strategy
    return _set_by_client("strategy", new, old, "coordinated leader election controls the lease now")


STRATEGY_WRITER: Final = Rule(
    check=strategy_writer,
    resources=LEASES,
    operations=WRITES,
    events=NOT_A_RENEWAL,
    only_if=Condition.UNUSUAL_SPEC,
    about_writer=True,
    standard=Mode.DENY,
    strict=Mode.DENY,
    texts=Texts(
        source="ours: kube-apiserver's leader election controller is the only shipped writer",
        why="`strategy` hands the lease to the API server's coordinated election, which then chooses the holder.",
        who="Backup tools that restore objects as an ordinary user (Velero), and scripts that copy a Lease.",
        fix="Leave `strategy` out of what you restore, or exempt the tool for this rule on CREATE.",
        attack="moved a lease to the coordinated election",
    ),
    attack_at_any_mode=False,
    attack_on_create=False,
    reads=("spec.strategy",),
    in_cel=RuleInCel(
        broken="variables.spec.?strategy.orValue('') != '' && variables.spec.?strategy != variables.oldSpec.?strategy",
        message="""
        spec.strategy: Forbidden: strategy may be set by the API server's coordinated leader election only; leave it
        out, or have the policy exempt this writer
        """,
    ),
)


def _set_by_client(name: str, new: str | None, old: str | None, effect: str) -> Iterable[Finding]:
    if not new or new == old:
        return NO_FINDINGS
    detail = (
        f"{name} may be set by the API server's coordinated leader election only; "
        "leave it out, or have the policy exempt this writer"
    )
    happened = Statement(f"a client set {name}: {effect}")
    return (Finding(forbidden(f"spec.{name}", detail), happened=happened),)


def ping_time_writer(change: CandidateChange) -> Iterable[Finding]:
    """spec.pingTime may be set or changed by the API server only.

    Clearing it is allowed.
    """
    new = change.new_spec.ping_time
    if normalize(new) is None or is_same_time(new, change.old_spec.ping_time):
        return NO_FINDINGS
    detail = "pingTime may be set by the API server's coordinated leader election only; leave it as it is"
    happened = Statement("a client set pingTime: the election may leave this candidate out")
    return (Finding(forbidden("spec.pingTime", detail), happened=happened),)


PING_TIME_WRITER: Final = Rule(
    check=ping_time_writer,
    resources=CANDIDATES,
    operations=WRITES,
    events=SPEC_EVENTS,
    about_writer=True,
    standard=Mode.DENY,
    strict=Mode.DENY,
    texts=Texts(
        source="ours: candidates write a guarded copy back and never touch pingTime",
        why="A candidate that is pinged must renew; forged pings disturb the coordinated election.",
        who="Backup tools that restore a LeaseCandidate as an ordinary user (Velero).",
        fix="Leave `pingTime` out of what you restore, or exempt the tool for this rule on CREATE.",
        attack="wrote what the API server asks candidates with",
    ),
    attack_at_any_mode=False,
    attack_on_create=False,
    reads=("spec.pingTime",),
    in_cel=RuleInCel(
        broken="variables.pingTime != '' && variables.pingTime != variables.oldPingTime",
        message="""
        spec.pingTime: Forbidden: pingTime may be set by the API server's coordinated leader election only; leave it as
        it is
        """,
    ),
)


def candidate_across_namespaces(change: CandidateChange) -> Iterable[Finding]:
    """A LeaseCandidate may not be written by a service account of another namespace.

    The writers that a binding lists are exempt.
    """
    account = change.user.service_account
    if account is None or account[0] == change.request.namespace or change.is_by_listed_writer:
        return NO_FINDINGS
    detail = (
        f"{quote(change.user.username)} belongs to another namespace; the API server may make this candidate the "
        f"holder of lease {quote(change.request.lease_name)}; bind that lease"
    )
    happened = Statement(
        "{0} of another namespace wrote a candidate of lease {1}: it may become the leader",
        (change.user.username, f"{change.request.namespace}/{change.request.lease_name}"),
    )
    return (Finding(forbidden("spec.leaseName", detail), happened=happened),)


CANDIDATE_ACROSS_NAMESPACES: Final = Rule(
    check=candidate_across_namespaces,
    resources=CANDIDATES,
    operations=WRITES,
    events=SPEC_EVENTS,
    about_writer=True,
    standard=Mode.AUDIT,
    strict=Mode.WARN,
    texts=Texts(
        source="ours: client-go's candidates are written by the pods of the component that is elected",
        why="In the coordinated election the API server writes the holder. Whoever may create a LeaseCandidate for a "
        "lease has it depose the leader and make the candidate the next one, also of a lease that is not coordinated.",
        who="Components that are elected in a namespace other than their service account's.",
        fix="Bind the lease, which covers its candidates as well, and let few create LeaseCandidates (RBAC).",
        attack="made a candidate for a lease of another namespace",
    ),
    reads=("spec.leaseName", "metadata.namespace"),
    in_cel=RuleInCel(
        broken="variables.elsewhere && !variables.isListed",
        message="""
        spec.leaseName: Forbidden: {!variables.user} belongs to another namespace; the API server may make this
        candidate the holder of lease {!variables.lease}; bind that lease
        """,
    ),
)


def candidate_changed(change: CandidateChange) -> Iterable[Finding]:
    """The versions and strategies of a candidate may not change after it was created."""
    return tuple(_find_changes(change))


CANDIDATE_CHANGED: Final = Rule(
    check=candidate_changed,
    resources=CANDIDATES,
    operations=UPDATE,
    events=SPEC_EVENTS,
    standard=Mode.WARN,
    strict=Mode.DENY,
    texts=Texts(
        source="ours: client-go's candidates never change them on update",
        why="The election chose by the old versions and strategy; a change makes its choice wrong.",
        who="Manifests applied again after an upgrade. client-go's candidates never change them.",
        fix="Delete the LeaseCandidate and create it again.",
        attack="changed what decides a coordinated election",
    ),
    reads=("spec.preferredStrategies", "spec.strategy", "spec.binaryVersion", "spec.emulationVersion"),
    in_cel=RuleInCel(
        broken="size(variables.changed) > 0",
        message="""
        spec.{variables.changed[0]}: Forbidden: {variables.changed[0]} may not change after creation; delete and
        recreate the candidate
        """,
    ),
)


_CHANGED: Final = "may not change after creation; delete and recreate the candidate"


def _find_changes(change: CandidateChange) -> Iterator[Finding]:
    new, old = change.new_spec, change.old_spec
    pairs = (
        ("binaryVersion", new.binary_version or "", old.binary_version or ""),
        ("emulationVersion", new.emulation_version or "", old.emulation_version or ""),
        (new.schema.strategies, new.strategies, old.strategies),
    )
    for name, value, before in pairs:
        if value != before:
            happened = Statement(f"{name} changed after creation: the election may choose another leader")
            yield Finding(forbidden(f"spec.{name}", f"{name} {_CHANGED}"), happened=happened)
