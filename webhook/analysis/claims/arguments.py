"""The arguments of a claim: those that are known, and between which instants a write was stored."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from webhook.admission.rules.expiry import date_last_renewal
from webhook.analysis.claims.claim import By, Claim
from webhook.analysis.claims.handovers import (
    describe_address_of_end,
    describe_dating_of_end,
    describe_ending,
    describe_handover,
    describe_renewals_of_another,
    name_taking,
)
from webhook.analysis.claims.headline import make_headline
from webhook.analysis.claims.registry import KINDS
from webhook.analysis.claims.related_writes import describe_related_write
from webhook.analysis.claims.words import describe_by_writer, format_age, format_clock, format_name
from webhook.analysis.history.status import (
    LeaseState,
    LeaseStatus,
    find_latest_expiry,
    has_written_both,
    is_release,
    is_renewal_dated,
    may_be_unstamped,
)
from webhook.analysis.history.tenure import Handover, Tenure
from webhook.analysis.history.write import Write
from webhook.analysis.inputs.items import Writer
from webhook.findings import ObjectName, ReportFinding, Severity
from webhook.kubernetes.managed_fields import HOLDER, RENEW_TIME
from webhook.kubernetes.times import SECOND, format_length, get_readable_instant, normalize


def convert_finding(finding: ReportFinding) -> Claim:
    """Return a finding as a claim, those about a stored object too."""
    if isinstance(finding, Claim):
        return finding
    fields = {key: getattr(finding, key) for key in finding.__struct_fields__}
    named = KINDS[finding.check].arguments
    # The identity of a stalled election is the one that was to follow.
    key = next((one for one in ("previous", "identity") if one in named), "")
    return Claim(**fields, arguments=drop_unknown({key: finding.identity if key else "", "how": finding.how}))


def bound_write(write: Write | None, before: Write | None = None) -> Mapping[str, int]:
    """Return the arguments that say when a write was stored, as far as anything bounds that: `before` came after it."""
    if write is None or not write.earliest or write.is_claimed:
        return {}
    latest = write.latest if write.latest is not None or before is None or before.is_claimed else before.latest
    if latest is None:
        return {"earliest": write.earliest}
    return {"earliest": min(write.earliest, latest), "latest": latest}


def drop_unknown(arguments: Mapping[str, object]) -> Mapping[str, object]:
    """Return those arguments of a claim that are known."""
    return {key: value for key, value in arguments.items() if value is not None and value != ""}
