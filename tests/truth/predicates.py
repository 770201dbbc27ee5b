"""What each claim means: a predicate over the truth, by the id of its kind.

A predicate gets the facts of a lease and a claim, and returns whether the claim is true. What a claim leaves out it
does not say. A claim that is a finding of `audit` has an example in `tests/audit/examples.py`.
"""

import json
from collections.abc import Callable, Iterator
from http import HTTPStatus
from itertools import pairwise
from typing import Final

from tests.model.api_server import Spec
from tests.truth.facts import SLACK, Claim, Facts, Write, is_process
from tests.truth.plans import Deed, Role
from tests.truth.records import END, Request
from tests.truth.stage import MILLISECOND, SECOND
from webhook.analysis.audit.leases import STORED_RULES
from webhook.kubernetes.times import parse

Predicate = Callable[[Facts, Claim], bool]
PREDICATES: Final[dict[str, Predicate]] = {}
UNCHECKED: Final = frozenset(STORED_RULES)
"""What no history can contradict: rules of stored objects."""
_LAST_RENEWALS: Final = 4
"""In which a writer's clock shows, where several write in turns."""
NOT_PLAYED: Final = frozenset({"holder-gone", "node-gone", "object-types", "write-fenced", "token-ahead", "token-old"})
"""Claims about pods, nodes, fences and objects of wrong types, of which histories have none."""
POINT: Final = 1050 * MILLISECOND
"""How far one instant may be off that stands for an interval: managedFields have whole seconds."""


def _predicate_of(name: str) -> Callable[[Predicate], Predicate]:
    """Return a decorator of the predicate of a claim."""

    def keep(predicate: Predicate) -> Predicate:
        PREDICATES[name] = predicate
        return predicate

    return keep


# ---- the state at the end -------------------------------------------------------------------------------------------


@_predicate_of("holder")
def _holder(facts: Facts, claim: Claim) -> bool:
    return facts.holder == (claim.get("identity") or "")


@_predicate_of("held-since")
def _is_held_since(facts: Facts, claim: Claim) -> bool:
    write = facts.placing(claim["identity"])
    return facts.holder == claim["identity"] and write is not None and _is_in(facts, claim, write)


@_predicate_of("last-renewed")
def _last_renewed(facts: Facts, claim: Claim) -> bool:
    renewals = [one for one in facts.writes if one.is_renewal and one.after.holder == claim["identity"]]
    last = facts.last_renewal
    if last is not None and _is_in(facts, claim, last):
        return True
    if not renewals:
        return False
    if claim.get("how") == "writer-clock":
        # What the writer's clock said is told as it said it, and by no clock of an API server.
        renewed = facts.spec.renewed
        return renewed is not None and parse(claim["earliest"]) <= renewed <= parse(claim["latest"])
    return _is_in(facts, claim, renewals[-1])


@_predicate_of("expires")
def _expires(facts: Facts, claim: Claim) -> bool:
    renewal, duration = facts.last_renewal, facts.spec.duration
    if renewal is None or duration is None:
        return True
    return facts.latest(claim, "from") >= renewal.begin + duration * SECOND


@_predicate_of("expired")
def _is_expired(facts: Facts, claim: Claim) -> bool:
    identity = claim.get("identity", facts.holder)
    if claim.get("how") == "writer-clock":
        renewed, duration = facts.spec.renewed, facts.spec.duration
        is_over = renewed is not None and duration is not None and renewed + duration * SECOND <= facts.now + POINT
        return facts.holder == identity and is_over
    begin, end = facts.inside(claim)
    if begin > end or "from" not in claim:
        return facts.holder == identity and not facts.is_surely_live_now
    return all(
        (spec.holder or "") == identity and not facts.is_surely_live(at)
        for at, spec, _ in _states_in(facts, begin, end)
    )


@_predicate_of("free")
def _free(facts: Facts, claim: Claim) -> bool:
    begin, end = facts.inside(claim)
    begin = begin if "from" in claim else END
    for at, spec, write in _states_in(facts, begin, end):
        is_held = bool(spec.holder) and not (write.is_shortened or spec.duration == 1)
        if is_held and facts.is_surely_live(at):
            return False
    return begin <= end or not facts.holder or facts.spec.duration == 1


