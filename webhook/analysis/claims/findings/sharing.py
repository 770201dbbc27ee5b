"""Claims about leases, or identities, that several processes or applications use."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.analysis.claims.advice.on_writers import advise_after_sharing, advise_on_writer
from webhook.analysis.claims.claim import REPLACED, Advice, Claim
from webhook.analysis.claims.commands import (
    find_holder_without_pod,
    make_command_for_audit_log,
    make_command_for_managers,
    make_command_for_nodes_of_pods,
    make_command_for_writers,
)
from webhook.analysis.claims.evidence.pods.workload_names import find_deployment
from webhook.analysis.claims.evidence.writers.foreign_writes import is_taken_by_stranger
from webhook.analysis.claims.evidence.writers.manager_runs import describe_annotation
from webhook.analysis.claims.evidence.writers.stored_copies import list_managers_of_copies
from webhook.analysis.claims.findings.contests import find_contest
from webhook.analysis.claims.findings.lease_claim import MAX_NAMED, find_identity, make_claim
from webhook.analysis.claims.findings.refusals import is_nameless
from webhook.analysis.claims.words import (
    describe_user,
    describe_writer,
    format_clock,
    format_count,
    format_name,
    join_with_and,
)
from webhook.analysis.history.holders.replacement import find_lost_tenure
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.renewals import estimate_deadline
from webhook.analysis.history.status import LeaseStatus
from webhook.analysis.inputs.items import InputKind, Writer
from webhook.analysis.named_pods import find_named_pod
from webhook.findings import Severity
from webhook.kubernetes.managed_fields import OF_API_SERVERS
from webhook.kubernetes.request import UserInfo
from webhook.kubernetes.times import SECOND, format_length
from webhook.text.commands import make_kubectl_prefix, quote_name

_ORDINAL: Final = re.compile(r"-\d+$")
"""A number at the end of a name, as of the pods of a StatefulSet."""


def find_replaced_pod(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> Iterator[Claim]:
    """Yield a finding if another pod renewed under the identity of one that had missed no renewal by then.

    A pod that is deleted by force, or whose node is cut off, may run on while the next one has its name.
    """
    if before.last_renewal_write is None:
        return  # when it renewed last is not shown
    silence = after.since - before.kept_until
    sources = history.requests.find_sources(before)
    refused = [
        one for one in history.requests.refusals if one.at > after.since and is_nameless(one) and one.source in sources
    ]
    is_shared = any(one.processes.has_several_writers for one in history.tenures)  # which another finding says
    is_heard = any(history.requests.is_only_source_of(before, one.source) for one in refused)
    if is_shared or (silence > (history.renewals.longest_usual or 0) and not is_heard):
        return
    # A renewal by an unknown writer may be by the previous pod.
    last_at = max(before.kept_until, after.processes.unknown_at)
    went_on = ""
    if refused:
        writes = f"{format_count(len(refused), 'write')} without accepted credentials"
        went_on = f"; {writes} followed from its address and program until {format_clock(refused[-1].at, now)}"
    since = format_length(max(0, silence))
    message = (
        f"at {format_clock(after.since, now)} another pod began to renew it as {format_name(after.holder)}, "
        f"{since} after the last renewal by the previous pod{went_on}: unless that pod had stopped, both may have led, "
        f"for up to {format_length(estimate_deadline(before.duration))} with client-go's default settings"
    )
    pods = dict.fromkeys(quote_name(one.pod) for one in (before.processes.own, after.processes.own) if one and one.pod)
    sentence = "Check whether the previous pod still runs, on an unreachable node or after a forced deletion:"
    advice = Advice(sentence, " ".join((make_kubectl_prefix(history.namespace), "get pods", *pods, "-o wide")))
    yield make_claim(
        history,
        "identity-shared",
        Severity.WARNING,
        message,
        advice,
        REPLACED,
        over_since=None if now - last_at < (before.duration or 0) * SECOND else after.since,
        arguments={"identity": after.holder},
    )


def find_second_writers(history: LeaseHistory, status: LeaseStatus | None, now: int) -> Iterator[Claim]:
    """Yield what shows that several processes, or several applications, use one identity or one lease."""
    several = [one for one in history.tenures if one.processes.has_several_writers and len(one.processes.writers) > 1]
    if several:
        yield _claim_shared_identity(history, several[-1], now)
    elif history.renewals.is_doubled and status is not None and status.holder and not _is_renewed_by_one_pod(history):
        yield _claim_doubled_renewals(history, status.holder)
    yield from _find_applications(history, status, now)


def _claim_shared_identity(history: LeaseHistory, tenure: Tenure, now: int) -> Claim:
    writers = [describe_writer(one) for one in tenure.processes.writers]
    named = list(dict.fromkeys(writers))
    counted = {describe_writer(one): _count_renewals(tenure, one) for one in tenure.processes.writers}
    shown = [f"{one} ({counted[one]})" if len(named) > 1 else one for one in sorted(named[-3:])]
    who = " and ".join([*shown, *(["others"] if len(named) > 3 else [])])
    who += "" if len(named) > 1 else f", {len(writers)} pods by their uids"
    # It goes on while at least two renew, however often.
    times = sorted([tenure.last_renewal, *(other.last for other in tenure.processes.others.values())])
    last = times[-2]
    lasts = min(tenure.duration or 0, history.duration or 0)
    is_silent = now - last >= lasts * SECOND
    is_over = tenure.until is not None or is_silent
    # They may go on in a later tenure of their identity, also the one that has not renewed there yet.
    again = history.current_tenure if tenure.until is not None else None
    has_again = again is not None and again.holder == tenure.holder
    is_alone = is_silent and again is not None and again.processes.is_alone
    only = again.processes.own if again is not None and has_again and is_alone else None
    is_again = has_again and only is None
    # Of renewals that were not seen it is known until when they were made.
    is_unseen = (tenure.has_unseen_renewals and not is_over) or history.may_lack_writes(last, now)
    # A renewal by an unknown writer may be by another one of them, or by one more.
    is_by_unknown = is_over and tenure.until is None and now - tenure.processes.unknown_at < lasts * SECOND
    is_unknown = is_again or is_unseen or is_by_unknown or not (is_over or tenure.is_renewed_last_by_own)
    used, renew = ("was used", "renewed") if is_unknown or is_over else ("is used", "renew")
    is_in_turns = tenure.processes.renews_in_turns
    over = _find_end(tenure, times, lasts * SECOND) if is_over else 0
    as_leaders = "" if history.is_heartbeat else ", as if each led"
    until = f" until {format_clock(over, now)}" if is_over and not is_unknown else ""
    message = (
        f"one identity, {format_name(tenure.holder)}, {used}{until} by several processes "
        f"that {renew} in turn, at least {who}{as_leaders}"
    )
    if only is not None and again is not None:
        message += f"; since {format_clock(again.since, now)} only {describe_writer(only)} has renewed it as that"
    in_place = _describe_one_in_place(history, tenure, now) or _describe_nameless(history, tenure, now)
    return make_claim(
        history,
        "identity-shared",
        Severity.ERROR if is_in_turns and not (in_place and history.is_heartbeat) else Severity.WARNING,
        (in_place or message) if is_in_turns else _describe_following(tenure, now),
        advise_after_sharing(history, tenure),
        "shared-identity",
        over_since=None if is_unknown else over,
        arguments={"identity": find_identity(tenure)},
    )


def _describe_one_in_place(history: LeaseHistory, tenure: Tenure, now: int) -> str:
    """Say that another process renewed while the holder's own did not, and that this went on; "" if it was not so."""
    own, sharers = tenure.processes.own, tenure.processes.sharers
    if own is None or len(sharers) != 1:
        return ""
    other = tenure.processes.others[sharers[0]]
    for silence in history.renewals.silences:
        is_its = history.find_tenure_of_silence(silence) is tenure and silence.longest_gap is not None
        if is_its and silence.start < other.first and other.last < silence.end:
            first, last, start, end = (
                format_clock(one, now) for one in (other.first, other.last, silence.start, silence.end)
            )
            mark = describe_annotation(history, lambda one: sharers[0].is_same(one.writer))
            times = f"{format_count(other.count, 'renewal')}{mark}"
            return (
                f"from {first} to {last} {describe_writer(sharers[0])} renewed it as {format_name(tenure.holder)} "
                f"({times}), while {describe_writer(own)} did not, from {start} to {end}"
            )
    return ""


