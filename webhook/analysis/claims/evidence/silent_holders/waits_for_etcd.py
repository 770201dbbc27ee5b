"""Reads of a lease that failed because etcd did not answer, as an API server says in its log.

A write that fails does not say so. No admission webhook sees reads, so none explains why they fail.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from webhook.analysis.claims.diagnosis import Blame, Diagnosis
from webhook.analysis.claims.evidence.silent_holders.silence_evidence import SilenceEvidence
from webhook.analysis.claims.words import format_count
from webhook.analysis.history.audit_log.latency import BY_ETCD
from webhook.analysis.history.audit_log.refusal import Refusal
from webhook.kubernetes.times import format_length


def describe_waits_for_etcd(evidence: SilenceEvidence) -> str:
    """Say how many reads of the lease, by anyone, failed for etcd, and after how long; "" if none did."""
    found = _list_waits(evidence)
    if not found:
        return ""
    longest = format_length(max(one.took for one in found))
    bound = f"up to {longest}" if len(found) > 1 else longest
    users = {one.writer.user for one in found}
    least = "at least " if evidence.history.requests.has_forgotten_since(evidence.start, "", *users) else ""
    number = f"{least}{format_count(len(found), 'read')}"
    return f"{number} of this lease failed, having waited {bound} for etcd, as the log says"


def _list_waits(evidence: SilenceEvidence) -> Sequence[Refusal]:
    return [one for one in evidence.failed_reads if one.slow_part == BY_ETCD]


def add_waits_for_etcd(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence with the reads that failed for etcd meanwhile, before anything else."""
    waits = describe_waits_for_etcd(evidence)
    if not waits or cause.blame not in {Blame.SERVER, Blame.NETWORK, Blame.UNKNOWN}:
        return cause
    return replace(cause, evidence=f"{waits}; {cause.evidence}", waits_for_etcd=True)
