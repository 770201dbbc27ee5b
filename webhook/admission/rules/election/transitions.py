"""leaseTransitions: how the count of holders may move."""

from collections.abc import Iterable
from typing import Annotated, Final

from msgspec import Meta, Struct

from webhook.admission.rules.change import Event, LeaseChange
from webhook.admission.rules.finding import NO_FINDINGS, Finding, Statement
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.occasions import LEASES, NOT_A_RENEWAL, UPDATE, WRITES
from webhook.admission.rules.rule import Rule
from webhook.admission.rules.texts import NO_TAKEOVER, Stored, Texts
from webhook.kubernetes.field import invalid

_TRANSITIONS: Final = "spec.leaseTransitions"
_CHANGES_OF_HOLDER: Final = frozenset({Event.TAKEOVER, Event.STEAL})


class JumpLimits(Struct, frozen=True):
    """How far a count may jump: client-go writes int32(count + 1), which overflows after 2147483647."""

    warn_jump_above: Annotated[int, Meta(description="warns of a count more than so many above the old one")] = 1
    deny_from: Annotated[int, Meta(description="the mode applies to a jump to so many or more")] = 1_000_000_000


def transitions_jump(change: LeaseChange) -> Iterable[Finding]:
    """spec.leaseTransitions must not increase by more than 1 (a warning), nor jump to 1000000000 or more (a denial)."""
    new = change.new_spec.lease_transitions
    if new is None:
        return NO_FINDINGS
    old = change.old_spec.lease_transitions or 0
    limits = change.find_limits(JumpLimits)
    if new <= old + 1:
        return NO_FINDINGS
    if new >= limits.deny_from:
        detail = (
            f"must not jump to {limits.deny_from} or more: after 2147483647 the counter overflows, and no one else can "
            f"take the lease; write {old + 1}"
        )
        jumped = f"leaseTransitions jumped from {old} to {new}: after 2147483647 it overflows and no takeover succeeds"
        return (Finding(invalid(_TRANSITIONS, new, detail), happened=Statement(jumped)),)
    if change.is_create or new <= old + limits.warn_jump_above:
        return NO_FINDINGS
    happened = Statement(f"leaseTransitions jumped from {old} to {new}; it increases by 1 with each new holder")
    detail = f"must not increase by more than {limits.warn_jump_above} from {old}; write {old + 1}"
    return (Finding(invalid(_TRANSITIONS, new, detail), tier=Mode.WARN, happened=happened),)


TRANSITIONS_JUMP: Final = Rule(
    check=transitions_jump,
    resources=LEASES,
    operations=WRITES,
    events=NOT_A_RENEWAL,
    standard=Mode.DENY,
    strict=Mode.DENY,
    limits=JumpLimits,
    texts=Texts(
        source="ours: a real counter cannot get there; client-go's MultiLock jumps by small numbers",
        why="client-go writes the old count plus 1 as a 32-bit number. After 2147483647 it writes a negative one, "
        "which the API server refuses: no takeover succeeds again.",
        who="client-go's MultiLock (until 1.27), which copies a count from another object: small jumps, a warning.",
        fix="Write the old count plus 1.",
        attack="set a count after which no one else could take the lease",
    ),
    stored=Stored(
        means=NO_TAKEOVER,
        fix='{kubectl} patch lease {name} --type=merge -p \'{"spec":{"leaseTransitions":0}}\'',
    ),
    attack_at_any_mode=False,
    reads=("spec.leaseTransitions",),
    in_cel=RuleInCel(
        broken="variables.count > variables.oldCount + 1 && variables.count >= $deny_from",
        message="""
        spec.leaseTransitions: Invalid value: {variables.count}: must not jump to {$deny_from} or more: after
        2147483647 the counter overflows, and no one else can take the lease; write {variables.oldCount + 1}
        """,
        warned="""
        request.operation != 'CREATE' && variables.count > variables.oldCount + 1 &&
        variables.count - variables.oldCount > $warn_jump_above
        """,
        warning="""
        spec.leaseTransitions: Invalid value: {variables.count}: must not increase by more than {$warn_jump_above} from
        {variables.oldCount}; write {variables.oldCount + 1}
        """,
    ),
)