@_predicate_of("never-held")
def _never_held(facts: Facts, _: Claim) -> bool:
    return not facts.holder and not any(one.puts for one in _list_writes_of_object(facts))


@_predicate_of("does-not-exist")
def _does_not_exist(facts: Facts, _: Claim) -> bool:
    return not facts.writes or not facts.writes[-1].is_there


@_predicate_of("renewal-interval")
def _renewal_interval(facts: Facts, claim: Claim) -> bool:
    gaps = [
        (later.end - earlier.begin, later.begin - earlier.end)
        for earlier, later in _renewals_in_turn(facts)
        if earlier.after.holder == later.after.holder
    ]
    if not gaps:
        return False
    limit = claim["seconds"] * SECOND + POINT
    return any(least <= limit for _, least in gaps)


# ---- holders one after another --------------------------------------------------------------------------------------


@_predicate_of("taken")
def _is_taken(facts: Facts, claim: Claim) -> bool:
    def is_it(write: Write) -> bool:
        is_named = write.puts == claim["identity"] and _is_after(facts, claim, write)
        return is_named and _is_how(facts, claim, write) and _is_within(facts, claim, write)

    return _has_happened(facts, claim, is_it)


def _is_within(facts: Facts, claim: Claim, write: Write) -> bool:
    """Return whether a holder followed at most so long after the removal, or the last renewal, of the one before.

    Until the request was received, as its stamp says: how long an API server then takes to store it, nothing shows.
    """
    seconds = claim.get("seconds")
    if seconds is None:
        return True
    is_released = claim.get("how") == "after-release"
    before = [one for one in facts.writes if one.at < write.at]
    ends = [one for one in before if (one.removes or one.is_shortened if is_released else one.is_renewal)]
    offsets = facts.history.plan.offsets
    slack = SLACK + (max(offsets) - min(offsets)) * MILLISECOND
    return not ends or write.begin - ends[-1].at <= seconds * SECOND + slack


def _is_after(facts: Facts, claim: Claim, write: Write) -> bool:
    previous = claim.get("previous")
    if not previous:
        return True
    return previous in (write.removes, _holder_before(facts, write))


def _holder_before(facts: Facts, write: Write) -> str:
    held = (one.after.holder for one in reversed(facts.writes) if one.at < write.at and one.after.holder)
    return next(held, "")


def _is_how(facts: Facts, claim: Claim, write: Write) -> bool:
    how = claim.get("how", "unknown")
    if how == "unknown":
        return True
    was_held = bool(write.removes)
    last = next((one for one in reversed(facts.writes) if one.at < write.at), None)
    if how == "created":
        return not write.was_there
    if how == "after-deletion":
        return not write.was_there and last is not None
    if how == "first":
        return not any(one.puts for one in facts.writes if one.at < write.at)
    if how == "after-release":
        return not was_held or write.before.duration == 1
    if how == "after-expiry":
        return was_held and not facts.is_surely_live(write.begin)
    if how == "while-live":
        return was_held and facts.may_be_live(write.begin)
    return False


@_predicate_of("written-in")
def _is_written_in(facts: Facts, claim: Claim) -> bool:
    def is_it(write: Write) -> bool:
        return write.puts == claim["identity"] and not facts.is_own(write, claim["identity"])

    return _has_happened(facts, claim, is_it)


@_predicate_of("released")
def _is_released(facts: Facts, claim: Claim) -> bool:
    identity = claim["identity"]

    def is_it(write: Write) -> bool:
        is_removal = write.removes == identity or (write.before.holder == identity and write.is_shortened)
        how = claim.get("how", "unknown")
        # A tenure is of the process that took it, whatever text that wrote.
        placed = facts.placing(identity, write.at)
        own = facts.is_own(write, identity) or (placed is not None and placed.process is write.process)
        return is_removal and (how == "unknown" or own == (how == "own"))

    return _has_happened(facts, claim, is_it)


# ---- processes ------------------------------------------------------------------------------------------------------


