"""When the candidates of one lease stop its election."""

import itertools

import msgspec
import pytest

from tests.factories import NOW, Document, Tweak, drop, make_candidate, put, to_bytes
from webhook.api.objects import LeaseCandidate
from webhook.audit.inventory import Inventory
from webhook.audit.subject import Subject
from webhook.findings import Finding

MINUTE = 60 * 1_000_000
OLDEST = "OldestEmulationVersion"
NEWEST = "example.com/NewestFirst"


def candidate(name: str, version: str, strategy: str, *tweaks: Tweak) -> Document:
    renamed = (put("metadata.name", name), put("spec.binaryVersion", version), put("spec.strategy", strategy))
    return make_candidate(*renamed, *tweaks)


def found(*candidates: Document, now: int = NOW) -> list[Finding]:
    inventory = Inventory(now)
    for one in candidates:
        typed = msgspec.json.decode(to_bytes(one), type=LeaseCandidate)
        list(inventory.add(Subject(typed, "shop", one["metadata"]["name"], now)))
    return [one for one in inventory.rest() if one.check == "candidate-strategy-conflict"]


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
    assert finding.message == detail


def test_the_order_of_candidates_changes_nothing() -> None:
    candidates = [candidate("a", "1.36.0", OLDEST), candidate("b", "1.36.0", NEWEST), candidate("c", "1.36.0", "x/X")]
    results = [found(*order) for order in itertools.permutations(candidates)]
    assert len({finding.message for (finding,) in results}) == 1


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
