"""The known facts about a lease, as lines of text with labels."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from webhook.admission.rules.expiry import BOUND
from webhook.admission.rules.stamps import NAMES, Stamp, is_constant
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.diagnosis import Blame, Diagnosis
from webhook.analysis.claims.evidence.coordination.creations import find_creation_at_first_sight
from webhook.analysis.claims.evidence.silent_holders.cause_sentences import describe_cause
from webhook.analysis.claims.evidence.writers.stored_copies import has_old_renew_time
from webhook.analysis.claims.findings.other_askers import find_other_askers
from webhook.analysis.claims.findings.silent_together_claim import describe_silent_together
from webhook.analysis.claims.findings.two_workloads import find_changed_rhythm
from webhook.analysis.claims.findings.waiting_accounts import find_waiting_accounts, find_waiting_former_accounts
from webhook.analysis.claims.findings.waiting_pods import find_waiting_pods
from webhook.analysis.claims.words import (
    describe_user,
    describe_writer,
    format_age,
    format_bound,
    format_clock,
    format_clocks,
    format_name,
)
from webhook.analysis.history.audit_log.read_runs import ReadRun
from webhook.analysis.history.holders.tenure import Handover
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseState, LeaseStatus, date_naming
from webhook.analysis.inputs.items import InputKind, Writer, is_dated_by_stamp
from webhook.kubernetes.times import SECOND, format_length, get_readable_instant, normalize
from webhook.text.commands import quote_name

MAX_WAITING: Final = 4
_MIN_SILENCE: Final = 5 * SECOND
"""Who reads each second may be late by more than two of them."""


class Line(Struct, frozen=True):
    """One line: `label` is in a column of its own, `text` is wrapped."""

    label: str
    text: str


def list_facts(account: Account, *, verbose: bool = True) -> Iterator[Line]:
    """Yield the known facts, each with a label; without `verbose` those that the headline does not say."""
    if verbose:
        yield from _list_holding(account)
    else:
        yield from _list_acquisition(account)
    if hidden := _describe_hidden(account):
        yield Line("Not shown", hidden)
    yield from _list_clocks(account)
    # The headline of a lease that is held names who renewed it last.
    yield from _list_touch(account) if verbose or account.state is not LeaseState.LIVE or account.is_heartbeat else ()
    if (unserved := account.election.unserved) is not None:
        since, at = (format_clock(one, account.now) for one in (unserved.since, unserved.at))
        when = f"at {at}" if since == at else f"from {since} until {at}"
        yield Line("Election", f"the API server answered {when} that {unserved.describe()}")
    if account.tenure is not None and account.tenure.term is not None:
        yield Line("Term", f"{account.tenure.term}: the token of its writes, where a fence asks for one")
    yield from _list_state(account, verbose=verbose)
    yield from _list_unverified(account, verbose=verbose)
    is_silent_heartbeat = account.is_heartbeat and account.cause is not None and account.cause.blame is Blame.CLIENT
    together = describe_silent_together(account)
    # That all fell silent says more than that its holder did.
    is_told = bool(together) and account.cause is not None and account.cause.is_silent and not verbose
    is_known = account.cause is not None and account.cause.blame is not Blame.UNKNOWN
    is_told |= not verbose and account.cause is not None and _is_stalled_as_asked(account, account.cause)
    # That no one renews what was written in again and again needs no cause.
    is_told |= has_old_renew_time(account.history)
    if account.cause is not None and is_known and not (is_silent_heartbeat or is_told):
        yield Line("Why", describe_cause(account.cause, format_name(account.holder) if account.holder else ""))
    yield from _list_askers(account, verbose=verbose)
    if together:
        yield Line("Together", together)
    yield from _list_further(account)
    yield from _list_rhythm(account) if verbose else ()


def _is_stalled_as_asked(account: Account, cause: Diagnosis) -> bool:
    """Return whether a headline says why a holder is silent: it was asked to step down, and no one has followed."""
    is_stalled = any(one.check == "election-stalled" for one in account.findings)
    return is_stalled and cause.blame is Blame.COORDINATED and not cause.is_older_than_request


def _list_further(account: Account) -> Iterator[Line]:
    """Yield what else is known of it, and of leases that may belong to it."""
    around = account.surroundings
    if account.election.other_candidates is not None:
        yield Line("Candidates", account.election.other_candidates.describe(account.now))
    elif account.election.vain is not None:
        yield Line("Candidate", account.election.vain.describe(account.now))
    elif account.election.unanswered is not None:
        yield Line("Candidate", account.election.unanswered.describe(account.now))
    if around.renamed_node is not None:
        yield Line("Same address", around.renamed_node.describe(account.now))
    if account.silent_writer is not None:
        yield Line("Silent", account.silent_writer.describe(account.now))
    if account.pause is not None:
        yield Line("Pause", account.pause.describe(account.now))
    if around.alike is not None:
        yield Line("Like it", around.alike.describe(account.now))
    if around.newer is not None:
        yield Line("Newer lease", around.newer.describe(account.now))


def _list_askers(account: Account, *, verbose: bool) -> Iterator[Line]:
    """Yield who asks for a lease besides the replicas of its holder; with `verbose` another line has who held it."""
    former = () if verbose or account.election.is_coordinated else find_waiting_former_accounts(account)
    yield from (Line("Also asks", one.describe()) for one in former)
    if others := find_other_askers(account):
        yield Line("Also asks", others.describe())
    for waiting in find_waiting_pods(account):
        yield Line("Also asks", waiting.describe(account.now))


def _describe_hidden(account: Account) -> str:
    """Say what the input does not show of a lease, "" if nothing tells that."""
    if account.history.is_mixed:
        return ""
    if account.doubt.is_log_leaky:
        return "the log lacks some requests: it has writes that follow others that it does not have"
    if account.doubt.unlogged:
        return account.doubt.unlogged.shown
    if account.history.read is not None:
        return "who made some writes: the log lacks those that the answer to a read shows"
    if account.coverage.lacks_requests:
        unlogged, when = account.history.unlogged, _describe_unlogged_time(account)
        shown = "another input shows" if unlogged is None or unlogged.is_watched else "the answers to reads show"
        return f"who made some writes, and what else was asked: the log lacks requests that {shown}{when}"
    if account.is_partial and not (account.coverage.unrecorded or account.history.renewals.unseen):
        return "some writes to it, within the time for which a renewal lasts"
    if account.history.continuity.sparse_since is not None:
        return "what another API server answered: if there are several, give the logs of all"
    return ""


def _describe_unlogged_time(account: Account) -> str:
    """Say when writes were made that a log lacks, as the end of a sentence."""
    unlogged = account.history.unlogged
    assert unlogged is not None
    start, end = format_clocks(account.now, unlogged.since, unlogged.until)
    return f", at {start}" if start == end else f", from {start} to {end}"


def _list_clocks(account: Account) -> Iterator[Line]:
    """Say when the clock of an API server was set: what it dates seems late by that."""
    step = account.coverage.clock_step
    if step is None:
        return
    moved = format_length(abs(step.by) // SECOND * SECOND)
    how = f"moved ahead {moved} more than" if step.by < 0 else f"fell {moved} behind"
    yield Line(
        "Clocks",
        f"at {format_clock(step.start, account.now)} the times of the API server {how} the renewTimes of this holder "
        "and of others: the clock of the API server was set, or all of theirs were at the same moment",
    )


def _list_holding(account: Account) -> Iterator[Line]:
    status, now = account.status, account.now
    # A log without objects shows who writes: a holder that renews, or one that releases the lease. Another process may
    # have written it since.
    held, renewed = ("Held by", "Last renewed") if status else ("Written by", "Its last write")
    if account.history.hidden_since is not None:
        held, renewed = "Held before", "Renewed before"
    elif _is_lock(account):
        renewed = "Written"
    elif status and (account.is_taken_only or _is_removal_last(account)):
        renewed = "Last written"
    if account.holder:
        yield Line(held, f"{format_name(account.holder)}{_format_since(account)}")
    if account.last_renewal is not None:
        yield Line(
            renewed,
            f"{format_clock(account.last_renewal, now)}, "
            f"{format_age(account.last_renewal, now)}{_describe_writer(account)}",
        )


def _is_removal_last(account: Account) -> bool:
    """Return whether the write that removed the last holder set renewTime, as a release does: it is no renewal."""
    tenure = account.history.latest_tenure
    is_ended = tenure is not None and tenure.until is not None and tenure.removal.is_renewal
    return account.state is LeaseState.RELEASED and is_ended


def _is_lock(account: Account) -> bool:
    """Return whether a holder was written in, and no one ever renews it."""
    lease, tenure = account.history.lease, account.tenure
    is_unrenewed = tenure is not None and tenure.last_renewal_write is None and not tenure.processes.renewals
    return lease is not None and lease.spec.renew_time is None and is_unrenewed


def _list_state(account: Account, *, verbose: bool) -> Iterator[Line]:
    status, now = account.status, account.now
    if status is None:
        return
    # No one takes a heartbeat, whether it has expired or not.
    is_taken_by_no_one = account.state is not LeaseState.LIVE and account.is_heartbeat
    if verbose and not is_taken_by_no_one:
        yield from _list_takeable_time(account, status)
    is_odd = status.ahead is not None and abs(status.ahead) > 2 * SECOND and not has_old_renew_time(account.history)
    if verbose and status.ahead is not None and is_odd and status.block is None:
        direction = "ahead of" if status.ahead > 0 else "behind"
        yield Line("Clock", f"its renewTime is {format_length(abs(status.ahead))} {direction} the API server's clock")
    if not status.from_stamps and status.last_renewal is not None:
        yield Line("Evidence", f"the holder's own clock: {_describe_missing_stamps(account.history, now)}")


def _describe_end_of_longest_gap(account: Account) -> str:
    """Say when the longest gap ended, if it was unusual; "" if not, or if only its writer's clock dates it."""
    renewals = account.history.renewals
    gap = next((one for one in reversed(renewals.silences) if one.length == renewals.longest), None)
    if gap is None or gap.is_claimed:
        return ""
    last = renewals.silences[-1]
    more = f" (of {len(renewals.silences)}, the last until {format_clock(last.end, account.now)})"
    return f", until {format_clock(gap.end, account.now)}{'' if last is gap or last.is_claimed else more}"


