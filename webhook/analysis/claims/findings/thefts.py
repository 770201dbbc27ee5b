"""Claims about leases that were taken while they were live."""

import re
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.admission.rules.holders import names_pod
from webhook.analysis.claims.advice.on_stored_copies import advise_on_stored_copies
from webhook.analysis.claims.advice.on_writers import advise_on_writer, describe_revocation, describe_strict
from webhook.analysis.claims.claim import Advice, Claim
from webhook.analysis.claims.commands import (
    advise_on_log_of_writer,
    make_command_for_audit_log,
    make_command_for_pod_of_writer,
    name_pods,
)
from webhook.analysis.claims.evidence.pods.workload_names import name_workload
from webhook.analysis.claims.evidence.writers.foreign_writes import find_own_address, find_stranger
from webhook.analysis.claims.evidence.writers.sole_writers import find_sole_manager
from webhook.analysis.claims.evidence.writers.stored_copies import StoredCopies, find_stored_copies
from webhook.analysis.claims.findings.false_expiry import SET_BACK, FalseExpiry, explain_false_expiry
from webhook.analysis.claims.findings.lease_claim import MAX_NAMED, list_arguments_of_replacement, make_claim
from webhook.analysis.claims.findings.passed_on import ONE_POD, claim_passing_on, is_passed_on
from webhook.analysis.claims.handovers import (
    find_duration_edit,
    is_from_one_pod,
    is_written_beside,
    takes_back,
    was_left_to_expire,
)
from webhook.analysis.claims.words import describe_user, describe_writer, format_bound, format_clock, format_name
from webhook.analysis.history.events import LeaseEvent
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Writer
from webhook.cached_property import cached_property
from webhook.findings import Severity
from webhook.kubernetes.times import SECOND, format_length, format_span

_FAR_LONGER: Final = 20
"""A duration that is so many times the one before is none of a setting that was changed."""
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


def _describe_renaming(after: Tenure, *, is_one_name: bool) -> str:
    """Say that one process may have changed its name; "" if nothing hints at that."""
    if after.beginning.is_renaming:
        return f"; or {_RENAMED}"
    return f"; or {_ALIKE}" if is_one_name else ""


