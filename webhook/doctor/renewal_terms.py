"""What the match condition for plain renewals must say, term by term, and what each term keeps visible.

The text as a whole was run on kube-apiserver 1.37.1, 1.36.3, 1.33.13 and 1.31.4 with 292 kinds of write.
"""

from typing import Final

from msgspec import Struct


class Requirement(Struct, frozen=True):
    """One thing the condition must say, as a term of its own; `loss` is what can happen without it."""

    name: str
    term: str
    loss: str


_ERRS: Final = "the expression errs, and an error admits the write unseen under Ignore and refuses it under Fail"
_AFTER: Final = "object.metadata.?managedFields.orValue([])"
_BEFORE: Final = "oldObject.metadata.?managedFields.orValue([])"
_OWNER: Final = 'm.?fieldsV1[?"f:spec"][?"f:renewTime"]'


def _kept(path: str, name: str, loss: str) -> Requirement:
    """A field that a plain renewal leaves alone; absent and null are one value."""
    return Requirement(name, f"object.{path}.?{name}.orValue(null) != oldObject.{path}.?{name}.orValue(null)", loss)


_SPEC: Final = (
    _kept(
        "?spec",
        "holderIdentity",
        "a steal or a takeover that also sets renewTime is never reviewed: the rule that matters most is off.",
    ),
    _kept(
        "?spec",
        "acquireTime",
        "a renewal can carry an acquireTime of year 10000, after which JSON clients cannot read the lease.",
    ),
    _kept(
        "?spec",
        "leaseDurationSeconds",
        "a renewal can shorten the duration, and the next write takes the lease over as expired; or raise it to 68"
        " years, and nobody follows a dead leader.",
    ),
    _kept(
        "?spec",
        "leaseTransitions",
        "a renewal can set leaseTransitions to 2147483647, and the next takeover overflows.",
    ),
    _kept(
        "?spec",
        "strategy",
        "a renewal can hand the lease to coordinated leader election, which then chooses the leader.",
    ),
    _kept(
        "?spec",
        "preferredHolder",
        "a renewal can name a preferred holder, and the present leader gives up its lease.",
    ),
)
_METADATA: Final = (
    _kept(
        "metadata",
        "labels",
        "a renewal can change labels: without its own, the lease of an API server is not protected as one.",
    ),
    _kept("metadata", "annotations", "a renewal can change annotations unseen."),
    _kept(
        "metadata",
        "ownerReferences",
        "a renewal can add an owner that does not exist, and the garbage collector deletes the live lease.",
    ),
    _kept(
        "metadata",
        "finalizers",
        "a renewal can add a finalizer that nobody removes, and the lease cannot be deleted and created again.",
    ),
    _kept("metadata", "generateName", "a renewal can set generateName unseen."),
    _kept("metadata", "deletionTimestamp", "a write that ends the deletion of a lease can look like a renewal."),
)
_TIMES: Final = (
    Requirement(
        "renewTime unchanged",
        "object.?spec.?renewTime == oldObject.?spec.?renewTime",
        "a write that does not renew is dropped too, among them the ones that forge or wipe managedFields.",
    ),
    Requirement(
        "renewTime null",
        "object.?spec.?renewTime.orValue(null) == null",
        f"renewTime null or zero reaches a comparison, {_ERRS}: a way past duration-shortened.",
    ),
    Requirement(
        "old renewTime null",
        "oldObject.?spec.?renewTime.orValue(null) == null",
        f"the first renewal after renewTime was null or zero reaches a comparison, {_ERRS}.",
    ),
    Requirement(
        "renewTime before 1970",
        'object.spec.renewTime < "1970"',
        f"a renewTime of year 0 or below cannot be parsed: {_ERRS}.",
    ),
    Requirement(
        "renewTime after 2200",
        'object.spec.renewTime > "2200"',
        f"a renewTime of year 9999 or 10000 overflows the subtraction: {_ERRS}. Year 10000 kills JSON clients.",
    ),
    Requirement(
        "old renewTime before 1970",
        'oldObject.spec.renewTime < "1970"',
        f"the repair of a lease with a renewTime of year 0 or below cannot be parsed: {_ERRS}.",
    ),
    Requirement(
        "old renewTime after 2200",
        'oldObject.spec.renewTime > "2200"',
        f"the repair of a lease with a renewTime of year 9999 or 10000 overflows: {_ERRS}.",
    ),
    Requirement(
        "24 hours ahead",
        'timestamp(object.spec.renewTime) - timestamp(oldObject.spec.renewTime) > duration("24h")',
        "one renewal can move renewTime years ahead, and clients that trust it never take over from a dead leader.",
    ),
)
_MANAGED_FIELDS: Final = (
    Requirement(
        "managedFields count",
        f"size({_AFTER}) != size({_BEFORE})",
        "a renewal can wipe the API server's stamps, or add an entry that hides them from the rules for good.",
    ),
    Requirement(
        "managedFields above 50",
        f"size({_AFTER}) > 50",
        f"a list of thousands of entries costs more than CEL may spend: {_ERRS}.",
    ),
    Requirement(
        "managedFields times",
        f"{_AFTER}.exists(m, m.?time.orValue(null) != null && size(m.time) != 20)",
        "a renewal can carry a managedFields entry of year 10000, after which JSON clients cannot read the lease.",
    ),
    Requirement(
        "managedFields of others",
        f"{_AFTER}.filter(m, {_OWNER} != optional.of({{}})) != {_BEFORE}.filter(m, {_OWNER} != optional.of({{}}))",
        "a renewal can forge or replace entries of other writers, which the rules take for the API server's stamps.",
    ),
    Requirement(
        "ancient-changes",
        f'{_AFTER}.exists(m, {_OWNER} == optional.of({{}}) && m.?manager.orValue("") == "ancient-changes")',
        "a renewal can be folded into an entry whose time the client chose.",
    ),
    Requirement(
        "managedFields of the writer",
        f"{_AFTER}.exists(m, {_OWNER} == optional.of({{}}) && !{_BEFORE}.exists(b,"
        ' ["manager", "operation", "apiVersion", "subresource", "fieldsType", "fieldsV1"].all(k, m[?k] == b[?k])))',
        "a renewal can give the entry that owns renewTime another name or more fields.",
    ),
)

REQUIREMENTS: Final = (
    Requirement(
        "resource",
        'request.resource.resource != "leases"',
        "an update of a LeaseCandidate that looks like a renewal is never reviewed, so anybody may write pingTime.",
    ),
    Requirement(
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
"""The requirements that the text before this one met."""
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
"""What only the text before this one says; its other terms are those of OLDER_NAMES."""

OUTDATED_LOSS: Final = (
    "with this older text a renewal can carry, never reviewed, labels, annotations, owners that have the garbage"
    " collector delete the lease, a shorter duration, and forged managedFields, after which one write steals the lease"
    " or honest takeovers are refused for good."
)