def _list_rhythm(account: Account) -> Iterator[Line]:
    usual = account.history.interval
    if usual is not None:
        gap, usually = account.history.renewals.longest, format_length(int(usual * SECOND))
        # Only a renewTime of the same second refines a stamp.
        is_coarse = account.status is not None and abs(account.status.ahead or 0) >= SECOND
        is_stamped = account.history.kind is not InputKind.AUDIT_LOG
        longest = format_bound(gap + SECOND) if is_coarse and is_stamped else format_length(gap)
        longest += _describe_end_of_longest_gap(account)
        longest += ", as far as was recorded" if account.history.is_partial else ""
        is_standing_in = account.tenure is not None and account.tenure.is_stand_in
        label, whose = ("Its writes", "writer") if is_standing_in else ("Renewals", "holder")
        by = "" if account.is_nameless else f" by the same {whose}"
        own, rhythm = account.history.renewals.usual_of_holder, f"every {usually}"
        is_one_of_several = account.tenure is not None and len(account.history.tenures) > 1
        if own is not None and (former := find_changed_rhythm(account.history)) is not None:
            before = format_length(former.usual)
            rhythm = f"every {format_length(own)} by the present {whose}, every {before} by the one before"
        elif own is not None and is_one_of_several and account.history.renewals.has_holder_of_other_rhythm:
            rhythm = f"every {format_length(own)} by the present {whose}, every {usually} by all its {whose}s"
        yield Line(label, f"typically {rhythm}; longest gap between two{by}: {longest}")
    yield from _list_waiting(account)