@_predicate_of("second-writer")
def _second_writer(facts: Facts, claim: Claim) -> bool:
    identity, by = claim["identity"], claim["by"]
    begin, end = facts.interval(claim, "from", "to")
    renewals = [
        one
        for one in facts.find_writes(begin, end, lambda write: write.is_renewal and write.after.holder == identity)
        if facts.is_by(by, one.request)
    ]
    if len(renewals) < claim.get("count", 1):
        return False
    if by.get("known") in ("process", "user") and all(_is_first(facts, one) for one in renewals):
        return False
    return _is_ongoing_as_said(facts, claim, renewals[-1].at)


@_predicate_of("holder-pod-deleted")
def _holder_pod_deleted(facts: Facts, claim: Claim) -> bool:
    at = facts.moment(claim["to"])
    of_holders = facts.processes_of(claim["identity"]) if "identity" in claim else facts.history.processes
    pods, requests = {one.uid for one in of_holders}, facts.history.requests
    accepted = (one for one in requests if one.kind == "Pod" and not one.refused)
    deletions = facts.history.pod_deletions if claim.get("how") != "unknown" else accepted
    near = (one for one in deletions if at.first - POINT <= one.answered <= at.last + POINT)
    user = claim["by"]["user"]
    return any(one.pod_uid in pods and one.user is not None and one.user.name == user for one in near)


@_predicate_of("related-write")
def _related_write(facts: Facts, claim: Claim) -> bool:
    at, (kind, _, path) = facts.moment(claim["to"]), claim["object"].partition(" ")
    near = (one for one in facts.history.requests if at.first - POINT <= one.answered <= at.last + POINT)
    wanted = [one for one in near if one.kind == kind and path in (one.name, f"{one.namespace}/{one.name}")]
    return any(one.user is not None and one.user.name == claim["by"]["user"] for one in wanted)


def _is_first(facts: Facts, write: Write) -> bool:
    """Return whether a writer took the lease as its identity."""
    identity = write.after.holder or ""
    placed = facts.placing(identity, write.at + 1)
    is_own = facts.is_own(write, identity)
    return is_own if placed is None else is_own and placed.process.writer == write.process.writer


def _is_ongoing_as_said(facts: Facts, claim: Claim, last: int) -> bool:
    if "ongoing" not in claim:
        return True
    if facts.holder != claim.get("identity", facts.holder):
        return not claim["ongoing"]
    duration = (facts.spec.duration or 15) * SECOND
    return bool(claim["ongoing"]) == (last > facts.now - duration) or abs(last - facts.now + duration) < 3 * SECOND


@_predicate_of("read-refused")
def _is_read_refused(facts: Facts, claim: Claim) -> bool:
    begin, end = facts.interval(claim, "from", "to")
    refused = [
        one
        for one in (*facts.requests, *facts.candidate_requests)
        if one.refused and one.verb == "get" and begin <= one.answered and one.received <= end
    ]
    by = claim.get("by") or {}
    own = [one for one in refused if not by.get("user") or is_process(by, facts.history.by_name[one.process])]
    count: int = claim["count"]
    return len([one for one in own if claim["code"] in (None, one.code)]) >= count


@_predicate_of("write-refused")
def _is_refused(facts: Facts, claim: Claim) -> bool:
    begin, end = facts.interval(claim, "from", "to")
    refused = [
        one
        for one in (*facts.requests, *facts.candidate_requests)
        if one.refused and one.verb not in ("get", "list") and begin <= one.answered and one.received <= end
    ]
    by = claim.get("by") or {}
    own = [one for one in refused if not by.get("user") or is_process(by, facts.history.by_name[one.process])]
    code = claim.get("code")
    count: int = claim.get("count", 1)
    return len([one for one in own if code in (None, 0, one.code)]) >= count


@_predicate_of("no-candidate")
def _no_candidate(facts: Facts, claim: Claim) -> bool:
    begin, end = facts.inside(claim)
    identity = claim.get("identity") or ""
    own = {one.writer for one in facts.processes_of(identity)}
    own |= {one.process.writer for one in facts.writes if one.after.holder == identity}
    asked = [one for one in facts.requests if begin < one.received and one.answered < end]
    if claim.get("how") == "writes":
        asked = [one for one in asked if one.verb not in ("get", "list")]
    return all(identity and facts.history.by_name[one.process].writer in own for one in asked)


