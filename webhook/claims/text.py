"""An account as lines of text: a headline, facts with labels, what happened, findings, and what to do."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import attrgetter
from typing import Final, TypeVar

from msgspec import Struct

from webhook.api.times import SECOND
from webhook.claims.account import Account
from webhook.claims.causes import Blame, sentence_of
from webhook.claims.words import ago, at_most, by_writer, clock, count, length, name, remover, writer
from webhook.history.events import API_SERVER, Handover, Tenure
from webhook.history.lease import MAX_REFUSALS, LeaseHistory
from webhook.history.status import RELEASED_DURATION, LeaseStatus, State
from webhook.inputs.items import InputKind, Writer
from webhook.rules.expiry import BOUND
from webhook.rules.stamps import NAMES, Stamp, is_constant

MAX_WAITING: Final = 4
MAX_EVENTS: Final = 16
_WHEN: Final = {True: "", False: ", then or later"}  # by whether the input says when something happened
_ORDERLY: Final = {True: ", an orderly handover", False: "", None: ""}  # by whether the holder released it itself
_T = TypeVar("_T")


class Line(Struct, frozen=True):
    """One line: `label` is in a column of its own, `text` is wrapped."""

    label: str
    text: str


def headline(account: Account) -> str:
    """The state in one clause."""
    standing, now, accepted = account.standing, account.now, account.history.accepted
    holder = name(account.holder) if account.holder else "no one"
    later = accepted[-1][1] if accepted and accepted[-1][0] > (account.last_renewal or 0) else None
    if account.history.is_mixed:
        return "the input shows leases of several clusters under this name"
    if account.history.is_deleted:
        return "the lease was deleted"
    if standing is None:
        return f"{writer(later) if later else holder} wrote it last; the log does not show the lease itself"
    if account.state is State.LIVE:
        pods = pods_at_once(account)
        doubt = ", as far as the lease says" if account.written_later is not None else ""
        return f"{len(pods)} pods lead as {holder}: {' and '.join(pods)}" if pods else f"{holder} leads{doubt}"
    if account.state is State.EXPIRED:
        shown = ", as far as the log shows" if later else ""
        return f"no one leads{shown}: {holder} last renewed{_since(account.last_renewal, now)}"
    if account.state is State.RELEASED:
        return f"no one leads: {_freed(account, standing)}"
    if account.state is State.NEVER_HELD:
        return "no one leads: the lease was never held"
    if account.state is State.FROZEN and standing.block:
        until = standing.block.until
        end = "it is repaired" if until is None else clock(until, now)
        return f"{holder} keeps it until {end}: {standing.block.reason}"
    return f"{holder} holds it, but the lease does not say until when"


def _freed(account: Account, standing: LeaseStatus) -> str:
    """Say when the lease was released; whoever removed the holder may have done so long after its last renewal."""
    tenure, lease = account.history.tenure, account.history.lease
    at = standing.last_renewal if tenure is None or tenure.until is None else tenure.until
    if tenure is not None and tenure.is_own_release is False and tenure.is_end_dated:
        return f"its holder was removed{_since(at, account.now)}"
    is_removed = lease is not None and lease.spec.holder_identity is None
    return "it has no holder" if is_removed else f"it was released{_since(at, account.now)}"


def pods_at_once(account: Account) -> list[str]:
    """The pods that renew the lease in turns under the present holder's name, the latest three; none if one does."""
    tenure = account.tenure
    if tenure is None or tenure.process is None or not tenure.process.pod:
        return []
    lasts = (tenure.duration or 0) * SECOND
    sharing = [one.pod for one in tenure.sharers if one.pod and account.now - tenure.others[one].last < lasts]
    own = account.now - tenure.last_renewal < lasts
    return sorted(name(pod) for pod in (tenure.process.pod, *sharing[-2:])) if own and sharing else []


