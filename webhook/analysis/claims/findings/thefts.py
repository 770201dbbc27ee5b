"""Claims about leases that were taken while they were live."""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.admission.policy.model import is_always_exempt
from webhook.analysis.claims.advice.on_mutation import advise_on_mutation
from webhook.analysis.claims.advice.on_writers import advise_on_writer
from webhook.analysis.claims.arguments import bound_write
from webhook.analysis.claims.claim import Advice, Claim, WriteAuthor
from webhook.analysis.claims.commands import (
    MUTATORS,
    make_command_for_audit_log,
    make_command_for_log_of_holder,
    make_command_for_pod_of_writer,
)
from webhook.analysis.claims.findings.lease_claim import MAX_NAMED, find_identity, make_claim
from webhook.analysis.claims.handovers import (
    find_duration_edit,
    is_from_one_pod,
    is_handed_over,
    is_next_name,
    is_written_beside,
    takes_back,
)
from webhook.analysis.claims.words import describe_user, describe_writer, format_bound, format_clock, format_name
from webhook.analysis.history.audit_log.addresses import get_address
from webhook.analysis.history.events import LeaseEvent
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Writer
from webhook.analysis.inputs.rewriting import HOLDER_IDENTITY, RENEW_TIME
from webhook.findings import Severity
from webhook.kubernetes.request import UserInfo
from webhook.kubernetes.times import SECOND, format_length
from webhook.text.commands import make_kubectl_prefix

_MIN_CLOCK_ERROR: Final = 2 * SECOND
"""How far a clock must be off to be reported."""
_SET_BACK: Final = "set-back"
_CONCLUSION: Final = "the lease looked expired to the new holder, if that compares renewTime with its own clock"
_ONE_POD: Final = (
    "both were written with the token of one pod: unless two processes have it, or its container restarted, "
    "one process led throughout and its identity changed"
)
_BESIDE: Final = (
    "The elector of that pod went on as if it held the lease: another process there, or another one with its token, "
    "may have written that"
)
_ALIKE: Final = "one process led throughout, whose names begin alike"
_END_OF_POD: Final = re.compile("[_/:@#]")
"""What stands between the name of a pod and what makes an identity of it, such as a number of its term."""
_NO_COPY: Final = (
    "If that old renewTime is of a stored copy of the lease, such as a manifest in git or a backup, take the Lease out."
)
_RENAMED: Final = "one process led throughout and its identity changed, as acquireTime and leaseTransitions did not"


def _find_stranger(before: Tenure, after: Tenure) -> Writer | None:
    """Return who took the lease as its own identity, if that is another user than the one that held it."""
    taker = after.processes.taken_by
    if before.processes.own is None or taker is None or not taker.user or taker.user == before.processes.own.user:
        return None
    return taker


def _describe_renaming(after: Tenure, *, is_one_name: bool) -> str:
    """Say that one process may have changed its name; "" if nothing hints at that."""
    if after.is_renaming:
        return f"; or {_RENAMED}"
    return f"; or {_ALIKE}" if is_one_name else ""


def _was_left_to_expire(history: LeaseHistory, after: Tenure, now: int) -> bool:
    """Return whether no one renewed what had been written in until it expired: no process led under that name then."""
    if not after.was_left_as_written or after.duration is None:
        return False
    following = next((one for one in history.tenures if one.since > after.since), None)
    if following is not None:
        return following.began is Handover.EXPIRED
    is_over = now - after.kept_until >= after.duration * SECOND
    return is_over and not history.may_lack_writes(after.kept_until, now)


def _begin_alike(holder: str, other: str) -> bool:
    """Return whether two identities begin with one name, as of a pod, and go on after that."""
    names = {_END_OF_POD.split(one, maxsplit=1)[0] for one in (holder, other)}
    return len(names) == 1 and "-" in names.pop()


def _describe_taking(after: Tenure, other: Writer | None, stranger: Writer | None) -> str:
    taker = format_name(after.holder)
    if after.processes.taken_by is None:
        return f"{taker} was written into the lease"
    if other:
        return f"{describe_writer(other)} wrote {taker} into the lease"
    return f"{taker} took the lease ({describe_writer(stranger)})" if stranger else f"{taker} took the lease"


