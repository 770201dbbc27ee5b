"""Why renewals failed to come, as one sentence about a holder."""

from collections.abc import Iterator
from typing import Final

from webhook.analysis.claims.diagnosis import Blame, Cause, Diagnosis
from webhook.analysis.claims.words import format_count, format_name

_SENTENCES: Final = {
    Blame.SERVER: "The API server, or what it asks, was slow or unavailable",
    Blame.NETWORK: "Clients did not reach the API server",
    Blame.THROTTLED: "The API server answered that there were too many requests",
    Blame.COORDINATED: "A coordinated election",
}
_OF_ALL: Final = {
    Blame.SERVER: "The API server was slow, unavailable or not reached",
    Blame.NETWORK: _SENTENCES[Blame.NETWORK],
}
"""The cause that stopped all leases."""
_STOPPED_THEN: Final = "the holder's process stopped by itself, or with the others as in a rollout"
_LOST_PART: Final = f"A node, an API server or a zone may be lost or cut off, or {_STOPPED_THEN}, for example"
# A list of what stops a process is never complete, so each is of examples.
_UNHEARD: Final = "the log has no answered request for the lease from"
_RAN_ON: Final = (
    "its pod ran on, and the part of it that renews may have ended, be blocked, or be limited by its own client, for "
    "example"
)
_MAY_HAVE_ENDED: Final = "(it may have ended, or been paused, blocked or cut off)"
_MAY_BE_LIMITED: Final = (
    "(the part of it that renews may have ended, or been blocked or limited by its own client, or may not renew at "
    "all, for example)"
)
_OWN_SIDE: Final = f"It stored no renewal {_MAY_HAVE_ENDED}"
_HIDDEN_SIDE: Final = "It stored no renewal (it may have ended, or been paused, cut off or refused)"
_AFTER_STATUS: Final = "after its kubelet had written its status, as when a container ends and starts again"
_REPEATED: Final = (Cause.INTERVAL, Cause.STOPPED)
_LIMITED_EACH_TIME: Final = (
    "Its holders may renew too rarely, stop each time, or be kept from renewing, as by a rate limit of their own client"
)
_HABITS: Final = {
    (Cause.INTERVAL,): "Too rarely",
    _REPEATED: "Its holders may renew too rarely, or stop each time",
    (Cause.NOT_RENEWING,): "Its pod wrote the lease and did not renew it",
}
SURE_HABITS: Final = frozenset(_HABITS)
"""Causes that say how a process works, by what is left of them."""
_UNANSWERED: Final = (
    "It may have missed the answer to its last renewal (network, proxy), or written from an old copy, for example"
)


def describe_cause(cause: Diagnosis, holder: str = "", *, is_followed: bool = False) -> str:
    """Return a cause as one sentence about a holder, which names every cause that is left.

    It follows a clause about that holder and a time. Where it stands alone, it names the `holder` itself, and the time
    is that since the last renewal. `is_followed`: that clause names the next holder, too, so this one is named where
    the next one's writes or pod may seem to be meant.
    """
    alone, named = ("", holder) if is_followed else (holder, "")
    if cause.has_gone_on and cause.possible_causes == _REPEATED:
        return f"{_LIMITED_EACH_TIME}: {cause.evidence}."
    if cause.blame is Blame.CLIENT and cause.possible_causes in _HABITS:
        return f"{_HABITS[cause.possible_causes]}: {cause.evidence}."
    if cause.blame is Blame.CLIENT:
        return f"{_describe_own_side(cause, alone)}{cause.evidence}."
    if cause.blame is Blame.POD:
        return f"{_capitalize(_name_own('pod', named))} was {cause.evidence}."
    if cause.blame is Blame.UNKNOWN:
        return f"Why is not known: {cause.evidence}."
    if cause.blame is Blame.CONFLICT:
        return f"{_capitalize(cause.evidence)}.{_describe_end(cause)}"
    if cause.blame is Blame.COORDINATED:
        return f"{_SENTENCES[cause.blame]}: {cause.evidence}."
    if cause.blame is Blame.REWRITTEN and cause.possible_causes == (Cause.REWRITTEN,):
        return f"{_capitalize(_name_own('renewals', named))} were accepted, and stored with {cause.evidence}."
    if cause.blame is Blame.REWRITTEN:
        return f"It may not have found itself named as the holder, or it may have stopped: {cause.evidence}."
    return f"{_describe_outside(cause, named)}: {cause.evidence}.{_describe_end(cause)}"


def _name_own(what: str, holder: str) -> str:
    """`its writes`; if the holder is to be named, `the writes of db-0`."""
    return f"the {what} of {holder}" if holder else f"its {what}"


