"""An account as lines of text: a headline, facts with labels, what happened, findings, and what to do."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import attrgetter
from typing import Final, TypeVar

from msgspec import Struct

from webhook.api.managed_fields import HOLDER
from webhook.api.times import SECOND
from webhook.claims.account import Account
from webhook.claims.causes import Blame, sentence_of
from webhook.claims.words import ago, at_most, by_writer, clock, count, length, name, remover, writer
from webhook.history.events import Handover, Tenure
from webhook.history.lease import MAX_REFUSALS, LeaseHistory
from webhook.history.status import RELEASED_DURATION, LeaseStatus, State
from webhook.inputs.items import InputKind, Writer, is_dated
from webhook.rules.expiry import BOUND
from webhook.rules.stamps import NAMES, Stamp, is_constant

MAX_WAITING: Final = 4
MAX_EVENTS: Final = 16
_WHEN: Final = {True: "", False: ", then or later"}  # by whether the input says when something happened
_MIN_READS: Final = 3
_T = TypeVar("_T")


class Line(Struct, frozen=True):
    """One line: `label` is in a column of its own, `text` is wrapped."""

    label: str
    text: str


def headline(account: Account) -> str:
    """The state in one clause: what the lease says, which is not always who works."""
    standing, now, history = account.standing, account.now, account.history
    accepted = history.accepted
    holder = name(account.holder) if account.holder else "no one"
    later = accepted[-1][1] if accepted and accepted[-1][0] > (account.last_renewal or 0) else None
    if history.is_mixed:
        return "the input shows leases of several clusters under this name"
    if history.is_deleted:
        return "the lease was deleted"
    if standing is None and not account.holder and history.absent:
        number, _, last = history.absent
        return f"it does not exist: {count(number, 'read')} answered with 404, the last one {ago(last, now)}"
    if standing is None:
        return f"{writer(later) if later else holder} wrote it last; the log does not show the lease itself"
    if account.state is State.LIVE:
        return _live(account, holder)
    if account.state is State.EXPIRED:
        return f"{_expired(account, holder)}{', as far as the log shows' if later else ''}"
    if account.state is State.RELEASED:
        return _freed(account, standing)
    if account.state is State.NEVER_HELD:
        return "it was never held"
    return _held(account, standing, holder)


def _held(account: Account, standing: LeaseStatus, holder: str) -> str:
    """Say that it is held, frozen or not known to be renewed."""
    if account.state is State.FROZEN and standing.block:
        until = standing.block.until
        end = "it is repaired" if until is None else clock(until, account.now)
        return f"{holder} keeps it until {end}: {standing.block.reason}"
    if standing.duration is not None and standing.last_renewal is not None:
        return f"{holder} holds it; whether it is renewed is not known: --policy FILE says which stamps to believe"
    return f"{holder} holds it, but the lease does not say until when"


def _live(account: Account, holder: str) -> str:
    pods = pods_at_once(account)
    doubt = ", as far as the lease says" if account.written_later is not None else ""
    if pods:
        return f"{len(pods)} pods lead as {holder}: {' and '.join(pods)}"
    if not account.is_renewed_last and account.tenure and account.tenure.touched:
        return f"{holder} holds it, and {writer(account.tenure.touched[1])} renewed it last, which is not its process"
    return f"{holder} holds it{doubt}"


def _expired(account: Account, holder: str) -> str:
    """Say what is known of a lease that is not renewed."""
    lease, tenure, now = account.history.lease, account.tenure, account.now
    stalled = _stalled(account)
    if stalled:
        return stalled
    is_chosen = tenure.is_chosen and not tenure.renewals if tenure and tenure.began is not Handover.SEEN else False
    manager = account.standing.manager if account.standing else ""
    if lease and lease.spec.strategy and (is_chosen or manager == "kube-apiserver"):
        return f"{holder} was chosen{_since(account.last_renewal, now)} and has not renewed since"
    return f"{holder} has not renewed it{_for(account.last_renewal, now)}"


def _stalled(account: Account) -> str:
    lease = account.history.lease
    if lease is None or not lease.spec.strategy or not lease.spec.preferred_holder:
        return ""
    asked, preferred = name(lease.spec.holder_identity or ""), name(lease.spec.preferred_holder)
    silent = _for(account.last_renewal, account.now)
    return f"{asked} was asked to step down for {preferred}, which has not taken over: not renewed{silent}"


def _for(at: int | None, now: int) -> str:
    return "" if at is None else f" for {length(max(0, now - at))}"


def _freed(account: Account, standing: LeaseStatus) -> str:
    """Say when the lease was released; whoever removed the holder may have done so long after its last renewal."""
    tenure, lease = account.history.tenure, account.history.lease
    at = standing.last_renewal if tenure is None or tenure.until is None else tenure.until
    if tenure is not None and tenure.is_own_release is False and tenure.is_end_dated:
        return f"no one holds it: its holder was removed{_since(at, account.now)}"
    is_removed = lease is not None and lease.spec.holder_identity is None
    return "no one holds it" if is_removed else f"no one holds it: it was released{_since(at, account.now)}"


def pods_at_once(account: Account) -> list[str]:
    """The pods that renew the lease in turns under the present holder's name, the latest three; none if one does."""
    tenure = account.tenure
    if tenure is None or tenure.process is None or not tenure.process.pod:
        return []
    lasts = (tenure.duration or 0) * SECOND
    sharing = [one.pod for one in tenure.sharers if one.pod and account.now - tenure.others[one].last < lasts]
    own = account.now - tenure.last_renewal < lasts
    return sorted(name(pod) for pod in (tenure.process.pod, *sharing[-2:])) if own and sharing else []