def facts(account: Account) -> Iterator[Line]:
    """The known facts, each with a label."""
    standing, now = account.standing, account.now
    # A log without objects shows who writes: a holder that renews, or one that releases the lease.
    held, renewed = ("Held by", "Last renewed") if standing else ("Written by", "Last written")
    if account.holder:
        yield Line(held, f"{name(account.holder)}{_held_since(account)}")
    if account.last_renewal is not None:
        yield Line(renewed, f"{clock(account.last_renewal, now)}, {ago(account.last_renewal, now)}{_by(account)}")
    yield from _touched(account)
    if account.tenure is not None and account.tenure.term is not None:
        yield Line("Term", f"{account.tenure.term}: the token of its writes, where a fence asks for one")
    if standing is not None:
        yield from _takeable(standing, now)
        if standing.ahead is not None and abs(standing.ahead) > 2 * SECOND and standing.block is None:
            direction = "ahead of" if standing.ahead > 0 else "behind"
            yield Line("Clock", f"the holder's is {length(abs(standing.ahead))} {direction} the API server's")
        if not standing.from_stamps and standing.last_renewal is not None:
            yield Line("Evidence", f"the holder's own clock: {_without_stamps(account.history, now)}")
    yield from _unverified(account.history)
    if account.cause is not None and account.cause.blame is not Blame.UNKNOWN:
        yield Line("Why", sentence_of(account.cause, name(account.holder)))
    usual = account.history.interval
    if usual is not None:
        longest, usually = length(account.history.renewals.longest), length(int(usual * SECOND))
        longest += ", as far as was recorded" if account.history.is_partial else ""
        yield Line("Renewals", f"typically every {usually}; longest gap between two by the same holder: {longest}")
    waiting = list(_waiting(account))
    if waiting:
        yield Line("Waiting", f"{', '.join(waiting[:MAX_WAITING])} (asked for the lease since the holder took it)")


def _touched(account: Account) -> Iterator[Line]:
    """Yield who renewed the lease after its holder had."""
    if account.tenure and account.tenure.touched and not account.is_renewed_last:
        at, other = account.tenure.touched
        when = f"{clock(at, account.now)}, {ago(at, account.now)}"
        yield Line("Renewed for it", f"{when}, by {writer(other)}, which is not known as the holder")


def _without_stamps(history: LeaseHistory, now: int) -> str:
    if any((entry.stamp or 0) > now + BOUND for entry in history.entries):
        return "the API server's stamps are later than the time of evaluation"
    if is_constant(history.entries):
        return "the API server's stamps count only with --policy FILE"
    if history.kind is InputKind.AUDIT_LOG:
        return "the log says when requests were answered; the lease itself shows no time of the API server"
    return "the input has no time of the API server for this lease"


def _unverified(history: LeaseHistory) -> Iterator[Line]:
    """Yield what annotations say of the writer where no policy file says that the API server wrote them."""
    annotations = (history.lease.metadata.annotations if history.lease else None) or {}
    for key, who in annotations.items() if is_constant(history.entries) else ():
        if key.startswith(f"{NAMES}writer-") and who:
            stamp, written = Stamp(who, None), annotations.get(key.replace("writer", "written", 1))
            at = name(written) if written else "an unknown time"
            said = f"{writer(Writer(stamp.user, uid=stamp.pod_uid))} wrote it at {at}"
            yield Line("Stamp says", f"{said} (not verified: --policy FILE says which stamps to believe)")


def _waiting(account: Account) -> Iterator[str]:
    """Yield who asked for the lease while the present holder had it, other than the holder."""
    tenure = account.tenure
    names = {pod for before in account.history.tenures for pod in before.pods if not before.heard_again}
    for one, (_, at) in account.history.readers.items():
        is_other = one != API_SERVER and not one.startswith("kube-system/") and one not in names
        if is_other and (tenure is None or (at >= tenure.since and one not in tenure.pods)):
            yield name(one)


def _since(at: int | None, now: int) -> str:
    return "" if at is None else f" {ago(at, now)}"


def _held_since(account: Account) -> str:
    tenure, now = account.tenure, account.now
    by_own_clock = ", as it wrote itself" if tenure and tenure.began is Handover.SEEN and not tenure.is_writer else ""
    by_own_clock = "; it was not recorded when" if tenure and tenure.is_unseen else by_own_clock
    if account.written_later is not None:
        written = clock(account.written_later, now)
        said = f"its metadata, which a client may edit, says that it was written at {written}, after the last renewal"
        return f", since when is not known: {said}"
    if tenure and not tenure.is_dated:
        return f", since {clock(tenure.since, now)} or later: the input does not say when"
    return f", since {clock(tenure.since, now)} ({ago(tenure.since, now)}{by_own_clock})" if tenure else ""


