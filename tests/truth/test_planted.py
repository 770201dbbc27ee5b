"""Planted defects of claims: each takes claims that are true and says something else, and must be noticed.

They are the ways in which claims were false before: the wrong process, the wrong time, the wrong way in which the
lease changed hands, what is over called ongoing, a cause that was not.
"""

from collections.abc import Callable, Mapping
from functools import cache

import pytest

from tests.truth.evaluation import claims_in
from tests.truth.facts import Facts
from tests.truth.plans import FaultKind
from tests.truth.planting import (
    Claim,
    Defect,
    check_noticed,
    find_true,
    move_instants,
    names_another,
    only,
    says,
    swap_value,
)
from tests.truth.predicates import PREDICATES
from tests.truth.records import Process
from webhook.kubernetes.times import SECOND, format_micro_time

pytestmark = pytest.mark.deep

WRITES = ("earliest", "latest")
_ENDING_PODS = {FaultKind.REPLACE, FaultKind.DUPLICATE, FaultKind.STOP, FaultKind.KILL}


@cache
def true_claims() -> Mapping[str, list[tuple[Claim, Facts]]]:
    """What `why` says that is true, by the kind of claim."""
    return find_true(range(60), claims_in, PREDICATES)


def blames(role_of: Callable[[Process], bool]) -> Defect:
    """A claim about a process that names another one, of which nothing of the kind is true."""

    def change(claim: Claim, facts: Facts) -> Claim | None:
        by = claim.get("by") or {}
        others = [one for one in facts.history.processes if one.uid and role_of(one) and one.uid != by.get("uid")]
        if not by.get("uid") or not others:
            return None
        other = others[0]
        named = {"user": other.user.name, "pod": other.pod, "uid": other.uid, "manager": "", "known": "process"}
        return claim | {"by": named}

    return change


def bystander(process: Process) -> bool:
    """Whether it is a process of another lease."""
    return process.lease not in ("", "shop/checkout")


def expired_long_before(claim: Claim, facts: Facts) -> bool:
    at = facts.earliest(claim, "earliest")
    return not facts.may_be_live(at - 3 * SECOND)


def renewed_before(claim: Claim, facts: Facts) -> bool:
    """Whether the one who was lost had renewed in the half minute before."""
    at = facts.earliest(claim, "from")
    own = (one for one in facts.writes if one.is_renewal and facts.is_own(one, claim["previous"]))
    return len([one for one in own if at - 20 * SECOND < one.at < at - 2 * SECOND]) > 2


def keeps_its_pod(claim: Claim, facts: Facts) -> bool:
    """Whether no fault may have ended or replaced a pod of the lost leader."""
    pods = {one.pod for one in facts.processes_of(claim["previous"])}
    return not any(one.kind in _ENDING_PODS and one.target in pods for one in facts.history.faults)


def asked_by_nobody(claim: Claim, facts: Facts) -> Claim | None:
    """A claim that says so of the last time that the lease was renewed, too."""
    renewal = facts.last_renewal
    if renewal is None or "how" in claim:
        return None
    return claim | {"identity": "", "from": format_micro_time(renewal.begin - 3 * SECOND)}


PLANTED: dict[str, tuple[str, Defect]] = {
    "the holder is somebody else": ("holder", names_another("identity")),
    "the holder has it since before it had": ("held-since", move_instants(-40, *WRITES)),
    "who wrote the holder in is a bystander": ("held-since", blames(bystander)),
    "the last renewal is in the future": ("last-renewed", move_instants(25, *WRITES)),
    "the last renewal is an earlier one": ("last-renewed", move_instants(-30, *WRITES)),
    "the last renewal is a bystander's": ("last-renewed", blames(bystander)),
    "the lease expires before it does": ("expires", move_instants(-12, "from")),
    "the lease was taken after a release, which it was not": (
        "taken",
        swap_value("how", after_expiry="after-release", while_live="after-release"),
    ),
    "a lease that had been released was stolen": ("taken", swap_value("how", after_release="while-live")),
    "a stolen lease had expired": ("taken", swap_value("how", while_live="after-expiry")),
    "an expired lease was stolen": (
        "taken",
        only(expired_long_before, swap_value("how", after_expiry="while-live")),
    ),
    "the lease was taken at another time": ("taken", move_instants(600, *WRITES)),
    "the lease was taken by a bystander": ("taken", blames(bystander)),
    "somebody else was written in": ("written-in", names_another("identity")),
    "a bystander wrote the holder in": ("written-in", blames(bystander)),
    "the holder released the lease, which another one did": ("released", swap_value("how", foreign="own")),
    "another one released the lease, which the holder did": ("released", swap_value("how", own="foreign")),
    "somebody else was removed": ("released", names_another("identity")),
    "the lease was stolen from somebody else": ("lease-stolen", names_another("previous")),
    "the lease was stolen at another time": ("lease-stolen", move_instants(600, *WRITES)),
    "a bystander's writes were refused": ("write-refused", blames(bystander)),
    "more writes were refused than were made": ("write-refused", says(count=1000)),
    "writes were refused for another reason": ("write-refused", says(code=418)),
    "more reads were refused than were made": ("read-refused", says(count=1000)),
    "nobody at all asked, while the holder renewed": ("no-candidate", asked_by_nobody),
    "who took it late is a bystander": ("taken-late", names_another("identity")),
    "more writes were stored differently than requested": ("stored-other-than-asked", says(count=1000)),
    "another value was asked for": ("stored-other-than-asked", says(asked="300.5")),
    "the lost leader is somebody else": ("leader-lost", names_another("identity")),
    "the leader was lost while it renewed": ("leader-lost", only(renewed_before, move_instants(-25, "from"))),
    "a leader was lost because it renews too seldom": ("leader-lost", says(cause="interval", causes=None)),
    "a leader was lost because its pod was deleted": (
        "leader-lost",
        only(keeps_its_pod, says(cause="pod-deleted", causes=None)),
    ),
    "a leader was late while it renewed": ("renewal-late", move_instants(-25, "from")),
    "a bystander is a second writer": ("second-writer", blames(bystander)),
    "a second writer wrote more often": ("second-writer", says(count=1000)),
    "somebody else was removed by another one": ("foreign-release", names_another("previous")),
    "somebody else held the deleted lease": ("lease-deleted", names_another("previous")),
    "the API server chose somebody else": ("chosen", names_another("identity")),
    "the API server chose at another time": ("chosen", move_instants(600, *WRITES)),
    "the lease expired while it was renewed": ("expired", move_instants(-30, "from")),
}


@pytest.mark.parametrize(("kind", "defect"), PLANTED.values(), ids=PLANTED)
def test_a_planted_defect_is_noticed(kind: str, defect: Defect) -> None:
    check_noticed(true_claims().get(kind, []), defect, PREDICATES[kind])
