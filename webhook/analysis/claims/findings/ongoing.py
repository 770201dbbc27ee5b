"""What stands next to the id of a finding: whether it is ongoing, and what of its kind came before."""

from collections.abc import Sequence
from typing import Final

from webhook.analysis.claims.claim import BY, EARLIEST, IDENTITY, LATEST, REPLACED, TO, Claim, WriteAuthor
from webhook.analysis.claims.words import describe_by_writer, describe_writer, format_clock, format_name
from webhook.findings import ReportFinding

_ENDS: Final = {"renewal-late": "ended", "identity-shared": "last seen", "lease-contended": "ended"}
"""Findings that last. Any other one is of a moment, which its sentence has: it cannot end."""

_OF_REQUESTS: Final = ("write-", "read-")
"""How the checks of findings begin that are about who made requests."""
_LEAST: Final = "at least "
_REMOVED: Final = "foreign-release"
"""A finding about what others did to a holder, for which both are named."""
_DELETED: Final = "lease-deleted"
"""A finding about what others may have done to a holder: it is over once the lease is there again."""


def is_ongoing(finding: ReportFinding) -> bool:
    """Return whether a finding lasts, and had not ended by the end of the input."""
    return isinstance(finding, Claim) and finding.check in _ENDS and finding.over_since == 0


def describe_end(finding: ReportFinding, now: int) -> str:
    """Return `ongoing`, or when a finding that lasts ended; "" of one that is of a moment, or if that is not known."""
    if not isinstance(finding, Claim) or finding.over_since is None or finding.cause == REPLACED:
        return ""
    if is_ongoing(finding):
        return "ongoing"
    verb = _ENDS.get(finding.check, "")
    return f"{verb} {format_clock(finding.over_since, now)}" if verb else ""


def describe_earlier(earlier: Sequence[ReportFinding], now: int, *, is_cut: bool = False) -> str:
    """Return how many earlier findings of a kind there were, and of whom and when the last of them was.

    `is_cut`: there may be more than these.
    """
    claims = [one for one in earlier if isinstance(one, Claim)]
    if not claims:
        return f"{len(earlier)} more" if earlier else ""
    if claims[-1].check.startswith(_OF_REQUESTS):
        return _describe_other_requests(claims, now, is_cut=is_cut)
    number = f"{len(claims)}{' or more' if is_cut else ''} earlier"
    last = "the last " if len(claims) > 1 else ""
    if claims[-1].check == _DELETED:
        who, moment = _describe_author(claims[-1]), claims[-1].when
    elif claims[-1].check == _REMOVED:
        who, removed = _describe_author(claims[-1]), _name_subject(claims[-1])
        who = f"{who}, which removed {removed}," if who and removed else ""
        moment = _describe_moment(claims[-1], now)
    else:
        who, moment = _name_subject(claims[-1]), _describe_moment(claims[-1], now)
        who = f"of {who}" if who else ""
    said = " ".join(filter(None, (who, moment)))
    return f"{number}, {last}{said}" if said else number


def _describe_author(claim: Claim) -> str:
    """`by jane`; "" if the claim does not say who made the write."""
    by = claim.arguments.get(BY)
    return describe_by_writer(by.writer).strip() if isinstance(by, WriteAuthor) else ""


def _describe_other_requests(claims: Sequence[Claim], now: int, *, is_cut: bool) -> str:
    """Return how many other findings there are about who made requests: they may be of the same time, and of many.

    The number after that is the requests of the last of them.
    """
    last = claims[-1]
    count, subject, moment = last.arguments.get("count", 0), _name_subject(last), _describe_moment(last, now)
    least = _LEAST if last.message.startswith(_LEAST) else ""  # the number may be a bound, as its message says
    who = " ".join(filter(None, (f"{least}{count}" if count else "", f"by {subject}" if subject else "")))
    at = moment and f"{'the last one ' if count else ''}{moment}"
    said = ", ".join(filter(None, (who, at)))
    number = f"{'at least ' if is_cut else ''}{len(claims)} more{', the last' if len(claims) > 1 else ''}"
    return f"{number}: {said}" if said else number


def _name_subject(claim: Claim) -> str:
    """Return whose writes, reads or loss a finding is about, "" if that is not known."""
    by = claim.arguments.get(BY)
    if (
        isinstance(by, WriteAuthor)
        and by.writer is not None
        and by.writer.user
        and claim.check.startswith(_OF_REQUESTS)
    ):
        return describe_writer(by.writer)
    identity = claim.arguments.get("previous") or claim.arguments.get(IDENTITY)
    return format_name(str(identity)) if identity else ""


def _describe_moment(claim: Claim, now: int) -> str:
    at = claim.arguments.get(TO) or claim.over_since or claim.arguments.get(LATEST)
    is_bound = EARLIEST in claim.arguments and LATEST not in claim.arguments and TO not in claim.arguments
    return f"at {format_clock(at, now)}{' or later' if is_bound else ''}" if isinstance(at, int) and at else ""