def _capitalize(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _describe_own_side(cause: Diagnosis, holder: str) -> str:
    """Say what is known of a holder that stored no renewal, where others did, up to the evidence."""
    pod, time = _name_own("pod", holder), "the time since its last renewal" if holder else "that time"
    silent = f"For most of {time} {_UNHEARD} {pod}"
    if cause.is_alive:
        ran = f"{_capitalize(pod)} ran"
        return f"{ran}, and for most of {time} the log has no answered request from it for this lease: "
    if cause.is_silent and cause.runs_on:
        return f"Since its last renewal {_UNHEARD} {pod}, but {cause.others}: {_RAN_ON}; "
    if cause.is_silent and cause.has_gone_on:
        return f"{silent}, but {cause.others}: until then the pod ran and was connected {_MAY_BE_LIMITED}; "
    if cause.is_silent and cause.others:
        return f"{silent}, but {cause.others}{'' if cause.is_end_shown else f' {_MAY_HAVE_ENDED}'}; "
    if cause.is_silent:
        return f"{silent}; " if cause.is_end_shown else f"{silent} {_MAY_HAVE_ENDED}; "
    if Cause.UNANSWERED in cause.possible_causes:
        return f"{_UNANSWERED}: "
    if cause.requests:
        return f"{_describe_requests(cause)}; "
    return f"{_HIDDEN_SIDE if 'refused-rights' in cause.possible_causes else _OWN_SIDE}; "


def _describe_requests(cause: Diagnosis) -> str:
    """Say how many requests of its pod did not renew the lease: they may be those of a later process."""
    made = f"Its pod made at least {format_count(cause.requests, 'request')} for the lease"
    if cause.other_name:
        return f"{made}, to hold it as {format_name(cause.other_name)}: a later process there"
    if cause.is_asked_since_end:
        return f"{made} only after a container of it had ended"
    if cause.is_asked_since_status:
        which = "it" if cause.requests == 1 else "them"
        return f"{made}, {_AFTER_STATUS}: the next process may have made {which}"
    return f"{made}, none of which renewed it"


def _describe_end(cause: Diagnosis) -> str:
    """Say what else may have ended a holder whose writes were refused, failed or conflicted."""
    if cause.refusal is not None and cause.refusal.is_release:
        return " It asked to give the lease up, which then had to expire."
    if cause.refusal is not None and cause.refusal.is_apply_conflict:
        also = ", and may have stopped as well" if Cause.STOPPED in cause.possible_causes else ""
        return f" It applies, without force, fields that another field manager owns{also}."
    # A holder that did not go on until it must have given up may have had another reason.
    is_said = cause.blame in _OF_ALL and Cause.NETWORK in cause.possible_causes
    return " It may have stopped as well." if Cause.STOPPED in cause.possible_causes and not is_said else ""


def _describe_outside(cause: Diagnosis, holder: str) -> str:
    """Say what outside of a holder's process stopped it."""
    refusal = cause.refusal
    if refusal and not refusal.writer.user:
        return f"{_capitalize(_name_own('requests', holder))} may have been refused"
    has_failed_at_once = refusal is not None and refusal.has_failed_at_once
    if cause.blame is Blame.SERVER and (cause.is_of_its_writes or has_failed_at_once):
        if refusal is not None and refusal.is_unserved:
            return "The API server that it reached did not serve leases, or not the version that it asked for"
        if refusal is not None and refusal.is_read:
            return f"The API server answered {_name_own('requests', holder)}, reads too, with errors"
        writes = _name_own("writes", holder)
        how = f"answered that {writes} failed" if cause.may_be_stored else f"could not store {writes}"
        return f"The API server {how}"
    if cause.blame is Blame.REFUSED and refusal is not None and refusal.is_release:
        return f"{_capitalize(_name_own('release', holder))} was refused"
    if cause.blame is Blame.REFUSED:
        if refusal is None or not refusal.is_read:
            return f"{_capitalize(_name_own('writes', holder))} were refused"
        # A read names no holder: the next process of the pod may have made some, under another name.
        pod = refusal.writer.pod
        is_of_pod = bool(pod) and holder.startswith(pod) and holder != pod
        return f"{_capitalize(_name_own('reads', f'the pod of {holder}' if is_of_pod else holder))} were refused"
    if Cause.NETWORK not in cause.possible_causes:
        return _SENTENCES[cause.blame]
    if cause.has_lost_heartbeats:
        return _LOST_PART
    *most, last = _OF_ALL[cause.blame], *_describe_doubt_beside_outage(cause)
    return f"{', '.join(most)}, or {last}"


def _describe_doubt_beside_outage(cause: Diagnosis) -> Iterator[str]:
    """Yield what else may have stopped a holder when all were late."""
    if cause.blame is Blame.NETWORK:
        yield from ("the API server was down or hung", "the log lacks the clients' requests")
    if Cause.FAILED in cause.possible_causes:
        yield "the writes of all were refused (as by a webhook or policy)"
    yield _STOPPED_THEN
