"""The cause of a silence by what a single API server did: its log has no answers, or it went and came again."""

from collections.abc import Sequence

from webhook.analysis.claims.diagnosis import Blame, Cause, Diagnosis
from webhook.analysis.claims.evidence.silent_holders.silence_evidence import SilenceEvidence
from webhook.analysis.claims.words import format_clock, format_count, format_name
from webhook.analysis.heartbeats import is_identity_of_api_server
from webhook.analysis.history.audit_log.log_spans import SilentLog
from webhook.analysis.history.lease import LeaseHistory


def diagnose_silent_log(evidence: SilenceEvidence, log: SilentLog, own: Sequence[Cause]) -> Diagnosis:
    """Return the cause if the API server of the last renewal answered nobody about a lease, as far as its log shows."""
    name = log.path.rpartition("/")[2]
    start, end = (format_clock(one, evidence.end) for one in (log.start, log.end))
    found = [one for one in evidence.histories.leases.values() if _has_stopped_with(one, evidence.history, log)]
    stopped, servers = len(found), [one for one in found if is_identity_of_api_server(one.namespace, one.name)]
    were = "was" if stopped == 1 else "were"
    others = f", although {format_count(stopped, 'other lease')} {were} renewed there before" if stopped else ""
    whose = "that API server, or the process of the holder, may have stood still or been cut off, for example"
    restarted, is_restarted = evidence.restarted_server, False
    if len(servers) == 1 and restarted is not None and restarted.name == servers[0].name:
        own_lease = f"{servers[0].namespace}/{servers[0].name}"
        others = f", not even about that of its API server, {own_lease}, {restarted.describe_creation(evidence.end)}"
        whose, is_restarted = "that API server had probably gone, as for a restart", True
    elif len(servers) == 1:
        # An API server renews its own lease each 10 s, for which no client and no network is needed.
        others = f", not even about that of its API server, {servers[0].namespace}/{servers[0].name}"
        whose = "that API server may have stood still or been cut off from its etcd, for example"
    text = (
        f"log {format_name(name)}, which has the last renewal, has no answer about any lease from {start} to {end}"
        f"{others}, and another log goes on: {whose}"
    )
    is_alone = not stopped
    blame, possible = Blame.UNKNOWN, (*own, Cause.NETWORK)
    if is_restarted and restarted is not None and restarted.is_by_server:
        blame, possible = Blame.SERVER, (Cause.API_SERVER, Cause.STOPPED)
    return Diagnosis(
        blame,
        text,
        possible,
        silent_log=name,
        is_alone_in_silent_log=is_alone,
        is_server_restarted=is_restarted,
    )


def _has_stopped_with(other: LeaseHistory, history: LeaseHistory, log: SilentLog) -> bool:
    """Return whether another lease was renewed in a log, and was due there again while that had no answer."""
    usual, written = other.renewals.usual, other.requests.written_in
    is_there = other is not history and written.find_at(log.start) == log.path
    return is_there and usual is not None and 2 * usual <= log.end - log.start


def diagnose_restart(text: str, own: Sequence[Cause]) -> Diagnosis:
    """Return the cause if an API server, which the holder may have used, went meanwhile and came again."""
    return Diagnosis(Blame.UNKNOWN, text, (*own, Cause.NETWORK), is_server_restarted=True)
