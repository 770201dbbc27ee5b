"""What the match condition for plain renewals must say, term by term, and what each term keeps visible.

The text as a whole was run on kube-apiserver 1.36.3, 1.33.13 and 1.31.4 with 83 kinds of write. Each requirement may be
met by any of its forms; the second forms are those of a shorter text that behaved the same on every write.
"""

from typing import Final

from msgspec import Struct


class Requirement(Struct, frozen=True):
    """One thing the condition must say, in any of `forms`; `loss` is what can happen without it."""

    name: str
    forms: tuple[str, ...]
    loss: str


_ERRS: Final = "the expression errs, and an error admits the write unseen under Ignore and refuses it under Fail"
_BOTH_BOUNDS: Final = (
    '[object, oldObject].exists(o, o.?spec.?renewTime.orValue(null) == null || o.spec.renewTime < "1970"'
    ' || o.spec.renewTime > "2200")'
)
_IDENTITY: Final = (
    '["holderIdentity", "acquireTime"].exists(f, object.?spec[?f].orValue(null) != oldObject.?spec[?f].orValue(null))'
)
_COORDINATED: Final = (
    '["strategy", "preferredHolder"].exists(f, object.?spec[?f].orValue("") != ""'
    " && object.?spec[?f] != oldObject.?spec[?f])"
)

REQUIREMENTS: Final = (
    Requirement(
        "resource",
        ('request.resource.resource != "leases"',),
        "an update of a LeaseCandidate that looks like a renewal is never reviewed, so anybody may write pingTime.",
    ),
    Requirement(
        "operation",
        ('request.operation != "UPDATE"',),
        f"on CREATE and DELETE one of the two objects is null; where no other term is true, {_ERRS}.",
    ),
    Requirement(
        "holderIdentity",
        ('object.?spec.?holderIdentity.orValue("") != oldObject.?spec.?holderIdentity.orValue("")', _IDENTITY),
        "a steal or a takeover that also sets renewTime is never reviewed: the rule that matters most is off.",
    ),
    Requirement(
        "acquireTime",
        ("object.?spec.?acquireTime.orValue(null) != oldObject.?spec.?acquireTime.orValue(null)", _IDENTITY),
        "a renewal can carry an acquireTime of year 10000, after which JSON clients cannot read the lease.",
    ),
    Requirement(
        "leaseTransitions",
        ("object.?spec.?leaseTransitions.orValue(0) != oldObject.?spec.?leaseTransitions.orValue(0)",),
        "a renewal can set leaseTransitions to 2147483647, and the next takeover overflows.",
    ),
    Requirement(
        "strategy",
        (
            '(object.?spec.?strategy.orValue("") != "" && object.?spec.?strategy != oldObject.?spec.?strategy)',
            _COORDINATED,
        ),
        "a renewal can hand the lease to coordinated leader election, which then chooses the leader.",
    ),
    Requirement(
        "preferredHolder",
        (
            (
                '(object.?spec.?preferredHolder.orValue("") != ""'
                " && object.?spec.?preferredHolder != oldObject.?spec.?preferredHolder)"
            ),
            _COORDINATED,
        ),
        "a renewal can name a preferred holder, and the present leader gives up its lease.",
    ),
    Requirement(
        "leaseDurationSeconds",
        (
            (
                "(object.?spec.?leaseDurationSeconds.orValue(86401) > 86400"
                " && object.?spec.?leaseDurationSeconds != oldObject.?spec.?leaseDurationSeconds)"
            ),
        ),
        "a renewal can raise the duration to 68 years, or remove it and leave the lease open to a steal.",
    ),
    Requirement(
        "renewTime unchanged",
        ("object.?spec.?renewTime == oldObject.?spec.?renewTime",),
        "a write that is no renewal is dropped too, among them the ones that forge or wipe managedFields.",
    ),
    Requirement(
        "renewTime null",
        ("object.?spec.?renewTime.orValue(null) == null", _BOTH_BOUNDS),
        f"renewTime null or zero reaches a comparison, {_ERRS}: a way past duration-shortened.",
    ),
    Requirement(
        "old renewTime null",
        ("oldObject.?spec.?renewTime.orValue(null) == null", _BOTH_BOUNDS),
        f"the first renewal after renewTime was null or zero reaches a comparison, {_ERRS}.",
    ),
    Requirement(
        "renewTime before 1970",
        ('object.spec.renewTime < "1970"', _BOTH_BOUNDS),
        f"a renewTime of year 0 or below cannot be parsed: {_ERRS}.",
    ),
    Requirement(
        "renewTime after 2200",
        ('object.spec.renewTime > "2200"', _BOTH_BOUNDS),
        f"a renewTime of year 9999 or 10000 overflows the subtraction: {_ERRS}. Year 10000 kills JSON clients.",
    ),
    Requirement(
        "old renewTime before 1970",
        ('oldObject.spec.renewTime < "1970"', _BOTH_BOUNDS),
        f"the repair of a lease with a renewTime of year 0 or below cannot be parsed: {_ERRS}.",
    ),
    Requirement(
        "old renewTime after 2200",
        ('oldObject.spec.renewTime > "2200"', _BOTH_BOUNDS),
        f"the repair of a lease with a renewTime of year 9999 or 10000 overflows: {_ERRS}.",
    ),
    Requirement(
        "24 hours ahead",
        ('timestamp(object.spec.renewTime) - timestamp(oldObject.spec.renewTime) > duration("24h")',),
        "one renewal can move renewTime years ahead, and clients that trust it never take over from a dead leader.",
    ),
    Requirement(
        "managedFields emptied",
        ("(!has(object.metadata.managedFields) && has(oldObject.metadata.managedFields))",),
        "a renewal can wipe the API server's stamps for good, and takeovers can no longer be judged.",
    ),
    Requirement(
        "managedFields times",
        (
            (
                "(has(object.metadata.managedFields) && object.metadata.managedFields.exists(m,"
                " m.?time.orValue(null) != null && size(m.time) != 20))"
            ),
            "object.metadata.?managedFields.orValue([]).exists(m, m.?time.orValue(null) != null && size(m.time) != 20)",
        ),
        "a renewal can carry a managedFields entry of year 10000, after which JSON clients cannot read the lease.",
    ),
)
