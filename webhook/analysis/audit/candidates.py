"""Candidates of one lease that cannot agree on a strategy: the API server then elects no leader among them.

No single write shows it, so it is a check of what is stored. An API server counts the candidates that renewed in the
last 30 minutes, and removes the others.

Source: kubernetes `pkg/controlplane/controller/leaderelection`, pickBestStrategy of 1.31 (v1alpha1) and of later
versions, and leaseCandidateValidDuration.
"""

from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import islice, pairwise
from typing import Final

from msgspec import Struct
from semver import Version

from webhook.analysis.audit.registry import report_problem
from webhook.findings import ObjectName, ReportFinding
from webhook.kubernetes.objects import LeaseCandidateSpec
from webhook.kubernetes.times import MINUTE, get_instant, normalize
from webhook.kubernetes.versions import parse_version
from webhook.text.quoting import quote, truncate

VALID: Final = 30 * MINUTE
"""For so long after its renewal an API server counts a candidate."""
_MAX_NAMED: Final = 4
"""Candidates, or pairs of strategies, that a message names."""
_MAX_NAME: Final = 80
_LIST: Final = "{kubectl} get leasecandidates -o custom-columns=NAME:.metadata.name,LEASE:.spec.leaseName"


class Candidate(Struct, frozen=True):
    """A LeaseCandidate by name."""

    name: str
    spec: LeaseCandidateSpec


def find_conflicts(namespace: str, lease: str, candidates: Sequence[Candidate], now: int) -> Iterator[ReportFinding]:
    """Yield why the candidates of a lease elect no leader; `now` is in microseconds since 1970."""
    valid = sorted((one for one in candidates if _is_valid(one.spec, now)), key=lambda one: one.name)
    listed = [one for one in valid if one.spec.schema.is_list]
    problems = (
        (_find_different_strategies([one for one in valid if not one.spec.schema.is_list]), _FIX),
        (_find_contradicting_orders(listed) or _find_several_first_choices(listed), _FIX_OF_LISTS),
    )
    for problem, fix in problems:
        if problem:
            message = f"no leader is elected for this lease until its candidates agree: {problem}"
            subject = ObjectName("Lease", namespace, lease)
            yield report_problem("candidate-strategy-conflict", message, subject, fix=fix)


_FIX: Final = (
    f"{_LIST},VERSION:.spec.binaryVersion,STRATEGY:.spec.strategy"
    "   # give those of the newest version the same strategy"
)
_FIX_OF_LISTS: Final = f"{_LIST},STRATEGIES:.spec.preferredStrategies   # give all of them the same list"


def _is_valid(spec: LeaseCandidateSpec, now: int) -> bool:
    renewed = get_instant(normalize(spec.renew_time))
    return renewed is not None and now - renewed <= VALID


def _find_different_strategies(candidates: Sequence[Candidate]) -> str:
    """Return which candidates of the newest binaryVersion want different strategies: theirs count for all."""
    by_version: dict[Version, dict[str, str]] = {}
    for candidate in candidates:
        version = parse_version(candidate.spec.binary_version or "")
        if version is not None and candidate.spec.strategies:
            by_version.setdefault(version, {}).setdefault(candidate.spec.strategies[0], candidate.name)
    if not by_version:
        return ""
    newest = max(by_version)
    if len(by_version[newest]) == 1:
        return ""
    wanted = [f"{_shorten(name)} wants {_shorten(strategy)}" for strategy, name in by_version[newest].items()]
    return f"of those with the highest binaryVersion, {truncate(str(newest), _MAX_NAME)}, {_join(wanted)}"


def _find_contradicting_orders(candidates: Sequence[Candidate]) -> str:
    """Return which candidates prefer strategies in a circle."""
    by_order = _group_by_order(candidates)
    before: dict[str, set[str]] = {}
    for first, second in by_order:
        before.setdefault(second, set()).add(first)
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        circle = pairwise(error.args[1])
        return _join(
            f"{_shorten(by_order[order])} prefers {_shorten(order[0])} to {_shorten(order[1])}" for order in circle
        )
    return ""


def _find_several_first_choices(candidates: Sequence[Candidate]) -> str:
    """Return which candidates have a first choice that no one's list puts behind another one."""
    behind = {second for _, second in _group_by_order(candidates)}
    first: dict[str, str] = {}
    for candidate in candidates:
        if candidate.spec.strategies and candidate.spec.strategies[0] not in behind:
            first.setdefault(candidate.spec.strategies[0], candidate.name)
    if len(first) < 2:
        return ""
    choices = (f"{_shorten(name)} prefers {_shorten(strategy)}" for strategy, name in first.items())
    return f"{_join(choices)}, and no list says which of them comes first"


def _group_by_order(candidates: Sequence[Candidate]) -> dict[tuple[str, str], str]:
    """Return each pair of strategies of which one is preferred, with the first candidate whose list says so."""
    by_order: dict[tuple[str, str], str] = {}
    for candidate in candidates:
        for order in pairwise(candidate.spec.strategies):
            by_order.setdefault(order, candidate.name)
    return by_order


def _shorten(text: str) -> str:
    return quote(truncate(text, _MAX_NAME))


def _join(clauses: Iterator[str] | Sequence[str]) -> str:
    """Return the first clauses as one; more are only said to exist."""
    *named, last = islice(clauses, _MAX_NAMED + 1)
    if len(named) == _MAX_NAMED:
        return f"{', '.join(named)}, and so on"
    return f"{', '.join(named)} and {last}" if named else last