@_predicate_of("silent-together")
def _is_silent_together(facts: Facts, claim: Claim) -> bool:
    begin, end = facts.interval(claim, "from", "to")
    until = facts.earliest(claim, "latest")
    last: dict[tuple[str, str], int] = {}
    for request in facts.requests:
        if request.received < until - SLACK:
            writer = facts.history.by_name[request.process].writer
            last[writer] = max(last.get(writer, 0), request.received)
    in_time = [at for at in last.values() if begin - SLACK <= at <= end + SLACK]
    return len(in_time) >= claim["count"] and max(last.values()) <= end + SLACK


@_predicate_of("taken-late")
def _taken_late(facts: Facts, claim: Claim) -> bool:
    begin, (first, last) = facts.latest(claim, "from"), facts.interval(claim, "to", "to")
    put = list(facts.find_writes(first - POINT, last + POINT, lambda write: write.puts == claim["identity"]))
    # A stamp says when the request that freed it came; a slow API server stores it later.
    freed = max([begin, *(one.end for one in facts.writes if one.begin <= begin + POINT and begin <= one.end)])
    if not put or facts.is_surely_live(freed + POINT):
        return False
    begin, end = facts.latest(claim, "earliest", 0), facts.earliest(claim, "latest", 0)
    own = [one for one in facts.requests if facts.history.by_name[one.process].writer == put[0].process.writer]
    is_silent = not any(begin + SLACK < one.received < end - SLACK for one in own)
    is_asking = any(facts.latest(claim, "from") < one.received for one in own)
    return {"silent": is_silent, "asking": is_asking}.get(claim["how"], True)


_TIME_FIELDS: Final = frozenset({"renewTime", "acquireTime"})


@_predicate_of("stored-other-than-asked")
def _is_stored_other_than_asked(facts: Facts, claim: Claim) -> bool:
    """Accepted writes after which another value stood than they asked for, also those that stored nothing new."""
    begin, end = facts.interval(claim, "from", "to")
    asking = (one for one in facts.requests if one.verb in ("create", "update"))
    accepted = [one for one in asking if not one.refused and one.after is not None]
    writes = [one for one in accepted if begin <= one.answered and one.received <= end and _differs(one, claim)]
    own = [one for one in writes if facts.is_by(claim.get("by"), one)]
    is_last = bool(own) and own[-1] is writes[-1] and _values_of(own[-1], claim["field"]) == _said_values(claim)
    if claim.get("ongoing") and is_last:
        later = [
            one for one in facts.writes if one.begin > own[-1].answered and one.request.verb in ("create", "update")
        ]
        return len(writes) >= claim["count"] and not later
    return is_last and len(writes) >= claim["count"]


def _said_values(claim: Claim) -> tuple[str, str]:
    return claim.get("asked", ""), claim.get("stored", "")


def _differs(request: Request, claim: Claim) -> bool:
    asked, stored = _values_of(request, claim["field"])
    if claim["field"] in _TIME_FIELDS and asked and stored:
        return abs(parse(asked) - parse(stored)) >= 2 * SECOND
    return asked != stored


def _values_of(request: Request, field: str) -> tuple[str, str]:
    """Return a field as a request asked for it, and as it was stored."""
    body, state = request.body, request.after
    asked = body.get("spec", {}).get(field) if body else None
    stored = json.loads(state.text)["spec"].get(field) if state else None
    return "" if asked is None else str(asked), "" if stored is None else str(stored)


# ---- coordinated elections ------------------------------------------------------------------------------------------


@_predicate_of("chosen")
def _is_chosen(facts: Facts, claim: Claim) -> bool:
    def is_it(write: Write) -> bool:
        is_hint = (claim.get("by") or {}).get("known") == "manager"
        return write.puts == claim["identity"] and (is_hint or write.process.role is Role.API_SERVER)

    return _has_happened(facts, claim, is_it)


