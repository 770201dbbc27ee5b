"""When what `timeline`, tables and metrics show is true: a predicate over the truth for each kind of statement.

A statement about an instant may be off by a second, as stamps are. A state that is shown from one instant to another
one is false if it surely was not so at some moment in between, at least that far from both.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from msgspec.json import decode

from tests.model.api_server import Spec
from tests.truth.facts import NOTHING, SLACK, Claim, Facts, Write, is_released
from tests.truth.plans import Role
from tests.truth.predicates import POINT, PREDICATES, Predicate
from tests.truth.records import END, Process, Span, subtract_spans
from tests.truth.shown import LATEST
from tests.truth.stage import SECOND
from webhook.admission.rules.expiry import date_last_renewal
from webhook.admission.rules.holders import fits_pod
from webhook.admission.rules.stamps import NAMES, is_constant
from webhook.analysis.claims.words import describe_writer, format_name
from webhook.analysis.history.holders.tenure import Handover
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.managed_fields import list_entries
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import format_micro_time, parse, parse_stamp

SHOWN: Final[dict[str, Predicate]] = {}
NOT_RECORDED: Final = "a time that was not recorded"
"""A mark of what happened by then."""


def _predicate_of(*names: str) -> Callable[[Predicate], Predicate]:
    def keep(predicate: Predicate) -> Predicate:
        SHOWN.update(dict.fromkeys(names, _by_either_clock(predicate)))
        return predicate

    return keep


def _by_either_clock(predicate: Predicate) -> Predicate:
    """Return a predicate that believes what is said to be by writers' clocks if a writer said it."""

    def is_so(facts: Facts, claim: Claim) -> bool:
        return predicate(facts, claim) or (claim.get("clock") == "writer" and _is_claimed(facts, claim))

    return is_so


def _is_claimed(facts: Facts, claim: Claim) -> bool:
    """Return whether a writer set the clock of a lease to an instant that is shown, or held it, as is shown."""
    specs = [one.after for one in facts.writes]
    if claim["claim"] in ("timeline-held", "timeline-overdue"):
        return any(_is_of(facts, one, claim["identity"]) for one in specs)
    if claim["claim"] == "timeline-renewal":
        return any(one.renewed is not None and abs(one.renewed - parse(claim["at"])) < POINT for one in specs)
    return "at" in claim or "from" in claim


# ---- spans ----------------------------------------------------------------------------------------------------------


def _inside(facts: Facts, claim: Claim) -> tuple[int, int]:
    """Return the time throughout which something is shown to be so, as narrow as possible."""
    begin, end = facts.inside(claim)
    if not claim.get("is_logged"):
        # A stamp says when a request came; a slow API server stores it later.
        begin = max((one.end for one in facts.writes if one.begin <= begin + POINT and begin <= one.end), default=begin)
    # What a first state says of the time before it is not evaluated.
    return max(begin, facts.latest(claim, "seen_from", 0)) + POINT, end - POINT


def _states(facts: Facts, claim: Claim) -> Iterator[tuple[int, int, Spec, Write]]:
    """Yield what was surely stored in a time that is shown: from when to when, what, and the write."""
    begin, end = _inside(facts, claim)
    if facts.writes and begin < min(facts.writes[0].begin, end):
        yield begin, min(facts.writes[0].begin, end), NOTHING, facts.writes[0]
    for first, last, spec, write in facts.stretches():
        if max(first, begin) < min(last, end):
            yield max(first, begin), min(last, end), spec, write


def _is_of(facts: Facts, spec: Spec, identity: str) -> bool:
    """Return whether a stored holder is who is shown: its identity, or its pod or user where a log hides that."""
    holder = spec.holder or ""
    if holder == identity:
        return True
    return bool(holder) and (
        fits_pod(holder, identity) or any(identity in _names(one) for one in facts.processes_of(holder))
    )


def _names(process: Process) -> tuple[str, str]:
    return process.pod, Writer(process.user.name).name


