"""An account as a JSON object, for programs."""

from typing import Any, Final

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.claim import Claim, make_claim_json
from webhook.analysis.claims.facts import find_claims
from webhook.analysis.claims.findings.headline import make_headline
from webhook.analysis.claims.presentation.urgency import advise_with_urgency
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.status import LeaseStatus
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.times import SECOND, format_micro_time

_MAX_TENURES: Final = 20


def make_account_json(account: Account) -> dict[str, Any]:
    """Return the account as a JSON object; times are RFC 3339, lengths of time are seconds."""
    history, status, gaps = account.history, account.status, account.coverage.unrecorded
    first = account.first_tenure if account.known_holder and account.written_later is None else None
    advice = advise_with_urgency(account)
    return {
        "namespace": history.namespace,
        "name": history.name,
        "state": account.state.value,
        "headline": make_headline(account),
        "holder": account.known_holder or None,
        "held_since": _find_since(first),
        "last_renewal": _convert_time(account.last_renewal),
        "last_renewal_by": _convert_last_writer(account),
        "evidence": _name_evidence(status),
        "takeable_at": _convert_time(account.takeable_at),
        "duration_seconds": status.duration if status else None,
        "holder_clock_ahead_seconds": _convert_to_seconds(status.ahead if status else None),
        "now": _convert_time(account.now),
        "handovers": {how.value: number for how, number in history.handovers.items()},
        "leaderless_seconds": _convert_to_seconds(history.measure_leaderless_time(account.ended or account.now)),
        "tenures": [_convert_tenure(one) for one in list(history.tenures)[-_MAX_TENURES:]],
        "renewals": {
            "seen": history.renewals.count,
            "usual_interval_seconds": history.interval,
            "longest_silence_seconds": _convert_to_seconds(history.renewals.longest),
        },
        "unrecorded": [
            {"from": _convert_time(one.start), "to": _convert_time(one.end), "reason": one.reason} for one in gaps
        ],
        "waiting": {who: number for who, (number, _) in history.requests.readers.items()},
        "refused": sum(1 for one in history.requests.refusals if one.code >= 400),
        "events": [{"time": _convert_time(at), "says": text} for at, text in account.election.events],
        "claims": [make_claim_json(claim) for claim in find_claims(account)],
        "findings": [
            {
                "check": one.check,
                "severity": one.severity.value,
                "is_over": one.is_over if isinstance(one, Claim) else None,
                "cause": (one.cause if isinstance(one, Claim) else "") or None,
                "message": one.message,
                "fix": one.fix,
            }
            for one in account.findings
        ],
        "advice": {"sentence": advice.sentence, "command": advice.command},
    }


def _name_evidence(status: LeaseStatus | None) -> str:
    if status is None:
        return "none"
    if status.is_disputed:
        return "stamp"
    return "api-server" if status.from_stamps else "holder"


def _convert_tenure(tenure: Tenure) -> dict[str, Any]:
    return {
        "holder": tenure.holder,
        "since": _find_since(tenure),
        "until": _convert_time(tenure.until if tenure.is_end_known else None),
        "began": tenure.began.value,
        "leaderless_seconds": _convert_to_seconds(tenure.leaderless),
        "writers": [_convert_writer(one) for one in tenure.processes.writers],
        **({} if tenure.term is None else {"term": tenure.term}),
    }


def _find_since(tenure: Tenure | None) -> str | None:
    return _convert_time(tenure.since if tenure and tenure.is_since_known else None)


def _convert_last_writer(account: Account) -> dict[str, str] | None:
    manager, writer = account.manager_of_renewal, account.renewer
    if writer is None and not manager:
        return None
    return {**_convert_writer(writer or Writer()), "manager": manager}


def _convert_writer(writer: Writer) -> dict[str, str]:
    known = {"pod_uid": writer.uid, "impersonated_by": writer.impersonator}
    return {"user": writer.user, "pod": writer.pod, **{key: text for key, text in known.items() if text}}


def _convert_time(at: int | None) -> str | None:
    return None if at is None else format_micro_time(at)


def _convert_to_seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / SECOND