@_predicate_of("candidates-not-served")
def _candidates_not_served(facts: Facts, claim: Claim) -> bool:
    at = facts.moment(claim["to"])
    near = (one for one in facts.history.requests if at.first - POINT <= one.answered <= at.last + POINT)
    return any(one.kind == "LeaseCandidate" and one.code == HTTPStatus.NOT_FOUND for one in near)


@_predicate_of("not-taken-up")
def _not_taken_up(facts: Facts, claim: Claim) -> bool:
    identity = claim.get("identity", facts.holder)
    if "to" not in claim:
        chosen = _find_choice(facts, identity)
        if chosen is None or facts.holder != identity:
            return False
        return not any(one.is_renewal and facts.is_own(one, identity) for one in facts.writes if one.at > chosen.at)
    (first, last), end = facts.interval(claim, "from", "from"), facts.earliest(claim, "to", END)
    near = [*facts.find_writes(first - SECOND - POINT, last + SECOND + POINT, lambda write: write.puts == identity)]
    if not near or not _may_be_choice(near[-1], claim):
        return False
    later = (one for one in facts.writes if near[-1].at < one.at <= end and one.after.holder == identity)
    return not any(one.is_renewal and facts.is_own(one, identity) for one in later)


def _may_be_choice(write: Write, claim: Claim) -> bool:
    """Return whether an API server made a choice, or a client under its field manager where only that is claimed."""
    is_hint = "as far as field managers show" in claim["text"]
    return write.process.role is Role.API_SERVER or (is_hint and write.process.manager == "kube-apiserver")


def _find_choice(facts: Facts, identity: str) -> Write | None:
    """Return the write of an API server that chose an identity last; None if another one put that there since.

    An API server moves renewTime only when it chooses. It may name who is there: a webhook gives all one name.
    """
    named = (one for one in reversed(facts.writes) if one.after.holder == identity)
    chosen = next((one for one in named if one.puts or (one.is_renewal and one.process.role is Role.API_SERVER)), None)
    return chosen if chosen is not None and chosen.process.role is Role.API_SERVER else None


@_predicate_of("election-stalled")
def _election_stalled(facts: Facts, claim: Claim) -> bool:
    spec = facts.spec
    is_live = facts.is_surely_live_now
    if claim.get("how") == "writer-clock":
        is_live = facts.now + POINT < (spec.renewed or 0) + (spec.duration or 0) * SECOND
    if not spec.preferred or is_live:
        return False
    return _names(claim, "identity", spec.preferred) and _names(claim, "previous", spec.holder)


@_predicate_of("preferred-holder-foreign")
def _preferred_holder_foreign(facts: Facts, claim: Claim) -> bool:
    def is_it(write: Write) -> bool:
        is_changed = (write.after.preferred or "") != (write.before.preferred or "")
        return (
            is_changed
            and write.process.role is not Role.API_SERVER
            and _names(claim, "identity", write.after.preferred)
        )

    return _has_happened(facts, claim, is_it)


# ---- causes ---------------------------------------------------------------------------------------------------------


def _is_cause(facts: Facts, claim: Claim, identity: str) -> bool:
    """Return whether the cause of a claim is one, or one of its causes is; a claim without any says nothing of it."""
    causes = set(claim.get("causes") or ([claim["cause"]] if claim.get("cause") else []))
    if not causes:
        return True
    begin = facts.earliest(claim, "from", facts.history.begin)
    end = facts.latest(claim, "to", facts.now)
    # It may have been silent for longer than the input shows.
    renewals = [one.at for one in facts.writes if one.is_renewal and one.after.holder == identity and one.at <= begin]
    begin = max(renewals, default=begin)
    # By clocks that differ the time may have begun later, and ended earlier.
    latest, earliest = facts.latest(claim, "from", begin), facts.earliest(claim, "to", end)
    if len(causes) > 1 and "stopped" in causes and not facts.has_writes(identity, latest + POINT, earliest - POINT):
        return True
    return bool(causes & facts.causes(identity, begin, end))


# ---- what went wrong ------------------------------------------------------------------------------------------------


