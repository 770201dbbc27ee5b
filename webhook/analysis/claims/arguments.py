"""The arguments of a claim: those that are known, and between which instants a write was stored."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.registry import KINDS
from webhook.analysis.history.write import Write
from webhook.findings import ReportFinding

NO_ARGUMENTS: Final[Mapping[str, object]] = MappingProxyType({})


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