@_predicate_of("timeline-held")
def _held(facts: Facts, claim: Claim) -> bool:
    """The holder has the lease, and has renewed it within its duration."""
    for first, last, spec, write in _states(facts, claim):
        if not _is_of(facts, spec, claim["identity"]) or is_released(spec):
            return False
        # What managedFields date, as of a write that only a read shows, may have been a second earlier, and not before
        # it was stored.
        is_logged = claim["is_logged"] and not any(begin <= write.at < end for begin, end in claim["hidden"])
        if not facts.may_be_live(max(first, last - (1 if is_logged else POINT))):
            return False
    return _is_written(facts, claim)


def _is_written(facts: Facts, claim: Claim) -> bool:
    """Return whether a writer, and a field manager, that are shown wrote the lease: the holder's, whenever it wrote."""
    writes = facts.writes
    texts = {text for one in writes for text in _writers(one.process)}
    is_own = all(one in texts for one in claim["writer"].split(" and ")) if claim["writer"] else True
    return is_own and (not claim["manager"] or claim["manager"] in set(_managers(writes)))


def _managers(writes: Sequence[Write]) -> Iterator[str]:
    """Yield the field managers that wrote the lease, and those that somebody who sent managedFields named there."""
    for write in writes:
        yield write.process.manager
        state = write.request.after
        yield from (entry.manager for entry in (state.lease.entries if state and state.lease else ()))


def _writers(process: Process) -> Iterator[str]:
    """Yield how a process is called: a log names its pod, a stamp the uid of that."""
    yield describe_writer(Writer(process.user.name, process.pod if process.uid else ""))
    yield describe_writer(Writer(process.user.name, uid=process.uid))


@_predicate_of("timeline-overdue")
def _overdue(facts: Facts, claim: Claim) -> bool:
    """It still names the holder, and was last renewed longer ago than it lasts."""
    for first, _, spec, _ in _states(facts, claim):
        if not _is_of(facts, spec, claim["identity"]) or facts.is_surely_live(first):
            return False
    return True


@_predicate_of("timeline-chosen")
def _chosen(facts: Facts, claim: Claim) -> bool:
    """It names who was chosen, and that has not renewed it."""
    if facts.has_renewals(claim["identity"], *_inside(facts, claim)):
        return False
    return all(_is_of(facts, spec, claim["identity"]) for _, _, spec, _ in _states(facts, claim))


@_predicate_of("timeline-leaderless")
def _leaderless(facts: Facts, claim: Claim) -> bool:
    """It names no one, or who has released it, or does not exist."""
    return not any(
        spec.holder and spec.duration != 1 and facts.is_surely_live(first)
        for first, _, spec, _ in _states(facts, claim)
    )


@_predicate_of("timeline-never-held")
def _never_held(facts: Facts, claim: Claim) -> bool:
    return not any(spec.holder for _, _, spec, _ in _states(facts, claim)) and not _was_put(
        facts, claim, _inside(facts, claim)[1]
    )


@_predicate_of("timeline-frozen")
def _frozen(facts: Facts, claim: Claim) -> bool:
    return all(_is_of(facts, spec, claim["identity"]) for _, _, spec, _ in _states(facts, claim))


@_predicate_of("timeline-removed")
def _removed(facts: Facts, claim: Claim) -> bool:
    """It names no one, or who has released it."""
    return not any(spec.holder and spec.duration != 1 for _, _, spec, _ in _states(facts, claim))


@_predicate_of("timeline-written")
def _written(facts: Facts, claim: Claim) -> bool:
    """It was written by the one that is shown, first at the beginning."""
    at = facts.moment(claim["from"])
    near = facts.find_writes(
        at.first - POINT, at.last + POINT, lambda write: claim["identity"] in _names(write.process)
    )
    is_asked = any(near) or _is_asked(facts, {**claim, "at": claim["from"]})
    return is_asked and _is_written(facts, claim)