@_predicate_of("leader-lost")
def _leader_lost(facts: Facts, claim: Claim) -> bool:
    previous = claim.get("previous") or claim.get("identity") or ""
    begin, end = facts.latest(claim, "from", 0), facts.earliest(claim, "to", facts.now)
    own = [
        one
        for one in facts.writes
        if one.is_renewal
        and one.after.holder == previous
        and one.before.holder == previous
        and facts.is_own(one, previous)
    ]
    if any(begin + POINT < one.begin and one.end < end - POINT for one in own):
        return False
    # Who was written in by another one, and not renewed by that, never held it.
    named = [one for one in facts.writes if one.after.holder == previous]
    takers = {one.process.writer for one in named if one.puts}
    if not any(facts.is_own(one, previous) or (not one.puts and one.process.writer in takers) for one in named):
        return False
    is_known = claim.get("how") != "unknown"
    is_again = previous == claim.get("identity")
    just_changed = _has_just_changed(facts, end, is_again=is_again)
    if is_known and facts.is_surely_live(min(end, facts.now)) and not just_changed:
        return False
    if not _is_cause(facts, claim, previous):
        return False
    taker = claim.get("identity") if claim.get("previous") else None
    if not taker:
        return True
    wide = facts.latest(claim, "to", facts.now)
    put = facts.find_writes(
        end - POINT, wide + POINT, lambda write: write.puts == taker or _is_again(write, previous, taker)
    )
    return any(not is_known or not facts.is_surely_live(one.begin) for one in put)


def _is_again(write: Write, previous: str, taker: str) -> bool:
    """Return whether a lease that had expired was renewed under the name that it had."""
    return previous == taker == write.after.holder and write.is_renewal


def _has_just_changed(facts: Facts, at: int, *, is_again: bool) -> bool:
    written = (one for one in facts.writes if one.puts or (is_again and one.is_renewal))
    return any(abs(one.at - at) < POINT + SLACK for one in written)


@_predicate_of("renewal-late")
def _renewal_late(facts: Facts, claim: Claim) -> bool:
    identity = claim["identity"]
    if claim.get("how") == "writer-clock":
        pairs = _renewals_in_turn(facts)
        times = {(one.after.renewed, after.after.renewed) for one, after in pairs if after.after.holder == identity}
        return (parse(claim["from"]), parse(claim["to"])) in times
    begin, end = facts.inside(claim)
    if any(spec.holder != identity for _, spec, _ in _states_in(facts, begin + POINT, end - POINT)):
        return False
    if facts.has_renewals(identity, begin + POINT, end - POINT):
        return False
    return _is_cause(facts, claim, identity)


@_predicate_of("lease-stolen")
def _lease_stolen(facts: Facts, claim: Claim) -> bool:
    def is_it(write: Write) -> bool:
        if write.removes != claim["previous"] or not _names(claim, "identity", write.after.holder):
            return False
        return claim.get("severity") != "error" or facts.may_be_live(write.begin)

    return _has_happened(facts, claim, is_it)


@_predicate_of("lease-contended")
def _lease_contended(facts: Facts, claim: Claim) -> bool:
    names = {claim["identity"], claim["previous"]}
    begin, end = facts.earliest(claim, "from") - POINT, facts.latest(claim, "to") + POINT
    taken = [one for one in facts.writes if begin <= one.at <= end and {one.puts, one.removes} == names]
    least: int = claim["count"]
    return len([one for one in taken if facts.may_be_live(one.begin)]) >= least


@_predicate_of("handed-over")
def _handed_over(facts: Facts, claim: Claim) -> bool:
    def is_it(write: Write) -> bool:
        previous = claim["previous"]
        is_replaced = write.removes == previous and _names(claim, "identity", write.after.holder)
        # Who alone wrote a name, and renewed under it, is its process as far as anyone can tell: it may lead.
        under_it = [one for one in facts.writes if one.at < write.at and one.after.holder == previous]
        is_writer = len(under_it) > 1 and all(one.process is write.process for one in under_it)
        return is_replaced and (is_writer or facts.is_own(write, previous))

    return _has_happened(facts, claim, is_it)