def _by(account: Account) -> str:
    tenure, standing = account.tenure, account.standing
    who = [f"by {writer(tenure.renewer)}"] if tenure and tenure.renewer else []
    who += (
        [f"field manager {name(standing.manager)}"] if standing and standing.manager and account.is_renewed_last else []
    )
    return f", {', '.join(who)}" if who else ""


def _takeable(standing: LeaseStatus, now: int) -> Iterator[Line]:
    at = standing.takeable_at
    if standing.state in {State.RELEASED, State.NEVER_HELD}:
        yield Line("Can be taken", "now")
    elif standing.block is not None:
        when = "never, unless it is repaired" if at is None else f"{clock(at, now)}, {ago(at, now)}"
        yield Line("Can be taken", when)
    elif at is not None and at > now:
        yield Line("Expires", f"{clock(at, now)} ({ago(at, now)}) unless renewed")
    elif at is not None:
        when = f"now, since {clock(at, now)} ({ago(at, now)}), {standing.duration} s after the last renewal"
        yield Line("Can be taken", when)


def handover(tenure: Tenure, before: Tenure | None) -> str:
    """Say how a holder came to hold the lease, as a clause; `before` is the one that held it then."""
    term = "" if tenure.term is None else f"; term {tenure.term}"
    if tenure.is_unclear:
        holder, previous, when = name(tenure.holder), name(tenure.previous), _WHEN[tenure.is_dated]
        gap = "" if tenure.leaderless is None else f"; no one led for {at_most(tenure.leaderless)}"
        return f"{holder} took it from {previous}{when}: whether it had expired is not known{gap}{term}"
    return _first_write(tenure) if tenure.is_writer else _handover(tenure, before) + term + _WHEN[tenure.is_dated]


def _handover(tenure: Tenure, before: Tenure | None) -> str:
    holder = name(tenure.holder)
    previous = name(tenure.previous) if tenure.previous else "the holder before"
    is_end_exact = before is None or (before.is_end_dated and not before.was_removed)
    is_exact = tenure.is_exact and tenure.began is Handover.RELEASED and is_end_exact
    bound = length if is_exact else at_most
    gap = "" if tenure.leaderless is None else f"; no one led for {bound(tenure.leaderless)}"
    if tenure.is_chosen and tenure.began is not Handover.SEEN:
        chose = "chose" if tenure.taken_by else "(as far as field managers show) chose"
        return f"the API server {chose} {holder}{_CHOSEN.get(tenure.began, '').format(previous)}{gap}"
    who = f" ({writer(tenure.taken_by)})" if tenure.taken_by else ""
    # In any other way the holder itself takes the lease.
    other = tenure.taken_by if tenure.is_own_taking is not True and tenure.taken_by else None
    took = f"{holder} took it"
    if other:
        took, who = f"{writer(other)} wrote {holder} into it", ""
    unheld_for = length if before is None or before.is_end_dated else at_most
    unheld = "" if tenure.leaderless is None else f"; the lease had no holder for {unheld_for(tenure.leaderless)}"
    again = f"{writer(other)} created it again with the holder {holder}" if other else f"{holder} created it again"
    match tenure.began:
        case Handover.SEEN:
            return f"{holder} held it at the start of the data{who}"
        case Handover.CREATED:
            return f"{writer(other)} created it with the holder {holder}" if other else f"{holder} created it{who}"
        case Handover.REPLACED:
            return f"another pod renews it as {holder}{who}; the input does not show whether the one before had stopped"
        case Handover.STOLEN:
            return f"{took} from {previous}, which still held it{who}: two may have led"
        case Handover.DELETED:
            return f"{again} after it was deleted{who}{unheld}"
        case Handover.UNKNOWN if not tenure.is_unseen:
            return f"{holder} held it{who}{gap}"
        case Handover.RELEASED if before is not None and (before.was_removed or before.is_own_release):
            led = ": two may have led" if before.is_own_release is False and not before.had_expired else gap
            return f"{took} after {ending(before)}{_ORDERLY[before.is_own_release]}{who}{led}"
    return f"{took}{_AFTER[tenure.began].format(previous)}{who}{gap}"


