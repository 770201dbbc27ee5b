"""What the engine says of a review, as far as the table of docs/policies-only.md says that a policy says it, too."""

import json
from collections.abc import Iterator
from typing import Any, Final

from tests.factories import Document
from tests.match_condition import is_reviewed
from webhook.admission.policy.model import Policy
from webhook.admission.rules.registry import RULES
from webhook.admission.verdict import Verdict
from webhook.server.reviewer import respond

_BINDING: Final = "identity-binding"
_DATED: Final = {
    "takeover-before-expiry",
    "takeover-by-node",
    "takeover-across-namespaces",
    "foreign-release",
    "foreign-release-across-namespaces",
}
MAX_ENTRIES: Final = 50
MAX_OWNERS: Final = 100
MAX_HOLDER: Final = 4096

Found = set[tuple[str, str]]
"""Pairs of a mode and a rule."""


def verdict_of(body: bytes, policy: Policy, received: int) -> Verdict:
    """The verdict of the engine; there must be one."""
    verdict = respond(body, policy, received).verdict
    assert verdict is not None
    return verdict


def is_sent(request: Document, body: bytes) -> bool:
    """True if an API server may send such a request: it names the writer, and leaves out what is null but times."""
    specs = [(request.get(name) or {}).get("spec") or {} for name in ("object", "oldObject")]
    nulls = [name for spec in specs for name, value in spec.items() if value is None and not name.endswith("Time")]
    return bool(request.get("userInfo")) and not nulls and b'"0001-01-01T' not in body


def expected(verdict: Verdict, request: Document) -> Found:
    """Return what a policy must find of the same request."""
    reviewed = request["resource"]["resource"] != "leases" or is_reviewed(request)
    return {
        (finding.mode.word, finding.rule)
        for finding in verdict.findings
        if finding.mode
        and (reviewed or finding.rule == _BINDING)
        and RULES[finding.rule].in_cel.is_said
        and not any(_unsaid(finding.rule, finding.error.field, request))
    }


def found(broken: Found, request: Document) -> Found:
    """Return what policies found, without that of which the table says nothing."""
    return {one for one in broken if not any(_unsaid(one[1], "", request))}


def texts(verdict: Verdict) -> dict[str, str]:
    """The text of each rule that denies alone."""
    return {
        cause.message.rpartition("(lease webhook, rule ")[2].partition(",")[0]: f"{cause.field}: {cause.message}"
        for cause in verdict.causes
        if "(lease webhook, rule " in cause.message
    }


def _unsaid(rule: str, field: str, request: Document) -> Iterator[bool]:
    """Each reason for which a policy says nothing or something else, as the rules say in their files."""
    new, old = (request.get(name) or {} for name in ("object", "oldObject"))
    if rule in _DATED:
        yield not _is_dated(new, old)
    if rule == "lease-without-stamps":
        yield (
            len(_entries(new)) > MAX_ENTRIES
            or len(_entries(old)) > MAX_ENTRIES
            or not all(_is_usual(one.get("time")) for one in _owners(new, "holderIdentity") + _owners(old, "renewTime"))
        )
    if rule == "time-unreadable":
        yield field.startswith("metadata.managedFields")
    if rule.endswith(("renew-time-backwards", "renew-time-in-future")) or rule == "acquire-time-changed":
        times = [str((one.get("spec") or {}).get(name)) for one in (new, old) for name in ("renewTime", "acquireTime")]
        yield any(time.startswith("0000") for time in times)
        # A policy compares whole seconds, and acquireTime may move by one.
        yield rule == "acquire-time-changed" and times[1][:15] == times[3][:15]
    if rule.endswith("renew-time-in-future"):
        owners = _owners(new, "renewTime")
        yield len(owners) != 1 or not _is_clock(owners[0])
    if rule.startswith("owner-reference-"):
        yield sum(len(one.get("metadata", {}).get("ownerReferences") or ()) for one in (new, old)) > MAX_OWNERS
    if rule == _BINDING:
        yield len(str((new.get("spec") or {}).get("holderIdentity") or "")) > MAX_HOLDER


def _is_dated(new: Document, old: Document) -> bool:
    holder_entries, old_renewals = _owners(new, "holderIdentity"), _owners(old, "renewTime")
    return (
        max(len(_entries(new)), len(_entries(old))) <= MAX_ENTRIES
        and (new.get("spec") or {}).get("holderIdentity") is not None
        and len(holder_entries) == 1
        and _is_clock(holder_entries[0])
        and any(one.get("time") for one in old_renewals)
        and all(_is_usual(one["time"]) for one in old_renewals if one.get("time"))
        and (
            holder_entries[0]["time"] <= min(one["time"] for one in old_renewals if one.get("time"))
            or not _was_there(holder_entries[0], old)
        )
    )


def _was_there(entry: Document, old: Document) -> bool:
    """True if the owner of the holder is one of before, of another write."""
    keys = ("manager", "operation", "time")
    return any(all(one.get(key) == entry.get(key) for key in keys) for one in _owners(old, "holderIdentity"))


def _is_clock(entry: Document) -> bool:
    return entry.get("manager") != "ancient-changes" and _is_usual(entry.get("time"))


def _is_usual(time: Any) -> bool:
    return isinstance(time, str) and len(time) == 20 and "1970" <= time < "2200"


def _entries(document: Document) -> list[Document]:
    return document.get("metadata", {}).get("managedFields") or []


def _owners(document: Document, field: str) -> list[Document]:
    name = json.dumps(f"f:{field}")
    return [one for one in _entries(document) if name in json.dumps((one.get("fieldsV1") or {}).get("f:spec") or {})]
