"""Compare what the API server's code answers in a case with what we answer, and the rules by which the two may differ.

A difference is a rule that is written here as code, asked of every case and counted; no case is excused by its id.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from tests.conformance.reviews import Case, review_of, text_of
from webhook.admission.evaluate import evaluate
from webhook.admission.policy.model import Policy
from webhook.admission.policy.parse import parse
from webhook.admission.rules.registry import OBJECT_TYPES_ID, RULES
from webhook.kubernetes import times
from webhook.kubernetes.opened_review import ReviewError
from webhook.kubernetes.review import decode

Error = tuple[str, str, str]
"""Type, field and detail."""

STANDARD: Policy = parse("apiVersion: lease-webhook/v1\npreset: standard\n")
FIELD_RULES = {rule.id for rule in RULES.values() if rule.parity} | {OBJECT_TYPES_ID, "time-unreadable"}
NOW = 1_763_640_000_000_000


class Ours(Struct, frozen=True):
    """Our verdict by the field rules on one case; a malformed or contradictory review is refused without errors."""

    refused: bool
    by_rule: tuple[tuple[str, Error], ...] = ()

    @property
    def errors(self) -> set[Error]:
        """The errors of all rules."""
        return {error for _, error in self.by_rule}


def evaluate_case(case: Case) -> Ours:
    """Send a case the whole way: bytes, review, rules, verdict."""
    try:
        request = decode(review_of(case))
    except ReviewError:
        return Ours(refused=True)
    verdict = evaluate(request, STANDARD, NOW)
    errors = tuple(
        (one.rule, (one.error.type.value, one.error.field, one.error.detail))
        for one in verdict.findings
        if one.rule in FIELD_RULES
    )
    assert not (errors and verdict.allowed), f"{case['id']}: a field rule found something and the write was allowed"
    return Ours(refused=bool(errors or request.contradiction), by_rule=errors)


# ---- cases that no webhook is shown ---------------------------------------------------------------------------------


def left_out(case: Case) -> str:
    """Return why a webhook never sees this request, or ""."""
    texts = [text_of(case, "object"), text_of(case, "oldObject")]
    if case["expected"]["precheck"]:
        return "left out: refused before validation (precheck)"
    if any(_repeats_a_key(text) for text in texts):
        return "left out: a key appears twice in one object"
    if any(_has_a_lone_surrogate(text) for text in texts):
        return "left out: a lone surrogate"
    return ""


def _repeats_a_key(text: str) -> bool:
    repeated = False

    def see(pairs: list[tuple[str, Any]]) -> None:
        nonlocal repeated
        repeated = repeated or len({key for key, _ in pairs}) < len(pairs)

    try:
        json.loads(text, object_pairs_hook=see)
    except ValueError:
        return False
    return repeated


def _has_a_lone_surrogate(text: str) -> bool:
    try:
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except ValueError:
        return False
    return False


# ---- the deliberate differences: each turns the recorded errors into those that we mean to report --------------------


def path_of_a_strategy(case: Case, theirs: set[Error]) -> set[Error]:
    """(a) Upstream appends `.strategy` to a path that names the strategy already."""
    return {(kind, re.sub(r"^(spec\.(strategy|preferredStrategies\[\d+\]))\.strategy$", r"\1", field), detail)
            for kind, field, detail in theirs}  # fmt: skip


def one_bad_version_is_one_error(case: Case, theirs: set[Error]) -> set[Error]:
    """(b) Upstream goes on with 0.0.0 where a version does not parse, and reports what follows from that."""
    bad = {field for _, field, detail in theirs if detail == "must be a valid semantic version"}

    def follows(error: Error) -> bool:
        _, field, detail = error
        if detail.startswith("must be specified when"):
            return field in bad
        return bool(bad) and detail.startswith("must be greater than or equal to `")

    return {error for error in theirs if not follows(error)}


def preferred_strategies_are_required(case: Case, theirs: set[Error]) -> set[Error]:
    """(c) v1alpha1 without preferredStrategies is refused, as its API reference says."""
    if case["version"] != "v1alpha1" or _spec(case, "object").get("preferredStrategies"):
        return theirs
    return theirs | {("FieldValueRequired", "spec.preferredStrategies", "must contain at least one strategy")}


def lease_name_must_name_a_lease(case: Case, theirs: set[Error]) -> set[Error]:
    """(d) leaseName is checked to be a legal name of a Lease when it is set or changed."""
    name = _spec(case, "object").get("leaseName")
    if case["resource"] == "leases" or not name or name == _spec(case, "oldObject").get("leaseName"):
        return theirs
    # What upstream says of such a name on a Lease itself, as recorded for metadata.name.
    details = []
    if len(name.encode()) > 253:
        details.append("must be no more than 253 characters")
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", name):
        details.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        )
    return theirs | {("FieldValueInvalid", "spec.leaseName", detail) for detail in details}


def strategies_must_be_unique(case: Case, theirs: set[Error]) -> set[Error]:
    """(e) preferredStrategies that are set or changed may not name a strategy twice: a cycle stops the election."""
    strategies = _spec(case, "object").get("preferredStrategies") or []
    if case["version"] != "v1alpha1" or strategies == _spec(case, "oldObject").get("preferredStrategies"):
        return theirs
    repeated = [index for index, strategy in enumerate(strategies) if strategy in strategies[:index]]
    return theirs | {
        ("FieldValueInvalid", f"spec.preferredStrategies[{index}]", "must not name a strategy twice")
        for index in repeated
    }


def times_must_be_readable(case: Case, theirs: set[Error]) -> set[Error]:
    """(f) A time that is set or changed may not be stored as year 10000 or -0001."""
    new, old = _spec(case, "object"), _spec(case, "oldObject")
    fields = ("acquireTime", "renewTime") if case["resource"] == "leases" else ("pingTime", "renewTime")
    errors = set()
    for field in fields:
        if new.get(field) is None or new[field] == old.get(field):
            continue
        micros = times.parse(new[field])
        if not times.FIRST_READABLE <= micros < times.AFTER_LAST_READABLE:
            detail = (
                "must be a time of the years 0000 to 9999 in UTC with six fraction digits, such as"
                ' "2026-01-31T12:00:00.000000Z"; JSON clients cannot decode any other'
            )
            errors.add(("FieldValueInvalid", f"spec.{field}", detail))
    return theirs | errors


DIFFERENCES: dict[str, Callable[[Case, set[Error]], set[Error]]] = {
    "(a) path of a strategy": path_of_a_strategy,
    "(b) one bad version, one error": one_bad_version_is_one_error,
    "(c) v1alpha1 needs preferredStrategies": preferred_strategies_are_required,
    "(d) leaseName is a legal name": lease_name_must_name_a_lease,
    "(e) strategies are unique": strategies_must_be_unique,
    "(f) times are readable": times_must_be_readable,
}


def _spec(case: Case, role: str) -> dict[str, Any]:
    document = json.loads(text_of(case, role))
    spec = document.get("spec") if isinstance(document, dict) else None
    return spec if isinstance(spec, dict) else {}


# ---- wording --------------------------------------------------------------------------------------------------------

_OLDER_WORDS = (
    (r"^a qualified name must consist", "a valid label key must consist"),
    (r"^(kind|name|uid) must not be empty$", "must not be empty"),
)
_COUNTED_IN_BYTES = re.compile(r"metadata\.(labels|annotations|finalizers)|spec\.(strategy|preferredStrategies)")


def in_words_of_1_36(error: Error) -> Error:
    """An error of 1.31 in the words of 1.36: what changed is a term, a repetition, and what a length counts."""
    kind, field, detail = error
    for pattern, replacement in _OLDER_WORDS:
        detail = re.sub(pattern, replacement, detail)
    if _COUNTED_IN_BYTES.match(field):
        detail = re.sub(r"(must be no more than \d+) characters$", r"\1 bytes", detail)
    return kind, field, detail


# ---- the comparison -------------------------------------------------------------------------------------------------


def disagreements(cases: list[Case]) -> tuple[list[str], Counter[str]]:
    """The cases on which we and upstream disagree, one line each, and how often each rule of this page spoke."""
    lines = []
    count: Counter[str] = Counter()
    for case in cases:
        reason = left_out(case)
        if reason:
            count[reason] += 1
            continue
        line = _disagreement(case, count)
        if line:
            lines.append(f"{case['id']}: {line}")
    return lines, count


def _disagreement(case: Case, count: Counter[str]) -> str:
    ours = evaluate_case(case)
    if case["expected"]["decode_error"] is not None:
        count["compared: not decodable upstream, refused by us"] += ours.refused
        return "" if ours.refused else f"not decodable upstream, allowed by us: {case['expected']['decode_error']}"
    recorded = {(one["type"], one["field"], one["detail"]) for one in case["expected"]["errors"]}
    theirs = {in_words_of_1_36(error) for error in recorded}
    if theirs != recorded:
        count["worded anew since 1.31"] += 1
    for name, difference in DIFFERENCES.items():
        meant = difference(case, theirs)
        if meant != theirs:
            count[name] += 1
        theirs = meant
    if ours.refused != bool(theirs):
        return f"refused upstream: {bool(theirs)}, by us: {ours.refused}"
    count["compared: refused by both" if ours.refused else "compared: allowed by both"] += 1
    return "" if ours.errors == theirs else f"only upstream {theirs - ours.errors}, only ours {ours.errors - theirs}"