@_predicate_of("timeline-unrecorded")
def _unrecorded(facts: Facts, claim: Claim) -> bool:
    """The input lacks a part of that time, or is a log that has nothing for long; or what the text says is so."""
    begin, end = facts.earliest(claim, "from"), facts.latest(claim, "to")
    # What nothing dates may come after the moment that is shown.
    last = facts.now if claim["is_open"] else end
    if "is named as its holder" in claim["text"]:
        return all(_is_of(facts, spec, claim["identity"]) for _, _, spec, _ in _states(facts, claim))
    if "renewed without a holder" in claim["text"]:
        renewed = facts.find_writes(begin - POINT, last + POINT, lambda one: one.is_renewal and not one.after.holder)
        return any(True for _ in renewed)
    if "it may have expired before" in claim["text"]:
        changes = facts.find_writes(0, facts.now + POINT, lambda one: bool(one.puts) or _is_lengthened(one))
        return not facts.is_surely_live(last) or any(one.end >= begin - POINT for one in changes)
    if " took it in this time" in claim["text"]:
        taken = facts.find_writes(begin - POINT, last + POINT, lambda write: write.puts == claim["identity"])
        return any(True for _ in taken)
    if "in this time" in claim["text"]:
        ends = facts.find_writes(begin - POINT, last + POINT, lambda write: bool(write.removes) or not write.is_there)
        return any(True for _ in ends)
    if claim["is_logged"] or claim["from"] == claim["to"]:
        return True
    first, latest = facts.interval(claim, "to", "to")
    if any(True for _ in facts.find_writes(first - POINT, latest + POINT, _is_retaken)):
        return True  # by its own count another one held it, and a watch does not show that it is whole
    return any(since <= last + POINT and begin <= until for since, until in claim["hidden"])


def _is_lengthened(write: Write) -> bool:
    return (write.after.duration or 0) > (write.before.duration or 0)


def _is_retaken(write: Write) -> bool:
    """Return whether a holder says that it took the lease, which named it already, by another acquireTime."""
    is_same = bool(write.after.holder) and write.after.holder == write.before.holder
    return is_same and write.after.acquired != write.before.acquired


@_predicate_of("timeline-several", "timeline-problem")
def _never(_: Facts, __: Claim) -> bool:
    return False


# ---- times without a leader -----------------------------------------------------------------------------------------


@_predicate_of("timeline-gap")
def _gap(facts: Facts, claim: Claim) -> bool:
    """It was not renewed, or named no one, for as long as the caption says.

    A bound says no more than that: whether it was renewed meanwhile, spans say.
    """
    begin, end = facts.latest(claim, "from", 0), facts.earliest(claim, "to", facts.now)
    is_bound = "for up to" in claim["text"]
    if not is_bound and facts.has_renewals(claim["identity"], begin + POINT, end - POINT):
        return False
    if "no leader" in claim["text"]:
        return bool(_unled_time(facts, begin, end) <= claim["seconds"] * SECOND + 2 * POINT + facts.spread)
    return True


def _unled_time(facts: Facts, begin: int, end: int) -> int:
    """Return for how long no process worked as the leader."""
    lease = f"{facts.namespace}/{facts.name}"
    own = [one for one in facts.history.processes if one.lease == lease and one.works]
    works = [span for one in own for span in (*one.works, *one.paused)]
    return sum(one.end - one.begin for one in subtract_spans([Span(begin, end)], works)) if begin < end else 0


@_predicate_of("timeline-silent")
def _silent(facts: Facts, claim: Claim) -> bool:
    """The holder did not renew it, after its last renewal."""
    return not facts.has_renewals(claim["identity"], *_inside(facts, claim))


@_predicate_of("timeline-contested")
def _contested(facts: Facts, claim: Claim) -> bool:
    """It was taken while it was live, at the beginning."""
    return _mark_of_taking("while-live")(facts, {**claim, "at": claim["from"], "is_dated": True})


# ---- marks ----------------------------------------------------------------------------------------------------------


def _around(facts: Facts, claim: Claim) -> tuple[int, int]:
    """Return the time in which what is marked happened."""
    at = facts.moment(claim["at"])
    return at.first - POINT, at.last + POINT if claim["is_dated"] else END