def _list_waiting(account: Account) -> Iterator[Line]:
    """Yield which other pods read the lease again and again while the present holder had it, or did until it had it.

    The reads of some do not show how often they ask.
    """
    find_run = account.history.requests.read_runs.find_of_pod
    by_user = find_waiting_accounts(account)
    found = {user: [(pod, find_run(pod)) for pod in pods] for user, pods in by_user.items()}
    waiting = {user: [pod for pod, run in pods if not _is_over(account, run)] for user, pods in found.items()}
    waiting = {user: pods for user, pods in waiting.items() if pods}
    if waiting:
        read = "reads" if sum(map(len, waiting.values())) == 1 else "read"
        # Where an API server chooses among candidates, who reads the lease need not be one that it can choose.
        label = "Readers" if account.election.is_coordinated else "Waiting"
        own = account.tenure.processes.own if account.tenure is not None else None
        are_named = len(waiting) > 1 or own is None or own.user not in waiting
        named = (
            f"{_name_pods(pods)}{f' of {describe_user(Writer(user))}' if are_named else ''}"
            for user, pods in waiting.items()
        )
        yield Line(label, f"{'; '.join(named)} ({read} the lease again and again)")
    waited = [
        f"{format_name(reader)} ({_describe_run(account, run)})"
        for pods in found.values()
        for reader, run in pods
        if _is_over(account, run)
    ]
    if waited:
        more = f" and {len(waited) - MAX_WAITING} more" if len(waited) > MAX_WAITING else ""
        yield Line("Waited", f"{', '.join(waited[:MAX_WAITING])}{more}")


