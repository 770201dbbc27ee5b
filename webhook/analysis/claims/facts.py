"""The claims that state what is, and what happened, as far as no finding does: the holder, renewals, followers."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from webhook.admission.rules.expiry import date_last_renewal
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.arguments import NO_ARGUMENTS, bound_write, convert_finding, drop_unknown
from webhook.analysis.claims.claim import Claim, Length, WriteAuthor
from webhook.analysis.claims.evidence.writers.related_writes import describe_related_write
from webhook.analysis.claims.findings.askers import claim_no_candidate
from webhook.analysis.claims.findings.headline import make_headline
from webhook.analysis.claims.findings.silent_together_claim import claim_silent_together
from webhook.analysis.claims.handover_clauses import (
    describe_address_of_end,
    describe_dating_of_end,
    describe_ending,
    describe_handover,
    describe_renewals_of_another,
)
from webhook.analysis.claims.handovers import name_taking, was_left_to_expire
from webhook.analysis.claims.words import describe_by_writer, format_age, format_clock, format_name
from webhook.analysis.history.holders.tenure import Handover, Tenure, with_previous
from webhook.analysis.history.status import (
    LeaseState,
    LeaseStatus,
    find_latest_expiry,
    has_written_both,
    is_release,
    is_renewal_dated,
    may_be_unstamped,
)
from webhook.analysis.inputs.items import Writer
from webhook.findings import ObjectName, Severity
from webhook.kubernetes.managed_fields import DURATION, HOLDER, RENEW_TIME
from webhook.kubernetes.objects import OLDEST_EMULATION_VERSION
from webhook.kubernetes.times import SECOND, format_length, get_readable_instant, normalize
from webhook.kubernetes.versions import parse_version


def find_facts(account: Account) -> Iterator[Claim]:
    """Yield the claims about one lease that are not findings, those about the state first."""
    yield from _collect_state(account)
    for before, tenure in with_previous(account.history.tenures):
        yield from _collect_tenure(account, before, tenure)
    if (unserved := account.election.unserved) is not None:
        text = f"the API server answered (404) that {unserved.describe()}"
        yield _make_fact(account, "candidates-not-served", text, arguments={"to": unserved.at})
    for write in account.related_writes:
        how = None if write.is_surely_not_dry_run else "unknown"
        changed = f"{write.kind} {write.namespace}/{write.name}" if write.namespace else f"{write.kind} {write.name}"
        arguments = {"object": changed, "how": how, "by": WriteAuthor(write.writer), "to": write.at}
        yield _make_fact(account, "related-write", describe_related_write(write), at=write.at, arguments=arguments)
    for deletion in account.pods.deletions:
        how, by = None if deletion.deletion.is_surely_not_dry_run else "unknown", WriteAuthor(deletion.deletion.writer)
        arguments = {
            "identity": None if deletion.tenure.is_stand_in else deletion.tenure.holder,
            "how": how,
            "by": by,
            "to": deletion.deletion.at,
        }
        yield _make_fact(account, "holder-pod-deleted", deletion.text, at=deletion.deletion.at, arguments=arguments)


def find_claims(account: Account) -> Iterator[Claim]:
    """Yield every claim about one lease, the findings last."""
    yield from claim_no_candidate(account)
    yield from claim_silent_together(account)
    yield from find_facts(account)
    yield from map(convert_finding, account.findings)


def _make_fact(
    account: Account,
    kind: str,
    text: str,
    *,
    at: int | None = None,
    over_since: int | None = None,
    arguments: Mapping[str, object] = NO_ARGUMENTS,
) -> Claim:
    return Claim(
        check=kind,
        severity=Severity.INFO,
        message=text,
        subject=ObjectName("Lease", account.history.namespace, account.history.name),
        over_since=over_since,
        at=at,
        arguments=drop_unknown(arguments),
    )


def _collect_state(account: Account) -> Iterator[Claim]:
    history, status, now = account.history, account.status, account.now
    if history.is_mixed or status is None:
        is_gone = history.is_deleted and history.existence.is_deletion_sure
        if is_gone and not (history.is_mixed or history.hidden_since):
            yield _make_fact(account, "does-not-exist", make_headline(account))
        return
    holder = status.holder
    if holder:
        yield _make_fact(account, "holder", f"{format_name(holder)} holds it", arguments={"identity": holder})
        yield from _collect_holder(account, status)
    if status.state is LeaseState.NEVER_HELD and history.existence.is_seen_created and not history.tenures:
        yield _make_fact(account, "never-held", make_headline(account))
    if status.state is LeaseState.FROZEN and status.block:
        yield _make_fact(
            account, "frozen", make_headline(account), arguments={"identity": holder, "to": status.block.until}
        )
    # Stamps have whole seconds, so a claim is of the next one; the sentence has the time that is printed everywhere.
    # Without a stamp only the writer says when it renewed.
    is_dated = status.takeable_at is not None and status.from_stamps
    takeable = (status.takeable_at // SECOND + 1) * SECOND if is_dated and status.takeable_at else None
    # A renewal may be among the requests that a log lacks.
    if (
        status.state is LeaseState.EXPIRED
        and holder
        and takeable is not None
        and takeable <= now
        and not account.doubt.may_lack_renewals
    ):
        since = _find_expiry(account, takeable)
        text = f"{format_name(holder)} is named and the lease has expired"
        shown = status.takeable_at if since == takeable else since
        text += "" if shown is None else f", since {format_clock(shown, now)}"
        arguments = {"identity": holder, "from": since, "to": now}
        yield _make_fact(account, "expired", text, over_since=0, arguments=arguments)
    is_released = history.lease is not None and is_release(history.lease.spec)
    is_shown = account.unshown_duration is None
    if status.state is LeaseState.LIVE and holder and takeable is not None and not is_released and is_shown:
        yield _make_fact(
            account,
            "expires",
            f"it expires at {format_clock(status.takeable_at or takeable, now)} unless renewed",
            arguments={"identity": holder, "from": takeable},
        )
    if status.state is LeaseState.RELEASED:
        yield _claim_free(account, status)


def _find_expiry(account: Account, takeable: int) -> int | None:
    """Return from when on the holder's lease was not live; None if another writer may have changed that afterwards."""
    history, tenure = account.history, account.tenure
    if history.lease is not None and may_be_unstamped(history.lease.spec, history.entries):
        return None
    if history.is_list_only or tenure is None or tenure.last_renewal_write is None or tenure.duration is None:
        whole = {HOLDER, RENEW_TIME, DURATION}
        owned = [{name for name in whole if name in one.owned.spec} for one in history.entries]
        latest = find_latest_expiry(history.lease.spec, history.entries) if history.lease else None
        since = max(takeable, latest or 0) if [one for one in owned if one] == [whole] else None
        if since is None or history.is_list_only or tenure is None or tenure.began is Handover.SEEN:
            return since
        return None if tenure.beginning.write.latest is None else max(since, tenure.beginning.write.latest)
    since = takeable + max(0, tenure.duration - (history.duration or 0)) * SECOND
    return max(since, tenure.beginning.write.latest or since)