def _describe_nameless(history: LeaseHistory, tenure: Tenure, now: int) -> str:
    """Say that all others renewed by patches that name no holder, and so under no identity; "" if it was not so."""
    if not tenure.processes.is_shared_without_names:
        return ""
    found = []
    for who in tenure.processes.sharers[-MAX_NAMED:]:
        seen, lost = tenure.processes.others[who], find_lost_tenure(history.tenures, tenure, who)
        renewed = f"renewed the lease {format_count(seen.count, 'time')} until {format_clock(seen.last, now)}"
        after = f", after it had lost it at {format_clock(lost.until, now)}" if lost and lost.until else ""
        found.append(f"{describe_writer(who)} {renewed}{after}")
    holder, own = format_name(tenure.holder), tenure.processes.own or Writer()
    return (
        f"{join_with_and(found)}, by patches that name no holder, while it named {holder}, and "
        f"{describe_writer(own)} renewed it ({_count_renewals(tenure, own)}): each may have led"
    )


def _count_renewals(tenure: Tenure, writer: Writer) -> str:
    """Say how often one of several processes renewed it under its name, as far as was seen."""
    other = tenure.processes.others.get(writer)
    # The write that made the first state of an input may have been one, too.
    is_first = other is None and tenure.began is Handover.SEEN
    least = "at least " if is_first or tenure.processes.unknown_renewals else ""
    return least + format_count(tenure.processes.known_renewals if other is None else other.count, "renewal")