@_predicate_of("foreign-release")
def _foreign_release(facts: Facts, claim: Claim) -> bool:
    previous = claim["previous"]
    return _has_happened(facts, claim, lambda write: _is_removal(write, previous) and not facts.is_own(write, previous))


@_predicate_of("holder-removed")
def _holder_removed(facts: Facts, claim: Claim) -> bool:
    if claim.get("how") == "unknown":
        return _has_happened(facts, claim, lambda write: _is_removal(write, claim["previous"]))
    # By clocks that differ it may be any of several instants: the renewal before the removal was not after it.
    at = facts.latest(claim, "earliest")

    def may_be_live(removal: Write) -> bool:
        renewals = [one.end for one in facts.writes if one.is_renewal and one.at < removal.at]
        return facts.may_be_live(min(removal.at, max([at, *renewals[-1:]])))

    return _has_happened(facts, claim, lambda write: _is_removal(write, claim["previous"]) and may_be_live(write))


def _is_removal(write: Write, identity: str) -> bool:
    return write.removes == identity or (write.before.holder == identity and write.is_shortened)


@_predicate_of("lease-deleted")
def _lease_deleted(facts: Facts, claim: Claim) -> bool:
    return _has_happened(
        facts, claim, lambda write: not write.is_there and _names(claim, "previous", write.before.holder)
    )


@_predicate_of("identity-shared")
def _identity_shared(facts: Facts, claim: Claim) -> bool:
    identity = claim["identity"]
    begin, end = facts.interval(claim, "from", "to")
    if claim.get("severity") == "warning":
        there = [one for one in facts.processes_of(identity) if any(span.meets(begin, end) for span in one.alive)]
        if len({one.uid for one in there}) > 1:
            return True
    renewals = [*facts.find_writes(begin, end, lambda write: write.is_renewal and write.after.holder == identity)]
    last_by = {(one.process.user.name, one.process.uid): one.at for one in renewals}
    if len(last_by) < 2:
        return False
    return _is_ongoing_as_said(facts, claim, sorted(last_by.values())[-2])


@_predicate_of("holder-replaced")
def _holder_replaced(facts: Facts, claim: Claim) -> bool:
    identity = claim["identity"]
    begin, end = facts.interval(claim, "from", "to")
    writers = [
        one.process.uid
        for one in facts.find_writes(begin - POINT, end + POINT, lambda write: write.after.holder == identity)
    ]
    return len(set(writers)) > 1


@_predicate_of("lease-shared")
def _lease_shared(facts: Facts, _: Claim) -> bool:
    users = {one.process.user.name for one in facts.writes}
    managers = {one.process.manager for one in facts.writes}
    return len(users) > 1 or len(managers) > 1


@_predicate_of("clusters-mixed")
def _clusters_mixed(_: Facts, __: Claim) -> bool:
    return False


# ---- stored objects -------------------------------------------------------------------------------------------------


@_predicate_of("abandoned")
def _is_abandoned(facts: Facts, _: Claim) -> bool:
    renewal = facts.last_renewal
    spec = facts.spec
    if spec.renewed is not None and facts.now - spec.renewed > 86_400 * SECOND:
        return True
    return renewal is not None and facts.now - renewal.end > 86_400 * SECOND


@_predicate_of("holder-clock")
def _holder_clock(facts: Facts, _: Claim) -> bool:
    renewals = [one for one in facts.writes if one.is_renewal]
    own = [one for one in renewals if facts.is_own(one, facts.holder)]
    latest = (*renewals[-_LAST_RENEWALS:], *own[-_LAST_RENEWALS:])
    if any(abs((one.after.renewed or 0) - one.request.stamp_clock) > SECOND for one in latest):
        return True
    renewed, state = facts.spec.renewed or 0, facts.writes[-1].request.after
    lease = state.lease if state else None
    dated = [lease.written, *(one.time for one in lease.entries if "renewed" in one.fields)] if lease else []
    return any(at is not None and abs(renewed - at) > SECOND for at in dated)