def _name_pods(pods: Sequence[str]) -> str:
    """Name a few pods, and how many more there are."""
    more = f" and {len(pods) - MAX_WAITING} more" if len(pods) > MAX_WAITING else ""
    return f"{', '.join(map(format_name, pods[:MAX_WAITING]))}{more}"


def _is_over(account: Account, run: ReadRun | None) -> bool:
    """Return whether who read the lease at intervals has let more than two of them pass until the log ends."""
    return run is not None and account.coverage.logged_until - run.last > max(2 * run.apart, _MIN_SILENCE)


def _describe_run(account: Account, run: ReadRun | None) -> str:
    """`read it until 12:00:42Z, on average every 10 s`: what a log shows of reads that have ended."""
    assert run is not None
    return f"read it until {format_clock(run.last, account.now)}, on average every {format_length(run.apart)}"


def _list_touch(account: Account) -> Iterator[Line]:
    """Yield who renewed the lease after its holder had."""
    if account.tenure and account.tenure.renewed_by_other and not account.is_renewed_last:
        other = account.tenure.renewed_by_other
        when = f"{format_clock(other.at, account.now)}, {format_age(other.at, account.now)}"
        yield Line("Renewed for it", f"{when}, by {describe_writer(other.writer)}, which is not known as the holder")


def _describe_missing_stamps(history: LeaseHistory, now: int) -> str:
    if any((entry.stamp or 0) > now + BOUND for entry in history.entries):
        return "the API server's stamps are later than the time of evaluation"
    if is_constant(history.entries):
        return "the API server's stamps count only with --policy FILE"
    if history.kind is InputKind.AUDIT_LOG:
        return "the log says when requests were answered; the lease itself has no time set by the API server"
    return "the input has no time of a renewal that the API server set"


