"""Claims about one lease: what all of them have in common."""

from collections.abc import Mapping
from typing import Final

from webhook.analysis.claims.arguments import NO_ARGUMENTS, bound_write, drop_unknown
from webhook.analysis.claims.claim import Advice, Claim, WriteAuthor
from webhook.analysis.claims.diagnosis import Diagnosis
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import InputKind
from webhook.findings import ObjectName, Severity
from webhook.kubernetes.times import SECOND

MAX_NAMED: Final = 4
"""Users, programs or addresses that one sentence names at most."""


def make_claim(  # noqa: PLR0913 - a parameter for each field of a Claim
    history: LeaseHistory,
    check: str,
    severity: Severity,
    message: str,
    advice: Advice,
    cause: str = "",
    *,
    why: str = "",
    when: str = "",
    over_since: int | None = None,
    arguments: Mapping[str, object] = NO_ARGUMENTS,
) -> Claim:
    """Return a claim about a lease, with what to do about it."""
    return Claim(
        check=check,
        severity=severity,
        message=message,
        subject=ObjectName("Lease", history.namespace, history.name),
        fix=advice.command,
        advice=advice.sentence,
        pods=advice.pods,
        cause=cause,
        why=why,
        when=when,
        over_since=over_since,
        arguments=drop_unknown(arguments),
    )


def measure_clocks_of_both(history: LeaseHistory, before: Tenure, after: Tenure) -> int:
    """Return by how much a holder's clock is ahead more than that of the one before, in microseconds; 0 for nearly.

    In a watch, stamps may be of API servers whose clocks differ: then the clocks of both holders seem to.
    """
    ahead, ahead_before = after.clock.ahead_at_last, before.clock.ahead_at_last
    if history.kind is not InputKind.WATCH or ahead is None or ahead_before is None:
        return 0
    return ahead - ahead_before if abs(ahead - ahead_before) > 2 * SECOND else 0


def find_identity(tenure: Tenure) -> str | None:
    """Return the text of the holder; None if the log does not show it, and its writer stands in."""
    return None if tenure.is_stand_in else tenure.holder


def list_possible_causes(cause: Diagnosis) -> Mapping[str, object]:
    """Return the arguments that say which causes the input leaves."""
    return (
        {"cause": cause.possible_causes[0]}
        if len(cause.possible_causes) == 1
        else {"causes": list(cause.possible_causes)}
    )


def list_arguments_of_replacement(before: Tenure, after: Tenure) -> Mapping[str, object]:
    """Return what a claim about two holders, the second of which replaced the first, says for programs."""
    return {
        "identity": find_identity(after),
        "previous": find_identity(before),
        "by": WriteAuthor(after.processes.taken_by),
        **bound_write(after.beginning.write),
    }
