"""The tables of docs/audit.md: the rules that a stored object alone can break, and all other findings."""

from collections.abc import Iterator
from functools import cache
from typing import Final

from tests.factories import NOW, to_bytes
from tests.rules.pinned_writes import pinned_writes
from tools.docs.pages import DOCS, replace_generated, replace_lines
from webhook.admission.rules.rule import Rule
from webhook.analysis.audit.leases import STORED_RULES, Inventory, Subject
from webhook.analysis.audit.registry import FINDINGS
from webhook.analysis.claims.registry import PROBLEMS
from webhook.findings import Severity
from webhook.kubernetes.objects import Lease, LeaseCandidate
from webhook.kubernetes.review import decode
from webhook.kubernetes.times import SECOND

PAGE: Final = DOCS / "audit.md"
_BEGIN: Final = "<!-- written by make docs from webhook/admission/rules -->\n"
_BEGIN_FINDINGS: Final = "<!-- written by make docs from the registries of audit and of claims -->\n"
_BY_NUMBERS: Final = "error; smaller values warning, by the numbers of the rules, which `--policy` may change"


def make_page() -> str:
    """Return the page with the current tables."""
    return replace_lines(replace_generated(PAGE, _BEGIN, make_rows()), _BEGIN_FINDINGS, make_finding_rows())


def make_rows() -> Iterator[str]:
    """Yield a row for the rules of one severity whose objects have the same meaning."""
    found: dict[tuple[str, str], list[str]] = {}
    for rule in STORED_RULES.values():
        assert rule.stored
        found.setdefault((rule.stored.means, _describe_severity(rule)), []).append(f"`{rule.id}`")
    yield "| rule | severity | what it means |"
    yield "|---|---|---|"
    for (means, severity), rules in found.items():
        yield f"| {', '.join(rules)} | {severity} | {means} |"


def make_finding_rows() -> Iterator[str]:
    """Yield a row for each finding, those about stored objects first."""
    yield "| check | severity | what it means |"
    yield "|---|---|---|"
    for check in [*FINDINGS, *(one for one in PROBLEMS if one not in FINDINGS)]:
        problem = PROBLEMS[check]
        severity = "; ".join(f"{one} {when}".rstrip() for one, when in problem.severities.items())
        source = "" if check in FINDINGS else " (from a history)"
        yield f"| `{check}` | {severity} | {problem.means}{source} |"


def _describe_severity(rule: Rule) -> str:
    if any(name.startswith("warn_") for name in rule.default_limits):
        return _BY_NUMBERS
    # Of an object that API servers refuse, the tests of its rule need not have one that is stored.
    severities = _find_severities().get(rule.id) or {Severity.ERROR}
    return " or ".join(sorted(one.value for one in severities))


@cache
def _find_severities() -> dict[str, set[Severity]]:
    """Return, for each rule, what `audit` says of the objects of which the tests of the rule speak."""
    found: dict[str, set[Severity]] = {}
    for rule, review in pinned_writes():
        request = decode(to_bytes(review))
        if request.object_errors or not isinstance(request.new, Lease | LeaseCandidate):
            continue
        subject = Subject(request.new, request.namespace, request.name, NOW + 4 * SECOND)
        said = {one.severity for one in Inventory(NOW).add(subject) if one.check == rule}
        found.setdefault(rule, set()).update(said)
    return found