def _find_end(tenure: Tenure, times: Sequence[int], lasts: int) -> int:
    """Return when an identity was last seen shared: `times` are those of the last renewal of each that renewed it."""
    if not tenure.processes.renews_in_turns:
        return tenure.processes.others[tenure.processes.sharers[-1]].last
    # Who goes on for long after the others had stopped has it alone.
    return times[-1] if times[-1] - times[-2] < lasts else times[-2]


def _describe_following(tenure: Tenure, now: int) -> str:
    """Say that a user continued where another one had renewed: a process may get other credentials."""
    processes = tenure.processes
    other = processes.sharers[-1]
    before = f", and {describe_writer(processes.own)} no more" if processes.own else ""
    seen, until = processes.others[other], "on"
    if seen.is_before and processes.own:
        renewed = (
            f"until {format_clock(seen.last, now)} {describe_writer(other)} renewed it as {format_name(tenure.holder)}"
        )
        return (
            f"{renewed}, and since then {describe_writer(processes.own)}: "
            "its process has had other credentials since then, or another process wrote in its name"
        )
    if tenure.until is not None:
        until = f"to {format_clock(seen.last, now)}"
    renewed = (
        f"from {format_clock(seen.first, now)} {until} {describe_writer(other)} "
        f"renewed it as {format_name(tenure.holder)}"
    )
    return f"{renewed}{before}: its process has had other credentials since then, or another one writes in its name"


def _is_renewed_by_one_pod(history: LeaseHistory) -> bool:
    """Return whether a log shows that one pod made every renewal of the last holder: both rhythms are its own then.

    A user without the token of a pod may be several processes.
    """
    seen = (one.processes for one in [*history.tenures][-1:])
    return any(one.own and one.own.pod and not (one.others or one.unknown_renewals) for one in seen)


