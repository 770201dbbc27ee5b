"""All that went wrong in the history of a lease: what `why` and `audit` report alike."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from webhook.analysis.claims.claim import Advice, Claim
from webhook.analysis.claims.commands import make_command_for_audit_log
from webhook.analysis.claims.diagnosis import Blame, Diagnosis
from webhook.analysis.claims.evidence.pods.gone_pods import describe_confirmed_end
from webhook.analysis.claims.evidence.silent_holders import silences
from webhook.analysis.claims.evidence.writers.replaced_accounts import find_replaced_account
from webhook.analysis.claims.evidence.writers.sole_writers import find_sole_writer
from webhook.analysis.claims.findings.contests import claim_contest, find_contest
from webhook.analysis.claims.findings.deletions import claim_deletion
from webhook.analysis.claims.findings.late_takers import find_late_takers
from webhook.analysis.claims.findings.lease_claim import make_claim
from webhook.analysis.claims.findings.missed_renewals import (
    claim_late_renewal,
    claim_loss,
    claim_never_taken_up,
    find_ongoing_silence,
)
from webhook.analysis.claims.findings.refusals import find_fenced_writes, find_refusals
from webhook.analysis.claims.findings.refused_candidates import find_refused_candidates
from webhook.analysis.claims.findings.removals import claim_removal, find_preferred_holders, was_removed_while_leading
from webhook.analysis.claims.findings.rewritten import find_rewritten_fields
from webhook.analysis.claims.findings.sharing import find_replaced_pod, find_second_writers
from webhook.analysis.claims.findings.thefts import claim_replacement
from webhook.analysis.claims.findings.unshown_thefts import claim_unshown_theft
from webhook.analysis.claims.words import format_clock, format_name
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.succession import MAX_TENURES
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseStatus
from webhook.analysis.history.visibility.clock_steps import TOLERANCE, ClockStep
from webhook.analysis.history.visibility.separate_stores import Series
from webhook.analysis.inputs.items import InputKind
from webhook.analysis.inputs.rewriting import RENEW_TIME
from webhook.findings import ReportFinding, Severity
from webhook.kubernetes.times import SECOND, format_length


def find_incidents(
    histories: ClusterHistory,
    history: LeaseHistory,
    now: int,
    ongoing: Diagnosis | None,
    *,
    is_duration_shown: bool,
) -> Iterator[Claim]:
    """Yield all that went wrong by `now`, in microseconds since 1970; `ongoing` is why the holder does not renew.

    `is_duration_shown`: the lease lasts as long as was asked for, as far as the input shows.
    """
    yield from _find_in_history(histories, history, now, ongoing)
    yield from find_rewritten_fields(history, now)
    if is_duration_shown:
        yield from find_late_takers(histories, history, now)


def _find_in_history(
    histories: ClusterHistory, history: LeaseHistory, now: int, ongoing: Diagnosis | None
) -> Iterator[Claim]:
    """Yield all that went wrong, the latest of each kind last; `ongoing` is why the holder does not renew now."""
    if history.is_list_only and len(history.tenures) < 2 and not history.requests.fenced:
        return
    if history.is_mixed:
        message = _describe_mixture(history, now)
        command = make_command_for_audit_log(history.namespace, history.name)
        advice = Advice("Give the input of one cluster alone:", command)
        if history.stores.found is not None:
            advice = Advice("Compare the lease at each API server's own address. To read one log at a time:", command)
        yield make_claim(history, "clusters-mixed", Severity.ERROR, message, advice)
        return
    late = list(silences.find_late_renewals(histories, history))
    lost = list(silences.find_lost_leaders(histories, history))
    yield from _find_handovers(histories, history, {one.end: one for one in lost}, now)
    yield from (claim_late_renewal(history, one, now) for one in late)
    yield from find_preferred_holders(history, now)
    yield from find_ongoing_silence(histories, history, now)
    yield from find_second_writers(history, history.find_status(now), now)
    known = [(one.start, one.end) for one in (*late, *lost) if one.cause.blame is Blame.REFUSED]
    if ongoing is not None and ongoing.blame is Blame.REFUSED and history.latest_tenure:
        known.append((history.latest_tenure.last_renewal, now))
    yield from find_refusals(history, known, find_replaced_account(histories, history), now)
    yield from find_refused_candidates(histories, history, now)
    yield from find_fenced_writes(history, now)


def _describe_mixture(history: LeaseHistory, now: int) -> str:
    if history.stores.found is not None:
        return _describe_series(history.stores.found, now)
    if history.existence.is_mixed:
        return "its UID changes back and forth: the input is of several clusters, so nothing can be concluded"
    overlap = format_length(history.existence.overlap // SECOND * SECOND)
    return (
        f"one lease of this name was written until {overlap} after another one had been created: the input is of "
        "several clusters, or the clocks of its API servers differ by as much, so nothing can be concluded"
    )


def _describe_series(found: tuple[Series, Series], now: int) -> str:
    """Say what each of two logs shows, and that both cannot be of one store."""
    first, second = found
    names = [one.log.rpartition("/")[2] for one in found]
    shown = [format_name(one) for one in (names if names[0] != names[1] else (first.log, second.log))]
    since = format_clock(max(first.since, second.since), now)
    held = " and ".join(
        f"{format_name(one.holder)} in {log}" if one.holder else f"no holder in {log}"
        for one, log in zip(found, shown, strict=True)
    )
    return (
        f"in each of two logs, every write since {since} replaced the one before it in that log, and by their "
        f"resourceVersions the writes of the other one would lie between them: its holder is {held}. These are API "
        "servers that share no etcd, with a leader in each perhaps, or several clusters, so nothing can be concluded "
        "from both together"
    )


def _find_handovers(
    histories: ClusterHistory, history: LeaseHistory, lost: Mapping[int, silences.MissedRenewals], now: int
) -> Iterator[Claim]:
    """Yield what went wrong when the holder changed, the latest last; `lost` are leaders by when they were followed."""
    if find_sole_writer(history) is not None:
        return  # whoever replaces what it wrote itself takes nothing from anyone
    tenures = list(history.tenures)
    contest = find_contest(tenures)
    yield from [claim_contest(history, contest, now)] if contest else []
    taken_in_turns = {id(one) for one in contest.tenures} if contest else set()
    pairs = [pair for pair in pairwise(tenures) if id(pair[1]) not in taken_in_turns]
    yield from _find_in_pairs(histories, history, _choose_latest(pairs), lost=lost, now=now)
    if tenures and was_removed_while_leading(tenures[-1], now):
        yield claim_removal(histories, history, tenures[-1], None, now=now)
    if history.is_deleted and tenures:
        yield from claim_deletion(histories, history, tenures[-1], None, now=now)


def _choose_latest(pairs: Sequence[tuple[Tenure, Tenure]]) -> list[tuple[Tenure, Tenure]]:
    """Return the latest pairs to examine: of holders that were replaced, and of others, so many each."""
    stolen, others = (
        [number for number, (_, after) in enumerate(pairs) if after.may_be_stolen is is_stolen]
        for is_stolen in (True, False)
    )
    chosen = sorted([*stolen[-silences.MAX_OF_A_KIND :], *others[-silences.MAX_OF_A_KIND :]])
    return [pairs[number] for number in chosen]


def may_lack_thefts(history: LeaseHistory) -> bool:
    """Return whether there may have been more replacements of a live holder than those that were examined."""
    is_forgotten = history.changes >= MAX_TENURES
    is_unshown = any(one.beginning.is_over_unshown for one in history.tenures)
    stolen = sum(1 for one in history.tenures if one.may_be_stolen)
    most = silences.MAX_OF_A_KIND
    return is_forgotten or stolen > most or (is_unshown and history.changes > most)


def _find_in_pairs(
    histories: ClusterHistory,
    history: LeaseHistory,
    pairs: Iterable[tuple[Tenure, Tenure]],
    *,
    lost: Mapping[int, silences.MissedRenewals],
    now: int,
) -> Iterator[Claim]:
    """Yield what went wrong as a holder followed the one before."""
    for before, after in pairs:
        if after.may_be_stolen:
            end = describe_confirmed_end(histories, before, after.beginning.write.earliest or after.since, now)
            yield claim_replacement(history, before, after, now, end=end)
        elif (unshown := claim_unshown_theft(history, before, after, now)) is not None:
            yield unshown
        elif after.began is Handover.REPLACED:
            yield from find_replaced_pod(history, before, after, now)
        elif after.began is Handover.DELETED or (before.is_deleted and after.began is Handover.CLAIMED):
            yield from claim_deletion(histories, history, before, after, now=now)
        elif was_removed_while_leading(before, now):
            yield claim_removal(histories, history, before, after, now=now)
        elif after.since in lost and before.is_known_to_have_held:
            yield claim_loss(history, lost[after.since], after, now)
        elif _was_never_taken_up(history, before, after):
            yield claim_never_taken_up(history, before, after, now)


def _was_never_taken_up(history: LeaseHistory, before: Tenure, after: Tenure) -> bool:
    """Return whether the input shows that a chosen holder did not renew the lease before another one had it."""
    is_followed = (
        after.began in {Handover.EXPIRED, Handover.PREFERRED}
        and after.beginning.is_dated
        and not after.beginning.is_unseen
    )
    return before.is_never_taken_up and is_followed and history.kind is not InputKind.REVIEW


def drop_repeated(
    found: Sequence[ReportFinding],
    stored: Iterable[ReportFinding],
    *,
    may_lack_renewals: bool,
    is_server_clock: bool,
    is_old_state: bool = False,
) -> list[ReportFinding]:
    """Return what a stored lease shows besides its history, without a guess at what the history shows.

    `may_lack_renewals`: a log lacks requests, and a renewal may be one of them, so the lease need not have expired.
    `is_server_clock`: the clock of an API server was set, by which that of the holder seems to be off.
    `is_old_state`: renewTime is that of a state that was stored before, which another one wrote in.
    """
    dropped = {one.check for one in found if one.check == "lease-shared"}
    if may_lack_renewals:
        dropped |= {"expired", "abandoned", "heartbeat-silent"}
    if is_server_clock or is_old_state or any(_is_about(one, RENEW_TIME) for one in found):
        dropped.add("holder-clock")  # the stored time is not that of its writer's clock
    return [one for one in stored if one.check not in dropped]


def find_server_clock(
    histories: ClusterHistory, history: LeaseHistory, status: LeaseStatus | None, now: int
) -> ClockStep | None:
    """Return the step of an API server's clock by which that of a holder, which was right before, seems to be off."""
    step = histories.index.find_server_clock_step(history, 0, now)
    ahead = status.ahead if status else None
    return step if step is not None and ahead is not None and abs(ahead - step.by) <= 2 * TOLERANCE else None


def _is_about(finding: ReportFinding, field: str) -> bool:
    return isinstance(finding, Claim) and finding.arguments.get("field") == field