def _list_unverified(account: Account, *, verbose: bool) -> Iterator[Line]:
    """Yield what annotations say of the writer where the input does not show that the API server wrote them.

    Without `verbose`, only where nothing else says who wrote it.
    """
    history, status = account.history, account.status
    if is_constant(history.entries) and not verbose and account.renewer is not None:
        return
    if is_constant(history.entries):
        # Another line says what --policy is for, if it is not known when the lease was renewed.
        is_told = status is not None and not status.from_stamps and status.last_renewal is not None
        why = "not verified" if is_told else "not verified: --policy FILE says which stamps to believe"
    elif is_dated_by_stamp(history.entries) and not (account.tenure and account.tenure.processes.own):
        namespace = format_name(history.namespace)
        why = f"if namespace {namespace} has the label lease-webhook/stamp, which this input does not show: "
        why += f"kubectl get namespace {quote_name(history.namespace)} -L lease-webhook/stamp"
    else:
        return
    annotations = (history.lease.metadata.annotations if history.lease else None) or {}
    for key, who in annotations.items():
        if key.startswith(f"{NAMES}writer-") and who:
            stamp, written = Stamp(who, None), annotations.get(key.replace("writer", "written", 1))
            at = format_name(written) if written else "an unknown time"
            said = f"{describe_writer(Writer(stamp.user, uid=stamp.pod_uid))} wrote it at {at}"
            yield Line("Stamp says", f"{said} ({why})")


def _format_since(account: Account) -> str:
    tenure, now = account.first_tenure, account.now
    is_seen = tenure is not None and tenure.began is Handover.SEEN and not tenure.is_stand_in
    is_late = account.written_later is not None
    if tenure is not None and is_seen and not is_late and not (tenure.beginning.is_since_own and tenure.since <= now):
        return _describe_first_sight(account)
    is_own_clock = is_seen or (tenure is not None and tenure.beginning.write.is_claimed)
    by_own_clock = ", as it wrote itself" if is_own_clock else ""
    if tenure is not None and (claimed := tenure.beginning.claimed_since) is not None:
        by_own_clock += f"; its acquireTime says {format_clock(claimed, now)}"
    by_own_clock = "; it was not recorded when" if tenure and tenure.beginning.is_unseen else by_own_clock
    if account.written_later is not None:
        written = format_clock(account.written_later, now)
        said = f"its metadata, which a client may edit, says that it was written at {written}, after the last renewal"
        return f", since when is not known: {said}"
    if tenure and not tenure.beginning.is_dated:
        return f", since {format_clock(tenure.since, now)} or later: the input does not say when"
    # Of the first write of a log without objects, nothing says that it was the first one.
    least = " at least" if tenure and tenure.is_stand_in and tenure.began is Handover.SEEN else ""
    since = (
        f"{format_clock(tenure.since, now)}{least} ({format_age(tenure.since, now)}{by_own_clock})" if tenure else ""
    )
    return since and f", since {since}"


def _describe_first_sight(account: Account) -> str:
    """Say since when it has been held at the latest, if that is all that a state shows."""
    if (created := find_creation_at_first_sight(account.history)) is not None:
        return f", since {format_clock(created, account.now)}, when it was created, as far as the input shows"
    stamp = date_naming(account.history.entries) if account.history.lease else None
    if stamp is None or stamp > account.now:
        return f"; since when is not known{_describe_acquire_time(account)}"
    # Each renewal dates the holder again where one field manager owns both.
    seen = account.first_tenure.since if account.first_tenure is not None else stamp
    return f", since {format_clock(min(stamp, seen), account.now)} at the latest"


def _describe_acquire_time(account: Account) -> str:
    """Say what acquireTime and leaseTransitions say, as the end of a clause; "" if they say nothing.

    They count if a log, or a watch that was saved without managedFields, shows that the holder renews the lease.
    """
    tenure, lease, history = account.tenure, account.history.lease, account.history
    is_unstamped = history.kind is InputKind.WATCH and not history.entries
    is_shown = is_unstamped or history.kind is InputKind.AUDIT_LOG
    if tenure is None or lease is None or not is_shown or not tenure.processes.renewals:
        return ""
    acquired = get_readable_instant(normalize(lease.spec.acquire_time))
    if acquired is None or acquired > tenure.last_renewal:
        return ""
    counted = f", and leaseTransitions {lease.spec.lease_transitions}" if lease.spec.lease_transitions else ""
    return f": acquireTime, which clients write, says {format_clock(acquired, account.now)}{counted}"