def _marked(facts: Facts, claim: Claim) -> dict[str, Any]:
    """Return a mark as a claim about an interval."""
    at = parse(claim["at"])
    earliest = {} if NOT_RECORDED in claim["text"] else {"earliest": format_micro_time(at - POINT)}
    latest = {"latest": format_micro_time(at + POINT)} if claim["is_dated"] else {}
    return {"identity": claim["identity"], **earliest, **latest}


def _mark_of_taking(how: str) -> Predicate:
    def is_so(facts: Facts, claim: Claim) -> bool:
        clause = claim["text"].partition(" (")[0].partition(";")[0]
        is_first = clause.endswith((" wrote it", " wrote it from then on"))
        if is_first or not any(one.holder == claim["identity"] for one in _specs(facts)):
            return _is_first_write(facts, claim)
        taken = PREDICATES["taken"](facts, {**_marked(facts, claim), "how": how})
        return taken or (how == "after-expiry" and _is_taken_again(facts, claim))

    return is_so


def _is_taken_again(facts: Facts, claim: Claim) -> bool:
    """Return whether another process renewed it, when it had expired, under the name that it had."""
    begin, end = _around(facts, claim)
    renewals = facts.find_writes(begin, end, lambda write: write.is_renewal and write.after.holder == claim["identity"])
    name, text = claim["identity"], claim["text"]
    is_named = f"after {name} let it expire" in text or f"had expired with {name} in it" in text
    return is_named and any(not facts.is_surely_live(one.begin) for one in renewals)


def _specs(facts: Facts) -> Iterator[Spec]:
    yield from (one.after for one in facts.writes)


def _is_first_write(facts: Facts, claim: Claim) -> bool:
    """Return whether who stands in for a holder, which a log hides, wrote then."""
    begin, end = _around(facts, claim)
    written = facts.find_writes(begin, end, lambda _: True)
    return any(claim["identity"] in _names(one.process) for one in written) or _is_asked(facts, claim)


_predicate_of("timeline-steal")(_mark_of_taking("while-live"))
_predicate_of("timeline-takeover-by-expiry")(_mark_of_taking("after-expiry"))
_predicate_of("timeline-takeover-by-release")(_mark_of_taking("after-release"))
_predicate_of("timeline-takeover")(_mark_of_taking("unknown"))
_predicate_of("timeline-claim")(_mark_of_taking("first"))


@_predicate_of("timeline-created")
def _created(facts: Facts, claim: Claim) -> bool:
    begin, end = _around(facts, claim)
    return any(
        not claim["identity"] or _is_of(facts, one.after, claim["identity"]) or claim["identity"] in _names(one.process)
        for one in facts.find_writes(begin, end, lambda write: not write.was_there)
    )


@_predicate_of("timeline-deleted")
def _deleted(facts: Facts, claim: Claim) -> bool:
    begin, end = _around(facts, claim)
    return any(facts.find_writes(begin, end, lambda write: not write.is_there))


@_predicate_of("timeline-release")
def _release(facts: Facts, claim: Claim) -> bool:
    begin, end = _around(facts, claim)
    text = claim["text"]
    for write in facts.find_writes(begin, end, lambda write: bool(write.removes) or write.is_shortened):
        identity = write.removes or write.before.holder or ""
        if format_name(identity) not in text:
            continue
        is_hint = "as far as field managers show" in text and _is_of_manager(facts, write, identity)
        is_told_own = " released it" in text and "or was removed" not in text and not is_hint
        if is_told_own and not facts.is_own(write, identity):
            continue
        if (
            " removed " in text
            and text.endswith(" as the holder")
            and " was removed" not in text
            and facts.is_own(write, identity)
        ):
            continue
        return True
    return False


def _is_of_manager(facts: Facts, write: Write, identity: str) -> bool:
    """Return whether a write has a field manager by which the lease was renewed under an identity; anyone may."""
    renewals = (one for one in facts.writes if one.is_renewal and one.after.holder == identity)
    return write.process.manager in {one.process.manager for one in renewals}