def _claim_doubled_renewals(history: LeaseHistory, holder: str) -> Claim:
    intervals = list(history.renewals.latest)[-4:]
    shown = ", ".join(f"{one / SECOND:.1f}" for one in intervals)
    message = (
        f"{format_name(holder)} is renewed in two rhythms (the last intervals: {shown} s), "
        "as if by two processes under one identity"
    )
    sentence = "A watch does not show who writes; the audit log does:"
    advice = Advice(sentence, make_command_for_audit_log(history.namespace, history.name))
    if history.requests.is_logged:
        sentence = "The log does not show which process made each renewal; the sourceIPs in its events may."
        advice = Advice(f"{sentence} To see the lease:", make_command_for_managers(history))
    return make_claim(
        history, "identity-shared", Severity.WARNING, message, advice, "shared-identity", arguments={"identity": holder}
    )


def _find_applications(history: LeaseHistory, status: LeaseStatus | None, now: int) -> Iterator[Claim]:
    users = {one.name for tenure in history.tenures for one in _list_electors(tenure)}
    # Without objects a log shows only who wrote, and beside a holder another process may write in its name.
    held = all(
        len({one.name for one in tenure.processes.writers}) < 2 and not tenure.is_stand_in for tenure in history.tenures
    )
    verb, deployment = "held" if held else "written", ""
    if any(tenure.processes.writers for tenure in history.tenures):
        if len(users) < 2 or any(user.startswith("system:") for user in users):
            return
        are_accounts = all("/" in user for user in users)
        kind, names = "service accounts" if are_accounts else "users", sorted(users)
        what = f"at least {len(names)} {kind} have {verb} this lease"
    else:
        managers = _list_managers(history, status)
        if len(managers) < 2 or OF_API_SERVERS in managers:
            return
        names, deployment = sorted(managers), _find_common_deployment(history)
        what = f"this lease was {verb} under at least {len(names)} field managers, which clients choose"
    shown = ", ".join(format_name(one) for one in names[:MAX_NAMED])
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    stranger = _find_chosen_stranger(history)
    how = _describe_sharing(history, names, deployment, stranger, held=held)
    message, sentence, severity = f"{what}: {shown}{more}{how.clause}", how.sentence, how.severity
    is_stolen = _is_stolen_once(history)
    if is_stolen:
        sentence = "Find out first how one of them took it from another that held it. To see what runs there:"
    advice = Advice(sentence, make_command_for_nodes_of_pods(history.namespace))
    if stranger is None and not is_stolen and (guest := _find_guest(history)) is not None:
        own, namespace = guest.processes.own, _find_namespace(guest)
        since, until = (format_clock(one, now) for one in (guest.since, guest.until or guest.last_renewal))
        message += f"; {describe_writer(own or Writer())}, of another namespace, held it from {since} to {until}"
        sentence = f"If pods of namespace {format_name(namespace)} are not meant to lead here, see what lets them:"
        command = f"{make_command_for_writers(history)}; {make_command_for_nodes_of_pods(namespace)}"
        advice = Advice(sentence, command)
    elif stranger is not None:
        advice = _advise_on_chosen_stranger(history, stranger)
    elif not is_stolen and (found := _find_person(history, now)) is not None:
        person, when, sentence = found
        message += when
        advice = advise_on_writer(f"{sentence} Find out whether it is meant to lead.", history, person)
    yield make_claim(
        history, "lease-shared", severity, message, advice, "shared-lease", arguments={"identities": names}
    )


class _Sharing(Struct, frozen=True):
    """How several applications, or what seems to be several, use one lease."""

    clause: str = ""
    """What follows their names; "" if nothing is known."""
    sentence: str = (
        "If they are two applications, give each a lease name (election ID) of its own, unless one is meant to wait "
        "for the other. To see what runs there:"
    )
    """What to do."""
    severity: Severity = Severity.WARNING


def _find_guest(history: LeaseHistory) -> Tenure | None:
    """Return the latest pod of another namespace that held the lease, if one of its own has, too; else None."""
    led = [one for one in history.tenures if _list_electors(one)]
    pods = (one for one in led if one.processes.own is not None and one.processes.own.pod)
    guests = [one for one in pods if _find_namespace(one) not in {"", history.namespace}]
    has_own = any(_find_namespace(one) == history.namespace for one in led)
    return guests[-1] if guests and has_own else None