@_predicate_of("acquire-time-foreign")
def _acquire_time_foreign(facts: Facts, claim: Claim) -> bool:
    writes = _list_writes_of_object(facts)
    naming = [one.at for one in writes if one.after.holder != one.before.holder]
    dating = [one.at for one in writes if one.after.acquired != one.before.acquired]
    return naming[-1:] != dating[-1:] or _stamp_tampered(facts, claim)


@_predicate_of("timing-tight")
def _timing_tight(facts: Facts, _: Claim) -> bool:
    duration = facts.spec.duration or 0
    renewals = [one.at for one in facts.writes if one.is_renewal]
    intervals = sorted(after - before for before, after in pairwise(renewals))
    return duration < 60 or (bool(intervals) and intervals[len(intervals) // 2] >= duration * SECOND)


@_predicate_of("lease-without-stamps")
def _lease_without_stamps(facts: Facts, _: Claim) -> bool:
    state = facts.writes[-1].request.after if facts.writes else None
    entries = state.lease.entries if state and state.lease else ()
    return not any("renewed" in one.fields for one in entries)


@_predicate_of("frozen")
def _is_frozen(facts: Facts, claim: Claim) -> bool:
    until = facts.earliest(claim, "to", END)
    later = (one for one in facts.history.writes(facts.key) if facts.now < (one.stored_at or 0) < until)
    taken = (one.after.lease.spec.holder for one in later if one.after and one.after.lease)
    return all(one == claim["identity"] for one in taken)


@_predicate_of("heartbeat-silent")
def _heartbeat_silent(facts: Facts, _: Claim) -> bool:
    return not facts.is_surely_live_now


@_predicate_of("stamp-missing")
def _stamp_missing(facts: Facts, _: Claim) -> bool:
    state = facts.writes[-1].request.after if facts.writes else None
    return state is not None and state.lease is not None and state.lease.written is None


@_predicate_of("renewal-stamp-tampered")
def _stamp_tampered(facts: Facts, _: Claim) -> bool:
    return any(
        step.deed is Deed.FORGE_STAMPS and any(one.process.name == outsider.name for one in facts.writes)
        for outsider in facts.history.plan.outsiders
        for step in outsider.steps
    )


@_predicate_of("candidate-strategy-conflict")
def _strategy_conflict(_: Facts, __: Claim) -> bool:
    return False


# ---- what they share ------------------------------------------------------------------------------------------------


def _has_happened(facts: Facts, claim: Claim, when: Callable[[Write], bool]) -> bool:
    """Return whether a write of a kind may be in the interval of a claim, and by whom the claim says."""
    begin, end = facts.interval(claim)
    return any(facts.is_by(claim.get("by"), one.request) for one in facts.find_writes(begin, end, when))


def _is_in(facts: Facts, claim: Claim, write: Write) -> bool:
    begin, end = facts.interval(claim)
    return write.begin <= end and begin <= write.end and facts.is_by(claim.get("by"), write.request)


def _names(claim: Claim, key: str, value: str | None) -> bool:
    """Return whether a claim names a value, or leaves it out."""
    return claim.get(key) in (None, "", value)


def _states_in(facts: Facts, begin: int, end: int) -> Iterator[tuple[int, Spec, Write]]:
    """Yield what was surely stored in a time: since when of it, what, and the write that stored it."""
    for first, last, spec, write in facts.stretches():
        if max(first, begin) < min(last, end):
            yield max(first, begin), spec, write


def _list_writes_of_object(facts: Facts) -> list[Write]:
    """Return the writes of the object that is there now."""
    writes: list[Write] = []
    for write in facts.writes:
        writes = [*writes, write] if write.was_there else [write]
    return writes


def _renewals_in_turn(facts: Facts) -> list[tuple[Write, Write]]:
    renewals = [one for one in facts.writes if one.is_renewal]
    return list(pairwise(renewals))


def _add_renewal(before: Spec, after: Spec) -> Spec:
    return Spec(
        holder=before.holder,
        duration=before.duration,
        acquired=before.acquired,
        renewed=after.renewed,
        transitions=before.transitions,
        strategy=before.strategy,
        preferred=before.preferred,
    )