def _list_acquisition(account: Account) -> Iterator[Line]:
    """Yield what clients say of when it was taken, if it was held when the input begins.

    With stamps, only if something was changed since then that the holder depends on: it is no result of that.
    """
    tenure, history = account.tenure, account.history
    if tenure is None or tenure.began is not Handover.SEEN or account.state is not LeaseState.LIVE:
        return
    if tenure.beginning.is_since_own and any(one.at > tenure.since for one in account.related_writes):
        yield Line("Held since", f"{format_clock(tenure.since, account.now)}, as it wrote itself")
    if history.entries:
        return
    if find_creation_at_first_sight(history) is None and (said := _describe_acquire_time(account)):
        yield Line("Held since", f"not known{said}")


def _describe_writer(account: Account) -> str:
    manager, read = account.manager_of_renewal, account.history.read
    who = [f"as a read at {format_clock(read.at, account.now)} shows"] if read is not None else []
    who += [f"by {describe_writer(account.renewer)}"] if account.renewer else []
    who += [f"field manager {format_name(manager)}"] if manager else []
    return f", {', '.join(who)}" if who else ""


def _list_takeable_time(account: Account, status: LeaseStatus) -> Iterator[Line]:
    at, now = account.takeable_at, account.now
    by = ", by the process that an API server names" if account.election.is_coordinated else ""
    if strategy := account.election.foreign_strategy:
        by = f", by the process that is chosen by {format_name(strategy)}, which no API server implements"
    if account.election.vain_creations is not None:
        return  # an API server names one, in vain
    if status.state in {LeaseState.RELEASED, LeaseState.NEVER_HELD}:
        yield Line("Can be taken", f"now{by}")
    elif status.block is not None:
        when = "never, unless it is repaired" if at is None else f"{format_clock(at, now)}, {format_age(at, now)}"
        yield Line("Can be taken", when)
    elif at is not None and at > now and status.state is LeaseState.LIVE and account.unshown_duration is None:
        when = f"{format_clock(at, now)} ({format_age(at, now)}) unless renewed"
        # What looks live for longer by less than clocks differ needs no word.
        is_ahead = status.ahead is not None and status.ahead > 2 * SECOND
        yield Line("Expires", f"{when}{_describe_other_clocks(account, status) if is_ahead else ''}")
    elif at is not None and status.state is LeaseState.EXPIRED:
        sign = "it was written in" if has_old_renew_time(account.history) else "the last renewal"
        when = f"now{by}, since {format_clock(at, now)}, {status.duration} s after {sign}"
        yield Line("Can be taken", f"{when}{_describe_other_clocks(account, status)}")
    elif (last := account.last_rejection) is not None and not account.doubt.may_lack_renewals:
        expired = (
            f"it expired at {format_clock(status.takeable_at or 0, now)}, {status.duration} s after the last renewal"
        )
        answer = f"the last one at {format_clock(last.at, now)}, with {last.code}"
        yield Line(
            "Can be taken",
            f"not known: {expired}, and every write since then by other processes of the holder's user failed or was "
            f"refused, {answer}",
        )


def _describe_other_clocks(account: Account, status: LeaseStatus) -> str:
    """Say until when a lease looks live by a renewTime that is ahead, if it has expired or does so before; else ""."""
    lease, now = account.history.lease, account.now
    claimed = get_readable_instant(normalize(lease.spec.renew_time)) if lease is not None else None
    until = 0 if claimed is None else claimed + (status.duration or 0) * SECOND
    if until <= now:
        return ""
    return f"; a client that compares renewTime with its own clock may wait until {format_clock(until, now)}"


def quote_events(account: Account) -> Iterator[Line]:
    """Yield the text of Events. Clients write them, so they are quoted and nothing follows from them."""
    for at, text in account.election.events:
        who, what = text.rsplit(" ", 2)[0], " ".join(text.rsplit(" ", 2)[1:])
        yield Line(format_clock(at, account.now), f"an Event says: {format_name(who)} {what}")