def claim_replacement(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> Claim:
    """Return the claim that a holder was replaced while it still held the lease: by itself, or by another one."""
    false_expiry = _explain_false_expiry(history, before, after, now)
    if is_passed_on(history, before, after, now):
        claim = _claim_hand_over if is_handed_over(after, before) else _claim_next_name
        return claim(history, before, after, now)
    if false_expiry is not None and false_expiry.cause == _SET_BACK and before.has_expired_at(after.since):
        return _claim_taking_from_silent(history, before, after, now, false_expiry=false_expiry)
    return _claim_theft(history, before, after, now, false_expiry=false_expiry)


def is_passed_on(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> bool:
    """Return whether the pod of a holder wrote the next one in, or its own next name: nobody took the lease from it."""
    is_own = is_handed_over(after, before) or is_next_name(history.tenures, after, before)
    return is_own and _explain_false_expiry(history, before, after, now) is None


def _claim_taking_from_silent(
    history: LeaseHistory, before: Tenure, after: Tenure, now: int, *, false_expiry: "_FalseExpiry"
) -> Claim:
    """Return the claim that one took a lease that its holder had let expire, and another writer had written since."""
    silent = format_length(after.since - before.last_renewal)
    took = _describe_taking(after, None, _find_stranger(before, after))
    message = (
        f"at {format_clock(after.since, now)} {took}, which {format_name(before.holder)} had not renewed for {silent}"
    )
    return make_claim(
        *(history, "lease-stolen", Severity.WARNING, f"{message}. {false_expiry.text}", false_expiry.advice, _SET_BACK),
        over_since=after.since,
        arguments=_list_arguments(before, after),
    )


def _list_arguments(before: Tenure, after: Tenure) -> Mapping[str, object]:
    return {
        "identity": find_identity(after),
        "previous": find_identity(before),
        "by": WriteAuthor(after.processes.taken_by),
        **bound_write(after.taking_write),
    }


def _claim_hand_over(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> Claim:
    other = after.processes.taken_by or Writer()
    message = (
        f"at {format_clock(after.since, now)} {format_name(before.holder)} "
        f"handed the lease over to {format_name(after.holder)}: "
        f"{describe_writer(other)} wrote it in, without a release"
    )
    sentence = "If that was intended, no action is needed. To see what it logged:"
    advice = Advice(sentence, make_command_for_log_of_holder(history.namespace, other.pod or before.holder))
    return make_claim(
        *(history, "handed-over", Severity.INFO, message, advice),
        over_since=after.since,
        arguments=_list_arguments(before, after),
    )


def _claim_next_name(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> Claim:
    """Return the claim that one pod wrote another name in place of the one that it had written before."""
    pod = after.processes.taken_by or Writer()
    message = (
        f"at {format_clock(after.since, now)} {format_name(after.holder)} followed {format_name(before.holder)}: "
        f"{_ONE_POD}"
    )
    rewritten = history.requests.rewritten.found.get(HOLDER_IDENTITY)
    sentence = "If its program changes its name, no action is needed. To see what it logged:"
    advice = Advice(sentence, make_command_for_log_of_holder(history.namespace, pod.pod or before.holder))
    return make_claim(
        *(history, "handed-over", Severity.INFO, message, advise_on_mutation(rewritten) if rewritten else advice),
        over_since=after.since,
        arguments=_list_arguments(before, after),
    )


def _claim_theft(
    history: LeaseHistory, before: Tenure, after: Tenure, now: int, *, false_expiry: "_FalseExpiry | None"
) -> Claim:
    """Return the claim that one took a lease that another one still held."""
    is_set_back = false_expiry is not None and false_expiry.cause == _SET_BACK
    duration, last = before.duration, before.last_renewal if is_set_back else before.kept_until
    left = last + duration * SECOND - after.since if duration else None
    cause = "stolen"
    other = after.processes.doubtful_taker
    is_one_pod = is_from_one_pod(after, before)
    is_one_name = after.processes.taken_by is None and _begin_alike(before.holder, after.holder)
    stranger = None if other else _find_stranger(before, after)
    took = _describe_taking(after, other, stranger)
    early = "" if left is None else f", {_describe_time_left(before, after, left)} before it expired"
    edit = find_duration_edit(history, before, after)
    if edit is not None:
        early += " by the duration that its holder wrote"
    elif is_set_back:
        early += " by its holder's last renewal"
    at, held = format_clock(after.since, now), f" while {format_name(before.holder)} still held it{early}"
    if not after.is_dated:
        at, held = (
            f"{at} or later (the input does not say when)",
            f", which {format_name(before.holder)} may still have held",
        )
    message = f"at {at} {took}{held}: {_describe_doubt(before, now)}"
    message += _describe_other_duration(before, after) + _describe_copy(after)
    message += _describe_addresses(history, other) or _describe_own_address(history, stranger)
    if false_expiry is not None:
        message, cause, advice = f"{message}. {false_expiry.text}", false_expiry.cause, false_expiry.advice
    elif is_one_pod:
        is_back = takes_back(after, before)
        written = f" back: {format_name(before.holder)}, written in from the same pod at "
        message = f"at {at} {took}{held}; {_ONE_POD}"
        if is_back:
            message = f"at {at} {took}{written}{format_clock(before.since, now)}, had not renewed it"
        cause, advice = "stolen" if is_back else "renamed", _advise_on_one_pod(history, before, after)
    elif before.was_left_as_written and before.processes.doubtful_taker and not other:
        # Who takes back what another one wrote in answers that write.
        advice = _advise_on_other_taker(history, before.holder, before.processes.doubtful_taker, is_beside=False)
        advice = replace(advice, sentence=f"{_advise_against_copy(before)}{advice.sentence}")
    elif other:
        is_beside = is_written_beside(after, before)
        message += f". {_BESIDE}" if is_beside else ""
        advice = _advise_on_other_taker(history, after.holder, other, is_beside=is_beside)
        advice = replace(advice, sentence=f"{_advise_against_copy(after)}{advice.sentence}")
    elif after.processes.taken_by is None:
        is_led = not _was_left_to_expire(history, after, now)
        message += _describe_renaming(after, is_one_name=is_one_name) if is_led else ""
        message += f". The input does not show who wrote it{_describe_manager(before, after)}"
        advice = Advice(
            "The audit log shows who wrote it:",
            make_command_for_audit_log(history.namespace, history.name),
        )
    else:
        advice = _advise_on_taker(history, before, after, edit)
    is_error = after.is_dated and not (is_one_pod or is_one_name)
    severity = Severity.ERROR if is_error else Severity.WARNING
    return make_claim(
        *(history, "lease-stolen", severity, message, advice, cause),
        over_since=after.since,
        arguments=_list_arguments(before, after),
    )


def _advise_on_one_pod(history: LeaseHistory, before: Tenure, after: Tenure) -> Advice:
    """Return what to do about two names from one pod: it took back what had been written in its place, or renamed."""
    if takes_back(after, before) and after.processes.taken_by is not None:
        return _advise_on_other_taker(history, before.holder, after.processes.taken_by, is_beside=True)
    sentence = "Check whether the pod runs two electors, or changes its name, or another one has its token. Its log:"
    pod = after.processes.taken_by.pod if after.processes.taken_by else ""
    return Advice(sentence, make_command_for_log_of_holder(history.namespace, pod or before.holder))


def _advise_on_other_taker(history: LeaseHistory, holder: str, other: Writer, *, is_beside: bool) -> Advice:
    """Return where to look for who wrote a holder in; `is_beside`: with the token of a pod, not by its elector."""
    if not is_beside:
        return advise_on_writer(f"Find out why {describe_user(other)} wrote the holder.", history, other)
    sentence = (
        f"Find out which process, in pod {format_name(other.pod)} or with its token, wrote {format_name(holder)}:"
    )
    return Advice(sentence, make_command_for_pod_of_writer(history.namespace, other))


def _describe_other_duration(before: Tenure, after: Tenure) -> str:
    """Say that one who took a lease made it shorter: some electors wait for their own duration, not for the stored one.

    So did `tryAcquireOrRenew` of client-go once.
    """
    own = after.processes.doubtful_taker is None and after.taking_write.is_logged
    if not own or before.duration is None or after.duration is None or after.duration >= before.duration:
        return ""
    return f"; it lasted {before.duration} s and lasts {after.duration} s since: some electors wait for their own only"


def _describe_copy(after: Tenure) -> str:
    """Say how old the state is that another one wrote in, as far as its renewTime shows; "" if it need not be old."""
    return f"; the renewTime written with it was {format_length(after.copied_age)} old" if after.copied_age else ""


def _advise_against_copy(written: Tenure) -> str:
    """Return what to do if an old state was written in, as whoever applies a stored copy of a lease does each time."""
    return f"{_NO_COPY} " if written.copied_age else ""


def _describe_own_address(history: LeaseHistory, stranger: Writer | None) -> str:
    """Say from where a user that is no pod took the lease, if no one else asked for it from there; else "".

    Behind the address of a proxy, or of a node, there may be many.
    """
    seen = history.requests.addresses.by_writer.get(stranger.process) if stranger is not None else None
    if stranger is None or stranger.pod or stranger.uid or seen is None or len(seen.counts) > 1:
        return ""
    (address,) = seen.counts
    processes = [
        one for source, known in history.requests.sources.items() if get_address(source) == address for one in known
    ]
    if not all(map(stranger.is_same, processes)):
        return ""
    return f". Its writer has no token of a pod, and wrote from {format_name(address)}, where no one else asked for it"


def _describe_addresses(history: LeaseHistory, other: Writer | None) -> str:
    """Say that requests of a pod came from several addresses of one family, "" if they did not: it may have both."""
    known = history.requests.find_addresses(other)
    families = [[one for one in known if (":" in one) is is_v6] for is_v6 in (False, True)]
    addresses = [one for family in families if len(family) > 1 for one in family]
    if not addresses:
        return ""
    shown = " and ".join(format_name(one) for one in addresses[:MAX_NAMED])
    return (
        f". Requests with the token of its pod came from {shown}: unless they pass through proxies or NAT, or it has "
        "several interfaces, another one has its token"
    )


class _FalseExpiry(Struct, frozen=True):
    """Why a lease that was live looked expired to the one that took it, if that compares renewTime with its clock."""

    text: str
    cause: str
    advice: Advice


def _explain_false_expiry(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> _FalseExpiry | None:
    if (set_back := _explain_time_set_back(history, before, after, now)) is not None:
        return set_back
    rewritten = history.requests.rewritten.found.get(RENEW_TIME)
    if rewritten:
        if not rewritten.earliest <= after.since <= rewritten.latest + (before.duration or 0) * SECOND:
            return None
        text = f"Its renewTime was not stored as requested, so {_CONCLUSION}"
        return _FalseExpiry(text, "rewritten", advise_on_mutation(rewritten))
    ahead = before.own_clock_ahead
    if ahead is None or ahead >= -_MIN_CLOCK_ERROR:
        return None
    behind = f"{format_length(-ahead)} behind the API server's"
    if _are_equally_off(history, ahead):
        text = (
            f"The renewTimes of several holders were equally off, {behind} clock, which points to a webhook or policy "
            f"that changes renewTime, or to a time zone, rather than to wrong clocks; so {_CONCLUSION}"
        )
        return _FalseExpiry(text, "clock", Advice("See what changes renewTime, such as a mutating webhook:", MUTATORS))
    advice = Advice(
        f"Correct the clock of the node of {format_name(before.holder)}; "
        f"{format_name(after.holder)} should wait until the lease has not changed for its whole duration. "
        "To see which nodes they run on:",
        f"{make_kubectl_prefix(history.namespace)} get pods -o wide",
    )
    return _FalseExpiry(f"The old holder's clock is {behind}, so {_CONCLUSION}", "clock", advice)


def _explain_time_set_back(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> _FalseExpiry | None:
    """Explain by another writer that set renewTime back after the holder's last renewal, so that the lease expired."""
    claimed, taker = before.renew_time_of_other, after.processes.taken_by
    if not before.is_last_by_other or before.renewed_by_other is None or claimed is None or not before.duration:
        return None
    at, changer = before.renewed_by_other
    is_own = after.processes.doubtful_taker is None and taker is not None and not taker.is_same(changer)
    has_looked_expired = claimed + before.duration * SECOND <= after.since + _MIN_CLOCK_ERROR
    if not (is_own and changer.user and has_looked_expired) or at - claimed <= _MIN_CLOCK_ERROR:
        return None
    text = (
        f"{describe_writer(changer)} had set its renewTime to {format_clock(claimed, now)} "
        f"at {format_clock(at, now)}, so {_CONCLUSION}"
    )
    advice = advise_on_writer(f"Find out why {describe_user(changer)} set its renewTime back.", history, changer)
    return _FalseExpiry(text, _SET_BACK, advice)


def _are_equally_off(history: LeaseHistory, ahead: int) -> bool:
    """Return whether the clocks of several holders seem to be off by the same, which clocks that are wrong are not."""
    alike = {
        one.holder
        for one in history.tenures
        if one.own_clock_ahead is not None and abs(one.own_clock_ahead - ahead) < _MIN_CLOCK_ERROR
    }
    return len(alike) > 1


def _advise_on_taker(history: LeaseHistory, before: Tenure, after: Tenure, edit: LeaseEvent | None) -> Advice:
    """Return what to do about who took a live lease for itself: first, if there is one, who changed its duration."""
    changer, stranger = edit.writer if edit else None, _find_stranger(before, after)
    if changer is not None and changer.user:
        # Who waits for the duration that is stored waits for as long as the lease says.
        return advise_on_writer(f"Find out why {describe_user(changer)} changed how long it lasts.", history, changer)
    if stranger and before.processes.own:
        sentence = f"Find out why {describe_user(stranger)} took the lease from {describe_user(before.processes.own)}."
        return advise_on_writer(sentence, history, stranger)
    taker = after.processes.taken_by or Writer()
    sentence = (
        f"Find out why {format_name(after.holder)} does not wait until the lease expires{describe_strict(taker)}."
    )
    return advise_on_writer(sentence, history, taker)


def _describe_doubt(before: Tenure, now: int) -> str:
    """Say what a holder may have done after its lease was taken; a text that another one wrote in need not have any."""
    if before.processes.is_never_renewed:
        taker = before.processes.doubtful_taker
        wrote = f"{describe_writer(taker)} wrote that in" if taker else "that was written in"
        since = f"since {wrote} at {format_clock(before.since, now)}"
        return f"no process is known to have renewed it as {format_name(before.holder)} {since}"
    return "two may have led at once"


def _describe_time_left(before: Tenure, after: Tenure, left: int) -> str:
    """Say how long a lease would have lasted when it was taken: at most, if stamps of whole seconds date that."""
    if after.is_exact and before.last_extension.is_exact:
        return format_length(left)
    latest = before.last_extension.latest if before.last_extension.latest is not None else before.last_extension.at
    return format_bound(
        left + max(0, latest - before.last_extension.at) + max(0, after.since - after.taking_write.earliest)
    )


def describe_strict(who: Writer) -> str:
    """Say what preset strict does with a steal or a release by another; without stamps a denial weakens to a warning.

    It denies neither to a user whom every policy exempts.
    """
    if is_always_exempt(UserInfo(who.user, who.groups)):
        return ""
    return " (preset strict denies it, if the lease has stamps)"


def _describe_manager(before: Tenure, after: Tenure) -> str:
    """Return the field manager of a write, which its writer chose, unless it is the one that renewed before."""
    manager = after.taken_manager
    return f"; its field manager was {format_name(manager)}" if manager and manager != before.manager else ""