def transitions_decrease(change: LeaseChange) -> Iterable[Finding]:
    """spec.leaseTransitions must not decrease or be removed."""
    new, old = change.new_spec.lease_transitions, change.old_spec.lease_transitions
    if old is None or (new is not None and new >= old):
        return NO_FINDINGS
    what = "was removed" if new is None else f"decreased from {old} to {new}"
    happened = Statement(f"leaseTransitions {what}: changes of holder can no longer be counted")
    detail = f"must not be less than the old value {old}; keep it, or write {old + 1} with a new holder"
    return (Finding(invalid(_TRANSITIONS, new, detail), happened=happened),)


TRANSITIONS_DECREASE: Final = Rule(
    check=transitions_decrease,
    resources=LEASES,
    operations=UPDATE,
    events=NOT_A_RENEWAL,
    standard=Mode.AUDIT,
    strict=Mode.WARN,
    texts=Texts(
        source="ours: fabric8 up to 6.0, kubert and Pekko do it, so never a denial by default",
        why="The count says how often the lease changed hands; monitoring relies on it.",
        who="fabric8 up to 6.0, which restarts at 0; kubert, which counts to 65535; Pekko, which removes the count.",
        fix="Upgrade the client, or turn the rule off.",
    ),
    reads=("spec.leaseTransitions",),
    in_cel=RuleInCel(
        broken="""
        variables.oldSpec.?leaseTransitions.hasValue() && (!variables.spec.?leaseTransitions.hasValue() ||
        variables.count < variables.oldCount)
        """,
        message="""
        spec.leaseTransitions: Invalid value: {variables.countText}: must not be less than the old value
        {variables.oldCount}; keep it, or write {variables.oldCount + 1} with a new holder
        """,
    ),
)


def transitions_mismatch(change: LeaseChange) -> Iterable[Finding]:
    """spec.leaseTransitions must increase by 1 with each new holder, and only then."""
    rise = (change.new_spec.lease_transitions or 0) - (change.old_spec.lease_transitions or 0)
    if change.event in _CHANGES_OF_HOLDER:
        is_wrong, must = rise != 1, "must increase by 1 with a new holder"
        what = "did not increase by 1 with the new holder: a change of holder is not counted"
    else:
        is_wrong, must = rise == 1 and change.event is not Event.CLAIM, "must not increase without a new holder"
        what = "increased without a new holder: one change of holder too many is counted"
    if not is_wrong:
        return NO_FINDINGS
    error = invalid(_TRANSITIONS, change.new_spec.lease_transitions, must)
    return (Finding(error, happened=Statement(f"leaseTransitions {what}")),)


TRANSITIONS_MISMATCH: Final = Rule(
    check=transitions_mismatch,
    resources=LEASES,
    operations=UPDATE,
    events=NOT_A_RENEWAL,
    standard=Mode.OFF,
    strict=Mode.AUDIT,
    texts=Texts(
        source="ours: the coordinated election and every release leave the count alone, so only audited",
        why="A count that does not follow the holder hides takeovers from monitoring.",
        who="The Python clients, which change the holder and never write the count.",
        fix="Nothing to fix in most cases: the rule is for audits.",
    ),
    reads=("spec.holderIdentity", "spec.leaseTransitions"),
    in_cel=RuleInCel(
        broken="""
        variables.event == 'change' ? variables.count - variables.oldCount != 1 : variables.count - variables.oldCount
        == 1 && variables.event != 'claim'
        """,
        message="""
        spec.leaseTransitions: Invalid value: {variables.countText}: must {variables.event == 'change' ? 'increase by 1
        with a new holder' : 'not increase without a new holder'}
        """,
    ),
)