@_predicate_of("timeline-late")
def _late(facts: Facts, claim: Claim) -> bool:
    """No renewal by its process came before the one that is marked, for longer than most clients try."""
    at = facts.moment(claim["at"])
    shortest = min([15, *(one.duration for one in _specs(facts) if one.duration and one.duration > 1)])
    begin = at.last - shortest * SECOND * 2 // 3 + POINT
    return not facts.has_renewals(claim["identity"], begin, at.first - POINT)


@_predicate_of("timeline-identity-shared")
def _shared(facts: Facts, claim: Claim) -> bool:
    named = [one for one in facts.writes if one.is_renewal and one.after.holder == claim["identity"]]
    return len({one.process.writer for one in named}) > 1


@_predicate_of("timeline-denied", "timeline-failed")
def _refused(facts: Facts, claim: Claim) -> bool:
    begin, end = _around(facts, claim)
    refused = (one for one in facts.requests if one.refused and begin <= one.answered and one.received <= end)
    return any(f"was answered with {one.code}" in claim["text"] for one in refused)


@_predicate_of("timeline-slow")
def _slow(facts: Facts, claim: Claim) -> bool:
    begin, end = _around(facts, claim)
    answered = (one for one in facts.requests if begin <= one.answered and one.received <= end)
    return any(one.answered - one.received >= SECOND - SLACK for one in answered)


@_predicate_of("timeline-edit")
def _edit(facts: Facts, claim: Claim) -> bool:
    begin, end = _around(facts, claim)
    return any(facts.find_writes(begin, end, lambda write: write.was_there and write.is_there))


@_predicate_of("timeline-forged-stamps")
def _forged(facts: Facts, claim: Claim) -> bool:
    return PREDICATES["renewal-stamp-tampered"](facts, claim)


# ---- renewals, and numbers ------------------------------------------------------------------------------------------


@_predicate_of("timeline-renewal")
def _renewal(facts: Facts, claim: Claim) -> bool:
    at = facts.moment(claim["at"])
    is_written = claim["is_hidden"] and _is_asked(facts, claim)
    return is_written or any(facts.find_writes(at.first - POINT, at.last + POINT, lambda write: write.is_renewal))


@_predicate_of("timeline-renewals")
def _renewals(facts: Facts, claim: Claim) -> bool:
    """No more of them are drawn than there were; a log without objects shows writes."""
    return bool(claim["is_hidden"] or claim["count"] <= len([one for one in facts.writes if one.is_renewal]))


def _changes(facts: Facts) -> int:
    """Return how often another text than the one before was put there, whatever was in between."""
    holders = [one.after.holder for one in facts.writes if one.after.holder]
    return len([one for before, one in pairwise(holders) if one != before])


@_predicate_of("timeline-handovers", "row-changes")
def _handovers(facts: Facts, claim: Claim) -> bool:
    """A page counts those up to its end: a writer's clock that is ahead may date one after that.

    Where only writers are shown, who renews stands for the holder: two may use one name. A holder that counts a
    transition and says that it took the lease, which named it already, may have lost it meanwhile.
    """
    count, is_whole = _changes(facts), claim["is_whole"] and claim.get("clock") != "writer"
    count = max(count, _changes_of_writer(facts)) if claim.get("are_writers") else count
    most = count + sum(_is_retaken(one) and _counts_more(one) for one in facts.writes)
    return bool(count <= claim["count"] <= most if is_whole else claim["count"] <= most)


def _counts_more(write: Write) -> bool:
    return (write.after.transitions or 0) > (write.before.transitions or 0)


def _changes_of_writer(facts: Facts) -> int:
    """Return how often another process than the one before wrote it, an API server or one that patches it aside."""
    plain = (one for one in facts.writes if one.is_there and one.process.role is Role.ELECTOR)
    return len([one for before, one in pairwise(plain) if one.process.writer != before.process.writer])