def facts(account: Account, *, verbose: bool = True) -> Iterator[Line]:
    """The known facts, each with a label; without `verbose` those that decide."""
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
    yield from _standing(account, verbose=verbose)
    yield from _unverified(account)
    if account.cause is not None and account.cause.blame is not Blame.UNKNOWN:
        yield Line("Why", sentence_of(account.cause))
    yield from _rhythm(account) if verbose else ()


def _standing(account: Account, *, verbose: bool) -> Iterator[Line]:
    standing, now = account.standing, account.now
    if standing is None:
        return
    if verbose:
        is_coordinated = account.history.lease is not None and bool(account.history.lease.spec.strategy)
        yield from _takeable(standing, now, is_coordinated=is_coordinated)
    if standing.ahead is not None and abs(standing.ahead) > 2 * SECOND and standing.block is None:
        direction = "ahead of" if standing.ahead > 0 else "behind"
        yield Line("Clock", f"the holder's is {length(abs(standing.ahead))} {direction} the API server's")
    if not standing.from_stamps and standing.last_renewal is not None:
        yield Line("Evidence", f"the holder's own clock: {_without_stamps(account.history, now)}")


def _rhythm(account: Account) -> Iterator[Line]:
    usual = account.history.interval
    if usual is not None:
        longest, usually = length(account.history.renewals.longest), length(int(usual * SECOND))
        longest += ", as far as was recorded" if account.history.is_partial else ""
        yield Line("Renewals", f"typically every {usually}; longest gap between two by the same holder: {longest}")
    waiting = list(_waiting(account))
    if waiting:
        yield Line("Waiting", f"{', '.join(waiting[:MAX_WAITING])} (reads the lease again and again)")


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


def _unverified(account: Account) -> Iterator[Line]:
    """Yield what annotations say of the writer where the input does not show that the API server wrote them."""
    history = account.history
    if is_constant(history.entries):
        why = "not verified: --policy FILE says which stamps to believe"
    elif is_dated(history.entries) and not (account.tenure and account.tenure.renewer):
        why = "if namespace {0} has the label lease-webhook/stamp, which this input does not show"
        why = why.format(name(history.namespace))
    else:
        return
    annotations = (history.lease.metadata.annotations if history.lease else None) or {}
    for key, who in annotations.items():
        if key.startswith(f"{NAMES}writer-") and who:
            stamp, written = Stamp(who, None), annotations.get(key.replace("writer", "written", 1))
            at = name(written) if written else "an unknown time"
            said = f"{writer(Writer(stamp.user, uid=stamp.pod_uid))} wrote it at {at}"
            yield Line("Stamp says", f"{said} ({why})")


def _waiting(account: Account) -> Iterator[str]:
    """Yield which other pods read the lease again and again while the present holder had it, and still did."""
    tenure = account.tenure
    if tenure is None or tenure.process is None or not tenure.process.pod:
        return
    for one, (number, at) in account.history.readers.items():
        is_still = account.now - at < (tenure.duration or 0) * SECOND
        is_peer = one in account.history.accounts.get(tenure.process.user, ()) and one not in tenure.pods
        if is_peer and is_still and number >= _MIN_READS and at >= tenure.since:
            yield name(one)


def _since(at: int | None, now: int) -> str:
    return "" if at is None else f" {ago(at, now)}"


def _held_since(account: Account) -> str:
    tenure, now = account.tenure, account.now
    is_seen = tenure is not None and tenure.began is Handover.SEEN and not tenure.is_writer
    is_late = account.written_later is not None
    if tenure is not None and is_seen and not is_late and not (tenure.is_since_own and tenure.since <= now):
        return _seen_held(account)
    by_own_clock = ", as it wrote itself" if is_seen else ""
    by_own_clock = "; it was not recorded when" if tenure and tenure.is_unseen else by_own_clock
    if account.written_later is not None:
        written = clock(account.written_later, now)
        said = f"its metadata, which a client may edit, says that it was written at {written}, after the last renewal"
        return f", since when is not known: {said}"
    if tenure and not tenure.is_dated:
        return f", since {clock(tenure.since, now)} or later: the input does not say when"
    return f", since {clock(tenure.since, now)} ({ago(tenure.since, now)}{by_own_clock})" if tenure else ""