def has_no_process(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> bool:
    """Return whether a log of pods that ask for the lease has no request of one of the name that was written in.

    That name is like that of a pod of the holder before, and no one renewed it until it expired.
    """
    own = before.processes.own
    if own is None or not before.processes.names_own_pod or after.processes.doubtful_taker is None:
        return False
    name = _END_OF_POD.split(after.holder, maxsplit=1)[0]
    if name_workload(name) != name_workload(own.pod) or not history.has_reads_of_holders:
        return False
    heard = history.requests.heard
    # A token need not name its pod.
    is_seen = any(names_pod(after.holder, one.pod) if one.pod else one.user == own.user for one in heard.times)
    return not is_seen and not heard.has_forgotten and was_left_to_expire(history, after, now)


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


def claim_replacement(history: LeaseHistory, before: Tenure, after: Tenure, now: int, *, end: str = "") -> Claim:
    """Return the claim that a holder was replaced while it still held the lease: by itself, or by another one.

    `end` says how the pod of the holder before had ended by then, "" if it may have run on.
    """
    if is_passed_on(history, before, after, now):
        return claim_passing_on(history, before, after, now)
    theft = _Theft(history, before, after, now, explain_false_expiry(history, before, after, now), end)
    return _claim_taking_from_silent(theft) if theft.is_from_silent else _claim_theft(theft)


class _Case(Enum):
    """What explains that a holder took a lease that another one still had."""

    FALSE_EXPIRY = auto()
    """The lease looked expired to it."""
    TAKEN_BACK = auto()
    """The pod of the holder took back what had been written in from there."""
    RENAMED = auto()
    """Both were written with the token of one pod."""
    ANSWERED = auto()
    """It answers a write that only named the holder before."""
    WRITTEN_IN = auto()
    """Another process than the one that renews it wrote it in."""
    UNSHOWN = auto()
    """The input does not show who wrote it in."""
    TAKEN = auto()
    """It took the lease itself."""


class _Explanation(Struct, frozen=True):
    """What a claim of a theft says and advises; `cause` is one of the causes of `lease-stolen`."""

    message: str
    advice: Advice
    cause: str = "stolen"


class _Theft(Struct, frozen=True, dict=True):
    """A replacement of `before`, which still held the lease, by `after`, and why the lease looked expired to that."""

    history: LeaseHistory
    before: Tenure
    after: Tenure
    now: int
    false_expiry: FalseExpiry | None
    end: str = ""
    """How the pod of the holder before had ended by then, as a clause; "" if it may have run on."""

    @property
    def is_set_back(self) -> bool:
        """Whether another writer had set renewTime back."""
        return self.false_expiry is not None and self.false_expiry.cause == SET_BACK

    @property
    def is_from_silent(self) -> bool:
        """Whether the holder had let the lease expire, and another writer had written it since."""
        return self.is_set_back and self.before.has_expired_at(self.after.since)

    @property
    def other(self) -> Writer | None:
        """Who wrote the new holder in, if that is another process than the one that renews as it."""
        return self.after.processes.doubtful_taker

    @property
    def stranger(self) -> Writer | None:
        """Who took the lease as its own identity, if that is another user than the one that held it."""
        return None if self.other else find_stranger(self.before, self.after)

    @property
    def is_one_name(self) -> bool:
        """Whether only the names say who took it, and they begin alike."""
        return self.after.processes.taken_by is None and _begin_alike(self.before.holder, self.after.holder)

    @cached_property
    def is_of_no_process(self) -> bool:
        """Whether no process is known to have led under the name that was written in."""
        return has_no_process(self.history, self.before, self.after, self.now)

    @cached_property
    def copies(self) -> StoredCopies | None:
        """The writes of the state that was written in, if it was an old one, and the same several times."""
        found = find_stored_copies(self.history)
        return found if found is not None and any(one is self.after for one in found.tenures) else None

    @cached_property
    def is_idle_copy(self) -> bool:
        """Whether one old state was written in again, and no one renewed it until it expired."""
        return self.copies is not None and was_left_to_expire(self.history, self.after, self.now)

    @cached_property
    def edit(self) -> LeaseEvent | None:
        """The write that made the lease last as long as it did; None if none did."""
        return find_duration_edit(self.history, self.before, self.after)

    @property
    def took(self) -> str:
        """`at 12:00:05Z db-1 took the lease`."""
        at = format_clock(self.after.since, self.now)
        at += "" if self.after.beginning.is_dated else " or later (the input does not say when)"
        return f"at {at} {_describe_taking(self.after, self.other, self.stranger)}"

    @property
    def held(self) -> str:
        """`while db-0 still held it, 10 s before it expired`."""
        holder = format_name(self.before.holder)
        if not self.after.beginning.is_dated:
            return f", which {holder} may still have held"
        duration = self.before.duration
        last = self.before.last_renewal if self.is_set_back else self.before.kept_until
        left = last + duration * SECOND - self.after.since if duration else None
        early = "" if left is None else f", {_describe_time_left(self.before, self.after, left)} before it expired"
        if self.edit is not None:
            early += " by the duration that its holder wrote"
        elif self.is_set_back:
            early += " by its holder's last renewal"
        return f" while {holder} still held it{early}"

    @property
    def sentence(self) -> str:
        """When and by whom it was taken from whom, with what is known of both, without a full stop."""
        doubt = self.end or _describe_doubt(self.before, self.now)
        if self.is_of_no_process:
            doubt = f"the log has no request of a pod named as {format_name(self.after.holder)}"
        elif self.is_idle_copy:
            doubt = f"no one renewed it as {format_name(self.after.holder)}"
        facts = _describe_other_duration(self.before, self.after) + _describe_copy(self.after, self.copies)
        facts += _describe_addresses(self.history, self.other) or describe_own_address(self.history, self.stranger)
        return f"{self.took}{self.held}: {doubt}{facts}"


def _claim_taking_from_silent(theft: _Theft) -> Claim:
    """Return the claim that one took a lease that its holder had let expire, and another writer had written since."""
    before, after, false_expiry = theft.before, theft.after, theft.false_expiry
    assert false_expiry is not None
    silent = format_length(after.since - before.last_renewal)
    took = _describe_taking(after, None, find_stranger(before, after))
    message = (
        f"at {format_clock(after.since, theft.now)} {took}, "
        f"which {format_name(before.holder)} had not renewed for {silent}. {false_expiry.text}"
    )
    return _make_claim(theft, Severity.WARNING, _Explanation(message, false_expiry.advice, SET_BACK))


def _claim_theft(theft: _Theft) -> Claim:
    """Return the claim that one took a lease that another one still held."""
    is_one = (
        is_from_one_pod(theft.after, theft.before) or theft.is_one_name or theft.is_of_no_process or theft.is_idle_copy
    )
    is_one = is_one or (theft.after.processes.taken_by is None and find_sole_manager(theft.history) != "")
    is_harmless = bool(theft.end) and theft.other is None and theft.stranger is None
    is_error = theft.after.beginning.is_dated and not is_one and not is_harmless
    severity = Severity.ERROR if is_error else Severity.WARNING
    return _make_claim(theft, severity, _EXPLANATIONS[_classify(theft)](theft))


def _make_claim(theft: _Theft, severity: Severity, explanation: _Explanation) -> Claim:
    return make_claim(
        theft.history,
        "lease-stolen",
        severity,
        explanation.message,
        explanation.advice,
        explanation.cause,
        over_since=theft.after.since,
        arguments=list_arguments_of_replacement(theft.before, theft.after),
    )


def _classify(theft: _Theft) -> _Case:
    before, after = theft.before, theft.after
    if theft.false_expiry is not None:
        return _Case.FALSE_EXPIRY
    if is_from_one_pod(after, before):
        return _Case.TAKEN_BACK if takes_back(after, before) else _Case.RENAMED
    if before.was_left_as_written and before.processes.doubtful_taker and not theft.other:
        return _Case.ANSWERED
    if theft.other:
        return _Case.WRITTEN_IN
    return _Case.UNSHOWN if after.processes.taken_by is None else _Case.TAKEN


def _explain_by_false_expiry(theft: _Theft) -> _Explanation:
    assert theft.false_expiry is not None
    message = f"{theft.sentence}. {theft.false_expiry.text}"
    return _Explanation(message, theft.false_expiry.advice, theft.false_expiry.cause)


def _explain_taking_back(theft: _Theft) -> _Explanation:
    written = f"written in from the same pod at {format_clock(theft.before.since, theft.now)}"
    message = f"{theft.took} back: {format_name(theft.before.holder)}, {written}, had not renewed it"
    return _Explanation(message, _advise_on_one_pod(theft.history, theft.before, theft.after))


def _explain_renaming(theft: _Theft) -> _Explanation:
    advice = _advise_on_one_pod(theft.history, theft.before, theft.after)
    return _Explanation(f"{theft.took}{theft.held}; {ONE_POD}", advice, "renamed")


def _explain_answer(theft: _Theft) -> _Explanation:
    """Explain by a write that named the holder before: who takes back what another one wrote in answers that."""
    writer = theft.before.processes.doubtful_taker
    assert writer is not None
    advice = _advise_on_other_taker(theft.history, theft.before.holder, writer, is_beside=False)
    return _Explanation(theft.sentence, _add_advice_against_copy(advice, theft.before))


def _explain_by_other_writer(theft: _Theft) -> _Explanation:
    assert theft.other is not None
    is_beside = is_written_beside(theft.after, theft.before)
    advice = _advise_on_other_taker(theft.history, theft.after.holder, theft.other, is_beside=is_beside)
    message = f"{theft.sentence}. {_BESIDE}" if is_beside else theft.sentence
    if theft.copies is not None and not is_beside:
        return _Explanation(message, advise_on_stored_copies(theft.history, theft.copies))
    return _Explanation(message, _add_advice_against_copy(advice, theft.after))


def _explain_by_unshown_writer(theft: _Theft) -> _Explanation:
    is_led = not was_left_to_expire(theft.history, theft.after, theft.now)
    renaming = _describe_renaming(theft.after, is_one_name=theft.is_one_name) if is_led else ""
    manager = _describe_sole_manager(theft.history) or _describe_manager(theft.before, theft.after)
    message = f"{theft.sentence}{renaming}. The input does not show who wrote it{manager}"
    if theft.copies is not None:
        return _Explanation(message, advise_on_stored_copies(theft.history, theft.copies))
    command = make_command_for_audit_log(theft.history.namespace, theft.history.name)
    return _Explanation(message, Advice("The audit log shows who wrote it:", command))


def _explain_taking(theft: _Theft) -> _Explanation:
    return _Explanation(theft.sentence, _advise_on_taker(theft.history, theft.before, theft.after, theft.edit))


_EXPLANATIONS: Final[Mapping[_Case, Callable[[_Theft], _Explanation]]] = {
    _Case.FALSE_EXPIRY: _explain_by_false_expiry,
    _Case.TAKEN_BACK: _explain_taking_back,
    _Case.RENAMED: _explain_renaming,
    _Case.ANSWERED: _explain_answer,
    _Case.WRITTEN_IN: _explain_by_other_writer,
    _Case.UNSHOWN: _explain_by_unshown_writer,
    _Case.TAKEN: _explain_taking,
}


def _advise_on_one_pod(history: LeaseHistory, before: Tenure, after: Tenure) -> Advice:
    """Return what to do about two names from one pod: it took back what had been written in its place, or renamed."""
    if takes_back(after, before) and after.processes.taken_by is not None:
        return _advise_on_other_taker(history, before.holder, after.processes.taken_by, is_beside=True)
    sentence = "Check whether the pod runs two electors, or changes its name, or another one has its token. Its log:"
    return advise_on_log_of_writer(sentence, history.namespace, after.processes.taken_by, before.holder)


def _advise_on_other_taker(history: LeaseHistory, holder: str, other: Writer, *, is_beside: bool) -> Advice:
    """Return where to look for who wrote a holder in; `is_beside`: with the token of a pod, not by its elector."""
    if not is_beside:
        return advise_on_writer(f"Find out why {describe_user(other)} wrote the holder.", history, other)
    sentence = (
        f"Find out which process, in pod {format_name(other.pod)} or with its token, wrote {format_name(holder)}:"
    )
    return Advice(sentence, make_command_for_pod_of_writer(history.namespace, other), name_pods(other))


def _describe_other_duration(before: Tenure, after: Tenure) -> str:
    """Say that one who took a lease made it shorter, or many times as long: most electors wait for what is stored.

    Some wait for their own duration: so did `tryAcquireOrRenew` of client-go once.
    """
    if before.duration and (after.duration or 0) >= _FAR_LONGER * before.duration:
        span = format_span((after.duration or 0) * SECOND)
        return (
            f"; it lasted {before.duration} s before, and {after.duration} s ({span}) then: "
            "most electors leave it to that holder for as long"
        )
    own = after.processes.doubtful_taker is None and after.beginning.write.is_logged
    if not own or before.duration is None or after.duration is None or after.duration >= before.duration:
        return ""
    return f"; it lasted {before.duration} s and lasts {after.duration} s since: some electors wait for their own only"


def _describe_copy(after: Tenure, copies: StoredCopies | None) -> str:
    """Say how old the state is that another one wrote in, as far as its renewTime shows; "" if it need not be old."""
    again = f", and the same {len(copies.tenures)} times" if copies is not None else ""
    return (
        f"; the renewTime written with it was {format_length(after.copied_age)} old{again}" if after.copied_age else ""
    )


def _add_advice_against_copy(advice: Advice, written: Tenure) -> Advice:
    """Begin with what to do if an old state was written in, as whoever applies a stored copy of a lease does."""
    return replace(advice, sentence=f"{_NO_COPY} {advice.sentence}") if written.copied_age else advice


def describe_own_address(history: LeaseHistory, stranger: Writer | None) -> str:
    """Say from where a user that is no pod took the lease, if no one else asked for it from there; else ""."""
    address = find_own_address(history, stranger)
    if not address:
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


def _advise_on_taker(history: LeaseHistory, before: Tenure, after: Tenure, edit: LeaseEvent | None) -> Advice:
    """Return what to do about who took a live lease for itself: first, if there is one, who changed its duration."""
    changer, stranger = edit.writer if edit else None, find_stranger(before, after)
    if changer is not None and changer.user:
        # Who waits for the duration that is stored waits for as long as the lease says.
        return advise_on_writer(f"Find out why {describe_user(changer)} changed how long it lasts.", history, changer)
    if stranger and before.processes.own:
        sentence = f"Find out why {describe_user(stranger)} took the lease from {describe_user(before.processes.own)}."
        sentence += describe_revocation(history, stranger, is_address_told=True)
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
        left + max(0, latest - before.last_extension.at) + max(0, after.since - after.beginning.write.earliest)
    )


def _describe_sole_manager(history: LeaseHistory) -> str:
    """Say that one field manager wrote all holders, none of which was renewed; "" if that is not so."""
    manager = find_sole_manager(history)
    if not manager:
        return ""
    return f"; all its holders were written under the field manager {format_name(manager)}, and none renewed it"


def _describe_manager(before: Tenure, after: Tenure) -> str:
    """Return the field manager of a write, which its writer chose, unless it is the one that renewed before."""
    manager = after.beginning.manager
    is_other = bool(manager) and manager != before.manager
    return f"; its field manager, which its writer chose, was {format_name(manager)}" if is_other else ""