def _find_namespace(tenure: Tenure) -> str:
    """Return the namespace of the service account of a holder's process; "" if it has none."""
    account = UserInfo(tenure.processes.own.user).service_account if tenure.processes.own is not None else None
    return account[0] if account is not None else ""


def _describe_sharing(
    history: LeaseHistory, names: Sequence[str], deployment: str, stranger: Writer | None, *, held: bool
) -> _Sharing:
    """Return how those of these names use the lease.

    `deployment` is the one that the pods of all holders have in common, if their names say so. `held`: each of its
    holders wrote it alone. `stranger` is who was chosen by an API server, under a name that is not its pod's.
    """
    usual = _Sharing()
    if stranger is not None:
        name = format_name(history.tenures[-1].holder)
        return replace(usual, clause=f"; {describe_writer(stranger)} renews it now, as {name}")
    if held and deployment and _has_passed_on(history):
        clause = (
            f", one after the other: by the names of its holders, pods of Deployment {format_name(deployment)}, "
            "a new version of which may write under another name"
        )
        return replace(usual, clause=clause, severity=Severity.INFO)
    if held and _has_passed_on(history):
        clause = (
            ", one after the other: one application whose new version writes under another name, or two applications, "
            "of which one then always waits"
        )
        sentence = f"If it is one application, and meant to lead, no action is needed. {usual.sentence}"
        severity = Severity.INFO if _is_seen_to_wait_no_more(history) else Severity.WARNING
        return _Sharing(clause, sentence, severity)
    if _differ_by_ordinal(names):
        clause = ": one application of which each replica has its own, or several applications"
        sentence = f"If they are replicas of one application, no action is needed. {usual.sentence}"
        return _Sharing(clause, sentence, Severity.INFO)
    return usual


def _list_managers(history: LeaseHistory, status: LeaseStatus | None) -> set[str]:
    """Return the field managers under which holders renewed, or took the lease if a watch shows that."""
    renewed = [one for one in history.tenures if one.last_renewal != one.since]
    managers = {one.manager for one in renewed if one.until is not None and one.manager}
    if history.latest_tenure and history.latest_tenure.until is None and status and status.manager:
        managers.add(status.manager)
    managers -= list_managers_of_copies(history)
    # Some electors apply the lease under their identity: that names no program. Who edits a lease holds none.
    managers -= {one.holder for one in history.tenures}
    managers = {one for one in managers if not one.startswith("kubectl")}
    # Who never wrote a holder is no application that elects, unless an API server writes that for it.
    naming = {one.beginning.manager for one in history.tenures if one.beginning.manager}
    if naming and not any(one.is_coordinated for one in history.tenures):
        managers &= naming
    return managers


def _is_stolen_once(history: LeaseHistory) -> bool:
    """Return whether another one took the lease while its holder was live, and not as two that contest it.

    Two applications that both elect by the lease take it from each other again and again.
    """
    is_stolen = any(is_taken_by_stranger(before, after) for before, after in pairwise(history.tenures))
    return is_stolen and find_contest(list(history.tenures)) is None


def _find_person(history: LeaseHistory, now: int) -> tuple[Writer, str, str] | None:
    """Return who holds it without the token of a pod, or held it before one that has such a token.

    With that, the end of a message which says when that was, unless it goes on, and a sentence of an advice.
    """
    current = history.current_tenure
    person = find_holder_without_pod(history, current) if current is not None else None
    if person is not None:
        return person, "", f"{describe_user(person)} holds it now, and not with the token of a pod."
    *before, last = history.tenures
    if not any(one.pod for one in last.processes.writers):
        return None
    for tenure in reversed(before):
        person = find_holder_without_pod(history, tenure)
        if person is not None and tenure.began is not Handover.SEEN:
            who = describe_user(person)
            since, until = (format_clock(one, now) for one in (tenure.since, tenure.last_renewal))
            held = f"; {who}, not with the token of a pod, from {since} to {until}"
            return person, held, f"{who} held it until {until}, and not with the token of a pod."
    return None


