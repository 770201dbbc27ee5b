"""What the engine says of a review, as far as the table of docs/policies-only.md says that a policy says it, too."""

import re
from typing import Final

from tests.factories import Document
from tests.match_condition import is_reviewed
from tests.rules.modules import modules
from webhook.admission.policy.model import Policy
from webhook.admission.rules.change import Condition
from webhook.admission.rules.registry import RULES
from webhook.admission.verdict import Verdict
from webhook.server.reviewer import respond

Found = set[tuple[str, str]]
"""Pairs of a mode and a rule."""


def verdict_of(body: bytes, policy: Policy, received: int) -> Verdict:
    """The verdict of the engine; there must be one."""
    verdict = respond(body, policy, received).verdict
    assert verdict is not None
    return verdict


_LISTS: Final = ("finalizers", "managedFields", "ownerReferences")
_LEFT_OUT_IF_EMPTY: Final = (*_LISTS, "labels", "annotations")
_OFFSET: Final = re.compile(r"[+-]\d\d:\d\d$")


def is_sent(request: Document, body: bytes) -> bool:
    """True if an API server may send such a request: it names the writer, and leaves out what is null but times.

    It makes an empty item of one that is null, and its validation refuses that. It leaves out what of metadata is
    empty, and writes times in UTC.
    """
    objects = [request.get(name) or {} for name in ("object", "oldObject")]
    specs = [one.get("spec") or {} for one in objects]
    nulls = [name for spec in specs for name, value in spec.items() if value is None and not name.endswith("Time")]
    lists = [(one.get("metadata") or {}).get(name) or () for one in objects for name in _LISTS]
    has_no_items = any(not isinstance(item, dict | str) for items in lists for item in items)
    entries = [entry for one in objects for entry in (one.get("metadata") or {}).get("managedFields") or ()]
    has_nulls = bool(nulls) or has_no_items or not all(isinstance(one, dict) for one in entries)
    is_empty = any(
        (one.get("metadata") or {}).get(name, "x") in ({}, []) for one in objects for name in _LEFT_OUT_IF_EMPTY
    )
    is_in_utc = not any(_OFFSET.search(str(spec.get(name))) for spec in specs for name in ("renewTime", "pingTime"))
    is_as_written = is_in_utc and not is_empty and not has_nulls
    return bool(request.get("userInfo")) and is_as_written and b'"0001-01-01T' not in body


def expected(verdict: Verdict, request: Document) -> Found:
    """Return what a policy must find of the same request."""
    reviewed = request["resource"]["resource"] != "leases" or is_reviewed(request)
    return {
        (finding.mode.word, finding.rule)
        for finding in verdict.findings
        if finding.mode
        and (reviewed or RULES[finding.rule].only_if is Condition.BOUND)
        and RULES[finding.rule].in_cel.is_said
        and not _is_unsaid(finding.rule, finding.error.field, request)
    }


def found(broken: Found, request: Document) -> Found:
    """Return what policies found, without that of which the table says nothing."""
    return {one for one in broken if not _is_unsaid(one[1], "", request)}


def texts(verdict: Verdict) -> dict[str, str]:
    """The text of each rule that denies alone."""
    return {
        cause.message.rpartition("(lease webhook, rule ")[2].partition(",")[0]: f"{cause.field}: {cause.message}"
        for cause in verdict.causes
        if "(lease webhook, rule " in cause.message
    }


def _is_unsaid(rule: str, field: str, request: Document) -> bool:
    """Return whether a policy says nothing or something else, as the rule says in its file."""
    return any(
        module.WHERE_CEL_DIFFERS[rule](request, field)
        for module in modules()
        if rule in getattr(module, "WHERE_CEL_DIFFERS", ())
    )