def _seen_held(account: Account) -> str:
    """Say since when it has been held at the latest, if that is all that a state shows."""
    lease, entries = account.history.lease, account.history.entries
    owners = [one for one in entries if HOLDER in one.owned.spec]
    stamp = owners[0].stamp if lease and len(owners) == 1 and not is_constant(entries) else None
    if stamp is None or stamp > account.now:
        return "; since when is not known"
    return f", since {clock(stamp, account.now)} at the latest"


def _by(account: Account) -> str:
    tenure, standing = account.tenure, account.standing
    who = [f"by {writer(tenure.renewer)}"] if tenure and tenure.renewer else []
    who += (
        [f"field manager {name(standing.manager)}"] if standing and standing.manager and account.is_renewed_last else []
    )
    return f", {', '.join(who)}" if who else ""


def _takeable(standing: LeaseStatus, now: int, *, is_coordinated: bool) -> Iterator[Line]:
    at = standing.takeable_at
    by = "by whom an API server names" if is_coordinated else ""
    if standing.state in {State.RELEASED, State.NEVER_HELD}:
        yield Line("Can be taken", f"now{by and f', {by}'}")
    elif standing.block is not None:
        when = "never, unless it is repaired" if at is None else f"{clock(at, now)}, {ago(at, now)}"
        yield Line("Can be taken", when)
    elif at is not None and at > now and standing.state is State.LIVE:
        yield Line("Expires", f"{clock(at, now)} ({ago(at, now)}) unless renewed")
    elif at is not None and standing.state is State.EXPIRED:
        when = f"now{by and f', {by}'}, since {clock(at, now)}, {standing.duration} s after the last renewal"
        yield Line("Can be taken", when)


def handover(tenure: Tenure, before: Tenure | None) -> str:
    """Say how a holder came to hold the lease, as a clause; `before` is the one that held it then."""
    term = "" if tenure.term is None else f"; term {tenure.term}"
    if tenure.is_unclear:
        holder, previous, when = name(tenure.holder), name(tenure.previous), _WHEN[tenure.is_dated]
        gap = "" if tenure.leaderless is None else f"; not renewed for {at_most(tenure.leaderless)}"
        return f"{holder} took it from {previous}{when}: whether it had expired is not known{gap}{term}"
    return _first_write(tenure) if tenure.is_writer else _handover(tenure, before) + term + _WHEN[tenure.is_dated]


def _handover(tenure: Tenure, before: Tenure | None) -> str:
    holder = name(tenure.holder)
    previous = name(tenure.previous) if tenure.previous else "the holder before"
    is_end_exact = before is None or (before.is_end_dated and not before.was_removed)
    is_exact = tenure.is_exact and tenure.began is Handover.RELEASED and is_end_exact
    bound = length if is_exact else at_most
    is_free = tenure.began in {Handover.RELEASED, Handover.CLAIMED} and not (before and before.was_removed)
    free = "the lease was free for" if is_free else "not renewed for"
    gap = "" if tenure.leaderless is None else f"; {free} {bound(tenure.leaderless)}"
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
            return f"{took} after {ending(before)}{who}{led}"
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


def events(account: Account, most: int = MAX_EVENTS) -> Iterator[Line]:
    """The latest events, oldest first."""
    history, now = account.history, account.now
    gaps = [(one.start, str(one)) for one in account.unrecorded[-MAX_WAITING:]]
    found = sorted([*_events(history), *gaps], key=lambda one: one[0])
    if history.is_mixed or (len(found) == 1 and history.tenure and history.tenure.began is Handover.SEEN):
        return  # the headline says as much
    if len(found) > most:
        yield Line("", f"{count(len(found) - most, 'earlier event')}: --verbose")
    for at, text in found[-most:]:
        yield Line(clock(at, now), text)


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
    wanted = (one for one in history.refusals if not one.is_read and (one.is_denied or one.has_failed))
    for several in _of_one_tenure(history, wanted, lambda one: (one.at, (one.code, writer(one.writer), one.name))):
        who, code, refuser = writer(several[0].writer), several[0].code, several[0].name
        what = "failed" if several[0].has_failed else "was refused" if len(several) == 1 else "were refused"
        seconds = several[-1].at - several[0].received
        within = f" within {length(seconds)}" if len(several) > 1 and seconds >= SECOND else ""
        refused_by = f" by {several[0].by.value} {refuser}" if refuser else ""
        yield several[0].at, f"{count(len(several), 'write')} by {who} {what} with {code}{refused_by}{within}"
