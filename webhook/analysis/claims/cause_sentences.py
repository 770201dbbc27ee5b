"""Why renewals failed to come, as one sentence about a holder."""

from collections.abc import Iterator
from typing import Final

from webhook.analysis.claims.diagnosis import Blame, Diagnosis

_SENTENCES: Final = {
    Blame.SERVER: "The API server was slow or unavailable",
    Blame.NETWORK: "Clients did not reach the API server",
    Blame.CONFLICT: "Its updates conflicted",
    Blame.REFUSED: "Its writes were refused",
    Blame.THROTTLED: "The API server throttled it (priority and fairness)",
    Blame.COORDINATED: "A coordinated election",
}
_OF_ALL: Final = {
    Blame.SERVER: "The API server was slow, unavailable or not reached",
    Blame.NETWORK: _SENTENCES[Blame.NETWORK],
}
"""The cause that stopped all leases."""
_STOPPED_THEN: Final = "its process stopped by itself, or with the others as in a rollout"
_SILENT: Final = (
    "It sent no renewal (it ended, or was paused, blocked, cut off or reconfigured), or its API server hung"
)
_NODE_SILENT: Final = "Its node was silent as well"
_OWN_SIDE: Final = (
    "It stopped renewing (it ended, or was paused, blocked, cut off or reconfigured), or its API server hung"
)
_HIDDEN_SIDE: Final = "It stopped renewing, its writes were refused or failed, or its API server hung"
_HABITS: Final = {
    ("interval",): "Too rarely",
    ("interval", "stopped"): "Too rarely, or it stops each time",
    ("not-renewing",): "It wrote the lease and did not renew it",
}
SURE_HABITS: Final = frozenset(_HABITS)
"""Causes that say how a process works, by what is left of them."""
_OPENINGS: Final = {Blame.UNKNOWN: "Why is not known:", Blame.POD: "Its pod was"}
_UNANSWERED: Final = (
    "It may not have received the answer to its last renewal (network, proxy), or wrote from an old copy"
)


def describe_cause(cause: Diagnosis) -> str:
    """Return a cause as one sentence about a holder, which names every cause that is left."""
    if cause.blame is Blame.CLIENT and cause.possible_causes in _HABITS:
        return f"{_HABITS[cause.possible_causes]}: {cause.evidence}."
    if cause.blame is Blame.CLIENT and cause.is_alive:
        return f"Its process ran, and made no request for the lease: {cause.evidence}."
    if cause.blame is Blame.CLIENT and cause.is_silent:
        return f"{_NODE_SILENT}: {cause.evidence}." if cause.is_node_silent else f"{_SILENT}; {cause.evidence}."
    if cause.blame is Blame.CLIENT and "unanswered" in cause.possible_causes:
        return f"{_UNANSWERED}: {cause.evidence}."
    if cause.blame is Blame.CLIENT and "refused-rights" in cause.possible_causes:
        return f"{_HIDDEN_SIDE}; {cause.evidence}."
    if cause.blame is Blame.CLIENT:
        return f"{_OWN_SIDE}; {cause.evidence}."
    if cause.blame in _OPENINGS:
        return f"{_OPENINGS[cause.blame]} {cause.evidence}."
    if cause.blame is Blame.COORDINATED:
        return f"{_SENTENCES[cause.blame]}: {cause.evidence}; it did, or stopped at that time."
    if cause.blame is Blame.REWRITTEN:
        return f"It may not have found itself as the holder, or stopped: {cause.evidence}."
    return f"{_describe_outside(cause)}: {cause.evidence}.{_describe_end(cause)}"


def _describe_end(cause: Diagnosis) -> str:
    """Say what else may have ended a holder whose writes were refused."""
    if cause.blame is not Blame.REFUSED:
        return ""
    if cause.refusal is not None and cause.refusal.is_release:
        return " It asked to give the lease up, which then had to expire."
    if cause.refusal is not None and cause.refusal.is_apply_conflict:
        also = ", and may have stopped as well" if "stopped" in cause.possible_causes else ""
        return f" It applies, without force, fields that another field manager owns{also}."
    # A holder that did not go on until it must have given up may have had another reason.
    return " It may have stopped as well." if "stopped" in cause.possible_causes else ""


def _describe_outside(cause: Diagnosis) -> str:
    """Say what outside of a holder's process stopped it."""
    refusal = cause.refusal
    if refusal and not refusal.writer.user:
        return "Its requests may have been refused"
    has_failed_at_once = refusal is not None and refusal.has_failed_at_once
    if cause.blame is Blame.SERVER and (cause.is_of_its_writes or has_failed_at_once):
        if refusal is not None and refusal.is_unserved:
            return "The API server that it reached does not serve leases, or not the version that it asked for"
        if refusal is not None and refusal.is_read:
            return "The API server answered its requests, reads too, with errors"
        how = "answered that its writes failed" if cause.may_be_stored else "could not store its writes"
        return f"The API server {how}"
    if cause.blame is Blame.REFUSED and refusal is not None and refusal.is_release:
        return "Its release was refused"
    if cause.blame is Blame.REFUSED:
        read = refusal is not None and refusal.is_read
        return "Its reads were refused, so it did not get to write" if read else _SENTENCES[cause.blame]
    if "network" not in cause.possible_causes:
        return _SENTENCES[cause.blame]
    *most, last = _OF_ALL[cause.blame], *_describe_doubt_beside_outage(cause)
    return f"{', '.join(most)}, or {last}"


def _describe_doubt_beside_outage(cause: Diagnosis) -> Iterator[str]:
    """Yield what else may have stopped a holder when all were late."""
    if cause.blame is Blame.NETWORK:
        yield from ("it was down", "the log lacks their requests")
    if "failed" in cause.possible_causes:
        yield "a webhook or policy stopped all writes"
    yield _STOPPED_THEN
