"""The terms of the match condition for plain renewals, and what could happen unreviewed without each.

`make e2e` runs the whole condition on kube-apiserver 1.37.1, 1.36.3, 1.35.8 and 1.31.4 with 64 kinds of write.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct


class ConditionTerm(Struct, frozen=True):
    """One term of the condition; `loss` is what can happen without it."""

    name: str
    term: str
    loss: str


_ERRS: Final = "the expression fails, which admits the write without review under Ignore and rejects it under Fail"
_AFTER: Final = "object.metadata.?managedFields.orValue([])"
_BEFORE: Final = "oldObject.metadata.?managedFields.orValue([])"
_OWNER: Final = 'm.?fieldsV1[?"f:spec"][?"f:renewTime"]'


def _kept(path: str, losses: Mapping[str, str]) -> tuple[ConditionTerm, ...]:
    """Fields that a plain renewal does not change, with what can happen without each; absent and null are one value."""
    return tuple(
        ConditionTerm(name, f"object.{path}.?{name}.orValue(null) != oldObject.{path}.?{name}.orValue(null)", loss)
        for name, loss in losses.items()
    )


_SPEC: Final = _kept(
    "?spec",
    {
        "holderIdentity": "a steal or a takeover that also sets renewTime is never reviewed, so the most important rule"
        " has no effect.",
        "acquireTime": "a renewal can carry an acquireTime of year 10000, after which JSON clients cannot read the"
        " lease.",
        "leaseDurationSeconds": "a renewal can shorten the duration, and the next write takes the lease over as"
        " expired; or raise it to 68 years, and no successor replaces a dead leader.",
        "leaseTransitions": "a renewal can set leaseTransitions to 2147483647, and the next takeover overflows.",
        "strategy": "a renewal can hand the lease to coordinated leader election, which then chooses the leader.",
        "preferredHolder": "a renewal can name a preferred holder, and the current leader gives up its lease.",
    },
)
_METADATA: Final = _kept(
    "metadata",
    {
        "labels": "a renewal can change labels: without its label, the lease of an API server is not protected as one.",
        "annotations": "a renewal can change annotations without review.",
        "ownerReferences": "a renewal can add an owner that does not exist, and the garbage collector deletes the live"
        " lease.",
        "finalizers": "a renewal can add a finalizer that is never removed, and the lease cannot be deleted and created"
        " again.",
        "generateName": "a renewal can set generateName without review.",
        "deletionTimestamp": "a write that ends the deletion of a lease can look like a renewal.",
    },
)
_TIMES: Final = (
    ConditionTerm(
        "renewTime unchanged",
        "object.?spec.?renewTime == oldObject.?spec.?renewTime",
        "writes that do not renew are skipped too, among them those that forge or clear managedFields.",
    ),
    ConditionTerm(
        "renewTime null",
        "object.?spec.?renewTime.orValue(null) == null",
        f"renewTime null or zero reaches a comparison, {_ERRS}: a way to evade duration-shortened.",
    ),
    ConditionTerm(
        "old renewTime null",
        "oldObject.?spec.?renewTime.orValue(null) == null",
        f"the first renewal after renewTime was null or zero reaches a comparison, {_ERRS}.",
    ),
    ConditionTerm(
        "renewTime before 1970",
        'object.spec.renewTime < "1970"',
        f"a renewTime of year 0 or below cannot be parsed: {_ERRS}.",
    ),
    ConditionTerm(
        "renewTime after 2200",
        'object.spec.renewTime > "2200"',
        f"a renewTime of year 9999 or 10000 overflows the subtraction: {_ERRS}. Year 10000 breaks JSON clients.",
    ),
    ConditionTerm(
        "old renewTime before 1970",
        'oldObject.spec.renewTime < "1970"',
        f"the repair of a lease with a renewTime of year 0 or below cannot be parsed: {_ERRS}.",
    ),
    ConditionTerm(
        "old renewTime after 2200",
        'oldObject.spec.renewTime > "2200"',
        f"the repair of a lease with a renewTime of year 9999 or 10000 overflows: {_ERRS}.",
    ),
    ConditionTerm(
        "24 hours ahead",
        'timestamp(object.spec.renewTime) - timestamp(oldObject.spec.renewTime) > duration("24h")',
        "one renewal can move renewTime years ahead, and clients that trust it never take over from a dead leader.",
    ),
)
_MANAGED_FIELDS: Final = (
    ConditionTerm(
        "managedFields count",
        f"size({_AFTER}) != size({_BEFORE})",
        "a renewal can remove the API server's stamps, or add an entry that hides them from the rules permanently.",
    ),
    ConditionTerm(
        "managedFields above 50",
        f"size({_AFTER}) > 50",
        f"a list of thousands of entries costs more than CEL may spend: {_ERRS}.",
    ),
    ConditionTerm(
        "managedFields times",
        f"{_AFTER}.exists(m, m.?time.orValue(null) != null && size(m.time) != 20)",
        "a renewal can carry a managedFields entry of year 10000, after which JSON clients cannot read the lease.",
    ),
    ConditionTerm(
        "managedFields of others",
        f"{_AFTER}.filter(m, {_OWNER} != optional.of({{}})) != {_BEFORE}.filter(m, {_OWNER} != optional.of({{}}))",
        "a renewal can forge or replace entries of other writers, which the rules treat as the API server's stamps.",
    ),
    ConditionTerm(
        "ancient-changes",
        f'{_AFTER}.exists(m, {_OWNER} == optional.of({{}}) && m.?manager.orValue("") == "ancient-changes")',
        "a renewal can be merged into an entry whose time the client chose.",
    ),
    ConditionTerm(
        "managedFields of the writer",
        f"{_AFTER}.exists(m, {_OWNER} == optional.of({{}}) && !{_BEFORE}.exists(b,"
        ' ["manager", "operation", "apiVersion", "subresource", "fieldsType", "fieldsV1"].all(k, m[?k] == b[?k])))',
        "a renewal can give the entry that owns renewTime another name or more fields.",
    ),
)

CONDITION_TERMS: Final = (
    ConditionTerm(
        "resource",
        'request.resource.resource != "leases"',
        "an update of a LeaseCandidate that looks like a renewal is never reviewed, so any client may write pingTime.",
    ),
    ConditionTerm(
        "operation",
        'request.operation != "UPDATE"',
        f"on CREATE and DELETE one of the two objects is null; unless another term is true, {_ERRS}.",
    ),
    *_SPEC,
    *_METADATA,
    *_TIMES,
    *_MANAGED_FIELDS,
)

OLDER_NAMES: Final = ("resource", "operation", "acquireTime", *(one.name for one in _TIMES))
"""The terms that the previous version of the condition has too."""
OUTDATED: Final = (
    'object.?spec.?holderIdentity.orValue("") != oldObject.?spec.?holderIdentity.orValue("")',
    "object.?spec.?leaseTransitions.orValue(0) != oldObject.?spec.?leaseTransitions.orValue(0)",
    'object.?spec.?strategy.orValue("") != "" && object.?spec.?strategy != oldObject.?spec.?strategy',
    (
        'object.?spec.?preferredHolder.orValue("") != ""'
        " && object.?spec.?preferredHolder != oldObject.?spec.?preferredHolder"
    ),
    (
        "object.?spec.?leaseDurationSeconds.orValue(86401) > 86400"
        " && object.?spec.?leaseDurationSeconds != oldObject.?spec.?leaseDurationSeconds"
    ),
    "!has(object.metadata.managedFields) && has(oldObject.metadata.managedFields)",
    (
        "has(object.metadata.managedFields)"
        " && object.metadata.managedFields.exists(m, m.?time.orValue(null) != null && size(m.time) != 20)"
    ),
)
"""The terms that only the previous version has; its others are those of OLDER_NAMES."""

OUTDATED_LOSS: Final = (
    "with this older version a renewal can set, without review, labels, annotations, owners that have the garbage"
    " collector delete the lease, a shorter duration, and forged managedFields, after which one write steals the lease"
    " or honest takeovers are denied permanently."
)