@_predicate_of("json-handovers", "metric-handovers")
def _handovers_of_kind(facts: Facts, claim: Claim) -> bool:
    """No kind has more of them than there were writes by which a holder took it, or of one that replaced another pod.

    A holder may take it again under the name that is there.
    """
    count: float = claim.get("count", claim.get("value", 0))
    if claim.get("how") == Handover.REPLACED:
        return count <= _replacements(facts)
    taken = [one for one in facts.writes if one.puts or _is_retaken(one)]
    return count <= len(taken) + len(_list_successions_under_one_name(facts)) + 1


def _list_successions_under_one_name(facts: Facts) -> list[Write]:
    """Return the renewals of an expired lease by another process than the one before, under its name."""
    named = [one for one in facts.writes if one.is_renewal and one.after.holder]
    return [
        one
        for before, one in pairwise(named)
        if one.after.holder == before.after.holder
        and one.process.writer != before.process.writer
        and not facts.is_surely_live(one.begin)
        and not _is_retaken(one)
    ]


def _replacements(facts: Facts) -> int:
    """Return how often another process renewed it than the one before, under the same name."""
    named = [(one.after.holder, one.process.writer) for one in facts.writes if one.is_renewal and one.after.holder]
    return len([one for before, one in pairwise(named) if one[0] == before[0] and one[1] != before[1]])


@_predicate_of("timeline-duration", "row-duration", "json-duration", "metric-duration-seconds")
def _duration(facts: Facts, claim: Claim) -> bool:
    duration = claim.get("seconds", claim.get("value"))
    return duration in {one.duration for one in _specs(facts)}


@_predicate_of("row-usual")
def _usual(facts: Facts, claim: Claim) -> bool:
    """For a log without objects, the table shows who wrote the lease last, and how often that writer does."""
    if claim.get("are_writers"):
        writers = {one.process.writer for one in facts.writes}
        # Of two that write in turn, each one's writes are as far apart as if it were alone.
        own = [[one for one in facts.writes if one.process.writer == writer] for writer in writers]
        gaps = [later.begin - earlier.end for writes in own for earlier, later in pairwise(writes)]
        return any(gap <= claim["seconds"] * SECOND + POINT for gap in gaps)
    return PREDICATES["renewal-interval"](facts, claim)


# ---- the state at the end -------------------------------------------------------------------------------------------


@_predicate_of("row-state", "json-state")
def _state(facts: Facts, claim: Claim) -> bool:
    """By the API servers' clocks; where only the writer's dates it, by renewTime alone."""
    spec, state = facts.spec, claim["state"]
    if state == "unknown":
        return True
    if state == "frozen":
        return PREDICATES["frozen"](facts, {"identity": facts.holder})
    if state == "never-held":
        return not facts.holder and not _was_put(facts, claim, facts.now)
    if state == "released":
        return not facts.holder or spec.duration == 1
    if claim["dated"] in _BY_STATE:
        # By the one clock that shows both, when it is evaluated and when it was renewed.
        expires, now = (_dated_by_state(facts, claim) or 0) + (spec.duration or 0) * SECOND, parse(claim["now"])
        return bool(facts.holder) and ((expires <= now) == (state == "expired") or abs(expires - now) < POINT)
    if state == "live":
        return bool(facts.holder) and _may_be_live(facts)
    moments = (facts.now - POINT, facts.now + POINT)
    return bool(facts.holder) and not all(facts.is_surely_live(at) for at in moments)


_BY_STATE: Final = ("holder", "stamp")
"""What dates a renewal that only a state shows: renewTime, or a stamp that another write may have moved."""


def _dated_by_state(facts: Facts, claim: Claim) -> int | None:
    """Return when the state that is stored says that it was renewed last, by what is said to date it."""
    after = facts.writes[-1].request.after if facts.writes else None
    if claim["dated"] == "holder" or after is None:
        return facts.spec.renewed
    metadata = decode(after.text, type=Lease).metadata
    entries = list_entries(metadata.managed_fields)
    if not is_constant(entries):
        return date_last_renewal(entries)  # where no API server stamps, anyone can write the annotations
    written = [text for name, text in (metadata.annotations or {}).items() if name.startswith(f"{NAMES}written-")]
    return parse_stamp(written[0]) if written else date_last_renewal(entries)