def _first_write(tenure: Tenure) -> str:
    """Say when someone first wrote a lease that the log does not show, as a clause."""
    who = f" ({writer(tenure.taken_by)})" if tenure.taken_by else ""
    gap = "" if tenure.leaderless is None else f"; neither wrote it for {length(tenure.leaderless)}"
    went_on = " from then on" if tenure.last_renewal > tenure.since else ""
    verb, when = ("created it", "") if tenure.began is Handover.CREATED else ("wrote it", went_on)
    if tenure.began is Handover.DELETED:
        verb, when = "created it again", " after it was deleted"
    return f"{name(tenure.holder)} {verb}{when}{who}{gap}"


def ending(tenure: Tenure) -> str:
    """Say how a lease was taken from its holder before it expired, or given up by it, as a clause."""
    holder = name(tenure.holder)
    if tenure.is_deleted:
        deleted = f"{writer(tenure.deleted_by)} deleted the lease" if tenure.deleted_by else "the lease was deleted"
        return f"{deleted}, which {holder} wrote last" if tenure.is_writer else f"{deleted} while {holder} held it"
    if tenure.is_own_release is False:
        return f"{remover(tenure)} removed {holder} as the holder"
    if tenure.was_removed:
        return f"{holder} was removed as the holder"
    return f"{holder} {_release(tenure)}"


def _release(tenure: Tenure) -> str:
    """`released it`, with a doubt if only the field manager shows that the holder did."""
    who = tenure.released_by
    is_doubtful = tenure.is_own_release and not (who and who.user)
    return "released it (as far as field managers show)" if is_doubtful else "released it"


_AFTER: Final = {
    Handover.CLAIMED: "; no one held it",
    Handover.RELEASED: " after {} released it",
    Handover.EXPIRED: " after {} let it expire",
    Handover.PREFERRED: " after {} had been asked to step down (preferredHolder)",
    Handover.UNKNOWN: " after {}, at a time that was not recorded",
}
_CHOSEN: Final = {
    Handover.RELEASED: _AFTER[Handover.RELEASED],
    Handover.EXPIRED: _AFTER[Handover.EXPIRED],
    Handover.PREFERRED: " after it had asked {} to step down (preferredHolder)",
    Handover.STOLEN: " in place of {}",
}
"""A coordinated election: the API server writes the holder."""


def events(account: Account) -> Iterator[Line]:
    """The latest events, oldest first."""
    history, now = account.history, account.now
    gaps = [(one.start, str(one)) for one in account.unrecorded[-MAX_WAITING:]]
    found = sorted([*_events(history), *gaps], key=lambda one: one[0])
    if history.is_mixed or (len(found) == 1 and history.tenure and history.tenure.began is Handover.SEEN):
        return  # the headline says as much
    if len(found) > MAX_EVENTS:
        yield Line("", f"{count(len(found) - MAX_EVENTS, 'earlier event')} not shown")
    for at, text in found[-MAX_EVENTS:]:
        yield Line(clock(at, now), text)
    if history.changes > 1:
        changes = count(history.changes, "change")
        whole = ", as far as was recorded" if history.is_partial else " in all"
        text = f"{changes} of holder; no one led for {at_most(history.leaderless_until(now))}{whole}"
        yield Line("", f"{changes} of writer" if history.lease is None else text)


def quoted(account: Account) -> Iterator[Line]:
    """Yield the text of Events. Clients write them, so they are quoted and nothing follows from them."""
    for at, text in account.election_events:
        who, what = text.rsplit(" ", 2)[0], " ".join(text.rsplit(" ", 2)[1:])
        yield Line(clock(at, account.now), f"an Event says: {name(who)} {what}")


def _events(history: LeaseHistory) -> Iterator[tuple[int, str]]:
    tenures = list(history.tenures)
    for before, tenure, after in zip(chain([None], tenures), tenures, chain(tenures[1:], [None]), strict=False):
        yield tenure.since, handover(tenure, before)
        yield from _end(history, tenure, after)
    yield from _silences(history)
    yield from ((one.at, f"{one.text}{by_writer(one.writer)}{_WHEN[one.is_dated]}") for one in history.edits)
    yield from _refusals(history)
    yield from _accepted(history)
    yield from _fenced(history)