def _find_chosen_stranger(history: LeaseHistory) -> Writer | None:
    """Return who holds it now, if an API server chose that, under a name that is not its pod's; else None.

    It has another account than every holder before. Replicas of one application have one, or a name of their own.
    """
    *before, last = history.tenures
    own = last.processes.own
    is_odd = last.until is None and last.is_chosen and own is not None and own.pod and not last.processes.names_own_pod
    users = {one.processes.own.user for one in before if one.processes.own is not None}
    return own if is_odd and own is not None and users and own.user not in users else None


def _advise_on_chosen_stranger(history: LeaseHistory, stranger: Writer) -> Advice:
    sentence = (
        f"An API server chose its LeaseCandidate. If {describe_user(stranger)} has no business there, this is an "
        "intrusion: take its rights away, keep its pod as evidence, and delete the candidate. To see all of them:"
    )
    return Advice(sentence, f"{make_kubectl_prefix(history.namespace)} get leasecandidates -o yaml")


def _list_electors(tenure: Tenure) -> list[Writer]:
    """Return who led as a holder: whoever only renewed in its name, or edited the lease, elects by no lease.

    Without objects a log shows only who wrote.
    """
    processes = tenure.processes
    if not (processes.renewals or processes.is_process_known):
        return []
    if tenure.is_stand_in:
        return list(processes.writers)
    # Whoever renews a lease whose taking was not seen may do so in the name of another one.
    is_known = processes.is_process_known or tenure.began is not Handover.SEEN
    return [processes.own] if processes.own and is_known else []


def _differ_by_ordinal(names: Sequence[str]) -> bool:
    """Return whether names are equal but for a number at the end, as those of the pods of a StatefulSet."""
    return all(map(_ORDINAL.search, names)) and len({_ORDINAL.sub("", one) for one in names}) == 1


def _find_common_deployment(history: LeaseHistory) -> str:
    """Return the Deployment of whose pods all holders have the name; "" if there is none.

    Clients choose the texts of holders as they choose field managers: the one is a hint about the other, and neither
    says anything of users.
    """
    found = {find_deployment(find_named_pod(one.holder)) for one in history.tenures}
    return found.pop() if len(found) == 1 else ""


def _has_passed_on(history: LeaseHistory) -> bool:
    """Return whether each user or program had a lease once, took it when it was free, and no earlier one asks for it.

    So it is with a new version under another account. Of two applications, the one that waits asks for it.
    """
    if any(
        one.may_be_stolen or one.beginning.may_have_been_expired or one.beginning.is_over_unshown
        for one in history.tenures
    ):
        return False
    names = [_find_program(one) for one in history.tenures]
    followed = [one for one, _ in groupby(filter(None, names))]
    return len(followed) == len(set(followed)) and not _is_asked_for_by_another(history)


def _find_program(tenure: Tenure) -> str:
    return tenure.processes.writers[0].name if tenure.processes.writers else tenure.manager


def _is_asked_for_by_another(history: LeaseHistory) -> bool:
    """Return whether a process of another user than the last holder's read the lease while that one had it."""
    last, requests = history.tenures[-1], history.requests
    others = {
        who.user: who.name
        for one in history.tenures
        for who in one.processes.writers
        if _find_program(one) != _find_program(last)
    }
    names = (one for user, name in others.items() for one in (name, *requests.accounts.get(user, ())))
    return any(requests.readers.get(one, (0, 0))[1] > last.since for one in names)


def _is_seen_to_wait_no_more(history: LeaseHistory) -> bool:
    """Return whether a log has reads by holders of the lease, so that one that still waits for it would be heard."""
    return history.kind is InputKind.AUDIT_LOG and history.has_reads_of_holders
