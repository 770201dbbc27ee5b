"""Candidates that cannot agree on a strategy, as pickBestStrategy of kube-apiserver 1.31 and of later versions says."""

import random
from itertools import pairwise

import pytest

from tests.audit.test_checks import audited
from tests.factories import Document, Tweak, as_version, drop, make_candidate, put
from webhook.findings import ObjectName, ReportFinding, Severity

OLDEST = "OldestEmulationVersion"
X, Y, Z = "example.com/x", "example.com/y", "example.com/z"


def one_of(name: str, strategy: str, *tweaks: Tweak, version: str = "v1beta1") -> Document:
    """A candidate that wants this strategy."""
    return make_candidate(as_version(version), put("metadata.name", name), put("spec.strategy", strategy), *tweaks)


def preferring(name: str, *strategies: str) -> Document:
    """A candidate of v1alpha1 with this list."""
    return make_candidate(
        as_version("v1alpha1"), put("metadata.name", name), put("spec.preferredStrategies", list(strategies))
    )


def conflict(*candidates: Document) -> list[ReportFinding]:
    return [one for one in audited(*candidates) if one.check == "candidate-strategy-conflict"]


NEWER = (put("spec.binaryVersion", "1.37.0"), put("spec.emulationVersion", "1.36.0"))
LATE = put("spec.renewTime", "2025-11-20T11:30:03.000000Z")
IN_TIME = put("spec.renewTime", "2025-11-20T11:30:04.000000Z")


@pytest.mark.parametrize(
    ("candidates", "named"),
    [
        pytest.param([one_of("a", OLDEST), one_of("b", OLDEST)], "", id="one strategy"),
        pytest.param([one_of("a", X), one_of("b", OLDEST)], f'"a" wants "{X}" and "b" wants "{OLDEST}"', id="two"),
        pytest.param([one_of("a", X), one_of("b", OLDEST, *NEWER)], "", id="the newest version decides"),
        pytest.param(
            [one_of("c", X), one_of("a", X, *NEWER), one_of("b", Y, *NEWER)],
            f'highest binaryVersion, 1.37.0, "a" wants "{X}" and "b" wants "{Y}"',
            id="two at the newest version",
        ),
        pytest.param([one_of("a", X, LATE), one_of("b", OLDEST)], "", id="one that the API server no longer counts"),
        pytest.param([one_of("a", X, IN_TIME), one_of("b", Y)], '"a" wants', id="one that it just counts"),
        pytest.param([one_of("a", X, drop("spec.renewTime")), one_of("b", Y)], "", id="one that never renewed"),
        pytest.param([one_of("a", X), one_of("b", Y, put("spec.leaseName", "other"))], "", id="of two leases"),
        pytest.param([one_of("a", X), one_of("b", Y, put("metadata.namespace", "mall"))], "", id="of two namespaces"),
        pytest.param(
            [one_of("a", X), one_of("b", Y, put("spec.binaryVersion", "v2"))], "", id="a version that is none"
        ),
        pytest.param([one_of("a", X), one_of("b", "")], "", id="no strategy, which a rule reports"),
        pytest.param([one_of("a", X, version="v1alpha2"), one_of("b", Y)], '"a" wants', id="v1alpha2 and v1beta1"),
    ],
)
def test_later_versions(candidates: list[Document], named: str) -> None:
    findings = conflict(*candidates)
    assert len(findings) == bool(named)
    assert not findings or named in findings[0].message


@pytest.mark.parametrize(
    ("lists", "named"),
    [
        pytest.param([[X], [X]], "", id="all have X first"),
        pytest.param([[X], [Y, X]], "", id="Y supersedes X"),
        pytest.param([[X, Y], [Y, X]], f'"c1" prefers "{Y}" to "{X}"', id="a user error"),
        pytest.param([[X], [Y]], f'"c0" prefers "{X}" and "c1" prefers "{Y}", and no list', id="two first choices"),
        pytest.param([[X], [Y], [Z, X], [Z, Y]], "", id="one before both"),
        pytest.param([[X, Y], [Y, Z], [Z, X]], f'"c2" prefers "{Z}" to "{X}"', id="a circle of three"),
        pytest.param([[X, X]], f'"c0" prefers "{X}" to "{X}"', id="one that precedes itself"),
        pytest.param([[X], []], "", id="no strategy, which a rule reports"),
    ],
)
def test_the_first_version(lists: list[list[str]], named: str) -> None:
    findings = conflict(*(preferring(f"c{number}", *strategies) for number, strategies in enumerate(lists)))
    assert len(findings) == bool(named)
    assert not findings or named in findings[0].message


def test_the_finding_names_lease_candidates_and_fix() -> None:
    (finding,) = conflict(preferring("a", X, Y), preferring("b", Y, X))
    assert (finding.severity, finding.subject) == (Severity.ERROR, ObjectName("Lease", "shop", "checkout"))
    assert finding.message.startswith("no leader is elected for this lease until its candidates agree: ")
    assert '"a" prefers' in finding.message
    assert '"b" prefers' in finding.message
    assert finding.fix.startswith("kubectl -n shop get leasecandidates -o custom-columns=")
    assert finding.fix.endswith("# give all of them the same list")


def expected(lists: list[list[str]]) -> bool:
    """Whether topologicalSortWithOneRoot of Kubernetes 1.31 finds an order, written again from its text."""
    graph: dict[str, list[str]] = {}
    for strategies in lists:
        for first, second in pairwise(strategies):
            graph.setdefault(first, []).append(second)
        graph.setdefault(strategies[-1], [])
    degree = dict.fromkeys(graph, 0)
    for after in graph.values():
        for strategy in after:
            degree[strategy] += 1
    queue = [strategy for strategy in graph if not degree[strategy]]
    if len(queue) > 1:
        return False
    order = []
    while queue:
        order.append(queue.pop(0))
        for strategy in graph[order[-1]]:
            degree[strategy] -= 1
            if not degree[strategy]:
                queue.append(strategy)
    return len(order) == len(graph)


def test_any_lists_conflict_where_upstream_finds_no_order() -> None:
    draw = random.Random(31)
    outcomes = set()
    for _ in range(400):
        lists = [draw.choices([X, Y, Z, OLDEST], k=draw.randint(1, 4)) for _ in range(draw.randint(1, 4))]
        findings = conflict(*(preferring(f"c{number}", *strategies) for number, strategies in enumerate(lists)))
        assert (not findings) == expected(lists), lists
        outcomes.add(not findings)
    assert outcomes == {True, False}


def test_many_candidates_with_long_lists_and_names_give_a_short_finding() -> None:
    names = [f"example.com/{number}" for number in range(3000)]
    hostile = [preferring(f"c{number}\u202e" + "x" * 5000, *names, names[0]) for number in range(5)]
    (finding,) = conflict(*hostile)
    assert len(finding.message) < 2000
    assert finding.message.isprintable()