def _end(history: LeaseHistory, tenure: Tenure, after: Tenure | None) -> Iterator[tuple[int, str]]:
    holder, duration = name(tenure.holder), tenure.duration or 0
    if tenure.heard_again:
        silence = tenure.heard_again[0] - max([*tenure.requests, tenure.last_renewal])
        receives = "is again receiving" if silence > (history.renewals.longest_usual or 0) else "still receives"
        text = f"the API server {receives} requests from pod {name(tenure.pods[-1])}, the former holder"
        yield tenure.heard_again[0], text
    for other, seen in tenure.others.items():
        times = f"{count(seen.count, 'time')} until {clock(seen.last, history.moment)}" if seen.count > 1 else "once"
        yield seen.first, f"{writer(other)} renewed it as {holder}, {times}: it is not the process that took it"
    if tenure.until is None:
        return
    if tenure.is_deleted or tenure is history.tenure or (after is not None and after.began is Handover.RELEASED):
        # A watch does not say when a lease was deleted; it was before the lease was created again.
        at = min(tenure.until, after.since if after is not None else tenure.until)
        yield at, f"{ending(tenure)}{_WHEN[tenure.is_end_dated]}"
    elif after and after.began is Handover.EXPIRED and duration > RELEASED_DURATION:
        expired = tenure.kept_until + duration * SECOND
        by = writer(tenure.touched[1]) if tenure.touched and tenure.kept_until != tenure.last_renewal else holder
        yield expired, f"the lease expired, {duration} s after the last renewal by {by}"


def _silences(history: LeaseHistory) -> Iterator[tuple[int, str]]:
    for silence in history.late_silences:
        expiry = (silence.duration or 0) * SECOND
        if silence.length >= expiry:
            yield silence.start + expiry, "the lease expired, and no one took it"
        yield silence.start, f"the holder did not renew it for {length(silence.length)}"
        yield silence.end, "the holder renewed it again"


def _of_one_tenure(
    history: LeaseHistory, found: Iterable[_T], kind: Callable[[_T], tuple[int, object]]
) -> list[list[_T]]:
    """Group what is of one kind while one holder had the lease; `kind` returns the time of one, and what it is."""
    groups: dict[tuple[int, object], list[_T]] = {}
    for one in found:
        at, what = kind(one)
        groups.setdefault((bisect_right(history.tenures, at, key=attrgetter("since")), what), []).append(one)
    return list(groups.values())


def _fenced(history: LeaseHistory) -> Iterator[tuple[int, str]]:
    for several in _of_one_tenure(history, history.fenced, lambda one: (one.at, (one.fence, writer(one.writer)))):
        what = f"{count(len(several), 'write')} by {writer(several[0].writer)} without the lease"
        yield several[0].at, f"fence {name(several[0].fence)} refused {what}, such as: {several[0].target}"


def _accepted(history: LeaseHistory) -> Iterator[tuple[int, str]]:
    """Yield who wrote beside the holder what a log does not show."""
    for several in _of_one_tenure(history, history.accepted, lambda one: one):
        one, times = several[0][1], [at for at, _ in several]
        tenure = next((held for held in reversed(history.tenures) if held.since <= times[0]), None)
        pods = [held.pod for held in tenure.writers if held.user == one.user and not one.pod] if tenure else []
        beside = f", not with a token of pod {name(pods[-1])}," if pods and pods[-1] else ""
        within = f" within {length(times[-1] - times[0])}" if times[-1] - times[0] >= SECOND else ""
        what = f"{'was' if len(times) == 1 else 'were'} accepted{within}; the log does not show what changed"
        is_cut = len(history.accepted) == MAX_REFUSALS and times[0] == history.accepted[0][0]
        writes = f"{'the latest ' if is_cut else ''}{count(len(times), 'write')}"
        yield times[0], f"{writes} by {writer(one)}{beside} {what}"


def _refusals(history: LeaseHistory) -> Iterator[tuple[int, str]]:
    wanted = (one for one in history.refusals if one.is_denied or one.has_failed)
    for several in _of_one_tenure(history, wanted, lambda one: (one.at, (one.code, writer(one.writer), one.name))):
        who, code, refuser = writer(several[0].writer), several[0].code, several[0].name
        what = "failed" if several[0].has_failed else "was refused" if len(several) == 1 else "were refused"
        seconds = several[-1].at - several[0].received
        within = f" within {length(seconds)}" if len(several) > 1 and seconds >= SECOND else ""
        refused_by = f" by {several[0].by.value} {refuser}" if refuser else ""
        yield several[0].at, f"{count(len(several), 'write')} by {who} {what} with {code}{refused_by}{within}"