def _may_be_live(facts: Facts) -> bool:
    """Return whether it may be live at the end, or was so a second before it."""
    return any(facts.may_be_live(at) for at in (facts.now - POINT, facts.now + facts.spread))


def _was_put(facts: Facts, claim: Claim, end: int) -> bool:
    """Return whether a holder was put into the object by some time, as far as the input shows that."""
    begun = [one for one in facts.writes if one.at <= end]
    first = max([0, *(number for number, one in enumerate(begun) if not one.was_there)])
    hidden = claim["hidden"]
    return any(one.puts and not any(low <= one.at <= high for low, high in hidden) for one in begun[first:])


@_predicate_of("row-holder", "json-holder")
def _holder(facts: Facts, claim: Claim) -> bool:
    identity = claim["identity"]
    if not identity:
        return not facts.holder or claim["state"] == "unknown"
    if identity == facts.holder:
        return True
    return claim["state"] == "unknown" and (
        _is_of(facts, facts.spec, identity) or any(identity in _names(one.process) for one in facts.writes)
    )


@_predicate_of("row-renewed", "json-last-renewal")
def _last_renewal(facts: Facts, claim: Claim) -> bool:
    """The holder's last renewal, or what put it there, or, where only the writer dates that, renewTime."""
    if not claim["is_right"]:
        return False
    if claim["dated"] in _BY_STATE and abs(parse(claim["at"]) - (_dated_by_state(facts, claim) or 0)) <= POINT:
        return True
    at = facts.moment(claim["at"])
    renewals = [one for one in facts.writes if one.is_renewal or one.puts]
    # Of several that renew it under one name, any may be the one that took it.
    last_by = {one.process.writer: one for one in renewals}
    # Who was put there without another renewTime has that of the holder before.
    moved = [one for one in renewals if one.is_renewal]
    # Who was put there and has not renewed since has that, whatever an API server or another one renewed for it.
    placed = facts.placing(facts.holder)
    later = [one for one in moved if placed and one.at > placed.at]
    has_renewed = any(facts.is_own(one, facts.holder) for one in later)
    latest = (*renewals[-1:], *last_by.values(), *moved[-1:], *([placed] if placed and not has_renewed else []))
    if claim.get("state") == "unknown" and _is_asked(facts, claim):
        return True  # a log hides who holds it, and shows who wrote it
    return any(one.begin <= at.last + POINT and at.first - POINT <= one.end for one in latest)


@_predicate_of("json-last-renewal-by")
def _last_renewal_by(facts: Facts, claim: Claim) -> bool:
    """Return whether the process shown wrote the lease then; a log without objects does not show what it changed."""
    at = facts.moment(claim["at"])
    writes = facts.find_writes(at.first - POINT, at.last + POINT, lambda write: write.is_renewal or bool(write.puts))
    by = [one.process for one in writes]
    if claim["hidden"] == [(0, LATEST)]:
        by += _find_writers(facts, claim["at"])
    # A log names a pod, a stamp the uid of one.
    mine = [one for one in by if one.user.name == claim["user"]]
    return any(claim["pod"] in {"", one.pod} and claim["uid"] in {"", one.uid} for one in mine)


def _find_writers(facts: Facts, shown_at: str) -> Iterator[Process]:
    """Yield whose writes were answered about then."""
    at = facts.moment(shown_at)
    for request in facts.requests:
        is_near = request.received <= at.last + POINT and at.first - POINT <= request.answered
        if is_near and request.verb not in ("get", "list") and not request.refused:
            yield facts.history.by_name[request.process]


def _is_asked(facts: Facts, claim: Claim) -> bool:
    """Return whether a write was answered then, whatever it changed: of the one that is shown, if any is."""
    identity = claim.get("identity", "")
    writers = _find_writers(facts, claim["at"])
    return any(not identity or identity in (*_names(one), one.identity) for one in writers)