def _claim_free(account: Account, status: LeaseStatus) -> Claim:
    tenure, now = account.history.latest_tenure, account.now
    ended = tenure.ended if tenure else None
    at = status.last_renewal if status.from_stamps else None
    since = None if at is None else (at // SECOND + 1) * SECOND
    if ended is not None:
        since = ended.latest if account.history.is_end_seen and not ended.is_claimed else None
    elif tenure is not None and account.may_be_shortened_by_another:
        since = None  # some time after the last renewal
    since = since if since is not None and since <= now else None
    return _make_fact(account, "free", make_headline(account), over_since=0, arguments={"from": since, "to": now})


def _collect_holder(account: Account, status: LeaseStatus) -> Iterator[Claim]:
    history, now, tenure = account.history, account.now, account.tenure
    first = _find_first_of_identity(history.tenures)
    if tenure and first and first.began is not Handover.SEEN and not first.beginning.is_unseen:
        within = bound_write(first.beginning.write)
        before = next((one for one, after in pairwise(history.tenures) if after is first), None)
        by = _find_taker(before, first)
        text = f"held since {format_clock(first.since, now)}{describe_by_writer(first.beginning.write.writer)}"
        if within:
            arguments = {"identity": tenure.holder, "by": by, **within}
            yield _make_fact(account, "held-since", text, arguments=arguments)
    renewed = tenure.last_renewal_write if tenure else None
    is_seen = renewed is not None and all(one.end <= renewed.at for one in account.coverage.unrecorded)
    if renewed is not None and is_seen and account.is_renewed_last and renewed.earliest:
        dated = {"how": renewed.dating.value, **bound_write(renewed)}
        yield _claim_last_renewal(account, status, renewed.at, renewed.writer, dated)
    elif status.last_renewal is not None and account.is_renewed_last and history.is_list_only and _is_renewal(account):
        at, how = status.last_renewal, "stamp" if status.from_stamps else "writer-clock"
        bounds = {"earliest": at, "latest": at}
        if status.from_stamps:
            # Another write under the same field manager, shortly after the renewal, moves the stamp.
            second = at // SECOND * SECOND
            claimed = get_readable_instant(normalize(history.lease.spec.renew_time)) if history.lease else None
            bounds = {"earliest": min(second, claimed or second), "latest": second + SECOND}
        yield _claim_last_renewal(account, status, at, None, {"how": how, **bounds})
    usual = history.renewals.usual
    if usual is not None and not history.renewals.has_several_clocks:
        longest = history.renewals.longest
        text = f"renewed every {format_length(usual)}; longest gap {format_length(longest)}"
        lengths = {"seconds": Length(usual), "longest_seconds": Length(longest)}
        yield _make_fact(account, "renewal-interval", text, arguments=lengths)


def _claim_last_renewal(
    account: Account, status: LeaseStatus, at: int, writer: Writer | None, dated: Mapping[str, object]
) -> Claim:
    """Return the claim that a holder last renewed its lease at a moment; `dated` are how that is known, and bounds."""
    now = account.now
    text = f"last renewed {format_clock(at, now)}, {format_age(at, now)}{describe_by_writer(writer)}"
    arguments = {"identity": status.holder, "by": _name_author(writer, account.manager_of_renewal), **dated}
    return _make_fact(account, "last-renewed", text, arguments=arguments)


def _is_renewal(account: Account) -> bool:
    """Return whether a state shows that it was renewed since it was taken."""
    spec = account.history.lease.spec if account.history.lease else None
    entries = account.history.entries
    if spec is None or not has_written_both(entries) or spec.renew_time == spec.acquire_time:
        return False
    if account.status is None or not account.status.from_stamps:
        return True
    # With one who wrote something else at the time or later, the stamp may have moved without a renewal.
    is_last = all(one.owns_renew_time or (one.stamp or 0) < (date_last_renewal(entries) or 0) for one in entries)
    return is_last and is_renewal_dated(spec, entries)


def _has_taken(tenures: Sequence[Tenure], holder: str, process: Writer) -> bool:
    """Return whether a process took the lease under this name in another tenure."""
    own = (one.processes.taken_by for one in tenures if one.holder == holder and one.began is not Handover.REPLACED)
    return any(one is not None and one.is_same(process) for one in own)


def _find_first_of_identity(tenures: Sequence[Tenure]) -> Tenure | None:
    """Return the tenure in which the present identity was put there: other pods may have replaced its first one."""
    found: Tenure | None = None
    for tenure in reversed(tenures):
        is_kept = found is None or found.began in {Handover.REPLACED, Handover.EXPIRED}
        if not is_kept or (found is not None and tenure.holder != found.holder):
            break
        found = tenure
    else:
        # Earlier ones may have been dropped: there are too many.
        if found is not None and found.began in {Handover.REPLACED, Handover.EXPIRED}:
            return None
    return found


def _find_taker(before: Tenure | None, tenure: Tenure) -> WriteAuthor:
    """Return who put the holder of a tenure there.

    Who takes back a lease that it released does not write the holder again: its owner may be of an earlier write.
    """
    is_named_before = before is not None and before.holder == tenure.holder
    return _name_author(tenure.beginning.write.writer, "" if is_named_before else tenure.beginning.manager)


def _name_author(writer: Writer | None, manager: str) -> WriteAuthor:
    """Return a writer, or, if the input does not show it, the field manager of the write, which a client chooses."""
    return WriteAuthor(writer.process) if writer and writer.user else WriteAuthor(None, manager)


def describe_handover_with_end(account: Account, tenure: Tenure, before: Tenure | None) -> str:
    """Say how a holder came to hold the lease, and how the pod before had ended under its name, if a log shows that.

    Of one that an API server chose, say if its version is why.
    """
    is_idle = was_left_to_expire(account.history, tenure, account.now)
    end = account.pods.ends_of_replaced.get(tenure.since, "")
    handover = describe_handover(tenure, before, end, is_idle=is_idle)
    return f"{handover}{_describe_version(account, tenure, before)}"


def _describe_version(account: Account, tenure: Tenure, before: Tenure | None) -> str:
    """Say that a holder was chosen by the older version that its candidate emulates, as the end of a clause."""
    if before is None or not tenure.is_chosen or account.election.strategy != OLDEST_EMULATION_VERSION:
        return ""
    # Who is asked to step down could go on: of one that had stopped, the version does not matter.
    request = before.step_down
    if request.asked is None or request.successor != tenure.holder or request.is_ignored:
        return ""
    versions = dict(account.election.emulation_versions)
    own, other = (parse_version(versions.get(one.holder, "")) for one in (tenure, before))
    if own is None or other is None or own >= other:
        return ""
    return f"; chosen for its older emulationVersion, {own}: that of {format_name(before.holder)} is {other}"


def _collect_tenure(account: Account, before: Tenure | None, tenure: Tenure) -> Iterator[Claim]:
    if not tenure.holder or tenure.is_stand_in or tenure.beginning.is_unseen or tenure.began is Handover.SEEN:
        return
    within, text = bound_write(tenure.beginning.write), describe_handover_with_end(account, tenure, before)
    by = _find_taker(before, tenure)
    if not within:
        return
    if tenure.began is Handover.REPLACED:
        yield _make_fact(
            account,
            "holder-replaced",
            text,
            at=tenure.since,
            arguments={"identity": tenure.holder, "by": WriteAuthor(tenure.processes.own), **within},
        )
        return
    if tenure.began is Handover.EXPIRED and before is not None and before.holder == tenure.holder:
        return  # another pod renewed it under the same text: no one put it there again
    if tenure.is_chosen:
        taker = tenure.processes.taken_by
        author = WriteAuthor(taker, "" if taker else tenure.beginning.manager)
        arguments = {"identity": tenure.holder, "by": author, **within}
        yield _make_fact(account, "chosen", text, at=tenure.since, arguments=arguments)
    how = name_taking(tenure, before, is_seen_created=account.history.existence.is_seen_created)
    previous = tenure.previous if before else None
    leaderless = tenure.leaderless if how in {"after-expiry", "after-release"} else None
    yield _make_fact(
        account,
        "taken",
        text,
        at=tenure.since,
        arguments={
            "identity": tenure.holder,
            "previous": previous,
            "how": how,
            "by": by,
            "seconds": None if leaderless is None else Length(leaderless),
            **within,
        },
    )
    if tenure.processes.foreign_taker and not tenure.is_chosen:
        arguments = {"identity": tenure.holder, "by": WriteAuthor(tenure.processes.foreign_taker), **within}
        yield _make_fact(account, "written-in", text, at=tenure.since, arguments=arguments)
    if tenure.ended and tenure.removal.writer is not None and not tenure.is_deleted:
        yield _make_fact(
            account,
            "released",
            f"{describe_ending(tenure)}{describe_address_of_end(tenure)}{describe_dating_of_end(tenure)}",
            at=tenure.until,
            arguments={
                "identity": tenure.holder,
                "how": _name_releaser(tenure),
                "by": WriteAuthor(tenure.removal.writer, tenure.removal.manager),
                **bound_write(tenure.ended),
            },
        )
    yield from _collect_second_writers(account, tenure)


def _name_releaser(tenure: Tenure) -> str:
    if tenure.removal.is_own is None:
        return "unknown"
    return "own" if tenure.removal.is_own else "foreign"


def _collect_second_writers(account: Account, tenure: Tenure) -> Iterator[Claim]:
    """Yield who else renewed it under this identity, but not who took the lease as it before."""
    now = account.now
    for other, seen in tenure.processes.others.items():
        if _has_taken(account.history.tenures, tenure.holder, other) or tenure.processes.may_be_taken_by(other):
            continue
        yield _make_fact(
            account,
            "second-writer",
            describe_renewals_of_another(tenure, other, seen, now),
            at=seen.first,
            over_since=_find_end(account, tenure, seen.last),
            arguments={
                "identity": tenure.holder,
                "by": WriteAuthor(other),
                "count": seen.count,
                "from": seen.earliest,
                "to": seen.latest,
            },
        )


def _find_end(account: Account, tenure: Tenure, last: int) -> int | None:
    """Return since when another writer, which renewed at `last`, no longer renews: 0 if it does, None if unknown."""
    if tenure.until is not None:
        # It may have gone on as another pod took over this identity.
        return None if account.holder == tenure.holder else last
    if account.history.may_lack_writes(last, account.now):
        return None
    return 0 if account.now - last < (account.history.duration or 0) * SECOND else last
