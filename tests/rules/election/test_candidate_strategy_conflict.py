"""When the candidates of one lease stop its election."""

import itertools

import msgspec
import pytest

from tests.factories import NOW, Document, Tweak, drop, make_candidate, put, to_bytes
from webhook.api.objects import LeaseCandidate
from webhook.policy.parse import preset
from webhook.rules.election.coordinated import CONFLICT, candidate_strategy_conflict
from webhook.rules.registry import RULES
from webhook.rules.rule import Finding

MINUTE = 60 * 1_000_000
OLDEST = "OldestEmulationVersion"
NEWEST = "example.com/NewestFirst"


def candidate(name: str, version: str, strategy: str, *tweaks: Tweak) -> Document:
    renamed = (put("metadata.name", name), put("spec.binaryVersion", version), put("spec.strategy", strategy))
    return make_candidate(*renamed, *tweaks)


def found(*candidates: Document, now: int = NOW) -> list[Finding]:
    typed = [msgspec.json.decode(to_bytes(one), type=LeaseCandidate) for one in candidates]
    return list(candidate_strategy_conflict(typed, now))


@pytest.mark.parametrize(
    "candidates",
    [
        pytest.param([], id="no candidates"),
        pytest.param([candidate("a", "1.36.0", OLDEST)], id="one"),
        pytest.param([candidate("a", "1.36.0", OLDEST), candidate("b", "1.36.0", OLDEST)], id="the same strategy"),
        pytest.param(
            [candidate("a", "1.35.9", NEWEST), candidate("b", "1.36.0", OLDEST)], id="a lower version differs"
        ),
        pytest.param(
            [candidate("a", "1.36.0-rc.1", NEWEST), candidate("b", "1.36.0", OLDEST)], id="a release candidate"
        ),
        pytest.param([candidate("a", "1.9.0", NEWEST), candidate("b", "1.10.0", OLDEST)], id="versions are no texts"),
        pytest.param([candidate("a", "v1.36", NEWEST), candidate("b", "1.36.0", OLDEST)], id="a version that is none"),
        pytest.param([candidate("a", "v1", NEWEST), candidate("b", "", OLDEST)], id="no version at all"),
        pytest.param(
            [candidate("a", "1.36.0", NEWEST, drop("spec.renewTime")), candidate("b", "1.36.0", OLDEST)],
            id="one never renewed",
        ),
    ],
)
def test_agree(candidates: list[Document]) -> None:
    assert found(*candidates) == []


@pytest.mark.parametrize(
    ("candidates", "detail"),
    [
        pytest.param(
            [candidate("a", "1.36.0", OLDEST), candidate("b", "1.36.0", NEWEST), candidate("c", "1.35.0", "x/X")],
            "live candidates of the highest binaryVersion 1.36.0 must have the same strategy "
            '(a "OldestEmulationVersion", b "example.com/NewestFirst"), or no leader is elected',
            id="two of the highest version",
        ),
        pytest.param(
            [candidate("b", "1.36.0+b2", NEWEST), candidate("a", "1.36.0+b1", OLDEST)],
            "live candidates of the highest binaryVersion 1.36.0+b1 must have the same strategy "
            '(a "OldestEmulationVersion", b "example.com/NewestFirst"), or no leader is elected',
            id="build metadata does not count",
        ),
        pytest.param(
            [candidate("a", "1.36.0", OLDEST), candidate("b", "1.36.0", NEWEST, put("apiVersion", "x/v1alpha2"))],
            "live candidates of the highest binaryVersion 1.36.0 must have the same strategy "
            '(a "OldestEmulationVersion", b "example.com/NewestFirst"), or no leader is elected',
            id="v1alpha2 and v1beta1 together",
        ),
    ],
)
def test_disagree(candidates: list[Document], detail: str) -> None:
    (finding,) = found(*candidates)
    assert (finding.error.type.value, finding.error.field) == ("FieldValueInvalid", "spec.strategy")
    assert finding.error.detail == detail
    assert finding.error.value == sorted([OLDEST, NEWEST])


def test_the_order_of_candidates_changes_nothing() -> None:
    candidates = [candidate("a", "1.36.0", OLDEST), candidate("b", "1.36.0", NEWEST), candidate("c", "1.36.0", "x/X")]
    results = [found(*order) for order in itertools.permutations(candidates)]
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize(
    ("now", "findings"),
    [
        pytest.param(NOW - 3600 * 60 * MINUTE, 1, id="renewed in the future"),
        pytest.param(NOW + 30 * MINUTE, 1, id="renewed 30 minutes ago"),
        pytest.param(NOW + 30 * MINUTE + 1, 0, id="renewed longer ago"),
    ],
)
def test_live_for_half_an_hour(now: int, findings: int) -> None:
    assert len(found(candidate("a", "1.36.0", OLDEST), candidate("b", "1.36.0", NEWEST), now=now)) == findings


def test_it_is_evaluated_on_no_single_write() -> None:
    assert CONFLICT not in RULES
    assert preset("strict").rules.candidate_strategy_conflict.mode == "audit"