@_predicate_of("row-takeable", "json-takeable")
def _takeable(facts: Facts, claim: Claim) -> bool:
    """If nothing else is written, it is not live from then on."""
    state = claim["state"]
    if state in ("released", "never-held", "frozen"):
        return _state(facts, claim)
    if claim["dated"] in _BY_STATE:
        expires = (_dated_by_state(facts, claim) or 0) + (facts.spec.duration or 0) * SECOND
        return bool(expires <= parse(claim["from"]) + POINT)
    at = facts.moment(claim["from"])
    renewal, duration = facts.last_renewal, facts.spec.duration
    return renewal is None or duration is None or at.last + POINT >= renewal.begin + duration * SECOND


@_predicate_of("json-held-since", "json-tenure-since")
def _since(facts: Facts, claim: Claim) -> bool:
    at = facts.moment(claim["at"])
    identity = claim["identity"]
    own = [one for one in facts.writes if one.after.holder == identity and one.after.acquired is not None]
    errors = {0, *((one.after.renewed or one.at) - one.at for one in own)}
    if any(abs((one.after.acquired or 0) - error - parse(claim["at"])) < POINT for one in own for error in errors):
        return True  # as it wrote itself, corrected by the error of its clock
    near = facts.find_writes(at.first - POINT, at.last + POINT, lambda _: True)
    return _is_asked(facts, claim) or any(
        one.puts == identity or (one.is_renewal and one.after.holder == identity) or identity in _names(one.process)
        for one in near
    )


@_predicate_of("json-tenure-until")
def _until(facts: Facts, claim: Claim) -> bool:
    """It was removed or replaced then, or renewed last, before it expired.

    Where only writers are shown, it may have released the lease before that was deleted.
    """
    at = facts.moment(claim["at"])
    identity = claim["identity"]
    near = [*facts.find_writes(at.first - POINT, at.last + POINT, lambda _: True)]
    if claim.get("are_writers") and any(not one.is_there for one in near):
        return True
    return any(
        _is_of(facts, one.before, identity) or _is_of(facts, one.after, identity) or identity in _names(one.process)
        for one in near
    )


@_predicate_of("json-tenure-leaderless")
def _unled(facts: Facts, claim: Claim) -> bool:
    """The time from the removal or the last renewal of the one before is at most so long."""
    at = facts.moment(claim["at"])
    taken = [*facts.find_writes(at.first - POINT, at.last + POINT, lambda write: write.puts == claim["identity"])]
    if not taken:
        return True
    before = [one for one in facts.writes if one.at < taken[-1].at]
    ends = [one for one in before if one.removes or one.is_shortened or one.is_renewal]
    return not ends or taken[-1].begin - ends[-1].end <= claim["seconds"] * SECOND + POINT + facts.spread


# ---- metrics --------------------------------------------------------------------------------------------------------


@_predicate_of("metric-live")
def _metric_live(facts: Facts, claim: Claim) -> bool:
    if claim["value"] == 1:
        return bool(facts.holder) and _may_be_live(facts)
    return True


@_predicate_of("metric-renewal-age-seconds")
def _metric_age(facts: Facts, claim: Claim) -> bool:
    if claim["value"] == 0:
        return facts.last_renewal is None or facts.last_renewal.end >= facts.moment(claim["now"]).first - POINT
    at = parse(claim["now"]) - int(claim["value"] * SECOND)
    about = {"at": format_micro_time(at), "dated": "", "is_right": True, "identity": facts.holder}
    return _last_renewal(facts, about)


@_predicate_of("metric-leaderless-seconds")
def _metric_leaderless(facts: Facts, claim: Claim) -> bool:
    """It named no one for so long at most, after somebody had held it."""
    free = [last - first for first, last, spec, write in facts.stretches() if not spec.holder and write.removes]
    return not claim["is_whole"] or sum(free) <= (claim["value"] + 2 * len(free)) * SECOND + POINT
